"""Score JSONs that tests write without an evaluation."""

from csebench.base.files import with_digest, write_json
from csebench.model.metrics import averages
from csebench.plan.registry import evaluator_declaration, protocol
from csebench.score.score_file import ROUNDING


def scored_by(evaluator: str, **changed) -> dict:
    """The entry under `evaluations` of today's version of an evaluator."""
    wanted = protocol(evaluator)
    params = {"params": wanted.params} if wanted.params else {}
    return {"evaluator": wanted.declaration.name, "version": wanted.declaration.version, **params, **changed}


def write_score_file(path, content: dict) -> None:
    """Write a score JSON with the digest that it must have. An average gets the tasks that it lacks; of rows that are
    there twice, the first stays."""
    declared = evaluator_declaration(content["evaluations"][0]["evaluator"])
    rows = [row for row in content["scores"] if "filled" not in row]
    scores = [*{(row["task"], row["subset"], row["metric"]): row for row in reversed(rows)}.values()][::-1]
    for average in [row for row in scores if row["task"] == "Avg." and declared.average]:
        scores += fill(average, scores, declared.tasks)
    write_json(path, with_digest(content | {"scores": scores}))


def fill(average: dict, scores: list[dict], tasks: list[str]) -> list[dict]:
    """Rows of the tasks that have no score, with which those of all tasks have the average; one that no tasks can have
    is set to the nearest."""
    same = {"metric": average["metric"], "subset": "all"}
    known = {row["task"]: row["value"] for row in scores if row.items() >= same.items()}
    missing = [task for task in tasks if task not in known]
    left = round(1e4 * (len(tasks) * average["value"] - sum(known[task] for task in tasks if task in known)))
    for number, task in enumerate(missing):
        known[task] = (left // len(missing) + (number < left % len(missing))) / 1e4
    nearest = averages([known[task] for task in tasks])[average["subset"] == "printed"]
    if abs(nearest - average["value"]) > ROUNDING:
        average["value"] = nearest
    same = {"evaluator": average["evaluator"], "protocol": "p", "filled": True} | same
    return [same | {"task": task, "value": known[task]} for task in missing]
