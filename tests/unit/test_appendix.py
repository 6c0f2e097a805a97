"""Tables and figures of an appendix, whose keys are no numbers: every verb takes them."""

import re

import pytest
import yaml
from made_up import clear, made_up

from csebench import cli
from csebench.base.errors import BadInput
from csebench.plan import catalog, targets

COLUMNS = "[{label: Avg., task: Avg.}]"
ROWS = "[{label: BERT, run: {method: bert}, source: measured, values: ['31.40']}]"
GRID = f"title: scores, columns: {COLUMNS}, rows: {ROWS}"
PAPER = f"""
name: tiny
label: Tiny
title: A paper with an appendix
reference: Nobody 2026
tables:
  "10": {{{GRID}}}
  "A1": {{{GRID}}}
  "2": {{{GRID}}}
figures:
  "B2": {{{GRID}, kind: bars, axis: Spearman}}
claims:
  - {{quote: one row, section: "A", table: "A1", row: BERT, columns: [Avg.]}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    made_up(tmp_path, monkeypatch, yaml.safe_load(PAPER))
    (tmp_path / "evidence").mkdir()
    for name, text in (("methods", "{encoders: {}, methods: {}}"), ("checkpoints", "checkpoints: []")):
        (tmp_path / "evidence" / f"{name}.yaml").write_text(text)
    yield tmp_path
    clear()


@pytest.mark.parametrize(
    "command, shown",
    [
        ("plan tableA1", "tiny/tableA1 0 of 1"),
        ("render tableA1", "# Tiny · Table A1 · "),
        ("render index", "| [Table A1](tableA1.md) | [missing: 0 of 1 runs scored](tiny/tableA1.md) |"),
        ("render claims", "[Table A1](tiny/tableA1.md)"),
        ("claims", "tableA1"),
        ("show tiny", "tableA1"),
        ("papers", "10, A1, 2"),
    ],
)
def test_every_verb_takes_an_appendix(project, capsys, command, shown):
    assert cli.main(command.split()) == 0, capsys.readouterr().err
    assert shown in re.sub(r" +", " ", capsys.readouterr().out)


def test_an_appendix_comes_after_the_numbers(project):
    names = [page.name for page in targets.pages("smoke") if not page.path.is_relative_to("results/tiny")]
    assert names == ["table2", "table10", "tableA1", "methods", "variants"]


@pytest.mark.parametrize("key", ["A 1", "A.1", "a/b", ""])
def test_a_key_that_no_file_can_be_named_after_is_refused(project, key):
    paper = project / "papers" / "tiny.yaml"
    paper.write_text(PAPER.replace('"A1":', f'"{key}":'))
    with pytest.raises(BadInput, match=r"papers/tiny\.yaml: line 8: tables.*letters and digits"):
        catalog.paper("tiny")
