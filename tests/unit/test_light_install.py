"""An installation without the extra `run`: what works, and what the other verbs say.

Commands run in a Python that finds only csebench and what pyproject.toml's `dependencies` bring.
"""

import argparse
import json
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from project import copy_of_project
from score_files import write_scores

from csebench.base import extras
from csebench.base.project import ROOT
from csebench.cli import main
from csebench.cli.verbs import parser
from csebench.data import preflight
from csebench.plan import targets

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SCORES = "results/mini/scores"
LIGHT = (
    "methods",
    "evaluators",
    "papers",
    "show micse/table2",
    "plan micse/table2 --scale paper",
    "status micse",
    "power micse/table2",
    "claims micse",
    "audit",
    "export claims --out claims",
    f"export model-index {SCORES}/msse-78b6db175a.sts.json --out README-of-model.md",
    "export ro-crate results/mini/micse/table3.md --out crate",
    "init work",
    "new paper mine",
    "snakefile",
    "prune micse",
    "compare micse/table2",
    f"judge {SCORES}/micse-138f2092a5.sts.json {SCORES}/micse-16c55df441.sts.json",
    f"import {SCORES} --scale mini",
    "render evidence",
    "render all --scale mini",
    "csv --scale mini",
    "check micse/table2 --scale smoke",
    "fetch micse/table2 --scale smoke",
)
HEAVY = (
    "train --method simcse --out runs/mine",
    "evaluate --model encoders/bert-mini-wiki --out scores.json",
    "work simcse-0123456789",
    "tune simcse",
    "try methods/simcse.py",
    "publish simcse-0123456789 sts",
    "back-translate corpus.txt --translators models --out out.txt",
)
# a module `sitecustomize`, which Python runs when it starts
HIDING = """\
from importlib.machinery import PathFinder

HIDDEN = {hidden}
find_spec = PathFinder.find_spec


def find_others(name, path=None, target=None):
    if name.partition(".")[0] in HIDDEN:
        return None
    return find_spec(name, path, target)


PathFinder.find_spec = find_others
"""


def with_requirements(names):
    """Return the packages, and all that they require directly or through others."""
    found = set()
    waiting = list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        found.add(name)
        for requirement in map(Requirement, requires(name) or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def modules_without(lines):
    """List the installed modules that these requirements do not bring."""
    brought = {"csebench", *with_requirements(Requirement(line).name for line in lines)}
    hidden = set()
    for module, packages in packages_distributions().items():
        if brought.isdisjoint(map(canonicalize_name, packages)):
            hidden.add(module)
    return hidden


def light_project(folder, *more):
    """Copy the project, for a Python with its `dependencies` and more requirements."""
    project = copy_of_project(folder / "project")
    hidden = modules_without([*PROJECT["dependencies"], *more])
    assert set(extras.RUN_MODULES) <= hidden
    (folder / "sitecustomize.py").write_text(HIDING.format(hidden=sorted(hidden)))
    project.env["PYTHONPATH"] = f"{folder}:{project.folder}"
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project, used without the extra `run`."""
    return light_project(tmp_path_factory.mktemp("light"))


# one process for all commands, because each process would read the whole project again
RUN_ALL = """\
import contextlib, io, json, sys
from csebench.cli import main

failures = {}
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        if main(command.split()) != 0:
            failures[command] = errors.getvalue()
print(json.dumps(failures))
"""


@pytest.fixture
def without_run_modules(monkeypatch):
    """Let this process find no module of the extra `run`."""
    for module in extras.RUN_MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(extras, "find_spec", lambda module: None)


def verbs():
    """Return the parsers of all verbs."""
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    raise AssertionError("csebench has no verbs")


def test_every_verb_is_tried():
    have_own_tests = {"html", "push", "report"}
    assert {command.split()[0] for command in (*LIGHT, *HEAVY)} == verbs().keys() - have_own_tests


@pytest.mark.slow
def test_verbs_that_run_no_model_need_no_torch(project):
    (project.folder.parent / "run_all.py").write_text(RUN_ALL)
    done = project.run(json.dumps(LIGHT), module="run_all")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


@pytest.mark.slow
def test_the_site_needs_no_torch(tmp_path):
    project = light_project(tmp_path, *PROJECT["optional-dependencies"]["docs"])
    done = project.csebench("html", "--scale", "mini")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_reporting_runs_needs_no_torch(project, monkeypatch):
    monkeypatch.chdir(project.folder)
    for page in targets.parse_target("congen/table1", "small"):
        for spec in page.runs().values():
            write_scores(spec, "sts", "small", [("Avg.", "spearman", 0.5)])
    link = "https://github.com/areader/runs/issues/1"
    out = "evidence/areader.yaml"
    done = project.csebench("report", "--who", "A. Reader", "--url", link, "--out", out)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", HEAVY)
def test_a_verb_that_runs_models_says_what_to_install(command, without_run_modules, capsys):
    assert main(command.split()) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"csebench: {command.split()[0]}: packages are missing")
    assert "torch, transformers" in message
    assert message.endswith("pip install -e '.[run]'.\n")
    assert message.count("\n") == 1


@pytest.mark.slow
def test_the_sentence_comes_before_anything_is_written(project):
    corpus = "data/smoke/wiki/smoke.txt"
    done = project.csebench(*HEAVY[0].split(), "--encoder", "bert-mini-wiki", "--corpus", corpus)
    assert done.returncode == 2
    assert done.stderr.endswith("pip install -e '.[run]'.\n")
    assert not (project.folder / "runs").exists()


def test_data_of_mteb_count_as_missing_without_mteb(without_run_modules):
    state = preflight.need_state(preflight.Need("mteb", "BIOSSES"), "paper")
    assert state.state == preflight.MISSING
    assert state.why.startswith("mteb:BIOSSES: packages are missing")


@pytest.mark.parametrize("what", ["mteb", "eval-results"])
def test_results_of_mteb_need_its_package(what, without_run_modules, capsys, tmp_path):
    path = f"{SCORES}/msse-78b6db175a.mteb.Banking77Classification.json"
    assert main(["export", what, path, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"csebench: export {what}: packages are missing")
