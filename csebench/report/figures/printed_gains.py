"""The picture of every comparison that a claim rests on, beside its noise over seeds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csebench.plan.catalog.files import paper_names
from csebench.report.numbers.printed_gains import (
    NoiseVerdict,
    PrintedGain,
    PrintedGains,
    deviations,
    printed_gains,
)
from csebench.report.words.audit import paper_label
from csebench.report.words.printed_gains import gain_label, gains_finding, gains_unit
from csebench.score.drawing import STYLE, WIDTH, add_heading, write_figure
from csebench.score.themes import BAND, GREY

PICTURE = "printed_gains.svg"
HEIGHT = 6.0  # inches, without title and subtitle
LIMITS = (-4.0, 10.0)  # of the axis, in units of the noise; ratios beyond are drawn at the edge
NOISE = 1.96  # ratio that 95 % of gains without a true difference stay below
PAPER_GAP = 48  # lines between two papers, for a label and a title
TITLE_GAP = 12  # lines from the middle of a title to the first gain
NAMED_SIZE = 5.5  # points; size of the dot of a gain with a name
COLOURS_ON_WHITE = {
    NoiseVerdict.CLEAR: "#0063a0",
    NoiseVerdict.DEPENDS: "#b04a00",
    NoiseVerdict.WITHIN: "#6a6a6a",
    NoiseVerdict.REVERSED: "#b01060",
}
MARKERS_OF_VERDICTS = {
    NoiseVerdict.CLEAR: "o",
    NoiseVerdict.DEPENDS: "D",
    NoiseVerdict.WITHIN: "s",
    NoiseVerdict.REVERSED: "v",
}


@dataclass(frozen=True)
class PaperBlock:
    """The lines of a paper in the picture, from the top down."""

    title: str
    top: int  # line of the first gain
    gains: list[PrintedGain]  # the largest ratio first

    @property
    def end(self) -> int:
        """Give the line below the last gain."""
        return self.top + len(self.gains)


def draw_gains(folder: Path) -> list[Path]:
    """Draw all printed gains by paper, with the deviations that change their verdict.

    Returns:
        The files that were written: the picture, and the table of what it shows.
    """
    import matplotlib
    from matplotlib.figure import Figure

    gains = printed_gains()
    blocks = paper_blocks(gains)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, HEIGHT))
        axes = figure.add_axes((0.02, 0.15, 0.96, 0.84))
        axes.axvspan(-NOISE, NOISE, color=BAND, zorder=0)
        for block in blocks:
            draw_block(axes, block)
        axes.set_xlim(LIMITS)
        last_line = blocks[-1].end if blocks else 0
        axes.set_ylim(last_line + 2, -PAPER_GAP)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(
            "Printed gain divided by its standard error. Larger ratios are drawn at the edge."
        )
        draw_legend(figure, gains)
        add_heading(figure, gains_finding(gains), gains_unit(gains))
        return write_figure(folder / PICTURE, figure, gains_table(gains))


def paper_blocks(gains: PrintedGains) -> list[PaperBlock]:
    """Give every paper with gains its lines."""
    blocks = []
    top = 0
    for name in paper_names():
        of_paper = gains.of_paper(name)
        if not of_paper:
            continue
        block = PaperBlock(paper_label(name), top, of_paper[::-1])
        blocks.append(block)
        top = block.end + PAPER_GAP
    return blocks


def draw_block(axes, block: PaperBlock) -> None:
    """Draw a line per gain, and name the few that most sentences rest on."""
    title = f"{block.title}, {len(block.gains)} gains"
    axes.text(LIMITS[0], block.top - TITLE_GAP, title, va="center", fontweight="bold")
    axes.plot([0, 0], [block.top, block.end], color=GREY, linewidth=0.8, zorder=1)
    for y, gain in enumerate(block.gains, start=block.top):
        draw_gain(axes, y, gain)
    for gain in named_gains(block.gains):
        draw_label(axes, block, gain)


def draw_gain(axes, y: int, gain: PrintedGain) -> None:
    """Draw a dot at the largest deviation, and a line to the ratio at the smallest."""
    colour = COLOURS_ON_WHITE[gain.verdict]
    first = within_limits(gain.ratios[0])
    last = within_limits(gain.ratios[-1])
    axes.plot([first, last], [y, y], color=colour, linewidth=0.5, alpha=0.6, zorder=2)
    marker = MARKERS_OF_VERDICTS[gain.verdict]
    axes.plot(first, y, marker, color=colour, markersize=2.6, markeredgewidth=0, zorder=3)


def within_limits(ratio: float) -> float:
    """Move a ratio beyond an edge of the axis to that edge."""
    left, right = LIMITS
    return min(max(ratio, left), right)


def named_gains(gains: list[PrintedGain]) -> list[PrintedGain]:
    """Choose the gains to name.

    Of each verdict it is the gain that most sentences rest on, among those whose size a sentence
    states. Of those below zero it is the one that is furthest below.
    """
    named = []
    for verdict in NoiseVerdict:
        candidates = [gain for gain in gains if gain.verdict == verdict]
        stated = [gain for gain in candidates if gain.states_size]
        if candidates and verdict == NoiseVerdict.REVERSED:
            named.append(min(candidates, key=lambda gain: gain.ratios[0]))
        elif stated:
            named.append(max(stated, key=lambda gain: len(gain.quotes)))
    return named


def draw_label(axes, block: PaperBlock, gain: PrintedGain) -> None:
    """Enlarge the dot of a gain, and write its name where it covers no line.

    Ratios fall from the top down. So a name has room on the left above its dot, and on the right
    of the end of its line. Below zero, ratios of other gains are on the right, so the name is below
    them.
    """
    y = block.top + block.gains.index(gain)
    colour = COLOURS_ON_WHITE[gain.verdict]
    name = gain_label(gain)
    dot = (within_limits(gain.ratios[0]), y)
    marker = MARKERS_OF_VERDICTS[gain.verdict]
    axes.plot(*dot, marker, color=colour, markersize=NAMED_SIZE, markeredgewidth=0, zorder=4)
    style: dict[str, Any] = {"color": colour, "textcoords": "offset points"}
    if gain.verdict in (NoiseVerdict.CLEAR, NoiseVerdict.DEPENDS):
        axes.annotate(name, dot, (-8, 1), ha="right", va="bottom", **style)
    elif gain.verdict == NoiseVerdict.REVERSED:
        axes.annotate(name, dot, (4, -4), ha="left", va="top", **style)
    else:
        end_of_line = (within_limits(max(gain.ratios)), y)
        axes.annotate(name, end_of_line, (8, 4), ha="left", va="top", **style)


def draw_legend(figure, gains: PrintedGains) -> None:
    """Count the gains of each verdict, beside its colour."""
    from matplotlib.lines import Line2D

    handles = []
    for verdict in NoiseVerdict:
        count = len([gain for gain in gains.gains if gain.verdict == verdict])
        marker = MARKERS_OF_VERDICTS[verdict]
        style: dict[str, Any] = {"color": COLOURS_ON_WHITE[verdict], "marker": marker}
        handles.append(Line2D([], [], label=f"{verdict} ({count})", ls="none", ms=5, **style))
    figure.legend(
        handles=handles,
        loc="lower left",
        ncols=4,
        bbox_to_anchor=(0, 0),
        handletextpad=0,
        columnspacing=1,
    )


def gains_table(gains: PrintedGains) -> list[list]:
    """Write the gains as a table: a head and a row per gain."""
    ratios = [f"ratio_at_{deviation:.2g}" for deviation in deviations()]
    head = ["paper", "row", "against", "column", "gain", *ratios, "verdict", "sentences"]
    rows: list[list] = [head]
    for name in paper_names():
        for gain in gains.of_paper(name):
            names = [gain.paper, gain.row, gain.versus, gain.column]
            gain_text = f"{gain.gain:.{gain.digits}f}"
            rows.append([*names, gain_text, *gain.ratios, gain.verdict, len(gain.quotes)])
    return rows
