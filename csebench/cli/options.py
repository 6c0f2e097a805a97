"""The types of options, the targets that verbs take, and the names that can be shown."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from csebench.base.errors import BadInput, shortened, unknown
from csebench.base.models import refuse_model_folder
from csebench.base.outputs import check_output, followed, is_stream
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog import registry
from csebench.plan.schema.declarations import LARGEST_INTEGER, POOLERS

# names of poolers in other libraries
OTHER_NAMES = {"mean": "avg", "average": "avg", "first-last-avg": "avg_first_last_2022"}


# ---------------------------------------------------------------- types of options


def number_type(annotation: Any) -> Callable[[str], Any]:
    """Make the argparse type of a number.

    Args:
        annotation: type and bounds, as declared for pydantic.
    """

    def parse(text: str) -> Any:
        try:
            # build the adapter on use: the parser has many such options, a command uses few
            return TypeAdapter(annotation).validate_strings(text)
        except ValidationError as error:
            # pydantic says `Input should be …`
            reason = error.errors()[0]["msg"].replace("Input", "it", 1)
            raise argparse.ArgumentTypeError(f"{shortened(text, 40)!r}: {reason}") from None

    return parse


def whole(low: int, high: int = LARGEST_INTEGER) -> Callable[[str], int]:
    """Make the argparse type of a whole number within bounds."""
    return number_type(Annotated[int, Field(ge=low, le=high)])


def output_file(text: str, is_folder: bool = False) -> Path:
    """Check a path to write to, and follow its links. The argparse type of outputs.

    Raises:
        ArgumentTypeError: the path is empty.
        BadInput: the path cannot be written, or writing would change a model.
    """
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    path = followed(Path(text))
    check_output(path, is_folder)
    if not is_stream(path):
        refuse_model_folder(path.absolute())
    return path


output_folder = partial(output_file, is_folder=True)


def pooler(text: str) -> str:
    """Check the name of a pooler. The argparse type of --pooler.

    Raises:
        BadInput: the name is unknown. If another library uses it, the message has our name.
    """
    if text in OTHER_NAMES:
        raise BadInput(f"--pooler: unknown pooler {text!r}. Did you mean {OTHER_NAMES[text]!r}?")
    if text not in POOLERS:
        raise unknown("pooler", text, POOLERS, "--pooler")
    return text


# ---------------------------------------------------------------- targets and names


def parse_targets(names: list[str], scale_name: str) -> list[targets.Page]:
    """List the pages of targets, each once. Raise BadInput if there are none."""
    catalog.scale(scale_name)  # refuses an unknown scale
    pages: dict[Path, targets.Page] = {}
    for name in names:
        for page in targets.parse_target(name, scale_name):
            pages[page.path] = page
    if not pages:
        raise BadInput(f"{', '.join(names)}: has no table and no figure.")
    return list(pages.values())


def described_names() -> list[str]:
    """List the names that `csebench show` describes, from methods to tables and figures."""
    names = []
    for folder in (registry.METHODS, registry.COMPONENTS, registry.EVALUATORS):
        names += registry.adapter_names(folder)
    return names + paper_and_grid_names()


def paper_and_grid_names() -> list[str]:
    """List the papers, then their tables and figures."""
    papers = catalog.paper_names()
    grids = []
    for paper in papers:
        grids += [f"{paper}/{name}" for name in targets.grid_names(paper)]
    return [*papers, *grids]
