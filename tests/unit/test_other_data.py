"""Scores of other test data: what a table keeps apart, in cells, comparisons, claims, figures,
CSV and words."""

import base64
import csv
import json
import re
import shutil

import numpy as np
import pytest
from made_up import clear, made_up, table
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
from csebench.report.pages.index import coverage
from csebench.report.pages.table import table_page
from csebench.report.words import comparisons as words
from csebench.report.words.claims import detail_text
from csebench.score.scores_csv import score_rows

SCALE = "tiny"
OURS, OTHERS, THIRD = "a" * 64, "b" * 64, "c" * 64  # data_sha256
# that of a task from mteb's hub
NO_FILE = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
VALUES = {"A": (0.70, 0.71, 0.72), "B": (0.60, 0.62, 0.61), "C": (0.50, 0.53, 0.51)}
METHODS = {"A": "simcse", "B": "ct", "C": "mirror_bert"}
STS = [{"label": name, "task": task} for name, task in (("x", "STS-B"), ("y", "SICK-R"))]


def rows(columns, methods=METHODS, **more):
    return table(
        {label: (name, [None] * len(columns)) for label, name in methods.items()}, columns, **more
    )


MIXED = [
    STS[0],
    {"label": "MR", "task": "MR", "evaluator": "transfer"},
    {"label": "mean", "mean": True},
]
MIXED.append({"label": "gain", "delta": "x"})
BEIR = [{"label": name, "task": name, "evaluator": f"beir:{name}"} for name in ("scifact", "fiqa")]
FAMILY = [{"question": "Is A better?", "primary": True, "rows": [["A", "B"]], "columns": ["x"]}]
FAMILY.append({"question": "Are others?", "rows": [["others", "A"]], "columns": "each"})
SIZES = [{"label": size, "task": "STS-B", "size": size} for size in ("10%", "100%")]
PAPER = {
    "name": "made_up",
    "tables": {
        "1": rows(STS, compare=FAMILY),
        "2": rows(MIXED, baseline="C"),
        "3": rows(BEIR),
        "4": rows([{"label": "task", "task": "STS12", "evaluator": "mteb:STS12"}]),
        "5": rows([STS[0]], {"A batch": "simcse", "B": "ct"}),
    },
    "figures": {"1": rows(SIZES, kind="curves", axis="Spearman", baseline="C")},
}
PAPER["tables"]["5"]["rows"][0]["run"]["params"] = {"batch_size": 32}


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with every score of the paper, three rows of three seeds each, on one data."""
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
    """Scores of every run of a table or figure; a run that others show, too, gets the tasks that
    it lacks."""
    done = set()
    for cells in grids.plan_grid("made_up", name, SCALE):
        for cell in cells:
            for number, spec in enumerate(cell.specs):
                path = targets.score_path(spec.run_id, cell.evaluator, SCALE)
                scored = json.loads(path.read_text())["scores"] if path.exists() else []
                if (cell.evaluator, cell.task) in {
                    (row["evaluator"], row["task"]) for row in scored
                }:
                    continue
                value = VALUES[cell.row.label[0]][number]
                write_scores(
                    spec, cell.evaluator, SCALE, [(cell.task, cell.metric, value)], data_sha256=OURS
                )
                done.add(spec.run_id)


def edit(name, label, change, seeds=(0, 1, 2), column=0):
    """Change score files of a row of a table or figure by `change(content)`."""
    row = grids.find_grid("made_up", name).row(label)
    cell = grids.plan_grid("made_up", name, SCALE)[row][column]
    for number in seeds:
        edit_score_file(
            targets.score_path(cell.specs[number].run_id, cell.evaluator, SCALE), change
        )
    clear()


def on(data):
    """A change of the data that a score states."""
    return lambda content: content["evaluations"][0].update(data_sha256=data)


def with_items(items, version=1):
    """A change that gives every score replicates of test items of this hash."""

    def change(content):
        values = np.arange(512, dtype="<i2") % 7 - 3
        encoded = {
            "clustered": {"unit": 1e-4, "values": base64.b64encode(values.tobytes()).decode()}
        }
        scores = {row["task"]: {row["metric"]: encoded} for row in content["scores"]}
        content["replicates"] = {"version": version, "items": items, "scores": scores}

    return change


def view(name):
    return grid_view("made_up", name, SCALE)


def cell(name, label, column):
    shown = view(name)
    return shown.rows[shown.grid.row(label)][shown.grid.column(column)]


def comparison(name, label="A", against="B", columns=(0,)):
    shown = view(name)
    return compare.compare(shown, shown.grid.row(label), shown.grid.row(against), list(columns))


def page(name):
    return table_page(targets.page(name, SCALE, "made_up")).write("markdown")


# ---------------------------------------------------------------- cells


def test_seeds_on_different_data_are_not_averaged(project):
    edit("table1", "A", on(OTHERS), seeds=[2])
    mixed = cell("table1", "A", "x")
    assert mixed.text == "70.50 ± 0.71" and (mixed.runs_elsewhere, mixed.absent) == (1, 0)
    assert not mixed.is_comparable
    text = page("table1")
    assert "| A | 70.50 ± 0.71 [1 ‡] |" in text
    assert "‡: 1 run on other test data than the rest of the table" in text
    hashes = "sts: data bbbbbbbbbbbb, not data aaaaaaaaaaaa"
    assert f"A: 1 of 3 runs is scored on other test data than the table ({hashes})." in text
    assert (
        "**Test data of sts differs**: data aaaaaaaaaaaa, items unknown (8 scores); data"
        " bbbbbbbbbbbb" in text
    )


def test_a_row_of_other_data_is_shown_with_a_mark_and_counts_nowhere(project):
    edit("table1", "A", on(OTHERS))
    shown = cell("table1", "A", "x")
    assert (shown.text, shown.ours, shown.verdict) == ("71.00 ± 1.00‡", None, "")
    assert compare.best_rows(view("table1"), view("table1").score_grid.columns[0]) == [{1}]
    (row,) = [
        r for r in csv_tables.cell_rows(view("table1")) if (r["row"], r["column"]) == ("A", "x")
    ]
    assert (row["ours"], row["n"], row["text"], row["missing"], row["runs"]) == (
        "",
        0,
        "71.00 ± 1.00‡",
        3,
        "",
    )


def test_a_row_on_several_other_data_shows_no_number(project):
    edit("table1", "A", on(OTHERS), seeds=[0, 1])
    edit("table1", "A", on(THIRD), seeds=[2])
    assert cell("table1", "A", "x").text == "–‡"


def test_means_and_differences_leave_out_what_is_of_other_data(project):
    edit("table2", "A", on(OTHERS), seeds=[0])
    texts = {column: cell("table2", "A", column).text for column in ("x", "MR", "mean", "gain")}
    assert texts == {
        "x": "71.50 ± 0.71",
        "MR": "71.00 ± 1.00",
        "mean": "71.50 ± 0.71",
        "gain": "+19.50 ± 2.12",
    }
    assert (
        cell("table2", "A", "mean").runs_elsewhere
        == cell("table2", "A", "gain").runs_elsewhere
        == 1
    )
    edit("table2", "C", on(OTHERS))
    assert cell("table2", "C", "mean").text == "–‡" and cell("table2", "B", "gain").text == "–‡", (
        "its baseline"
    )
    assert comparison("table2", columns=[2]).relation == Relation.OTHER_DATA


def test_the_data_of_one_evaluator_says_nothing_of_another(project):
    edit("table3", "A", on(OTHERS), column=1)
    assert comparison("table3", columns=[0]).relation == Relation.BETTER
    assert comparison("table3", columns=[1]).relation == Relation.OTHER_DATA
    assert comparison("table3", columns=[0, 1]).relation == Relation.OTHER_DATA


def test_a_table_keeps_the_data_of_most_scores_and_of_equally_many_the_newest(project):
    for label in "AB":
        edit("table5", "A batch" if label == "A" else label, on(OTHERS if label == "A" else OURS))
    assert view("table5").data["sts"].files == OTHERS, (
        "the last of equals by name, whatever the order of files"
    )
    edit(
        "table5",
        "B",
        lambda content: content["provenance"].update(started="2026-02-01T00:00:00Z"),
        seeds=[0],
    )
    assert view("table5").data["sts"].files == OURS


def test_outdated_scores_do_not_decide_what_the_data_is(project):
    def old(content):
        on(OTHERS)(content)
        content["evaluations"][0]["version"] -= 1

    for label in "AB":
        edit("table1", label, old)
    assert view("table1").data["sts"].files == OURS
    assert cell("table1", "C", "x").text == "51.33 ± 1.53"
    assert cell("table1", "A", "x").text == "71.00 ± 1.00‡" and cell("table1", "A", "x").stale
    assert "71.00 ± 1.00‡†" in page("table1")


def test_items_of_older_code_are_no_other_data(project):
    """Its hash of the items may be of something else, as before sentences were part of it."""
    for label in "ABC":
        edit("table1", label, with_items("1" * 16))

    def old(content):
        with_items("2" * 16)(content)
        content["evaluations"][0]["version"] -= 1

    edit("table1", "B", old)
    assert cell("table1", "B", "x").text == "61.00 ± 1.00" and cell("table1", "B", "x").stale
    assert comparison("table1").relation == Relation.OUTDATED and view("table1").elsewhere == 0
    assert not [row for row in score_rows(SCALE) if " on " in row.get("protocol", "")]


def test_files_of_no_stated_data_agree_with_one_another_only(project):
    def without(content):
        del content["evaluations"][0]["data_sha256"]

    for label in "AB":
        edit("table1", label, without)
    assert comparison("table1").relation == Relation.BETTER
    assert cell("table1", "C", "x").text.endswith("‡")
    edit("table1", "C", without)
    assert "‡" not in page("table1")


def test_tasks_from_mtebs_hub_have_no_file_and_agree(project):
    for label in "ABC":
        edit("table4", label, on(NO_FILE))
    assert comparison("table4").relation == Relation.BETTER and view("table4").elsewhere == 0


# ---------------------------------------------------------------- comparisons


def test_rows_of_other_data_are_compared_with_nothing_and_words_say_why(project, capsys):
    edit("table1", "B", on(OTHERS))
    for row, against in (("A", "B"), ("B", "C")):
        refused = comparison("table1", row, against)
        assert (refused.relation, refused.estimate, refused.p) == (
            Relation.OTHER_DATA,
            None,
            None,
        )
        assert words.sentence(refused).startswith(
            "Cannot be compared: B: 3 of 3 runs are scored on other test data"
        )
    assert comparison("table1", "A", "C").relation == Relation.BETTER, (
        "of rows that have the same data"
    )
    assert "scored on other test data: B" in page("table1")
    assert main(["compare", "made_up/table1", "A", "B", "--scale", SCALE, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["relation"], record["gain"]) == (
        "other data",
        "",
    ) and "not data aaaaaaaaaaaa" in record["reason"]
    assert main(["show", "made_up/table1", "--row", "B", "--column", "x", "--scale", SCALE]) == 0
    assert "3 of 3 runs are scored on other test data" in capsys.readouterr().out
    frame = api.table("made_up/table1", SCALE)
    assert frame[(frame.row == "B") & (frame.column == "x")].ours.isna().all()


def test_other_items_are_other_data_even_where_no_file_changed(project):
    for label, items in (("A", "1" * 16), ("B", "2" * 16), ("C", "1" * 16)):
        edit("table1", label, with_items(items))
    refused = comparison("table1")
    assert refused.relation == Relation.OTHER_DATA
    assert "sts: items 222222222222, not items 111111111111" in words.reason_text(refused.reason)
    assert comparison("table1", "A", "C").estimate.item_se is not None


@pytest.mark.parametrize("version", [None, 0], ids=["without any", "made in another way"])
@pytest.mark.parametrize("seeds", [[0, 1, 2], [1]], ids=["all runs", "one run"])
def test_replicates_that_some_runs_lack_are_not_dropped_in_silence(version, seeds, project):
    for label in "ABC":
        edit("table1", label, with_items("1" * 16))

    def change(content):
        content.pop("replicates")
        if version is not None:
            with_items("1" * 16, version)(content)

    edit("table1", "B", change, seeds)
    refused = comparison("table1")
    assert (refused.relation, refused.estimate) == (Relation.UNPAIRED, None)
    assert (
        words.reason_text(refused.reason)
        == f"{len(seeds)} of 3 runs of B have no replicates over the test items of sts"
    )
    assert comparison("table1", "A", "C").relation == Relation.BETTER
    assert "not all runs have replicates over test items" in words.family_sentence(
        compare.answers(view("table1"))[1]
    )
    column = view("table1").score_grid.columns[0]
    assert compare.best_rows(view("table1"), column) == [{0, 1}], (
        "that A is better than B is not shown"
    )


def test_where_no_run_has_replicates_the_page_says_that_items_do_not_count(project):
    says = (
        "All of these intervals are over seeds only: the score files have no replicates over test"
        " items."
    )
    assert comparison("table1").over_seeds_only and says in page("table1")
    claim = Claim(quote="better", section="1", table="1", row="A", versus=["B"], columns=["x"])
    assert detail_text(claims.judge("made_up", claim, SCALE).ours).endswith("over seeds only")
    for label in "ABC":
        edit("table1", label, with_items("1" * 16))
    assert not comparison("table1").over_seeds_only and says not in page("table1")
    assert "over seeds only" not in detail_text(claims.judge("made_up", claim, SCALE).ours)
    assert not comparison("table4").over_seeds_only, "its evaluator declares no items"


def test_a_claim_over_two_tables_compares_one_data_only(project):
    """Each table is whole by itself: in table 5 all scores are on other data than in table 1."""
    about = {
        "quote": "better",
        "section": "1",
        "table": "5",
        "row": "A batch",
        "columns": ["x"],
        "versus": ["C"],
    }
    claim = Claim(**about, versus_table="1")
    assert claims.judge("made_up", claim, SCALE).ours.direction == claims.Direction.AGREES
    edit("table5", "A batch", on(OTHERS))
    edit("table5", "B", on(OTHERS))  # whose runs are in table 1, too, where they are marked
    assert view("table5").elsewhere == 0 and cell("table1", "B", "x").text.endswith("‡")
    judged = claims.judge("made_up", claim, SCALE).ours
    assert (judged.direction, judged.significance) == (None, claims.Significance.UNTESTED)
    hashes = "sts: data bbbbbbbbbbbb and data aaaaaaaaaaaa"
    assert detail_text(judged) == f"A batch and C are scored on different test data ({hashes})"


# ---------------------------------------------------------------- figures, CSV, lists


def test_curves_leave_out_what_is_of_other_data(project):
    edit("figure1", "A", on(OTHERS), column=0)
    edit("figure1", "B", on(OTHERS), seeds=[0], column=1)
    svg, table_file = draw_figure(view("figure1"))
    with open(table_file, newline="", encoding="utf-8") as file:
        found = {(row["row"], row["column"]): row for row in csv.DictReader(file)}
    assert found["A", "10%"]["ours"] == "" and found["A", "10%"]["text"].endswith("‡")
    assert found["B", "100%"]["n"] == "2"
    texts = " ".join(re.findall("<text .*?>(.*?)</text>", svg.read_text("utf-8")))
    assert "left out: 4 runs scored on other test data" in texts
    (a, *_), _, (c, *_) = baseline_differences(view("figure1"))
    assert a.ours is None and c.ours is None


def test_tidy_scores_of_other_data_are_of_another_protocol(project):
    edit("table1", "A", on(OTHERS), seeds=[0])
    tidy = [
        row for row in score_rows(SCALE) if row["evaluator"] == "sts" and row["task"] == "STS-B"
    ]
    marked = [row for row in tidy if row.get("protocol", "").endswith(" on data bbbbbbbbbbbb")]
    assert len(marked) == 1 and marked[0]["run"] == cell("table1", "A", "x").plan.specs[0].run_id


def test_the_first_page_counts_runs_of_other_data(project):
    edit("table1", "A", on(OTHERS), seeds=[0])
    assert "9 of 9 runs scored, 1 of them ‡" in str(coverage([view("table1")]))


def test_nothing_is_marked_where_all_is_of_one_data(project):
    for name in ("table1", "table2", "table3"):
        assert "‡" not in page(name) and "other test data" not in page(name)
    assert "‡" not in json_text([*csv_tables.cell_rows(view("table1"))])
