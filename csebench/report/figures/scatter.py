"""Figures of kind `scatter`: a point per row, its first column over its second one."""

from csebench.plan.schema.paper import Figure
from csebench.report.figures.parts import RIGHT_OF_AXES, DrawnFigure, figure_of_cells
from csebench.report.numbers.cells import GridView
from csebench.score.drawing import MARKERS, row_colour


def draw_scatter(figure, view: GridView) -> DrawnFigure:
    """Draw a point per row, and dotted lines at printed values. A third column is in the legend."""
    grid = view.figure
    axes = figure.subplots()
    for place, (row, cells) in enumerate(zip(grid.rows, view.rows, strict=True)):
        x, y, *others = cells
        colour = row_colour(row, place)

        # our scores
        label = row.label
        if others and others[0].ours:
            label += f": {others[0].ours.mean:.2f}"
        if x.ours and y.ours:
            axes.errorbar(
                x.ours.mean,
                y.ours.mean,
                y.ours.std,
                x.ours.std,
                color=colour,
                linestyle="",
                marker=MARKERS[place % len(MARKERS)],
                markersize=8,
                label=label,
            )

        # printed values, if our runs can be judged by them
        style = {"color": colour, "linestyle": ":", "label": f"{row.label}, published"}
        if x.published and x.judged:
            axes.axvline(x.published.value, **style)
        if y.published and y.judged:
            axes.axhline(y.published.value, **style)

    axes.set(xlabel=x_label(grid), ylabel=grid.axis)
    axes.margins(0.12)
    if not axes.has_data():
        return figure_of_cells(view, is_empty=True)
    title = grid.columns[2].label if len(grid.columns) > 2 else None
    axes.legend(**RIGHT_OF_AXES, title=title)
    return figure_of_cells(view, is_empty=False)


def x_label(grid: Figure) -> str:
    column = grid.columns[0]
    return f"{column.label} (less is better)" if column.lower else column.label
