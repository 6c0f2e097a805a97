"""The folder of a run, `runs/<id>/`: the names of its files, whether the run is done, and the lock that gives it one
worker at a time. Never imports torch."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from csebench.base.errors import BadInput
from csebench.base.files import read_json, write_json
from csebench.base.model_files import REPORT, check_model
from csebench.base.processes import is_distributed

DONE = "train.json"  # the same report in the folder of the run, which Snakemake waits for
PRUNED = "pruned.json"  # the same, in place of train.json, once the model has been deleted
PROGRESS = "progress.json"  # of an unfinished run: csebench/base/progress.py
CHECKPOINT = ".checkpoint.json"  # from which an unfinished run resumes; names the files with its weights
CHECKPOINT_FILES = ".checkpoint*"  # these, half-written ones, and those of older versions
SET_ASIDE = ".set-aside"  # before the names of the files of a checkpoint that could not be used
LOCK = ".lock"  # locked by the process that works on the run; an unlocked one means nothing
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # from a file system without locks
_locked: dict[Path, bool] = {}  # folders that this process has locked, and whether each was made for it


@contextlib.contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Be the only process that works on a run; waits, with one line on stderr, while another does.

    Does nothing inside another such block for the same folder, and in a process that torchrun started: the process
    that became torchrun holds the lock for all of them. The lock ends with the process, however it ends, and is kept
    across `os.exec`. A folder that is made for the lock, and gets no other file, is deleted again.

    The lock is `flock`. On NFS, Linux locks the file at the server, so it holds between hosts, unless the folder is
    mounted with `nolock` or `local_lock`: then only between the processes of one host. A file system without locks is
    named in one line, and the run goes on without a lock.
    """
    folder = folder.resolve()
    if is_distributed() or folder in _locked:
        yield
        return
    is_new, file = not folder.exists(), None
    while file is None:
        file = _open_locked(folder)
    _locked[folder] = is_new
    try:
        yield
    finally:
        if not has_folder(folder):
            with contextlib.suppress(OSError):
                (folder / LOCK).unlink()
                folder.rmdir()
        del _locked[folder]
        os.close(file)


def _open_locked(folder: Path) -> int | None:
    """The lock file of a folder, opened and locked; None where it was deleted meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only what is open for writing
    except PermissionError:  # that of another user
        file = os.open(folder / LOCK, os.O_RDONLY)
    try:
        _wait_for_lock(file, folder)
        if os.path.samestat(os.fstat(file), os.stat(folder / LOCK)):
            os.set_inheritable(file, True)  # torchrun replaces this process and keeps the lock
            return file
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(file)
        raise
    os.close(file)
    return None


def _wait_for_lock(file: int, folder: Path) -> None:
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{folder.name}: another process works on it; waiting for its end.", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as e:
        if e.errno not in NO_LOCKS:
            raise
        line = f"{folder}: this file system has no locks ({e.strerror}); let no other process work on this run."
        print(line, file=sys.stderr, flush=True)


def has_folder(folder: Path) -> bool:
    """Whether a run has a folder; one that was made for its lock does not count as long as nothing else is in it."""
    if _locked.get(folder.resolve()):
        return any(path.name != LOCK for path in folder.iterdir())
    return folder.exists()


def is_done(folder: Path, spec: BaseModel) -> bool:
    """Whether a folder has the complete model of a run.

    Raises:
        BadInput: the folder holds another run, a model without a spec, a damaged spec, or a model whose files were
            changed since.
    """
    model, saved_spec = folder / "model", folder / "spec.json"
    if saved_spec.exists() and read_json(saved_spec) != spec.model_dump():
        raise BadInput(f"{folder}: holds another run (its spec.json differs); choose another folder or delete it.")
    if model.exists() and not saved_spec.exists():
        raise BadInput(f"{model}: belongs to no known run (no spec.json in {folder}); choose another folder.")
    check_model(model)
    return (model / REPORT).exists()


def finish(folder: Path) -> None:
    """Mark a run with a complete model as done: write train.json, delete progress and checkpoints."""
    write_json(folder / DONE, read_json(folder / "model" / REPORT))
    for name in (PROGRESS, PRUNED):
        (folder / name).unlink(missing_ok=True)
    remove_checkpoint(folder)


def remove_checkpoint(folder: Path) -> None:
    """Delete the checkpoint of a run, and those that were set aside."""
    for path in (*folder.glob(CHECKPOINT_FILES), *folder.glob(SET_ASIDE + CHECKPOINT_FILES)):
        path.unlink(missing_ok=True)


def training_report(folder: Path) -> Path | None:
    """The report of a finished run, whether its model is still there or not; None before the run is done."""
    return next((path for name in (DONE, PRUNED) if (path := folder / name).exists()), None)


def delete_model(folder: Path) -> int:
    """Delete the model of a finished run; its report becomes pruned.json, its scores and its log stay.

    Without train.json, Snakemake trains the run again when a score of it is missing, and only then. The model's own
    report goes first: what a killed process leaves of the folder is no finished model.

    Returns:
        the bytes freed; 0 where another process did it first.
    """
    model = folder / "model"
    with contextlib.suppress(FileNotFoundError):
        (folder / DONE).replace(folder / PRUNED)
    freed = size(model)
    (model / REPORT).unlink(missing_ok=True)
    shutil.rmtree(model, ignore_errors=True)
    return freed


def size(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
