"""The loop of steps of a run.

It sets the learning rate, reads losses, and decides when to evaluate, write a checkpoint and stop.
What a step and an evaluation are is defined in csebench/train/trainer.py.
"""

import signal
import time
from pathlib import Path

import numpy as np
import torch

from csebench.base.errors import Stopped, Untrainable
from csebench.base.processes import is_main_process
from csebench.base.runs import Progress, remove_checkpoint
from csebench.train import checkpoint, parallel
from csebench.train.checkpoint import TrainState

LOG_EVERY = 10  # steps between two readings of the loss: a reading waits for the GPU
# Seconds between two checkpoints, or more if writing one takes long. 0: after every reading.
CHECKPOINT_SECONDS = 60
# At least so many times the seconds of writing a checkpoint are between two: at most 3 % of a run.
WRITES_APART = 30


def run_steps(
    task, state: TrainState, folder: Path, progress: Progress, received: list[signal.Signals]
) -> float:
    """Make the remaining steps of a run.

    Args:
        task: the `TrainingTask` of csebench/train/trainer.py.
        folder: of the run. Checkpoints are written there.
        received: signals that the process has received. One ends the loop after the current step.

    Returns:
        The seconds per step of this process, evaluations included.

    Raises:
        Untrainable: a loss is not finite (`read_losses`).
        Stopped: a signal was received. A checkpoint has been written.
    """
    first_step = state.step
    started = time.perf_counter()
    last_saved = started
    saving_seconds = 0.0  # of the last checkpoint
    device_name = None
    if task.device.type == "cuda":
        device_name = torch.cuda.get_device_name(task.device)
    progress.start(state.step, task.p.steps, device_name)

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

        # several processes stop together, at a step that reads losses
        stops = bool(received)
        if parallel.world_size() > 1:
            stops = not state.pending and parallel.any_rank(stops, task.device)

        # evaluation, progress and checkpoint, by one process for all
        if is_main_process():
            if evaluates:
                task.evaluate(state)
            report_progress(state, progress)
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
        Untrainable: a loss is not finite. The checkpoint is deleted, because resuming from it would
            end the same way.
    """
    values = parallel.mean(torch.stack(state.pending)).tolist()
    first_step = state.step - len(values) + 1
    for step, value in enumerate(values, first_step):
        if not np.isfinite(value):
            remove_checkpoint(folder)
            raise Untrainable(
                f"{task.name}: loss is {value} at step {step} (learning rate"
                f" {task.p.learning_rate:g}); the run is stopped. Lower the learning rate or check"
                " the loss."
            )
    state.losses.append([state.step, float(np.mean(values))])
    state.pending.clear()


def report_progress(state: TrainState, progress: Progress) -> None:
    """Show the step, the loss last read, and the best score on STS-B dev so far."""
    loss = None
    if state.losses:
        loss = state.losses[-1][1]
    score = None
    if "weights" in state.best:
        score = state.best["score"]
    progress.step(state.step, loss, score)


def checkpoint_interval(saving_seconds: float) -> float:
    """Return the seconds to the next checkpoint.

    Args:
        saving_seconds: the time that writing the last one took.
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
