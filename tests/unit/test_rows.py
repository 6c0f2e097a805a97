"""A row of a table as a target: the runs it needs, its file, and the names that are refused."""

import csv
import io

import pytest
from made_up import clear, made_up, table
from score_files import write_scores

from csebench import cli
from csebench.base.errors import BadInput
from csebench.plan.grids import plan_grid
from csebench.plan.page_records import record_of
from csebench.plan.rows import find_row, row_names
from csebench.plan.targets import score_file
from csebench.study import workflow

ROWS = {
    "SimCSE (Gao et al., 2021)": ("simcse", ["67.94", "76.15"]),
    "BERT, λ = 0.1%": ("bert", ["31.40", "31.40"]),
    "bert λ 0.1": ("bert", ["31.40", "31.40"]),
    "Cited": (None, ["70.00", "70.00"]),
}
COLUMNS = [
    {"label": "1%", "size": "1%", "task": "Avg."},
    {"label": "100%", "size": "100%", "task": "Avg."},
]


@pytest.fixture(autouse=True)
def paper(tmp_path, monkeypatch):
    """Make a project with a table of the rows above, and a second table of one run of the first."""
    geometry = [{"label": "a", "size": "1%", "task": "STS-B", "metric": "alignment"}]
    tables = {
        "1": table(ROWS, COLUMNS),
        "2": table({"SimCSE": ("simcse", ["0.2"])}, geometry, evaluator="geometry"),
    }
    made_up(tmp_path, monkeypatch, {"name": "made_up", "tables": tables})
    yield
    clear()


def specs_of(index):
    """List the runs of a row."""
    specs = []
    for cell in plan_grid("made_up", "table1", "smoke")[index]:
        specs += cell.specs
    return specs


def test_names_follow_labels_and_no_two_rows_share_one():
    assert row_names("made_up", "table1") == ["simcse", "bert-λ-0.1", "bert-λ-0.1-2", "cited"]


def test_the_file_of_a_row_needs_the_scores_of_its_runs_and_nothing_else():
    simcse = find_row("made_up/table1/simcse", "smoke")

    *scores, record = workflow.inputs_of(str(simcse.path), None, is_dry_run=False)

    assert {*scores} == {score_file(spec.run_id, "sts", "smoke") for spec in specs_of(0)}
    assert len(scores) == 4  # one seed at 1 %, three at 100 %
    assert record == record_of(simcse.path)


def test_a_run_of_a_requested_row_is_scored_by_the_evaluators_of_the_row():
    path = str(find_row("made_up/table1/simcse", "smoke").path)
    run_id = specs_of(0)[0].run_id

    assert workflow.wanted_evaluators(run_id, "smoke", [path]) == "sts"
    assert workflow.wanted_evaluators(run_id, "smoke", ["all"]) == "geometry,sts"


def test_the_file_of_a_row_has_a_line_per_column_and_seed(capsys):
    for spec in specs_of(0):
        write_scores(spec, "sts", "smoke", [("Avg.", "spearman", 0.5 + spec.seed / 100)])
    clear()

    assert cli.main(["render", "made_up/table1/simcse"]) == 0

    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(line["column"], line["seed"], float(line["ours"])) for line in lines] == [
        ("1%", "1", 51),
        ("100%", "1", 51),
        ("100%", "2", 52),
        ("100%", "3", 53),
    ]
    assert [line["run"] for line in lines] == [spec.run_id for spec in specs_of(0)]


REFUSED = [
    ("made_up/table1/simsce", "Known: bert-λ-0.1, bert-λ-0.1-2, cited, simcse"),
    ("made_up/table1/cited", "nothing of this row can be run: not here"),
    ("made_up/table9/simcse", "unknown table"),
]


@pytest.mark.parametrize(("target", "message"), REFUSED)
def test_a_row_that_cannot_be_made_is_refused(target, message):
    with pytest.raises(BadInput, match=message):
        find_row(target, "smoke").available()
