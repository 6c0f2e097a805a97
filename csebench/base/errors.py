"""The exceptions that end a command with a message, and the wording of messages about names and keys.

A message says what is wrong, where (file, key, line), and what to do. Reading of files: csebench/base/files.py.
"""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from csebench import ROOT

MOST_ERRORS = 20  # of one file that a message lists
MOST_NAMES = 12  # that a message lists


class BadInput(Exception):
    """Invalid input: exit code 2, nothing is written."""


class MissingFile(BadInput):
    """A file that is to be read does not exist."""


class RunFailed(Exception):
    """A run failed after it had started: exit code 1, other runs continue."""


class Stopped(RunFailed):
    """A run was stopped from outside and wrote a checkpoint, from which it resumes.

    Args:
        interrupted: by SIGINT (Ctrl-C): exit code 130.
    """

    def __init__(self, message: str, interrupted: bool = False):
        super().__init__(message)
        self.interrupted = interrupted


def first_line(error: Exception) -> str:
    """First line of a message; of errors without one, their kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


@contextmanager
def no_exit() -> Iterator[None]:
    """Around code of methods and evaluators, which must not end the process.

    Raises:
        BadInput: it did, by `sys.exit`; the message names file and line. With exit code 0 it would pass for done.
    """
    try:
        yield
    except SystemExit as e:
        frames = traceback.extract_tb(e.__traceback__)
        called = next((f for f in reversed(frames) if Path(f.filename).is_relative_to(ROOT)), frames[-1])
        file = Path(called.filename)
        file = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
        raise BadInput(f"{file}: line {called.lineno}: ends the process (sys.exit); raise an error instead.") from None


def unknown(kind: str, name: str, known, where: str = "") -> BadInput:
    """The error for a name that does not exist, with the nearest known name, and those that there are: of many the
    nearest ones."""
    known, name = sorted({*map(str, known)}, key=by_number), shortened(str(name))
    near = nearest(name, known, 1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = known if len(known) <= MOST_NAMES else sorted(nearest(name, known, MOST_NAMES), key=by_number)
    more = f" and {len(known) - len(shown)} more" if len(shown) < len(known) else ""
    return BadInput(
        f"{where + ': ' if where else ''}unknown {kind} {name!r}.{hint} Known: {', '.join(shown) or 'none'}{more}."
    )


def nearest(name: str, known: Iterable[str], count: int, cutoff: float = 0.0) -> list[str]:
    """The names that are most like one, the best first; upper and lower case count as the same."""
    by_lower = {text.lower(): text for text in known}
    return [by_lower[text] for text in difflib.get_close_matches(name.lower(), by_lower, count, cutoff)]


def by_number(name: str) -> tuple:
    """A sort key for names: table2 before table10."""
    return tuple((not part.isdigit(), int(part) if part.isdigit() else part) for part in re.findall(r"\d+|\D+", name))


def explain(error: ValidationError, file: str, known=(), places: Mapping[tuple, int] | None = None) -> BadInput:
    """A pydantic error as lines of `file: key: what is wrong`.

    Args:
        known: keys, of which the nearest is named where a key is unknown.
        places: the line of every key and item of the file, for `file: line 3: key: what is wrong`.
    """
    lines, errors = [], error.errors(include_url=False)
    for e in errors[:MOST_ERRORS]:
        key, where = ".".join(map(str, e["loc"])) or "(top level)", file
        if places:
            nearest = next(loc for n in range(len(e["loc"]), -1, -1) if (loc := tuple(e["loc"][:n])) in places)
            where = f"{file}: line {places[nearest]}"
        if e["type"] == "extra_forbidden":
            near = difflib.get_close_matches(str(e["loc"][-1]), list(known), n=1, cutoff=0.5)
            lines.append(f"{where}: {key}: unknown key." + (f" Did you mean {near[0]!r}?" if near else ""))
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
