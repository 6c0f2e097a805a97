"""Are errors over test items right where items share sentences? Coverage on simulated test sets,
and real encoders.

Simulated: two models of equal quality on test sets whose pairs of sentences form a known graph. The
errors of pairs that share a sentence are correlated, and so are their gold scores. An interval of
95 % around the difference of Spearman's correlations should hold 0 in 95 % of test sets: with
csebench/score/replicates.py, and as if no two pairs shared a sentence. `error`: mean standard error
/ standard deviation of the difference over test sets.

Real, with --scores: two or more score JSONs of `csebench evaluate --evaluators sts` on the same
data (a minute and half a GB per model). For every test set the number of clusters and the largest,
and for the differences of all pairs of models the factor by which the standard error grows with
clusters: as csebench takes them, with whole clusters only, with single sentences only (which count
a pair twice: 1.41 where no sentence is shared). Then what the number of draws costs and gives.

    python benchmarks/clusters.py
    python benchmarks/clusters.py --scores a.json b.json c.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.sparse import eye_array
from scipy.stats import norm
from tabulate import tabulate

from csebench.base.project import ROOT
from csebench.base.terminal import bar
from csebench.plan.catalog.registry import evaluator_declaration
from csebench.score import replicates
from csebench.score.evaluate import evaluate_model
from csebench.score.score_types import Sample, sample
from csebench.score.store import items

PAIRS = 400
ENOUGH_DRAWS = 4096  # whose error is small beside the differences that are shown


def graph(kind: str, rng: np.random.Generator) -> np.ndarray:
    """(PAIRS, 2) sentences of each pair."""
    if kind == "no shared sentence":
        return np.arange(2 * PAIRS).reshape(PAIRS, 2)
    if kind.startswith("stars of"):  # pairs with one sentence in common
        size = int(kind.split()[-1])
        return np.stack([np.arange(PAIRS) // size, PAIRS + np.arange(PAIRS)], axis=1)
    if kind == "one star of 30, rest apart":
        return np.stack([np.maximum(np.arange(PAIRS) - 29, 0), PAIRS + np.arange(PAIRS)], axis=1)
    # a sentence is in two pairs on average: one huge cluster
    return rng.integers(0, PAIRS, (PAIRS, 2))


GRAPHS = [
    "no shared sentence",
    "stars of 4",
    "stars of 10",
    "one star of 30, rest apart",
    "random, as many sentences",
]


def simulate(sentences: np.ndarray, rng: np.random.Generator) -> list[Sample]:
    """Two models of equal quality on one test set."""
    left, right = sentences.T
    topic, count = rng.normal(size=sentences.max() + 1), sentences.max() + 1
    gold = topic[left] + topic[right] + rng.normal(size=PAIRS)
    errors = (rng.normal(size=count) for _ in range(2))
    values = [gold + 1.5 * (e[left] + e[right]) + rng.normal(size=PAIRS) for e in errors]
    return [Sample(v, gold, sentences) for v in values]


def standard_error(models: list[Sample], units, draws: int) -> float:
    signs = units @ replicates.draw_signs(draws, units.shape[1])
    return float(np.std(np.subtract(*(replicates.changes(model, signs) for model in models))))


def coverage(kind: str, sets: int) -> list:
    """Of intervals over simulated test sets: clustered and naive."""
    rng, differences, errors = np.random.default_rng(0), [], []
    every = np.ones((1, PAIRS))
    for _ in range(sets):
        models = simulate(graph(kind, rng), rng)
        differences.append(
            np.subtract(*(replicates.weighted_spearman(m.values, m.gold, every)[0] for m in models))
        )
        units = (replicates.membership(models[:1]), eye_array(PAIRS))
        errors.append([standard_error(models, u, replicates.DRAWS) for u in units])
    differences, errors = np.array(differences), np.array(errors)
    inside = np.abs(differences)[:, None] <= norm.ppf(0.975) * errors
    return [kind, *(100 * inside.mean(0)), *(errors.mean(0) / differences.std())]


# ---------------------------------------------------------------- real encoders


def read(path: Path) -> dict[str, Sample]:
    """Test items of every task of `sts`."""
    declared = evaluator_declaration("sts")
    values = (items(json.loads(path.read_text()), path) or {}).get("sts", {})
    by_task = {task: sample(values, declared.items, task, "spearman") for task in declared.tasks}
    if missing := [task for task, known in by_task.items() if known is None]:
        raise SystemExit(
            f"{path}: no test items of {', '.join(missing)}: score it with `--evaluators sts`."
        )
    return by_task


def with_largest(largest: float, models: list[dict[str, Sample]]):
    """Units, where clusters are resampled by sentence above a fraction of a test set."""
    kept, replicates.LARGEST_CLUSTER = replicates.LARGEST_CLUSTER, largest
    try:
        return replicates.membership(list(models[0].values()))
    finally:
        replicates.LARGEST_CLUSTER = kept


def differences_by_task(
    models: list[dict[str, Sample]], units, draws: int
) -> dict[str, np.ndarray]:
    """(pairs of models, draws) replicates of differences by task, and of the average."""
    signs, start, by_task = replicates.draw_signs(draws, units.shape[1]), 0, {}
    for task, first in models[0].items():
        rows = units[start : start + len(first.values)] @ signs
        changes = [replicates.changes(model[task], rows) for model in models]
        by_task[task] = np.array([a - b for a, b in combinations(changes, 2)])
        start += len(first.values)
    return by_task | {"Avg.": np.mean(list(by_task.values()), axis=0)}


def real(paths: list[Path]) -> None:
    models = [read(path) for path in paths]
    kinds = {
        "as used": with_largest(replicates.LARGEST_CLUSTER, models),
        "clusters": with_largest(1.0, models),
    }
    kinds |= {
        "sentences": with_largest(0.0, models),
        "single": eye_array(kinds["clusters"].shape[0], format="csr"),
    }
    errors = {
        kind: differences_by_task(models, units, ENOUGH_DRAWS) for kind, units in kinds.items()
    }
    body, start = [], 0
    for task in [*models[0], "Avg."]:
        size = len(models[0][task].values) if task in models[0] else kinds["clusters"].shape[0]
        rows = slice(0, size) if task == "Avg." else slice(start, start + size)
        sizes = np.asarray(kinds["clusters"][rows].sum(0))
        start += 0 if task == "Avg." else size
        factors = [
            errors[kind][task].std(1) / errors["single"][task].std(1) for kind in list(kinds)[:3]
        ]
        ranges = [f"{np.median(f):.2f} ({f.min():.2f} to {f.max():.2f})" for f in factors]
        body.append([task, size, int((sizes > 0).sum()), int(sizes.max()), *ranges])
    head = ["test set", "pairs", "clusters", "largest", "as used", "whole clusters", "sentences"]
    count = len(factors[0])
    print(
        f"\nStandard error of a difference / that of single pairs: median (range) of {count} pairs"
        " of models"
    )
    print(tabulate(body, head))

    body, reference = [], errors["as used"]["Avg."].std(1)
    for draws in (128, 256, 512, 1024):
        off = differences_by_task(models, kinds["as used"], draws)["Avg."].std(1) / reference - 1
        encoded = replicates.encode(
            differences_by_task(models[:2], kinds["as used"], draws)["STS-B"][0]
        )
        body.append(
            [
                draws,
                len(json.dumps(encoded)) / 1000,
                100 * np.sqrt(np.mean(off**2)),
                100 * np.abs(off).max(),
            ]
        )
    print(f"\nStandard error of the average's difference against that of {ENOUGH_DRAWS} draws")
    head = ["draws", "kB per score", "off by, % (rms)", "%, at most"]
    print(tabulate(body, head, floatfmt=("d", ".2f", ".1f", ".1f")))


def score_smoke(folder: Path) -> list[Path]:
    """The smallest encoder with two poolings."""
    paths = [folder / f"{pooler}.json" for pooler in ("avg", "cls_before_pooler")]
    for path in paths:
        evaluate_model("encoders/bert-mini-wiki", ["sts"], ROOT / "data/smoke", path, path.stem)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--scores", type=Path, nargs="+", default=[], help="score JSONs of `csebench evaluate`"
    )
    parser.add_argument(
        "--sets", type=int, default=400, help="simulated test sets of each kind (default: 400)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="5 test sets of each kind, two poolings on smoke"
    )
    args = parser.parse_args()
    if len(args.scores) == 1:
        raise SystemExit("--scores: needs two models or more.")
    head = [
        "pairs of sentences",
        "95 % hold, clustered",
        "as single pairs",
        "error, clustered",
        "as single pairs",
    ]
    rows = [
        coverage(kind, 5 if args.quick else args.sets) for kind in bar(GRAPHS, "simulating", "kind")
    ]
    print(tabulate(rows, head, floatfmt=("", ".1f", ".1f", ".2f", ".2f")))
    with tempfile.TemporaryDirectory() as folder:
        if paths := score_smoke(Path(folder)) if args.quick else args.scores:
            real(paths)


if __name__ == "__main__":
    main()
