"""Benchmarks are code: each one runs with --quick and prints a result, and is there because
something quotes it."""

import os
import re
import subprocess
import sys

import pytest

from csebench.base.project import ROOT

SCRIPTS = sorted(path.name for path in (ROOT / "benchmarks").glob("[!_]*.py"))
TABLE = r"(?m)^-+(?:  -+)+\n.*\d"  # the rule below the head of a table, and numbers


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_quick_prints_a_result(script):
    command, env = (
        [sys.executable, ROOT / "benchmarks" / script, "--quick"],
        os.environ | {"PYTHONPATH": str(ROOT)},
    )
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert re.search(TABLE, done.stdout), done.stdout


def test_there_is_what_is_quoted_and_nothing_else():
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "csebench").rglob("*.py")]
    quoted = {
        name
        for path in texts
        for name in re.findall(r"benchmarks/[\w./-]+\.(?:py|txt)", path.read_text())
    }
    results = [f"results/{path.name}" for path in (ROOT / "benchmarks/results").iterdir()]
    assert quoted == {f"benchmarks/{name}" for name in (*SCRIPTS, *results)}
