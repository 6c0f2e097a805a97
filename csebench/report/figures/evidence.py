"""The picture of results/evidence.md: others' runs against the printed values.

It is as narrow as a phone.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from csebench.report.figures.narrow import KeyEntry, stacked_axes, write_key
from csebench.report.numbers.others import Group, GroupKind, Sweep, groups, sweeps
from csebench.report.words.evidence import encoder_title, method_title
from csebench.score.drawing import COLOURS, STYLE, add_heading, write_figure
from csebench.score.themes import GREY, on_white

BIN = 0.15  # dots whose scores fall into a bin of this size stand side by side
DOT_DISTANCE = 0.08  # between dots side by side, in units of the x axis
PRINTED_X = 0.8  # of the printed value: between the dots of a sweep and of single runs
# inches of a panel, above and below its axes
ABOVE_PANEL = 0.5  # for a title of two lines
BELOW_PANEL = 0.15  # for an axis without ticks
RUN_COLUMNS = [
    "method",
    "encoder",
    "group",
    "source",
    "seed",
    "score",
    "keeps_last_step",
    "printed",
]
SWEEPS_SUBTITLE = (
    "Average of the seven STS test sets (Spearman x 100): a mark for each of n runs. Bar, and"
    " numbers below: mean and its 95 % interval over runs. Hollow: a run whose last checkpoint was"
    " its best."
)


class Mark(NamedTuple):
    """How the runs of a kind are drawn."""

    marker: str
    colour: str
    x: float


MARKS = {
    GroupKind.SWEEP: Mark("o", on_white(COLOURS[0]), 0),
    GroupKind.SINGLE: Mark("s", on_white(COLOURS[5]), 1.2),
    GroupKind.LATER: Mark("^", on_white(COLOURS[2]), 2.1),
}


def draw_runs(folder: Path) -> list[Path]:
    """Draw a panel per seed sweep, with a mark per run and the printed value as a line.

    Returns:
        The files that were written: the picture, and the table of what it shows.
    """
    import matplotlib
    from matplotlib.figure import Figure

    all_sweeps = sweeps()
    table: list[list] = [RUN_COLUMNS]
    with matplotlib.rc_context(STYLE):
        figure = Figure()
        panels = stacked_axes(figure, len(all_sweeps), len(MARKS), BELOW_PANEL, ABOVE_PANEL)
        for panel, sweep in zip(panels, all_sweeps, strict=True):
            panel.sharey(panels[0])
            draw_panel(panel, sweep)
            table += run_rows(sweep)
        add_heading(figure, sweeps_finding(all_sweeps), SWEEPS_SUBTITLE)
        return write_figure(folder / "evidence.svg", figure, table)


def sweeps_finding(all_sweeps: list[Sweep]) -> str:
    """`5 of 200 seeds reach what the authors print`"""
    reach = 0
    seeds = 0
    for sweep in all_sweeps:
        reach += sweep.runs.reach(sweep.printed.value.value)
        seeds += sweep.runs.summary.n
    return f"{reach} of {seeds} seeds reach what the authors print"


def groups_with_runs(sweep: Sweep) -> list[Group]:
    """List the groups of runs that a panel shows. Groups with only a mean are left out."""
    return [group for group in groups(sweep.key) if group.kind != GroupKind.MEAN_ONLY]


def run_rows(sweep: Sweep) -> list[list]:
    """Write the runs of a panel as rows under RUN_COLUMNS."""
    method = method_title(sweep.key)
    encoder = encoder_title(sweep.key)
    printed = sweep.printed.value.value
    rows = []
    for group in groups_with_runs(sweep):
        for run, score in zip(group.runs, group.values, strict=True):
            kept_last = int(run.kept_last_step)
            names = [method, encoder, group.kind, run.evidence.name, run.run.seed or ""]
            rows.append([*names, score, kept_last, printed])
    return rows


def draw_panel(axis, sweep: Sweep) -> None:
    """Draw all groups of runs of a method on an encoder, and the printed value.

    Number, mean and interval of each group stand below.
    """
    drawn = groups_with_runs(sweep)  # the seed sweep first
    key = []
    for group in drawn:
        mark = draw_group(axis, group)
        key.append(KeyEntry(mark, runs_label(group), place=-MARKS[group.kind].x))
    write_key(axis, key, BELOW_PANEL)

    printed = sweep.printed.value
    axis.axhline(printed.value, color=GREY, lw=1.2, ls="--", zorder=0)
    between_groups = (PRINTED_X, printed.value)
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "center"}
    axis.annotate(f"printed {printed.text}", between_groups, (0, 3), **style)

    axis.set_xticks([])
    axis.set_xlim(-0.6, 2.6)
    reach = drawn[0].reach(printed.value)
    title = f"{method_title(sweep.key)}, {encoder_title(sweep.key)}"
    axis.set_title(f"{title}\n{reach} of {drawn[0].summary.n} seeds reach the printed value")


def runs_label(group: Group) -> str:
    """Name a group, with its number of runs, mean and interval.

    `seed sweep, n = 50: 75.11 (74.9 to 75.3)`
    """
    mean, _, runs = group.summary
    text = f"{group.kind}, n = {runs}: {mean:.2f}"
    margin = group.summary.margin
    if margin:
        text += f" ({mean - margin:.1f} to {mean + margin:.1f})"
    return text


def draw_group(axis, group: Group):
    """Draw a mark per run, and a bar for mean and interval to the right of the marks.

    Returns:
        A mark, for the key.
    """
    from matplotlib.lines import Line2D

    mark = MARKS[group.kind]
    offsets = dot_offsets(group.values)
    for run, score, offset in zip(group.runs, group.values, offsets, strict=True):
        face = "none" if run.kept_last_step else mark.colour
        axis.plot(mark.x + offset, score, mark.marker, ms=4, mew=0.9, mec=mark.colour, mfc=face)
    if group.summary.std is not None:
        bar: dict[str, Any] = {"fmt": "_", "ms": 9, "color": GREY, "lw": 1.2, "capsize": 3}
        x = mark.x + offsets.max() + 0.2
        axis.errorbar(x, group.summary.mean, group.summary.margin, **bar)
    return Line2D([], [], color=mark.colour, marker=mark.marker, ms=4, ls="none")


def dot_offsets(values: tuple[float, ...]) -> np.ndarray:
    """Place dots on x so that dots with nearly the same score do not cover one another."""
    bins = np.floor(np.asarray(values) / BIN)
    offsets = np.zeros(len(bins))
    for number in np.unique(bins):
        members = np.flatnonzero(bins == number)
        offsets[members] = (np.arange(len(members)) - (len(members) - 1) / 2) * DOT_DISTANCE
    return offsets
