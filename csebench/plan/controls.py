"""The controls of a scale: differences that it must see before it judges methods.

A scale declares them (csebench/plan/schema/declarations.py: Control). Each names two rows of a
table. This module finds their cells. What the scores say of them is computed in
csebench/report/numbers/controls.py.
"""

from dataclasses import dataclass
from pathlib import Path

from csebench.base.caches import cached
from csebench.base.errors import BadInput
from csebench.plan import targets
from csebench.plan.catalog.files import SIDE_BY_SIDE, scale
from csebench.plan.grids import CellPlan, find_grid, plan_grid
from csebench.plan.schema.declarations import Control
from csebench.plan.schema.paper import SettingsTable


@dataclass(frozen=True)
class PlannedControl:
    """A control with the cells that it compares."""

    control: Control
    paper: str
    table: str
    row: int  # index in the table
    against: int
    column: int
    cell: CellPlan
    base: CellPlan


@cached
def planned_controls(scale_name: str) -> tuple[PlannedControl, ...]:
    """Find the cells of the controls of a scale, in the order in which it declares them.

    Raises:
        BadInput: a control names a row or a column that its table does not have.
    """
    controls = scale(scale_name).controls
    return tuple(plan_control(control, scale_name) for control in controls)


def plan_control(control: Control, scale_name: str) -> PlannedControl:
    """Find the cells of a control."""
    where = f"config/{scale_name}.yaml: controls: {control.name}"
    paper_name, _, table = control.table.partition("/")
    if paper_name == SIDE_BY_SIDE:
        table = SIDE_BY_SIDE
    try:
        grid = find_grid(paper_name, table)
    except BadInput as error:
        raise BadInput(f"{where}: table: {error}") from None
    if isinstance(grid, SettingsTable):
        raise BadInput(f"{where}: {control.table} is a table of settings; name one of scores.")
    try:
        row = grid.row(control.row)
        against = grid.row(control.against)
        column = grid.column(control.column)
    except ValueError as error:
        raise BadInput(f"{where}: {control.table}: {error}") from None
    cells = plan_grid(paper_name, table, scale_name)
    cell = cells[row][column]
    base = cells[against][column]
    return PlannedControl(control, paper_name, table, row, against, column, cell, base)


def control_scores(scale_name: str) -> list[Path]:
    """List the score JSONs from which the controls of a scale are computed."""
    paths: set[Path] = set()
    for planned in planned_controls(scale_name):
        for cell in (planned.cell, planned.base):
            for spec in cell.specs:
                paths.add(targets.score_path(spec.run_id, cell.evaluator, scale_name))
    return sorted(paths)
