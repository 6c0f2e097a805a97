"""The verbs `init` and `new`: make a folder that joins the project, or a file in it.

A file comes from a template. A paper may also come from a pasted table (paper_import.py).
"""

import argparse
import os
import re
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from csebench.base.errors import BadInput
from csebench.base.files import OWN_FOLDER_HINT, read_text, write_text
from csebench.base.outputs import check_output
from csebench.base.project import MARKER, ROOT, folders
from csebench.cli.paper_import import with_tables
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.declarations import Name

LAYOUT = ("methods", "methods/components", "evaluators", "papers", "evidence", "config", "data")
ABOUT = "In this folder, csebench finds its methods, papers, scales … and writes results.\n"
FILE_TEMPLATES = {
    "method": "methods/_template.py",
    "component": "methods/components/_template.py",
    "evaluator": "evaluators/_template.py",
    "paper": "papers/_template.yaml",
}
LONGEST_NAME = 20  # characters, as in declarations.Name


def init(args):
    """Make a folder for one's own methods, papers and results. Files that are there stay."""
    for name in LAYOUT:  # check all of them before any is made
        check_output(args.folder / name, is_folder=True)
    for name in LAYOUT:
        (args.folder / name).mkdir(parents=True, exist_ok=True)
    if not (args.folder / MARKER).exists():
        write_text(args.folder / MARKER, ABOUT)
    print(f"{args.folder}: put your own files into {', '.join(LAYOUT)}. In it, for example:")
    print(f"  cd {args.folder}\n  csebench new method mine\n  csebench try methods/mine.py")


def new(args):
    """Write a file from the template of its kind.

    Raises:
        BadInput: the name is taken, or the table cannot be read.
    """
    template = FILE_TEMPLATES[args.kind]
    file = template.replace("_template", args.name)
    if args.table is not None and args.kind != "paper":
        raise BadInput("--from: only a paper is made from a table.")
    if args.kind == "paper":
        catalog.check_file_name("papers", args.name)
    if is_name_taken(file):
        raise BadInput(f"{file}: exists, or a folder of this name does; choose another name.")

    title = args.name.replace("_", " ").capitalize()
    names = {"template": args.name, "Template": title}
    # in one pass, because the name itself may contain "template"
    text = re.sub("[Tt]emplate", lambda match: names[match[0]], read_text(ROOT / template))
    unread: list[str] = []
    if args.table is not None:
        text, unread = with_tables(text, args.table)
    path = folders()[-1] / file
    check_output(path, remedy=OWN_FOLDER_HINT)
    write_text(path, with_schema(text, path))
    print("\n".join([file, *unread, "", f"csebench show {args.name}"]))


def is_name_taken(file: str) -> bool:
    """Whether a file or folder of this name is in a folder of the project.

    A method `components` would hide the folder methods/components/.
    """
    for folder in folders():
        for name in (file, file.removesuffix(".py")):
            if os.path.lexists(folder / name):
                return True
    return False


def with_schema(text: str, path: Path) -> str:
    """Point the line `$schema=` of a YAML file to the schemas of csebench."""
    return text.replace("$schema=..", f"$schema={os.path.relpath(ROOT, path.parent)}")


def file_name(text: str) -> str:
    """Check the name of a new file: a letter from a to z, then letters, digits and _.

    An argparse type.
    """
    try:
        return TypeAdapter(Name).validate_python(text)
    except ValidationError:
        problem = (
            f"{text!r} cannot be the name of a file here: take a letter from a to z, then letters,"
            f" digits and _, at most {LONGEST_NAME} characters"
        )
        allowed = re.sub(r"\W+", "_", text, flags=re.ASCII).lower().lstrip("_0123456789")
        allowed = allowed[:LONGEST_NAME].rstrip("_")
        if allowed:
            problem += f", such as {allowed!r}"
        raise argparse.ArgumentTypeError(problem) from None
