"""Are errors over test items right if items share sentences?

Simulated: two models of equal quality are scored on test sets whose pairs of sentences form a known
graph. The errors of pairs that share a sentence are correlated, and so are their gold scores. An
interval of 95 % around the difference of Spearman's correlations should hold 0 in 95 % of test
sets. It is computed with csebench/score/replicates.py, and as if no two pairs shared a sentence.
`error` is the mean standard error, divided by the standard deviation of the difference over test
sets.

Real, with --scores: give two or more score JSONs of `csebench evaluate --evaluators sts` on the
same data (a minute and half a GB per model). The first table has the number of clusters of every
test set, and the largest. It also has the factor by which clusters enlarge the standard error of a
difference, over all pairs of models. The factor is given three times: for csebench's clusters, for
whole clusters, and for single sentences. Single sentences count each pair twice, so their factor is
1.41 even if no sentence is shared. The second
table shows the cost and the precision of other numbers of draws.

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
ENOUGH_DRAWS = 4096  # their own error is small compared with the differences in the tables
GRAPHS = [
    "no shared sentence",
    "stars of 4",
    "stars of 10",
    "one star of 30, rest apart",
    "random, as many sentences",
]

# ---------------------------------------------------------------- simulated test sets


def coverage(kind: str, sets: int) -> list:
    """Count how often intervals over simulated test sets hold 0, with and without clusters.

    Returns:
        The kind of graph, two shares in percent, and two quotients of errors.
    """
    rng = np.random.default_rng(0)
    all_once = np.ones((1, PAIRS))  # weights of pairs
    differences: list[float] = []
    errors: list[list[float]] = []
    for _ in range(sets):
        first, second = simulate(graph(kind, rng), rng)
        assert first.gold is not None and second.gold is not None  # for type checkers
        (first_score,) = replicates.weighted_spearman(first.values, first.gold, all_once)
        (second_score,) = replicates.weighted_spearman(second.values, second.gold, all_once)
        differences.append(first_score - second_score)
        clustered = replicates.membership([first])
        single = eye_array(PAIRS)
        errors.append(
            [
                standard_error(first, second, clustered, replicates.DRAWS),
                standard_error(first, second, single, replicates.DRAWS),
            ]
        )
    holds = np.abs(differences)[:, None] <= norm.ppf(0.975) * np.array(errors)
    quotients = np.mean(errors, axis=0) / np.std(differences)
    return [kind, *(100 * holds.mean(0)), *quotients]


def graph(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Make a (PAIRS, 2) array with the numbers of the two sentences of each pair."""
    pairs = np.arange(PAIRS)
    if kind == "no shared sentence":
        return np.arange(2 * PAIRS).reshape(PAIRS, 2)
    if kind.startswith("stars of"):  # every pair of a star has one sentence in common
        size = int(kind.split()[-1])
        return np.stack([pairs // size, PAIRS + pairs], axis=1)
    if kind == "one star of 30, rest apart":
        return np.stack([np.maximum(pairs - 29, 0), PAIRS + pairs], axis=1)
    # a sentence is in two pairs on average: one huge cluster
    return rng.integers(0, PAIRS, (PAIRS, 2))


def simulate(sentences: np.ndarray, rng: np.random.Generator) -> list[Sample]:
    """Score two models of equal quality on one test set."""
    left, right = sentences.T
    count = sentences.max() + 1
    topic = rng.normal(size=count)
    gold = topic[left] + topic[right] + rng.normal(size=PAIRS)
    models = []
    for _ in range(2):
        error = rng.normal(size=count)
        values = gold + 1.5 * (error[left] + error[right]) + rng.normal(size=PAIRS)
        models.append(Sample(values, gold, sentences))
    return models


def standard_error(first: Sample, second: Sample, units, draws: int) -> float:
    """Compute the standard error of the difference of two models, with signs drawn per unit."""
    signs = units @ replicates.draw_signs(draws, units.shape[1])
    return float(np.std(replicates.changes(first, signs) - replicates.changes(second, signs)))


# ---------------------------------------------------------------- real encoders


def real(paths: list[Path]) -> None:
    """Print both tables of real encoders."""
    models = [read(path) for path in paths]
    whole = with_largest(1.0, models)
    pairs = sum(len(test_set.values) for test_set in models[0].values())
    units = {
        "as used": with_largest(replicates.LARGEST_CLUSTER, models),
        "clusters": whole,
        "sentences": with_largest(0.0, models),
        "single": eye_array(pairs, format="csr"),
    }
    errors = {}
    for kind, units_of_kind in units.items():
        differences = differences_by_task(models, units_of_kind, ENOUGH_DRAWS)
        errors[kind] = {task: values.std(1) for task, values in differences.items()}
    print_clusters(models[0], whole, errors)
    print_draws(models, units["as used"], errors["as used"]["Avg."])


def print_clusters(test_sets: dict[str, Sample], whole, errors: dict[str, dict]) -> None:
    """Print the clusters of every test set, and by which factor errors are larger with them.

    Args:
        whole: (items, clusters) membership, the items of all test sets together.
        errors: standard errors of the differences of all pairs of models, by kind of units and
            test set.
    """
    rows_of = {}
    start = 0
    for task, test_set in test_sets.items():
        rows_of[task] = slice(start, start + len(test_set.values))
        start += len(test_set.values)
    rows_of["Avg."] = slice(0, start)
    body = []
    for task, rows in rows_of.items():
        sizes = np.asarray(whole[rows].sum(0))
        ranges = []
        for kind in ("as used", "clusters", "sentences"):
            factor = errors[kind][task] / errors["single"][task]
            ranges.append(f"{np.median(factor):.2f} ({factor.min():.2f} to {factor.max():.2f})")
        pairs = rows.stop - rows.start
        body.append([task, pairs, int((sizes > 0).sum()), int(sizes.max()), *ranges])
    count = len(errors["single"]["Avg."])
    print(
        f"\nStandard error of a difference / that of single pairs: median (range) of {count} pairs"
        " of models"
    )
    head = ["test set", "pairs", "clusters", "largest", "as used", "whole clusters", "sentences"]
    print(tabulate(body, head))


def print_draws(models: list[dict[str, Sample]], units, reference: np.ndarray) -> None:
    """Print the size of a published score, and how far its error is off, by the number of draws.

    Args:
        reference: standard errors of the average's differences with ENOUGH_DRAWS.
    """
    body = []
    for draws in (128, 256, 512, 1024):
        off = differences_by_task(models, units, draws)["Avg."].std(1) / reference - 1
        differences_of_two = differences_by_task(models[:2], units, draws)
        encoded = replicates.encode(differences_of_two["STS-B"][0])
        size = len(json.dumps(encoded)) / 1000
        body.append([draws, size, 100 * np.sqrt(np.mean(off**2)), 100 * np.abs(off).max()])
    print(f"\nStandard error of the average's difference against that of {ENOUGH_DRAWS} draws")
    head = ["draws", "kB per score", "off by, % (rms)", "%, at most"]
    print(tabulate(body, head, floatfmt=("d", ".2f", ".1f", ".1f")))


def read(path: Path) -> dict[str, Sample]:
    """Read the test items of every task of `sts`."""
    declaration = evaluator_declaration("sts")
    values = (items(json.loads(path.read_text()), path) or {}).get("sts", {})
    by_task = {}
    missing = []
    for task in declaration.tasks:
        test_set = sample(values, declaration.items, task, "spearman")
        if test_set is None:
            missing.append(task)
        else:
            by_task[task] = test_set
    if missing:
        raise SystemExit(
            f"{path}: no test items of {', '.join(missing)}: score it with `--evaluators sts`."
        )
    return by_task


def with_largest(largest: float, models: list[dict[str, Sample]]):
    """Group test items into units as csebench does, but with another LARGEST_CLUSTER."""
    before = replicates.LARGEST_CLUSTER
    replicates.LARGEST_CLUSTER = largest
    try:
        return replicates.membership(list(models[0].values()))
    finally:
        replicates.LARGEST_CLUSTER = before


def differences_by_task(
    models: list[dict[str, Sample]], units, draws: int
) -> dict[str, np.ndarray]:
    """Compute (pairs of models, draws) replicates of differences by task, and of the average."""
    signs = replicates.draw_signs(draws, units.shape[1])
    by_task = {}
    start = 0
    for task, first in models[0].items():
        signs_of_items = units[start : start + len(first.values)] @ signs
        changes = [replicates.changes(model[task], signs_of_items) for model in models]
        by_task[task] = np.array([a - b for a, b in combinations(changes, 2)])
        start += len(first.values)
    by_task["Avg."] = np.mean(list(by_task.values()), axis=0)
    return by_task


def score_smoke(folder: Path) -> list[Path]:
    """Score the smallest encoder with two poolings."""
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
    sets = 5 if args.quick else args.sets
    rows = [coverage(kind, sets) for kind in bar(GRAPHS, "simulating", "kind")]
    print(tabulate(rows, head, floatfmt=("", ".1f", ".1f", ".2f", ".2f")))
    with tempfile.TemporaryDirectory() as folder:
        paths = score_smoke(Path(folder)) if args.quick else args.scores
        if paths:
            real(paths)


if __name__ == "__main__":
    main()
