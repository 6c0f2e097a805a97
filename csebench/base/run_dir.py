"""The folder of a run: what lies in it, whose it is, whether it is done. Never imports torch."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from csebench.base.errors import BadInput
from csebench.base.files import write_json

REPORT = "training.json"  # in the model's folder: says that the model is whole, and how it was made
PROGRESS = "progress.json"  # of a run that has begun and is not done
CHECKPOINT = ".checkpoint.pt"  # beside it: what the run resumes from
UNFINISHED = ".checkpoint.part"  # a checkpoint that is being written


def is_done(folder: Path, spec: BaseModel) -> bool:
    """Whether the model of a run is there and whole.

    Raises:
        BadInput: the folder holds another run, or a model that is of none.
    """
    model, kept = folder / "model", folder / "spec.json"
    if kept.exists() and json.loads(kept.read_text()) != spec.model_dump():
        raise BadInput(f"{folder}: holds another run (its spec.json differs); choose another folder or delete it.")
    if model.exists() and not kept.exists():
        raise BadInput(f"{model}: is there, and not of this run (no spec.json beside it); choose another folder.")
    return (model / REPORT).exists()


def finish(folder: Path) -> None:
    """The model is whole: its report stands for what told of the run on the way."""
    write_json(folder / "train.json", json.loads((folder / "model" / REPORT).read_text()))
    for name in (CHECKPOINT, UNFINISHED, PROGRESS):
        (folder / name).unlink(missing_ok=True)
