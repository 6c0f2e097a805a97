"""The picture of a table: its declared comparisons as a forest plot.

The comparisons of a question stand below its text. Each has a line with a dot at the difference,
and the 95 % interval. The same comparisons always give the same bytes.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from csebench.plan.targets import grid_path
from csebench.report.numbers.cells import GridView
from csebench.report.numbers.compare import Answer, Comparison
from csebench.report.words.comparisons import ends_text, short_label
from csebench.score.drawing import GREY, STYLE, WIDTH, write_figure

LINE = 0.25  # inches: height of a line
LEFT = 2.7  # inches: width of the labels
AXIS = 2.6  # inches: width of the axis
BELOW = 0.55  # inches: height of the ticks and the label of the axis
TITLE_WIDTH = 84  # characters that fit into a line of the figure
LABEL_WIDTH = 35  # characters of a label
BLUE = "#2F7ED8"


@dataclass(frozen=True)
class QuestionGroup:
    """A question with its tested comparisons."""

    question: str
    comparisons: list[Comparison]

    @property
    def heading(self) -> list[str]:
        """The question, wrapped into lines."""
        return textwrap.wrap(self.question, TITLE_WIDTH)


def draw_forest(view: GridView, answers: list[Answer], title: str) -> list[Path]:
    """Draw the tested comparisons of a table (at least one) into the folder of its page.

    Returns:
        The files that were written.
    """
    path = grid_path(view.paper, view.name, view.scale, "svg")
    return draw_question_groups(tested_groups(answers), title, path)


def draw_question_groups(groups: list[QuestionGroup], title: str, path: Path) -> list[Path]:
    """Draw tested comparisons (at least one) below their questions.

    Returns:
        The files that were written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    tested = list(chain.from_iterable(group.comparisons for group in groups))
    line_count = len(tested) + sum(len(group.heading) for group in groups)
    suptitle = textwrap.fill(title, TITLE_WIDTH)
    if title == groups[0].question:  # it is the first heading
        suptitle = ""
    above = 0.1 + 0.2 * len(suptitle.splitlines())

    plain_text: dict[Any, Any] = {"text.parse_math": False}  # a `$` in a name is a `$`
    with matplotlib.rc_context(STYLE | plain_text):
        figure = Figure(figsize=(WIDTH, LINE * line_count + BELOW + above))
        height = figure.get_figheight()
        axes = figure.add_axes(
            (LEFT / WIDTH, BELOW / height, AXIS / WIDTH, LINE * line_count / height)
        )
        axes.set_xlim(axis_limits(tested))
        draw_groups(axes, groups)
        axes.set_xlabel(axis_label(tested))
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.suptitle(suptitle, x=0.01, y=1 - 0.06 / height, ha="left", va="top")
        return write_figure(path, figure)


def tested_groups(answers: list[Answer]) -> list[QuestionGroup]:
    """Group comparisons by question. Leave out comparisons without an interval."""
    groups = []
    for answer in answers:
        tested = [comparison for comparison in answer.comparisons if comparison.low is not None]
        if tested:
            groups.append(QuestionGroup(answer.family.question, tested))
    return groups


# ---------------------------------------------------------------- the axis


def axis_limits(comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """Choose limits that hold 0 and all intervals, except bounds far beyond the others."""
    bounds: list[float] = []
    for comparison in comparisons:
        for bound in (comparison.family_low, comparison.family_high):
            if bound is not None:
                bounds.append(bound)
    # twice as far from 0 as three quarters of the bounds
    reach = max(2 * float(np.quantile(np.abs(bounds), 0.75)), 0.05)
    left = max(min(*bounds, 0.0), -reach)
    right = min(max(*bounds, 0.0), reach)
    return left - 0.05 * (right - left), right + 0.05 * (right - left)


def axis_label(comparisons: Sequence[Comparison]) -> str:
    """Say what is drawn, from how many seeds, and what the signs mean."""
    label = f"difference in points, 95 % interval; n = {drawn_seeds_text(comparisons)}"
    if any(c.is_judged and c.printed is not None for c in comparisons):
        label += "; |: printed"
    if any(c.differs for c in comparisons):
        label += "; open: not matched"
    return label


def drawn_seeds_text(comparisons: Sequence[Comparison]) -> str:
    """Write the seeds that all comparisons have, as `3` or `5 + 2`, or else the range of them."""
    counts = {c.estimate.seed_counts for c in comparisons if c.estimate}
    if len(counts) == 1:
        return " + ".join(map(str, counts.pop()))
    return ends_text(chain.from_iterable(counts))


# ---------------------------------------------------------------- lines


def draw_groups(axes, groups: list[QuestionGroup]) -> None:
    """Draw the lines from the top, each 1 below the line before it."""
    y = 0
    ticks: list[int] = []
    labels: list[str] = []
    for group in groups:
        for text in group.heading:
            draw_heading(axes, y, text)
            y += 1
        # a vertical line at 0 for the comparisons of this question
        ends = [y - 0.5, y + len(group.comparisons) - 0.5]
        axes.plot([0, 0], ends, color=GREY, linewidth=1, zorder=1)
        labels += row_labels(group.comparisons)
        for comparison in group.comparisons:
            printed = comparison.printed if comparison.is_judged else None
            draw_comparison(axes, y, comparison, printed)
            ticks.append(y)
            y += 1
    axes.set_yticks(ticks, labels)
    axes.set_ylim(y - 0.4, -0.6)


def draw_heading(axes, y: float, text: str) -> None:
    coordinates = ("figure fraction", "data")
    axes.annotate(text, (0.01, y), xycoords=coordinates, va="center", fontweight="bold")


def draw_comparison(axes, y: float, comparison: Comparison, printed: float | None) -> None:
    """Draw a dot with its interval, and write the difference at the right.

    The dot is open if the settings of the rows are not matched. An arrow stands at the edge of the
    axis if the interval goes beyond it. The printed difference is a line, or a number if it lies
    outside the axis.
    """
    estimate = comparison.estimate
    low = comparison.family_low
    high = comparison.family_high
    assert estimate is not None and low is not None and high is not None
    gain = estimate.gain
    left, right = axes.get_xlim()

    # dot and interval
    face = "none" if comparison.differs else BLUE
    style = {"color": BLUE, "markerfacecolor": face, "markersize": 6}
    errors = [[gain - low], [high - gain]]
    axes.errorbar(gain, y, xerr=errors, fmt="o", elinewidth=1.6, capsize=2, **style)

    # arrows at the edges
    at_edge = {"transform": axes.get_yaxis_transform(), **style}
    if low < left:
        axes.plot(0.02, y, "<", **at_edge)
    if high > right:
        axes.plot(0.98, y, ">", **at_edge)

    # the printed difference
    text = f"{gain:+z.2f}"
    if printed is not None and left < printed < right:
        axes.plot(printed, y, "|", color=GREY, markersize=12, markeredgewidth=1.6)
    elif printed is not None:
        text += f", printed {printed:+z.2f}"

    # the number, and the settings that differ
    names = [setting.name for setting in comparison.differs]
    if names:
        text += f", other {names[0]}"
    if len(names) > 1:
        text += f" + {len(names) - 1}"
    axes.annotate(
        text,
        (1, y),
        (6, 0),
        annotation_clip=False,
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
    )


def row_labels(comparisons: Sequence[Comparison]) -> list[str]:
    """Label the comparisons of a question by what differs between them: rows, bases or columns.

    The rows are named once if the next lines compare the same pair.
    """
    is_one_column = len({c.columns for c in comparisons}) == 1
    labels = []
    pair_above = None
    for comparison in comparisons:
        parts = []
        pair = (comparison.row, comparison.against)
        if pair != pair_above:
            parts.append(pair_label(comparison, comparisons))
        if not is_one_column:
            parts.append(comparison.columns)
        labels.append(", ".join(part for part in parts if part))
        pair_above = pair
    return labels


def pair_label(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """`miCSE − SimCSE`, or only the name that varies if all comparisons share the other one."""
    row = short_label(comparison.row)
    against = short_label(comparison.against)
    is_one_row = len({c.row for c in comparisons}) == 1
    is_one_base = len({c.against for c in comparisons}) == 1
    label = f"{row} − {against}"
    if is_one_row and not is_one_base:
        label = f"against {against}"
    elif is_one_base and not is_one_row:
        label = row
    return textwrap.shorten(label, LABEL_WIDTH, placeholder=" …")
