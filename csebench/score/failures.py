"""Why a run has no score of an evaluator: noted beside its scores, shown by `csebench status` and on pages. Never
imports torch."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import read_object, write_json
from csebench.base.progress import read_progress
from csebench.base.runs import PROGRESS
from csebench.plan.catalog import RUNS
from csebench.plan.registry import protocol
from csebench.plan.targets import unavailable

ENDING = ".failed.json"
REMEDY = "Delete it; only the reason of a failed evaluation is lost."


class Note(BaseModel):
    """What the file of a failed evaluation holds."""

    evaluator: str
    reason: str


def note(run: Path, evaluator: str, error: Exception) -> None:
    """Keep the reason of a failed evaluation in the folder of its run."""
    foreseen = isinstance(error, BadInput | RunFailed)
    reason = str(error) if foreseen else f"{type(error).__name__}: {error}"
    write_json(_file(run, evaluator), {"evaluator": evaluator, "reason": " ".join(reason.split())})


def clear(run: Path, evaluator: str) -> None:
    _file(run, evaluator).unlink(missing_ok=True)


def of_run(run: Path) -> dict[str, str]:
    """Reasons by evaluator; that of a damaged note is the damage."""
    reasons = {}
    for path in sorted((run / "scores").glob(f"*{ENDING}")):
        evaluator = path.name.removesuffix(ENDING).replace(".", ":")
        try:
            reasons[evaluator] = read_object(path, Note, REMEDY)["reason"]
        except BadInput as error:
            reasons[evaluator] = str(error)
    return reasons


def reason(run_id: str, evaluator: str, scale: str) -> str | None:
    """Why a planned score is not there, as far as it is known: its data cannot be had, or the evaluation or the
    training failed."""
    if (text := unavailable(evaluator, scale) or of_run(RUNS / run_id).get(evaluator)) is not None:
        return text
    try:
        progress = read_progress(RUNS / run_id / PROGRESS)
    except BadInput as error:
        return str(error)
    if progress is not None and progress["state"] == "failed":
        return f"training failed: {progress.get('message', '')}"
    return None


def _file(run: Path, evaluator: str) -> Path:
    return run / "scores" / f"{protocol(evaluator).key}{ENDING}"
