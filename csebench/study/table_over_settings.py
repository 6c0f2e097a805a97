"""Put tables in papers of their own, over random settings.

`csebench compare TABLE --over settings` does so. A paper has the rows that the table's questions
compare, and asks the same questions. All rows run at the same random settings
(csebench/plan/random_settings.py). The workflow makes its runs and its page as for any other paper.
"""

from collections.abc import Collection, Sequence

from csebench.base.errors import BadInput
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.grids import find_grid
from csebench.plan.random_settings import check_prior
from csebench.plan.schema.paper import OTHERS, Family, Grid, UnscoredTable
from csebench.study.generated_paper import (
    check_not_of_others,
    table_row,
    write_generated_paper,
)

VERB = "compare"
TABLE = "1"  # key of the table in its paper
PLACES_OUTSIDE = {"primary", "first_page"}  # fields of a question: where other pages answer it


def pages_over_settings(pages: Sequence[targets.Page], settings: int) -> list[targets.Page]:
    """Write a paper over random settings for each table and figure of pages.

    Tables without scores, and those of which no row can be run, are left out, unless there is no
    other.

    Args:
        settings: number of random settings.

    Returns:
        The pages of the papers.

    Raises:
        BadInput: a scale has no prior, all tables are left out, or a paper of the user has the name
            of a new one. Nothing is written then.
    """
    papers = []
    left_out = []
    for page in pages:
        check_prior(catalog.scale(page.scale))
        for paper_name, name in page.grids():
            grid = find_grid(paper_name, name)
            target = targets.target_name(paper_name, name)
            if isinstance(grid, UnscoredTable):
                left_out.append(f"{target} is a table of {grid.kind}: it has no scores to compare.")
                continue
            table = table_over_settings(grid, settings)
            if not table["rows"]:
                left_out.append(f"{target}: none of its rows can be run.")
                continue
            new_name = f"{paper_name}_{name}_over_settings"
            check_not_of_others(new_name, VERB)
            papers.append((paper_over_settings(new_name, target, table), page.scale))
    if not papers:
        raise BadInput(f"compare: {left_out[0]}")

    new_pages = []
    for paper, scale_name in papers:
        write_generated_paper(paper, VERB)
        new_pages.append(targets.page(f"table{TABLE}", scale_name, paper["name"]))
    return new_pages


def paper_over_settings(name: str, target: str, table: dict) -> dict:
    """Lay out a paper of one table.

    Args:
        name: of the paper.
        target: the table or figure whose rows it has: `micse/table2`.
    """
    return {
        "name": name,
        "label": f"{target} over settings",
        "title": table["title"],
        "reference": f"the rows of {target}",
        "tables": {TABLE: table},
    }


def table_over_settings(grid: Grid, settings: int) -> dict:
    """Lay out the table: rows with a recipe that are compared, without printed values.

    Columns of differences to a baseline are left out: the questions state differences.
    """
    runnable = [row.label for row in grid.rows if row.run is not None]
    questions = questions_about(runnable, grid.compare)
    compared = compared_rows(questions, runnable)
    columns = []
    for column in grid.columns:
        if column.delta is None:
            columns.append(column.model_dump(exclude_defaults=True, exclude={"seeds"}))
    rows = []
    for row in grid.rows:
        if row.label in compared:
            assert row.run is not None, "only rows with a recipe are compared"
            rows.append(table_row(row.label, row.run))
    asked = []
    for question in questions:
        fields = question.model_dump(mode="json", exclude_defaults=True, exclude=PLACES_OUTSIDE)
        asked.append(fields)
    return {
        "title": f"{grid.title}, over {settings} random settings",
        "encoder": grid.encoder,
        "evaluator": grid.evaluator,
        "random_settings": settings,
        "factor": grid.factor,
        "digits": grid.digits,
        "columns": columns,
        "rows": rows,
        "compare": asked,
    }


def questions_about(labels: Collection[str], questions: Sequence[Family]) -> list[Family]:
    """Keep the questions that rows with these labels answer, with the pairs of these rows.

    A question whose premise is about another row cannot be asked.
    """
    known = {*labels, OTHERS}
    kept = []
    for question in questions:
        pairs = [pair for pair in question.rows if {*pair} <= known]
        has_premise_row = question.premise is None or question.premise.row in labels
        if pairs and has_premise_row:
            kept.append(question.model_copy(update={"rows": pairs}))
    return kept


def compared_rows(questions: Sequence[Family], runnable: Collection[str]) -> set[str]:
    """Collect the labels of the rows that questions compare, and of those of their premises.

    All runnable rows are compared if a question compares every other row with one, and if there is
    no question.
    """
    named: set[str] = set()
    for question in questions:
        named |= {*question.named_rows()}
        if any(row == OTHERS for row, _ in question.rows):
            return {*runnable}
    return named or {*runnable}
