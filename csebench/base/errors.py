"""Errors for people, and the reading of YAML with messages that name file and key."""

from __future__ import annotations

import difflib

from pydantic import BaseModel, ValidationError


class BadInput(Exception):
    """Something the user wrote cannot be used: exit code 2, nothing written."""


class RunFailed(Exception):
    """A run went wrong after it had started: exit code 1, other runs are left alone."""


class Stopped(RunFailed):
    """A run was asked to end and left a checkpoint, from which it goes on."""


def unknown(kind: str, name: str, known, where: str = "") -> BadInput:
    """The one message for a name that does not exist."""
    known = sorted(map(str, known))
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return BadInput(
        f"{where + ': ' if where else ''}unknown {kind} {name!r}.{hint} Known: {', '.join(known) or 'none'}."
    )


def explain(error: ValidationError, where: str, known=()) -> BadInput:
    """A pydantic error as lines of `file: key: what is wrong`."""
    lines = []
    for e in error.errors():
        key = ".".join(map(str, e["loc"])) or "(top level)"
        if e["type"] == "extra_forbidden":
            near = difflib.get_close_matches(str(e["loc"][-1]), list(known), n=1, cutoff=0.5)
            lines.append(f"{where}: {key}: unknown key." + (f" Did you mean {near[0]!r}?" if near else ""))
        else:
            whole = e["type"] == "missing" or isinstance(e["input"], dict | list)  # which would be repeated at length
            got = "" if whole else f" (got {e['input']!r})"
            lines.append(f"{where}: {key}: {e['msg'].removeprefix('Value error, ')}{got}.")
    return BadInput("\n".join(lines))


def field_names(model: type[BaseModel]) -> set[str]:
    """Every key that may occur in a model or the models inside it, for suggestions."""
    schema = model.model_json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return {name for part in parts for name in part.get("properties", {})}
