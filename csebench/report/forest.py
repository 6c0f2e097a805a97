"""The picture of a table: its declared comparisons as a forest plot. Same comparisons, same bytes."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from csebench.plan.targets import grid_path
from csebench.report.cells import GridView
from csebench.report.compare import Answer, Comparison
from csebench.report.words import short_label
from csebench.score.drawing import STYLE, write_files

LINE = 0.26  # inches
GREY = "#808080"  # on white and on black alike
BLUE = "#2F7ED8"
DARK_AND_LIGHT: dict[Any, Any] = {
    "savefig.transparent": True,
    "text.color": GREY,
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "svg.fonttype": "none",  # text stays text
}


def draw_forest(view: GridView, answers: list[Answer], title: str) -> list[Path]:
    """Draws the tested comparisons of a table beside its page; returns the files written, none without any."""
    groups = [(a, [c for c in a.comparisons if c.low is not None and c.high is not None]) for a in answers]
    groups = [(answer, tested) for answer, tested in groups if tested]
    if not groups:
        return []
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE | DARK_AND_LIGHT):
        count = sum(len(tested) + 1 for _, tested in groups)
        figure = Figure(figsize=(8.6, LINE * count + 1.1), layout="constrained")
        axes = figure.subplots()
        reach = axis_reach(
            [end for answer, tested in groups for c in tested for end in ends(c, answer.family.primary)]
        )
        axes.set_xlim(-reach, reach)
        y, ticks, labels = 0, [], []
        for answer, tested in groups:
            axes.annotate(
                textwrap.shorten(answer.family.question, 80),
                (0, -y),
                xycoords=("axes fraction", "data"),
                xytext=(2, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
                fontweight="bold",
            )
            y += 1
            for comparison in tested:
                draw_comparison(axes, -y, comparison, answer.family.primary, reach)
                ticks.append(-y)
                labels.append(line_label(comparison, len({c.columns for c in tested}) > 1))
                y += 1
        axes.axvline(0, color=GREY, linewidth=1)
        axes.set_yticks(ticks, labels, fontsize=9)
        axes.set_ylim(-y + 0.4, 0.6)
        axes.set_xlabel("difference in points; more is better")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.suptitle(title)
        svg = io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    return write_files(grid_path(view.paper, view.name, view.scale, "svg").with_suffix(""), {".svg": svg.getvalue()})


def draw_comparison(axes, y: float, comparison: Comparison, primary: bool, reach: float) -> None:
    """A dot with its interval, open where the rows are not matched; an arrow at the edge where it lies outside."""
    low, high = ends(comparison, primary)
    assert comparison.estimate is not None
    gain = comparison.estimate.gain
    face = BLUE if comparison.matched else "none"
    style = {"color": BLUE, "markerfacecolor": face, "markersize": 6, "elinewidth": 1.6, "capsize": 2}
    if abs(gain) < reach:
        axes.errorbar(gain, y, xerr=[[gain - low], [high - gain]], fmt="o", **style)
    else:
        axes.plot(
            0.97 * reach * (1 if gain > 0 else -1), y, ">" if gain > 0 else "<", color=BLUE, markerfacecolor=face
        )
    more = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center", "fontsize": 9}
    text = f"{gain:+.2f}, n = {comparison.estimate.seeds}"
    text += "" if comparison.matched else f"; other {', '.join(s.name for s in comparison.differs)}"
    axes.annotate(text, (1, y), xytext=(6, 0), annotation_clip=False, **more)


def ends(comparison: Comparison, primary: bool) -> tuple[float, float]:
    """The interval that is drawn: of the comparison itself, or the simultaneous one of its family."""
    low, high = (comparison.low, comparison.high) if primary else (comparison.family_low, comparison.family_high)
    assert low is not None and high is not None
    return low, high


def axis_reach(bounds: list[float]) -> float:
    """Where the axis ends: at twice what three quarters of all bounds need, or at the farthest."""
    sizes = np.abs(bounds)
    return float(max(min(1.1 * sizes.max(), 2 * np.quantile(sizes, 0.75)), 0.1))


def line_label(comparison: Comparison, with_column: bool) -> str:
    text = f"{short_label(comparison.row)} − {short_label(comparison.against)}"
    return f"{text}, {comparison.columns}" if with_column else text
