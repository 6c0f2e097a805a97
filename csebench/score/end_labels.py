"""Labels to the right of axes, at the heights of what they name, so that none covers another."""

from collections.abc import Sequence
from dataclasses import dataclass

LABEL_HEIGHT = 0.17  # inches: the least distance of two labels


@dataclass(frozen=True)
class MarkLabel:
    """A text that stands to the right of the end of a line or of a point."""

    text: str
    y: float  # of the mark, in units of the axis
    colour: str


def write_end_labels(axes, labels: Sequence[MarkLabel], distance: float | None = None) -> None:
    """Write labels to the right of axes, next to the ends of their lines.

    Args:
        distance: the least distance of two labels, in units of the axis. It is needed if a layout
            engine places the axes later.
    """
    if distance is None:
        distance = least_distance(axes)
    heights = spread_labels([label.y for label in labels], distance)
    for label, height in zip(labels, heights, strict=True):
        axes.annotate(
            label.text,
            (1, height),
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            color=label.colour,
            annotation_clip=False,
        )


def least_distance(axes) -> float:
    """Convert the height of a label to units of the vertical axis. Call it when limits are set."""
    bottom, top = axes.get_ylim()
    inches = axes.get_position().height * axes.figure.get_figheight()
    return LABEL_HEIGHT * (top - bottom) / inches


@dataclass
class LabelBlock:
    """Neighbouring labels that stand directly above one another."""

    heights: list[float]  # where each label would stand without the others

    def lowest(self, distance: float) -> float:
        """Compute the place of the lowest label if the block is centred on its labels."""
        middle = sum(self.heights) / len(self.heights)
        return middle - distance * (len(self.heights) - 1) / 2

    def highest(self, distance: float) -> float:
        return self.lowest(distance) + distance * (len(self.heights) - 1)


def spread_labels(heights: Sequence[float], distance: float) -> list[float]:
    """Move labels apart as little as possible, so that none covers another. Keep their order.

    Args:
        distance: the least distance of two labels.
    """
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    blocks: list[LabelBlock] = []
    for index in order:
        blocks.append(LabelBlock([heights[index]]))
        while len(blocks) > 1 and blocks[-1].lowest(distance) < (
            blocks[-2].highest(distance) + distance
        ):
            upper = blocks.pop()
            blocks[-1].heights += upper.heights

    places = []
    for block in blocks:
        lowest = block.lowest(distance)
        places += [lowest + distance * number for number in range(len(block.heights))]
    spread = [0.0] * len(heights)
    for index, place in zip(order, places, strict=True):
        spread[index] = place
    return spread
