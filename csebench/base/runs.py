"""The folder of a run, `runs/<id>/`.

This module names the files of a run, checks whether the run is done, locks its folder so that one
process at a time works on it, and keeps its progress. Code that trains a run does so inside
`work_on`, which takes the lock and starts the progress. Progress goes to `progress.json`, which
`csebench status` reads, and to stderr. base/models.py reads the folder of the model,
train/checkpoint.py the checkpoint, and base/training_log.py the log. Never imports torch.
"""

import contextlib
import os
import shutil
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, FiniteFloat

from csebench.base.errors import BadInput, MissingFile, OutOfMemory, RunFailed, Stopped, Untrainable
from csebench.base.files import is_there, read_json, read_typed, write_bytes, write_json
from csebench.base.locks import locked
from csebench.base.models import REPORT, Report, check_model, train_again
from csebench.base.outputs import not_ours
from csebench.base.processes import is_distributed, is_main_process
from csebench.base.training_log import LOG, TrainingLog

DONE = "train.json"  # the model's report, copied to the run's folder; Snakemake waits for it
PRUNED = "pruned.json"  # the same report, after the model has been deleted
PROGRESS = "progress.json"  # deleted when the run is done
# An unfinished run resumes from this file, which names the file with the state.
CHECKPOINT = ".checkpoint.json"
# matches CHECKPOINT, files of states, half-written files, and files of older versions of csebench
CHECKPOINT_FILES = ".checkpoint*"
SET_ASIDE = ".set-aside"  # prefix of the names of checkpoint files that could not be used
WRITE_SECONDS = 2  # between two writes of progress.json
LINE_SECONDS = 30  # between two lines on stderr
_locked: set[Path] = set()  # folders that this process has locked


@contextlib.contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Hold the lock of a run during the block. Wait while another process holds it.

    A nested block for the same run takes no second lock. A process that torchrun started takes none
    either, because torchrun itself holds the lock for all its processes.
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


@contextlib.contextmanager
def work_on(
    folder: Path, spec: BaseModel, run_id: str, log_to: str | None = None
) -> Iterator["Progress"]:
    """Hold the lock of a run and keep its progress. The block makes the run.

    Args:
        log_to: tracker that shows the run while it trains (csebench/base/trackers.py).

    Raises:
        BadInput: see `refuse_other_run`. It is raised before anything is written to the folder.
    """
    with lock_run(folder):
        refuse_other_run(folder, spec)
        progress = Progress(folder, run_id, log_to)
        with progress, contextlib.closing(progress.log):
            yield progress


# ---------------------------------------------------------------- what a folder holds


def is_done(folder: Path) -> bool:
    """Whether a folder has the complete model of its run.

    Raises:
        BadInput: files of the model were changed.
    """
    model = folder / "model"
    check_model(model)
    return (model / REPORT).exists()


def refuse_other_run(folder: Path, spec: BaseModel) -> None:
    """Refuse a folder that does not belong to a run.

    Raises:
        BadInput: the folder holds another run, a model without a spec, or a damaged spec.
    """
    model = folder / "model"
    saved_spec = folder / "spec.json"
    remedy = f"Choose another folder, or delete {folder}."
    if is_there(saved_spec) and read_json(saved_spec, remedy) != spec.model_dump():
        raise BadInput(
            f"{folder}: holds another run (its spec.json differs); choose another folder or"
            " delete it."
        )
    if model.exists() and not saved_spec.exists():
        raise BadInput(
            f"{model}: belongs to no known run (no spec.json in {folder}); choose another folder."
        )


def check_run_folder(folder: Path) -> None:
    """Refuse a folder in which a run would replace files of the user.

    A folder with a spec.json belongs to a run, so it passes here. `refuse_other_run` later refuses
    the folder if that is another run.

    Raises:
        BadInput: the run would replace a file. The message names it.
    """
    if (folder / "spec.json").exists():
        return
    for name in (DONE, PRUNED, PROGRESS, LOG, "model.part"):
        path = folder / name
        if os.path.lexists(path) and not is_progress_of_run(path):
            raise not_ours(path, "of a run (there is no spec.json beside it)")


def is_progress_of_run(path: Path) -> bool:
    """Whether a file is the progress.json of a run.

    A run that failed before its spec.json was written has left only this file.
    """
    if path.name != PROGRESS:
        return False
    try:
        progress = read_progress(path.parent)
    except BadInput:
        return False
    return progress is not None and progress["run"] != ""


def training_report(folder: Path) -> Path | None:
    """Find the report of a finished run, also if its model has been deleted.

    Returns:
        None if the run is not done.
    """
    for name in (DONE, PRUNED):
        if is_there(folder / name):
            return folder / name
    return None


def read_report(folder: Path) -> dict | None:
    """Read the report of a finished run. None if the run is not done."""
    path = training_report(folder)
    if path is None:
        return None
    content, _ = read_typed(path, Report, train_again(folder))
    return content


def has_model(folder: Path) -> bool:
    """Whether a run is done and its model has not been deleted."""
    return (folder / DONE).exists() and not (folder / PRUNED).exists()


# ---------------------------------------------------------------- finishing and deleting


def finish(folder: Path) -> None:
    """Mark a run with a complete model as done.

    Writes train.json. Deletes the progress, the checkpoints, and the sign of a deleted model.
    """
    write_json(folder / DONE, read_json(folder / "model" / REPORT))
    for name in (PROGRESS, PRUNED):
        (folder / name).unlink(missing_ok=True)
    remove_checkpoint(folder)


def remove_checkpoint(folder: Path) -> None:
    """Delete the checkpoint of a run, and the checkpoints that were set aside."""
    for pattern in (CHECKPOINT_FILES, SET_ASIDE + CHECKPOINT_FILES):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)


def delete_model(folder: Path) -> None:
    """Delete the model of a finished run.

    Its report is copied to pruned.json. train.json stays until the next workflow is planned
    (csebench/study/workflow.py: trained_run), because Snakemake fails a job and deletes its score
    if an input vanishes before the job ends.
    """
    model = folder / "model"
    with contextlib.suppress(FileNotFoundError):  # no train.json: the model was deleted before
        write_bytes(folder / PRUNED, (folder / DONE).read_bytes())
    # The model's own report goes first. If this process is killed now, the rest does not look like
    # a finished model.
    (model / REPORT).unlink(missing_ok=True)
    shutil.rmtree(model, ignore_errors=True)


# ---------------------------------------------------------------- progress


class ProgressRecord(BaseModel):
    """What csebench reads from a progress.json."""

    run: str = ""
    state: Literal["running", "failed"]
    step: int = Field(default=0, ge=0)
    steps: int = Field(default=0, ge=0)
    loss: FiniteFloat | None = None
    dev: FiniteFloat | None = None
    seconds: FiniteFloat = 0
    gpu: str | None = None
    host: str = ""
    pid: int = Field(default=0, ge=0, lt=2**31)
    updated: FiniteFloat = 0
    message: str = ""  # of a failed run
    is_final: bool = False  # a retry would fail in the same way


def read_progress(folder: Path) -> dict | None:
    """Read the progress.json of a run. None if the run has not begun, or is done."""
    remedy = "Delete it; the run writes it again."
    try:
        _, progress = read_typed(folder / PROGRESS, ProgressRecord, remedy)
    except MissingFile:
        return None
    return progress.model_dump()


class Progress:
    """A context manager around the work of a run, which keeps its progress.json up to date.

    An exception in the block is written as the failure of the run, and goes on to the caller. An
    exception that csebench did not raise gets a note with the step that the run had reached. A run
    that is killed or stopped leaves the file as it was written last.

    Attributes:
        log: the log of the run, which training starts and `work_on` closes.
    """

    def __init__(self, folder: Path, run: str, log_to: str | None = None):
        self.folder = folder
        self.log = TrainingLog(folder, run, log_to)
        self.is_main = is_main_process()
        self.now = ProgressRecord(
            run=run, state="running", host=socket.gethostname(), pid=os.getpid()
        )
        self.started = time.monotonic()
        self.write_due = self.started
        self.log_due = self.started

    def __enter__(self) -> "Progress":
        self._write("running")
        return self

    def __exit__(self, kind, error, trace) -> None:
        if not isinstance(error, Exception) or isinstance(error, Stopped):
            return  # no failure: the work is done, or was stopped from outside
        self.now.is_final = isinstance(error, OutOfMemory | Untrainable)
        if isinstance(error, BadInput | RunFailed):
            self._write("failed", message=str(error))
            return
        self._write("failed", message=traceback.format_exception_only(error)[0].strip())
        note = f"{self.now.run} failed"
        if self.now.steps:
            note += f" after step {self.now.step} of {self.now.steps}"
        if (self.folder / CHECKPOINT).exists():
            note += "; the same command resumes it from its checkpoint"
        error.add_note(f"{note}.")

    def start(self, step: int, steps: int, gpu: str | None) -> None:
        """Begin or resume training.

        Args:
            step: steps that are done.
            steps: steps of the whole run.
            gpu: name of the GPU; None for the CPU.
        """
        self.now.step = step
        self.now.steps = steps
        self.now.gpu = gpu
        self.started = time.monotonic()
        self._write("running")
        self._log()

    def step(self, step: int, loss: float | None, dev: float | None) -> None:
        """Note that a step is done. Write the file and print a line from time to time.

        Args:
            loss: the last loss that was read.
            dev: the best score on STS-B dev so far.
        """
        self.now.step = step
        self.now.loss = loss
        self.now.dev = dev
        now = time.monotonic()
        is_last = step == self.now.steps
        if is_last or now >= self.write_due:
            self._write("running")
        if is_last or now >= self.log_due:
            self._log()

    def _write(self, state: Literal["running", "failed"], message: str = "") -> None:
        """Write progress.json into the folder of the run.

        Only the main process writes progress. A failure is written by the process that failed.
        """
        self.now.state = state
        self.now.message = message
        self.now.seconds = time.monotonic() - self.started
        self.now.updated = time.time()
        self.write_due = time.monotonic() + WRITE_SECONDS
        is_writer = self.is_main or state == "failed"
        if is_writer and self.folder.exists():  # a run that is refused early makes no folder
            write_json(self.folder / PROGRESS, self.now.model_dump())

    def _log(self) -> None:
        """Print a line: step, loss and score."""
        self.log_due = time.monotonic() + LINE_SECONDS
        if not self.is_main:
            return
        now = self.now
        parts = [now.run, f"step {now.step}/{now.steps} ({100 * now.step // now.steps} %)"]
        if now.loss is not None:
            parts.append(f"loss {now.loss:.3f}")
        if now.dev is not None:
            parts.append(f"dev {100 * now.dev:.2f}")
        with contextlib.suppress(OSError):  # a closed terminal must not end the run
            print("  ".join(parts), file=sys.stderr, flush=True)
