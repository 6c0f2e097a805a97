"""What a run resumes from: its state, and the files of a checkpoint.

A checkpoint is a file with the state (weights, also the best so far, moments of the optimiser,
random state, curve) and `.checkpoint.json`, written after it, which names the run, and the file
with its sha256. A process that is killed at any moment leaves the checkpoint before or the new one.
"""

import json
import os
import sys
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import torch
from torch import nn

from csebench.base.errors import BadInput
from csebench.base.files import replacing, sha256, write_json
from csebench.base.processes import is_main_process
from csebench.base.runs import CHECKPOINT, CHECKPOINT_FILES, SET_ASIDE
from csebench.train import parallel


class TrainState:
    """All that a run resumes from, saved and restored as a whole."""

    PLAIN = ("step", "curve", "losses", "pending", "best")

    def __init__(self, modules: nn.Module, optimizer: torch.optim.Optimizer):
        self.modules, self.optimizer = modules, optimizer
        self.device = next(modules.parameters()).device
        self.step = 0  # steps done
        self.curve: list[dict] = []  # of evaluations
        self.losses: list[list[float]] = []  # [step, mean since the reading before]
        self.pending: list[torch.Tensor] = []  # losses not yet read from the device
        self.best: dict = {"score": -np.inf}  # of the evaluations: score, step, encoder, weights

    def state_dict(self) -> dict:
        values = {name: getattr(self, name) for name in self.PLAIN}
        values |= {"state": self.modules.state_dict(), "optimizer": self.optimizer.state_dict()}
        values |= {"rng": torch.get_rng_state()}
        return values | (
            {"cuda_rng": torch.cuda.get_rng_state()} if self.device.type == "cuda" else {}
        )

    def load_state_dict(self, values: dict) -> None:
        """Of values on the host, where the best weights stay."""
        for name in self.PLAIN:
            setattr(self, name, values[name])
        self.pending = [loss.to(self.device) for loss in self.pending]
        self.modules.load_state_dict(values["state"])
        self.optimizer.load_state_dict(values["optimizer"])
        torch.set_rng_state(values["rng"])
        if self.device.type == "cuda" and "cuda_rng" in values:
            torch.cuda.set_rng_state(values["cuda_rng"])


def save(state: TrainState, folder: Path, run: str) -> None:
    """Write the checkpoint of a run, and delete the one before it."""
    path = folder / f".checkpoint-{state.step}.pt"
    with replacing(path) as temporary, open(temporary, "wb") as file:
        torch.save(state.state_dict(), file)
    write_json(folder / CHECKPOINT, {"run": run, "file": path.name, "sha256": sha256(path)})
    for old in folder.glob(CHECKPOINT_FILES):
        if old.name not in (CHECKPOINT, path.name):
            old.unlink()


def resume(state: TrainState, folder: Path, run: str) -> None:
    """Go on from the checkpoint of a run, if there is one. One that is damaged, or of another
    run, is set aside with a line on stderr, and the run starts at step 0."""
    problem, values = None, None
    try:
        values = _read(folder, run)
    except BadInput as e:
        problem = str(e)
    # every process has read before a file is moved
    if parallel.any_rank(problem is not None, state.device):
        if is_main_process():
            for path in folder.glob(CHECKPOINT_FILES):
                os.replace(path, path.with_name(SET_ASIDE + path.name))
            reason = problem or "another process cannot use it"
            line = (
                f"{run}: {folder / CHECKPOINT} is not used: {reason}; set aside, the run starts at"
                " step 0."
            )
            print(line, file=sys.stderr, flush=True)
    elif values is not None:
        state.load_state_dict(values)


def _read(folder: Path, run: str) -> dict | None:
    """The values of the checkpoint of a run; None where there is none. Raises BadInput with what
    is wrong in it."""
    try:
        index = json.loads((folder / CHECKPOINT).read_bytes())
        if index["run"] != run:
            raise BadInput(f"it is of {index['run']}")
        path = folder / index["file"]
        if (actual := sha256(path)) != index["sha256"]:
            raise BadInput(
                f"{path.name} is damaged: its sha256 is {actual[:12]}…, expected"
                f" {index['sha256'][:12]}…"
            )
        return torch.load(path, map_location="cpu", weights_only=True)  # which runs no code
    except FileNotFoundError:
        return None
    except UnpicklingError:
        raise BadInput(f"{path.name} holds more than tensors") from None
    except (KeyError, TypeError, ValueError) as e:
        raise BadInput(f"it is not what csebench writes: {type(e).__name__}: {e}") from None
