"""Scores on other test data, which a table keeps apart: in cells, comparisons, claims, figures, CSV
and words."""

import base64
import csv
import json
import re
import shutil

import numpy as np
import pytest
from made_up import clear, made_up, unprinted_table
from score_files import edit_score_file, write_scores

from csebench import api
from csebench.base.terminal import json_text
from csebench.cli import main
from csebench.plan import grids, targets
from csebench.plan.schema.paper import Claim
from csebench.report import csv_tables
from csebench.report.figures.parts import baseline_differences
from csebench.report.figures.scores import draw_figure
from csebench.report.numbers import claims, compare
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.refusals import Relation
from csebench.report.pages.index import answers_by_paper
from csebench.report.pages.table import table_page
from csebench.report.words import comparisons as words
from csebench.report.words.claims import detail_text
from csebench.score.scores_csv import score_rows

SCALE = "tiny"
# Values of `data_sha256`.
OURS = "a" * 64
OTHERS = "b" * 64
THIRD = "c" * 64
# A task from mteb's hub has no file, so this is the hash of nothing.
NO_FILE = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
VALUES = {"A": (0.70, 0.71, 0.72), "B": (0.60, 0.62, 0.61), "C": (0.50, 0.53, 0.51)}
METHODS = {"A": "simcse", "B": "ct", "C": "mirror_bert"}


STS_B = {"label": "x", "task": "STS-B"}
STS = [STS_B, {"label": "y", "task": "SICK-R"}]
MIXED = [
    STS_B,
    {"label": "MR", "task": "MR", "evaluator": "transfer"},
    {"label": "mean", "mean": True},
    {"label": "gain", "delta": "x"},
]
BEIR = [
    {"label": "scifact", "task": "scifact", "evaluator": "beir:scifact"},
    {"label": "fiqa", "task": "fiqa", "evaluator": "beir:fiqa"},
]
MTEB = [{"label": "task", "task": "STS12", "evaluator": "mteb:STS12"}]
SIZES = [
    {"label": "10%", "task": "STS-B", "size": "10%"},
    {"label": "100%", "task": "STS-B", "size": "100%"},
]
QUESTIONS = [
    {"question": "Is A better?", "primary": True, "rows": [["A", "B"]], "columns": ["x"]},
    {"question": "Are others?", "rows": [["others", "A"]], "columns": "each"},
]
PAPER = {
    "name": "made_up",
    "tables": {
        "1": unprinted_table(METHODS, STS, compare=QUESTIONS),
        "2": unprinted_table(METHODS, MIXED, baseline="C"),
        "3": unprinted_table(METHODS, BEIR),
        "4": unprinted_table(METHODS, MTEB),
        "5": unprinted_table({"A batch": "simcse", "B": "ct"}, [STS_B]),
    },
    "figures": {"1": unprinted_table(METHODS, SIZES, kind="curves", axis="Spearman", baseline="C")},
}
PAPER["tables"]["5"]["rows"][0]["run"]["params"] = {"batch_size": 32}
CLAIM = {"quote": "better", "section": "1", "columns": ["x"]}
A_ABOVE_B = Claim(**CLAIM, table="1", row="A", versus=["B"])


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """Score the whole paper on one data, three seeds for each row, and return the folder."""
    folder = tmp_path_factory.mktemp("scored")
    with pytest.MonkeyPatch.context() as patch:
        made_up(folder, patch, PAPER, name=SCALE, seeds_by_size={})
        for number in PAPER["tables"]:
            score_grid(f"table{number}")
        score_grid("figure1")
    clear()
    return folder / "results"


@pytest.fixture
def project(scored, tmp_path, monkeypatch):
    """The paper with its scores."""
    made_up(tmp_path, monkeypatch, PAPER, name=SCALE, seeds_by_size={})
    shutil.copytree(scored, "results")
    yield
    clear()


def score_grid(name):
    """Score every run of a table or figure. A run of another table gets the tasks that it
    lacks."""
    for cells in grids.plan_grid("made_up", name, SCALE):
        for cell in cells:
            for seed, spec in enumerate(cell.specs):
                if has_score(spec, cell):
                    continue
                value = VALUES[cell.row.label[0]][seed]
                scores = [(cell.task, cell.metric, value)]
                write_scores(spec, cell.evaluator, SCALE, scores, data_sha256=OURS)


def has_score(spec, cell):
    """Tell whether a run has a score of the cell's task."""
    path = targets.score_path(spec.run_id, cell.evaluator, SCALE)
    if not path.exists():
        return False
    for row in json.loads(path.read_text())["scores"]:
        if (row["evaluator"], row["task"]) == (cell.evaluator, cell.task):
            return True
    return False


def edit(name, label, change, seeds=(0, 1, 2), column=0):
    """Change the score files of a cell of a table or figure by `change(content)`."""
    row = grids.find_grid("made_up", name).row(label)
    cell = grids.plan_grid("made_up", name, SCALE)[row][column]
    for seed in seeds:
        path = targets.score_path(cell.specs[seed].run_id, cell.evaluator, SCALE)
        edit_score_file(path, change)
    clear()


def on(data):
    """Make a change of the data that a score states."""

    def change(content):
        content["evaluations"][0]["data_sha256"] = data

    return change


def use_an_older_version(content):
    """Let the scores be of an older version of the evaluator."""
    content["evaluations"][0]["version"] -= 1


def remove_data(content):
    """Let the file state no data, as older files do."""
    del content["evaluations"][0]["data_sha256"]


def start_later(content):
    """Let the scores be newer than all others."""
    content["provenance"]["started"] = "2026-02-01T00:00:00Z"


def with_items(items, version=1):
    """Make a change that gives every score replicates of test items of this hash."""
    values = np.arange(512, dtype="<i2") % 7 - 3
    encoded_values = base64.b64encode(values.tobytes()).decode()
    replicates = {"clustered": {"unit": 1e-4, "values": encoded_values}}

    def change(content):
        scores = {row["task"]: {row["metric"]: replicates} for row in content["scores"]}
        content["replicates"] = {"version": version, "items": items, "scores": scores}

    return change


def view(name):
    """Read the scores of a table or figure."""
    return grid_view("made_up", name, SCALE)


def cell(name, label, column):
    """Find a cell by its labels."""
    table_view = view(name)
    return table_view.rows[table_view.grid.row(label)][table_view.grid.column(column)]


def comparison(name, label="A", against="B", columns=(0,)):
    """Compare two rows over some columns."""
    table_view = view(name)
    row = table_view.grid.row(label)
    other_row = table_view.grid.row(against)
    return compare.compare(table_view, row, other_row, list(columns))


def page(name):
    """Write the page of a table."""
    return table_page(targets.page(name, SCALE, "made_up")).write("markdown")


def rows_in_cells_csv(name, label, column):
    """List the rows that cells.csv has of a cell."""
    rows = csv_tables.cell_rows(view(name))
    return [row for row in rows if (row["row"], row["column"]) == (label, column)]


# ---------------------------------------------------------------- cells


def test_seeds_on_different_data_are_not_averaged(project):
    edit("table1", "A", on(OTHERS), seeds=[2])
    mixed = cell("table1", "A", "x")
    assert mixed.text == "70.50 ± 0.71"
    assert mixed.runs_elsewhere == 1
    assert mixed.absent == 0
    assert not mixed.is_comparable

    text = page("table1")
    assert "| A | 70.50 ± 0.71 [1 ‡] |" in text
    assert "‡: 1 run on other test data than the rest of the table" in text
    hashes = "sts: data bbbbbbbbbbbb, not data aaaaaaaaaaaa"
    assert f"A: 1 of 3 runs is scored on other test data than the table ({hashes})." in text
    differs = (
        "**Test data of sts differs**: data aaaaaaaaaaaa, items unknown (8 scores); data"
        " bbbbbbbbbbbb"
    )
    assert differs in text


def test_a_row_of_other_data_is_shown_with_a_mark_and_counts_nowhere(project):
    edit("table1", "A", on(OTHERS))
    elsewhere = cell("table1", "A", "x")
    assert elsewhere.text == "71.00 ± 1.00‡"
    assert elsewhere.ours is None
    assert elsewhere.verdict == ""
    first_column = view("table1").score_grid.columns[0]
    assert compare.best_rows(view("table1"), first_column) == [{1}]

    (row,) = rows_in_cells_csv("table1", "A", "x")
    assert row["text"] == "71.00 ± 1.00‡"
    assert row["ours"] == ""
    assert row["n"] == 0
    assert row["missing"] == 3
    assert row["runs"] == ""


def test_a_row_on_several_other_data_shows_no_number(project):
    edit("table1", "A", on(OTHERS), seeds=[0, 1])
    edit("table1", "A", on(THIRD), seeds=[2])
    assert cell("table1", "A", "x").text == "–‡"


def test_means_and_differences_leave_out_what_is_of_other_data(project):
    edit("table2", "A", on(OTHERS), seeds=[0])
    assert cell("table2", "A", "x").text == "71.50 ± 0.71"
    assert cell("table2", "A", "MR").text == "71.00 ± 1.00"
    mean = cell("table2", "A", "mean")
    assert mean.text == "71.50 ± 0.71"
    assert mean.runs_elsewhere == 1
    gain = cell("table2", "A", "gain")
    assert gain.text == "+19.50 ± 2.12"
    assert gain.runs_elsewhere == 1


def test_nothing_is_derived_from_a_row_of_other_data(project):
    edit("table2", "A", on(OTHERS), seeds=[0])
    edit("table2", "C", on(OTHERS))
    assert cell("table2", "C", "mean").text == "–‡"
    assert cell("table2", "B", "gain").text == "–‡", "C is its baseline"
    assert comparison("table2", columns=[2]).relation == Relation.OTHER_DATA


@pytest.mark.parametrize(
    ("columns", "relation"),
    [
        ([0], Relation.BETTER),
        ([1], Relation.OTHER_DATA),
        ([0, 1], Relation.OTHER_DATA),
    ],
)
def test_the_data_of_one_evaluator_says_nothing_of_another(columns, relation, project):
    edit("table3", "A", on(OTHERS), column=1)
    assert comparison("table3", columns=columns).relation == relation


def test_a_table_keeps_the_data_of_most_scores_and_of_equally_many_the_newest(project):
    edit("table5", "A batch", on(OTHERS))
    edit("table5", "B", on(OURS))
    last_by_name = view("table5").data["sts"].files
    assert last_by_name == OTHERS, "equally old, in any order of the files"

    edit("table5", "B", start_later, seeds=[0])
    assert view("table5").data["sts"].files == OURS


def test_outdated_scores_do_not_decide_what_the_data_is(project):
    for label in "AB":
        edit("table1", label, on(OTHERS))
        edit("table1", label, use_an_older_version)
    assert view("table1").data["sts"].files == OURS
    assert cell("table1", "C", "x").text == "51.33 ± 1.53"
    outdated = cell("table1", "A", "x")
    assert outdated.text == "71.00 ± 1.00‡"
    assert outdated.is_outdated
    assert "71.00 ± 1.00‡†" in page("table1")


def test_items_of_older_code_are_no_other_data(project):
    """Older code may hash the items in another way. Once it left out the sentences."""
    for label in "ABC":
        edit("table1", label, with_items("1" * 16))
    edit("table1", "B", with_items("2" * 16))
    edit("table1", "B", use_an_older_version)

    outdated = cell("table1", "B", "x")
    assert outdated.text == "61.00 ± 1.00"
    assert outdated.is_outdated
    assert comparison("table1").relation == Relation.OUTDATED
    assert view("table1").elsewhere_count == 0
    for row in score_rows(SCALE):
        assert " on " not in row.get("protocol", "")


def test_files_of_no_stated_data_agree_with_one_another_only(project):
    for label in "AB":
        edit("table1", label, remove_data)
    assert comparison("table1").relation == Relation.BETTER
    assert cell("table1", "C", "x").text.endswith("‡")

    edit("table1", "C", remove_data)
    assert "‡" not in page("table1")


def test_tasks_from_mtebs_hub_have_no_file_and_agree(project):
    for label in "ABC":
        edit("table4", label, on(NO_FILE))
    assert comparison("table4").relation == Relation.BETTER
    assert view("table4").elsewhere_count == 0


# ---------------------------------------------------------------- comparisons


@pytest.mark.parametrize(("row", "against"), [("A", "B"), ("B", "C")])
def test_rows_of_other_data_are_compared_with_nothing_and_words_say_why(row, against, project):
    edit("table1", "B", on(OTHERS))
    refused = comparison("table1", row, against)
    assert refused.relation == Relation.OTHER_DATA
    assert refused.estimate is None
    assert refused.p is None
    reason = f"{row} against {against} is not tested: B: 3 of 3 runs are scored on other test data"
    assert words.sentence(refused).startswith(reason)


def test_rows_that_have_the_same_data_are_compared(project):
    edit("table1", "B", on(OTHERS))
    assert comparison("table1", "A", "C").relation == Relation.BETTER
    assert "not tested (B: 3 of 3 runs are scored on other test data" in page("table1")


def test_commands_say_which_row_is_on_other_data(project, capsys):
    edit("table1", "B", on(OTHERS))
    assert main(["compare", "made_up/table1", "A", "B", "--scale", SCALE, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["relation"] == "other data"
    assert record["gain"] == ""
    assert "not data aaaaaaaaaaaa" in record["reason"]

    assert main(["show", "made_up/table1", "--row", "B", "--column", "x", "--scale", SCALE]) == 0
    assert "3 of 3 runs are scored on other test data" in capsys.readouterr().out

    frame = api.table("made_up/table1", SCALE)
    of_b = frame[(frame.row == "B") & (frame.column == "x")]
    assert of_b.ours.isna().all()


def test_other_items_are_other_data_even_where_no_file_changed(project):
    edit("table1", "A", with_items("1" * 16))
    edit("table1", "B", with_items("2" * 16))
    edit("table1", "C", with_items("1" * 16))
    refused = comparison("table1")
    assert refused.relation == Relation.OTHER_DATA
    hashes = "sts: items 222222222222, not items 111111111111"
    assert hashes in words.reason_text(refused.reason)
    assert comparison("table1", "A", "C").estimate.item_se is not None


def remove_replicates(content):
    content.pop("replicates")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(remove_replicates, id="without any"),
        pytest.param(with_items("1" * 16, version=0), id="made in another way"),
    ],
)
@pytest.mark.parametrize("seeds", [[0, 1, 2], [1]], ids=["all runs", "one run"])
def test_replicates_that_some_runs_lack_are_not_dropped_in_silence(change, seeds, project):
    for label in "ABC":
        edit("table1", label, with_items("1" * 16))
    edit("table1", "B", change, seeds)

    refused = comparison("table1")
    assert refused.relation == Relation.UNPAIRED
    assert refused.estimate is None
    reason = f"{len(seeds)} of 3 runs of B have no replicates over the test items of sts"
    assert words.reason_text(refused.reason) == reason
    assert comparison("table1", "A", "C").relation == Relation.BETTER
    _, on_others = compare.answers(view("table1"))
    sentence = words.family_sentence(on_others)
    assert f"not tested ({reason}): B" in sentence
    first_column = view("table1").score_grid.columns[0]
    best = compare.best_rows(view("table1"), first_column)
    assert best == [{0, 1}], "that A is better than B is not shown"


SEEDS_ONLY = (
    "All of these intervals are over seeds only: the score files have no replicates over test"
    " items."
)


def test_where_no_run_has_replicates_the_page_says_that_items_do_not_count(project):
    assert comparison("table1").over_seeds_only
    assert SEEDS_ONLY in page("table1")
    judged = claims.judge("made_up", A_ABOVE_B, SCALE).ours
    assert detail_text(judged).endswith("over seeds only")

    for label in "ABC":
        edit("table1", label, with_items("1" * 16))
    assert not comparison("table1").over_seeds_only
    assert SEEDS_ONLY not in page("table1")
    judged = claims.judge("made_up", A_ABOVE_B, SCALE).ours
    assert "over seeds only" not in detail_text(judged)


def test_an_evaluator_that_declares_no_items_is_not_said_to_lack_replicates(project):
    assert not comparison("table4").over_seeds_only


def test_a_claim_over_two_tables_compares_one_data_only(project):
    """Each table is whole by itself: all scores of Table 5 are on other data than Table 1."""
    claim = Claim(**CLAIM, table="5", row="A batch", versus=["C"], versus_table="1")
    on_one_data = claims.judge("made_up", claim, SCALE).ours
    assert on_one_data.direction == claims.Direction.AGREES

    edit("table5", "A batch", on(OTHERS))
    edit("table5", "B", on(OTHERS))  # Table 1 has these runs, too, and marks them
    assert view("table5").elsewhere_count == 0
    assert cell("table1", "B", "x").text.endswith("‡")
    judged = claims.judge("made_up", claim, SCALE).ours
    assert judged.direction is None
    assert judged.significance == claims.Significance.UNTESTED
    hashes = "sts: data bbbbbbbbbbbb and data aaaaaaaaaaaa"
    assert detail_text(judged) == f"A batch and C are scored on different test data ({hashes})"


# ---------------------------------------------------------------- figures, CSV, lists


def test_curves_leave_out_what_is_of_other_data(project):
    edit("figure1", "A", on(OTHERS), column=0)
    edit("figure1", "B", on(OTHERS), seeds=[0], column=1)
    svg, table_file = draw_figure(view("figure1"))

    with open(table_file, newline="", encoding="utf-8") as file:
        rows_by_cell = {(row["row"], row["column"]): row for row in csv.DictReader(file)}
    assert rows_by_cell["A", "10%"]["ours"] == ""
    assert rows_by_cell["A", "10%"]["text"].endswith("‡")
    assert rows_by_cell["B", "100%"]["n"] == "2"

    texts = " ".join(re.findall("<text .*?>(.*?)</text>", svg.read_text("utf-8")))
    assert "Left out: 4 runs scored on other test data" in " ".join(texts.split())

    differences_of_a, _, differences_of_c = baseline_differences(view("figure1"))
    assert differences_of_a[0].ours is None
    assert differences_of_c[0].ours is None


def test_tidy_scores_of_other_data_are_of_another_protocol(project):
    edit("table1", "A", on(OTHERS), seeds=[0])
    marked = []
    for row in score_rows(SCALE):
        is_sts_b = row["evaluator"] == "sts" and row["task"] == "STS-B"
        if is_sts_b and row.get("protocol", "").endswith(" on data bbbbbbbbbbbb"):
            marked.append(row["run"])
    edited_run = cell("table1", "A", "x").plan.specs[0].run_id
    assert marked == [edited_run]


def test_the_first_page_counts_runs_of_other_data(project):
    edit("table1", "A", on(OTHERS), seeds=[0])
    assert "9 of 9 runs scored, 1 of them ‡" in str(answers_by_paper([view("table1")]))


def test_nothing_is_marked_where_all_is_of_one_data(project):
    for name in ("table1", "table2", "table3"):
        assert "‡" not in page(name)
        assert "other test data" not in page(name)
    assert "‡" not in json_text(list(csv_tables.cell_rows(view("table1"))))
