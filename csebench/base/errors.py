"""The exceptions that end a command with a message, which says what is wrong, where (file, key, line), and what to do;
the wording of messages about names and keys."""

from __future__ import annotations

import difflib
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from csebench.base.project import ROOT

MOST_ERRORS = 20  # of one file that a message lists
MOST_NAMES = 12  # that a message lists


class BadInput(Exception):
    """Invalid input: exit code 2, nothing is written."""


class MissingFile(BadInput):
    """A file that is to be read does not exist."""


class RunFailed(Exception):
    """A run failed after it had started: exit code 1, other runs continue."""


class Untrainable(RunFailed):
    """A run whose own settings end it, as by a loss that is not finite: another try would end the same way."""


class Stopped(RunFailed):
    """A run was stopped from outside and wrote a checkpoint, from which it resumes; `interrupted` by SIGINT (Ctrl-C):
    exit code 130."""

    def __init__(self, message: str, interrupted: bool = False):
        super().__init__(message)
        self.interrupted = interrupted


def first_line(error: BaseException) -> str:
    """First line of a message; of errors without one, their kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


@contextmanager
def no_exit() -> Iterator[None]:
    """Around code of methods and evaluators, which must not end the process: with exit code 0 it would pass for done.
    Raises BadInput where it does, by `sys.exit` or `os._exit`; the message names file and line."""
    process, end = os.getpid(), os._exit
    os._exit = lambda code: sys.exit(code) if os.getpid() == process else end(code)  # a fork ends as it does elsewhere
    try:
        yield
    except SystemExit as e:
        raise BadInput(f"{place(e)}: ends the process (exit); raise an error instead.") from None
    finally:
        os._exit = end


def place(error: BaseException) -> str:
    """`evaluators/sts.py: line 3`: where an error was raised, the last line of the project on the way there."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = (f for f in reversed(frames) if Path(f.filename).is_relative_to(ROOT) and f.filename != __file__)
    called = next(inside, frames[-1])
    file = Path(called.filename)
    return f"{file.relative_to(ROOT) if file.is_relative_to(ROOT) else file}: line {called.lineno}"


def unknown(kind: str, name: str, known: Iterable, where: str = "", hint: str = "") -> BadInput:
    """The error for a name that does not exist, with the nearest that does, and all of them if they are few.

    Args:
        hint: how to list the known names, for where they are many.
    """
    known, name = sorted({*map(str, known)}, key=by_number), shortened(str(name))
    if len(known) <= MOST_NAMES:
        hint = f"Known: {', '.join(known) or 'none'}."
    parts = [f"{where}:" if where else "", f"unknown {kind} {name!r}.", did_you_mean(nearest(name, known)), hint]
    return BadInput(" ".join(filter(None, parts)))


def did_you_mean(names: Iterable[str]) -> str:
    """`Did you mean 'a' or 'b'?`, nothing without names."""
    choice = " or ".join(map(repr, names))
    return f"Did you mean {choice}?" if choice else ""


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known name that is most like another, in a list, which is empty where none is like it; upper and lower case
    count as the same."""
    known = {text.lower(): text for text in known}
    return [known[text] for text in difflib.get_close_matches(name.lower(), known, 1)]


def by_number(name: str) -> tuple:
    """A sort key for names: table2 before table10."""
    return tuple((not part.isdigit(), int(part) if part.isdigit() else part) for part in re.findall(r"\d+|\D+", name))


def explain(error: ValidationError, file: str, known=(), places: Mapping[tuple, int] | None = None) -> BadInput:
    """A pydantic error as lines of `file: key: what is wrong`.

    Args:
        known: keys, of which the nearest are named where a key is unknown.
        places: the line of every key and item of the file, for `file: line 3: key: what is wrong`.
    """
    lines, errors = [], error.errors(include_url=False)
    for e in errors[:MOST_ERRORS]:
        key, where = ".".join(map(str, e["loc"])) or "(top level)", file
        if places:
            inner = next(loc for n in range(len(e["loc"]), -1, -1) if (loc := tuple(e["loc"][:n])) in places)
            where = f"{file}: line {places[inner]}"
        if e["type"] == "extra_forbidden":
            hint = did_you_mean(nearest(str(e["loc"][-1]), known))
            lines.append(f"{where}: {key}: unknown key. {hint}".rstrip())
        else:
            is_long = e["type"] == "missing" or isinstance(e["input"], dict | list)  # the input is a whole section
            got = "" if is_long else f" (got {shortened(repr(e['input']))})"
            lines.append(f"{where}: {key}: {e['msg'].removeprefix('Value error, ')}{got}.")
    if len(errors) > MOST_ERRORS:
        lines.append(f"{file}: and {len(errors) - MOST_ERRORS} more.")
    return BadInput("\n".join(lines))


def shortened(text: str, length: int = 300) -> str:
    """A text as a message can show it; of a long one its ends."""
    return text if len(text) <= length else f"{text[: length // 2]}…{text[-length // 3 :]}"


def field_names(model: type[BaseModel]) -> set[str]:
    """Every key of a model and of the models inside it, for suggestions."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", {})}
