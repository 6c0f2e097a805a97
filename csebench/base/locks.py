"""Locks between processes: a file that is locked while a block runs. GPUs have locks of their own (gpus.py).

The lock is `flock`. On NFS, Linux locks the file at the server, so it holds between hosts, unless the folder is
mounted with `nolock` or `local_lock`: then only between the processes of one host. A file system without locks is
named in one line, and the work goes on without a lock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # from a file system without locks
GONE = (errno.ENOENT, errno.ESTALE)  # a deleted file; the second on NFS


@contextlib.contextmanager
def locked(path: Path, busy: str, keep: bool = False) -> Iterator[None]:
    """Be the only process in such a block; waits, with the line `busy` on stderr, while another one is.

    The lock ends with the process, however it ends, and is kept across `os.exec`.

    Args:
        path: a file for the lock alone, which is made with its folder.
        keep: whether the file stays, so that nothing depends on how fast a file system shows that one was deleted;
            else file and folder are as they were.
    """
    is_new, file = not path.parent.exists(), None
    while file is None:
        file = _open_locked(path, busy)
    try:
        yield
    finally:
        if not keep:
            path.unlink(missing_ok=True)
            if is_new:
                with contextlib.suppress(OSError):  # it is not empty
                    path.parent.rmdir()
        os.close(file)


def _open_locked(path: Path, busy: str) -> int | None:
    """The file, opened and locked; None where it was deleted meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only what is open for writing
    except FileNotFoundError:  # the folder is deleted, too
        return None
    except PermissionError:  # that of another user
        file = os.open(path, os.O_RDONLY)
    try:
        _lock(file, path, busy)
        if os.path.samestat(os.fstat(file), os.stat(path)):
            os.set_inheritable(file, True)  # torchrun replaces this process and keeps the lock
            return file
    except OSError as e:
        if e.errno not in GONE:
            os.close(file)
            raise
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def _lock(file: int, path: Path, busy: str) -> None:
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(busy, file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as e:
        if e.errno not in NO_LOCKS:
            raise
        line = f"{path.parent}: this file system has no locks ({e.strerror}); let no other process work here."
        print(line, file=sys.stderr, flush=True)
