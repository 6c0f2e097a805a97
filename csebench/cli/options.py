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

# of poolers, in libraries
OTHER_NAMES = {"mean": "avg", "average": "avg", "first-last-avg": "avg_first_last_2022"}


def number_type(annotation: Any) -> Callable[[str], Any]:
    """The argparse type of an option whose values and bounds are declared for pydantic."""
    adapter = TypeAdapter(annotation)

    def parse(text: str) -> Any:
        try:
            return adapter.validate_strings(text)
        except ValidationError as error:
            reason = error.errors()[0]["msg"].replace("Input", "it", 1)
            raise argparse.ArgumentTypeError(f"{shortened(text, 40)!r}: {reason}") from None

    return parse


def whole(low: int, high: int = LARGEST_INTEGER) -> Callable[[str], int]:
    """The type of an option that is a whole number within bounds."""
    return number_type(Annotated[int, Field(ge=low, le=high)])


def output_file(text: str, is_folder: bool = False) -> Path:
    """The type of an option that is a path to write to; a link is followed. Raises BadInput
    where it cannot be written, or would change a model."""
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    path = followed(Path(text))
    check_output(path, is_folder)
    if not is_stream(path):
        refuse_model_folder(path.absolute())
    return path


output_folder = partial(output_file, is_folder=True)


def pooler(text: str) -> str:
    """The type of an option that names a pooler. Raises BadInput, with the name that other
    libraries' names mean."""
    if text in OTHER_NAMES:
        raise BadInput(f"--pooler: unknown pooler {text!r}. Did you mean {OTHER_NAMES[text]!r}?")
    if text not in POOLERS:
        raise unknown("pooler", text, POOLERS, "--pooler")
    return text


def parse_targets(args) -> list[targets.Page]:
    """The distinct pages of all targets."""
    catalog.scale(args.scale)
    return list(
        {str(p.path): p for t in args.target for p in targets.parse_target(t, args.scale)}.values()
    )


def paper_and_grid_names() -> list[str]:
    """Papers, and their tables and figures."""
    grids = [
        f"{paper}/{name}" for paper in catalog.paper_names() for name in targets.grid_names(paper)
    ]
    return [*catalog.paper_names(), *grids]


def described_names() -> list[str]:
    """What `csebench show` describes: methods, components, evaluators, papers, tables and
    figures."""
    folders = (registry.METHODS, registry.COMPONENTS, registry.EVALUATORS)
    return [
        *(name for folder in folders for name in registry.adapter_names(folder)),
        *paper_and_grid_names(),
    ]
