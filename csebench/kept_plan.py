"""The plan of a scale, kept for the jobs of a workflow: each needs one run of it, and need not plan all."""

from __future__ import annotations

import hashlib
import json

from csebench import plan
from csebench.provenance import write_json
from csebench.schema import Scale
from csebench.spec import Spec

FOLDER = plan.RUNS / ".plan"
READ = ("config", "data/registry.yaml", "papers", "methods", "evaluators", "csebench")  # what decides a plan


def find(run_id: str, scale_name: str) -> tuple[Spec, Scale, list[str]]:
    """A run, its scale, and what it is scored by, as these files plan them. For the start of a process: what one has
    planned before is not planned anew.

    Raises:
        BadInput: no table of the scale needs the run, or the files cannot be planned from.
    """
    path, now = FOLDER / f"{scale_name}.json", key()
    try:
        kept = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        kept = {"key": None}
    if kept["key"] != now or run_id not in kept["runs"]:
        plan.run(run_id, scale_name)  # refuses what no table needs
        kept = {"key": now, **make(scale_name)}
        if key() == now:  # else a file was changed while it was planned
            write_json(path, kept)
    spec, evaluators = kept["runs"][run_id]
    return Spec.model_validate(spec), Scale.model_validate(kept["scale"]), evaluators


def make(scale_name: str) -> dict:
    evaluators = plan.evaluators(scale_name)
    runs = {run_id: [spec.model_dump(), sorted(evaluators[run_id])] for run_id, spec in plan.runs(scale_name).items()}
    return {"scale": plan.scale(scale_name).model_dump(), "runs": runs}


def key() -> str:
    found, root = hashlib.sha256(), plan.ROOT
    for name in READ:
        there = [p for p in (root / name, *(root / name).rglob("*")) if p.suffix in (".py", ".yaml") and p.is_file()]
        for path in sorted(there):
            found.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]
