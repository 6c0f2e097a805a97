"""GPUs of this machine: which ones a process may use, and locks that assign free ones to it while it works.

Only code that trains or embeds acquires GPUs, and before it imports torch, which reads CUDA_VISIBLE_DEVICES once.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.locks import take
from csebench.base.processes import is_distributed

POLL_SECONDS = 1
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

    A GPU has one lock, exclusive or shared, and one per place for the runs that share it; those of this user only.
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
    if (file := take(lock_folder() / f"{name}.lock", kind | fcntl.LOCK_NB)) is None:
        return False
    _held.append(file)
    return True


def lock_folder() -> Path:
    """The user's folder of locks in the temporary folder. Raises BadInput where another user has put it there."""
    folder = Path(tempfile.gettempdir()) / f"csebench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise BadInput(f"{folder}: belongs to another user; delete it, or set TMPDIR to another folder.")
    return folder


def _release(keep: int = 0) -> None:
    """Release the locks of this process but the first `keep`."""
    while len(_held) > keep:
        os.close(_held.pop())
