"""Tables and figures of an appendix, whose keys are no numbers. Every command takes them."""

import re

import pytest
from made_up import clear, made_up, table

from csebench import cli
from csebench.base.errors import BadInput
from csebench.plan import targets
from csebench.plan.catalog import files as catalog

GRID = table({"BERT": ("bert", ["31.40"])}, [{"label": "Avg.", "task": "Avg."}])
PAPER = {
    "name": "tiny",
    "label": "Tiny",
    "tables": {"10": GRID, "A1": GRID, "2": GRID},
    "figures": {"B2": GRID | {"kind": "bars", "axis": "Spearman"}},
    "claims": [
        {"quote": "one row", "section": "A", "table": "A1", "row": "BERT", "columns": ["Avg."]}
    ],
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    made_up(tmp_path, monkeypatch, PAPER)
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "methods.yaml").write_text("{encoders: {}, methods: {}}")
    (tmp_path / "data" / "step_times.yaml").write_text("[]")
    yield tmp_path
    clear()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("plan tableA1", "tiny/tableA1 0 of 1"),
        ("render tableA1", "# Tiny · Table A1 · "),
        (
            "render index",
            "| [Table A1](tiny/tableA1.md) | ",
        ),
        ("claims", "tableA1"),
    ],
)
def test_every_verb_takes_an_appendix(project, capsys, command, shown):
    status = cli.main(command.split())
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert shown in re.sub(r" +", " ", printed.out)


def test_an_appendix_comes_after_the_numbers(project):
    names = []
    for page in targets.pages("smoke"):
        if not page.path.is_relative_to("results/tiny"):
            names.append(page.name)
    assert names == ["table2", "table10", "tableA1", "methods", "variants"]


@pytest.mark.parametrize("key", ["A 1", "A.1", "a/b", ""])
def test_a_key_that_no_file_can_be_named_after_is_refused(project, key):
    paper = project / "papers" / "tiny.yaml"
    paper.write_text(paper.read_text().replace("  A1: ", f"  '{key}': "))
    with pytest.raises(BadInput, match=r"papers/tiny\.yaml: line \d+: tables.*letters and digits"):
        catalog.paper("tiny")
