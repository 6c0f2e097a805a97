"""Version and place of the project, and the folders that join it.

A user's folder can join the project, and add methods, papers, scales, data, … to it. This module
lists the folders, and looks a name up in all of them. csebench/plan/catalog/ reads their content.
"""

import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from csebench.base.caches import cached

__version__ = "0.2.0"
REPOSITORY = "https://github.com/csebench/csebench"
PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent
IS_INSTALLED = not (CHECKOUT / "Snakefile").exists()
# The folder that holds methods/, papers/, config/, …. In a checkout, the package is in it. In a
# wheel, it is in the package.
ROOT = PACKAGE / "_project" if IS_INSTALLED else CHECKOUT
VARIABLE = "CSEBENCH_PROJECT"  # names the folders that join, separated as in PATH
MARKER = ".csebench"  # file in a folder that joins if a command runs in this folder or below it

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
    """Find the folder that joins although VARIABLE does not name it.

    This is the nearest folder with a MARKER, from the current folder upwards. If there is none, and
    csebench is installed, the current folder joins, because results must not be written into the
    installed package.

    Returns:
        One folder, or none.
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


def snakemake(*files: Path | str) -> str:
    """Return the command that makes files. It is run in the folder that results are written to."""
    return f"{_snakemake()} -j4 {' '.join(map(str, files))}"


def snakemake_at_scale(targets: Iterable[str], scale: str) -> str:
    """Return the command that makes pages, or `all`, of a scale.

    It is run in the folder that results are written to.
    """
    return f"{_snakemake()} -j4 --config scale={scale} -- {' '.join(targets)}"


def snakemake_on_slurm(targets: Iterable[str], scale: str) -> str:
    """Return the command that makes pages, or `all`, of a scale by jobs of SLURM."""
    profile = "profiles/slurm"
    if _is_joined():
        profile = shlex.quote(str(ROOT / profile))
    command = f"{_snakemake()} --workflow-profile {profile}"
    return f"{command} --config scale={scale} -- {' '.join(targets)}"


def _snakemake() -> str:
    """Return how snakemake is called in the folder that results are written to."""
    if _is_joined():
        return "snakemake -s $(csebench snakefile)"
    return "snakemake"


def published(path: Path) -> Path:
    """Find a file below results/, which may be published in the project.

    Args:
        path: relative to the current folder, which is the one that results are written to.

    Returns:
        The file in the current folder, or else in the project. If neither has it, `path`.
    """
    if not path.exists() and _is_joined() and (ROOT / path).exists():
        return ROOT / path
    return path


def _is_joined() -> bool:
    """Whether any folder joins the project."""
    return len(folders()) > 1
