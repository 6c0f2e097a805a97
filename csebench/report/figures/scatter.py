"""Figures of kind `scatter`: a point per row, its first column over its second one."""

import textwrap

from csebench.plan.schema.paper import Figure
from csebench.report.figures.narrow import KeyEntry, stacked_axes, write_key
from csebench.report.figures.parts import DrawnFigure, figure_of_cells
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.numbers.stats import Summary
from csebench.score.drawing import MARKERS, row_colour

LARGEST_MARKER = 18  # points; every further row has a smaller one, so that none is hidden
SMALLEST_MARKER = 5
AXIS_LABEL_CHARACTERS = 34  # that fit beside the axes


def draw_scatter(figure, view: GridView) -> DrawnFigure:
    """Draw an open point per row, named below the axes, and dotted lines at printed values.

    A third column is a number beside the name.
    """
    grid = view.figure
    (axes,) = stacked_axes(figure, 1, len(grid.rows))
    key = []
    for place, (row, cells) in enumerate(zip(grid.rows, view.rows, strict=True)):
        x, y, *others = cells
        colour = row_colour(row, place)
        draw_printed(axes, f"{row.label}, published", x, y, colour)
        if x.ours and y.ours:
            point = draw_point(axes, x.ours, y.ours, place, len(grid.rows), colour)
            text = row.label
            if others and others[0].ours:
                text += f": {others[0].number(others[0].mean)}"
            key.append(KeyEntry(point, text, y.ours.mean))

    axes.set(
        xlabel=x_label(grid), ylabel="\n".join(textwrap.wrap(grid.axis, AXIS_LABEL_CHARACTERS))
    )
    axes.margins(0.12)
    if not axes.has_data():
        return figure_of_cells(view, is_empty=True)
    write_key(axes, key, mark_scale=0.5)
    remark = ""
    if len(grid.columns) > 2:
        remark = f"Numbers beside the names: {grid.columns[2].label}."
    return figure_of_cells(view, is_empty=False, remark=remark)


def draw_point(axes, x: Summary, y: Summary, place: int, rows: int, colour: str):
    """Draw the means of a row as an open marker, with their 95 % intervals.

    Returns:
        What was drawn, for the key.
    """
    return axes.errorbar(
        x.mean,
        y.mean,
        y.margin,
        x.margin,
        color=colour,
        linestyle="",
        marker=MARKERS[place % len(MARKERS)],
        markersize=marker_size(place, rows),
        markerfacecolor="none",
        markeredgewidth=1.1,
        elinewidth=0.7,
    )


def draw_printed(axes, text: str, x: Cell, y: Cell, colour: str) -> None:
    """Draw dotted lines at the printed values, if our runs can be judged by them."""
    style = {"color": colour, "linestyle": ":"}
    if x.published and x.judged:
        axes.axvline(x.published.value, **style)
        top = (x.published.value, 1)
        axes.annotate(text, top, xycoords=("data", "axes fraction"), color=colour)
    if y.published and y.judged:
        axes.axhline(y.published.value, **style)
        left = (0, y.published.value)
        axes.annotate(text, left, xycoords=("axes fraction", "data"), color=colour)


def marker_size(place: int, count: int) -> float:
    """Give each row its own size of marker, the first row the largest."""
    return LARGEST_MARKER - (LARGEST_MARKER - SMALLEST_MARKER) * place / max(count - 1, 1)


def x_label(grid: Figure) -> str:
    column = grid.columns[0]
    return f"{column.label} (less is better)" if column.lower else column.label
