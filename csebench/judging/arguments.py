"""The systems that a command line names, with their sources."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import is_there
from csebench.base.hub import COMMIT

SUFFIXES = (".json", ".jsonl", ".csv", ".npz")  # of files that can be judged
SEED_FOLDER = re.compile(r"seed[-_].+|(seed)?\d+", re.IGNORECASE)  # names of folders that are seeds


@dataclass(frozen=True)
class NamedSources:
    """A system with its sources: absolute paths, or ids of the hub."""

    name: str
    sources: tuple[str, ...]
    other_name: str  # if another system has the same name


@dataclass(frozen=True)
class SystemArgument:
    """A word of the command line, and the folder that its paths start from.

    The word is `PATH`, or `NAME=PATH,PATH` with the seeds of one system. A path may be a pattern
    such as `runs/seed-*.json`. A folder of folders that are named as seeds stands for these.
    """

    text: str
    folder: Path

    def systems(self) -> list[NamedSources]:
        """Find the sources of the systems. Only a pattern without a name gives several systems.

        Raises:
            BadInput: a pattern matches nothing, or a name or path is empty.
        """
        name, equals, paths = self.text.partition("=")
        if not equals or is_there(self.folder / self.text):
            return [self.unnamed(path) for path in self.matching(self.text)]
        if not name:
            raise BadInput(f"{self.text}: has no name before the `=`; write NAME={paths}.")
        sources: list[str] = []
        for path in paths.split(","):
            for matching in self.matching(path):
                sources += seeds_of(matching)
        return [NamedSources(name, tuple(sources), name)]

    def unnamed(self, source: str) -> NamedSources:
        """Name a system by its only path: the file without suffix, the folder, or the hub id."""
        path = Path(source)
        if not path.is_absolute():
            return NamedSources(source, (source,), source)
        name = path.stem if path.suffix in SUFFIXES else path.name
        other_name = source
        if path.is_relative_to(self.folder):
            other_name = str(path.relative_to(self.folder))
        return NamedSources(name, tuple(seeds_of(source)), other_name)

    def matching(self, path: str) -> list[str]:
        """List what a path or pattern stands for. Paths become absolute.

        Raises:
            BadInput: the path is empty, or the pattern matches nothing.
        """
        if not path:
            raise BadInput(f"{self.text!r}: has an empty path; write NAME=PATH,PATH.")
        file = self.folder / path
        if is_there(file):
            return [str(file)]
        if not has_magic(path):
            return [str(file)] if file.suffix in SUFFIXES else [path]
        found = sorted(glob(path, root_dir=self.folder))
        if not found:
            raise BadInput(f"{path}: no file or folder matches this pattern.")
        return [str(self.folder / name) for name in found]


def seeds_of(source: str) -> list[str]:
    """List the folders in a folder that holds nothing but seeds, named `seed-1`, `42` and so on.

    Other folders are not taken as seeds: mteb and lm-eval write one for each model, and mteb one
    for each commit.

    Returns:
        The source itself if it is anything else.
    """
    path = Path(source)
    if not path.is_absolute() or not path.is_dir():
        return [source]
    inner = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    if len(inner) < 2 or not all(is_seed_folder(entry) for entry in inner):
        return [source]
    return [str(entry) for entry in inner]


def is_seed_folder(path: Path) -> bool:
    """Whether a folder is named as a seed. A commit may consist of digits, but is none."""
    is_named_so = SEED_FOLDER.fullmatch(path.name) and not COMMIT.fullmatch(path.name)
    return bool(is_named_so) and path.is_dir()


def sources_of_arguments(arguments: Iterable[SystemArgument]) -> dict[str, list[str]]:
    """Collect the sources of all words by name of system.

    If several systems have the same name, they are named by their paths.

    Raises:
        BadInput: two systems still have the same name.
    """
    systems: list[NamedSources] = []
    for argument in arguments:
        systems += argument.systems()
    counts = Counter(system.name for system in systems)
    sources: dict[str, list[str]] = {}
    for system in systems:
        name = system.name if counts[system.name] == 1 else system.other_name
        if name in sources:
            raise BadInput(
                f"judge: two systems have the name {name}; write NAME=PATH, or"
                f" {name}=PATH,PATH if they are seeds of one system."
            )
        sources[name] = list(system.sources)
    return sources
