"""The page about judging shows what its commands print."""

import runpy
import shlex

from csebench import cli
from csebench.base.project import ROOT


def test_the_examples_print_what_the_page_shows(tmp_path, monkeypatch, capsys):
    examples = runpy.run_path(str(ROOT / "docs" / "examples.py"))
    examples["make_inputs"](tmp_path / "inputs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(arguments):
        cli.main(shlex.split(arguments))
        printed = capsys.readouterr()
        return printed.out + printed.err

    page = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8")
    assert examples["rewrite"](page, run) == page, "run docs/examples.py"
