"""Figures that papers draw as bars: a dot with its 95 % interval per row, grouped by column."""

from dataclasses import dataclass

from csebench.report.figures.lines import ChartLine, draw_chart_lines, draw_zero
from csebench.report.figures.parts import (
    DrawnFigure,
    baseline_differences,
    figure_of_cells,
    interval_text,
    untrained_score,
)
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.numbers.stats import Summary
from csebench.score.drawing import row_colour
from csebench.score.themes import GREY


@dataclass(frozen=True)
class DotLine:
    """A line of the figure: the heading of a column, or a row in it."""

    chart_line: ChartLine
    summary: Summary | None = None  # None: no dot
    colour: str = GREY


def draw_dots(figure, view: GridView) -> DrawnFigure:
    """Draw the cells as dots. With a baseline, draw their differences to it instead."""
    lines = dot_lines(view)
    if not lines:
        return figure_of_cells(view, is_empty=True)

    untrained = untrained_score(view)
    if untrained is not None:
        number = f"{untrained.score:.{view.figure.digits}f}"
        lines.append(DotLine(ChartLine(f"{untrained.label} (dotted)", number)))
    axes, places = draw_chart_lines(figure, [line.chart_line for line in lines])
    if untrained is not None:
        axes.axvline(untrained.score, color=GREY, linestyle=":", linewidth=1.2, zorder=0)
    for place, line in zip(places, lines, strict=True):
        if line.summary is None:
            continue
        if view.figure.baseline:
            draw_zero(axes, place, line.chart_line)
        axes.errorbar(
            line.summary.mean,
            place,
            xerr=line.summary.margin,
            capsize=2,
            color=line.colour,
            marker="o",
        )
    return figure_of_cells(view, is_empty=False)


def dot_lines(view: GridView) -> list[DotLine]:
    """List the lines from the top. Rows and columns without scores are left out."""
    grid = view.figure
    cells = baseline_differences(view) if grid.baseline else view.rows
    sign = "+" if grid.baseline else ""
    rows = [row for row in range(len(cells)) if has_scores(cells[row])]
    lines = []
    for column_index, column in enumerate(grid.columns):
        if not any(cells[row][column_index].ours for row in rows):
            continue
        if len(grid.columns) > 1:
            lines.append(DotLine(ChartLine(column.label, is_heading=True)))
        for row in rows:
            cell = cells[row][column_index]
            number = interval_text(cell.ours, cell.digits, sign) if cell.ours else "–"
            chart_line = ChartLine(grid.rows[row].label, number)
            lines.append(DotLine(chart_line, cell.ours, row_colour(grid.rows[row], row)))
    return lines


def has_scores(cells: list[Cell]) -> bool:
    return any(cell.ours for cell in cells)
