"""What all figures share: style, colours, clouds of points, and the files that they are written
to."""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from csebench.base.files import write_bytes
from csebench.base.terminal import csv_text, records
from csebench.plan.catalog.registry import METHODS, valid_declarations
from csebench.plan.schema.paper import Row

# Okabe and Ito's colours, which the colour-blind tell apart; more than eight groups also differ in
# their marker.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#808080", "#B8A900")
GREY = "#808080"  # of text and axes: readable on white and on black alike
MARKERS = ("o", "s", "^", "D", "v")
WIDTH = 7.3  # inches: of a figure on a page of the site, so that its text keeps its size
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
} | dict.fromkeys(
    ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), GREY
)


class DrawingSource(NamedTuple):
    """What is drawn, for titles and for scores that stand in them."""

    evaluator: str  # as people write it: `clusters:imdb`
    model: str
    content: dict  # of the score JSON


def row_colour(row: Row, place: int) -> str:
    """The colour that a row's method declares, alone or with its components; else that of its
    place in the figure."""
    method = valid_declarations(METHODS).get(row.run.method) if row.run else None
    declared = (
        method.colours.get("+".join(sorted(row.run.components))) if row.run and method else None
    )
    return declared or COLOURS[place % len(COLOURS)]


def points(axes, x, y, group: int = 0, **style):
    """A cloud of points in the colour and marker of its group; in an SVG as pixels, or it would
    have megabytes."""
    colour, marker = COLOURS[group % len(COLOURS)], MARKERS[group // len(COLOURS) % len(MARKERS)]
    defaults = {
        "c": colour,
        "marker": marker,
        "s": 9,
        "alpha": 0.5,
        "linewidths": 0,
        "rasterized": True,
    }
    return axes.scatter(x, y, **defaults | style)


def write_figure(svg: Path, figure, table: list[list] | None = None) -> list[Path]:
    """Writes a figure, within STYLE, as SVG, and its numbers, floats with six digits, as CSV
    beside it; a short row lacks the last columns. Returns the files."""
    image = io.BytesIO()
    # The resolution of an SVG is that of its clouds of points.
    figure.savefig(image, format="svg", dpi=100, metadata={"Date": None, "Creator": None})
    files = {svg: image.getvalue()}
    if table is not None:
        head, *rows = [
            [f"{v:.6g}" if isinstance(v, float | np.floating) else v for v in row] for row in table
        ]
        files[svg.with_suffix(".csv")] = csv_text(head, records(head, rows)).encode()
    for path, content in files.items():
        write_bytes(path, content)
    return list(files)
