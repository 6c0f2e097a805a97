"""Parts that all figures share: style, colours, clouds of points, and writing of the files.

Figures of one evaluator are in evaluators/, all others in csebench/report/figures/.
"""

import io
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from csebench.base.files import write_bytes
from csebench.base.terminal import csv_text, records
from csebench.plan.catalog.registry import METHODS, valid_declarations
from csebench.plan.schema.paper import Row
from csebench.score.themes import GREY, GROUND, INK, on_both, on_white, with_dark_theme

# Colours of Okabe and Ito, which the colour-blind can tell apart. More than eight groups also
# differ in their marker.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#808080", "#B8A900")
MARKERS = ("o", "s", "^", "D", "v")
WIDTH = 7.3  # inches; the width of a page of the site, so that text keeps its size
NARROW = 3.7  # inches; the width of a page on a phone of 390 pixels
TITLE_SIZE = 11  # points; 72 points are an inch, or 96 pixels at the width of a page
TEXT_SIZE = 9
SMALL_SIZE = 8.5  # 10 pixels on a phone, where a wide figure is 640 pixels wide
EDGE = 0.1  # inches between the edge of a figure and its texts
TITLE_LINE = 0.2  # inches: height of a line of the title
SUBTITLE_LINE = 0.17
TITLE_CHARACTERS = 10.7  # that fit into an inch of the title
SUBTITLE_CHARACTERS = 14.55
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "csebench",
    "svg.fonttype": "none",  # text stays text
    "font.sans-serif": ["DejaVu Sans", "Arial"],
    "font.size": TEXT_SIZE,
    "axes.titlesize": TEXT_SIZE,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": GROUND,
    "axes.facecolor": "none",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.parse_math": False,  # a `$` in a name is a `$`
}


class DrawingSource(NamedTuple):
    """The scores that a figure is drawn from, for its title."""

    evaluator: str  # with its settings: `clusters:imdb`
    model: str
    content: dict  # of the score JSON


def group_colour(group: int) -> str:
    """Give the colour of a group of points, which stands out from light and dark grounds."""
    return on_both(COLOURS[group % len(COLOURS)])


def row_colour(row: Row, place: int) -> str:
    """Choose the colour of a row, dark enough for text.

    Use the colour that the row's method declares for these components. If it declares none, choose
    by the place of the row in the figure.
    """
    return on_white(declared_colour(row) or COLOURS[place % len(COLOURS)])


def declared_colour(row: Row) -> str | None:
    """Look up the colour that the method of a row declares for its components."""
    if not row.run:
        return None
    method = valid_declarations(METHODS).get(row.run.method)
    if method is None:
        return None
    components = "+".join(sorted(row.run.components))
    return method.colours.get(components)


def points(axes, x, y, group: int = 0, **style):
    """Draw a cloud of points in the colour and marker of its group.

    In an SVG the points are pixels. As shapes they would take megabytes.
    """
    defaults = {
        "c": group_colour(group),
        "marker": MARKERS[group // len(COLOURS) % len(MARKERS)],
        "s": 9,
        "alpha": 0.5,
        "linewidths": 0,
        "rasterized": True,
    }
    return axes.scatter(x, y, **defaults | style)


def add_heading(figure, title: str, subtitle: str) -> None:
    """Make a figure higher, and write a title and a subtitle above what it shows.

    Args:
        title: what the figure shows, or the question that it cannot answer.
        subtitle: what intervals, units and numbers of runs mean.
    """
    width = figure.get_figwidth()
    titles = textwrap.wrap(title, int(TITLE_CHARACTERS * width))
    subtitles = textwrap.wrap(subtitle, int(SUBTITLE_CHARACTERS * width))
    end_of_title = EDGE + TITLE_LINE * len(titles)
    height_of_heading = end_of_title + SUBTITLE_LINE * len(subtitles) + EDGE
    below = figure.get_figheight()
    height = below + height_of_heading
    figure.set_figheight(height)

    # what the figure shows keeps its size
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.set(rect=(0, 0, 1, below / height))
    else:
        for axes in figure.axes:
            left, bottom, axes_width, axes_height = axes.get_position().bounds
            axes.set_position(
                (left, bottom * below / height, axes_width, axes_height * below / height)
            )

    x = EDGE / width
    style = {"va": "top", "linespacing": 1.25}
    y_title = 1 - EDGE / height
    y_subtitle = 1 - end_of_title / height
    text_of_title = "\n".join(titles)
    text_of_subtitle = "\n".join(subtitles)
    figure.text(x, y_title, text_of_title, fontsize=TITLE_SIZE, fontweight="bold", **style)
    figure.text(x, y_subtitle, text_of_subtitle, color=GREY, **style)


def write_figure(svg: Path, figure, table: list[list] | None = None) -> list[Path]:
    """Write a figure as SVG, and its numbers as CSV next to it. Call it within STYLE.

    Args:
        table: header and rows. A row that is shorter than the header leaves its last columns
            empty. Floats get six digits.

    Returns:
        The files that were written.
    """
    image = io.BytesIO()
    # The resolution of an SVG is the resolution of its clouds of points.
    figure.savefig(image, format="svg", dpi=100, metadata={"Date": None, "Creator": None})
    files = {svg: with_dark_theme(image.getvalue().decode()).encode()}
    if table is not None:
        head, *rows = [[with_six_digits(value) for value in row] for row in table]
        files[svg.with_suffix(".csv")] = csv_text(head, records(head, rows)).encode()
    for path, content in files.items():
        write_bytes(path, content)
    return list(files)


def with_six_digits(value: Any) -> Any:
    """Write a float with six digits; leave any other value as it is."""
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return value
