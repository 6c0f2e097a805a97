"""The loop of steps of a run. What a step and an evaluation are: csebench/train/trainer.py."""

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
# between two checkpoints, more where writing one takes long; 0: as many as possible
CHECKPOINT_SECONDS = 60
# between two checkpoints at least so many times what writing one took: 3 % of a run, at most
WRITES_APART = 30


def read_losses(task, state: TrainState) -> None:
    """Read the pending losses from the device. Raises Untrainable where one is not finite."""
    values = parallel.mean(torch.stack(state.pending)).tolist()
    for step, value in enumerate(values, state.step - len(values) + 1):
        if not np.isfinite(value):
            reason = (
                f"loss is {value} at step {step} (learning rate {task.p.learning_rate:g}); the run"
                " is stopped"
            )
            raise Untrainable(f"{task.name}: {reason}. Lower the learning rate or check the loss.")
    state.losses.append([state.step, float(np.mean(values))])
    state.pending.clear()


def run_steps(
    task, state: TrainState, folder: Path, progress: Progress, received: list[signal.Signals]
) -> float:
    """Make the steps that are left; returns the seconds per step of this process, evaluations
    included. Raises Untrainable where a loss is not finite; the checkpoint is gone then, for it
    would end the same way.

    Args:
        task: the `TrainingTask` of csebench/train/trainer.py.
        folder: of the run, where checkpoints go.
        received: signals; one ends the loop after the current step, behind a checkpoint, with
            Stopped.
    """
    cuda, writing = task.device.type == "cuda", 0.0  # seconds that the last checkpoint took
    first, started, saved = state.step, time.perf_counter(), time.perf_counter()
    progress.start(
        state.step, task.p.steps, torch.cuda.get_device_name(task.device) if cuda else None
    )

    while state.step < task.p.steps:
        # the learning rate of this step
        for group in state.optimizer.param_groups:
            group["lr"] = task.p.learning_rate * task.method.learning_rate_factor(state.step)

        # forward, backward, optimiser
        state.pending.append(task.make_step(state.step))
        state.step += 1

        # the losses since the last reading
        evaluates = state.step % task.p.evaluate_every == 0 or state.step == task.p.steps
        if evaluates or state.step % LOG_EVERY == 0:
            try:
                read_losses(task, state)
            except Untrainable:
                remove_checkpoint(folder)
                raise

        # several processes stop together, where losses are read
        stopped = bool(received)
        if parallel.world_size() > 1:
            stopped = not state.pending and parallel.any_rank(stopped, task.device)

        # evaluation, progress and checkpoint, by one process for all
        if is_main_process():
            if evaluates:
                task.evaluate(state)
            score = state.best["score"] if "weights" in state.best else None
            progress.step(state.step, state.losses[-1][1] if state.losses else None, score)
            interval = CHECKPOINT_SECONDS and max(CHECKPOINT_SECONDS, WRITES_APART * writing)
            due = time.perf_counter() - saved >= interval
            if stopped or (due and not state.pending and state.step < task.p.steps):
                writing = -time.perf_counter()
                checkpoint.save(state, folder, task.name)
                saved = time.perf_counter()
                writing += saved
        if stopped:
            cause = received[-1] if received else signal.SIGTERM  # another process got it
            reason = (
                f"stopped by {cause.name} after step {state.step}; the next try goes on from there."
            )
            raise Stopped(f"{task.name}: {reason}", interrupted=cause == signal.SIGINT)

    return (time.perf_counter() - started) / max(1, state.step - first)
