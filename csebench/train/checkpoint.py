"""Save the state of a run in a checkpoint, and resume from it.

A checkpoint is two files. The first has the state: weights, the best weights so far, moments of the
optimiser, random state, and curve. The second, `.checkpoint.json`, has the id of the run, and the
name and sha256 of the first file. It is written last. So a process that is killed at any moment
leaves either the previous checkpoint or the new one. csebench/train/loop.py decides when to write.
"""

import json
import os
import sys
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch
from accelerate.utils import send_to_device
from torch import nn

from csebench.base.errors import BadInput, RunFailed, first_line
from csebench.base.files import replacing, sha256, write_json
from csebench.base.processes import is_main_process
from csebench.base.runs import CHECKPOINT, CHECKPOINT_FILES, SET_ASIDE
from csebench.train import parallel

EXTRA_STATE = "_extra_state"  # ends the keys of what `Module.get_extra_state` returns


class TrainState:
    """The state that a run resumes from, saved and restored as a whole."""

    PLAIN = ("step", "curve", "losses", "pending", "best")

    def __init__(self, modules: nn.Module, optimizer: torch.optim.Optimizer):
        self.modules = modules
        self.optimizer = optimizer
        self.device = next(modules.parameters()).device
        self.step = 0  # steps done
        self.curve: list[dict] = []  # one entry for each evaluation
        self.losses: list[list[float]] = []  # [step, mean loss since the previous reading]
        self.pending: list[torch.Tensor] = []  # losses not yet read from the device
        self.best: dict = {"score": -np.inf}  # best evaluation: score, step, encoder, weights

    def state_dict(self) -> dict:
        """Return the values to save."""
        values = {name: getattr(self, name) for name in self.PLAIN}
        values["state"] = self.modules.state_dict()
        values["optimizer"] = self.optimizer.state_dict()
        values["rng"] = torch.get_rng_state()
        if self.device.type == "cuda":
            values["cuda_rng"] = torch.cuda.get_rng_state()
        return values

    def load_state_dict(self, values: dict) -> None:
        """Restore saved values.

        Args:
            values: as saved, with tensors on the host. The best weights stay there.
        """
        for name in self.PLAIN:
            setattr(self, name, values[name])
        self.pending = [loss.to(self.device) for loss in self.pending]
        self.modules.load_state_dict(self.on_device(values["state"]))
        self.optimizer.load_state_dict(values["optimizer"])
        torch.set_rng_state(values["rng"])
        if self.device.type == "cuda" and "cuda_rng" in values:
            torch.cuda.set_rng_state(values["cuda_rng"])

    def on_device(self, state: dict) -> dict:
        """Move what modules keep besides weights, such as a queue, to the device.

        PyTorch copies weights and buffers there itself.
        """
        for key in state:
            if key.endswith(EXTRA_STATE):
                state[key] = send_to_device(state[key], self.device)
        return state


def save(state: TrainState, folder: Path, run: str) -> None:
    """Write the checkpoint of a run, and delete the previous one."""
    path = folder / f".checkpoint-{state.step}.pt"
    with replacing(path) as temporary, open(temporary, "wb") as file:
        torch.save(state.state_dict(), file)
    # From here on the new checkpoint counts.
    write_json(folder / CHECKPOINT, {"run": run, "file": path.name, "sha256": sha256(path)})
    for old in folder.glob(CHECKPOINT_FILES):
        if old.name not in (CHECKPOINT, path.name):
            old.unlink()


def resume(state: TrainState, folder: Path, run: str) -> None:
    """Restore the state of a run from its checkpoint, if there is one.

    A checkpoint that is damaged, or of another run, is set aside with a line on stderr. The run
    then starts at step 0.

    Raises:
        RunFailed: the checkpoint does not fit the present code.
    """
    problem = None
    values = None
    try:
        values = _read(folder, run)
    except BadInput as error:
        problem = str(error)

    # This also waits until all processes have read the file. Only then may it be moved.
    is_unusable = parallel.any_rank(problem is not None, state.device)
    if not is_unusable:
        if values is not None:
            restore(state, values, f"{run}: {folder / CHECKPOINT}")
        return
    if is_main_process():
        for path in folder.glob(CHECKPOINT_FILES):
            os.replace(path, path.with_name(SET_ASIDE + path.name))
        reason = problem or "another process cannot use it"
        line = (
            f"{run}: {folder / CHECKPOINT} is not used: {reason}; set aside, the run starts at"
            " step 0."
        )
        print(line, file=sys.stderr, flush=True)


def restore(state: TrainState, values: dict, where: str) -> None:
    """Restore the state of a run from the values of a checkpoint.

    Args:
        where: run and file, for the message.

    Raises:
        RunFailed: the values do not fit, such as weights of another shape.
    """
    try:
        state.load_state_dict(values)
    except (KeyError, RuntimeError, ValueError) as error:
        raise RunFailed(
            f"{where}: does not fit the present code: {first_line(error)}. Delete it to start at"
            " step 0."
        ) from None


def _read(folder: Path, run: str) -> dict | None:
    """Read the checkpoint of a run.

    Returns:
        The values of its state, or None if there is no checkpoint.

    Raises:
        BadInput: the checkpoint is damaged, of another run, or of another format.
    """
    try:
        index = json.loads((folder / CHECKPOINT).read_bytes())
        if index["run"] != run:
            raise BadInput(f"it is of {index['run']}")
        path = folder / index["file"]
        actual = sha256(path)
        if actual != index["sha256"]:
            raise BadInput(
                f"{path.name} is damaged: its sha256 is {actual[:12]}…, expected"
                f" {index['sha256'][:12]}…"
            )
        return torch.load(path, map_location="cpu", weights_only=True)  # runs no code of the file
    except FileNotFoundError:
        return None
    except UnpicklingError:
        raise BadInput(f"{path.name} holds more than tensors") from None
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"it is not what csebench writes: {type(error).__name__}: {error}") from None
