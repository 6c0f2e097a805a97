"""Folders of benchmark data that are read as one: a file is looked up in the first, then in the next."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataRoot:
    """Several data roots, the given one before what was fetched; stands for a `Path` where data is read.

    `root / name` is the file or folder of that name in the first root that has it; where none has it, in the first.
    """

    roots: tuple[Path, ...]

    def __truediv__(self, name: str | os.PathLike) -> Path:
        paths = [root / name for root in self.roots]
        return next((path for path in paths if path.exists()), paths[0])

    def __str__(self) -> str:
        return " and ".join(map(str, self.roots))

    def glob(self, pattern: str) -> list[Path]:
        """Files of every root, of equal names the first. A pattern for any name at all, such as `wiki/*.txt`, means
        whatever the user put there: the first root that has a file answers it."""
        files: dict[Path, Path] = {}
        for root in self.roots:
            for path in root.glob(pattern):
                files.setdefault(path.relative_to(root), path)
            if files and Path(pattern).stem == "*":
                break
        return list(files.values())


def matches(root: Path | DataRoot, pattern: str) -> dict[str, Path]:
    """Files below a data root that a pattern means, by their names below it, in the order of their paths."""
    roots = root.roots if isinstance(root, DataRoot) else (root,)
    names = {}
    for path in root.glob(pattern):
        within = next(folder for folder in roots if path.is_relative_to(folder))
        names[path.relative_to(within)] = path
    return {str(name): names[name] for name in sorted(names)}
