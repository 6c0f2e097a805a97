"""Parts that all figures share: style, colours, clouds of points, and writing of the files.

Figures of one evaluator are in evaluators/, all others in csebench/report/figures/.
"""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from csebench.base.files import write_bytes
from csebench.base.terminal import csv_text, records
from csebench.plan.catalog.registry import METHODS, valid_declarations
from csebench.plan.schema.paper import Row

# Colours of Okabe and Ito, which the colour-blind can tell apart. More than eight groups also
# differ in their marker.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#808080", "#B8A900")
GREY = "#808080"  # of text and axes: readable on white and on black
MARKERS = ("o", "s", "^", "D", "v")
WIDTH = 7.3  # inches; the width of a page of the site, so that text keeps its size
GREY_PARTS = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "csebench",
    "font.size": 9,
    "axes.titlesize": 10,
    "figure.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.transparent": True,
    "svg.fonttype": "none",  # text stays text
    "legend.frameon": False,
    **dict.fromkeys(GREY_PARTS, GREY),
}


class DrawingSource(NamedTuple):
    """The scores that a figure is drawn from, for its title."""

    evaluator: str  # with its settings: `clusters:imdb`
    model: str
    content: dict  # of the score JSON


def row_colour(row: Row, place: int) -> str:
    """Choose the colour of a row.

    Use the colour that the row's method declares for these components. If it declares none, choose
    by the place of the row in the figure.
    """
    default = COLOURS[place % len(COLOURS)]
    if not row.run:
        return default
    method = valid_declarations(METHODS).get(row.run.method)
    if method is None:
        return default
    components = "+".join(sorted(row.run.components))
    return method.colours.get(components) or default


def points(axes, x, y, group: int = 0, **style):
    """Draw a cloud of points in the colour and marker of its group.

    In an SVG the points are pixels. As shapes they would take megabytes.
    """
    defaults = {
        "c": COLOURS[group % len(COLOURS)],
        "marker": MARKERS[group // len(COLOURS) % len(MARKERS)],
        "s": 9,
        "alpha": 0.5,
        "linewidths": 0,
        "rasterized": True,
    }
    return axes.scatter(x, y, **defaults | style)


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
    files = {svg: image.getvalue()}
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
