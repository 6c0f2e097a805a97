"""Benchmarks are code: each one runs with --quick and prints a result, and each one is quoted
somewhere."""

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
    command = [sys.executable, ROOT / "benchmarks" / script, "--quick"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert re.search(TABLE, done.stdout), done.stdout


def test_there_is_what_is_quoted_and_nothing_else():
    quoting = [ROOT / "README.md"]
    quoting += (ROOT / "docs").glob("*.md")
    quoting += (ROOT / "csebench").rglob("*.py")
    quoted = set()
    for path in quoting:
        quoted.update(re.findall(r"benchmarks/[\w./-]+\.(?:py|txt)", path.read_text()))

    scripts = {f"benchmarks/{name}" for name in SCRIPTS}
    results = {
        f"benchmarks/results/{path.name}" for path in (ROOT / "benchmarks/results").iterdir()
    }
    assert quoted == scripts | results
