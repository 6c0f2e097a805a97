"""The files of a model's folder, and the one hash by which its scores name it. Never imports torch."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import sha256

REPORT = "training.json"  # in the model's folder, written last: the model is complete, and how it was trained
CARD = "README.md"


def model_sha256(folder: Path) -> str:
    """One hash over the names and contents of all files of a model: weights, tokenizer, configuration, modules.

    The model card, the report that states the hash, and hidden files (`.cache/`, `.git/`) are left out.
    """
    files = {path.relative_to(folder): path for path in folder.rglob("*") if path.is_file()}
    names = [name for name in sorted(files) if str(name) not in (REPORT, CARD) and name.parts[0][0] != "."]
    lines = [f"{name.as_posix()} {sha256(files[name])}" for name in names]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def check_model(folder: Path) -> None:
    """Compare the model of a finished run with the hash that its report states (older reports state none).

    Raises:
        BadInput: a file is missing, was added, or has another content.
    """
    report = folder / REPORT
    if not report.exists():
        return
    stated = json.loads(report.read_text(encoding="utf-8")).get("model_sha256")
    if stated is not None and (actual := model_sha256(folder)) != stated:
        raise BadInput(
            f"{folder}: not the files that its training wrote (sha256 of the folder is {actual[:12]}…, {REPORT} states"
            f" {stated[:12]}…); delete {folder.parent}, and the run is trained again."
        )
