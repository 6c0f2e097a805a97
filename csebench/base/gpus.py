"""GPUs of this machine: which ones a process may use, and lock files that assign free ones to it while it works.

Only code that trains or embeds acquires GPUs, and before it imports torch, which reads CUDA_VISIBLE_DEVICES once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.processes import is_distributed

POLL_SECONDS = 1
LOCK_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # no link of another user; no waiting for a pipe
_held: list[int] = []  # file descriptors of the locks of this process


def visible_gpus() -> list[str]:
    """UUIDs of the GPUs that this process may use: those in CUDA_VISIBLE_DEVICES if it is set, else all."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    printed = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
    installed = [uuid for uuid in printed if uuid.startswith("GPU-")]  # without a GPU it prints an error message
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return installed
    names = [name.strip() for name in allowed.split(",") if name.strip()]
    return [installed[int(n)] if n.isdigit() and int(n) < len(installed) else n for n in names]


@contextmanager
def acquire_gpus(count: int = 1, sharing: int = 1):
    """Wait until `count` GPUs are free, lock them, and name them in CUDA_VISIBLE_DEVICES until the block ends.

    Does nothing on a machine without GPUs, in a process that torchrun started, and inside another such block. A SLURM
    job without an assigned GPU sees none.

    Args:
        sharing: runs that may be on one GPU at a time; a run that shares never joins one that does not.

    Raises:
        BadInput: the machine has fewer GPUs.
    """
    if "SLURM_JOB_ID" in os.environ:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    gpus = [] if is_distributed() or _held else visible_gpus()
    if not gpus:
        yield
        return
    if count > len(gpus):
        raise BadInput(f"{count} GPUs requested, {len(gpus)} available: {', '.join(gpus)}; ask for fewer processes.")
    before, announced = os.environ.get("CUDA_VISIBLE_DEVICES"), False
    while (locked := _lock_gpus(gpus, count, sharing)) is None:
        if not announced:
            print(f"waiting for {count} of {len(gpus)} GPUs to be free", file=sys.stderr, flush=True)
            announced = True
        time.sleep(POLL_SECONDS)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(locked)
    try:
        yield
    finally:
        _release()
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def _lock_gpus(gpus: list[str], count: int, sharing: int) -> list[str] | None:
    """The first `count` free GPUs, locked; None where fewer are free.

    A GPU has one lock, exclusive or shared, and one per place for the runs that share it. Locks end with the process,
    however it ends.
    """
    locked = []
    for gpu in gpus:
        held_before = len(_held)
        if _lock(gpu, fcntl.LOCK_SH if sharing > 1 else fcntl.LOCK_EX) and any(
            _lock(f"{gpu}.{place}", fcntl.LOCK_EX) for place in range(sharing)
        ):
            locked.append(gpu)
        else:
            _release(held_before)
        if len(locked) == count:
            return locked
    _release()
    return None


def _lock(name: str, kind: int) -> bool:
    file = _open_lock(name)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    os.set_inheritable(file, True)  # torchrun replaces this process and keeps the lock
    _held.append(file)
    return True


def _open_lock(name: str) -> int:
    """The lock file of a name, opened; where something else has that name in the temporary folder, which everybody may
    write, the user's file, which keeps this user's runs apart.

    Raises:
        BadInput: neither can be used.
    """
    names = (f"csebench-{name}.lock", f"csebench-user{os.getuid()}-{name}.lock")
    paths = [Path(tempfile.gettempdir()) / name for name in names]
    for path in paths:
        with contextlib.suppress(OSError):  # a link, a file that others may not read, a socket
            try:
                file = os.open(path, LOCK_FLAGS)  # a file of another user can be read, but not opened with O_CREAT
            except FileNotFoundError:
                file = os.open(path, LOCK_FLAGS | os.O_CREAT, 0o644)
            if stat.S_ISREG(os.fstat(file).st_mode):
                return file
            os.close(file)
    raise BadInput(f"{' and '.join(map(str, paths))}: cannot be locked; delete them, or set TMPDIR to another folder.")


def _release(keep: int = 0) -> None:
    """Release the locks of this process but the first `keep`."""
    while len(_held) > keep:
        os.close(_held.pop())
