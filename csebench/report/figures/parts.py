"""Parts that several kinds of figures share.

They are styles of rows, differences to a baseline, notes, and the score of the untrained encoder.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import sub

from csebench.base.terminal import capitalised
from csebench.plan.grids import CellPlan, untrained_cell
from csebench.plan.schema.paper import Row
from csebench.report.csv_tables import CELLS, cell_rows
from csebench.report.numbers.cells import Cell, GridView, combine_parts
from csebench.report.numbers.stats import Summary
from csebench.report.words.comparisons import ends_text
from csebench.score.data_of_scores import Scored
from csebench.score.drawing import MARKERS, row_colour
from csebench.score.store import stored_score, value

LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


@dataclass(frozen=True)
class DrawnFigure:
    """The table and the note that belong to a drawn figure."""

    table: list[list]  # its numbers for the CSV file, below a head
    note: str  # a part of the subtitle
    is_empty: bool  # no row had anything to draw


def figure_of_cells(view: GridView, is_empty: bool, remark: str = "") -> DrawnFigure:
    """Complete a figure that shows the means of cells, with 95 % intervals of these means.

    Args:
        remark: follows the note.
    """
    table = [CELLS, *(list(row.values()) for row in cell_rows(view))]
    seeds = [cell.ours.n for cell in view.cells if cell.ours]
    note = f"{capitalised(view.figure.axis)}: {seeds_note(seeds)}, with 95 % intervals over seeds."
    return DrawnFigure(table, f"{note} {remark}".strip(), is_empty)


def seeds_note(counts: Iterable[int]) -> str:
    """`means of n = 1 to 3 seeds`"""
    seeds = ends_text(counts)
    unit = "seed" if seeds == "1" else "seeds"
    return f"means of n = {seeds} {unit}"


def interval_text(summary: Summary, digits: int, sign: str = "") -> str:
    """Write a mean with its 95 % interval: `54.64 (54.61 to 54.67)`; of one seed only the mean.

    Args:
        sign: `+` writes the sign of positive numbers, too.
    """
    mean = f"{summary.mean:{sign}z.{digits}f}"
    if summary.std is None:
        return mean
    low = f"{summary.mean - summary.margin:{sign}z.{digits}f}"
    high = f"{summary.mean + summary.margin:{sign}z.{digits}f}"
    return f"{mean} ({low} to {high})"


# ---------------------------------------------------------------- rows


def row_style(row: Row, place: int) -> dict:
    """Give a row the colour of its method, and a marker and line that its neighbours do not have.

    Args:
        place: index of the row in the figure.
    """
    return {
        "color": row_colour(row, place),
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": LINES[place % len(LINES)],
    }


def baseline_differences(view: GridView) -> list[list[Cell]]:
    """Subtract the baseline's cells from all cells, seed by seed.

    The baseline's own row is left without values.
    """
    baseline = view.rows[view.figure.baseline_row]
    rows: list[list[Cell]] = []
    for cells in view.rows:
        differences = []
        for cell, baseline_cell in zip(cells, baseline, strict=True):
            difference = replace(cell, values={})
            if cells is not baseline:
                difference = combine_parts(difference, [cell, baseline_cell], sub)
            differences.append(difference)
        rows.append(differences)
    return rows


@dataclass(frozen=True)
class UntrainedScore:
    """The score of the untrained encoder, in printed units."""

    label: str
    score: float


def untrained_score(view: GridView) -> UntrainedScore | None:
    """Read the score of the untrained encoder of a figure; None if it has none."""
    cell = untrained_cell(view.paper, view.name, view.scale)
    if cell is None:
        return None
    fraction = untrained_fraction(cell, view)
    if fraction is None:
        return None
    return UntrainedScore(untrained_label(cell, view), view.figure.factor * fraction)


def untrained_fraction(cell: CellPlan, view: GridView) -> float | None:
    """Read the untrained encoder's score; None if it has none on the figure's test data."""
    content, is_outdated = stored_score(cell.specs[0], cell.evaluator, view.scale)
    if content is None or not view.is_on_its_data(cell.evaluator, Scored(content, is_outdated)):
        return None
    return value(content, cell.task, cell.column.metric)


def untrained_label(cell: CellPlan, view: GridView) -> str:
    """Name the untrained encoder, with its pooler if the rows have another one."""
    pooler = cell.specs[0].params["pooler"]
    poolers_of_rows = set()
    for row_cell in view.cells:
        poolers_of_rows |= {spec.params.get("pooler") for spec in row_cell.plan.specs}
    if poolers_of_rows == {pooler}:
        return "untrained encoder"
    return f"untrained encoder, {pooler}"
