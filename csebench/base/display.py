"""What a terminal shows while something takes more than two seconds; where stderr is no terminal, nothing.

The progress of a run, which others read too: csebench/base/progress.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from csebench.base.processes import is_main_process

DELAY_SECONDS = 2
CLEAR_LINE = "\r\x1b[K"


def on_terminal() -> bool:
    """Whether a person sees what this process writes to stderr."""
    return is_main_process() and sys.stderr.isatty()


def bar(items: Iterable | None, what: str, unit: str = "it", **more) -> tqdm:
    """A progress bar that appears after two seconds and vanishes at its end: iterates over the items, or over nothing,
    to be moved by `update`.

    Args:
        more: for tqdm, as in `total=100`.
    """
    about = {"desc": what, "unit": unit, "delay": DELAY_SECONDS, "leave": False, "disable": not on_terminal()}
    return tqdm(items, **about | more)


@contextmanager
def loading(what: str) -> Iterator[None]:
    """The line `loading PyTorch …` while a block is under way."""
    if on_terminal():
        print(f"loading {what} …", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if on_terminal():
            print(end=CLEAR_LINE, file=sys.stderr, flush=True)
