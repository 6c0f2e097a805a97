"""Benchmarks are code: each one runs with --quick and prints a result, and is there because something quotes it."""

import os
import re
import subprocess
import sys

import pytest

from csebench.base.project import ROOT

SCRIPTS = sorted(path.name for path in (ROOT / "benchmarks").glob("[!_]*.py"))
FAST = {"judge.py"}
TABLE = re.compile(r"^-+(?:  -+)+\n.*\d", re.MULTILINE)  # the rule below the head of a table, and numbers


def run(script, *arguments, **environment):
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, ROOT / "benchmarks" / script, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=env)


@pytest.mark.parametrize(
    "script", [pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow]) for name in SCRIPTS]
)
def test_quick_prints_a_result(script):
    done = run(script, "--quick")
    assert done.returncode == 0, done.stderr
    assert TABLE.search(done.stdout), done.stdout


@pytest.mark.slow
def test_without_a_gpu_nothing_is_measured():
    done = run("gpu.py", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(r"No GPU here: .*\n", done.stderr)


def test_there_is_what_is_quoted_and_nothing_else():
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "csebench").rglob("*.py")]
    quoted = {name for path in texts for name in re.findall(r"benchmarks/[\w./-]+\.(?:py|txt)", path.read_text())}
    results = [f"results/{path.name}" for path in (ROOT / "benchmarks/results").iterdir()]
    assert quoted == {f"benchmarks/{name}" for name in (*SCRIPTS, *results)}
