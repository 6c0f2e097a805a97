"""Locks of files and folders between processes."""

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
    """Be the only process that works on a file or folder; waits, with one line on stderr, while
    another does. The lock is a hidden file beside it, which stays once there is something to
    lock."""
    lock = path.with_name(f".{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    if (file := take(lock)) is None:
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
            lock.unlink(missing_ok=True)
        if file is not None:
            os.close(file)


def take(lock: Path, kind: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> int | None:
    """The open file of a lock, which is held until it is closed; None where another process
    holds it."""
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only what is open for writing
    try:
        fcntl.flock(file, kind)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError as e:
        if e.errno not in NO_LOCKS:
            raise
        line = (
            f"{lock.parent}: this file system has no locks ({e.strerror}); let no other process"
            " work here."
        )
        print(line, file=sys.stderr, flush=True)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file), lock.stat()):
            os.set_inheritable(file, True)
            return file
    os.close(file)  # deleted meanwhile, by a process that made nothing
    return take(lock, kind)
