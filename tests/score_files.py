"""Score JSONs, and parts of them, that tests write without an evaluation."""

import hashlib
import json

import numpy as np
import yaml

from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT
from csebench.model.metrics import mean_scores
from csebench.plan import grids, targets
from csebench.plan.catalog.registry import evaluator_declaration, panels, protocol
from csebench.plan.schema.declarations import Evaluation
from csebench.plan.schema.paper import Figure
from csebench.score.replicates import make_replicates
from csebench.score.score_file import RANGE_TOLERANCE, settings
from csebench.score.score_types import Score

GOLD = np.arange(9) / 2
PROVENANCE = {"commit": "0123456789abcdef", "dirty_diff_sha256": None, "packages": {"torch": "9.9"}}
PROVENANCE |= {"gpu": None, "processor": "a processor", "cores": 2, "threads": 1}
PROVENANCE |= {"started": "2026-01-01T00:00:00Z", "seconds": 61.2}
STANDARD_SETS = yaml.safe_load((ROOT / "data" / "test_sets.yaml").read_text(encoding="utf-8"))
FILLED = "filled"  # protocol of rows that only complete an average


def scored_by(evaluator: str, **changed) -> dict:
    """The entry under `evaluations` of today's version of an evaluator, on the standard test set
    where it is known."""
    wanted = protocol(evaluator)
    of_scale = Evaluation.model_fields.keys() | {"protocol"}
    made_by = {
        key: value for key, value in settings(wanted, Evaluation()).items() if key not in of_scale
    }
    known = STANDARD_SETS.get(wanted.declaration.name, {"files": ["0" * 64]})
    return {"data_sha256": known["files"][0]} | made_by | changed


def write_score_file(path, content: dict) -> None:
    """Write a score JSON with its digest. An average gets the tasks that it lacks; of rows that
    stand twice the first stays."""
    declared = evaluator_declaration(content["evaluations"][0]["evaluator"])
    rows = [row for row in content["scores"] if row.get("protocol") != FILLED]
    scores = [
        *{(row["task"], row["subset"], row["metric"]): row for row in reversed(rows)}.values()
    ][::-1]
    for average in [row for row in scores if row["task"] == "Avg." and declared.average]:
        scores += fill(average, scores, declared.tasks)
    write_json(path, with_digest(content | {"scores": scores}))


def fill(average: dict, scores: list[dict], tasks: list[str]) -> list[dict]:
    """Rows of the tasks that have no score, with which those of all tasks have the average; one
    that no tasks can have is set to the nearest."""
    same = {"metric": average["metric"], "subset": "all"}
    known = {row["task"]: row["value"] for row in scores if row.items() >= same.items()}
    missing = [task for task in tasks if task not in known]
    left = round(
        1e4 * (len(tasks) * average["value"] - sum(known[task] for task in tasks if task in known))
    )
    for number, task in enumerate(missing):
        known[task] = (left // len(missing) + (number < left % len(missing))) / 1e4
    nearest = mean_scores([known[task] for task in tasks])[average["subset"] == "printed"]
    if abs(nearest - average["value"]) > RANGE_TOLERANCE:
        average["value"] = nearest
    same = {"evaluator": average["evaluator"], "protocol": FILLED} | same
    return [same | {"task": task, "value": known[task]} for task in missing]


def write_scores(
    spec, evaluator, scale, scores=(), curve=None, items=None, replicates=False, **made_by
):
    """Adds scores, (task, metric, value) each, and per-item values to the JSON of a run.

    Args:
        replicates: publish those that the items give.
        made_by: changes of the settings with which they were scored.
    """
    path, declared = (
        targets.score_path(spec.run_id, evaluator, scale),
        protocol(evaluator).declaration,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"spec": spec.model_dump(), "run": spec.run_id, "provenance": PROVENANCE}
    content |= {"training": {"curve": curve, "best_encoder": 0, "provenance": PROVENANCE}}
    content |= {"items": "gone.npz", "scores": [], "evaluations": [scored_by(evaluator, **made_by)]}
    content = json.loads(path.read_text()) if path.exists() else content
    for task, metric, value in scores:
        row = {
            "evaluator": declared.name,
            "task": task,
            "subset": "printed" if task == "Avg." else "all",
        }
        content["scores"].append(row | {"metric": metric, "value": float(value)})
    if replicates:
        rows = [
            Score(row["task"], row["subset"], row["metric"], row["value"])
            for row in content["scores"]
        ]
        content |= (
            {"replicates": made} if (made := make_replicates(rows, items, declared.items)) else {}
        )
    elif items is not None:
        np.savez(
            path.with_suffix(".items.npz"),
            **{f"{evaluator}/{name}": own for name, own in items.items()},
        )
    write_score_file(path, content)


def edit_score_file(path, edit):
    """Changes a score JSON by `edit(content)`; its digest fits again."""
    content = json.loads(path.read_text())
    edit(content)
    write_score_file(path, content)


def items_of_panel(kind):
    """Per-item values as evaluators keep them, and what a title says of the scores."""
    random = np.random.default_rng(0)
    if kind == "clusters":
        group = np.arange(12) % 3
        names = {
            "cluster": group,
            "label": group.astype(str),
            "text": np.array(["a sentence"] * 12),
        }
        return names | {"shown": np.arange(8), "coordinates": random.random((8, 2))}, (
            "purity",
            0.5,
        )
    if kind == "cosine_gold":
        return {"STS-B/test": random.random(9), "gold/STS-B/test": GOLD}, None
    groups = (
        "similarity/positive",
        "similarity/negative",
        "syntax/identical",
        "syntax/non-identical",
    )
    pairs = {group: random.random((9, 2)) for group in groups}
    joint = np.full((3, 4, 4), 1 / 16)
    edges = {
        "histogram/edges": np.sort(random.random((3, 5))),
        "histogram/slices": np.array(["a", "b", "c"]),
    }
    metric = "mutual information" if kind == "attention_histograms" else "distance"
    return pairs | edges | {"histogram/joint": joint}, (metric, 0.5)


def make_scores(scale):
    """Scores for the pages of a scale, with items and curves for its figures: a number follows
    from what it is of. Of every sixteenth run there are none."""
    wanted, items = {}, {}
    for page in targets.pages(scale):
        for cell in page.cells():
            for spec in cell.specs:
                wanted.setdefault((spec.run_id, cell.evaluator), (spec, {}))[1][
                    cell.task, cell.metric
                ] = None
        for paper, name in page.grids():
            grid = grids.find_grid(paper, name)
            if isinstance(grid, Figure) and grid.kind in panels():
                for cell, *_ in grids.plan_grid(paper, name, scale):
                    own, title = items_of_panel(grid.kind)
                    items |= {(cell.specs[0].run_id, cell.evaluator): own} if cell.specs else {}
                    if title and cell.specs:
                        wanted[cell.specs[0].run_id, cell.evaluator][1][cell.task, title[0]] = None
    for (run_id, evaluator), (spec, tasks) in wanted.items():
        if not run_id.endswith("0"):
            bounds = protocol(evaluator).declaration.bounds_of
            scores = [
                (task, metric, within(bounds(metric), run_id, task, metric))
                for task, metric in tasks
            ]
            keys = ("alignment", "uniformity", "spearman", "loss")
            curve = [
                {"step": n, "encoder": 0} | {k: made_number(run_id, k, n) for k in keys}
                for n in (3, 6)
            ]
            write_scores(spec, evaluator, scale, scores, curve, items.get((run_id, evaluator)))


def made_number(*of) -> float:
    """A fraction from 0.4 to 0.8."""
    return round(
        0.4
        + 0.4 * int(hashlib.sha256(" ".join(map(str, of)).encode()).hexdigest()[:8], 16) / 2**32,
        6,
    )


def within(bounds: tuple[float, float], *of) -> float:
    """`made_number`, or a number as far from the ends of a metric's range where that is another
    one."""
    (low, high), number = bounds, made_number(*of)
    return number if low <= number <= high else round(low + number * (high - low), 6)
