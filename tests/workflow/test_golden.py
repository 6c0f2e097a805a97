"""Bytes that change only on purpose.

They are the ids of runs, the JSON answers of commands, and every page, CSV and figure of the
published study, of the evidence and of scale smoke. To renew the files of tests/workflow/golden/,
run `python tests/workflow/test_golden.py`, and read the diff. Snakemake renews the pages of the
published study and of the evidence.
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
from itertools import zip_longest
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `python tests/workflow/test_golden.py`
from project import keep_only, new_project
from score_files import make_scores

from csebench.base import caches
from csebench.base.project import ROOT
from csebench.cli import main
from csebench.plan import targets
from csebench.plan.catalog import files as catalog

GOLDEN = Path(__file__).parent / "golden"


def first_difference(actual: str, expected: str) -> str:
    """Describe the first line in which two texts differ; empty if they are equal."""
    if actual == expected:
        return ""
    lines = zip_longest(actual.split("\n"), expected.split("\n"))
    for number, (line, expected_line) in enumerate(lines, 1):
        if line != expected_line:
            return f"line {number}: {line!r} in place of {expected_line!r}"
    raise AssertionError("different texts have a different line")


def call(*words: str) -> str:
    """Call a csebench command, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*words]) == 0, words
    return out.getvalue()


# ---------------------------------------------------------------- ids of runs


def test_ids_of_runs():
    """An id that moves is gone. A file of one's own adds some."""
    planned = set(run_ids().splitlines())
    expected = set((GOLDEN / "run_ids.txt").read_text().splitlines())
    gone = split_ids(expected) - split_ids(planned)
    assert not sorted(gone), "gone"


def run_ids() -> str:
    """List the runs of every scale, in a line per scale and method."""
    lines = []
    for scale in catalog.scale_names():
        keys = defaultdict(list)
        for run_id in sorted(targets.runs(scale)):
            method, _, key = run_id.rpartition("-")
            keys[method].append(key)
        for method, keys_of_method in keys.items():
            lines.append(" ".join([scale, method, *keys_of_method]) + "\n")
    return "".join(lines)


def split_ids(lines: set[str]) -> set[str]:
    """Read (scale, method-key) of every run from lines as `run_ids` writes them."""
    ids = set()
    for line in lines:
        scale, method, *keys = line.split()
        ids |= {f"{scale} {method}-{key}" for key in keys}
    return ids


# ---------------------------------------------------------------- answers of commands

COMPONENTS = ("ami", "mlm")
EVALUATORS = ("sts", "stsb_dev", "geometry", "transfer")
COMMANDS = """
methods
evaluators
papers
audit
claims
status
plan all
power all --scale smoke
check all --scale smoke
compare golden/table2
show simcse
show ami
show geometry
show golden
show golden/table2
show golden/figure1
show RUN
"""


def test_answers_of_commands(tmp_path):
    assert not first_difference(answers(tmp_path), (GOLDEN / "answers.json").read_text())


def answers(folder: Path) -> str:
    """Ask commands in a new project of one paper, three methods and one scale."""
    paper = (GOLDEN / "paper.yaml").read_text()
    project = new_project(folder / "csebench", paper, "bert simcse ct", "smoke")
    keep_only(project.folder, "methods/components/[!_]*.*", " ".join(COMPONENTS))
    keep_only(project.folder, "evaluators/[!_]*.*", " ".join(EVALUATORS))
    shutil.copy(GOLDEN / "scale.yaml", project.folder / "config" / "smoke.yaml")
    (project.folder / "papers" / "tiny.yaml").rename(project.folder / "papers" / "golden.yaml")

    tests = project.folder / "tests"
    folders = [project.folder, tests, tests / "workflow"]
    env = project.env | {"PYTHONPATH": os.pathsep.join(str(folder) for folder in folders)}
    command = [sys.executable, "-c", "import test_golden; print(test_golden.ask(), end='')"]
    done = subprocess.run(command, cwd=project.folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask() -> str:
    """Call the commands in the project of the current folder, which has made-up scores.

    Returns:
        JSON with what each prints with --json.
    """
    make_scores("smoke")
    first_run = next(iter(targets.runs("smoke")))
    printed = {}
    for line in COMMANDS.strip().splitlines():
        command = line.replace("RUN", first_run)
        printed[command] = json.loads(call(*shlex.split(command), "--json"))
    return json.dumps(printed, indent=1, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------- pages


def drawing_libraries() -> list[str]:
    """Say which libraries differ from the lock, and so may draw pictures with other bytes."""
    lock = (ROOT / "envs" / "lock.txt").read_text()
    others = []
    for name, pinned in re.findall(r"^(matplotlib|pillow)==(\S+)", lock, re.M):
        if version(name) != pinned:
            others.append(f"{name} is {version(name)}, not {pinned}")
    return others


OTHER_LIBRARIES = drawing_libraries()


@pytest.mark.slow
def test_the_committed_pages_are_what_their_scores_give(tmp_path, monkeypatch):
    """The pages are those of the published study and of the evidence. Pictures are compared only if
    the libraries that draw them are those of the lock."""
    pages = ("*.md", "cells.csv", "comparisons.csv", "claims.csv")
    not_copied = shutil.ignore_patterns("partial", "html", ".logs", *pages)
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=not_copied)
    monkeypatch.chdir(tmp_path)
    call("render", "all", "--scale", "mini")
    call("render", "evidence", "--out", "results/evidence.md")

    for path in committed_pages():
        if path.suffix != ".svg":
            expected = (ROOT / path).read_text("utf-8")
            assert not first_difference(path.read_text("utf-8"), expected), path
        elif not OTHER_LIBRARIES:
            assert path.read_bytes() == (ROOT / path).read_bytes(), path


def committed_pages() -> list[Path]:
    """List the pages, figures and CSVs of the published study and of the evidence, below ROOT."""
    results = ROOT / "results"
    other_folders = {"partial", "html", ".logs", "scores", "tuning"}
    pages = []
    for file in (*results.glob("evidence.*"), *(results / "mini").rglob("*.*")):
        path = file.relative_to(ROOT)
        if file.is_file() and not other_folders & set(path.parts):
            pages.append(path)
    return pages


@pytest.mark.slow
def test_pages_of_smoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = comparable_lines(smoke_pages())
    expected = comparable_lines((GOLDEN / "smoke.txt").read_text())
    assert not sorted(written ^ expected), f"the files are in {tmp_path}"


def smoke_pages() -> str:
    """Write all pages of scale smoke from made-up scores into the current folder.

    Returns:
        A line with hash and path of each file.
    """
    caches.clear()
    make_scores("smoke")
    for page in targets.pages("smoke"):
        if page.path.suffix == ".svg":
            call("render", str(page.path))
        text_page = str(page.path.with_suffix(".md"))
        call("render", text_page, "--out", text_page)
    for name in ("index", "claims", "audit"):
        call("render", name, "--out", f"results/{name}.md")
    call("csv")
    caches.clear()

    lines = []
    for path in sorted(Path("results").rglob("*.*")):
        if path.is_file() and not {"scores", ".logs"} & set(path.parts):
            sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{sha256[:16]} {path}\n")
    return "".join(lines)


def comparable_lines(text: str) -> set[str]:
    """Split the list of files into lines, without pictures that other libraries drew."""
    lines = set(text.splitlines())
    if OTHER_LIBRARIES:
        return {line for line in lines if not line.endswith(".svg")}
    return lines


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (GOLDEN / "run_ids.txt").write_text(run_ids())
        (GOLDEN / "answers.json").write_text(answers(Path(folder)))
        os.chdir(folder)
        (GOLDEN / "smoke.txt").write_text(smoke_pages())
