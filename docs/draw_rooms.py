"""Draws docs/rooms.svg from the imports in csebench/: a room stands above all rooms that it
imports.

    python docs/draw_rooms.py

An arrow that follows from others is left out. Rooms and their order are those of
tests/unit/test_rooms.py, which fails where a room imports from a later one.
"""

from __future__ import annotations

import ast

from csebench.base.files import read_text, write_text
from csebench.base.project import ROOT

PICTURE = ROOT / "docs" / "rooms.svg"
WIDTH, BOX_WIDTH, BOX_HEIGHT, FLOOR_HEIGHT = 640, 90, 34, 68  # pixels
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


def rooms_below() -> dict[str, set[str]]:
    """Every room, the lowest first, with the earlier rooms that its files import."""
    tree = ast.parse(read_text(ROOT / "tests" / "unit" / "test_rooms.py"))
    values = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    names = [*ast.literal_eval(values["ROOMS"]), *ast.literal_eval(values["TOP"])]
    imports: dict[str, set[str]] = {}
    for path in sorted((ROOT / "csebench").rglob("*.py")):
        room = path.relative_to(ROOT / "csebench").with_suffix("").parts[0]
        for node in ast.walk(ast.parse(read_text(path))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules = {
                    f"{getattr(node, 'module', '')}.{alias.name}".lstrip(".")
                    for alias in node.names
                }
                imports.setdefault(room, set()).update(
                    m.split(".")[1] for m in modules if m.startswith("csebench.")
                )
    drawn = [name for name in names if name in imports and not name.startswith("_")]
    return {room: imports[room].intersection(drawn[: drawn.index(room)]) for room in drawn}


def draw() -> str:
    """The picture as SVG, of which equal imports give equal bytes."""
    arrows = rooms_below()
    floors: dict[str, int] = {}
    reached: dict[str, set[str]] = {}
    for room, targets in arrows.items():
        floors[room] = 1 + max((floors[target] for target in targets), default=-1)
        reached[room] = targets.union(*(reached[target] for target in targets))
    height = FLOOR_HEIGHT * (max(floors.values()) + 1)
    centres = {}
    for floor in sorted(set(floors.values())):
        row = [room for room in arrows if floors[room] == floor]
        y = height - FLOOR_HEIGHT * floor - FLOOR_HEIGHT // 2
        centres |= {room: (WIDTH * (2 * i + 1) // (2 * len(row)), y) for i, room in enumerate(row)}
    lines, boxes = [], []
    for room, (x, y) in centres.items():
        direct = arrows[room].difference(*(reached[target] for target in arrows[room]))
        ends = [
            (centres[target][0], centres[target][1] - BOX_HEIGHT // 2) for target in sorted(direct)
        ]
        lines += [ARROW.format(x, y + BOX_HEIGHT // 2, *end) for end in ends]
        boxes += [BOX.format(x - BOX_WIDTH // 2, y - BOX_HEIGHT // 2), NAME.format(x, y + 5, room)]
    return SVG.format(WIDTH, height, "\n".join([*boxes, *lines]))


if __name__ == "__main__":
    write_text(PICTURE, draw())
