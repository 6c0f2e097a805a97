"""The loop of steps of a run.

The loop sets the learning rate and reads losses. It decides when to evaluate, when to write a
checkpoint, and when to stop. csebench/train/trainer.py defines a step and an evaluation.
"""

import signal
import time
from pathlib import Path

import numpy as np
import torch

from csebench.base.errors import Diverged, Stopped
from csebench.base.processes import is_main_process
from csebench.base.runs import Progress, remove_checkpoint
from csebench.train import checkpoint, parallel
from csebench.train.checkpoint import TrainState

LOG_EVERY = 10  # steps between two readings of the loss: a reading waits for the GPU
# Seconds between two checkpoints, or more (WRITES_APART). 0: write one after every reading.
CHECKPOINT_SECONDS = 60
# Wait at least this many times as long as writing the last checkpoint took. So writing takes at
# most 3 % of a run.
WRITES_APART = 30


def run_steps(
    task, state: TrainState, folder: Path, progress: Progress, received: list[signal.Signals]
) -> float:
    """Make the remaining steps of a run.

    Args:
        task: the `TrainingTask` of csebench/train/trainer.py.
        folder: folder of the run, for its checkpoints.
        received: signals that the process has received. If there is one, the loop ends after the
            current step.

    Returns:
        The seconds per step of this process, evaluations included.

    Raises:
        Diverged: a loss is not finite (see `read_losses`).
        Stopped: a signal was received. A checkpoint has been written.
    """
    first_step = state.step
    started = time.perf_counter()
    last_saved = started
    saving_seconds = 0.0  # how long writing the last checkpoint took
    device_name = None
    if task.device.type == "cuda":
        device_name = torch.cuda.get_device_name(task.device)
    progress.start(state.step, task.p.steps, device_name)
    progress.log.start(state.losses, state.curve)

    while state.step < task.p.steps:
        # the learning rate of this step
        for group in state.optimizer.param_groups:
            group["lr"] = task.p.learning_rate * task.method.learning_rate_factor(state.step)

        # forward, backward, optimiser
        state.pending.append(task.make_step(state.step))
        state.step += 1

        # the losses since the last reading
        is_last = state.step == task.p.steps
        evaluates = is_last or state.step % task.p.evaluate_every == 0
        if evaluates or state.step % LOG_EVERY == 0:
            read_losses(task, state, folder)

        # Several processes stop together. They ask each other only after reading losses, because
        # asking waits for the GPU.
        stops = bool(received)
        if parallel.world_size() > 1:
            stops = not state.pending and parallel.any_rank(stops, task.device)

        # The main process evaluates, shows progress and writes checkpoints for all.
        if is_main_process():
            if evaluates:
                task.evaluate(state)
            report_progress(state, progress)
            # Without a signal, write only after reading losses, because writing waits for the GPU,
            # too. The last step needs no checkpoint: the run is exported next.
            is_due = time.perf_counter() - last_saved >= checkpoint_interval(saving_seconds)
            if stops or (is_due and not state.pending and not is_last):
                save_started = time.perf_counter()
                checkpoint.save(state, folder, task.name)
                last_saved = time.perf_counter()
                saving_seconds = last_saved - save_started
        if stops:
            raise stop_error(task.name, state.step, received)

    return (time.perf_counter() - started) / max(1, state.step - first_step)


def read_losses(task, state: TrainState, folder: Path) -> None:
    """Read the pending losses from the device, and note their mean.

    Raises:
        Diverged: a loss is not finite. The checkpoint is deleted, because resuming from it would
            end the same way.
    """
    values = parallel.mean(torch.stack(state.pending)).tolist()
    first_step = state.step - len(values) + 1
    for step, value in enumerate(values, first_step):
        if not np.isfinite(value):
            remove_checkpoint(folder)
            raise Diverged(
                f"{task.name}: loss is {value} at step {step} (learning rate"
                f" {task.p.learning_rate:g}); the run is stopped. Lower the learning rate or check"
                " the loss."
            )
    state.losses.append([state.step, float(np.mean(values))])
    state.pending.clear()


def report_progress(state: TrainState, progress: Progress) -> None:
    """Show the step, the loss last read, and the best score on STS-B dev so far.

    If the losses have just been read, also write the log.
    """
    if not state.pending:
        progress.log.add_new(state.losses, state.curve)
    loss = None
    if state.losses:
        loss = state.losses[-1][1]
    score = None
    if "weights" in state.best:
        score = state.best["score"]
    progress.step(state.step, loss, score)


def checkpoint_interval(saving_seconds: float) -> float:
    """Return the seconds between the last checkpoint and the next one.

    Args:
        saving_seconds: how long writing the last checkpoint took.
    """
    if CHECKPOINT_SECONDS == 0:
        return 0.0
    return max(CHECKPOINT_SECONDS, WRITES_APART * saving_seconds)


def stop_error(run: str, step: int, received: list[signal.Signals]) -> Stopped:
    """Return the exception that ends a run after a signal.

    Args:
        received: empty if another process of the run received the signal.
    """
    cause = signal.SIGTERM
    if received:
        cause = received[-1]
    return Stopped(
        f"{run}: stopped by {cause.name} after step {step}; the next try goes on from there.",
        interrupted=cause == signal.SIGINT,
    )
