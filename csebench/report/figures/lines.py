"""Charts with a line of text for each mark: its label and its number, then the mark.

The numbers stand beside the labels, so that a reader of a narrow screen needs no axis. Forest
plots and figures of dots are such charts.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from csebench.score.drawing import EDGE, SMALL_SIZE, WIDTH
from csebench.score.themes import GREY

LINE_HEIGHT = 0.22  # inches
CHARACTER_WIDTH = 0.076  # inches, about
LABEL_CHARACTERS = 34  # a longer label has several lines
HEADING_CHARACTERS = 96
HEADING_SPACE = 0.4  # above a heading, in lines
COLUMN_GAP = 0.15  # inches between labels, numbers and the axis
AXIS_HEIGHT = 0.55  # inches below the lines: ticks and the label of the axis


@dataclass(frozen=True)
class ChartLine:
    """A heading, or the label and the number of a mark."""

    label: str
    number: str = ""  # stands beside the label
    remark: str = ""  # grey, below the label
    is_heading: bool = False

    @property
    def texts(self) -> list[str]:
        """The label, wrapped into lines of text."""
        if self.is_heading:
            return textwrap.wrap(self.label, HEADING_CHARACTERS)
        return textwrap.wrap(
            self.label, LABEL_CHARACTERS, break_long_words=False, break_on_hyphens=False
        )

    @property
    def height(self) -> float:
        """How many lines of text it needs, with the space above a heading."""
        height = float(len(self.texts))
        if self.is_heading:
            height += HEADING_SPACE
        if self.remark:
            height += 1
        return height


def draw_chart_lines(figure, lines: Sequence[ChartLine]) -> tuple[Any, list[float]]:
    """Write labels and numbers at the left of a figure, and leave the rest to axes.

    Returns:
        The axes, on whose vertical axis 1 is the height of a line of text, and the place of each
        line on it.
    """
    label_width, number_width = text_widths(lines)
    left = EDGE + label_width + COLUMN_GAP + number_width + COLUMN_GAP
    heights = [line.height for line in lines]
    chart_height = LINE_HEIGHT * sum(heights)
    height = chart_height + AXIS_HEIGHT
    figure.set_size_inches(WIDTH, height)
    right_edge = WIDTH - EDGE - COLUMN_GAP
    axes = figure.add_axes(
        (left / WIDTH, AXIS_HEIGHT / height, (right_edge - left) / WIDTH, chart_height / height)
    )
    axes.set_ylim(sum(heights), 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)

    places = []
    top = 0.0
    for line in lines:
        place = top + 0.5
        if line.is_heading:
            place += HEADING_SPACE
        write_line(axes, place, line, number_x=(EDGE + label_width + COLUMN_GAP) / WIDTH)
        places.append(place)
        top += line.height
    return axes, places


def text_widths(lines: Sequence[ChartLine]) -> tuple[float, float]:
    """Estimate the widths of the longest label and of the longest number, in inches."""
    marked = [line for line in lines if not line.is_heading]
    longest_label = max((len(text) for line in marked for text in line.texts), default=0)
    longest_number = max((len(line.number) for line in marked), default=0)
    return CHARACTER_WIDTH * longest_label, CHARACTER_WIDTH * longest_number


def write_line(axes, place: float, line: ChartLine, number_x: float) -> None:
    """Write the texts of a line, the first at its place and the others below.

    Args:
        number_x: left end of the number, as a share of the width of the figure.
    """
    style: dict[str, Any] = {
        "xycoords": ("figure fraction", "data"),
        "va": "center",
        "annotation_clip": False,
    }
    label_x = EDGE / WIDTH
    weight = "bold" if line.is_heading else "normal"
    for number, text in enumerate(line.texts):
        axes.annotate(text, (label_x, place + number), fontweight=weight, **style)
    if line.number:
        axes.annotate(line.number, (number_x, place), **style)
    if line.remark:
        below = place + len(line.texts) - 0.15
        axes.annotate(line.remark, (label_x, below), color=GREY, fontsize=SMALL_SIZE, **style)


def draw_zero(axes, place: float, line: ChartLine) -> None:
    """Draw a vertical line at 0 beside a mark. Headings are left free of it."""
    ends = [place - 0.5, place - 0.5 + line.height]
    axes.plot([0, 0], ends, color=GREY, linewidth=0.8, zorder=0)
