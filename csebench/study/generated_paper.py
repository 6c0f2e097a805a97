"""Write a paper of the project from a command, so that the workflow makes its runs and pages."""

from pathlib import Path

import yaml

from csebench.base import caches
from csebench.base.files import read_text, write_text
from csebench.base.outputs import is_taken, not_ours
from csebench.base.project import folders
from csebench.plan.schema.paper import Recipe


def paper_file(name: str) -> Path:
    """Return the file of a paper in the folder that gets the results."""
    return folders()[-1] / "papers" / f"{name}.yaml"


def table_row(label: str, recipe: Recipe) -> dict:
    """Lay out a row of a table that is run. It has no printed values."""
    return {"label": label, "run": recipe.model_dump(exclude_defaults=True)}


def check_not_of_others(name: str, verb: str) -> None:
    """Raise BadInput if a paper of this name exists, and the command did not write it."""
    path = paper_file(name)
    if is_taken(path) and not read_text(path).startswith(line_of_author(verb)):
        raise not_ours(path, f"a paper that `csebench {verb}` wrote")


def line_of_author(verb: str) -> str:
    """Return the first line of a paper that a command writes."""
    return f"# Written by `csebench {verb}`.\n"


def write_generated_paper(content: dict, verb: str) -> None:
    """Write a paper into its file. The first line names the command that wrote it.

    Args:
        content: the fields of `csebench.plan.schema.paper.Paper`.
        verb: name of the command.

    Raises:
        BadInput: a file of this name exists, and this command did not write it.
    """
    check_not_of_others(content["name"], verb)
    path = paper_file(content["name"])
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    write_text(path, f"{line_of_author(verb)}{text}")
    caches.clear()  # the catalog has read papers/ without this paper
