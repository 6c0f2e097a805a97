"""Reading, hashing and writing of files. Whatever the bytes of a file are, a reader returns their
content or raises BadInput, which names file, line and key. A pipe or a device is refused before it
is opened. Every write is atomic.
"""

import contextlib
import errno
import hashlib
import json
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
DIGEST = "sha256"  # key of the digest of a JSON file, which is of all other keys
SHA256 = re.compile(r"[0-9a-f]{64}")
UNREADABLE_NPZ = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    NotImplementedError,
    BadZipFile,
    zlib.error,
)
OWN_FOLDER_HINT = "`csebench init DIR` makes a folder of your own, which takes files and results."


def read_bytes(path: Path) -> bytes:
    """Read a file. Raises BadInput where it is missing, is not a regular file, or cannot be
    read."""
    size = file_state(path).st_size
    if size > memory_of_machine():
        raise BadInput(
            f"{shortened(str(path))}: has {size:,} bytes, more than the memory of this machine."
        )
    try:
        with open(path, "rb") as file:
            return file.read(size)  # not to the end: some files below /proc and /sys have none
    except (OSError, ValueError, MemoryError) as e:
        raise unreadable_file(path, e) from None


def file_state(path: str | Path) -> os.stat_result:
    """Return what the system says about a regular file, without opening it.

    Raises:
        BadInput: it cannot be found, or it is something else. Opening a pipe can wait for ever, and
            a device such as /dev/zero has no end.
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
    """Whether a name leads to something. Raises BadInput for a loop of links, which
    `Path.exists` does not see."""
    try:
        os.stat(path)
    except OSError as e:
        if e.errno == errno.ELOOP:
            raise unreadable_file(path, e) from None
    return path.exists()


def refuse_special_files(folder: Path) -> None:
    """Raise BadInput where a folder that a library will read holds a pipe, a socket or a device.
    Hidden parts are not read: git keeps sockets there."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.exists() and not path.is_dir() and not hidden:
            file_state(path)


def memory_of_machine() -> int:
    """Bytes of main memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def project_files(folder: str | Path, pattern: str, but: Iterable[str] = ()) -> dict[str, Path]:
    """Files in a folder of the project, and of those that join it, by their names without
    suffix: not those of `but`, nor hidden ones, as locks of editors. Two of one name are
    refused."""
    files: dict[str, Path] = {}
    for path in (path for base in folders() for path in (base / folder).glob(pattern)):
        if (
            path.stem not in but
            and path.name[0] != "."
            and files.setdefault(path.stem, path) != path
        ):
            raise BadInput(f"{path}: {files[path.stem]} has this name, too; rename one of them.")
    return dict(sorted(files.items()))


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with its line ends unchanged. Raises BadInput as `read_bytes`,
    or for other bytes."""
    content = read_bytes(path)
    try:
        return content.decode("utf-8")  # Path.read_text would translate a lone carriage return
    except UnicodeDecodeError as e:
        line = content[: e.start].count(b"\n") + 1
        raise BadInput(
            f"{path}: line {line}: not UTF-8 (byte {content[e.start]:#04x}); save it as UTF-8."
        ) from None


def read_json(path: Path, remedy: str = "") -> Any:
    """The content of a JSON file. Raises BadInput as `parse_json` does, MissingFile where there
    is none."""
    return parse_json(read_bytes(path), str(path), remedy)


def parse_json(text: str | bytes, where: str, remedy: str = "") -> Any:
    """The value of a JSON text in UTF-8, without NaN and infinity; `where` and `remedy` are for
    messages."""
    try:
        return from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError) as e:  # TypeError: a word of the command line that is not UTF-8
        raise BadInput(f"{where}: not valid JSON: {e}. {remedy}".rstrip()) from None


def read_typed(path: Path, model: type[M], remedy: str = "") -> tuple[dict[str, Any], M]:
    """The content of a JSON file that is an object, as it is and as a model; one with the field
    `sha256` must state its digest. A message ends with `remedy`."""
    content = read_json(path, remedy)
    typed = validated(model, content, str(path), remedy=remedy)
    if DIGEST in content and content != with_digest(content):
        reason = f"edited since it was written (its content has not the {DIGEST} it states)."
        raise BadInput(f"{path}: {reason} {remedy}".rstrip())
    return content, typed


def unprintable(text: str) -> str | None:
    """Why a page cannot print a text; None where it can. Tabs and line ends lay out the text of
    a file."""
    part = HIDDEN.search(text.replace("\t", " ").replace("\r", " "))
    if part is None:
        return None
    character = part[0].encode("unicode_escape", "surrogatepass").decode()
    return f"the character '{character}' cannot be printed; remove it."


def unreadable_file(path: str | Path, error: Exception) -> BadInput:
    """Why the system does not open a file."""
    name = shortened(str(path))
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"{name}: no such file.{near_file(Path(path))}")
    if isinstance(error, MemoryError):
        return BadInput(f"{name}: does not fit in the memory that is free.")
    return BadInput(f"{name}: cannot be opened: {getattr(error, 'strerror', None) or error}.")


def digest(content, length: int = 10) -> str:
    """The first `length` hex digits of the sha256 of a value's canonical JSON; the order of keys
    does not matter."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


def with_digest(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a JSON file with a digest of it, so that a later edit is noticed
    (`read_typed`)."""
    content = {key: value for key, value in content.items() if key != DIGEST}
    return content | {DIGEST: digest(content, 64)}


def sha256(path: Path) -> str:
    """Hash of a file as 64 hex digits; kept for this process while size and times, also the
    ctime, stay the same."""
    state = file_state(path)
    try:
        return _sha256(Path(path), state.st_mtime_ns, state.st_ctime_ns, state.st_size)
    except OSError as e:
        raise unreadable_file(path, e) from None


def sha256_of_files(sums: Iterable[tuple[str, str]]) -> str:
    """Compute one hash over files.

    Args:
        sums: name and sha256 of each file, in an order that does not change.
    """
    lines = [f"{name} {file_sha256}" for name, file_sha256 in sums]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


@cached
def _sha256(path: Path, _modified: int, _changed: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that takes the name of `path` at the end of the block, so that a killed
    process leaves the old file or the new one, complete. The folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # unique among hosts
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
    """Raise an error of the system, such as a full disk, as an OSError that names a file, also
    where torch, safetensors or tokenizers raise errors of their own."""
    try:
        yield
    except Exception as e:
        # torch.save raises one over that of the system
        error = e.__context__ if type(e) is RuntimeError else e
        if number := re.search(r"\(os error (\d+)\)", str(e)):  # as Rust words it
            error = OSError(int(number[1]), os.strerror(int(number[1])))
        if not isinstance(error, OSError):
            raise
        error.filename = error.filename or str(path)
        raise error from None


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, and its folder, atomically (`replacing`). Write through to a device, a pipe
    or an open file."""
    if is_stream(path):
        with system_errors(path):
            write_to_stream(path, content)
        return
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8; line ends stay as they are."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, content) -> None:
    """`write_text` of JSON with sorted keys, so that equal content gives equal bytes; without
    NaN and infinity."""
    write_text(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n")


def near_file(path: Path) -> str:
    """` Did you mean 'corpus.txt'?`, the file of the same folder with the most similar name;
    else nothing."""
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:  # no such folder, or that of another user
        return ""
    return did_you_mean(path.name, names)


@dataclass(frozen=True)
class DataRoot:
    """Several data roots; stands for a `Path` where data is read.

    `root / name` is the file or folder of that name in the first root that has it; where none has
    it, in the first.

    Attributes:
        joined: the roots are the project's and those of folders that join it, the project's first.
            None of them replaces a file of another: a file that two of them have is refused when it
            is read.
    """

    roots: tuple[Path, ...]
    joined: bool = False

    def __truediv__(self, name: str | os.PathLike) -> Path:
        paths = [root / name for root in self.roots]
        found = [path for path in paths if path.exists()]
        if self.joined:
            refuse_second([path for path in found if not path.is_dir()])
        return found[0] if found else paths[0]

    def __str__(self) -> str:
        return " and ".join(map(str, self.roots))

    def glob(self, pattern: str) -> list[Path]:
        return list(matches(self, pattern).values())


def refuse_second(paths: list[Path]) -> None:
    """Refuse a file that a folder of one's own has under the name of one of the project's."""
    if len(paths) > 1:
        raise BadInput(f"{paths[1]}: {paths[0]} has this name, too; rename one of them.")


def matches(root: Path | DataRoot, pattern: str) -> dict[str, Path]:
    """Find the files that a pattern means, by their names below their root, sorted.

    Of equal names, that of the first root counts. Any name at all, as in `wiki/*.txt`, means
    whatever the user put there: the first root that has a file answers it. Of joined roots, the
    first that has a file answers any pattern, so that nothing is added to what the project's own
    evaluators read.

    Raises:
        BadInput: two of the roots that joined have a file of the same name.
    """
    paths: dict[Path, Path] = {}
    joined = isinstance(root, DataRoot) and root.joined
    first_answers = joined or Path(pattern).stem == "*"
    for folder in root.roots if isinstance(root, DataRoot) else (root,):
        found = {path.relative_to(folder): path for path in folder.glob(pattern)}
        for name, path in found.items():
            if joined and name in paths and not path.is_dir():
                refuse_second([paths[name], path])
        if not (paths and first_answers):
            paths = found | paths
    return {str(name): paths[name] for name in sorted(paths)}
