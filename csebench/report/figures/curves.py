"""Figures of kind `curves`: a line per row over the sizes of the training set."""

from dataclasses import dataclass

from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.schema.paper import Row
from csebench.report.figures.narrow import BELOW_AXES, KeyEntry, stacked_axes, write_key
from csebench.report.figures.parts import (
    DrawnFigure,
    baseline_differences,
    figure_of_cells,
    row_style,
    untrained_score,
)
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.drawing import row_colour
from csebench.score.themes import GREY

OFFSET = 1.035  # between rows at the same size: a factor, as sizes are on a logarithmic axis
MOST_HORIZONTAL_LABELS = 4  # with more sizes, their labels are vertical
BELOW_UPRIGHT_TICKS = 1.2  # inches, for them and the label of the axis
LINE_STYLE = {"markersize": 5, "linewidth": 1.5, "elinewidth": 0.9}


def draw_curves(figure, view: GridView) -> DrawnFigure:
    """Draw the scores over the sizes. With a baseline, draw the differences to it in axes below."""
    grid = view.figure
    sentences = read_scale(view.scale).sizes
    sizes = [sentences[column.size] for column in grid.columns]
    key_lines = len(grid.rows) + 1  # with the untrained encoder, or the baseline
    below = BELOW_UPRIGHT_TICKS if len({*sizes}) > MOST_HORIZONTAL_LABELS else BELOW_AXES
    count = 2 if grid.baseline else 1
    scores, *differences = stacked_axes(figure, count, key_lines, below)
    for axes in (scores, *differences):
        set_size_axis(axes, sizes)

    # scores, and the untrained encoder
    key = draw_lines(scores, sizes, view.rows, grid.rows)
    is_empty = not key
    untrained = untrained_score(view)
    if untrained is not None:
        text = f"{untrained.label}: {untrained.score:.{grid.digits}f}"
        line = scores.axhline(untrained.score, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
        key.append(KeyEntry(line, text, untrained.score))
    write_key(scores, key, below)

    # differences to the baseline, which is a line at 0
    for axes in differences:
        key = draw_lines(axes, sizes, baseline_differences(view), grid.rows, sign="+")
        colour = row_colour(grid.rows[grid.baseline_row], grid.baseline_row)
        line = axes.axhline(0, color=colour, linewidth=1, zorder=1)
        write_key(axes, [*key, KeyEntry(line, f"{grid.baseline}: 0")], below)
        axes.set_title(f"Difference to {grid.baseline}, paired by seed")

    for axes in (scores, *differences):
        axes.set_xlabel(size_label(view))
    remark = "Beside the names: the values at the last size."
    return figure_of_cells(view, is_empty, remark)


@dataclass(frozen=True)
class SizePoint:
    """The score of a row at a size of the training set."""

    size: int
    mean: float
    margin: float  # half the width of the 95 % interval
    digits: int  # that are printed


def draw_lines(
    axes, sizes: list[int], cells: list[list[Cell]], rows: list[Row], sign: str = ""
) -> list[KeyEntry]:
    """Draw a line per row, the rows a little apart.

    Args:
        sign: `+` writes the sign of positive numbers, too.

    Returns:
        An entry of the key for each line, with its last value.
    """
    key = []
    for place, (row, row_cells) in enumerate(zip(rows, cells, strict=True)):
        points = size_points(sizes, row_cells)
        if not points:
            continue
        offset = OFFSET ** (place - (len(rows) - 1) / 2)
        line = axes.errorbar(
            [point.size * offset for point in points],
            [point.mean for point in points],
            [point.margin for point in points],
            **row_style(row, place),
            **LINE_STYLE,
        )
        last = points[-1]
        text = f"{row.label}: {last.mean:{sign}z.{last.digits}f}"
        key.append(KeyEntry(line, text, last.mean))
    return key


def size_points(sizes: list[int], cells: list[Cell]) -> list[SizePoint]:
    """List the scores of a row, the smallest size first."""
    points = []
    for size, cell in zip(sizes, cells, strict=True):
        if cell.ours:
            points.append(SizePoint(size, cell.ours.mean, cell.ours.margin, cell.digits))
    return sorted(points, key=lambda point: point.size)


def set_size_axis(axes, sizes: list[int]) -> None:
    """Give the sizes a logarithmic axis, with a tick at each."""
    ticks = sorted(set(sizes))
    rotation = 90 if len(ticks) > MOST_HORIZONTAL_LABELS else 0
    axes.set(xscale="log", xlim=(ticks[0] / 1.5, ticks[-1] * 1.5))
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=rotation)
    axes.minorticks_off()


def size_label(view: GridView) -> str:
    label = "sentences in the training pool"
    if view.sentences_seen:
        label += f"\n(a run sees {view.sentences_seen:,})"
    return label
