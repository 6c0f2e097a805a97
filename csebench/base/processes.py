"""What processes share: the rank among those that torchrun started, the one lock between processes, the GPUs of this
machine; threads, and the end with the parent. The exchange of tensors: csebench/train/parallel.py.

A lock is `flock` on a file. It ends with the process, however it ends, and outlives `os.exec`, by which torchrun
replaces a process. On NFS, Linux locks the file at the server, so it holds between hosts, unless the folder is mounted
with `nolock` or `local_lock`. A file system without locks is named in one line, and the work goes on without a lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from csebench.base.errors import BadInput

PR_SET_PDEATHSIG = 1  # of Linux's prctl
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # from a file system without locks
NOW = fcntl.LOCK_EX | fcntl.LOCK_NB  # or not at all
POLL_SECONDS = 1
_held: list[int] = []  # file descriptors of the locks of GPUs that this process has


def is_distributed() -> bool:
    """Whether torchrun (or accelerate) started this process."""
    return "WORLD_SIZE" in os.environ


def rank() -> int:
    """Number of this process, from 0; 0 for a single process."""
    return int(os.environ.get("RANK", 0)) if is_distributed() else 0


def is_main_process() -> bool:
    """Whether this process writes files and log lines: only the process of rank 0 does."""
    return rank() == 0


def use_threads(count: int) -> None:
    """Compute with so many CPU threads, in torch and in the BLAS of numpy and scipy, whatever the environment says:
    another number gives other bits."""
    import scipy.linalg  # noqa: F401  # loads its BLAS, of which the limit holds
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(count)
    threadpool_limits(count, user_api="blas")


def end_with_parent() -> None:
    """Get SIGTERM when the parent process ends, however it ends; only on Linux."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), signal.SIGTERM)


# ---------------------------------------------------------------- the lock


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Be the only process that works on a file or folder; waits, with one line on stderr, while another does. The lock
    is a hidden file beside it, which stays once there is something to lock."""
    lock = path.with_name(f".{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    if (file := take(lock)) is None:
        print(f"{path.name}: another process works on it; waiting for its end.", file=sys.stderr, flush=True)
        file = take(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if not path.exists():
            lock.unlink(missing_ok=True)
        if file is not None:
            os.close(file)


def take(lock: Path, kind: int = NOW) -> int | None:
    """The open file of a lock, which is held until it is closed; None where another process holds it."""
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only what is open for writing
    try:
        fcntl.flock(file, kind)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError as e:
        if e.errno not in NO_LOCKS:
            raise
        line = f"{lock.parent}: this file system has no locks ({e.strerror}); let no other process work here."
        print(line, file=sys.stderr, flush=True)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file), lock.stat()):
            os.set_inheritable(file, True)
            return file
    os.close(file)  # deleted meanwhile, by a process that made nothing
    return take(lock, kind)


# ---------------------------------------------------------------- GPUs


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


@contextlib.contextmanager
def acquire_gpus(count: int = 1, sharing: int = 1) -> Iterator[None]:
    """Wait until `count` GPUs are free, lock them until the block ends, and name them in CUDA_VISIBLE_DEVICES, which
    torch reads once: so before it is imported, and a later block of this process waits for the same GPUs.

    Does nothing on a machine without GPUs, in a process that torchrun started, and inside another such block. A SLURM
    job without an assigned GPU sees none. Raises BadInput where the machine has fewer GPUs.

    Args:
        sharing: runs that may be on one GPU at a time; a run that shares never joins one that does not.
    """
    if "SLURM_JOB_ID" in os.environ:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    gpus = [] if is_distributed() or _held else visible_gpus()
    if not gpus:
        yield
        return
    if count > len(gpus):
        raise BadInput(f"{count} GPUs requested, {len(gpus)} available: {', '.join(gpus)}; ask for fewer processes.")
    if (mine := _lock_gpus(gpus, count, sharing)) is None:
        print(f"waiting for {count} of {len(gpus)} GPUs to be free", file=sys.stderr, flush=True)
    while mine is None:
        time.sleep(POLL_SECONDS)
        mine = _lock_gpus(gpus, count, sharing)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(mine)
    try:
        yield
    finally:
        _release()


def _lock_gpus(gpus: list[str], count: int, sharing: int) -> list[str] | None:
    """The first `count` free GPUs, locked; None where fewer are free. A GPU has one lock, exclusive or shared, and one
    per place for the runs that share it, all in a folder of this user in the temporary folder."""
    folder = Path(tempfile.gettempdir()) / f"csebench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise BadInput(f"{folder}: belongs to another user; delete it, or set TMPDIR to another folder.")

    def lock(name: str, kind: int) -> bool:
        file = take(folder / f"{name}.lock", kind | fcntl.LOCK_NB)
        _held.extend([] if file is None else [file])
        return file is not None

    free = []
    for gpu in gpus:
        held_before = len(_held)
        places = (f"{gpu}.{place}" for place in range(sharing))
        if lock(gpu, fcntl.LOCK_SH if sharing > 1 else fcntl.LOCK_EX) and any(lock(p, fcntl.LOCK_EX) for p in places):
            free.append(gpu)
        else:
            _release(held_before)
        if len(free) == count:
            return free
    _release()
    return None


def _release(keep: int = 0) -> None:
    """Release the locks of this process but the first `keep`."""
    while len(_held) > keep:
        os.close(_held.pop())
