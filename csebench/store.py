"""Scores on disk: one JSON per run and evaluator is the truth; `scores.csv` is derived from them."""

from __future__ import annotations

import csv
import json
import os
from functools import cache
from pathlib import Path

from csebench.errors import BadInput
from csebench.plan import results_folder, score_path

COLUMNS = ["method", "encoder", "corpus", "size", "seed", "components", "evaluator", "protocol", "task", "subset"]
COLUMNS += ["metric", "value", "run", "cell"]


@cache
def read(path: Path) -> dict | None:
    """A score JSON, or None where there is none."""
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as e:
        raise BadInput(f"{path}: not valid JSON ({e}); delete it, and the evaluation runs again.") from None


def value(run_id: str, evaluator: str, scale: str, task: str) -> float | None:
    """A run's score on a task as a fraction; `Avg.` as the papers print it, from two-decimal values."""
    content = read(score_path(run_id, evaluator, scale))
    if content is None:
        return None
    subset = "printed" if task == "Avg." else "all"
    found = [s["value"] for s in content["scores"] if (s["task"], s["subset"]) == (task, subset)]
    if not found:
        raise BadInput(f"{score_path(run_id, evaluator, scale)}: no score for task {task!r}.")
    return found[0]


def write_csv(scale: str) -> Path:
    """`scores.csv` from every score JSON of a scale, sorted, so that equal scores give equal bytes."""
    from csebench.spec import Spec

    folder, rows = results_folder(scale), []
    for path in sorted((folder / "scores").glob("*.json")):
        content = read(path)
        spec = Spec.model_validate(content["spec"])
        about = {
            "method": spec.method,
            "encoder": spec.encoder.name,
            "corpus": spec.corpus.name if spec.corpus else "",
            "size": spec.corpus.size if spec.corpus else "",
            "seed": spec.seed,
            "components": "+".join(spec.components),
            "run": spec.run_id,
            "cell": spec.cell_id,
        }
        rows += [{**about, **score} for score in content["scores"]]
    out = folder / "scores.csv"
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".scores.{os.getpid()}.csv")
    with open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    temporary.replace(out)
    return out
