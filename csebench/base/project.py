"""Version and place of the project, and the folders that join it.

A folder joins with methods, papers, scales, data, … of its own. Here a name is looked up in all of
these folders. What a folder of one kind holds is read by csebench/plan/catalog/.
"""

import os
import sys
from pathlib import Path

from csebench.base.caches import cached

__version__ = "0.2.0"
REPOSITORY = "https://github.com/csebench/csebench"
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent
IS_INSTALLED = not (CHECKOUT / "Snakefile").exists()
# The folder of methods/, papers/, config/, …: beside the package, or in a wheel within it.
ROOT = PACKAGE / "_project" if IS_INSTALLED else CHECKOUT
VARIABLE = "CSEBENCH_PROJECT"  # names the folders that join, separated as in PATH
MARKER = ".csebench"  # a folder with a file of this name joins, if a command runs in or below it

if IS_INSTALLED:
    sys.path.append(str(ROOT))  # methods and evaluators are packages


def folders() -> list[Path]:
    """List the project, then the folders that join it, in order.

    Runs, pages and results are written to the last one.
    """
    named = os.environ.get(VARIABLE)
    if named:
        joined = [Path(name) for name in named.split(os.pathsep)]
    else:
        joined = joining(Path.cwd())
    return list(dict.fromkeys([ROOT, *joined]))


@cached  # it is asked for thousands of times
def joining(here: Path) -> list[Path]:
    """Find the folder that joins without being named.

    It is the current folder, or the nearest one above it, that has a MARKER. If there is none, an
    installed package lets the current folder join, because nothing is written to the package.
    """
    for folder in (here, *here.parents):
        if (folder / MARKER).exists():
            return [folder]
    if IS_INSTALLED:
        return [here]
    return []


def join(names: list[str]) -> None:
    """Let folders join the project, in this process and in those that it starts."""
    paths = [str(Path(name).resolve()) for name in names]
    os.environ[VARIABLE] = os.pathsep.join(paths)


def find(name: str | Path) -> Path:
    """Find a file or folder by its relative name, in the last folder that has it.

    Returns:
        Its path. If no folder has it, the path that it would have in the project.
    """
    for folder in reversed(folders()):
        if (folder / name).exists():
            return folder / name
    return ROOT / name


def name_of(path: Path) -> str:
    """Name a file of the project, or of a folder that joins it: `methods/simcse.py`.

    Any other file is named by its path.
    """
    for folder in folders():
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return str(path)


def snakemake(page: Path) -> str:
    """Word the command that makes a page, in the folder that results are written to."""
    if _is_joined():
        return f"snakemake -s $(csebench snakefile) -j4 {page}"
    return f"snakemake -j4 {page}"


def published(path: Path) -> Path:
    """Find a file below results/.

    If it is not in the folder that results are written to, it may be published in the project.
    """
    if not path.exists() and _is_joined() and (ROOT / path).exists():
        return ROOT / path
    return path


def _is_joined() -> bool:
    """Whether any folder joins the project."""
    return len(folders()) > 1
