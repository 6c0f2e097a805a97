"""Version and place of the project, and the folders that join it with methods, papers, scales …
of their own."""

import os
import sys
from pathlib import Path

from csebench.base.caches import cached

__version__ = "0.2.0"
REPOSITORY = "https://github.com/csebench/csebench"
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent
IS_INSTALLED = not (CHECKOUT / "Snakefile").exists()
# methods/, papers/, config/ … lie beside the package; in a wheel, within it
ROOT = PACKAGE / "_project" if IS_INSTALLED else CHECKOUT
VARIABLE = "CSEBENCH_PROJECT"  # folders that join, as in PATH
MARKER = ".csebench"  # a file that makes a folder such a one, in it and below it

if IS_INSTALLED:
    sys.path.append(str(ROOT))  # methods and evaluators are packages


def folders() -> list[Path]:
    """The project, then the folders that join it, in order. Runs, pages and results are written
    to the last."""
    given = os.environ.get(VARIABLE)
    joined = [Path(name) for name in given.split(os.pathsep)] if given else joining(Path.cwd())
    return list(dict.fromkeys([ROOT, *joined]))


@cached
def joining(here: Path) -> list[Path]:
    """What joins without being named: the current folder or the nearest above it with a MARKER;
    beside an installed package, which is not written to, else the current one. Remembered, as it is
    asked for thousands of times.
    """
    return [folder for folder in (here, *here.parents) if (folder / MARKER).exists()][:1] or [
        here
    ] * IS_INSTALLED


def join(names: list[str]) -> None:
    """Let folders join the project, in this process and those that it starts."""
    os.environ[VARIABLE] = os.pathsep.join(str(Path(name).resolve()) for name in names)


def find(name: str | Path) -> Path:
    """A file or folder by its relative name: in the last folder that has it, else where the
    project would have it."""
    return next(
        (path for folder in reversed(folders()) if (path := folder / name).exists()), ROOT / name
    )


def name_of(path: Path) -> str:
    """The name of a file below the folder that holds it: `methods/simcse.py`; of any other file
    its path."""
    return next(
        (str(path.relative_to(folder)) for folder in folders() if path.is_relative_to(folder)),
        str(path),
    )


def snakemake(page: Path) -> str:
    """The command that makes a page, in the folder that results are written to."""
    return f"snakemake {'-s $(csebench snakefile) ' if folders()[1:] else ''}-j4 {page}"


def published(path: Path) -> Path:
    """A file below results/; where the folders that join have none, that of the project, if it
    is published there."""
    return ROOT / path if not path.exists() and folders()[1:] and (ROOT / path).exists() else path
