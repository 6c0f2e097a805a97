"""Checks of the places that a command may write to.

A user names an output. This module finds out what the name leads to, and whether csebench may write
there. base/files.py writes files, and does it atomically. Devices, pipes and open files of this
process cannot be replaced by a new file, so this module writes to them.
"""

import os
import re
import stat
import sys
from pathlib import Path

from csebench.base.errors import BadInput

OPEN_FILES = re.compile(r"/proc/\d+/fd/(\d+)")


def check_output(
    path: Path, is_folder: bool = False, remedy: str = "choose another place."
) -> None:
    """Refuse an output that cannot be written, before the work that makes it.

    A device, a pipe or an open file of this process, such as /dev/stdout, is allowed.

    Args:
        is_folder: whether the output is a folder of files.
        remedy: what to do, at the end of the message.
    """
    state = state_of_output(path)
    if state is not None and stat.S_ISDIR(state.st_mode) != is_folder:
        kind = "folder" if is_folder else "file"
        raise BadInput(f"{path}: is not a {kind}; choose another name.")
    if not is_folder and is_stream(path):
        return
    # the nearest folder that exists: the output itself, or a folder that it will be made in
    candidates = [path, *path.parents] if is_folder else path.parents
    nearest = next(folder for folder in candidates if os.path.lexists(folder))
    if not (nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)):
        raise BadInput(f"{path}: {nearest} is not a folder that can be written to; {remedy}")


def state_of_output(path: Path) -> os.stat_result | None:
    """Return the state of what an output's name leads to. None if nothing is there yet."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # a loop of links, a name that is too long or has a NUL
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{path}: cannot be written: {reason}.") from None


def is_taken(path: Path) -> bool:
    """Whether there is a file whose content would be lost.

    An empty file, such as `mktemp` makes, has no content to lose.
    """
    return path.exists() and not is_stream(path) and path.stat().st_size > 0


def not_ours(path: Path, what: str) -> BadInput:
    """Word the error for an output whose place is taken by something else.

    Args:
        what: what csebench writes there.
    """
    return BadInput(f"{path}: exists and is not {what}; choose another name, or delete it.")


def followed(path: Path) -> Path:
    """Return the target of a link, so that the target is checked and written, and the link stays.

    A name that is no link, or leads to a device or an open file, is returned as it is.
    """
    if path.is_symlink() and not is_stream(path):
        return Path(os.path.realpath(path))
    return path


# ---------------------------------------------------------------- devices, pipes, open files


def is_stream(path: Path) -> bool:
    """Whether a name leads to a device, a pipe, a socket or an open file of this process.

    Such an output is written to directly. If a new file replaced it, its reader would get nothing.
    """
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    if stat.S_ISDIR(mode):
        return False
    return not stat.S_ISREG(mode) or open_file_number(path) is not None


def is_standard_output(path: Path) -> bool:
    """Whether a name stands for the standard output of this process."""
    return open_file_number(path) == 1


def open_file_number(path: Path) -> int | None:
    """Return the number of this process's open file that a name such as /dev/stdout stands for.

    Returns:
        None for any other name.
    """
    for _ in range(40):  # as many links as Linux follows
        # resolve only the folder: /proc/PID/fd/1 is itself a link, to the file that is open
        place = Path(os.path.realpath(path.parent)) / path.name
        match = OPEN_FILES.fullmatch(str(place))
        if match is not None:
            is_of_this_process = place.parts[2] == str(os.getpid())
            return int(match[1]) if is_of_this_process else None
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def write_to_stream(path: Path, content: bytes) -> None:
    """Write to a device, a pipe, a socket or an open file (`is_stream`)."""
    number = open_file_number(path)
    if number is None:
        with open(path, "wb") as file:
            file.write(content)
        return
    sys.stdout.flush()  # earlier output comes first
    # Use the number. Opening the name would overwrite the file from its beginning.
    with open(os.dup(number), "wb") as file:
        file.write(content)
