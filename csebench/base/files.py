"""Reading, hashing and writing of files: errors name file, line and key, and every write is atomic.

What a file means is not decided here.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from csebench.base.caches import cached
from csebench.base.errors import BadInput, explain, field_names

M = TypeVar("M", bound=BaseModel)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the loader of libyaml is four times as fast


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with its line ends unchanged.

    Raises:
        BadInput: the file is missing, is a folder, or is not UTF-8; the message names the line.
    """
    try:
        return path.read_bytes().decode("utf-8")  # Path.read_text would translate a lone carriage return
    except (FileNotFoundError, IsADirectoryError) as e:
        raise _unreadable(path, e) from None
    except UnicodeDecodeError as e:
        line = path.read_bytes()[: e.start].count(b"\n") + 1
        raise BadInput(f"{path}: line {line}: not UTF-8 (byte {e.object[e.start]:#04x}); save it as UTF-8.") from None


def read_yaml(path: Path, model: type[M]) -> M:
    """The content of a YAML file as a pydantic model.

    Raises:
        BadInput: the file is missing, is not UTF-8 or YAML, or does not fit the model; the message names the key,
            and the nearest valid key for an unknown one.
    """
    try:
        content = yaml.load(read_text(path), LOADER)
    except yaml.YAMLError as e:
        raise not_yaml(path, e) from None
    try:
        return model.model_validate(content)
    except ValidationError as e:
        raise explain(e, str(path), field_names(model)) from None


def not_yaml(where: Path | str, error: yaml.YAMLError) -> BadInput:
    """What is wrong with the syntax of a YAML file, and in which line."""
    mark = getattr(error, "problem_mark", None)
    line = f"line {mark.line + 1}: " if mark else ""
    return BadInput(f"{where}: {line}not valid YAML: {getattr(error, 'problem', None) or error}.")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, and its folder, atomically: a killed process leaves the old file or the new one, complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")  # unique among hosts that share a folder
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def write_durably(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a large file atomically, and synchronise it with the disk, so that a crash of the machine keeps it, too.

    Args:
        write: is given the open file. The temporary file has one name, so `path` may have one writer at a time, which
            overwrites what a killed one left.
    """
    temporary = path.with_name(f"{path.name}.part")
    with open(temporary, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8; line ends stay as they are."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, content) -> None:
    """`write_text` of JSON with sorted keys, so that equal content gives equal bytes.

    Raises:
        ValueError: the content has NaN or infinity.
    """
    write_text(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def sha256(path: Path) -> str:
    """Hash of a file as 64 hex digits; computed once per process while size and modification time stay the same.

    Raises:
        BadInput: the file is missing or is a folder.
    """
    try:
        state = os.stat(path)
        return _sha256(Path(path), state.st_mtime_ns, state.st_size)
    except (FileNotFoundError, IsADirectoryError) as e:
        raise _unreadable(path, e) from None


@cached
def _sha256(path: Path, _modified: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unreadable(path: Path, error: OSError) -> BadInput:
    reason = "is a folder, not a file" if isinstance(error, IsADirectoryError) else "no such file"
    return BadInput(f"{path}: {reason}.")
