"""What printed tables contradict: mistakes put into a clean paper. The findings of the papers are recorded in
tests/workflow/golden."""

import copy

import pytest
from made_up import clear, made_up, table
from test_compare import STS, columns

from csebench.report import audit

# Their means are 76.297 and 74.543.
OURS = ["70.11", "80.22", "71.33", "81.44", "79.55", "78.66", "72.77", "76.30"]
THEIRS = ["68.10", "78.20", "70.30", "80.40", "77.50", "76.60", "70.70", "74.54"]
FEW_SHOT = [{"label": size, "task": "Avg.", "size": size} for size in ("1%", "10%")]
CLEAN = {
    "name": "clean",
    "tables": {
        "1": table({"Ours": ("simcse", OURS), "Theirs": ("ct", THEIRS)}, columns(*STS, "Avg.")),
        "2": table(
            {
                "Ours": ("simcse", ["70.00±0.30", "75.00±0.40", None]),
                "Theirs": ("ct", ["69.00±0.50", "74.00±0.40", "-1.00"]),
            },
            [*FEW_SHOT, {"label": "Δ", "delta": "10%"}],
            seeds=5,
            baseline="Ours",
        ),
        "3": table({"Ours": ("simcse", ["89.80", "74.43"])}, columns("TREC", "MRPC"), evaluator="transfer"),
        "4": table(
            {"Ours": ("simcse", ["80.41", "100.00"])},
            [{"label": f"R@{k}", "task": "STS-B", "metric": f"recall@{k}"} for k in (1, 5)],
            evaluator="stsb_retrieval",
        ),
        "5": table({"again": ("simcse", ["78.66"])}, columns("STS-B")),
    },
    "claims": [{"quote": "better", "section": "9", "table": "1", "row": "Ours", "columns": ["Avg."], "by": "1.76"}],
}


@pytest.fixture
def findings_of(tmp_path, monkeypatch):
    def audited(*cells, copy_of_table=None, source="measured", first="measured", errata=(), **claim):
        """Of the clean paper, but for cells (table, row, column, text) and what its claim says.

        Args:
            copy_of_table: a table that a second paper prints, too.
            source, first: of the row of Table 5, and of the first row of Table 1.
        """
        paper = copy.deepcopy(CLEAN) | {"errata": list(errata)}
        for number, row, column, text in cells:
            paper["tables"][number]["rows"][row]["values"][column] = text
        for number, text in (("5", source), ("1", first)):
            paper["tables"][number]["rows"][0] |= {"source": text} | ({"from": "Theirs"} if text == "copied" else {})
        paper["claims"][0] |= claim
        papers = [paper]
        if copy_of_table:
            papers.append({"name": "other", "tables": {"1": copy.deepcopy(paper["tables"][copy_of_table])}})
        made_up(tmp_path, monkeypatch, *papers)
        return audit.findings()

    yield audited
    monkeypatch.undo()
    clear()


def test_a_clean_paper_has_no_finding(findings_of):
    assert findings_of() == []


def test_a_last_digit_is_left_to_rounding(findings_of):
    """An average and a difference may be off by one unit each."""
    assert findings_of(("1", 0, 7, "76.29"), ("2", 1, 2, "-0.99")) == []


@pytest.mark.parametrize(
    ("cell", "kind", "severity", "text"),
    [
        (("1", 1, 0, "70.10"), audit.WRONG_SUM, audit.NOTABLE, "Theirs: the columns average 74.829, printed is 74.54"),
        (
            ("2", 1, 2, "-1.02"),
            audit.WRONG_SUM,
            audit.MINOR,
            "Theirs: 74.00±0.40 - 75.00±0.40 is not the printed -1.02",
        ),
        (
            ("3", 0, 0, "89.90"),
            audit.IMPOSSIBLE,
            audit.MINOR,
            "Ours, TREC: 89.90 % is impossible with 500 items; nearest: 89.80, 90.00",
        ),
        (
            ("4", 0, 0, "80.00"),
            audit.IMPOSSIBLE,
            audit.MINOR,
            "Ours, R@1: 80.00 % is impossible with 97 items; nearest: 79.38, 80.41",
        ),
    ],
)
def test_a_wrong_number_is_found_where_it_is(findings_of, cell, kind, severity, text):
    assert findings_of(cell) == [(kind, severity, (("clean", f"table{cell[0]}"),), text)]


def test_a_setting_with_two_values_is_found(findings_of):
    text = "STS-B: 78.66 in Table 1 (Ours), 78.70 in Table 5 (again)"
    where = (("clean", "table1"), ("clean", "table5"))
    assert findings_of(("5", 0, 0, "78.70")) == [(audit.INCONSISTENT, audit.MINOR, where, text)]


@pytest.mark.parametrize("source", ["copied", "rerun"])
def test_a_measured_value_contradicts_any_other(findings_of, source):
    assert len(findings_of(("5", 0, 0, "79.70"), source=source)) == 1


def test_a_copied_value_and_a_re_run_may_differ(findings_of):
    """The rows of Tables 1 and 5 are of one setting."""
    assert findings_of(("5", 0, 0, "79.70"), source="rerun", first="copied") == []


def test_an_erratum_replaces_what_a_check_finds_of_its_row(findings_of):
    erratum = {"where": "table5", "row": "again", "kind": audit.INCONSISTENT, "text": "a slip."}
    (finding,) = findings_of(("5", 0, 0, "78.70"), errata=[erratum])
    assert finding.text == "again: a slip."


@pytest.mark.parametrize(
    ("cell", "row"),
    [(("1", 1, 0, "70.10"), "Theirs"), (("3", 0, 0, "89.90"), "Ours, TREC")],
)
def test_a_mistake_that_another_paper_copied_is_one_finding(findings_of, cell, row):
    (finding,) = findings_of(cell, copy_of_table=cell[0])
    assert finding.places == (("clean", f"table{cell[0]}"), ("other", "table1")) and finding.text.startswith(row)


@pytest.mark.parametrize(
    ("claim", "severity", "text"),
    [
        ({"by": "2.00"}, audit.SERIOUS, "“better”: +1.76 over Theirs in Avg. (claimed: +2.00)"),
        ({"row": "Theirs", "by": None}, audit.NOTABLE, "“better”: 1.76 below Ours in Avg."),
    ],
)
def test_a_wrong_sentence_is_found(findings_of, claim, severity, text):
    (found,) = findings_of(**claim)
    assert found[:3] == (audit.SENTENCE, severity, (("clean", "sec. 9 on table1"),))
    assert found.text.startswith(text)
