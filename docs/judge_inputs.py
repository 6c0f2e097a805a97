"""Make up the inputs of the examples in docs/judge.md.

    python docs/judge_inputs.py inputs

Scores are drawn at random, so they say nothing about any model. The same numbers are drawn each
time. docs/examples.py calls `write_inputs` before it runs the commands.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from csebench.base.files import with_digest, write_json, write_text
from csebench.model.metrics import spearman
from csebench.plan.catalog.registry import protocol
from csebench.plan.schema.declarations import Evaluation
from csebench.score import store
from csebench.score.score_file import settings

PAIRS = 1000  # of an STS task
QUERIES = 150
DOCUMENTS = 400  # of a task of lm-eval
MODELS = 20
SEEDS = 5
LEADERBOARD_TASKS = ("STS12", "STSBenchmark", "SciFact")
GATE_TASKS = ("arc_easy", "hellaswag")


def write_inputs(folder: Path) -> None:
    """Write all inputs into a folder."""
    write_own_scores(folder)
    write_leaderboard(folder / "leaderboard")
    write_samples(folder)


# ---------------------------------------------------------------- score JSONs of csebench


def write_own_scores(folder: Path) -> None:
    """Write scores of two models on STS and SciFact, as `csebench evaluate` does."""
    generator = np.random.default_rng(1)
    common: dict[str, np.ndarray] = {}  # what is the same for both models
    for task in protocol("sts").declaration.tasks:
        common[task] = generator.normal(size=PAIRS)
    common["scifact"] = generator.normal(size=QUERIES)
    for model, noise, recall in (("mine", 0.16, 0.65), ("base", 0.26, 0.64)):
        items = sts_items(common, noise, generator)
        items |= scifact_items(common["scifact"], recall, generator)
        write_score_json(folder / f"{model}.json", items)


def sts_items(
    common: dict[str, np.ndarray], noise: float, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Make up the cosines of a model. The larger the noise, the lower its correlation."""
    items = {}
    for number, task in enumerate(protocol("sts").declaration.tasks):
        gold = np.random.default_rng(100 + number).uniform(0, 5, PAIRS)
        errors = 0.5 * common[task] + noise * generator.normal(size=PAIRS)
        ids = np.arange(2 * PAIRS).reshape(PAIRS, 2) + 2 * PAIRS * number
        items[f"sts/{task}/all"] = gold / 5 + 0.4 * errors
        items[f"sts/gold/{task}/all"] = gold
        items[f"sts/sentences/{task}/all"] = ids
    return items


def scifact_items(
    common: np.ndarray, mean: float, generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Make up nDCG@10 of every query."""
    values = mean + 0.2 * common + 0.1 * generator.normal(size=QUERIES)
    return {"beir:scifact/ndcg@10": values.clip(0, 1)}


def write_score_json(path: Path, items: dict[str, np.ndarray]) -> None:
    """Write a score JSON, and the file of per-item values beside it."""
    rows = []
    for task in protocol("sts").declaration.tasks:
        value = spearman(items[f"sts/{task}/all"], items[f"sts/gold/{task}/all"])
        rows.append(score_row("sts", task, "spearman", value))
    value = float(items["beir:scifact/ndcg@10"].mean())
    rows.append(score_row("beir", "scifact", "ndcg@10", value))
    evaluations = []
    for name in ("sts", "beir:scifact"):
        known = protocol(name)
        stated = settings(known, Evaluation()) | {"params": known.params}
        evaluations.append(stated | {"data_sha256": "0" * 64})
    content = {"model": path.stem, "evaluations": evaluations, "scores": rows}
    content |= store.write_items(store.beside(path, store.ITEMS), items)
    write_json(path, with_digest(content))


def score_row(evaluator: str, task: str, metric: str, value: float) -> dict:
    """Make a row of a score JSON."""
    return {
        "evaluator": evaluator,
        "protocol": "made up",
        "task": task,
        "subset": "all",
        "metric": metric,
        "value": value,
    }


# ---------------------------------------------------------------- results of mteb


def write_leaderboard(folder: Path) -> None:
    """Write results of several models, each trained from several seeds."""
    generator = np.random.default_rng(2)
    for model in range(1, MODELS + 1):
        quality = 0.72 - 0.006 * model
        for seed in range(1, SEEDS + 1):
            place = folder / f"model-{model:02}" / f"seed-{seed}"
            of_seed = quality + generator.normal(0, 0.003)
            for task in LEADERBOARD_TASKS:
                value = of_seed + generator.normal(0, 0.002)
                write_result(place / f"{task}.json", task, round(value, 6))


def write_result(path: Path, task: str, value: float) -> None:
    """Write the result of a task in the format of mteb."""
    subset = {"main_score": value, "hf_subset": "default", "languages": ["eng-Latn"]}
    content = {
        "dataset_revision": "made-up",
        "task_name": task,
        "mteb_version": "2.26.24",
        "scores": {"test": [subset]},
        "evaluation_time": 1.0,
        "kg_co2_emissions": None,
    }
    write_json(path, content)


# ---------------------------------------------------------------- samples of lm-eval


def write_samples(folder: Path) -> None:
    """Write answers of a model before and after a change, as lm-eval logs them."""
    generator = np.random.default_rng(3)
    difficulty = {task: generator.normal(size=DOCUMENTS) for task in GATE_TASKS}
    for version, ability in (("main", 0.55), ("change", 0.35)):
        for task in GATE_TASKS:
            margin = ability + difficulty[task] + 0.4 * generator.normal(size=DOCUMENTS)
            lines = [sample_line(number, value > 0) for number, value in enumerate(margin.tolist())]
            name = f"samples_{task}_2026-01-01T00-00-00.000000.jsonl"
            write_text(folder / version / name, "".join(lines))


def sample_line(number: int, is_right: bool) -> str:
    """Make the line of a document, with the keys that the judge reads."""
    content = {
        "doc_id": number,
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": f"{number:064x}",
        "target_hash": f"{number:064x}",
        "acc": float(is_right),
    }
    return json.dumps(content) + "\n"


if __name__ == "__main__":
    write_inputs(Path(sys.argv[1]))
