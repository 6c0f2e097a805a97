"""The picture of a table: its declared comparisons as a forest plot. Same comparisons, same
bytes."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from csebench.plan.targets import grid_path
from csebench.report.numbers.cells import GridView
from csebench.report.numbers.compare import Answer, Comparison
from csebench.report.words.comparisons import ends_text, short_label
from csebench.score.drawing import GREY, STYLE, WIDTH, write_figure

LINE = 0.25  # inches
LEFT, AXIS = 2.7, 2.6  # inches: left of the axis, of the axis
BLUE = "#2F7ED8"


def draw_forest(view: GridView, answers: list[Answer], title: str) -> list[Path]:
    """Draws the tested comparisons of a table beside its page; returns the files written."""
    import matplotlib
    from matplotlib.figure import Figure

    groups = [
        (a, members)
        for a in answers
        if (members := [c for c in a.comparisons if c.low is not None])
    ]
    tested = [comparison for _, members in groups for comparison in members]
    headings = [textwrap.wrap(answer.family.question, 84) for answer, _ in groups]
    heading = "" if title == groups[0][0].family.question else textwrap.fill(title, 84)
    lines = len(tested) + sum(map(len, headings))
    below, above = 0.55, 0.1 + 0.2 * len(heading.splitlines())
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, LINE * lines + below + above))
        height = figure.get_figheight()
        axes = figure.add_axes((LEFT / WIDTH, below / height, AXIS / WIDTH, LINE * lines / height))
        # the axis holds 0 and all bounds but those beyond twice what three quarters of them need
        bounds = [end for c in tested for end in (c.family_low, c.family_high) if end is not None]
        reach = max(2 * float(np.quantile(np.abs(bounds), 0.75)), 0.05)
        left, right = max(min(*bounds, 0.0), -reach), min(max(*bounds, 0.0), reach)
        axes.set_xlim(left - 0.05 * (right - left), right + 0.05 * (right - left))
        y, ticks, labels = 0, [], []
        for (_, members), words in zip(groups, headings, strict=True):
            for line in words:
                axes.annotate(
                    line,
                    (0.01, y),
                    xycoords=("figure fraction", "data"),
                    va="center",
                    fontweight="bold",
                )
                y += 1
            axes.plot([0, 0], [y - 0.5, y + len(members) - 0.5], color=GREY, linewidth=1, zorder=1)
            for comparison, label in zip(members, row_labels(members), strict=True):
                draw_comparison(
                    axes, y, comparison, comparison.printed if comparison.is_judged else None
                )
                ticks.append(y)
                labels.append(label)
                y += 1
        axes.set_yticks(ticks, labels)
        axes.set_ylim(y - 0.4, -0.6)
        seeds = ends_text(c.estimate.seeds for c in tested if c.estimate)
        signs = ""
        if any(c.is_judged and c.printed is not None for c in tested):
            signs += "; |: printed"
        if any(c.differs for c in tested):
            signs += "; open: not matched"
        axes.set_xlabel(f"difference in points, 95 % interval; n = {seeds}{signs}")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.suptitle(heading, x=0.01, y=1 - 0.06 / height, ha="left", va="top")
        return write_figure(grid_path(view.paper, view.name, view.scale, "svg"), figure)


def draw_comparison(axes, y: float, comparison: Comparison, printed: float | None) -> None:
    """A dot with its interval, open where the rows are not matched; an arrow at an edge that the
    interval goes beyond. A line at the printed difference; its number where that lies outside."""
    low, high = comparison.family_low, comparison.family_high
    assert comparison.estimate is not None and low is not None and high is not None
    gain, (left, right) = comparison.estimate.gain, axes.get_xlim()
    face = "none" if comparison.differs else BLUE
    style = {"color": BLUE, "markerfacecolor": face, "markersize": 6}
    axes.errorbar(
        gain, y, xerr=[[gain - low], [high - gain]], fmt="o", elinewidth=1.6, capsize=2, **style
    )
    for place, marker, is_beyond in ((0.02, "<", low < left), (0.98, ">", high > right)):
        if is_beyond:
            axes.plot(place, y, marker, transform=axes.get_yaxis_transform(), **style)
    text = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center"}
    names = [setting.name for setting in comparison.differs]  # what else differs, the first by name
    note = f", other {names[0]}{f' + {len(names) - 1}' if len(names) > 1 else ''}" if names else ""
    if printed is not None and left < printed < right:
        axes.plot(printed, y, "|", color=GREY, markersize=12, markeredgewidth=1.6)
    elif printed is not None:
        note = f", printed {printed:+.2f}{note}"
    axes.annotate(f"{gain:+.2f}{note}", (1, y), (6, 0), annotation_clip=False, **text)


def row_labels(comparisons: Sequence[Comparison]) -> list[str]:
    """What tells the comparisons of a question apart: their rows, what one row is compared with,
    or columns."""
    one_row, one_base, one_column = (
        len({getattr(c, key) for c in comparisons}) == 1 for key in ("row", "against", "columns")
    )
    labels, before = [], None
    for c in comparisons:
        row, against = short_label(c.row), short_label(c.against)
        pair = (
            f"{row} − {against}"
            if one_row == one_base
            else f"against {against}"
            if one_row
            else row
        )
        pair = textwrap.shorten(pair, 35, placeholder=" …") if (c.row, c.against) != before else ""
        labels.append(", ".join(filter(None, [pair, "" if one_column else c.columns])))
        before = (c.row, c.against)
    return labels
