"""Charts as narrow as a phone: axes below one another, each above a key of names and numbers.

A wide chart would have to be scrolled or shrunk on a phone, so that its texts could not be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from csebench.score.drawing import NARROW

# inches
LEFT = 0.8  # of the axes, for ticks and a label of two lines
RIGHT = 0.3
ABOVE_AXES = 0.3  # for a title
AXES_HEIGHT = 2.5
BELOW_AXES = 0.7  # for ticks and a label of two lines
KEY_LINE = 0.19
BELOW_KEY = 0.1


@dataclass(frozen=True)
class KeyEntry:
    """A line of a key: a drawn mark, and what it shows with its number."""

    mark: Any  # a line or marker of matplotlib
    text: str
    place: float = 0.0  # of the mark on the vertical axis; the highest stands first


def stacked_axes(
    figure, count: int, key_lines: int, below: float = BELOW_AXES, above: float = ABOVE_AXES
) -> list:
    """Give a figure the width of a phone, and make axes below one another with room for keys.

    Args:
        key_lines: number of lines of each key.
        below: inches between axes and their key.
        above: inches above axes, for their title.
    """
    part_height = above + AXES_HEIGHT + below + KEY_LINE * key_lines + BELOW_KEY
    height = count * part_height
    figure.set_size_inches(NARROW, height)
    stacked = []
    for number in range(count):
        bottom = height - number * part_height - above - AXES_HEIGHT
        width = NARROW - LEFT - RIGHT
        place = (LEFT / NARROW, bottom / height, width / NARROW, AXES_HEIGHT / height)
        stacked.append(figure.add_axes(place))
    return stacked


def write_key(
    axes, entries: Sequence[KeyEntry], below: float = BELOW_AXES, mark_scale: float = 1
) -> None:
    """Write a key below axes of `stacked_axes`, in the order of the marks from the top.

    Args:
        below: inches between axes and their key.
        mark_scale: size of a mark in the key / its size in the axes.
    """
    if not entries:
        return

    def highest_first(entry: KeyEntry) -> float:
        return -entry.place

    ordered = sorted(entries, key=highest_first)
    width = NARROW - LEFT - RIGHT
    axes.legend(
        [entry.mark for entry in ordered],
        [entry.text for entry in ordered],
        loc="upper left",
        bbox_to_anchor=(-0.9 * LEFT / width, -below / AXES_HEIGHT),
        markerscale=mark_scale,
        borderaxespad=0,
        borderpad=0,
        labelspacing=0.35,
        handlelength=2.6,
    )
