"""Folders of benchmark data that are read as one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataRoot:
    """Several data roots; stands for a `Path` where data is read. `root / name` is the file or folder of that name in
    the first root that has it; where none has it, in the first."""

    roots: tuple[Path, ...]

    def __truediv__(self, name: str | os.PathLike) -> Path:
        paths = [root / name for root in self.roots]
        return next((path for path in paths if path.exists()), paths[0])

    def __str__(self) -> str:
        return " and ".join(map(str, self.roots))

    def glob(self, pattern: str) -> list[Path]:
        return list(matches(self, pattern).values())


def matches(root: Path | DataRoot, pattern: str) -> dict[str, Path]:
    """Files that a pattern means, by their names below their root, sorted; of equal names that of the first root. Any
    name at all, as in `wiki/*.txt`, means whatever the user put there: the first root that has a file answers it."""
    paths: dict[Path, Path] = {}
    for folder in root.roots if isinstance(root, DataRoot) else (root,):
        for path in folder.glob(pattern):
            paths.setdefault(path.relative_to(folder), path)
        if paths and Path(pattern).stem == "*":
            break
    return {str(name): paths[name] for name in sorted(paths)}
