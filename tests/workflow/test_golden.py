"""Bytes that change only on purpose: ids of runs, JSON answers of the verbs, and every page, CSV
and figure of the published study, of the evidence and of scale smoke.

To renew the files of tests/workflow/golden/: `python tests/workflow/test_golden.py`, and read the
diff. Pages of the published study and of the evidence are renewed by Snakemake.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `python tests/workflow/test_golden.py`
from project import new_project
from score_files import make_scores

from csebench.base import caches
from csebench.base.project import ROOT
from csebench.cli import main
from csebench.plan import targets
from csebench.plan.catalog import files as catalog

GOLDEN = Path(__file__).parent / "golden"


def first_difference(made: str, expected: str) -> str:
    """The first line in which two texts differ; empty where they are equal."""
    pairs = enumerate(
        zip([*made.split("\n"), None], [*expected.split("\n"), None], strict=False), 1
    )
    return next(
        (f"line {n}: {one!r} in place of {two!r}" for n, (one, two) in pairs if one != two), ""
    )


def call(*words: str) -> str:
    """What a verb prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*words]) == 0, words
    return out.getvalue()


def run_ids() -> str:
    """The runs of every scale: a line per scale and method."""
    keys = defaultdict(list)
    for scale in catalog.scale_names():
        for run_id in sorted(targets.runs(scale)):
            method, _, key = run_id.rpartition("-")
            keys[scale, method].append(key)
    return "".join(f"{' '.join([*of, *found])}\n" for of, found in keys.items())


def test_ids_of_runs():
    made, expected = (
        {
            f"{scale} {method}-{key}"
            for scale, method, *keys in map(str.split, text.splitlines())
            for key in keys
        }
        for text in (run_ids(), (GOLDEN / "run_ids.txt").read_text())
    )
    # one that moves is gone; a file of one's own adds some
    assert not sorted(expected - made), "gone"


KEPT = {"methods/components": "ami mlm", "evaluators": "sts stsb_dev geometry transfer"}
VERBS = """
methods; evaluators; papers; audit; claims; status; plan all; power all --scale smoke; check all --scale smoke
compare golden/table2; show simcse; show ami; show geometry; show golden; show golden/table2; show golden/figure1
show RUN"""  # noqa: E501


def ask() -> str:
    """What verbs answer in the project of the current folder, from made scores, as JSON."""
    make_scores("smoke")
    verbs = (
        VERBS.replace("RUN", next(iter(targets.runs("smoke"))))
        .replace("\n", ";")
        .strip(";")
        .split(";")
    )
    given = {verb.strip(): json.loads(call(*shlex.split(verb), "--json")) for verb in verbs}
    return json.dumps(given, indent=1, ensure_ascii=False) + "\n"


def answers(folder: Path) -> str:
    """The same in a new project of one paper, three methods and one scale."""
    paper = (GOLDEN / "paper.yaml").read_text()
    project = new_project(folder / "csebench", paper, "bert simcse ct", "smoke")
    for kind, names in KEPT.items():
        for path in (project.folder / kind).glob("[!_]*.*"):
            if path.stem not in names.split():
                path.unlink()
    shutil.copy(GOLDEN / "scale.yaml", project.folder / "config" / "smoke.yaml")
    (project.folder / "papers" / "tiny.yaml").rename(project.folder / "papers" / "golden.yaml")
    command = [sys.executable, "-c", "import test_golden; print(test_golden.ask(), end='')"]
    env = project.env | {
        "PYTHONPATH": f"{project.folder}:{project.folder}/tests:{project.folder}/tests/workflow"
    }
    done = subprocess.run(command, cwd=project.folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_answers_of_verbs(tmp_path):
    assert not first_difference(answers(tmp_path), (GOLDEN / "answers.json").read_text())


PINNED = dict(
    re.findall(r"^(matplotlib|pillow)==(\S+)", (ROOT / "envs" / "lock.txt").read_text(), re.M)
)
OTHER = [
    f"{name} is {version(name)}, not {pinned}"
    for name, pinned in PINNED.items()
    if version(name) != pinned
]


@pytest.mark.slow
def test_the_committed_pages_are_what_their_scores_give(tmp_path, monkeypatch):
    """Of the published study and of the evidence; pictures are compared with the libraries of
    the lock."""
    kept = shutil.ignore_patterns(
        "partial", "html", ".logs", "*.md", "cells.csv", "comparisons.csv", "claims.csv"
    )
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=kept)
    monkeypatch.chdir(tmp_path)
    call("render", "all", "--scale", "mini")
    call("render", "evidence", "--out", "results/evidence.md")
    files = [*(ROOT / "results").glob("evidence.*"), *(ROOT / "results" / "mini").rglob("*.*")]
    files = [path.relative_to(ROOT) for path in files if path.is_file()]
    other = {"partial", "html", ".logs", "scores", "tuning"}
    for path in (path for path in files if not other & {*path.parts}):
        if path.suffix != ".svg":
            assert not first_difference(
                path.read_text("utf-8"), (ROOT / path).read_text("utf-8")
            ), path
        elif not OTHER:
            assert path.read_bytes() == (ROOT / path).read_bytes(), path


def smoke() -> str:
    """Hashes of what is written about scale smoke into the current folder, from made scores."""
    caches.clear()
    make_scores("smoke")
    for page in targets.pages("smoke"):
        if page.path.suffix == ".svg":
            call("render", str(page.path))
        call(
            "render", str(page.path.with_suffix(".md")), "--out", str(page.path.with_suffix(".md"))
        )
    for name in ("index", "claims", "audit"):
        call("render", name, "--out", f"results/{name}.md")
    call("csv")
    caches.clear()
    files = sorted(path for path in Path("results").rglob("*.*") if path.is_file())
    files = [path for path in files if not {"scores", ".logs"} & {*path.parts}]
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()[:16]} {path}\n" for path in files
    )


@pytest.mark.slow
def test_pages_of_smoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, expected = (
        {line for line in text.splitlines() if not (OTHER and line.endswith(".svg"))}
        for text in (smoke(), (GOLDEN / "smoke.txt").read_text())
    )
    assert not sorted(made ^ expected), f"the files are in {tmp_path}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (GOLDEN / "run_ids.txt").write_text(run_ids())
        (GOLDEN / "answers.json").write_text(answers(Path(folder)))
        os.chdir(folder)
        (GOLDEN / "smoke.txt").write_text(smoke())
