"""The log of a run, `log.jsonl` in its folder, for people who watch the run train.

The log has a JSON object per line: one at each reading of the loss, and one for each encoder at
each evaluation. They are `losses` and `curve` of the run's report, written as they arise, with the
seconds of training until then. The log is never read to train, score or plan, so it changes no
result. It stays when the run is done and when its model is deleted, because it is small.
"""

import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, FiniteFloat, ValidationError
from pydantic_core import to_json

from csebench.base.errors import MissingFile
from csebench.base.files import read_bytes, system_errors, write_bytes
from csebench.base.processes import is_main_process
from csebench.base.trackers import TRACKERS, TensorBoard, Trackio, named_numbers

LOG = "log.jsonl"


class LineTime(BaseModel):
    """When a line of a log was written, and what it is about."""

    step: int
    encoder: int | None = None  # None for a reading of the loss
    seconds: FiniteFloat  # of training until then


class TrainingLog:
    """The log of a run, and the tracker that shows it, if the user asked for one.

    If several processes share the run, only the main process writes.
    """

    def __init__(self, folder: Path, run: str, log_to: str | None):
        """Prepare the log. Nothing is written before `start`.

        Args:
            run: id of the run.
            log_to: name of a tracker (`TRACKERS`).
        """
        self.path = folder / LOG
        self.run = run
        self.log_to = log_to
        self.tracker: TensorBoard | Trackio | None = None
        self.readings = 0  # of the loss, that are written
        self.evaluations = 0  # that are written
        self.earlier_seconds = 0.0  # of training, by processes that were stopped
        self.started = 0.0

    def start(self, losses: list[list[float]], curve: list[dict]) -> None:
        """Write the lines up to the step that training starts or resumes at.

        The checkpoint decides which lines these are, not the file. Lines of later steps are
        dropped, because these steps run again. A line that a kill cut off is dropped, too.

        Args:
            losses: [step, mean loss since the previous reading] of every reading so far.
            curve: every evaluation so far.
        """
        if not is_main_process():
            return
        times = recorded_times(self.path)
        known = log_records(losses, curve)
        lines = []
        for record in known:
            # None if the log was deleted, or if the run began before there were logs
            seconds = times.get((record["step"], record.get("encoder")))
            lines.append(log_line(record, seconds))
            if seconds is not None:
                self.earlier_seconds = seconds
        write_bytes(self.path, b"".join(lines))
        self.readings = len(losses)
        self.evaluations = len(curve)
        self.started = time.monotonic()

        if self.log_to is not None:
            self.tracker = TRACKERS[self.log_to](self.path.parent, self.run)
        self.show(known)

    def add_new(self, losses: list[list[float]], curve: list[dict]) -> None:
        """Write the lines that are not written yet.

        Args:
            losses: every reading so far, as for `start`.
            curve: every evaluation so far.
        """
        new = log_records(losses[self.readings :], curve[self.evaluations :])
        if not is_main_process() or not new:
            return
        seconds = self.earlier_seconds + time.monotonic() - self.started
        lines = [log_line(record, round(seconds, 3)) for record in new]
        with system_errors(self.path), open(self.path, "ab") as file:
            file.write(b"".join(lines))
        self.readings = len(losses)
        self.evaluations = len(curve)
        self.show(new)

    def show(self, records: list[dict[str, Any]]) -> None:
        """Send records to the tracker, if there is one."""
        if self.tracker is None:
            return
        for record in records:
            self.tracker.add(record["step"], named_numbers(record))

    def close(self) -> None:
        """End the tracker, if there is one."""
        if self.tracker is not None:
            self.tracker.close()


def log_records(losses: list[list[float]], curve: list[dict]) -> list[dict[str, Any]]:
    """List readings of the loss and evaluations in the order in which they arise.

    Every evaluation follows a reading of the loss at the same step.
    """
    readings = [{"step": step, "loss": loss} for step, loss in losses]
    return sorted([*readings, *curve], key=lambda record: record["step"])


def log_line(record: dict[str, Any], seconds: float | None) -> bytes:
    """Return a line of the log. A number that is not finite, which JSON lacks, is null there."""
    return to_json(record | {"seconds": seconds}, inf_nan_mode="null") + b"\n"


def recorded_times(path: Path) -> dict[tuple[int, int | None], float]:
    """Read when the lines of a log were written, in seconds of training, by step and encoder.

    Lines that cannot be read are skipped, such as a last line that a kill cut off.
    """
    try:
        content = read_bytes(path)
    except MissingFile:
        return {}
    times = {}
    for text in content.splitlines():
        try:
            line = LineTime.model_validate_json(text)
        except ValidationError:
            continue
        times[line.step, line.encoder] = line.seconds
    return times
