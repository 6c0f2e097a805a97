"""Figures of kind `curves`: a line per row over the sizes of the training set."""

from dataclasses import dataclass

from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.schema.paper import Row
from csebench.report.figures.parts import (
    DrawnFigure,
    baseline_differences,
    figure_of_cells,
    row_style,
    untrained_score,
)
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.drawing import WIDTH, row_colour
from csebench.score.end_labels import MarkLabel, write_end_labels
from csebench.score.themes import GREY

OFFSET = 1.035  # between rows at the same size: a factor, as sizes are on a logarithmic axis
MOST_LEVEL_TICKS = 5  # more labels of sizes are slanted
LINE_STYLE = {"markersize": 5, "linewidth": 1.5, "elinewidth": 0.9}
# inches
LEFT = 0.6  # of the axes
RIGHT = 2.3  # of the axes, for labels
AXES_HEIGHT = 2.7
ABOVE_AXES = 0.3  # for a title
BELOW_AXES = 0.75  # for slanted sizes
BELOW_ALL = 0.2  # for the label of the axis


def draw_curves(figure, view: GridView) -> DrawnFigure:
    """Draw the scores over the sizes. With a baseline, draw the differences to it in axes below."""
    grid = view.figure
    sentences = read_scale(view.scale).sizes
    sizes = [sentences[column.size] for column in grid.columns]
    scores, *differences = stacked_axes(figure, 2 if grid.baseline else 1)
    for axes in (scores, *differences):
        set_size_axis(axes, sizes)

    # scores, and the untrained encoder
    labels = draw_lines(scores, sizes, view.rows, grid.rows)
    is_empty = not labels
    untrained = untrained_score(view)
    if untrained is not None:
        text = f"{untrained.label}: {untrained.score:.{grid.digits}f}"
        labels.append(MarkLabel(text, untrained.score, GREY))
        scores.axhline(untrained.score, color=GREY, linestyle=":", linewidth=1.2, zorder=1)
    write_end_labels(scores, labels)

    # differences to the baseline, which is a line at 0
    for axes in differences:
        labels = draw_lines(axes, sizes, baseline_differences(view), grid.rows, sign="+")
        colour = row_colour(grid.rows[grid.baseline_row], grid.baseline_row)
        axes.axhline(0, color=colour, linewidth=1, zorder=1)
        write_end_labels(axes, [*labels, MarkLabel(f"{grid.baseline}: 0", 0, colour)])
        axes.set_title(f"Difference to {grid.baseline}, paired by seed")

    last_axes = [scores, *differences][-1]
    last_axes.set_xlabel(size_label(view))
    remark = "The labels give the values at the last size."
    return figure_of_cells(view, is_empty, remark)


def stacked_axes(figure, count: int) -> list:
    """Make axes below one another, with room for labels at the right."""
    part_height = ABOVE_AXES + AXES_HEIGHT + BELOW_AXES
    height = count * part_height + BELOW_ALL
    figure.set_size_inches(WIDTH, height)
    stacked = []
    for number in range(count):
        bottom = height - number * part_height - ABOVE_AXES - AXES_HEIGHT
        width = WIDTH - LEFT - RIGHT
        place = (LEFT / WIDTH, bottom / height, width / WIDTH, AXES_HEIGHT / height)
        stacked.append(figure.add_axes(place))
    return stacked


@dataclass(frozen=True)
class SizePoint:
    """The score of a row at a size of the training set."""

    size: int
    mean: float
    margin: float  # half the width of the 95 % interval
    digits: int  # that are printed


def draw_lines(
    axes, sizes: list[int], cells: list[list[Cell]], rows: list[Row], sign: str = ""
) -> list[MarkLabel]:
    """Draw a line per row, the rows a little apart.

    Args:
        sign: `+` writes the sign of positive numbers, too.

    Returns:
        A label for the end of each line, with its last value.
    """
    labels = []
    for place, (row, row_cells) in enumerate(zip(rows, cells, strict=True)):
        points = size_points(sizes, row_cells)
        if not points:
            continue
        offset = OFFSET ** (place - (len(rows) - 1) / 2)
        axes.errorbar(
            [point.size * offset for point in points],
            [point.mean for point in points],
            [point.margin for point in points],
            **row_style(row, place),
            **LINE_STYLE,
        )
        last = points[-1]
        text = f"{row.label}: {last.mean:{sign}z.{last.digits}f}"
        labels.append(MarkLabel(text, last.mean, row_colour(row, place)))
    return labels


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
    slanted = {}
    if len(ticks) > MOST_LEVEL_TICKS:
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set(xscale="log", xlim=(ticks[0] / 1.5, ticks[-1] * 1.5))
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], **slanted)
    axes.minorticks_off()


def size_label(view: GridView) -> str:
    label = "sentences in the training pool"
    if view.sentences_seen:
        label += f"; every run sees {view.sentences_seen:,}"
    return label
