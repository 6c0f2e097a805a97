"""What a terminal shows: bars while something takes more than two seconds, and tables; tables for programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from tabulate import tabulate
from tqdm import tqdm

from csebench.base.processes import is_main_process

DELAY_SECONDS = 2
CLEAR_LINE = "\r\x1b[K"


def on_terminal() -> bool:
    """Whether a person sees what this process writes to stderr."""
    return is_main_process() and sys.stderr.isatty()


def bar(items: Iterable | None, what: str, unit: str = "it", **more) -> tqdm:
    """A progress bar that appears after two seconds, in a terminal only, and vanishes at its end: iterates over the
    items, or over nothing, to be moved by `update`; `more` is for tqdm, as in `total=100`."""
    about = {"desc": what, "unit": unit, "delay": DELAY_SECONDS, "leave": False, "disable": not on_terminal()}
    return tqdm(items, **about | more)


@contextmanager
def loading(what: str) -> Iterator[None]:
    """The line `loading PyTorch …` in a terminal while a block is under way."""
    if on_terminal():
        print(f"loading {what} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if on_terminal():
            print(end=CLEAR_LINE, file=sys.stderr, flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence], as_json: bool = False, **layout) -> None:
    """Print rows as a table, or as a JSON list with an object per row; `layout` is for tabulate."""
    print(json_text(records(columns, rows)) if as_json else tabulate(rows, columns, **layout))


def records(columns: Sequence[str], rows: Iterable[Sequence]) -> list[dict]:
    """Each row as a dict by column; a short row lacks the last columns."""
    return [dict(zip(columns, row, strict=False)) for row in rows]


def json_text(content) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


def csv_text(columns: Sequence[str], rows: Iterable[dict]) -> str:
    """Equal rows give equal bytes."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
