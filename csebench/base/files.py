"""Reading, hashing and writing of files.

A function that reads returns the content of a file, or raises BadInput, which names file, line and
key. No content of a file makes it raise another exception. A pipe or a device is refused before it
is opened. Every write is atomic. base/yaml_lines.py reads YAML with the lines of its keys.
base/outputs.py decides where a command may write.
"""

import contextlib
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import stat
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from zipfile import BadZipFile

from pydantic import BaseModel
from pydantic_core import from_json

from csebench.base.caches import cached
from csebench.base.errors import BadInput, MissingFile, did_you_mean, shortened, validated
from csebench.base.outputs import is_stream, write_to_stream
from csebench.base.project import folders
from csebench.base.shown import HIDDEN

M = TypeVar("M", bound=BaseModel)
DIGEST = "sha256"  # key of a JSON file whose value is the digest of all its other keys
SHA256 = re.compile(r"[0-9a-f]{64}")
UNREADABLE_NPZ = (  # what NumPy raises for a damaged .npz file
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    NotImplementedError,
    BadZipFile,
    zlib.error,
)
DECOMPRESSORS = {".gz": gzip.open, ".xz": lzma.open}  # by the suffix of a file
OWN_FOLDER_HINT = "`csebench init DIR` makes a folder of your own, which takes files and results."


# ---------------------------------------------------------------- reading


def read_bytes(path: Path) -> bytes:
    """Read a file.

    Raises:
        BadInput: the file is missing, is not a regular file, or cannot be read.
    """
    size = file_state(path).st_size
    if size > memory_of_machine():
        raise BadInput(
            f"{shortened(str(path))}: has {size:,} bytes, more than the memory of this machine."
        )
    try:
        with open(path, "rb") as file:
            return file.read(size)  # no more: some files below /proc and /sys have no end
    except (OSError, ValueError, MemoryError) as e:
        raise unreadable_file(path, e) from None


def read_compressed(path: Path) -> bytes:
    """Read a file and decompress it if its name ends in `.gz` or `.xz`.

    Raises:
        BadInput: the file cannot be read (`read_bytes`), or its compressed content is damaged.
    """
    if path.suffix not in DECOMPRESSORS:
        return read_bytes(path)
    compressed = io.BytesIO(read_bytes(path))
    content = bytearray()
    try:
        with DECOMPRESSORS[path.suffix](compressed) as file:
            while block := file.read1():
                content += block
    except MemoryError as e:
        raise unreadable_file(path, e) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as e:
        line = content.count(b"\n") + 1
        raise BadInput(
            f"{path}: line {line}: the compressed file is damaged here ({e}); copy it again."
        ) from None
    return bytes(content)


def read_text(path: Path) -> str:
    """Read a UTF-8 file. Its line ends are not changed.

    Raises:
        BadInput: the file cannot be read (`read_bytes`), or is not UTF-8.
    """
    return decoded(read_bytes(path), path)


def decoded(content: bytes, path: Path) -> str:
    """Decode the content of a UTF-8 file. Its line ends are not changed.

    Raises:
        BadInput: the content is not UTF-8.
    """
    try:
        return content.decode("utf-8")  # Path.read_text would translate a lone carriage return
    except UnicodeDecodeError as e:
        line = content[: e.start].count(b"\n") + 1
        raise BadInput(
            f"{path}: line {line}: not UTF-8 (byte {content[e.start]:#04x}); save it as UTF-8."
        ) from None


def read_json(path: Path, remedy: str = "") -> Any:
    """Read a JSON file.

    Args:
        remedy: what to do, added to the message about JSON that is not valid.

    Raises:
        MissingFile: there is no such file.
        BadInput: the file cannot be read (`read_bytes`), or is not valid JSON (`parse_json`).
    """
    return parse_json(read_bytes(path), str(path), remedy)


def parse_json(text: str | bytes, where: str, remedy: str = "") -> Any:
    """Parse a JSON text in UTF-8. NaN and infinity are not valid.

    Args:
        where: names the text in a message.
        remedy: what to do, added to the message.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError) as e:  # TypeError: an argument of a command is not UTF-8
        raise BadInput(f"{where}: not valid JSON: {e}. {remedy}".rstrip()) from None


def read_typed(path: Path, model: type[M], remedy: str = "") -> tuple[dict[str, Any], M]:
    """Read a JSON file that holds an object.

    Args:
        remedy: what to do, added to each message.

    Returns:
        The content as it is, and as a model.

    Raises:
        BadInput: the file cannot be read, does not fit the model, or states a digest (`DIGEST`)
            that differs from the digest of its content.
    """
    content = read_json(path, remedy)
    typed = validated(model, content, str(path), remedy=remedy)
    if DIGEST in content and content != with_digest(content):
        reason = f"edited since it was written (its content has not the {DIGEST} it states)."
        raise BadInput(f"{path}: {reason} {remedy}".rstrip())
    return content, typed


def file_state(path: str | Path) -> os.stat_result:
    """Return the state of a regular file (`os.stat`), without opening it.

    Other kinds are refused, because opening a pipe can wait for ever, and a device such as
    /dev/zero has no end.

    Raises:
        BadInput: the file cannot be found, or is not a regular file.
    """
    try:
        state = os.stat(path)
    except (OSError, ValueError) as e:  # ValueError: a name with a NUL
        raise unreadable_file(path, e) from None
    if stat.S_ISREG(state.st_mode):
        return state
    name = shortened(str(path))
    if stat.S_ISDIR(state.st_mode):
        raise BadInput(f"{name}: cannot be opened: {os.strerror(errno.EISDIR)}.")
    if stat.S_ISFIFO(state.st_mode):
        raise BadInput(
            f"{name}: is a pipe, which can be read only once; save what comes from it as a file."
        )
    kind = "a socket" if stat.S_ISSOCK(state.st_mode) else "a device"
    raise BadInput(f"{name}: is {kind}, not a file; give a regular file.")


def is_there(path: Path) -> bool:
    """Whether a name leads to a file or a folder.

    Raises:
        BadInput: the name is a loop of links. `Path.exists` would say that nothing is there.
    """
    try:
        os.stat(path)
    except OSError as e:
        if e.errno == errno.ELOOP:
            raise unreadable_file(path, e) from None
    return path.exists()


def refuse_special_files(folder: Path) -> None:
    """Refuse a folder that holds a pipe, a socket or a device, before a library reads it.

    Hidden files and folders are skipped, because libraries do not read them: git keeps sockets
    there.
    """
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        is_hidden = any(part.startswith(".") for part in parts)
        if not is_hidden and path.exists() and not path.is_dir():
            file_state(path)


def memory_of_machine() -> int:
    """Return the size of main memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def unreadable_file(path: str | Path, error: Exception) -> BadInput:
    """Word the error for a file that the system does not open."""
    name = shortened(str(path))
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"{name}: no such file.{near_file(Path(path))}")
    if isinstance(error, MemoryError):
        return BadInput(f"{name}: does not fit in the memory that is free.")
    reason = getattr(error, "strerror", None) or error
    return BadInput(f"{name}: cannot be opened: {reason}.")


def near_file(path: Path) -> str:
    """Suggest a file of the same folder with a similar name: ` Did you mean 'corpus.txt'?`.

    Returns:
        The suggestion, or an empty text if no name is similar.
    """
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:  # no such folder, or it belongs to another user
        return ""
    return did_you_mean(path.name, names)


def unprintable(text: str) -> str | None:
    """Return the reason why a page cannot print a text. None if it can.

    Tabs and line ends are allowed, because they lay out the text of a file.
    """
    hidden = HIDDEN.search(text.replace("\t", " ").replace("\r", " "))
    if hidden is None:
        return None
    character = hidden[0].encode("unicode_escape", "surrogatepass").decode()
    return f"the character '{character}' cannot be printed; remove it."


# ---------------------------------------------------------------- hashing


def digest(content, length: int = 10) -> str:
    """Compute the first `length` hex digits of the sha256 of a value's canonical JSON.

    The order of keys does not matter.
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


def with_digest(content: dict[str, Any]) -> dict[str, Any]:
    """Add the digest to the content of a JSON file, so that `read_typed` notices a later edit."""
    without_digest = {key: value for key, value in content.items() if key != DIGEST}
    return without_digest | {DIGEST: digest(without_digest, 64)}


def sha256(path: Path) -> str:
    """Hash a file: 64 hex digits.

    This process remembers the hash, until the size or one of two times of the file changes. The
    time of its last modification (mtime) alone would not do, because programs can set it back. They
    cannot set the time of the last change of its state (ctime).
    """
    state = file_state(path)
    try:
        return _sha256(Path(path), state.st_mtime_ns, state.st_ctime_ns, state.st_size)
    except OSError as e:
        raise unreadable_file(path, e) from None


@cached
def _sha256(path: Path, _modified: int, _changed: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_files(sums: Iterable[tuple[str, str]]) -> str:
    """Compute one hash over files.

    Args:
        sums: name and sha256 of each file, in an order that does not change.
    """
    lines = [f"{name} {file_sha256}" for name, file_sha256 in sums]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


# ---------------------------------------------------------------- writing


def write_json(path: Path, content) -> None:
    """Write JSON with `write_text`. NaN and infinity are refused.

    Keys are sorted, so that equal content gives equal bytes.
    """
    write_text(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8 with `write_bytes`. Its line ends are not changed."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file and make its folder, atomically (`replacing`).

    A device, a pipe or an open file is written to directly.
    """
    if is_stream(path):
        with system_errors(path):
            write_to_stream(path, content)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary file, which takes the name of `path` at the end of the block.

    So a process that is killed leaves the old file or the new one, and either is complete. The
    folder of `path` is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # the name is random, because several hosts may write to one folder
    temporary = path.with_name(f".{path.name.lstrip('.')}.{uuid.uuid4().hex[:12]}")
    try:
        with system_errors(path):
            yield temporary
            os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Raise an error of the system, such as a full disk, as an OSError that names a file.

    Any other error is raised as it is.
    """
    try:
        yield
    except Exception as e:
        error = _system_error_in(e)
        if error is None:
            raise
        error.filename = error.filename or str(path)
        raise error from None


def _system_error_in(error: Exception) -> OSError | None:
    """Find the error of the system that a library has wrapped in an error of its own.

    Returns:
        None if there is no error of the system.
    """
    from_rust = re.search(r"\(os error (\d+)\)", str(error))  # safetensors and tokenizers
    if from_rust is not None:
        number = int(from_rust[1])
        return OSError(number, os.strerror(number))
    inner: BaseException | None = error
    if type(error) is RuntimeError:  # torch.save raises it while it handles the system's error
        inner = error.__context__
    return inner if isinstance(inner, OSError) else None


# ---------------------------------------------------------------- files of several folders


def project_files(folder: str | Path, pattern: str, exclude: Iterable[str] = ()) -> dict[str, Path]:
    """Find files in a folder of the project and of the folders that join it.

    Hidden files are left out: editors keep locks there.

    Args:
        exclude: names without suffix that are left out, too.

    Returns:
        The files by their names without suffix, sorted.

    Raises:
        BadInput: two files have the same name.
    """
    files: dict[str, Path] = {}
    for project in folders():
        for path in (project / folder).glob(pattern):
            if path.stem in exclude or path.name.startswith("."):
                continue
            if path.stem in files and files[path.stem] != path:
                raise _second_file(path, files[path.stem])
            files[path.stem] = path
    return dict(sorted(files.items()))


def _second_file(second: Path, first: Path) -> BadInput:
    """Word the error for two files of the same name in two folders."""
    return BadInput(f"{second}: {first} has this name, too; rename one of them.")


@dataclass(frozen=True)
class DataRoot:
    """Several data roots that are used like one `Path` to read data.

    `root / name` is the file or folder of that name in the first root that has it. If no root has
    it, the result is the path in the first root.

    Attributes:
        joined: whether these are the data roots of the project and of the folders that join it, in
            this order. Such a folder must not replace a file of another one. So a file that two of
            them have is refused when it is read.
    """

    roots: tuple[Path, ...]
    joined: bool = False

    def __truediv__(self, name: str | os.PathLike) -> Path:
        paths = [root / name for root in self.roots]
        existing = [path for path in paths if path.exists()]
        if self.joined:
            files = [path for path in existing if not path.is_dir()]
            if len(files) > 1:
                raise _second_file(files[1], files[0])
        return existing[0] if existing else paths[0]

    def __str__(self) -> str:
        return " and ".join(map(str, self.roots))

    def glob(self, pattern: str) -> list[Path]:
        return list(matches(self, pattern).values())


def matches(root: Path | DataRoot, pattern: str) -> dict[str, Path]:
    """Find the files that match a pattern in one data root or several.

    If several roots have a file of the same name, the first of these roots counts. In two cases,
    all files come from the first root that has any match:

    - The pattern allows any name, as `wiki/*.txt` does. It stands for all that a user put there.
    - The roots are joined. No folder may add files to what the project's own evaluators read.

    Returns:
        The files by their names below their root, sorted.

    Raises:
        BadInput: two joined roots have a file of the same name.
    """
    if isinstance(root, Path):
        root = DataRoot((root,))
    is_first_root_enough = root.joined or Path(pattern).stem == "*"
    paths: dict[Path, Path] = {}  # by their names below their root
    for folder in root.roots:
        found = {path.relative_to(folder): path for path in folder.glob(pattern)}
        for name, path in found.items():
            if root.joined and name in paths and not path.is_dir():
                raise _second_file(path, paths[name])
        if not paths or not is_first_root_enough:
            paths = found | paths  # a name that an earlier root has keeps its path
    return {str(name): paths[name] for name in sorted(paths)}
