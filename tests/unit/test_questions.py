"""A question that another page answers for the first page of a scale has a link to that page."""

from pathlib import Path

import pytest
from made_up import clear, made_up, unprinted_table

from csebench.plan.catalog.files import results_folder
from csebench.report.numbers.cells import grid_view
from csebench.report.pages.questions import owner_text

FOLDER = Path("results/tiny/made_up")


def compared(row, against, **more):
    """Declare a question about one pair of rows."""
    return [{"question": "Which is better?", "primary": True, "rows": [[row, against]], **more}]


def one_table(rows, compare):
    columns = [{"label": "Avg.", "task": "Avg."}]
    return unprinted_table(rows, columns, compare=compare)


@pytest.fixture
def text_of(tmp_path, monkeypatch):
    """Return the link of the question of a table. Table 1 answers for the first page."""
    cited = {"SimCSE (Gao et al., 2021)": "simcse", "CT": "ct"}
    plain = {"SimCSE": "simcse", "CT": "ct"}
    owner = compared("SimCSE (Gao et al., 2021)", "CT", first_page="Does SimCSE win?")
    tables = {
        "1": one_table(cited, owner),
        "2": one_table(plain, compared("SimCSE", "CT")),
        "3": one_table(plain, compared("CT", "SimCSE")),
    }
    made_up(
        tmp_path, monkeypatch, {"name": "made_up", "label": "Made", "tables": tables}, name="tiny"
    )

    def text(name, folder=FOLDER):
        view = grid_view("made_up", name, "tiny")
        return owner_text(view, view.grid.compare[0], folder)

    yield text
    clear()


def test_the_same_rows_on_another_page_lead_to_the_one_that_answers(text_of):
    assert text_of("table2") == "“Does SimCSE win?” is answered on [Made Table 1](table1.md)."


def test_the_link_starts_from_the_folder_of_the_page(text_of):
    assert "(made_up/table1.md)" in text_of("table2", results_folder("tiny"))


@pytest.mark.parametrize("name", ["table1", "table3"])
def test_the_page_itself_and_other_pairs_have_no_link(name, text_of):
    assert text_of(name) == ""
