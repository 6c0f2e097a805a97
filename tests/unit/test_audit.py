"""Findings in printed tables: mistakes are put into a clean paper, and must be found.

The findings of the real papers are in results/mini/audit.md. Error rates of the checks are in
test_judge.py.
"""

import copy
from typing import NamedTuple

import pytest
from made_up import clear, made_up, table
from test_compare import STS, columns

from csebench.report.numbers.audit import FindingKind, Severity, findings
from csebench.report.words.audit import finding_text

# Their means are 76.297 and 74.543.
OURS = ["70.11", "80.22", "71.33", "81.44", "79.55", "78.66", "72.77", "76.30"]
THEIRS = ["68.10", "78.20", "70.30", "80.40", "77.50", "76.60", "70.70", "74.54"]
CLEAN = {
    "name": "clean",
    "tables": {
        "1": table({"Ours": ("simcse", OURS), "Theirs": ("ct", THEIRS)}, columns(*STS, "Avg.")),
        "2": table(
            {"Ours": ("simcse", ["75.00±0.40", None]), "Theirs": ("ct", ["74.00±0.40", "-1.00"])},
            [*columns("Avg.", size="10%"), {"label": "Δ", "delta": "Avg."}],
            seeds=5,
            baseline="Ours",
        ),
        "3": table(
            {"Ours": ("simcse", ["89.80", "74.43"])}, columns("TREC", "MRPC"), evaluator="transfer"
        ),
        "4": table({"again": ("simcse", ["78.66"])}, columns("STS-B")),
    },
    "claims": [
        {
            "quote": "better",
            "section": "9",
            "table": "1",
            "row": "Ours",
            "columns": ["Avg."],
            "by": "1.76",
        }
    ],
}
CLEAN["tables"]["4"]["rows"][0] |= {"source": "copied", "from": "Theirs"}


class Cell(NamedTuple):
    """A cell of the clean paper that prints another text."""

    table: str  # `table1`
    row: int
    column: int
    text: str


# Table 4 copies a score of Table 1 wrongly.
COPIED_WRONG = Cell("table4", row=0, column=0, text="78.70")


@pytest.fixture
def findings_of(tmp_path, monkeypatch):
    def audited(*cells, errata=(), copy_table_1=False, **changes_of_claim):
        """Audit the clean paper with other cells, errata and another claim.

        Args:
            copy_table_1: whether a second paper prints the same table.
        """
        paper = copy.deepcopy(CLEAN)
        paper["errata"] = list(errata)
        for cell in cells:
            table = paper["tables"][cell.table.removeprefix("table")]
            table["rows"][cell.row]["values"][cell.column] = cell.text
        paper["claims"][0] |= changes_of_claim

        papers = [paper]
        if copy_table_1:
            papers.append({"name": "other", "tables": {"1": paper["tables"]["1"]}})
        made_up(tmp_path, monkeypatch, *papers)
        return findings()

    yield audited
    monkeypatch.undo()
    clear()


def test_a_last_digit_is_left_to_rounding(findings_of):
    """An average and a difference may be off by one unit each."""
    average = Cell("table1", row=0, column=7, text="76.29")
    difference = Cell("table2", row=1, column=1, text="-0.99")
    assert findings_of(average, difference) == []


@pytest.mark.parametrize(
    ("cell", "kind", "severity", "text"),
    [
        (
            Cell("table1", row=1, column=0, text="70.10"),
            FindingKind.WRONG_SUM,
            Severity.NOTABLE,
            "Theirs: the columns average 74.829, printed is 74.54",
        ),
        (
            Cell("table2", row=1, column=1, text="-1.02"),
            FindingKind.WRONG_SUM,
            Severity.MINOR,
            "Theirs: 74.00 ± 0.40 - 75.00 ± 0.40 is not the printed",
        ),
        (
            Cell("table3", row=0, column=0, text="89.90"),
            FindingKind.IMPOSSIBLE,
            Severity.MINOR,
            "Ours, TREC: 89.90 % is impossible with 500 items; ",
        ),
    ],
)
def test_a_wrong_number_is_found_where_it_is(findings_of, cell, kind, severity, text):
    (finding,) = findings_of(cell)
    assert finding.kind == kind
    assert finding.severity == severity
    assert finding.places == (("clean", cell.table),)
    assert finding_text(finding).startswith(text)


def test_a_setting_with_two_values_is_found(findings_of):
    """One of the values is copied. A copied value and that of a re-run may differ
    (test_judge.py)."""
    (finding,) = findings_of(COPIED_WRONG)
    assert finding.kind == FindingKind.INCONSISTENT
    assert finding.severity == Severity.MINOR
    assert finding.places == (("clean", "table1"), ("clean", "table4"))
    assert finding_text(finding) == "STS-B: 78.66 in Table 1 (Ours), 78.70 in Table 4 (again)"


def erratum_of(row):
    """Write an erratum on a row of Table 4."""
    return {"where": "table4", "row": row, "kind": "inconsistent value", "text": "a slip."}


def test_an_erratum_replaces_what_a_check_finds_of_its_row(findings_of):
    (finding,) = findings_of(COPIED_WRONG, errata=[erratum_of("again")])
    assert finding_text(finding) == "again: a slip."


def test_an_erratum_leaves_what_a_check_finds_of_other_rows(findings_of):
    """Also of a row whose label, `again`, contains that of the erratum."""
    assert len(findings_of(COPIED_WRONG, errata=[erratum_of("gain")])) == 2


def test_a_mistake_that_another_paper_copied_is_one_finding(findings_of):
    wrong = Cell("table1", row=1, column=0, text="70.10")
    (finding,) = findings_of(wrong, copy_table_1=True)
    assert finding.places == (("clean", "table1"), ("other", "table1"))
    assert finding_text(finding).startswith("Theirs: ")


@pytest.mark.parametrize(
    ("claim", "severity", "text"),
    [
        ({"by": "2.00"}, Severity.SERIOUS, "“better”: +1.76 over Theirs in Avg. (claimed: +2.00)"),
        ({"row": "Theirs", "by": None}, Severity.NOTABLE, "“better”: 1.76 below Ours in Avg."),
    ],
)
def test_a_wrong_sentence_is_found(findings_of, claim, severity, text):
    (finding,) = findings_of(**claim)
    assert finding.kind == FindingKind.SENTENCE
    assert finding.severity == severity
    assert finding.places == (("clean", "sec. 9 on table1"),)
    assert finding_text(finding).startswith(text)
