"""The folder of a run, `runs/<id>/`: its files, whether the run is done, the lock that gives it one
worker at a time, and its progress: `progress.json`, which `csebench status` reads, and lines on
stderr. Never imports torch.
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

DONE = "train.json"  # the report of the model in the folder of the run, which Snakemake waits for
PRUNED = "pruned.json"  # the same, once the model has been deleted
PROGRESS = "progress.json"  # of an unfinished run
# from which an unfinished run resumes; names the file with its state
CHECKPOINT = ".checkpoint.json"
CHECKPOINT_FILES = ".checkpoint*"  # these, half-written ones, and those of older versions
SET_ASIDE = ".set-aside"  # before the names of the files of a checkpoint that could not be used
WRITE_SECONDS = 2  # between writes of progress.json
LINE_SECONDS = 30  # between lines on stderr
_locked: set[Path] = set()  # folders that this process has locked


@contextlib.contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Be the only process that works on a run; waits while another does. Does nothing inside
    another such block, and in a process that torchrun started: that which became torchrun holds the
    lock for all of them.
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
    """Whether a folder has the complete model of a run. Raises BadInput where it holds another
    run, a model without a spec, a damaged spec, or a model whose files were changed since."""
    model, saved_spec = folder / "model", folder / "spec.json"
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
    check_model(model)
    return (model / REPORT).exists()


def check_run_folder(folder: Path) -> None:
    """Raise BadInput where a folder that is given for a run holds files of others that the run
    would replace. What belongs to another run is refused by `is_done`."""
    if (folder / "spec.json").exists():
        return
    for name in (DONE, PRUNED, PROGRESS, "model.part"):
        path = folder / name
        if os.path.lexists(path) and not is_progress_of_run(path):
            raise not_ours(path, "of a run (there is no spec.json beside it)")


def is_progress_of_run(path: Path) -> bool:
    """Whether a file is the progress of a run. One that failed early has no spec.json beside it."""
    if path.name != PROGRESS:
        return False
    try:
        progress = read_progress(path.parent)
    except BadInput:
        return False
    return progress is not None and progress["run"] != ""


def finish(folder: Path) -> None:
    """Mark a run with a complete model as done: write train.json, delete progress and
    checkpoints."""
    write_json(folder / DONE, read_json(folder / "model" / REPORT))
    for name in (PROGRESS, PRUNED):
        (folder / name).unlink(missing_ok=True)
    remove_checkpoint(folder)


def remove_checkpoint(folder: Path) -> None:
    """Delete the checkpoint of a run, and those that were set aside."""
    for path in (*folder.glob(CHECKPOINT_FILES), *folder.glob(SET_ASIDE + CHECKPOINT_FILES)):
        path.unlink(missing_ok=True)


def training_report(folder: Path) -> Path | None:
    """The report of a finished run, whether its model is still there or not; None before the run
    is done."""
    return next((path for name in (DONE, PRUNED) if is_there(path := folder / name)), None)


def read_report(folder: Path) -> dict | None:
    """The content of that report."""
    path = training_report(folder)
    return None if path is None else read_typed(path, Report, train_again(folder))[0]


def has_model(folder: Path) -> bool:
    """Whether a run is done and its model has not been deleted."""
    return (folder / DONE).exists() and not (folder / PRUNED).exists()


def delete_model(folder: Path) -> None:
    """Delete the model of a finished run, whose report is copied to pruned.json. train.json stays
    until the next workflow is planned (csebench/study/workflow.py: trained_run): Snakemake fails a
    job and deletes its score if an input vanishes at its end. The model's own report goes first:
    what a killed process leaves is no finished model.
    """
    model = folder / "model"
    with contextlib.suppress(FileNotFoundError):
        write_bytes(folder / PRUNED, (folder / DONE).read_bytes())
    (model / REPORT).unlink(missing_ok=True)
    shutil.rmtree(model, ignore_errors=True)


class Progress:
    """The progress of a run in `folder`; a context manager around the work. An exception is written
    as the run's failure and re-raised, with a note if it is unexpected; a killed or stopped run
    leaves the file as last written.
    """

    def __init__(self, folder: Path, run: str):
        self.folder, self.is_main = folder, is_main_process()
        self.now = ProgressRecord(
            run=run, state="running", host=socket.gethostname(), pid=os.getpid()
        )
        self.started = time.monotonic()

    def __enter__(self) -> "Progress":
        self._write("running")
        return self

    def __exit__(self, kind, error, trace) -> None:
        if not isinstance(error, Exception) or isinstance(error, Stopped):
            return
        with contextlib.suppress(BadInput):  # damaged meanwhile: it is written anew
            written = read_progress(self.folder)
            # by the trainer, which knows the step
            if written is not None and written["state"] == "failed":
                return
        self.now.is_final = isinstance(error, OutOfMemory | Untrainable)
        if isinstance(error, BadInput | RunFailed):
            return self._write("failed", message=str(error))
        self._write("failed", message=traceback.format_exception_only(error)[0].strip())
        where = f" after step {self.now.step} of {self.now.steps}" if self.now.steps else ""
        resume = (
            "; the same command resumes it from its checkpoint"
            if (self.folder / CHECKPOINT).exists()
            else ""
        )
        error.add_note(f"{self.now.run} failed{where}{resume}.")

    def start(self, step: int, steps: int, gpu: str | None) -> None:
        """Begin or resume training after `step` of `steps`; `gpu` is the name of the GPU, None
        for the CPU."""
        self.now.step, self.now.steps, self.now.gpu = step, steps, gpu
        self.started = time.monotonic()
        self._write("running")
        self._log()

    def step(self, step: int, loss: float | None, dev: float | None) -> None:
        """Note that `step` is done; `loss` is the last that was read, `dev` the best score on
        STS-B dev so far."""
        self.now.step, self.now.loss, self.now.dev = step, loss, dev
        time_now, is_last = time.monotonic(), step == self.now.steps
        if is_last or time_now >= self.write_due:
            self._write("running")
        if is_last or time_now >= self.log_due:
            self._log()

    def _write(self, state: Literal["running", "failed"], message: str = "") -> None:
        """Write progress.json; not without the run's folder, which bad input leaves uncreated."""
        self.now.seconds, self.now.updated = time.monotonic() - self.started, time.time()
        self.now.state, self.now.message = state, message
        self.write_due = time.monotonic() + WRITE_SECONDS
        if self.folder.exists() and (self.is_main or state == "failed"):
            write_json(self.folder / PROGRESS, self.now.model_dump())

    def _log(self) -> None:
        self.log_due, now = time.monotonic() + LINE_SECONDS, self.now
        results = [] if now.loss is None else [f"loss {now.loss:.3f}"]
        results += [] if now.dev is None else [f"dev {100 * now.dev:.2f}"]
        if self.is_main:
            position = f"step {now.step}/{now.steps} ({100 * now.step // now.steps} %)"
            with contextlib.suppress(OSError):  # of a terminal that was closed: it ends no run
                print("  ".join([now.run, position, *results]), file=sys.stderr, flush=True)


class ProgressRecord(BaseModel):
    """What others read of a progress.json."""

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
    is_final: bool = False  # another try would fail in the same way


def read_progress(folder: Path) -> dict | None:
    """What others read of a run's progress.json; None where it does not exist, or no longer."""
    try:
        return read_typed(folder / PROGRESS, ProgressRecord, "Delete it; the run writes it anew.")[
            1
        ].model_dump()
    except MissingFile:
        return None
