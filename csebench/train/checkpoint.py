"""What a run resumes from: its state, and the files of a checkpoint.

A checkpoint is three files: the best weights so far, written only when they have changed; the state (weights, moments
of the optimiser, random state, curve), written anew each time; and `.checkpoint.json`, written last, which names the
run and the state's file. Files are named together with their sha256. A process that is killed at any moment leaves the
checkpoint before or the new one.
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
from csebench.base.files import replacing, sha256
from csebench.base.processes import is_main_process
from csebench.base.runs import CHECKPOINT, CHECKPOINT_FILES, SET_ASIDE
from csebench.train import parallel


class TrainState:
    """All that a run resumes from, saved and restored as a whole."""

    PLAIN = ("step", "curve", "losses", "pending")

    def __init__(self, modules: nn.Module, optimizer: torch.optim.Optimizer):
        self.modules, self.optimizer = modules, optimizer
        self.device = next(modules.parameters()).device
        self.step = 0  # steps done
        self.curve: list[dict] = []  # of evaluations
        self.losses: list[list[float]] = []  # [step, mean since the reading before]
        self.pending: list[torch.Tensor] = []  # losses not yet read from the device
        # of the evaluations: score, step, encoder, weights, and their file once it is written
        self.best: dict = {"score": -np.inf}

    def state_dict(self) -> dict:
        """Without the best weights, which have a file, and without what is frozen, which a resumed run loads again."""
        values = {name: getattr(self, name) for name in self.PLAIN}
        values |= {"best": {key: value for key, value in self.best.items() if key != "weights"}}
        frozen = tuple(f"{name}." for name, module in self.modules.named_modules() if vars(module).get("frozen"))
        values["state"] = {k: v for k, v in self.modules.state_dict().items() if not k.startswith(frozen)}
        values |= {"optimizer": self.optimizer.state_dict(), "rng": torch.get_rng_state()}
        return values | ({"cuda_rng": torch.cuda.get_rng_state()} if self.device.type == "cuda" else {})

    def load_state_dict(self, values: dict) -> None:
        """Of values on this device, the best weights among them on the host."""
        for name in (*self.PLAIN, "best"):
            setattr(self, name, values[name])
        self.modules.load_state_dict(values["state"], strict=False)  # of what is frozen there is none
        self.optimizer.load_state_dict(values["optimizer"])
        torch.set_rng_state(values["rng"].cpu())
        if self.device.type == "cuda" and "cuda_rng" in values:
            torch.cuda.set_rng_state(values["cuda_rng"].cpu())


def save(state: TrainState, folder: Path, run: str) -> None:
    """Write the checkpoint of a run, and delete the one before it."""
    if "weights" in state.best and "file" not in state.best:
        name = f".checkpoint-best-{state.best['step']}-{state.best['encoder']}.pt"
        state.best["file"] = _write(folder / name, state.best["weights"])
    file = _write(folder / f".checkpoint-state-{state.step}.pt", state.state_dict())
    with replacing(folder / CHECKPOINT, durable=True) as temporary:
        temporary.write_text(json.dumps({"run": run, "step": state.step, "state": file}, indent=1) + "\n")
    current = {CHECKPOINT, file["name"], state.best.get("file", file)["name"]}
    for path in folder.glob(CHECKPOINT_FILES):
        if path.name not in current:
            path.unlink()


def _write(path: Path, values: dict) -> dict[str, str]:
    with replacing(path, durable=True) as temporary, open(temporary, "wb") as file:
        torch.save(values, file)
    return {"name": path.name, "sha256": sha256(path)}


def resume(state: TrainState, folder: Path, run: str) -> None:
    """Go on from the checkpoint of a run, if there is one. One that is damaged, or of another run, is set aside with a
    line on stderr, and the run starts at step 0."""
    problem, values = None, None
    try:
        values = _read(folder, run, state.device)
    except BadInput as e:
        problem = str(e)
    if parallel.any_rank(problem is not None, state.device):  # every process has read before a file is moved
        if is_main_process():
            for path in folder.glob(CHECKPOINT_FILES):
                os.replace(path, path.with_name(SET_ASIDE + path.name))
            reason = problem or "another process cannot use it"
            line = f"{run}: {folder / CHECKPOINT} is not used: {reason}; set aside, the run starts at step 0."
            print(line, file=sys.stderr, flush=True)
    elif values is not None:
        state.load_state_dict(values)


def _read(folder: Path, run: str, device: torch.device) -> dict | None:
    """The values of the checkpoint of a run; None where there is none. Raises BadInput with what is wrong in it."""
    try:
        index = json.loads((folder / CHECKPOINT).read_bytes())
        if index["run"] != run:
            raise BadInput(f"it is of {index['run']}")
        values = _read_tensors(folder, index["state"], device)
        if "file" in values["best"]:
            values["best"]["weights"] = _read_tensors(folder, values["best"]["file"], "cpu")
        return values
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as e:
        raise BadInput(f"it is not what csebench writes: {type(e).__name__}: {e}") from None


def _read_tensors(folder: Path, file: dict[str, str], device: torch.device | str) -> dict:
    path = folder / file["name"]
    if (actual := sha256(path)) != file["sha256"]:
        raise BadInput(f"{path.name} is damaged: its sha256 is {actual[:12]}…, expected {file['sha256'][:12]}…")
    try:
        return torch.load(path, map_location=device, weights_only=True)  # which runs no code
    except UnpicklingError:
        raise BadInput(f"{path.name} holds more than tensors") from None
