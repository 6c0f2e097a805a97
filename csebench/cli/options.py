"""The types of options, and the options that several verbs share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from csebench.base.errors import BadInput, shortened
from csebench.base.files import check_output
from csebench.plan import catalog, registry, targets


def number(text: str, kind: str, is_valid: Callable[[Any], bool], parse: Callable[[str], Any] = float) -> Any:
    """A number of a kind, which the message about other text names."""
    try:
        value = parse(text)
    except ValueError:
        value = math.nan
    if not is_valid(value):
        raise argparse.ArgumentTypeError(f"{shortened(text, 40)!r} is not {kind}")
    return value


def whole(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """The type of an option that is a whole number within bounds."""
    return lambda text: number(text, f"a whole number from {low} to {high}", lambda value: low <= value <= high, int)


positive, not_negative = whole(1), whole(0)
SEED, THREADS, BATCH_SIZE = whole(0, 2**32 - 1), whole(1, 1024), whole(1, 2**20)


def above_zero(text: str) -> float:
    return number(text, "a number above 0", lambda value: 0 < value < math.inf)


def output_file(text: str) -> Path:
    return _output(text, is_folder=False)


def output_folder(text: str) -> Path:
    return _output(text, is_folder=True)


def _output(text: str, is_folder: bool) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    try:
        check_output(Path(text), is_folder)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return Path(text)


def parse_targets(args) -> list[targets.Page]:
    """The distinct pages of all targets."""
    catalog.scale(args.scale)
    return list({str(p.path): p for t in args.target for p in targets.parse_target(t, args.scale)}.values())


def distinct_evaluators(text: str) -> list[str]:
    """The evaluators of an option, each once, as one that is named twice would give every row twice."""
    return list(dict.fromkeys(text.split(",")))


def add_scale(to, default=catalog.DEFAULT_SCALE):
    scale = to.add_argument("--scale", default=default, help="sizes, schedules and encoders: a file of config/")
    scale.completer = lambda **_: catalog.scale_names()


def add_targets(to, nargs=None):
    text = "all, a paper (micse), a table or figure (table2, micse/table2), or the path of a page"
    target = to.add_argument("target", nargs=nargs, help=text, default=["all"] if nargs == "*" else None)
    target.completer = lambda **_: target_names()


def add_json(to):
    to.add_argument("--json", action="store_true", help="print JSON in place of tables")


def add_evaluators(to):
    text = "comma-separated, as in sts,transfer:fasttest,beir:scifact"
    evaluators = to.add_argument("--evaluators", default="sts", help=text)
    evaluators.completer = lambda **_: registry.names(registry.EVALUATORS)


def add_data(to, use="benchmark data"):
    to.add_argument("--data", type=Path, help=f"folder of {use} (default: CSEBENCH_DATA, else the fetched data)")


def add_chunk_size(to):
    text = "sentences that an encoder in training has in memory at a time; 0: the batch"
    to.add_argument("--chunk-size", type=not_negative, default=0, help=text)


# ---------------------------------------------------------------- names that the shell completes


def target_names() -> list[str]:
    return ["all", *catalog.GENERATED, *paper_names()]


def paper_names() -> list[str]:
    """Papers, and their tables and figures."""
    grids = [f"{paper}/{name}" for paper in catalog.paper_names() for name in targets.grid_names(paper)]
    return [*catalog.paper_names(), *grids]


def described_names() -> list[str]:
    """What `csebench show` describes: methods, components, evaluators, papers, tables and figures."""
    folders = (registry.METHODS, registry.COMPONENTS, registry.EVALUATORS)
    return [*(name for folder in folders for name in registry.names(folder)), *paper_names()]
