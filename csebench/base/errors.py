"""The exceptions that end a command with a message: what is wrong, where (file, line, key), and
what to do."""

import difflib
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from csebench.base.project import folders, name_of
from csebench.base.shown import visible

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
MOST_ERRORS = 20  # of one file that a message lists
MOST_LISTED = 12  # that a message lists


class BadInput(Exception):
    """Invalid input: exit code 2, nothing is written."""


class MissingFile(BadInput):
    """A file that is to be read does not exist."""


class RunFailed(Exception):
    """A run failed after it had started: exit code 1, other runs continue."""


class Untrainable(RunFailed):
    """A run whose own settings end it, as by a loss that is not finite: another try would end
    the same way."""


class OutOfMemory(RunFailed):
    """A run that does not fit on its GPU: another try would end the same way, but for another
    chunk size."""


class Stopped(RunFailed):
    """A run was stopped from outside, and resumes from a checkpoint; `interrupted`: by SIGINT,
    exit code 130."""

    def __init__(self, message: str, interrupted: bool = False):
        super().__init__(message)
        self.interrupted = interrupted


def problem_of(function: Callable, *args) -> str | None:
    """The message of the BadInput that a call raises; None where it raises none."""
    try:
        function(*args)
    except BadInput as error:
        return str(error)
    return None


def first_line(error: BaseException) -> str:
    """First line of a message; of errors without one, their kind."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def last_error(printed: str) -> str:
    """The reason in what a process printed: the last of its messages and exceptions, else its
    last line."""
    last = printed.split("\n")[-2:-1] or ["ended without a message; was it killed?"]
    reasons = [*last, *re.findall(r"^(?:csebench: |[\w.]*(?:Error|Exception): ).+", printed, re.M)]
    # PyTorch's advice on anomalies would leave no room for what was changed, and its versions
    reason = reasons[-1].partition(" Hint: enable anomaly detection")[0]
    return shortened(reason.removeprefix("csebench: "))


def place(error: BaseException) -> str:
    """`evaluators/sts.py: line 3`: where an error was raised, the last line of the project on
    the way there."""
    frames = traceback.extract_tb(error.__traceback__)
    known = tuple(f"{folder}/" for folder in folders())
    frame = next((f for f in reversed(frames) if f.filename.startswith(known)), frames[-1])
    return f"{name_of(Path(frame.filename))}: line {frame.lineno}"


def unknown(kind: str, name: str, known: Iterable, where: str = "", hint: str = "") -> BadInput:
    """The error for a name that does not exist: the nearest that does; all of them if they are
    few, else a `hint`."""
    known, name = sorted({*map(str, known)}, key=by_number), shortened(str(name))
    if len(known) <= MOST_LISTED:
        hint = f"Known: {', '.join(known) or 'none'}."
    where = f"{where}: " if where else ""
    return BadInput(f"{where}unknown {kind} {name!r}.{did_you_mean(name, known)} {hint}".rstrip())


def look_up(kind: str, name: str, known: Mapping[str, T], where: str = "") -> T:
    """What a name stands for. Raises BadInput (`unknown`) where it stands for nothing."""
    if name not in known:
        raise unknown(kind, name, known, where)
    return known[name]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean 'simcse'?`, the known name that is most like another, in upper or lower case;
    else nothing.

    Of a file of the project, as `methods/simsce.py`, the name without folder and suffix counts.
    """
    known = {text.lower(): text for text in known}
    wanted = re.sub(r"^.*/(\w+)\.(?:py|yaml)$", r"\1", name.lower())
    near = difflib.get_close_matches(wanted, known, 1)
    return f" Did you mean {known[near[0]]!r}?" if near else ""


def by_number(name: str) -> tuple:
    """A sort key for names: table2 before table10."""
    return tuple(
        (not part.isdigit(), int(part) if part.isdigit() else part)
        for part in re.findall(r"\d+|\D+", name)
    )


@cache  # a class does not change
def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a model and of the models inside it."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return [key for part in parts for key in part.get("properties", {})]


def validated(
    model: type[M],
    content,
    file: str,
    locate: Callable | None = None,
    remedy: str = "",
    context=None,
) -> M:
    """Content as a pydantic model. Raises BadInput with a line `file: key: what is wrong` per
    error; where a key is unknown, it names the nearest of the model and of the models inside it.

    Args:
        locate: `files.Lines.locate`: `file: line 3`, and the keys that are in the file, for a path
            of keys.
        remedy: what to do, at the end of the message.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as error:
        lines, errors = [], error.errors(include_url=False)
    known = keys_of(model)
    for e in errors[:MOST_ERRORS]:
        where, keys = locate(e["loc"]) if locate else (file, e["loc"])
        keys = (*keys, e["loc"][-1]) if locate and e["type"] == "missing" else keys
        begin = f"{where}: {visible('.'.join(map(str, keys))) or '(top level)'}:"
        if e["type"] == "extra_forbidden":
            lines.append(f"{begin} unknown key.{did_you_mean(str(e['loc'][-1]), known)}")
        else:
            # the input is a whole section
            is_long = e["type"] == "missing" or isinstance(e["input"], dict | list)
            got = "" if is_long else f" (got {shortened(repr(e['input']))})"
            lines.append(f"{begin} {e['msg'].removeprefix('Value error, ')}{got}.")
    if len(errors) > MOST_ERRORS:
        lines.append(f"{file}: and {len(errors) - MOST_ERRORS} more.")
    raise BadInput("\n".join([*lines[:-1], f"{lines[-1]} {remedy}".rstrip()]))


def shortened(text: str, length: int = 300) -> str:
    """A text as a message can show it; of a long one its ends."""
    return text if len(text) <= length else f"{text[: length // 2]}…{text[-length // 3 :]}"
