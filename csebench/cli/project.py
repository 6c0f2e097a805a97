"""Folders that join the project: `--project` of every verb, `csebench init`, `csebench snakefile`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import write_text
from csebench.base.project import MARKER, ROOT, folders, join

LAYOUT = ("methods", "methods/components", "evaluators", "papers", "evidence", "config", "data")
NAMED = ("encoder", "model", "spec")  # arguments that may be the path of a file, or another name


def parse(argv: list[str] | None) -> argparse.Namespace:
    """The arguments of a verb, in the folder that results are written to: the last one that joins the project. Paths
    that the arguments name are of the folder before."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--project", action="append", type=existing)
    known, rest = first.parse_known_args(argv)
    if known.project:
        join(known.project)
    from csebench.cli.verbs import parser  # what it offers depends on the folders

    args = parser().parse_args(rest)
    if (folder := folders()[-1]) not in (ROOT, Path.cwd()):
        for key, value in vars(args).items():
            if isinstance(value, Path) or (key in NAMED and value and Path(value).exists()):
                setattr(args, key, type(value)(Path(value).absolute()))
        os.chdir(folder)
    return args


def existing(name: str) -> str:
    if not Path(name).is_dir():
        raise BadInput(f"--project: {name}: no such folder; `csebench init {name}` makes it.")
    return name


def init(args):
    """Make a folder for one's own methods, papers and results; what is there stays."""
    for name in LAYOUT:
        (args.folder / name).mkdir(parents=True, exist_ok=True)
    if not (args.folder / MARKER).exists():
        write_text(
            args.folder / MARKER, "In this folder, csebench finds its methods, papers, scales … and writes results.\n"
        )
    print(f"{args.folder}: put your own files into {', '.join(LAYOUT)}. In it, for example:")
    print(f"  cd {args.folder}\n  csebench new method mine\n  csebench try methods/mine.py")


def snakefile(args):
    """Print the path of the workflow: `snakemake -s $(csebench snakefile) -j4 results/table2.md`."""
    print(ROOT / "Snakefile")
