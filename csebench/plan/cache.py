"""The plan of a scale, stored on disk for the jobs of a workflow: each needs one run, and should not plan all.

Results kept in memory: csebench/base/caches.py.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from csebench.base.errors import BadInput
from csebench.base.files import read_object, sha256, write_json
from csebench.plan import catalog, targets, tuning
from csebench.plan.schema import Scale
from csebench.plan.spec import Spec, digest

FOLDER = catalog.RUNS / ".plan"
ROOMS = ("csebench/base", "csebench/plan")  # this room, and those it imports from
SOURCES = ("config", "data/registry.yaml", "papers", "evidence", "methods", "evaluators", *ROOMS)  # of a plan


class StoredPlan(BaseModel):
    """What runs/.plan/SCALE.json holds."""

    model_config = ConfigDict(extra="forbid")
    key: str  # of the sources that it was made from
    scale: Scale
    runs: dict[str, tuple[Spec, list[str]]]  # (run, evaluators) by run id

    @model_validator(mode="after")
    def ids_fit(self):
        """An edited spec would be trained under the id of another run."""
        if wrong := [run_id for run_id, (spec, _) in self.runs.items() if spec.run_id != run_id]:
            raise ValueError(f"{wrong[0]}: the spec of another run")
        return self


def find_run(run_id: str, scale_name: str) -> tuple[Spec, Scale, list[str]]:
    """A run, its scale, and the evaluators that score it, from the stored plan if no source has changed since.

    Raises:
        BadInput: no table of the scale needs the run, or a source is invalid.
    """
    plan = stored_plan(scale_name, run_id)
    spec, evaluators = plan["runs"][run_id]
    return Spec.model_validate(spec), Scale.model_validate(plan["scale"]), evaluators


def starting_points(scale_name: str) -> set[str]:
    """The runs of a scale from whose models other runs start."""
    return {spec["encoder"]["revision"] for spec, _ in stored_plan(scale_name)["runs"].values()}


def stored_plan(scale_name: str, run_id: str | None = None) -> dict[str, Any]:
    """The plan of a scale; made, and stored, where a source has changed since, or where it lacks the run.

    Raises:
        BadInput: no table of the scale needs the run, or a source is invalid; then nothing is stored.
    """
    path, key = FOLDER / f"{scale_name}.json", plan_key(scale_name)
    try:
        plan: dict[str, Any] = read_object(path, StoredPlan)
    except BadInput:  # none, or a damaged one: it is made again
        plan = {}
    if plan.get("key") != key or (run_id is not None and run_id not in plan["runs"]):
        if run_id is not None:
            targets.run(run_id, scale_name)  # raises BadInput
        plan = {"key": key, **plan_scale(scale_name)}
        if plan_key(scale_name) == key:  # else a source changed during planning
            write_json(path, plan)
    return plan


def plan_scale(scale_name: str) -> dict:
    """The plan of a scale as JSON values: the scale, and (spec, evaluators) by run id."""
    specs, evaluators = targets.runs(scale_name), targets.evaluators(scale_name)
    runs = {run_id: [spec.model_dump(), sorted(evaluators[run_id])] for run_id, spec in specs.items()}
    return {"scale": catalog.scale(scale_name).model_dump(), "runs": runs}


def plan_key(scale_name: str) -> str:
    """Hash over all that the plan of a scale is made from: sources, and what searches at the scale chose."""
    searches = {path.name: sha256(catalog.ROOT / path) for path in tuning.search_files(scale_name)}
    return digest([source_key(), searches], 16) if searches else source_key()


def source_key(names: tuple[str, ...] = SOURCES) -> str:
    """Hash over the names and contents of all Python and YAML files in folders of the project; by default those that a
    plan is made from."""
    root = catalog.ROOT
    paths = (path for name in names for path in (root / name, *(root / name).rglob("*")))
    sources = [path for path in paths if path.suffix in (".py", ".yaml") and path.is_file()]
    return digest({str(path.relative_to(root)): sha256(path) for path in sources}, 16)
