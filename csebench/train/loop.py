"""The loop of steps that training and pre-training share, and the one object that it resumes from.

What a step, an evaluation and the learning rate are, a task says: csebench/train/trainer.py, pretrain.py.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import nn

from csebench.base.errors import RunFailed, Stopped
from csebench.base.processes import is_main_process
from csebench.base.progress import Progress
from csebench.base.run_dir import CHECKPOINT, UNFINISHED
from csebench.train import parallel

LOG_EVERY = 10  # steps between two readings of the loss: a reading waits for the GPU
CHECKPOINT_SECONDS = 60


class Task(Protocol):
    """What the loop repeats."""

    name: str  # for messages
    steps: int
    peak_learning_rate: float
    device: torch.device

    def learning_rate(self, step: int) -> float:
        """Of a step, counted from 0."""

    def make_step(self, step: int) -> torch.Tensor:
        """Forward, backward, optimiser. Returns the loss, which stays on the device."""

    def evaluates(self, step: int) -> bool:
        """Whether there is an evaluation after so many steps."""

    def evaluate(self, state: TrainState) -> None:
        """Adds a point to `state.curve`, and notes in `state.best` what is worth keeping."""


class TrainState:
    """All that a run resumes from, saved and restored as a whole."""

    PLAIN = ("step", "curve", "losses", "pending", "seconds", "best")

    def __init__(self, modules: nn.Module, optimizer: torch.optim.Optimizer):
        self.modules, self.optimizer = modules, optimizer
        self.step = 0  # steps done
        self.curve: list[dict] = []  # of evaluations
        self.losses: list[list[float]] = []  # [step, mean since the reading before]
        self.pending: list[torch.Tensor] = []  # losses not yet read from the device
        self.seconds = 0.0  # spent in the loop, before and after interruptions
        self.best: dict = {"score": -np.inf}  # of the evaluations: score, step, encoder, weights

    @property
    def device(self) -> torch.device:
        return next(self.modules.parameters()).device

    def state_dict(self) -> dict:
        values = {name: getattr(self, name) for name in self.PLAIN}
        values |= {"state": self.modules.state_dict(), "optimizer": self.optimizer.state_dict()}
        values |= {"rng": torch.get_rng_state()}
        return values | ({"cuda_rng": torch.cuda.get_rng_state()} if self.device.type == "cuda" else {})

    def load_state_dict(self, values: dict) -> None:
        for name in self.PLAIN:
            setattr(self, name, values.get(name, getattr(self, name)))  # an older checkpoint may lack one
        self.modules.load_state_dict(values["state"])
        self.optimizer.load_state_dict(values["optimizer"])
        if "weights" in self.best:
            self.best["weights"] = {key: tensor.cpu() for key, tensor in self.best["weights"].items()}
        torch.set_rng_state(values["rng"].cpu())
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(values["cuda_rng"].cpu())

    def save(self, folder: Path) -> None:
        torch.save(self.state_dict(), folder / UNFINISHED)
        os.replace(folder / UNFINISHED, folder / CHECKPOINT)

    def resume(self, folder: Path) -> None:
        """Go on from the checkpoint of a folder, if there is one."""
        if (folder / CHECKPOINT).exists():
            self.load_state_dict(torch.load(folder / CHECKPOINT, map_location=self.device, weights_only=True))

    def read_losses(self, task: Task) -> None:
        """Read the pending losses from the device. Raises RunFailed where one is not finite."""
        values = parallel.mean(torch.stack(self.pending)).tolist()
        for step, value in enumerate(values, self.step - len(values) + 1):
            if not np.isfinite(value):
                raise RunFailed(
                    f"{task.name}: loss is {value} at step {step} (learning rate {task.peak_learning_rate:g});"
                    " the run is stopped. Lower the learning rate or check the loss."
                )
        self.losses.append([self.step, float(np.mean(values))])
        self.pending.clear()


def run_steps(
    task: Task,
    state: TrainState,
    folder: Path,
    progress: Progress,
    stop: threading.Event,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> float:
    """Make the steps of a task that are left.

    Args:
        folder: of the run, where checkpoints go.
        stop: ends the loop after the current step, behind a checkpoint.
        checkpoint_seconds: between two checkpoints.

    Returns:
        seconds per step of this process, evaluations included.

    Raises:
        RunFailed: a loss is not finite; the checkpoint is gone, for it would end the same way.
        Stopped: `stop` was set.
    """
    cuda = task.device.type == "cuda"
    first, before, started, saved = state.step, state.seconds, time.perf_counter(), time.perf_counter()
    progress.start(state.step, task.steps, torch.cuda.get_device_name(task.device) if cuda else None)

    while state.step < task.steps:
        # the learning rate of this step
        for group in state.optimizer.param_groups:
            group["lr"] = task.learning_rate(state.step)

        # forward, backward, optimiser
        state.pending.append(task.make_step(state.step))
        state.step += 1
        state.seconds = before + time.perf_counter() - started

        # the losses since the last reading
        evaluates = task.evaluates(state.step)
        if evaluates or state.step % LOG_EVERY == 0:
            try:
                state.read_losses(task)
            except RunFailed:
                (folder / CHECKPOINT).unlink(missing_ok=True)
                raise

        # several processes stop together, where losses are read
        stopped = stop.is_set()
        if parallel.world_size() > 1:
            stopped = not state.pending and parallel.any_rank(stopped, task.device)

        # evaluation, progress and checkpoint, by one process for all
        if is_main_process():
            if evaluates:
                task.evaluate(state)
            score = state.best["score"] if "weights" in state.best else None
            progress.step(state.step, state.losses[-1][1] if state.losses else None, score)
            due = time.perf_counter() - saved >= checkpoint_seconds and not state.pending and state.step < task.steps
            if stopped or due:
                state.save(folder)
                saved = time.perf_counter()
        if stopped:
            raise Stopped(f"{task.name}: stopped by SIGTERM after step {state.step}; the next try goes on from there.")

    return (time.perf_counter() - started) / max(1, state.step - first)


@contextmanager
def sigterm() -> Iterator[threading.Event]:
    """An event that SIGTERM sets instead of ending the process: clusters send it some seconds before they kill."""
    event = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGTERM, before)
