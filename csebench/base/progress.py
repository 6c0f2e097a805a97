"""What a run says of itself while it goes on: `progress.json` for `csebench status`, lines or a bar for whoever
looks at its log. Never imports torch."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import traceback
from pathlib import Path

from tqdm import tqdm

from csebench.base.errors import BadInput, RunFailed, Stopped
from csebench.base.files import write_json
from csebench.base.processes import is_main_process
from csebench.base.provenance import processor
from csebench.base.run_dir import CHECKPOINT, PROGRESS

WRITE_SECONDS = 2
DRAW_SECONDS = 1  # in a terminal
LINE_SECONDS = 30  # in a log file


class Progress:
    """The progress of a run in `folder`; a context manager around the work.

    An exception is noted as the run's failure and goes on its way. One that csebench did not foresee is told, for
    the end of its traceback, which run failed where. A killed or stopped run leaves the file as it was last written.
    """

    def __init__(self, folder: Path, run: str):
        self.folder, self.run = folder, run
        self.at = self.steps = 0
        self.loss = self.dev = self.bar = None
        self.device = {}
        self.is_main = is_main_process()
        self.first, self.started = 0, time.monotonic()

    def __enter__(self) -> Progress:
        self._write("running")
        return self

    def __exit__(self, kind, error, trace) -> None:
        if self.bar is not None:
            self.bar.close()
        noted = read(self.folder / PROGRESS)  # by the trainer, which knows the step, before the job that called it
        if (
            isinstance(error, Exception)
            and not isinstance(error, Stopped)
            and (noted is None or noted["state"] != "failed")
        ):
            foreseen = isinstance(error, BadInput | RunFailed)
            message = str(error) if foreseen else traceback.format_exception_only(error)[0].strip()
            self._write("failed", message=message)
            if not foreseen:
                error.add_note(self._epitaph())

    def start(self, step: int, steps: int, gpu: str | None) -> None:
        """Training begins, or goes on, after `step` of `steps`, on the GPU of that name or on the processor."""
        self.at = self.first = step
        self.steps, self.device = steps, {"gpu": gpu, "processor": processor()}
        self.started = time.monotonic()
        if self.is_main and sys.stderr.isatty():
            self.bar = tqdm(total=steps, initial=step, desc=self.run, unit="step", mininterval=0)
        self._write("running")
        self._say()

    def step(self, step: int, loss: float | None, dev: float | None) -> None:
        """After every step, with the last loss that was read and the best score on STS-B dev so far."""
        self.at, self.loss, self.dev = step, loss, dev
        now, last = time.monotonic(), step == self.steps
        if last or now >= self.write_at:
            self._write("running")
        if last or now >= self.say_at:
            self._say()

    def _seconds(self) -> float:
        return time.monotonic() - self.started

    def _left(self) -> float | None:
        """Seconds, at the pace of this process's own steps, evaluations included."""
        own = self.at - self.first
        return self._seconds() / own * (self.steps - self.at) if own else None

    def _write(self, state: str, **more) -> None:
        """Nothing where the folder is not there: bad input has not let the run begin."""
        self.write_at = time.monotonic() + WRITE_SECONDS
        if not (self.folder.exists() and (self.is_main or state == "failed")):
            return
        content = {"run": self.run, "state": state, "step": self.at, "steps": self.steps, "loss": self.loss}
        content |= {"dev": self.dev, "seconds": self._seconds(), "left": self._left(), **self.device}
        content |= {"host": socket.gethostname(), "pid": os.getpid(), "updated": time.time()}
        write_json(self.folder / PROGRESS, content | more)

    def _say(self) -> None:
        if self.bar is not None:
            self.say_at = time.monotonic() + DRAW_SECONDS
            self.bar.set_postfix_str(", ".join(self._results()), refresh=False)
            self.bar.update(self.at - self.bar.n)
            return
        self.say_at = time.monotonic() + LINE_SECONDS
        if not self.is_main:
            return
        left = [f"{clock(self._left())} left"] if self.first < self.at < self.steps else []
        position = f"step {self.at}/{self.steps} ({100 * self.at // self.steps} %)"
        print("  ".join([self.run, position, *self._results(), *left]), file=sys.stderr, flush=True)

    def _results(self) -> list[str]:
        loss = [] if self.loss is None else [f"loss {self.loss:.3f}"]
        return loss + ([] if self.dev is None else [f"dev {100 * self.dev:.2f}"])

    def _epitaph(self) -> str:
        where = f" after step {self.at} of {self.steps}" if self.steps else ""
        kept = (self.folder / CHECKPOINT).exists()
        return f"{self.run} failed{where}" + ("; the same command resumes it from its checkpoint." if kept else ".")


def read(path: Path) -> dict | None:
    """A JSON file; None where it is not, or no longer, there."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def clock(seconds: float) -> str:
    """0:37, 12:05, 3:00:20"""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
