"""The plan of a scale, kept for the jobs of a workflow: each needs one run of it, and need not plan all."""

from __future__ import annotations

import json

from csebench.base.files import sha256, write_json
from csebench.plan import catalog, targets
from csebench.plan.schema import Scale
from csebench.plan.spec import Spec, digest

FOLDER = catalog.RUNS / ".plan"
ROOMS = ("csebench/base", "csebench/plan")  # this room, and those it imports from
READ = ("config", "data/registry.yaml", "papers", "methods", "evaluators", *ROOMS)  # what decides a plan


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
        targets.run(run_id, scale_name)  # refuses what no table needs
        kept = {"key": now, **make(scale_name)}
        if key() == now:  # else a file was changed while it was planned
            write_json(path, kept)
    spec, evaluators = kept["runs"][run_id]
    return Spec.model_validate(spec), Scale.model_validate(kept["scale"]), evaluators


def make(scale_name: str) -> dict:
    """The scale, and every run of it with its evaluators, as JSON."""
    evaluators = targets.evaluators(scale_name)
    runs = {
        run_id: [spec.model_dump(), sorted(evaluators[run_id])] for run_id, spec in targets.runs(scale_name).items()
    }
    return {"scale": catalog.scale(scale_name).model_dump(), "runs": runs}


def key() -> str:
    """Hash of the files that decide a plan, by their names below the project."""
    root = catalog.ROOT
    files = (path for name in READ for path in (root / name, *(root / name).rglob("*")))
    read = [path for path in files if path.suffix in (".py", ".yaml") and path.is_file()]
    return digest({str(path.relative_to(root)): sha256(path) for path in read}, 16)
