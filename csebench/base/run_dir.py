"""The folder of a run, `runs/<id>/`: the names of its files, and whether the run is done. Never imports torch."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel

from csebench.base.errors import BadInput
from csebench.base.files import write_json

REPORT = "training.json"  # in the model's folder, written last: the model is complete, and how it was trained
PROGRESS = "progress.json"  # of an unfinished run: csebench/base/progress.py
CHECKPOINT = ".checkpoint.pt"  # from which an unfinished run resumes
UNFINISHED = ".checkpoint.part"  # while a checkpoint is being written


def is_done(folder: Path, spec: BaseModel) -> bool:
    """Whether a folder has the complete model of a run.

    Raises:
        BadInput: the folder holds another run, or a model without a spec.
    """
    model, saved_spec = folder / "model", folder / "spec.json"
    if saved_spec.exists() and json.loads(saved_spec.read_text()) != spec.model_dump():
        raise BadInput(f"{folder}: holds another run (its spec.json differs); choose another folder or delete it.")
    if model.exists() and not saved_spec.exists():
        raise BadInput(f"{model}: belongs to no known run (no spec.json in {folder}); choose another folder.")
    return (model / REPORT).exists()


def finish(folder: Path) -> None:
    """Mark a run with a complete model as done: write train.json, delete progress and checkpoints."""
    write_json(folder / "train.json", json.loads((folder / "model" / REPORT).read_text()))
    for name in (CHECKPOINT, UNFINISHED, PROGRESS):
        (folder / name).unlink(missing_ok=True)
