"""Why rows of a table, or some of their columns, have no scores, and which rows learn nothing."""

from collections.abc import Iterator, Sequence

from csebench.base.shown import as_markdown
from csebench.plan.schema.paper import Row
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.pages.page import Fold, Part, as_list, merge_labels
from csebench.report.words.cells import reasons_of_cell


def notes_fold(view: GridView) -> list[Part]:
    """Fold the notes of a table or figure, and the reasons for what is missing."""
    missing = merge_labels(missing_scores(view))
    notes = [*view.grid.notes, *missing]
    if not notes:
        return []
    title = "Notes, and rows not run here" if missing else "Notes"
    return [Fold(title, [as_list(notes)])]


def missing_scores(view: GridView) -> Iterator[tuple[str, str]]:
    """Go through the rows with a defect.

    Yields:
        The label of the row, with the affected columns unless all are affected, and a sentence that
        says what is wrong.
    """
    for row, cells in zip(view.score_grid.rows, view.rows, strict=True):
        learns_nothing = vanished_loss_text(cells)
        if learns_nothing:
            yield row.label, learns_nothing
        for reason, columns in columns_by_reason(cells).items():
            yield affected_label(row, cells, columns), f"{reason}."


def vanished_loss_text(cells: Sequence[Cell]) -> str:
    """Say that training changes (next to) nothing if the loss of a row is 0 or vanishes.

    Returns:
        An empty text for any other row.
    """
    runs: set[str] = set()
    for cell in cells:
        runs.update(spec.run_id for spec in cell.plan.specs)
    if not runs:
        return ""
    if all(cell.unchanged for cell in cells):
        return f"the loss is 0 in all {len(runs)} runs, so training changes nothing."
    if all(cell.loss_vanished for cell in cells if cell.plan.specs):
        return (
            f"in all {len(runs)} runs the loss is 0, or below 1e-4 of its start after the first"
            " steps, so training changes next to nothing."
        )
    return ""


def columns_by_reason(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """Group the columns of a row by why they lack a run or a score."""
    columns: dict[str, list[str]] = {}
    for cell in cells:
        if cell.plan.missing:
            reasons = [cell.plan.missing]
        else:
            reasons = [as_markdown(reason) for reason in reasons_of_cell(cell)]
        for reason in reasons:
            columns.setdefault(reason.rstrip("."), []).append(cell.plan.column.label)
    return columns


def affected_label(row: Row, cells: Sequence[Cell], columns: list[str]) -> str:
    """`SimCSE`, or `SimCSE, STS12, STS13` if the other columns of the row have scores."""
    columns_with_task = sum(cell.plan.column.task is not None for cell in cells)
    if not row.run or len(columns) == columns_with_task:
        return row.label
    return ", ".join([row.label, *columns])
