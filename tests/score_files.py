"""Score JSONs that tests write without an evaluation.

`write_scores` writes the scores of one run, `make_scores` those of every page of a scale, and
`edit_score_file` changes a file. All of them write files that the readers of csebench accept.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.model.metrics import mean_scores
from csebench.plan import grids, targets
from csebench.plan.catalog.registry import evaluator_declaration, panels, protocol
from csebench.plan.schema.declarations import Evaluation
from csebench.plan.schema.paper import Figure
from csebench.plan.schema.spec import Spec
from csebench.score.replicates import make_replicates
from csebench.score.score_file import RANGE_TOLERANCE, settings
from csebench.score.score_types import Items, Score

PROVENANCE = {
    "commit": "0123456789abcdef",
    "dirty_diff_sha256": None,
    "packages": {"torch": "9.9"},
    "gpu": None,
    "processor": "a processor",
    "cores": 2,
    "threads": 1,
    "started": "2026-01-01T00:00:00Z",
    "seconds": 61.2,
}
STANDARD_SETS = yaml.safe_load((ROOT / "data" / "test_sets.yaml").read_text(encoding="utf-8"))
FILLED = "filled"  # the `protocol` of rows that are there only to complete an average
STEPS = 10_000  # in a score of 1: papers average scores that are rounded to 0.01 %


# ---------------------------------------------------------------- one score JSON


def write_scores(
    spec: Spec,
    evaluator: str,
    scale: str,
    scores: Iterable[tuple[str, str, float]] = (),
    curve: list[dict] | None = None,
    items: Items | None = None,
    replicates: bool = False,
    **changed,
) -> None:
    """Add scores and per-item values of a run to its score JSON.

    The file is made if there is none yet. A score that it has already stays as it is.

    Args:
        scores: (task, metric, value) of each score.
        replicates: publish the replicates that the items give, instead of the items.
        changed: changes of the settings with which the run was scored. They count only in a new
            file.
    """
    path = targets.score_path(spec.run_id, evaluator, scale)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        content = json.loads(path.read_text())
    else:
        content = new_content(spec, curve, scored_by(evaluator, **changed))

    declared = protocol(evaluator).declaration
    for task, metric, value in scores:
        subset = "printed" if task == "Avg." else "all"
        row = {"evaluator": declared.name, "task": task, "subset": subset, "metric": metric}
        content["scores"].append(row | {"value": float(value)})

    if replicates:
        measured = []
        for row in content["scores"]:
            measured.append(Score(row["task"], row["subset"], row["metric"], row["value"]))
        published = make_replicates(measured, items or {}, declared.items)
        if published:
            content["replicates"] = published
    elif items is not None:
        arrays: dict[str, Any] = {f"{evaluator}/{name}": values for name, values in items.items()}
        np.savez(path.with_suffix(".items.npz"), **arrays)
    write_score_file(path, content)


def new_content(spec: Spec, curve: list[dict] | None, evaluation: dict) -> dict:
    """Return the content of a score JSON that has no scores yet."""
    return {
        "spec": spec.model_dump(),
        "run": spec.run_id,
        "provenance": PROVENANCE,
        "training": {"curve": curve, "best_encoder": 0, "provenance": PROVENANCE},
        "items": "gone.npz",
        "scores": [],
        "evaluations": [evaluation],
    }


def scored_by(evaluator: str, **changed) -> dict:
    """Return the entry under `evaluations` for today's version of an evaluator.

    Its data is the standard test set, if data/test_sets.yaml has one for the evaluator.

    Args:
        changed: keys of the entry that get another value.
    """
    current = protocol(evaluator)
    entry = {"data_sha256": "0" * 64}
    if current.declaration.name in STANDARD_SETS:
        entry["data_sha256"] = STANDARD_SETS[current.declaration.name]["files"][0]
    for key, value in settings(current, Evaluation()).items():
        is_of_scale = key in Evaluation.model_fields or key == "protocol"
        if not is_of_scale:
            entry[key] = value
    return entry | changed


def edit_score_file(path: Path, edit: Callable[[dict], object]) -> None:
    """Change a score JSON by `edit(content)`, and make its digest fit again."""
    content = json.loads(path.read_text())
    edit(content)
    write_score_file(path, content)


def write_score_file(path: Path, content: dict) -> None:
    """Write a score JSON with its digest.

    If two rows are about the same score, the first stays. The tasks that an average lacks are
    filled in (`complete_average`).
    """
    first_rows = {}
    for row in content["scores"]:
        if row.get("protocol") != FILLED:
            first_rows.setdefault((row["task"], row["subset"], row["metric"]), row)
    scores = list(first_rows.values())

    declared = evaluator_declaration(content["evaluations"][0]["evaluator"])
    averages = [row for row in scores if row["task"] == "Avg." and declared.average]
    for average in averages:
        complete_average(average, scores, declared.tasks)
    write_json(path, with_digest(content | {"scores": scores}))


def complete_average(average: dict, scores: list[dict], tasks: list[str]) -> None:
    """Add rows for the tasks that have no score, so that all tasks have the given average.

    csebench refuses a score JSON in which `Avg.` is not the mean of its tasks. A test that states
    only the average cares about no single task, so the missing tasks share equally what is left.
    If no values of the missing tasks can give the average, the average is set to what they give.
    """
    values = {}
    for row in scores:
        if row["metric"] == average["metric"] and row["subset"] == "all":
            values[row["task"]] = row["value"]
    missing = [task for task in tasks if task not in values]

    if missing:
        left = len(tasks) * average["value"] - sum(values[task] for task in tasks if task in values)
        steps = share_equally(round(STEPS * left), len(missing))
        for task, number_of_steps in zip(missing, steps, strict=True):
            values[task] = number_of_steps / STEPS
            row = {"evaluator": average["evaluator"], "protocol": FILLED}
            row |= {"metric": average["metric"], "subset": "all"}
            scores.append(row | {"task": task, "value": values[task]})

    exact, printed = mean_scores([values[task] for task in tasks])
    mean = printed if average["subset"] == "printed" else exact
    if abs(mean - average["value"]) > RANGE_TOLERANCE:
        average["value"] = mean


def share_equally(total: int, count: int) -> list[int]:
    """Divide a whole number into parts that differ by at most 1, larger parts first."""
    part, remainder = divmod(total, count)
    return [part + 1] * remainder + [part] * (count - remainder)


# ---------------------------------------------------------------- all scores of a scale


@dataclass
class RequiredScores:
    """The scores that the pages of a scale show of one run by one evaluator."""

    spec: Spec
    evaluator: str
    scores: list[tuple[str, str]] = field(default_factory=list)  # (task, metric)
    items: Items | None = None  # for a figure that draws them

    def add(self, task: str, metric: str) -> None:
        if (task, metric) not in self.scores:
            self.scores.append((task, metric))


def make_scores(scale: str) -> None:
    """Write scores for the pages of a scale, with items and curves for its figures.

    A value depends only on what it is the score of. One run in sixteen gets no scores, so that
    pages have missing cells.
    """
    for required in required_scores(scale):
        spec = required.spec
        if spec.run_id.endswith("0"):
            continue
        bounds_of = protocol(required.evaluator).declaration.bounds_of
        scores = []
        for task, metric in required.scores:
            value = made_value(bounds_of(metric), spec.run_id, task, metric)
            scores.append((task, metric, value))
        curve = [curve_point(spec.run_id, step) for step in (3, 6)]
        write_scores(spec, required.evaluator, scale, scores, curve, required.items)


def required_scores(scale: str) -> list[RequiredScores]:
    """Collect what the pages of a scale show, in the order of the pages."""
    by_run: dict[tuple[str, str], RequiredScores] = {}
    for page in targets.pages(scale):
        for cell in page.cells():
            for spec in cell.specs:
                new = RequiredScores(spec, cell.evaluator)
                required = by_run.setdefault((spec.run_id, cell.evaluator), new)
                required.add(cell.task, cell.metric)
        for paper, name in page.grids():
            grid = grids.find_grid(paper, name)
            if not isinstance(grid, Figure) or grid.kind not in panels():
                continue
            panel = items_of_panel(grid.kind)
            for row in grids.plan_grid(paper, name, scale):
                cell = row[0]
                if not cell.specs:
                    continue
                required = by_run[cell.specs[0].run_id, cell.evaluator]
                required.items = panel.items
                if panel.metric is not None:
                    required.add(cell.task, panel.metric)
    return list(by_run.values())


class Panel(NamedTuple):
    """What a panel of a figure draws."""

    items: Items  # per-item values, as evaluators keep them
    metric: str | None = None  # the score that its title states


def items_of_panel(kind: str) -> Panel:
    """Make random per-item values for a kind of figure."""
    random = np.random.default_rng(0)
    if kind == "clusters":
        cluster = np.arange(12) % 3
        items = {
            "cluster": cluster,
            "label": cluster.astype(str),
            "text": np.array(["a sentence"] * 12),
            "shown": np.arange(8),
            "coordinates": random.random((8, 2)),
        }
        return Panel(items, "purity")
    if kind == "cosine_gold":
        gold = np.arange(9) / 2
        return Panel({"STS-B/test": random.random(9), "gold/STS-B/test": gold})

    items = {
        "similarity/positive": random.random((9, 2)),
        "similarity/negative": random.random((9, 2)),
        "syntax/identical": random.random((9, 2)),
        "syntax/non-identical": random.random((9, 2)),
        "histogram/edges": np.sort(random.random((3, 5))),
        "histogram/slices": np.array(["a", "b", "c"]),
        "histogram/joint": np.full((3, 4, 4), 1 / 16),
    }
    metric = "mutual information" if kind == "attention_histograms" else "distance"
    return Panel(items, metric)


def curve_point(run_id: str, step: int) -> dict:
    """Make a point of a run's training curve."""
    point: dict[str, float] = {"step": step, "encoder": 0}
    for key in ("alignment", "uniformity", "spearman", "loss"):
        point[key] = made_fraction(run_id, key, step)
    return point


def made_value(bounds: tuple[float, float], *key) -> float:
    """Derive a value of a metric from what it is the score of.

    Returns:
        `made_fraction`, or the point at this fraction of the metric's range if the fraction itself
        is not in the range.
    """
    low, high = bounds
    fraction = made_fraction(*key)
    if low <= fraction <= high:
        return fraction
    return round(low + fraction * (high - low), 6)


def made_fraction(*key) -> float:
    """Derive a fraction from 0.4 to 0.8 from a key, the same in every process."""
    text = " ".join(str(part) for part in key)
    number = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
    return round(0.4 + 0.4 * number / 2**32, 6)
