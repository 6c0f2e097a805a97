"""The folder of a run, `runs/<id>/`: the names of its files, whether the run is done, and the lock that gives it one
worker at a time. Never imports torch."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from csebench.base.errors import BadInput
from csebench.base.files import read_json, read_object, write_bytes, write_json
from csebench.base.locks import locked
from csebench.base.models import REPORT, Report, check_model, train_again
from csebench.base.processes import is_distributed

DONE = "train.json"  # the same report in the folder of the run, which Snakemake waits for
PRUNED = "pruned.json"  # the same, once the model has been deleted
PROGRESS = "progress.json"  # of an unfinished run: csebench/base/progress.py
CHECKPOINT = ".checkpoint.json"  # from which an unfinished run resumes; names the files with its weights
CHECKPOINT_FILES = ".checkpoint*"  # these, half-written ones, and those of older versions
SET_ASIDE = ".set-aside"  # before the names of the files of a checkpoint that could not be used
_locked: set[Path] = set()  # folders that this process has locked


@contextlib.contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Be the only process that works on a run; waits while another does (base/locks.py).

    Does nothing inside another such block for the same folder, and in a process that torchrun started: the process
    that became torchrun holds the lock for all of them.
    """
    folder = folder.resolve()
    if is_distributed() or folder in _locked:
        yield
        return
    with locked(folder):
        _locked.add(folder)
        try:
            yield
        finally:
            _locked.remove(folder)


def is_done(folder: Path, spec: BaseModel) -> bool:
    """Whether a folder has the complete model of a run.

    Raises:
        BadInput: the folder holds another run, a model without a spec, a damaged spec, or a model whose files were
            changed since.
    """
    model, saved_spec = folder / "model", folder / "spec.json"
    remedy = f"Choose another folder, or delete {folder}."
    if saved_spec.exists() and read_json(saved_spec, remedy) != spec.model_dump():
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


def read_report(folder: Path) -> dict | None:
    """The content of that report.

    Raises:
        BadInput: it is damaged.
    """
    path = training_report(folder)
    return None if path is None else read_object(path, Report, train_again(folder))


def has_model(folder: Path) -> bool:
    """Whether a run is done and its model has not been deleted."""
    return (folder / DONE).exists() and not (folder / PRUNED).exists()


def delete_model(folder: Path) -> int:
    """Delete the model of a finished run; its report is copied to pruned.json, its scores and its log stay.

    train.json stays until the next workflow is planned (csebench/workflow.py: trained_run): Snakemake fails a job and
    deletes its score if an input vanishes while it looks at the end of the job, as that of another score of the run.
    The model's own report goes first: what a killed process leaves of the folder is no finished model.

    Returns:
        the bytes freed; 0 where another process did it first.
    """
    model = folder / "model"
    with contextlib.suppress(FileNotFoundError):
        write_bytes(folder / PRUNED, (folder / DONE).read_bytes())
    freed = size(model)
    (model / REPORT).unlink(missing_ok=True)
    shutil.rmtree(model, ignore_errors=True)
    return freed


def size(folder: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
