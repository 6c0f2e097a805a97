"""Findings in printed tables: mistakes are put into a clean paper, and must be found.

The findings of the real papers are in results/mini/audit.md. Error rates of the checks are in
test_judge.py.
"""

import copy
from typing import NamedTuple

import pytest
from made_up import clear, made_up, table
from test_compare import STS, columns

from csebench.report.numbers import printed_spread
from csebench.report.numbers.audit import FindingKind, Severity, findings
from csebench.report.numbers.others import Spread
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
            "Ours, TREC: no run on 500 items gives 89.90 %; ",
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
    assert finding_text(finding) == "STS-B: 78.66 in Table 1 (Ours), but 78.70 in Table 4 (again)"


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


def test_an_average_of_other_columns_is_checked_like_that_of_an_evaluator(tmp_path, monkeypatch):
    """A column with `mean` averages the columns before it, whatever they are."""
    scores = [*columns("STS12", "SICK-R"), {"label": "mean", "mean": True}]
    rows = {
        "Right": ("simcse", ["70.00", "71.00", "70.50"]),
        "Wrong": ("ct", ["70.0", "71.0", "71.5"]),
    }
    made_up(tmp_path, monkeypatch, {"name": "m", "tables": {"1": table(rows, scores)}})
    (finding,) = findings()
    assert finding.rows == ("Wrong",)
    assert finding.facts.mean == 70.5


def test_a_score_after_all_tasks_is_no_average_of_them(tmp_path, monkeypatch):
    pearson = {"label": "r", "task": "STS-B", "metric": "pearson"}
    rows = {"Ours": ("simcse", [*OURS[:-1], "60.00"])}
    made_up(
        tmp_path,
        monkeypatch,
        {"name": "m", "tables": {"1": table(rows, [*columns(*STS), pearson])}},
    )
    assert findings() == []


def test_an_average_with_a_cell_missing_before_it_is_not_checked(findings_of):
    assert findings_of(Cell("table1", row=1, column=0, text=None)) == []


def test_what_a_figure_shows_is_not_audited(tmp_path, monkeypatch):
    """Its values are read from a picture."""
    wrong_average = {"Ours": ("simcse", [*OURS[:-1], "79.00"])}
    figure = table(wrong_average, columns(*STS, "Avg."), kind="bars", axis="Spearman")
    made_up(tmp_path, monkeypatch, {"name": "m", "tables": {}, "figures": {"1": figure}})
    assert findings() == []


@pytest.mark.parametrize(("text", "is_found"), [("89.8", False), ("90", False), ("89.7", True)])
def test_a_possible_accuracy_may_be_rounded(findings_of, text, is_found):
    """Of 500 items, 448, 449 and 450 are 89.6, 89.8 and 90.0 %."""
    assert bool(findings_of(Cell("table3", row=0, column=0, text=text))) == is_found


def test_the_nearest_possible_accuracies_are_told(findings_of):
    (finding,) = findings_of(Cell("table3", row=0, column=0, text="89.90"))
    assert finding.facts.nearest == pytest.approx((89.8, 90.0))
    assert finding.facts.is_percentage


def test_a_mean_of_accuracies_over_seeds_is_not_impossible(findings_of):
    assert findings_of(Cell("table3", row=0, column=0, text="89.90±0.10")) == []


@pytest.mark.parametrize(
    ("off", "severity"), [("76.40", Severity.MINOR), ("76.41", Severity.NOTABLE)]
)
def test_up_to_ten_last_digits_are_minor(findings_of, off, severity):
    """The printed scores average 76.30 exactly."""
    exact = Cell("table1", row=0, column=6, text="72.79")
    (finding, *_) = findings_of(exact, Cell("table1", row=0, column=7, text=off), by=None)
    assert finding.kind == FindingKind.WRONG_SUM
    assert finding.severity == severity


# ---------------------------------------------------------------- copies of a row


def rows_in_two_tables(monkeypatch, folder, first, second, **settings):
    """Audit two tables that print a row of the same method each, on the first of these tasks."""
    tables = {}
    for number, (label, values) in enumerate((("A", first), ("B", second)), 1):
        tasks = columns(*STS[: len(values)])
        tables[f"{number}"] = table({label: (None, values)}, tasks, **settings)
    made_up(folder, monkeypatch, {"name": "m", "tables": tables})
    return findings()


FIVE = ["70.00", "71.00", "72.00", "73.00", "74.00"]


@pytest.mark.parametrize(
    ("first", "second", "is_found"),
    [
        (FIVE, ["70.00", "71.00", "72.00", "73.00", "74.10"], True),
        (FIVE, ["70.00", "71.00", "72.00", "73.10", "74.10"], True),  # three of five
        (FIVE, ["70.00", "71.00", "72.10", "73.10", "74.10"], False),  # two of five
        (FIVE[:3], ["70.00", "71.00", "72.10"], True),
        (FIVE[:2], ["70.00", "71.10"], False),  # too few to tell
        (FIVE, FIVE, False),
    ],
)
def test_rows_that_are_equal_in_most_scores_are_copies(
    first, second, is_found, tmp_path, monkeypatch
):
    found = rows_in_two_tables(monkeypatch, tmp_path, first, second)
    assert [finding.kind for finding in found] == [FindingKind.NEAR_DUPLICATE] * is_found


def test_only_scores_make_a_row_a_copy(tmp_path, monkeypatch):
    """Averages that the paper computes are no third score beside these two."""
    scores = [*columns("STS12", "STS13"), {"label": "mean", "mean": True}]
    tables = {}
    for number, second in enumerate(("71.00", "71.01"), 1):
        tables[f"{number}"] = table({"A": (None, ["70.00", second, "70.50"])}, scores)
    made_up(tmp_path, monkeypatch, {"name": "m", "tables": tables})
    assert findings() == []


def test_what_copies_of_a_row_differ_in_is_told(tmp_path, monkeypatch):
    second = ["70.00", "71.00", "72.00", "73.05", "74.11"]
    (finding,) = rows_in_two_tables(monkeypatch, tmp_path, FIVE, second)
    assert finding.rows == ("A", "B")
    assert finding.places == (("m", "table1"), ("m", "table2"))
    assert [score.task for score in finding.facts.scores] == STS[3:5]


@pytest.mark.parametrize(
    ("off", "severity"),
    [
        (("73.05", "74.10"), Severity.MINOR),
        (("73.05", "74.11"), Severity.NOTABLE),
        (("73.11", "74.05"), Severity.NOTABLE),
    ],
)
def test_copies_are_as_severe_as_their_largest_difference(off, severity, tmp_path, monkeypatch):
    """More than ten last digits are notable."""
    (finding,) = rows_in_two_tables(monkeypatch, tmp_path, FIVE, [*FIVE[:3], *off])
    assert finding.severity == severity


def test_rows_of_one_table_are_no_copies(tmp_path, monkeypatch):
    rows = {"A": (None, FIVE), "B": (None, [*FIVE[:4], "74.10"])}
    made_up(tmp_path, monkeypatch, {"name": "m", "tables": {"1": table(rows, columns(*STS[:5]))}})
    assert findings() == []


def test_a_third_copy_joins_the_finding_of_the_first_two(tmp_path, monkeypatch):
    rows = [FIVE, ["70.00", "71.00", "72.00", "73.00", "74.10"], FIVE]
    tables = {}
    for number, values in enumerate(rows, 1):
        tables[f"{number}"] = table({"A": (None, values)}, columns(*STS[:5]))
    made_up(tmp_path, monkeypatch, {"name": "m", "tables": tables})
    (finding,) = findings()
    assert [place.where for place in finding.places] == ["table1", "table2", "table3"]
    ((first, third), (second,)) = finding.facts.scores[0].cells_by_value
    assert (first.value.text, second.value.text, third.value.text) == ("74.00", "74.10", "74.00")


# ---------------------------------------------------------------- errata


METHOD_WITH_ERRATUM = """\
encoders: {}
methods:
  mine:
    title: Mine
    paper: Mine and Yours (2020)
    errata:
      - {where: sec. 4, text: a slip., also: {clean: table1}, severity: notable}
"""


def test_an_erratum_of_a_method_without_a_paper_file_is_a_finding(tmp_path, findings_of):
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "methods.yaml").write_text(METHOD_WITH_ERRATUM)
    (finding,) = findings_of()
    assert finding.kind == FindingKind.READING
    assert finding.severity == Severity.NOTABLE
    assert finding.papers == ["Mine and Yours (2020)", "clean"]
    assert finding.rows == ()


def test_an_erratum_of_another_kind_explains_nothing(findings_of):
    erratum = erratum_of("again") | {"kind": "impossible value"}
    assert len(findings_of(COPIED_WRONG, errata=[erratum])) == 2


def test_an_erratum_of_another_place_explains_nothing(findings_of):
    erratum = erratum_of("again") | {"where": "table3"}
    assert len(findings_of(COPIED_WRONG, errata=[erratum])) == 2


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize(
    ("limit", "found"),
    [("1.77", []), ("1.70", [Severity.NOTABLE]), ("1.76", [Severity.NOTABLE])],
)
def test_a_limit_that_is_exceeded_is_no_serious_mistake_by_itself(findings_of, limit, found):
    """The rows differ by 1.76, and nobody knows their deviation."""
    claim = {"relation": "comparable", "by": None, "less_than": limit}
    assert [finding.severity for finding in findings_of(**claim)] == found


@pytest.mark.parametrize(
    ("claim", "severity", "text"),
    [
        (
            {"by": "2.00"},
            Severity.SERIOUS,
            "“better”: Ours is 1.76 above Theirs in column Avg. (the sentence says +2.00)",
        ),
        (
            {"row": "Theirs", "by": None},
            Severity.NOTABLE,
            "“better”: Theirs is 1.76 below Ours in column Avg.",
        ),
    ],
)
def test_a_wrong_sentence_is_found(findings_of, claim, severity, text):
    (finding,) = findings_of(**claim)
    assert finding.kind == FindingKind.SENTENCE
    assert finding.severity == severity
    assert finding.places == (("clean", "sec. 9 on table1"),)
    assert finding_text(finding).startswith(text)


def test_a_sentence_is_marked_if_a_smaller_deviation_changes_its_verdict(findings_of, monkeypatch):
    """The rows differ by 1.76, whose standard error is 1.19 or, at 0.5, 0.71."""
    published = Spread(0.84, 50, "simcse", "someone")
    monkeypatch.setattr(printed_spread, "seed_spread", lambda *_: published)
    (finding,) = findings_of(row="Theirs", by=None)
    text = finding_text(finding)
    assert text.startswith("“better”: ◇ Theirs is 1.76 below Ours in column Avg., p = ")
    changed = "*against* if seeds deviate by 0.5 or less in the STS average of BERT-base"
    assert text.endswith(f"; {changed} (p = 0.014 at 0.5)")
