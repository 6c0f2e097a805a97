"""The systems that a command line names, with their sources."""

from collections.abc import Iterable
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import is_there

SUFFIXES = (".json", ".jsonl", ".csv", ".npz")  # of files that can be judged


@dataclass(frozen=True)
class SystemArgument:
    """A word of the command line, and the folder that its paths start from.

    The word is `PATH`, or `NAME=PATH,PATH` with the seeds of one system. A path may be a pattern
    such as `runs/seed-*.json`.
    """

    text: str
    folder: Path

    def sources(self) -> dict[str, list[str]]:
        """Find the sources by name of system. A pattern without a name gives several systems.

        Raises:
            BadInput: a pattern matches nothing, or a name or path is empty.
        """
        name, equals, paths = self.text.partition("=")
        if not equals or is_there(self.folder / self.text):
            return {name_of_source(source): [source] for source in self.expanded(self.text)}
        sources: list[str] = []
        for path in paths.split(","):
            sources += self.expanded(path)
        if not name:
            raise BadInput(f"{self.text}: has no name before the `=`; write NAME={paths}.")
        return {name: sources}

    def expanded(self, path: str) -> list[str]:
        """List what a path or pattern stands for, with absolute paths."""
        if not path:
            raise BadInput(f"{self.text!r}: has an empty path; write NAME=PATH,PATH.")
        file = self.folder / path
        if is_there(file):
            return [str(file)]
        if not has_magic(path):
            return [str(file)] if file.suffix in SUFFIXES else [path]
        found = sorted(glob(str(file)))
        if not found:
            raise BadInput(f"{path}: no file or folder matches this pattern.")
        return found


def name_of_source(source: str) -> str:
    """Name a system by its only source: the file without suffix, the folder, or the hub id."""
    path = Path(source)
    if not path.is_absolute():
        return source  # an id of the hub
    return path.stem if path.suffix in SUFFIXES else path.name


def sources_of_arguments(arguments: Iterable[SystemArgument]) -> dict[str, list[str]]:
    """Collect the sources of all words by name of system.

    Raises:
        BadInput: two systems have the same name.
    """
    sources: dict[str, list[str]] = {}
    for argument in arguments:
        for name, of_system in argument.sources().items():
            if name in sources:
                raise BadInput(
                    f"{argument.text}: two systems have the name {name}; write NAME=PATH, or"
                    f" {name}=PATH,PATH if they are seeds of one system."
                )
            sources[name] = of_system
    return sources
