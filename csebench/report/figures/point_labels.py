"""Places for labels beside points, so that no label covers a point or another label."""

from collections.abc import Sequence
from dataclasses import dataclass

from csebench.score.drawing import TEXT_SIZE

# lengths in pt, of which 72 are an inch
CHARACTER_PT = 0.62 * TEXT_SIZE  # width, about
HALF_LINE_PT = 0.65 * TEXT_SIZE  # half the height of a label
HALF_MARK_PT = 6.0  # half the side of the square that a label leaves free around a point
DISTANCES_PT = (10, 20, 32, 46, 62, 80)  # between a point and its label
DIRECTIONS = (
    (1, 0),
    (-1, 0),
    (0.8, 0.6),
    (0.8, -0.6),
    (-0.8, 0.6),
    (-0.8, -0.6),
    (0.3, 1),
    (0.3, -1),
    (-0.3, 1),
    (-0.3, -1),
)
NEAR_PT = 20  # a label that is farther from its point gets a line to it


@dataclass(frozen=True)
class PointLabel:
    """A text for a point, in units of the axes."""

    text: str
    x: float
    y: float
    colour: str


@dataclass(frozen=True)
class Box:
    """A rectangle that is taken by a mark or a text, in pt."""

    left: float
    right: float
    bottom: float
    top: float

    def overlaps(self, other: "Box") -> bool:
        is_beside = self.right <= other.left or other.right <= self.left
        is_above = self.top <= other.bottom or other.top <= self.bottom
        return not (is_beside or is_above)

    def contains(self, other: "Box") -> bool:
        is_within_sides = self.left <= other.left and other.right <= self.right
        return is_within_sides and self.bottom <= other.bottom and other.top <= self.top


@dataclass(frozen=True)
class LabelPlace:
    """Where a label is written: an offset from its point in pt, and the rectangle that it takes."""

    dx: float
    dy: float
    box: Box

    @property
    def alignment(self) -> str:
        return "left" if self.dx > 0 else "right"

    @property
    def is_near(self) -> bool:
        return self.dx**2 + self.dy**2 <= NEAR_PT**2


def write_point_labels(
    axes, labels: Sequence[PointLabel], others: Sequence[tuple[float, float]] = ()
) -> None:
    """Write each label at the nearest free place beside its point, when all points are drawn.

    Args:
        others: points without a label that no label may cover, in units of the axes.
    """
    axes.autoscale_view()  # else the limits are chosen when the figure is written
    frame = axes_box(axes)
    taken = [point_box(axes, x, y) for x, y in others]
    taken += [point_box(axes, label.x, label.y) for label in labels]
    for label in labels:
        place = free_place(axes, label, taken, frame)
        taken.append(place.box)
        line = None
        if not place.is_near:
            line = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.6, "shrinkB": 5}
        axes.annotate(
            label.text,
            (label.x, label.y),
            (place.dx, place.dy),
            textcoords="offset points",
            ha=place.alignment,
            va="center",
            color=label.colour,
            arrowprops=line,
        )


def free_place(axes, label: PointLabel, taken: Sequence[Box], frame: Box) -> LabelPlace:
    """Find the nearest place where a label covers nothing; beside the point if there is none."""
    places = [label_place(axes, label, dx, dy) for dx, dy in offsets()]
    for place in places:
        if frame.contains(place.box) and not any(place.box.overlaps(box) for box in taken):
            return place
    return places[0]


def offsets() -> list[tuple[float, float]]:
    """List the offsets of a label from its point, in pt, the nearest first."""
    return [(distance * x, distance * y) for distance in DISTANCES_PT for x, y in DIRECTIONS]


def label_place(axes, label: PointLabel, dx: float, dy: float) -> LabelPlace:
    """Compute which rectangle a label takes at an offset from its point."""
    x, y = to_pt(axes, label.x, label.y)
    width = CHARACTER_PT * len(label.text)
    left = x + dx
    if dx <= 0:
        left -= width
    middle = y + dy
    box = Box(left, left + width, middle - HALF_LINE_PT, middle + HALF_LINE_PT)
    return LabelPlace(dx, dy, box)


def point_box(axes, x: float, y: float) -> Box:
    """Give the rectangle of a point, which is in units of the axes."""
    x_pt, y_pt = to_pt(axes, x, y)
    return Box(
        left=x_pt - HALF_MARK_PT,
        right=x_pt + HALF_MARK_PT,
        bottom=y_pt - HALF_MARK_PT,
        top=y_pt + HALF_MARK_PT,
    )


def axes_box(axes) -> Box:
    """Give the rectangle of axes."""
    pixels = axes.get_window_extent()
    scale = 72 / axes.figure.dpi
    return Box(pixels.x0 * scale, pixels.x1 * scale, pixels.y0 * scale, pixels.y1 * scale)


def to_pt(axes, x: float, y: float) -> tuple[float, float]:
    """Convert units of axes to pt on the figure."""
    pixel_x, pixel_y = axes.transData.transform((x, y))
    return 72 * pixel_x / axes.figure.dpi, 72 * pixel_y / axes.figure.dpi
