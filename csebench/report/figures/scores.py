"""The papers' data figures, drawn from our scores as SVG, with their numbers as CSV.

The same scores always give the same bytes. Each kind of figure has a module in this folder.
Figures from per-item values are drawn by evaluators (evaluators/_template.py), and panels.py lays
them out.
"""

import textwrap
from pathlib import Path

from csebench.base.terminal import counted
from csebench.plan.targets import grid_path
from csebench.report.figures.curves import draw_curves
from csebench.report.figures.dots import draw_dots
from csebench.report.figures.panels import draw_panels
from csebench.report.figures.parts import DrawnFigure
from csebench.report.figures.scatter import draw_scatter
from csebench.report.figures.training import draw_training
from csebench.report.numbers.cells import GridView
from csebench.score.drawing import STYLE, WIDTH, write_figure

CHARACTERS_PER_INCH = 14  # that fit into a line of text


def draw_figure(view: GridView) -> list[Path]:
    """Draw a paper's figure as `.svg`, and write its numbers as `.csv`. Missing cells are empty.

    Returns:
        The files that were written. The list is empty if the picture exists and cannot be drawn
        again on this machine.
    """
    import matplotlib
    from matplotlib.figure import Figure

    svg = grid_path(view.paper, view.name, view.scale, "svg")
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
        drawn = draw_by_kind(figure, view)
        note = drawn.note
        if view.elsewhere:
            note += f"; left out: {counted(view.elsewhere, 'run')} scored on other test data"

        if drawn.is_empty:
            scored_runs, _ = view.progress
            if scored_runs and svg.exists():
                # It was drawn on a machine with the per-item values, which are not published.
                return []
            figure = Figure(figsize=(WIDTH, 0.3), layout="constrained")
            note = "nothing to draw: no scores"

        add_texts(figure, view, note)
        return write_figure(svg, figure, drawn.table)


def draw_by_kind(figure, view: GridView) -> DrawnFigure:
    match view.figure.kind:
        case "curves":
            return draw_curves(figure, view)
        case "bars":
            return draw_dots(figure, view)
        case "scatter":
            return draw_scatter(figure, view)
        case "training":
            return draw_training(figure, view)
    return draw_panels(figure, view)  # a kind that an evaluator declares


def add_texts(figure, view: GridView, note: str) -> None:
    """Put the title above a figure and a note below, and make the figure higher by their lines."""
    heading = f"{view.grid.title} (scale {view.scale})"
    if not view.judged:
        heading = f"{view.grid.title} (scale {view.scale}, not comparable with the paper)"
    columns = int(CHARACTERS_PER_INCH * figure.get_figwidth())
    heading = textwrap.fill(heading, columns)
    note = textwrap.fill(note, columns)
    figure.set_figheight(
        figure.get_figheight() + 0.2 * heading.count("\n") + 0.18 * note.count("\n") + 0.45
    )
    figure.suptitle(heading)
    figure.supxlabel(note, x=0.01, ha="left", fontsize=9)
