"""Which GPU a process works on: one that is free, of those that it may use, held by a lock file while it works.

Planning and what only reads scores never come here; torch must not have been imported when a GPU is claimed.
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
from csebench.base.processes import is_distributed

POLL_SECONDS = 1
_held: list[int] = []  # file descriptors of this process


def cards() -> list[str]:
    """UUIDs of the GPUs that this process may use, those in CUDA_VISIBLE_DEVICES if it is set."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    printed = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
    listed = [uuid for uuid in printed if uuid.startswith("GPU-")]  # else it says why there is none
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return listed
    named = [name.strip() for name in allowed.split(",") if name.strip()]
    return [listed[int(n)] if n.isdigit() and int(n) < len(listed) else n for n in named]


@contextmanager
def claimed(count: int = 1, sharing: int = 1):
    """Holds `count` GPUs, waiting until they are free; CUDA_VISIBLE_DEVICES names them.

    Does nothing where there is none, in a process that torchrun started, and inside of itself. In a job of SLURM that
    was assigned none, none is seen.

    Args:
        sharing: runs that may be on one card at a time; a run that shares never joins one that does not.

    Raises:
        BadInput: there are not so many.
    """
    if "SLURM_JOB_ID" in os.environ:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    found = [] if is_distributed() or _held else cards()
    if not found:
        yield
        return
    if count > len(found):
        raise BadInput(f"{count} GPUs asked for, {len(found)} there: {', '.join(found)}.")
    before, told = os.environ.get("CUDA_VISIBLE_DEVICES"), False
    while (taken := _take(found, count, sharing)) is None:
        if not told:
            print(f"waiting for {count} of {len(found)} GPUs to be free", file=sys.stderr, flush=True)
            told = True
        time.sleep(POLL_SECONDS)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(taken)
    try:
        yield
    finally:
        _release()
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def _take(found: list[str], count: int, sharing: int) -> list[str] | None:
    """Locks that end with the process, however it ends: one of a card, alone or shared, and one of a place on it."""
    taken = []
    for card in found:
        kept = len(_held)
        if _lock(card, fcntl.LOCK_SH if sharing > 1 else fcntl.LOCK_EX) and any(
            _lock(f"{card}.{place}", fcntl.LOCK_EX) for place in range(sharing)
        ):
            taken.append(card)
        else:
            _release(kept)
        if len(taken) == count:
            return taken
    _release()
    return None


def _lock(name: str, kind: int) -> bool:
    path = Path(tempfile.gettempdir()) / f"csebench-{name}.lock"
    try:
        file = os.open(path, os.O_RDONLY)  # another user's may not be opened as if to be made
    except FileNotFoundError:
        file = os.open(path, os.O_CREAT | os.O_RDONLY, 0o644)
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    os.set_inheritable(file, True)  # by torchrun, which takes the place of this process
    _held.append(file)
    return True


def _release(kept: int = 0) -> None:
    while len(_held) > kept:
        os.close(_held.pop())
