"""Figures that papers draw as bars: a dot with its deviation per row, grouped by column."""

from dataclasses import dataclass

from csebench.report.figures.parts import (
    DrawnFigure,
    baseline_differences,
    draw_untrained,
    figure_of_cells,
)
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.drawing import GREY, WIDTH, row_colour


@dataclass(frozen=True)
class DotLine:
    """A line of the figure: the heading of a column, or a row in it."""

    label: str
    cell: Cell | None = None  # None: a heading
    colour: str = ""


def draw_dots(figure, view: GridView) -> DrawnFigure:
    """Draw the cells as dots. With a baseline, draw their differences to it instead."""
    grid = view.figure
    lines = dot_lines(view)

    # dots, with their values at the right
    axes = figure.subplots()
    for place, line in enumerate(lines):
        if line.cell is not None:
            draw_dot(axes, -place, line.cell, line.colour, is_difference=bool(grid.baseline))
    if grid.baseline:
        axes.axvline(0, color=GREY, linewidth=1)
    handles = draw_untrained(axes.axvline, view)

    # labels of lines
    axes.set_yticks([-place for place in range(len(lines))], [line.label for line in lines])
    for place, line in enumerate(lines):
        if line.cell is None:
            axes.get_yticklabels()[place].set_fontweight("bold")

    axes.set(ylim=(-max(len(lines), 1) + 0.4, 0.6), xlabel=grid.axis)
    figure.set_size_inches(WIDTH, 1.2 + 0.26 * max(len(lines), 4))
    if handles:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1))
    return figure_of_cells(view, is_empty=not lines)


def dot_lines(view: GridView) -> list[DotLine]:
    """List the lines from the top. Rows and columns without scores are left out."""
    grid = view.figure
    cells = baseline_differences(view) if grid.baseline else view.rows
    rows = [row for row in range(len(cells)) if has_scores(cells[row])]
    lines = []
    for column_index, column in enumerate(grid.columns):
        if not any(cells[row][column_index].ours for row in rows):
            continue
        if len(grid.columns) > 1:
            lines.append(DotLine(column.label))
        for row in rows:
            colour = row_colour(grid.rows[row], row)
            lines.append(DotLine(grid.rows[row].label, cells[row][column_index], colour))
    return lines


def has_scores(cells: list[Cell]) -> bool:
    return any(cell.ours for cell in cells)


def draw_dot(axes, y: float, cell: Cell, colour: str, is_difference: bool) -> None:
    if cell.ours is None:
        return
    mean = cell.ours.mean
    text = f"{mean:+z.{cell.digits}f}" if is_difference else f"{mean:z.{cell.digits}f}"
    axes.errorbar(mean, y, xerr=cell.ours.std, capsize=2, color=colour, marker="o", linestyle="")
    axes.annotate(
        text,
        (1.01, y),
        xycoords=("axes fraction", "data"),
        va="center",
        annotation_clip=False,
    )
