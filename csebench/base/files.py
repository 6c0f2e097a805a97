"""Files: their hash, text and YAML with messages that name file, line and key, and the one atomic write."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ValidationError

from csebench.base.errors import BadInput, explain, field_names

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is four times as fast


def read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")  # read_text would take a lone carriage return for a line's end
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder, not a file.") from None
    except UnicodeDecodeError as e:
        line = path.read_bytes()[: e.start].count(b"\n") + 1
        raise BadInput(f"{path}: line {line}: not UTF-8 (byte {e.object[e.start]:#04x}); save it as UTF-8.") from None


def read_yaml(path: Path, model: type[BaseModel]):
    """A YAML file checked against a pydantic model.

    Raises:
        BadInput: the file is missing, is not UTF-8 or YAML, or does not fit the schema; the message names
            file and key, and the nearest valid key for an unknown one.
    """
    try:
        content = yaml.load(read_text(path), LOADER)
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise BadInput(f"{path}: {line}not valid YAML: {getattr(e, 'problem', None) or e}.") from None
    try:
        return model.model_validate(content)
    except ValidationError as e:
        raise explain(e, str(path), field_names(model)) from None


def write_bytes(path: Path, content: bytes) -> None:
    """Atomic: a killed process leaves the old file or the new one, never a half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")  # processes of several hosts share a folder
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """UTF-8, line feeds as they are; atomic."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, content) -> None:
    """Keys sorted, so that equal content gives equal bytes; atomic. Raises ValueError for NaN and infinity."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Read once by a process, as long as the file has not changed.

    Raises:
        BadInput: no such file.
    """
    try:
        state = os.stat(path)
        return _sha256(Path(path), state.st_mtime_ns, state.st_size)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder, not a file.") from None


@cache
def _sha256(path: Path, _modified: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
