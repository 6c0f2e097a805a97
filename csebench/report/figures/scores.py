"""The papers' data figures, drawn from our scores as SVG, with their numbers as CSV.

The same scores always give the same bytes. Each kind of figure has a module in this folder.
Figures from per-item values are drawn by evaluators (evaluators/_template.py), and panels.py lays
them out.
"""

from pathlib import Path

from csebench.base.terminal import capitalised, counted
from csebench.plan.targets import grid_path
from csebench.report.figures.curves import draw_curves
from csebench.report.figures.dots import draw_dots
from csebench.report.figures.panels import draw_panels
from csebench.report.figures.parts import DrawnFigure
from csebench.report.figures.scatter import draw_scatter
from csebench.report.figures.training import draw_training
from csebench.report.numbers.cells import GridView
from csebench.score.drawing import STYLE, WIDTH, add_heading, write_figure


def draw_figure(view: GridView, title: str = "") -> list[Path]:
    """Draw a paper's figure as `.svg`, and write its numbers as `.csv`. Missing cells are empty.

    Args:
        title: what the figure shows, if a comparison of its rows says it.

    Returns:
        The files that were written. The list is empty if the picture exists and cannot be drawn
        again on this machine.
    """
    import matplotlib
    from matplotlib.figure import Figure

    svg = grid_path(view.paper, view.name, view.scale, "svg")
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.4))
        drawn = draw_by_kind(figure, view)
        note = drawn.note
        if view.elsewhere_count:
            note += f" Left out: {counted(view.elsewhere_count, 'run')} scored on other test data."

        if drawn.is_empty:
            scored_runs, _ = view.progress
            if scored_runs and svg.exists():
                # It was drawn on a machine with the per-item values, which are not published.
                return []
            figure = Figure(figsize=(WIDTH, 0.1))
            note = "Nothing to draw: no scores."

        add_heading(figure, title or view.grid.title, figure_subtitle(view, note, title))
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


def figure_subtitle(view: GridView, note: str, title: str) -> str:
    """Name the figure, if its title is a finding, and its scale. The note follows."""
    scale = f"scale {view.scale}"
    if not view.judged:
        scale += ", not comparable with the paper"
    if title:
        return f"{view.grid.title}, {scale}. {note}"
    return f"{capitalised(scale)}. {note}"
