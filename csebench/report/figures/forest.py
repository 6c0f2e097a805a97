"""The picture of a table: its declared comparisons as a forest plot.

The comparisons of a question stand below its text. Each has a line with its difference and 95 %
interval as numbers, and with both as a dot and a bar. The same comparisons always give the same
bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from csebench.plan.rows import short_label
from csebench.plan.targets import grid_path
from csebench.report.figures.lines import ChartLine, draw_chart_lines, draw_zero
from csebench.report.numbers.cells import GridView
from csebench.report.numbers.compare import Answer, Comparison
from csebench.report.words.comparisons import ends_text, outward_range
from csebench.score.drawing import STYLE, WIDTH, add_heading, write_figure
from csebench.score.themes import GREY, on_white

BLUE = on_white("#2F7ED8")


@dataclass(frozen=True)
class ForestLine:
    """A line of the plot: a question, or one of its comparisons."""

    chart_line: ChartLine
    comparison: Comparison | None = None  # None: a question


@dataclass(frozen=True)
class QuestionGroup:
    """A question with its tested comparisons."""

    question: str
    comparisons: list[Comparison]


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

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1))
        draw_groups(figure, groups, title)
        tested = list(chain.from_iterable(group.comparisons for group in groups))
        add_heading(figure, title, forest_subtitle(tested))
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


def forest_subtitle(comparisons: Sequence[Comparison]) -> str:
    """Say what is drawn, in which unit, from how many seeds, and what the signs mean."""
    seeds = drawn_seeds_text(comparisons)
    parts = [
        f"Difference in points (0.01 of a score) and its 95 % interval; more is better."
        f" n = {seeds} {'seed' if seeds == '1' else 'seeds'} of a row."
    ]
    if any(c.is_judged and c.printed is not None for c in comparisons):
        parts.append("Grey stroke: difference in print.")
    if any(c.differs for c in comparisons):
        parts.append("Open dot: rows with different settings.")
    if not any(c.is_judged for c in comparisons):
        parts.append("No verdict: this scale cannot tell such methods apart.")
    return " ".join(parts)


def drawn_seeds_text(comparisons: Sequence[Comparison]) -> str:
    """Write the seeds that all comparisons have, as `3` or `5 + 2`, or else the range of them."""
    counts = {c.estimate.seed_counts for c in comparisons if c.estimate}
    if len(counts) == 1:
        return " + ".join(map(str, counts.pop()))
    return ends_text(chain.from_iterable(counts))


# ---------------------------------------------------------------- lines


def draw_groups(figure, groups: list[QuestionGroup], title: str) -> None:
    """Draw the questions below one another. A question that is the title is not repeated."""
    tested = list(chain.from_iterable(group.comparisons for group in groups))
    limits = axis_limits(tested)
    lines: list[ForestLine] = []
    for group in groups:
        if group.question != title:
            lines.append(ForestLine(ChartLine(group.question, is_heading=True)))
        for label, comparison in zip(row_labels(group.comparisons), group.comparisons, strict=True):
            lines.append(ForestLine(comparison_line(label, comparison, limits), comparison))

    axes, places = draw_chart_lines(figure, [line.chart_line for line in lines])
    axes.set_xlim(limits)
    for place, line in zip(places, lines, strict=True):
        if line.comparison is not None:
            draw_zero(axes, place, line.chart_line)
            draw_comparison(axes, place, line.comparison)
    axes.set_xlabel("difference in points")


@dataclass(frozen=True)
class DrawnNumbers:
    """The difference of two rows, and the interval that holds for all of its question at once."""

    gain: float
    low: float
    high: float


def drawn_numbers(comparison: Comparison) -> DrawnNumbers:
    """Give the numbers of a tested comparison."""
    low = comparison.family_low
    high = comparison.family_high
    assert comparison.estimate is not None and low is not None and high is not None
    return DrawnNumbers(comparison.estimate.gain, low, high)


def comparison_line(label: str, comparison: Comparison, limits: tuple[float, float]) -> ChartLine:
    """Write the numbers of a comparison, the settings that differ, and what print is off the axis.

    `+0.66 (+0.12 to +1.21)`
    """
    drawn = drawn_numbers(comparison)
    number = f"{drawn.gain:+z.2f} ({outward_range(drawn.low, drawn.high, '+')})"

    remarks = []
    printed = judged_print(comparison)
    left, right = limits
    if printed is not None and not left < printed < right:
        remarks.append(f"printed {printed:+z.2f}")
    names = [setting.name for setting in comparison.differs]
    if len(names) == 1:
        remarks.append(f"other {names[0]}")
    elif names:
        remarks.append(f"other {names[0]} and {len(names) - 1} more")
    return ChartLine(label, number, "; ".join(remarks))


def judged_print(comparison: Comparison) -> float | None:
    """Give the printed difference, in points, if our runs can be judged by it."""
    return comparison.printed if comparison.is_judged else None


def draw_comparison(axes, place: float, comparison: Comparison) -> None:
    """Draw a dot with its interval.

    The dot is open if the settings of the rows are not matched. An arrow stands at the edge of the
    axis if the interval goes beyond it. The printed difference is a grey stroke.
    """
    drawn = drawn_numbers(comparison)
    left, right = axes.get_xlim()

    # dot and interval
    face = "none" if comparison.differs else BLUE
    style = {"color": BLUE, "markerfacecolor": face, "markersize": 6}
    errors = [[drawn.gain - drawn.low], [drawn.high - drawn.gain]]
    axes.errorbar(drawn.gain, place, xerr=errors, fmt="o", elinewidth=1.6, capsize=2, **style)

    # arrows at the edges
    at_edge = {"transform": axes.get_yaxis_transform(), **style}
    if drawn.low < left:
        axes.plot(0.01, place, "<", **at_edge)
    if drawn.high > right:
        axes.plot(0.99, place, ">", **at_edge)

    printed = judged_print(comparison)
    if printed is not None and left < printed < right:
        axes.plot(printed, place, "|", color=GREY, markersize=12, markeredgewidth=1.6)


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
    return label
