"""Locks between processes on files and folders. The callers decide what is locked.

A lock is `flock` on a file. The system releases it when the process ends, also if it is killed. The
lock outlives `os.exec`, by which a process becomes torchrun. On NFS, Linux locks at the server, so
a lock holds between hosts, unless the folder is mounted with `nolock` or `local_lock`. If a file
system has no locks, one line says so, and the work goes on without a lock.
"""

import contextlib
import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # from a file system without locks


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder during the block.

    If another process holds it, print one line on stderr and wait. The lock is a hidden file next
    to `path`. It stays there, unless nothing is at `path` at the end of the block.
    """
    lock = path.with_name(f".{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    file = take(lock)
    if file is None:
        print(
            f"{path.name}: another process works on it; waiting for its end.",
            file=sys.stderr,
            flush=True,
        )
        file = take(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if not path.exists():
            lock.unlink(missing_ok=True)  # before its release, so that `take` notices it
        if file is not None:
            os.close(file)


def take(lock: Path, kind: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> int | None:
    """Take a lock.

    Args:
        lock: the file, which is made if it does not exist.
        kind: flags of `fcntl.flock`. By default, take an exclusive lock without waiting.

    Returns:
        The open file. The lock is held until it is closed. None if another process holds the lock.
    """
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only what is open for writing
    try:
        fcntl.flock(file, kind)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError as e:
        if e.errno not in NO_LOCKS:
            raise
        print(
            f"{lock.parent}: this file system has no locks ({e.strerror}); let no other process"
            " work here.",
            file=sys.stderr,
            flush=True,
        )
    if _has_name(file, lock):
        os.set_inheritable(file, True)  # so that `os.exec` keeps the lock
        return file
    # The process that held the lock has deleted the file. A lock on a deleted file excludes nobody,
    # so take the lock of a new file.
    os.close(file)
    return take(lock, kind)


def _has_name(file: int, path: Path) -> bool:
    """Whether a path still leads to this open file."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
