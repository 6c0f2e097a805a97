"""Put a table in a paper of its own, over random settings.

`csebench compare TABLE --over settings` does so. The paper has the rows that the table's questions
compare, and asks the same questions. All rows run at the same random settings
(csebench/plan/random_settings.py). The workflow makes its runs and its page as for any other paper.
"""

from collections.abc import Sequence

from csebench.base.errors import BadInput
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.grids import find_grid
from csebench.plan.schema.paper import OTHERS, Family, Grid, Row, UnscoredTable
from csebench.study.generated_paper import write_generated_paper

TABLE = "1"  # key of the table in its paper
PLACES = {"primary", "first_page"}  # where a question stands on pages of the whole scale


def over_settings_page(paper_name: str, name: str, scale_name: str, settings: int) -> targets.Page:
    """Write the paper of a table or figure over random settings, and return its page.

    Args:
        name: `table2`, `figure3`.
        settings: number of random settings.

    Raises:
        BadInput: the table has no scores, no row of it can be run, or the scale has no prior.
    """
    target = targets.target_name(paper_name, name)
    grid = find_grid(paper_name, name)
    if isinstance(grid, UnscoredTable):
        raise BadInput(f"{target}: is a table of {grid.kind}: it has no scores to compare.")
    if not catalog.scale(scale_name).prior:
        raise BadInput(
            f"config/{scale_name}.yaml: prior: is missing, so that no settings can be drawn."
        )
    table = table_over_settings(grid, settings)
    if not table["rows"]:
        raise BadInput(f"{target}: none of its rows can be run.")
    new_name = f"{paper_name}_{name}_over_settings"
    content = {
        "name": new_name,
        "label": f"{target} over settings",
        "title": f"{grid.title}, over random settings",
        "reference": f"the rows of {target}",
        "tables": {TABLE: table},
    }
    write_generated_paper(content, "compare")
    return targets.page(f"table{TABLE}", scale_name, new_name)


def table_over_settings(grid: Grid, settings: int) -> dict:
    """Lay out the table: rows with a recipe that are compared, without printed values.

    Columns of differences to a baseline are left out: the questions state differences.
    """
    runnable = [row.label for row in grid.rows if row.run is not None]
    questions = [with_rows(family, runnable) for family in grid.compare]
    questions = [family for family in questions if family.rows]
    compared = compared_rows(questions, runnable)
    columns = []
    for column in grid.columns:
        if column.delta is None:
            columns.append(column.model_dump(exclude_defaults=True, exclude={"seeds"}))
    families = []
    for question in questions:
        families.append(question.model_dump(mode="json", exclude_defaults=True, exclude=PLACES))
    return {
        "title": f"{grid.title}, over {settings} random settings",
        "encoder": grid.encoder,
        "evaluator": grid.evaluator,
        "random_settings": settings,
        "factor": grid.factor,
        "digits": grid.digits,
        "columns": columns,
        "rows": [row_content(row) for row in grid.rows if row.label in compared],
        "compare": families,
    }


def with_rows(family: Family, labels: Sequence[str]) -> Family:
    """Keep the comparisons of a question whose rows have one of these labels."""
    known = {*labels, OTHERS}
    pairs = [pair for pair in family.rows if {*pair} <= known]
    premise = family.premise
    if premise is not None and premise.row not in labels:
        premise = None
    return family.model_copy(update={"rows": pairs, "premise": premise})


def compared_rows(questions: Sequence[Family], runnable: Sequence[str]) -> set[str]:
    """Collect the labels of rows that questions name; all that can be run if they name no rows."""
    named: set[str] = set()
    for family in questions:
        named |= {*family.named_rows()}
        if any(row == OTHERS for row, _ in family.rows):
            return {*runnable}
    return named or {*runnable}


def row_content(row: Row) -> dict:
    assert row.run is not None, row.label
    return {"label": row.label, "run": row.run.model_dump(exclude_defaults=True)}
