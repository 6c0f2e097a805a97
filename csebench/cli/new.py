"""The verbs init and new: a folder that joins the project; a file in it from a template, or from
a pasted table."""

import argparse
import os
import re

from pydantic import TypeAdapter, ValidationError

from csebench.base.errors import BadInput
from csebench.base.files import OWN_FOLDER_HINT, read_text, write_text
from csebench.base.outputs import check_output
from csebench.base.project import MARKER, ROOT, folders
from csebench.cli.paper_import import with_tables
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.declarations import Name

LAYOUT = ("methods", "methods/components", "evaluators", "papers", "evidence", "config", "data")
FILE_TEMPLATES = {
    "method": "methods/_template.py",
    "component": "methods/components/_template.py",
    "evaluator": "evaluators/_template.py",
    "paper": "papers/_template.yaml",
}
LONGEST_NAME = 20  # characters, as declarations.Name


def init(args):
    """Make a folder for one's own methods, papers and results; what is there stays."""
    for name in LAYOUT:
        check_output(args.folder / name, is_folder=True)  # all of them, before any is made
    for name in LAYOUT:
        (args.folder / name).mkdir(parents=True, exist_ok=True)
    if not (args.folder / MARKER).exists():
        about = "In this folder, csebench finds its methods, papers, scales … and writes results.\n"
        write_text(args.folder / MARKER, about)
    print(f"{args.folder}: put your own files into {', '.join(LAYOUT)}. In it, for example:")
    print(f"  cd {args.folder}\n  csebench new method mine\n  csebench try methods/mine.py")


def file_name(text: str) -> str:
    """The type of the name of a new file: small letters, digits and _."""
    try:
        return TypeAdapter(Name).validate_python(text)
    except ValidationError:
        why = (
            f"{text!r} cannot be the name of a file here: take a letter from a to z, then letters,"
        )
        why += f" digits and _, at most {LONGEST_NAME} characters"
        near = re.sub(r"\W+", "_", text).lower().lstrip("_0123456789")[:LONGEST_NAME].rstrip("_")
        if near:
            why += f", such as {near!r}"
        raise argparse.ArgumentTypeError(why) from None


def new(args):
    """Write a file from the template of its kind. Raises BadInput: the name is taken, or the
    table cannot be read."""
    template, name = FILE_TEMPLATES[args.kind], args.name
    file = template.replace("_template", name)
    if args.kind == "paper":
        catalog.check_file_name("papers", name)
    if any(
        os.path.lexists(folder / name)
        for folder in folders()
        for name in (file, file.removesuffix(".py"))
    ):
        raise BadInput(f"{file}: exists, or a folder of this name does; choose another name.")
    text, title = read_text(ROOT / template), name.replace("_", " ").capitalize()
    text = text.replace("template", name).replace("Template", title)
    unread: list[str] = []
    if args.table is not None:
        if args.kind != "paper":
            raise BadInput("--from: only a paper is made from a table.")
        text = with_tables(text, args.table, unread)
    path = folders()[-1] / file
    check_output(path, remedy=OWN_FOLDER_HINT)
    write_text(path, text.replace("$schema=..", f"$schema={os.path.relpath(ROOT, path.parent)}"))
    print("\n".join([file, *unread, "", f"csebench show {name}"]))


# ---------------------------------------------------------------- pasted tables
