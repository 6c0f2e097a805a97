"""The sentence of a table: which rows it compares, and when it draws no conclusion."""

import pytest
from made_up import SCALE, clear, made_up, table
from score_files import write_scores

from csebench.plan import grids
from csebench.report import findings
from csebench.report.findings import grid_finding
from csebench.report.cells import grid_view

COLUMN = {"label": "Avg.", "task": "Avg.", "size": "100%"}
ROWS = {"Untrained": ("bert", "copied"), "Old": ("simcse", "rerun"), "Older": ("ct", "rerun"), "New": ("micse", None)}
NEAR, FAR = (
    {"Untrained": 50, "Old": 55, "Older": 52, "New": 55.1},
    {"Untrained": 50, "Old": 55, "Older": 52, "New": 57},
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A table of four rows at a scale that is not only for trying out the workflow."""
    scores = table({label: (method, [None]) for label, (method, _) in ROWS.items()}, [COLUMN])
    for row in scores["rows"]:
        row["source"] = ROWS[row["label"]][1] or "measured"
    pair = table({"A": ("micse", [None]), "B": ("informin_cl", [None])}, [COLUMN])
    made_up(tmp_path, monkeypatch, {"name": "made_up", "tables": {"1": pair, "2": scores}})
    monkeypatch.setattr(findings, "DEFAULT_SCALE", "another")
    yield
    clear()


def write(means, version=None):
    for cells in grids.plan_grid("made_up", "table2", SCALE):
        for offset, spec in zip((-0.2, 0, 0.3), cells[0].specs, strict=False):
            if (mean := means.get(cells[0].row.label)) is None:
                continue
            noise = offset * (1 if cells[0].row.label == "New" else -1)
            made_by = {} if version is None else {"version": version}
            write_scores(spec, "sts", SCALE, [("Avg.", "spearman", (mean + noise) / 100)], **made_by)
    clear()


def finding(name="table2"):
    return grid_finding(grid_view("made_up", name, SCALE))


def test_the_authors_row_is_compared_with_the_best_of_the_others(project):
    write(FAR)
    text = finding()
    assert text.startswith("New has the highest value in column Avg., 57.03, 2.07 above Old, the best baseline")
    assert "over 3 seeds): a significant difference (p = 0.0" in text
    assert "Of 3 rows with another pooling than the untrained encoder (Untrained, 50.20), 3 are" in text
    assert text.endswith("3 are significantly better and none is worse.")


def test_rows_that_a_test_does_not_tell_apart(project):
    write(NEAR)
    assert "0.17 above Old" in finding() and "the scores do not tell the two apart" in finding()


def test_no_conclusion_from_scores_of_older_code(project):
    write(FAR, version=0)
    assert finding().startswith("No finding yet: ") and "†" in finding() and "New" not in finding()


def test_rows_without_scores_are_named_as_left_out(project):
    write(FAR | {"New": None})
    assert finding().startswith("Old has the highest value") and "all of the authors' among them" in finding()


def test_a_higher_row_that_is_not_compared_is_named(project):
    write({"New": 58}, version=0)
    write(FAR | {"New": None})
    assert finding().startswith("Old has the highest value of the 3 rows compared in column Avg., ")
    assert "higher than all that are compared: New 58.03." in finding()


def test_rows_of_the_same_runs_are_said_to_be(project, monkeypatch):
    write(NEAR)
    monkeypatch.setattr(findings, "same_runs", lambda a, b: True)
    assert finding().startswith("New has the highest value in column Avg., 55.13; the runs of Old are the same")
