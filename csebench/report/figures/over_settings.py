"""The picture of a table over random settings: a row against another, a point for each setting.

Each comparison has a panel. A point above the diagonal is a setting at which the row is better.
Where less is better, both axes point the other way.
The same scores always give the same bytes.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from csebench.plan.rows import short_label
from csebench.plan.targets import grid_path
from csebench.report.numbers.cells import GridView
from csebench.report.numbers.compare import Comparison
from csebench.report.numbers.over_settings import SharedDraw
from csebench.report.words.comparisons import numbers_text
from csebench.score.drawing import COLOURS, MARKERS, STYLE, WIDTH, add_heading, write_figure
from csebench.score.themes import GREY, on_white

PANELS_IN_A_ROW = 3
PANEL_HEIGHT = 2.7  # inches
SETTINGS_SUBTITLE = (
    "A point for each of n random settings that both rows share, in printed units. Above a panel:"
    " mean difference in points (0.01 of a score) with an interval at the stated level."
)
POINTS = ["row", "against", "seed", "settings", "value", "against_value", "diverged"]


def draw_over_settings(
    view: GridView, comparisons: Sequence[Comparison], title: str = ""
) -> list[Path]:
    """Draw a panel for each comparison (at least one) into the folder of the table's page.

    Args:
        title: the answer or the question of the table; empty: its name.

    Returns:
        The files that were written: the picture, and its points as CSV.
    """
    import matplotlib
    from matplotlib.figure import Figure

    columns = min(len(comparisons), PANELS_IN_A_ROW)
    rows = -(-len(comparisons) // PANELS_IN_A_ROW)  # rounded up
    poolers = poolers_of(comparisons)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, PANEL_HEIGHT * rows + 0.3), layout="constrained")
        panels = list(figure.subplots(rows, columns, squeeze=False).flat)
        for axes, comparison in zip(panels, comparisons, strict=False):
            draw_row_over_row(axes, comparison, poolers)
        for axes in panels[len(comparisons) :]:
            axes.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=len(labels))
        add_heading(figure, title or view.grid.title, SETTINGS_SUBTITLE)
        table = [POINTS, *point_rows(comparisons)]
        return write_figure(grid_path(view.paper, view.name, view.scale, "svg"), figure, table)


def poolers_of(comparisons: Sequence[Comparison]) -> list[str]:
    """List the poolers that were drawn, in alphabetical order."""
    poolers = set()
    for comparison in comparisons:
        assert comparison.over_settings is not None
        poolers |= {pooler_of(draw) for draw in comparison.over_settings.draws}
    return sorted(poolers)


def pooler_of(draw: SharedDraw) -> str:
    """Name the pooler that both rows have at a setting."""
    return str(draw.settings.get("pooler", "each row's own pooler"))


def draw_row_over_row(axes, comparison: Comparison, poolers: Sequence[str]) -> None:
    """Draw the points of one comparison, and the diagonal."""
    over = comparison.over_settings
    assert over is not None
    for place, pooler in enumerate(poolers):
        draws = [draw for draw in over.draws if pooler_of(draw) == pooler]
        axes.scatter(
            [draw.against.value for draw in draws],
            [draw.row.value for draw in draws],
            s=24,
            color=on_white(COLOURS[place % len(COLOURS)]),
            marker=MARKERS[place % len(MARKERS)],
            linewidths=0,
            label=pooler,
        )
    values = [value for draw in over.draws for value in (draw.row.value, draw.against.value)]
    margin = 0.06 * (max(values) - min(values)) or 1.0
    limits = (min(values) - margin, max(values) + margin)
    axes.plot(limits, limits, color=GREY, linewidth=0.8, zorder=0)
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    first_cell, _ = comparison.pairs[0]
    if first_cell.sign < 0:
        axes.invert_xaxis()
        axes.invert_yaxis()
    axes.set_xlabel(short_label(comparison.against))
    axes.set_ylabel(short_label(comparison.row))
    title = f"higher in {over.higher} of n = {len(over.draws)}"
    if comparison.estimate is not None:
        title = f"{numbers_text(comparison)}\n{title}"
    axes.set_title(title)


def point_rows(comparisons: Sequence[Comparison]) -> Iterator[list]:
    """Yield the points of all comparisons as rows under POINTS."""
    for comparison in comparisons:
        assert comparison.over_settings is not None
        for draw in comparison.over_settings.draws:
            settings = " ".join(f"{key}={value}" for key, value in draw.settings.items())
            diverged = int(draw.row.diverged) + int(draw.against.diverged)
            values = [draw.row.value, draw.against.value]
            yield [comparison.row, comparison.against, draw.seed, settings, *values, diverged]
