"""The package: what it says of itself, and what it does where it is installed without its checkout."""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml

import csebench
from csebench import cli
from csebench.base.project import REPOSITORY, ROOT
from csebench.cli import verbs
from csebench.plan import catalog

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERBS = next(a for a in verbs.parser()._actions if isinstance(a, argparse._SubParsersAction)).choices


def required(verb):
    """Arguments without which a verb cannot be parsed."""
    actions = [action for action in VERBS[verb]._actions if action.required]
    return [text for action in actions for text in (*action.option_strings[:1], "1")]


@pytest.mark.parametrize("verb", VERBS)
def test_outside_a_checkout_a_verb_says_how_to_get_one(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert cli.main([verb, *required(verb)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and f"git clone {PROJECT['urls']['Repository']} && cd csebench" in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("checkout, suffix", [(True, " (commit 0123456789, with changes)"), (False, "")])
def test_version_names_the_commit_of_a_checkout(checkout, suffix, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(verbs, "code_state", lambda: {"commit": "0123456789abcdef", "dirty_diff_sha256": "ab"})
    monkeypatch.setattr(catalog, "ROOT", ROOT if checkout else tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"csebench {csebench.__version__}{suffix}\n"


def test_citation_and_changelog_fit_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (csebench.__version__, PROJECT["license"])
    assert citation["repository-code"] == PROJECT["urls"]["Repository"] == REPOSITORY
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[:2] == ["Unreleased", csebench.__version__]


def test_before_a_commit_runs_checks_of_ci():
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    checks = (ROOT / ".ci" / "run").read_text()
    assert all(f"\n{hook['entry']} " in checks for hook in local["hooks"])


@pytest.mark.slow
def test_a_wheel_holds_every_room_and_says_that_it_is_no_checkout(tmp_path):
    source, site, rooms = tmp_path / "source", tmp_path / "site", ("csebench", "methods", "evaluators")
    for name in rooms:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", str(tmp_path), "."]
    subprocess.run(build, cwd=source, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    files = [path for name in rooms for path in (source / name).rglob("*") if path.is_file()]
    assert not [path for path in files if not (site / path.relative_to(source)).is_file()]
    command = [sys.executable, "-m", "csebench", "methods"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(site)}, capture_output=True, text=True)
    assert done.returncode == 2 and "git clone" in done.stderr and done.stdout == ""
