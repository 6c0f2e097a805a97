"""Progress of a run: `progress.json`, which `csebench status` reads, and a bar in a terminal or lines in a log.

Never imports torch.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, FiniteFloat
from tqdm import tqdm

from csebench.base.display import on_terminal
from csebench.base.errors import BadInput, MissingFile, RunFailed, Stopped
from csebench.base.files import read_typed, write_json
from csebench.base.processes import is_main_process
from csebench.base.provenance import processor
from csebench.base.runs import CHECKPOINT, PROGRESS

WRITE_SECONDS = 2  # between writes of progress.json
DRAW_SECONDS = 1  # between updates of the bar in a terminal
LINE_SECONDS = 30  # between lines in a log file


class Progress:
    """The progress of a run in `folder`; a context manager around the work.

    An exception is written as the run's failure and re-raised. An unexpected one gets a note at the end of its
    traceback: the run, and the step after which it failed. A killed or stopped run leaves the file as last written.
    """

    def __init__(self, folder: Path, run: str):
        self.folder, self.run = folder, run
        self.completed = self.steps = 0
        self.loss = self.dev = self.bar = None
        self.device = {}
        self.is_main = is_main_process()
        self.resumed_from, self.started = 0, time.monotonic()

    def __enter__(self) -> Progress:
        self._write("running")
        return self

    def __exit__(self, kind, error, trace) -> None:
        if self.bar is not None:
            self.bar.close()
        if not isinstance(error, Exception) or isinstance(error, Stopped):
            return
        with contextlib.suppress(BadInput):  # damaged meanwhile: it is written anew
            written = read_progress(self.folder / PROGRESS)
            if written is not None and written["state"] == "failed":  # by the trainer, which knows the step
                return
        expected = isinstance(error, BadInput | RunFailed)
        message = str(error) if expected else traceback.format_exception_only(error)[0].strip()
        self._write("failed", message=message)
        if not expected:
            error.add_note(self._failure_note())

    def start(self, step: int, steps: int, gpu: str | None) -> None:
        """Begin or resume training after `step` of `steps`; `gpu` is the name of the GPU, None for the CPU."""
        self.completed = self.resumed_from = step
        self.steps, self.device = steps, {"gpu": gpu, "processor": processor()}
        self.started = time.monotonic()
        if on_terminal():
            self.bar = tqdm(total=steps, initial=step, desc=self.run, unit="step", mininterval=0)
        self._write("running")
        self._log()

    def step(self, step: int, loss: float | None, dev: float | None) -> None:
        """Note that `step` is done; `loss` is the last that was read, `dev` the best score on STS-B dev so far."""
        self.completed, self.loss, self.dev = step, loss, dev
        now, last = time.monotonic(), step == self.steps
        if last or now >= self.write_due:
            self._write("running")
        if last or now >= self.log_due:
            self._log()

    def _seconds(self) -> float:
        return time.monotonic() - self.started

    def _left(self) -> float | None:
        """Seconds left at the pace of this process, evaluations included; None before its first step."""
        done_here = self.completed - self.resumed_from
        return self._seconds() / done_here * (self.steps - self.completed) if done_here else None

    def _write(self, state: str, **more) -> None:
        """Write progress.json; not without the run's folder, which bad input leaves uncreated."""
        self.write_due = time.monotonic() + WRITE_SECONDS
        if not (self.folder.exists() and (self.is_main or state == "failed")):
            return
        content = {"run": self.run, "state": state, "step": self.completed, "steps": self.steps, "loss": self.loss}
        content |= {"dev": self.dev, "seconds": self._seconds(), "left": self._left(), **self.device}
        content |= {"host": socket.gethostname(), "pid": os.getpid(), "updated": time.time()}
        write_json(self.folder / PROGRESS, content | more)

    def _log(self) -> None:
        """Update the bar, or print a line."""
        if self.bar is not None:
            self.log_due = time.monotonic() + DRAW_SECONDS
            self.bar.set_postfix_str(", ".join(self._results()), refresh=False)
            self.bar.update(self.completed - self.bar.n)
            return
        self.log_due = time.monotonic() + LINE_SECONDS
        if not self.is_main:
            return
        under_way = self.resumed_from < self.completed < self.steps
        seconds = self._left() if under_way else None
        left = [] if seconds is None else [f"{format_duration(seconds)} left"]
        position = f"step {self.completed}/{self.steps} ({100 * self.completed // self.steps} %)"
        print("  ".join([self.run, position, *self._results(), *left]), file=sys.stderr, flush=True)

    def _results(self) -> list[str]:
        loss = [] if self.loss is None else [f"loss {self.loss:.3f}"]
        return loss + ([] if self.dev is None else [f"dev {100 * self.dev:.2f}"])

    def _failure_note(self) -> str:
        where = f" after step {self.completed} of {self.steps}" if self.steps else ""
        resume = "; the same command resumes it from its checkpoint" if (self.folder / CHECKPOINT).exists() else ""
        return f"{self.run} failed{where}{resume}."


class ProgressRecord(BaseModel):
    """What others read of a progress.json."""

    run: str = ""
    state: Literal["running", "failed"]
    step: int = Field(default=0, ge=0)
    steps: int = Field(default=0, ge=0)
    loss: FiniteFloat | None = None
    dev: FiniteFloat | None = None
    seconds: FiniteFloat = 0
    left: FiniteFloat | None = None
    gpu: str | None = None
    processor: str | None = None
    host: str = ""
    pid: int = Field(default=0, ge=0, lt=2**31)
    updated: FiniteFloat = 0
    message: str = ""  # of a failed run


def read_progress(path: Path) -> dict | None:
    """What others read of a progress.json; None where it does not exist, or no longer.

    Raises:
        BadInput: it is damaged.
    """
    try:
        return read_typed(path, ProgressRecord, "Delete it; a run that goes on writes it anew.")[1].model_dump()
    except MissingFile:
        return None


def format_duration(seconds: float) -> str:
    """Seconds as `0:37`, `12:05` or `3:00:20`."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
