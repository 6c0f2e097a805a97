"""Figures of kind `curves`: a line per row over the sizes of the training set."""

from dataclasses import dataclass

from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.schema.paper import Row
from csebench.report.figures.parts import (
    RIGHT_OF_AXES,
    DrawnFigure,
    baseline_differences,
    draw_untrained,
    figure_of_cells,
    row_style,
)
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.drawing import WIDTH

OFFSET = 1.035  # between rows at the same size: a factor, as sizes are on a logarithmic axis
MOST_LEVEL_TICKS = 5  # more labels of sizes are slanted
LINE_STYLE = {"markersize": 5, "linewidth": 1.5, "elinewidth": 0.9}


def draw_curves(figure, view: GridView) -> DrawnFigure:
    """Draw the scores over the sizes. With a baseline, draw the differences to it in axes below."""
    grid = view.figure
    sentences = read_scale(view.scale).sizes
    sizes = [sentences[column.size] for column in grid.columns]
    axes_count = 2 if grid.baseline else 1
    figure.set_size_inches(WIDTH, 3.6 * axes_count)
    axes = figure.subplots(axes_count, squeeze=False)[:, 0]

    # scores
    handles = draw_lines(axes[0], sizes, view.rows, grid.rows)
    untrained = draw_untrained(axes[0].axhline, view)
    axes[0].set_ylabel(grid.axis.replace(", ", ",\n"))

    # differences to the baseline, which is a line at 0
    if grid.baseline:
        draw_lines(axes[1], sizes, baseline_differences(view), grid.rows)
        style = row_style(grid.rows[grid.baseline_row], grid.baseline_row)
        axes[1].axhline(0, **style | {"marker": "", "linewidth": 1, "zorder": 1})
        axes[1].set_ylabel(f"difference to {grid.baseline},\npaired by seed")

    # sizes and legend
    for ax in axes:
        set_size_axis(ax, sizes)
    axes[-1].set_xlabel(size_label(view))
    if handles:
        axes[0].legend(handles=handles + untrained, **RIGHT_OF_AXES)
    return figure_of_cells(view, is_empty=not handles)


@dataclass(frozen=True)
class SizePoint:
    """The scores of a row at a size of the training set."""

    size: int
    mean: float
    std: float


def draw_lines(axes, sizes: list[int], cells: list[list[Cell]], rows: list[Row]) -> list:
    """Draw a line per row, the rows a little apart.

    Returns:
        The lines for a legend, in the order in which they end, the highest first.
    """
    lines: list[tuple[float, object]] = []  # the last mean of each line, and the line
    for place, (row, row_cells) in enumerate(zip(rows, cells, strict=True)):
        points = size_points(sizes, row_cells)
        if not points:
            continue
        offset = OFFSET ** (place - (len(rows) - 1) / 2)
        line = axes.errorbar(
            [point.size * offset for point in points],
            [point.mean for point in points],
            [point.std for point in points],
            **row_style(row, place),
            **LINE_STYLE,
            label=row.label,
        )
        lines.append((points[-1].mean, line))

    def highest_first(last_mean_and_line: tuple[float, object]) -> float:
        last_mean, _ = last_mean_and_line
        return -last_mean

    return [line for _, line in sorted(lines, key=highest_first)]


def size_points(sizes: list[int], cells: list[Cell]) -> list[SizePoint]:
    """List the scores of a row, the smallest size first."""
    points = []
    for size, cell in zip(sizes, cells, strict=True):
        if cell.ours:
            points.append(SizePoint(size, cell.ours.mean, cell.ours.std or 0.0))
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
