"""Exceptions that end a command with a message, and the functions that word such messages.

A message says what is wrong, where (file, line, key), and what to do. This module has the
exceptions of the whole engine, the messages about unknown names, and the messages about content
that does not fit its schema. A message about a certain file or model is in the module that reads
it.
"""

import difflib
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from csebench.base.project import folders, name_of
from csebench.base.shown import visible

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
MOST_ERRORS = 20  # errors of one file that a message lists
MOST_LISTED = 12  # known names that a message lists


class BadInput(Exception):
    """Invalid input: exit code 2, and nothing is written."""


class MissingFile(BadInput):
    """A file that should be read does not exist."""


class RunFailed(Exception):
    """A failure of a run that had started: exit code 1, and other runs continue."""


class Untrainable(RunFailed):
    """A failure that the settings of the run cause, such as a loss that is not finite.

    A retry would fail in the same way.
    """


class Diverged(Untrainable):
    """A training whose loss or vectors are no longer finite, or that gives no score at all."""


class OutOfMemory(RunFailed):
    """A failure of a run that does not fit on its GPU.

    A retry would fail in the same way, unless it has another chunk size.
    """


class Stopped(RunFailed):
    """The end of a run that was stopped from outside. It can resume from a checkpoint.

    Attributes:
        interrupted: whether SIGINT stopped it, which gives exit code 130.
    """

    def __init__(self, message: str, interrupted: bool = False):
        super().__init__(message)
        self.interrupted = interrupted


# ---------------------------------------------------------------- content that does not fit


def validated(
    model: type[M],
    content,
    file: str,
    locate: Callable | None = None,
    remedy: str = "",
    context=None,
) -> M:
    """Turn content into a pydantic model.

    Args:
        locate: `yaml_lines.Lines.locate`. For a path of keys, it returns `file: line 3` and those
            of the keys that the file has.
        remedy: what to do, added to the message.
        context: passed to the validators of the model.

    Raises:
        BadInput: the content does not fit. The message has a line `file: key: what is wrong` for
            every error.
    """
    try:
        return model.model_validate(content, context=context)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    lines = [_error_line(model, error, file, locate) for error in errors[:MOST_ERRORS]]
    if len(errors) > MOST_ERRORS:
        lines.append(f"{file}: and {len(errors) - MOST_ERRORS} more.")
    message = "\n".join(lines)
    raise BadInput(f"{message} {remedy}".rstrip())


def _error_line(
    model: type[BaseModel], error: Mapping[str, Any], file: str, locate: Callable | None
) -> str:
    """Word one error of pydantic as `file: key: what is wrong`."""
    is_missing = error["type"] == "missing"
    if locate is None:
        where = file
        keys = error["loc"]
    else:
        where, keys = locate(error["loc"])
        if is_missing:  # `locate` left the key out, because the file does not have it
            keys = (*keys, error["loc"][-1])
    key = visible(".".join(map(str, keys))) or "(top level)"
    if error["type"] == "extra_forbidden":
        suggestion = did_you_mean(str(error["loc"][-1]), keys_of(model))
        return f"{where}: {key}: unknown key.{suggestion}"
    reason = error["msg"].removeprefix("Value error, ")
    # no `got`: for a missing key or a section, it would be the section around it, which is too long
    if is_missing or isinstance(error["input"], dict | list):
        return f"{where}: {key}: {reason}."
    return f"{where}: {key}: {reason} (got {shortened(repr(error['input']))})."


@cache  # a class does not change
def keys_of(model: type[BaseModel]) -> list[str]:
    """List the keys of a model and of the models inside it."""
    schema = model.model_json_schema()
    keys = []
    for part in (schema, *schema.get("$defs", {}).values()):
        keys.extend(part.get("properties", {}))
    return keys


# ---------------------------------------------------------------- unknown names


def look_up(kind: str, name: str, known: Mapping[str, T], where: str = "") -> T:
    """Return the entry of a name.

    Raises:
        BadInput: there is no such name (`unknown`).
    """
    if name not in known:
        raise unknown(kind, name, known, where)
    return known[name]


def unknown(kind: str, name: str, known: Iterable, where: str = "", hint: str = "") -> BadInput:
    """Word the error for a name that does not exist.

    The message suggests the most similar known name. It lists the known names if they are few.
    Otherwise it ends with the hint.
    """
    name = shortened(str(name))
    known_names = sorted({str(entry) for entry in known}, key=by_number)
    if not known_names:
        hint = "Known: none."
    elif len(known_names) <= MOST_LISTED:
        hint = f"Known: {', '.join(known_names)}."
    message = f"unknown {kind} {name!r}.{did_you_mean(name, known_names)} {hint}".rstrip()
    if where:
        message = f"{where}: {message}"
    return BadInput(message)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the most similar known name: ` Did you mean 'simcse'?`.

    Upper and lower case count as equal. For a file of the project, such as `methods/simsce.py`,
    the name without folder and suffix is compared.

    Returns:
        The suggestion, or an empty text if no name is similar.
    """
    known_by_lower_case = {text.lower(): text for text in known}
    stem = re.sub(r"^.*/(\w+)\.(?:py|yaml)$", r"\1", name.lower())
    nearest = difflib.get_close_matches(stem, known_by_lower_case, 1)
    if not nearest:
        return ""
    return f" Did you mean {known_by_lower_case[nearest[0]]!r}?"


def by_number(name: str) -> tuple:
    """Return a sort key for names that hold numbers, so that table2 comes before table10."""
    key = []  # numbers come before text; the bool keeps Python from comparing int with str
    for part in re.findall(r"\d+|\D+", name):
        if part.isdecimal():
            key.append((False, int(part)))
        else:
            key.append((True, part))
    return tuple(key)


def shortened(text: str, length: int = 300) -> str:
    """Shorten a long text to its beginning and end, for a message."""
    if len(text) <= length:
        return text
    return f"{text[: length // 2]}…{text[-length // 3 :]}"


# ---------------------------------------------------------------- errors of others


def problem_of(function: Callable, *args) -> str | None:
    """Call a function, and return the message of its BadInput, or None if it succeeds."""
    try:
        function(*args)
    except BadInput as error:
        return str(error)
    return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its class if it has no message."""
    message = str(error).strip() or type(error).__name__
    return message.splitlines()[0].rstrip(".")


def last_error(printed: str) -> str:
    """Find the reason of a failure in what a process printed.

    It is the last message of csebench or the last exception. If there is neither, it is the last
    whole line.
    """
    messages = re.findall(r"^(?:csebench: |[\w.]*(?:Error|Exception): ).+", printed, re.M)
    whole_lines = printed.split("\n")[:-1]  # the process may have ended within the last line
    if messages:
        reason = messages[-1]
    elif whole_lines:
        reason = whole_lines[-1]
    else:
        reason = "ended without a message; was it killed?"
    # PyTorch's advice about anomalies is long, and would push the cause out of the message
    reason = reason.partition(" Hint: enable anomaly detection")[0]
    return shortened(reason.removeprefix("csebench: "))


def place(error: BaseException) -> str:
    """Name the place where an error was raised: `evaluators/sts.py: line 3`.

    If the error comes from a library, this is the line of the project that called the library,
    because a user can change only lines of the project.
    """
    frames = traceback.extract_tb(error.__traceback__)
    project = tuple(f"{folder}/" for folder in folders())
    frames_of_project = [frame for frame in frames if frame.filename.startswith(project)]
    frame = (frames_of_project or frames)[-1]
    return f"{name_of(Path(frame.filename))}: line {frame.lineno}"
