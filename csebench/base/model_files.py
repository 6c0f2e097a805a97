"""The files of a model's folder, and the one hash by which its scores name it. Never imports torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, FiniteFloat

from csebench.base.errors import BadInput
from csebench.base.files import folder_sha256, read_object, sha256

MODEL = "model"  # folder of the model, in that of its run
REPORT = "training.json"  # in the model's folder, written last: the model is complete, and how it was trained
FACTS = "csebench.json"  # in the folder of a model of ours: its run and its pooler, or the control that it is
CARD = "README.md"
WEIGHTS = "model.safetensors"


class Provenance(BaseModel):
    """What others read of the provenance of a training."""

    seconds: FiniteFloat | None = None
    gpu: str | None = None
    processor: str | None = None


class Report(BaseModel):
    """What others read of a run's report."""

    spec: dict[str, Any] = {}
    provenance: Provenance = Provenance()
    model_sha256: str | None = None


class Facts(BaseModel):
    """What others read of a model's `csebench.json`."""

    run: str | None = None
    pooler: str | None = None
    control: str | None = None
    params: dict[str, Any] = {}
    seed: int = Field(default=0, ge=0, lt=2**32)


def train_again(run: Path) -> str:
    """What to do about the damaged folder of a run: the end of a message."""
    return f"Delete {run}, and the run is trained again."


def _remedy(model: Path) -> str:
    """What to do about a damaged model, which is in the folder of a run, or a copy elsewhere."""
    return train_again(model.parent) if model.name == MODEL else "Restore its files."


def read_facts(folder: Path) -> dict:
    """What a model's `csebench.json` states, with defaults; of a model that is not ours only defaults.

    Raises:
        BadInput: the file is damaged.
    """
    file = folder / FACTS
    return Facts.model_validate(read_object(file, Facts, _remedy(folder)) if file.exists() else {}).model_dump()


def model_sha256(folder: Path) -> str:
    """One hash over the names and contents of all files of a model: weights, tokenizer, configuration, modules.

    The model card, the report that states the hash, and hidden files (`.cache/`, `.git/`) are left out.
    """
    return folder_sha256(folder, without=(REPORT, CARD))


def check_model(folder: Path) -> None:
    """Compare the model of a finished run with the hash that its report states (older reports state none).

    Raises:
        BadInput: a file is missing, was added, or has another content; the report is damaged.
    """
    report = folder / REPORT
    if not report.exists():
        return
    stated = read_object(report, Report, _remedy(folder)).get("model_sha256")
    if stated is not None and (actual := model_sha256(folder)) != stated:
        raise BadInput(
            f"{folder}: files differ from those that training wrote (sha256 is {actual[:12]}…, {REPORT} states"
            f" {stated[:12]}…). {_remedy(folder)}"
        )


def check_revision(folder: Path, revision: str) -> None:
    """Raises BadInput where a revision is a sha256, but neither of the folder nor of its weights."""
    if len(revision) != 64 or ((folder / WEIGHTS).exists() and sha256(folder / WEIGHTS) == revision):
        return
    if (actual := model_sha256(folder)) != revision:
        raise BadInput(
            f"{folder}: another encoder was expected: neither the sha256 of the folder ({actual[:12]}…) nor that of"
            f" {WEIGHTS} is {revision[:12]}…. Restore its files, or state the sha256 of the folder as revision."
        )
