"""The trackers that show a run while it trains: TensorBoard and trackio.

`csebench train --log-to` names one. A tracker gets every line of the log of a run
(base/training_log.py) as named numbers. When a stopped run goes on, its tracker starts again and
gets all lines from the first step, so that it shows no step twice. The package of a tracker is
imported only when the tracker starts. base/extras.py checks that it is installed.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any

TRACKIO_PROJECT = "csebench"  # has all runs


class TensorBoard:
    """Writes numbers into `tensorboard/` in the folder of a run."""

    def __init__(self, folder: Path, run: str):
        from torch.utils.tensorboard import SummaryWriter

        # `purge_step` hides what an earlier process has written from this step on
        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=0)

    def add(self, step: int, numbers: dict[str, float]) -> None:
        """Show numbers of a step."""
        for name, number in numbers.items():
            self.writer.add_scalar(name, number, step)
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class Trackio:
    """Sends numbers to trackio, where the run has its own id as its name."""

    def __init__(self, folder: Path, run: str):
        import trackio  # pyright: ignore[reportMissingImports]

        self.trackio = trackio
        with contextlib.redirect_stdout(sys.stderr):  # stdout has the result of the command
            self.delete_earlier(run)
            trackio.init(TRACKIO_PROJECT, name=run)

    def delete_earlier(self, run: str) -> None:
        """Delete what an earlier process has sent of a run."""
        try:
            runs = self.trackio.Api().runs(TRACKIO_PROJECT)
        except ValueError:  # no run was sent yet
            return
        for earlier in runs:
            if earlier.name == run:
                earlier.delete()

    def add(self, step: int, numbers: dict[str, float]) -> None:
        """Show numbers of a step."""
        self.trackio.log(numbers, step)

    def close(self) -> None:
        with contextlib.redirect_stdout(sys.stderr):
            self.trackio.finish()


TRACKERS = {
    "tensorboard": TensorBoard,
    "trackio": Trackio,
}  # by the value of --log-to, the name of the package


def named_numbers(record: dict[str, Any]) -> dict[str, float]:
    """Name the numbers of a line of the log as a tracker shows them.

    Args:
        record: the line, without its seconds.

    Returns:
        `loss` of a reading of the loss. Of an evaluation, `dev/spearman` and the other figures on
        STS-B dev, and `learned/temperature` or what else the method learns. The figures of a second
        encoder are `dev_encoder1/spearman` ….
    """
    values = dict(record)
    del values["step"]
    loss = values.pop("loss")
    learned = values.pop("learned", {})
    encoder = values.pop("encoder", None)
    if encoder is None:
        return {"loss": loss}

    numbers = {}
    group = "dev" if encoder == 0 else f"dev_encoder{encoder}"
    for metric, value in values.items():
        if value is not None:
            numbers[f"{group}/{metric}"] = value
    if encoder == 0:  # the lines of the other encoders repeat them
        for name, value in learned.items():
            numbers[f"learned/{name}"] = value
    return numbers
