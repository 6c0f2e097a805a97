"""What printed tables contradict: mistakes put into a clean paper. The findings of the papers
are recorded in results/mini/audit.md, error rates of the checks are in test_judge.py."""

import copy

import pytest
from made_up import clear, made_up, table
from test_compare import STS, columns

from csebench.report.numbers.audit import Finding, FindingKind, Severity, findings
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


def kind_severity_places(finding: Finding):
    return finding.kind, finding.severity, finding.places


@pytest.fixture
def findings_of(tmp_path, monkeypatch):
    def audited(*cells, errata=(), copy_table_1=False, **claim):
        """Of the clean paper, but for cells (table, row, column, text) and what its claim says.

        Args:
            copy_table_1: whether a second paper prints the same table.
        """
        paper = copy.deepcopy(CLEAN) | {"errata": [*errata]}
        for number, row, column, text in cells:
            paper["tables"][number]["rows"][row]["values"][column] = text
        paper["claims"][0] |= claim
        copied = [{"name": "other", "tables": {"1": paper["tables"]["1"]}}] if copy_table_1 else []
        made_up(tmp_path, monkeypatch, paper, *copied)
        return findings()

    yield audited
    monkeypatch.undo()
    clear()


def test_a_last_digit_is_left_to_rounding(findings_of):
    """An average and a difference may be off by one unit each."""
    assert findings_of(("1", 0, 7, "76.29"), ("2", 1, 1, "-0.99")) == []


@pytest.mark.parametrize(
    ("cell", "kind", "severity", "text"),
    [
        (
            ("1", 1, 0, "70.10"),
            FindingKind.WRONG_SUM,
            Severity.NOTABLE,
            "Theirs: the columns average 74.829, printed is 74.54",
        ),
        (
            ("2", 1, 1, "-1.02"),
            FindingKind.WRONG_SUM,
            Severity.MINOR,
            "Theirs: 74.00 ± 0.40 - 75.00 ± 0.40 is not the printed",
        ),
        (
            ("3", 0, 0, "89.90"),
            FindingKind.IMPOSSIBLE,
            Severity.MINOR,
            "Ours, TREC: 89.90 % is impossible with 500 items; ",
        ),
    ],
)
def test_a_wrong_number_is_found_where_it_is(findings_of, cell, kind, severity, text):
    (finding,) = findings_of(cell)
    assert kind_severity_places(finding) == (
        kind,
        severity,
        (("clean", f"table{cell[0]}"),),
    ) and finding_text(finding).startswith(text)


def test_a_setting_with_two_values_is_found(findings_of):
    """One of which is copied; a copied value and that of a re-run may differ (test_judge.py)."""
    text = "STS-B: 78.66 in Table 1 (Ours), 78.70 in Table 4 (again)"
    where = (("clean", "table1"), ("clean", "table4"))
    (finding,) = findings_of(("4", 0, 0, "78.70"))
    assert kind_severity_places(finding) == (FindingKind.INCONSISTENT, Severity.MINOR, where)
    assert finding_text(finding) == text


def test_an_erratum_replaces_what_a_check_finds_of_its_row(findings_of):
    erratum = {
        "where": "table4",
        "row": "again",
        "kind": "inconsistent value",
        "text": "a slip.",
    }
    (finding,) = findings_of(("4", 0, 0, "78.70"), errata=[erratum])
    assert finding_text(finding) == "again: a slip."


def test_an_erratum_leaves_what_a_check_finds_of_other_rows(findings_of):
    """Also of a row whose label has that of the erratum in it."""
    erratum = {"where": "table4", "row": "gain", "kind": "inconsistent value", "text": "a slip."}
    assert len(findings_of(("4", 0, 0, "78.70"), errata=[erratum])) == 2


def test_a_mistake_that_another_paper_copied_is_one_finding(findings_of):
    (finding,) = findings_of(("1", 1, 0, "70.10"), copy_table_1=True)
    assert finding.places == (("clean", "table1"), ("other", "table1")) and finding_text(
        finding
    ).startswith("Theirs: ")


@pytest.mark.parametrize(
    ("claim", "severity", "text"),
    [
        ({"by": "2.00"}, Severity.SERIOUS, "“better”: +1.76 over Theirs in Avg. (claimed: +2.00)"),
        ({"row": "Theirs", "by": None}, Severity.NOTABLE, "“better”: 1.76 below Ours in Avg."),
    ],
)
def test_a_wrong_sentence_is_found(findings_of, claim, severity, text):
    (finding,) = findings_of(**claim)
    assert kind_severity_places(finding) == (
        FindingKind.SENTENCE,
        severity,
        (("clean", "sec. 9 on table1"),),
    )
    assert finding_text(finding).startswith(text)
