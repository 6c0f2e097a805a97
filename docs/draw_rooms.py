"""Draw docs/rooms.svg: which rooms of csebench/ import from which.

    python docs/draw_rooms.py

A room stands above all rooms that it imports. An arrow that follows from other arrows is left out.
The rooms and their order are those of tests/unit/test_rooms.py, which fails if a room imports from
a later one.
"""

from __future__ import annotations

import ast
from pathlib import Path

from csebench.base.files import read_text, write_text
from csebench.base.project import ROOT

PICTURE = ROOT / "docs" / "rooms.svg"
# sizes in pixels
WIDTH = 640
BOX_WIDTH = 90
BOX_HEIGHT = 34
FLOOR_HEIGHT = 68
ARROW = (
    '<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#6b7280" stroke-width="1.4"'
    ' marker-end="url(#head)"/>'
)
BOX = (
    f'<rect x="{{}}" y="{{}}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" fill="#eef4fb"'
    ' stroke="#3b6ea5"/>'
)
NAME = '<text x="{}" y="{}" text-anchor="middle">{}</text>'
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" font-family="sans-serif" font-size="15">
<title>The rooms of csebench; an arrow leads to a room that is imported</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 8 4 0 8z" fill="#6b7280"/></marker></defs>
<rect width="{0}" height="{1}" rx="8" fill="#ffffff"/>
{2}
</svg>
"""  # noqa: E501


def draw() -> str:
    """Draw the picture as SVG. Equal imports give equal bytes."""
    imported = rooms_below()
    floors = floor_of_rooms(imported)
    height = FLOOR_HEIGHT * (max(floors.values()) + 1)
    centres = centre_of_boxes(floors, height)
    boxes: list[str] = []
    arrows: list[str] = []
    for room, (x, y) in centres.items():
        boxes.append(BOX.format(x - BOX_WIDTH // 2, y - BOX_HEIGHT // 2))
        boxes.append(NAME.format(x, y + 5, room))
        for target in sorted(direct_imports(room, imported)):
            target_x, target_y = centres[target]
            bottom = y + BOX_HEIGHT // 2
            top_of_target = target_y - BOX_HEIGHT // 2
            arrows.append(ARROW.format(x, bottom, target_x, top_of_target))
    return SVG.format(WIDTH, height, "\n".join([*boxes, *arrows]))


# ---------------------------------------------------------------- imports


def rooms_below() -> dict[str, set[str]]:
    """Find the earlier rooms that each room imports, the lowest room first."""
    imports: dict[str, set[str]] = {}
    for path in sorted((ROOT / "csebench").rglob("*.py")):
        room = path.relative_to(ROOT / "csebench").with_suffix("").parts[0]
        imports.setdefault(room, set()).update(imported_rooms(path))
    rooms = [name for name in room_names() if name in imports and not name.startswith("_")]
    return {room: imports[room].intersection(rooms[:index]) for index, room in enumerate(rooms)}


def room_names() -> list[str]:
    """Read the rooms in their order from tests/unit/test_rooms.py."""
    tree = ast.parse(read_text(ROOT / "tests" / "unit" / "test_rooms.py"))
    assigned: dict[str, ast.expr] = {}  # by name
    for node in tree.body:
        if isinstance(node, ast.Assign):
            assigned[ast.unparse(node.targets[0])] = node.value
    return [*ast.literal_eval(assigned["ROOMS"]), *ast.literal_eval(assigned["TOP"])]


def imported_rooms(path: Path) -> set[str]:
    """Find the rooms of csebench that a file imports, at its head or within functions."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(read_text(path))):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for alias in node.names:
            name = alias.name
            if isinstance(node, ast.ImportFrom):
                name = f"{node.module}.{alias.name}"
            if name.startswith("csebench."):
                rooms.add(name.split(".")[1])
    return rooms


def direct_imports(room: str, imported: dict[str, set[str]]) -> set[str]:
    """Leave out the imports of a room that follow from its other imports."""
    indirect = [all_below(target, imported) for target in imported[room]]
    return imported[room].difference(*indirect)


def all_below(room: str, imported: dict[str, set[str]]) -> set[str]:
    """Find all rooms that a room imports, directly or through others."""
    below = set(imported[room])
    for target in imported[room]:
        below |= all_below(target, imported)
    return below


# ---------------------------------------------------------------- places of boxes


def floor_of_rooms(imported: dict[str, set[str]]) -> dict[str, int]:
    """Place each room one floor above the highest room that it imports; the lowest floor is 0."""
    floors: dict[str, int] = {}
    for room, targets in imported.items():
        floors[room] = 1 + max((floors[target] for target in targets), default=-1)
    return floors


def centre_of_boxes(floors: dict[str, int], height: int) -> dict[str, tuple[int, int]]:
    """Spread the rooms of each floor over the width, the lowest floor first."""
    centres = {}
    for floor in sorted(set(floors.values())):
        rooms = [room for room in floors if floors[room] == floor]
        y = height - FLOOR_HEIGHT * floor - FLOOR_HEIGHT // 2
        for index, room in enumerate(rooms):
            centres[room] = (WIDTH * (2 * index + 1) // (2 * len(rooms)), y)
    return centres


if __name__ == "__main__":
    write_text(PICTURE, draw())
