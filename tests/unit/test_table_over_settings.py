"""`csebench compare TABLE --over settings`: the rows of a table, at random settings they share."""

import pytest
import yaml
from made_up import made_up, table
from score_files import write_scores

from csebench.base import caches
from csebench.base.errors import BadInput
from csebench.cli import main
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.paper import Paper
from csebench.study.table_over_settings import pages_over_settings, table_over_settings

SCALE = "study"
PRIOR = {"learning_rate": {"low": 1e-5, "high": 1e-3}}
COLUMNS = [
    {"label": "Avg.", "task": "Avg.", "size": "1%"},
    {"label": "gain", "delta": "Avg."},
]
ROWS = {
    "A": ("simcse", [70.1, None]),
    "B": ("informin_cl", [71.2, 1.1]),
    "not compared": ("ct", [72.3, 2.2]),
    "cited": (None, [73.4, 3.3]),
}
TEXTS = {
    "kind": "texts",
    "title": "Examples",
    "columns": [{"label": "Text"}],
    "rows": [{"label": "Original", "values": ["A sentence."]}],
}
QUESTION = {
    "question": "Does a row score higher than A?",
    "rows": [["B", "A"], ["cited", "A"]],
    "first_page": "Which rows beat A?",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with one paper. Its table compares two of its four rows with a third one."""
    grid = table(ROWS, COLUMNS, baseline="A", compare=[QUESTION])
    made_up(tmp_path, monkeypatch, {"name": "m", "tables": {"1": grid}}, name=SCALE, prior=PRIOR)
    yield tmp_path
    monkeypatch.undo()
    caches.clear()


def over_settings(target="m/table1"):
    """Put tables over four random settings, and return the pages."""
    return pages_over_settings(targets.parse_target(target, SCALE), 4)


def add_table(project, content):
    """Add Table 2 to the paper, and return the path of the paper."""
    path = project / "papers" / "m.yaml"
    paper = yaml.safe_load(path.read_text())
    paper["tables"]["2"] = content
    path.write_text(yaml.safe_dump(paper))
    caches.clear()
    return path


def compare(*options):
    return main(["compare", "m/table1", "--scale", SCALE, "--over", "settings", *options])


def test_only_rows_that_are_compared_and_can_be_run_are_in_the_new_table(project):
    (page,) = over_settings()
    labels = {cell.row.label for cell in page.cells()}
    assert labels == {"A", "B"}
    for cell in page.cells():
        assert cell.has_random_settings
        assert len(cell.specs) == 4
        assert cell.row.values == [None]


def test_the_first_page_of_the_scale_does_not_answer_by_it(project):
    over_settings()
    (family,) = catalog.paper("m_table1_over_settings").tables["1"].compare
    assert family.first_page is None
    assert family.rows == [("B", "A")]


def test_without_scores_the_command_that_makes_them_is_printed(project, capsys):
    compare()
    printed = " ".join(capsys.readouterr().out.split())
    # two rows at eight settings, which is the default
    assert "none of its 16 runs is scored yet" in printed
    assert f"results/{SCALE}/m_table1_over_settings/table1.md` makes them" in printed
    assert f"`csebench plan m_table1_over_settings/table1 --scale {SCALE}`" in printed


def test_with_scores_the_mean_over_settings_is_printed(project, capsys):
    compare("--settings", "4")
    (page,) = targets.parse_target("m_table1_over_settings", SCALE)
    averages = {"A": [0.40, 0.50, 0.60, 0.70], "B": [0.42, 0.53, 0.62, 0.73]}
    for cell in page.cells():
        for spec, average in zip(cell.specs, averages[cell.row.label], strict=True):
            write_scores(spec, "sts", SCALE, [("Avg.", "spearman", average)])
    caches.clear()
    capsys.readouterr()

    compare("--settings", "4")

    printed = " ".join(capsys.readouterr().out.split())
    assert "Over 4 shared settings: B − A +2.50 (95 %" in printed
    assert "higher in 4." in printed


def test_a_scale_without_a_prior_is_refused(tmp_path, monkeypatch):
    grid = table(ROWS, COLUMNS, baseline="A", compare=[QUESTION])
    made_up(tmp_path, monkeypatch, {"name": "m", "tables": {"1": grid}}, name=SCALE)
    with pytest.raises(BadInput, match=r"config/study.yaml: prior: is missing"):
        over_settings()
    monkeypatch.undo()
    caches.clear()


NO_ROW_TO_RUN = table({"cited": ROWS["cited"]}, COLUMNS, baseline="cited")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (TEXTS, "m/table2 is a table of texts: it has no scores to compare"),
        (NO_ROW_TO_RUN, "m/table2: none of its rows can be run"),
    ],
)
def test_a_table_that_cannot_be_compared_is_left_out_of_a_paper(content, reason, project):
    add_table(project, content)
    (page,) = over_settings("m")
    assert page.grids() == [("m_table1_over_settings", "table1")]
    with pytest.raises(BadInput, match=reason):
        over_settings("m/table2")


def test_nothing_is_written_if_a_paper_of_the_user_has_the_name_of_one(project):
    path = add_table(project, table(ROWS, COLUMNS, baseline="A", compare=[QUESTION]))
    mine = path.with_name("m_table2_over_settings.yaml")
    mine.write_text("name: mine\n")
    with pytest.raises(BadInput, match="csebench compare"):
        over_settings("m")
    assert {*path.parent.iterdir()} == {path, mine}


def test_a_question_whose_premise_cannot_be_run_is_not_asked():
    premise = {"row": "cited", "most": "Avg.", "less": ["Avg."], "least": 1, "printed": "P"}
    compared = [QUESTION, {**QUESTION, "premise": premise}]
    grid = Paper.model_validate(
        {
            "name": "m",
            "title": "T",
            "reference": "R",
            "tables": {"1": table(ROWS, COLUMNS, baseline="A", compare=compared)},
        }
    ).tables["1"]
    assert len(table_over_settings(grid, 4)["compare"]) == 1


def test_a_number_of_settings_needs_a_comparison_over_settings(project, capsys):
    assert main(["compare", "m/table1", "--scale", SCALE, "--settings", "4"]) == 2
    assert "needs --over settings" in capsys.readouterr().err


def test_a_paper_of_the_user_is_not_replaced(project):
    path = project / "papers" / "m_table1_over_settings.yaml"
    path.write_text("name: mine\n")
    with pytest.raises(BadInput, match="csebench compare"):
        over_settings()
    assert path.read_text() == "name: mine\n"


@pytest.mark.parametrize("paper", catalog.paper_names())
def test_every_table_and_figure_of_scores_can_be_compared_over_settings(paper):
    content = catalog.paper(paper)
    grids = [*content.tables.values(), *content.figures.values()]
    for grid in grids:
        if grid.kind in ("settings", "texts"):
            continue
        laid_out = table_over_settings(grid, 8)
        fields = {"name": "m", "title": "T", "reference": "R", "tables": {"1": laid_out}}
        made = Paper.model_validate(fields).tables["1"]
        assert made.random_settings == 8
        assert {row.label for row in made.rows} <= {row.label for row in grid.rows}
