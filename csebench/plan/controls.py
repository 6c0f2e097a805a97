"""The controls of a scale: differences that it must see before it judges methods.

A scale declares controls in its file (csebench/plan/schema/declarations.py: Control). Each control
names two rows and a column. This module finds the two cells and their score files.
csebench/report/numbers/controls.py computes from the scores whether the control holds.
"""

from dataclasses import dataclass
from pathlib import Path

from csebench.base.caches import cached
from csebench.base.errors import BadInput
from csebench.plan import targets
from csebench.plan.catalog.files import scale
from csebench.plan.grids import CellPlan, find_grid, plan_grid
from csebench.plan.schema.declarations import Control
from csebench.plan.schema.paper import Grid


@dataclass(frozen=True)
class CellPlace:
    """Where a cell stands, and its plan."""

    paper: str
    table: str
    row: int  # index of the row in the table
    column: int  # index of the column
    plan: CellPlan


@dataclass(frozen=True)
class PlannedControl:
    """A control with the cells that it compares."""

    control: Control
    cell: CellPlace  # must score higher
    base: CellPlace


@cached
def planned_controls(scale_name: str) -> tuple[PlannedControl, ...]:
    """Find the cells of the controls of a scale, in the order in which it declares them.

    Raises:
        BadInput: a control names a table, a row or a column that does not exist.
    """
    planned = []
    for control in scale(scale_name).controls:
        base_table = control.against_table or control.table
        cell = find_cell(control, control.table, control.row, scale_name)
        base = find_cell(control, base_table, control.against, scale_name)
        planned.append(PlannedControl(control, cell, base))
    return tuple(planned)


def find_cell(control: Control, table: str, row_label: str, scale_name: str) -> CellPlace:
    """Find a cell of a control.

    Args:
        table: `micse/table4`.

    Raises:
        BadInput: the table, the row or the column does not exist. The message names the control.
    """
    where = f"config/{scale_name}.yaml: controls: {control.name}"
    paper_name, _, name = table.partition("/")
    try:
        grid = find_grid(paper_name, name)
    except BadInput as error:
        raise BadInput(f"{where}: {table}: {error}") from None
    if not isinstance(grid, Grid):
        raise BadInput(f"{where}: {table} is no table of scores; name one.")
    try:
        row = grid.row(row_label)
        column = grid.column(control.column)
    except ValueError as error:
        raise BadInput(f"{where}: {table}: {error}") from None
    plan = plan_grid(paper_name, name, scale_name)[row][column]
    return CellPlace(paper_name, name, row, column, plan)


def control_scores(scale_name: str) -> list[Path]:
    """List the score JSONs from which the controls of a scale are computed."""
    paths: set[Path] = set()
    for planned in planned_controls(scale_name):
        for plan in (planned.cell.plan, planned.base.plan):
            for spec in plan.specs:
                paths.add(targets.score_path(spec.run_id, plan.evaluator, scale_name))
    return sorted(paths)
