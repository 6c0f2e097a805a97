"""Which rows of a table differ: paired tests over seeds and test items, Holm's correction, groups of ties.

Rows are compared in the columns that papers compare them in: the averages where a table has some, else every score. A
test set is a sample of items, seeds are a sample of trainings; the variance of a difference is the sum of both
(csebench/report/stats.py: paired_difference). An evaluator declares how its items make a score. A rank correlation: a
bootstrap of the graded pairs, the same resamples for every row. A mean (accuracy, recall, nDCG): the permutation of
signs of the items' differences, which for one seed of accuracies is McNemar's test. Where it declares nothing
(alignment, purity, tasks of MTEB) rows are compared over seeds alone.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np

from csebench.base.caches import cached
from csebench.base.files import write_json
from csebench.plan.papers import Column, Grid
from csebench.plan.registry import protocol
from csebench.plan.spec import Spec
from csebench.plan.targets import grid_path, score_path
from csebench.report.stats import LEVEL, Difference, holm, paired_difference, tie_groups
from csebench.report.view import Cell, GridView, combine_by_seed, grid_view, is_control
from csebench.score.rows import Items, Sample, sample
from csebench.score.store import items, score

RESAMPLES = 500


def compare(paper_name: str, name: str, scale: str) -> Path:
    """Writes what a page shows of per-item values, which are not published with the scores."""
    out, shown = grid_path(paper_name, name, scale, "items.json"), grid_view(paper_name, name, scale)
    write_json(out, {"comparisons": comparisons(shown), "texts": texts(shown)})
    return out


def texts(shown: GridView) -> dict | None:
    """What the first run of every row retrieved, and what papers print; None where the evaluator has no texts."""
    retrieved, queries, printed = {}, None, None
    for cell, *_ in shown.rows:
        declared = protocol(cell.plan.evaluator).declaration.texts if cell.plan.specs else None
        if declared and (arrays := items_of_run(cell.plan.specs[0], cell.plan.evaluator, shown.scale)):
            retrieved[cell.plan.row.label] = arrays[declared.retrieved].tolist()
            queries = arrays[declared.queries].tolist()
            of_labels = arrays[declared.printed].swapaxes(0, 1).tolist()  # (L, Q, K)
            printed = dict(zip(declared.labels, of_labels, strict=True))
    return {"queries": queries, "retrieved": retrieved, "printed": printed} if retrieved else None


def comparisons(shown: GridView) -> dict:
    """For each column the rows from the best, their letters, every pair's test."""
    by_column = {}
    for column in compared_columns(shown.score_grid) if shown.rows else []:
        cells = {i: cell for i, cell in enumerate(shown.column(column.label)) if comparable(cell)}
        order = sorted(cells, key=lambda i: (cells[i].mean * (1 if column.lower else -1), i))
        tests = [(a, b, difference(cells[a], cells[b], shown.scale)) for a, b in combinations(order, 2)]
        if tests and all(test.p is not None for *_, test in tests):  # what cannot be tested is no tie
            pairs = [{"a": a, "b": b, **vars(test)} for a, b, test in tests]
            by_column[column.label] = {"order": order, "pairs": pairs}
    every = [pair for comparison in by_column.values() for pair in comparison["pairs"]]
    for pair, adjusted in zip(every, holm([pair["p"] for pair in every]), strict=True):
        pair["holm"] = adjusted
    for comparison in by_column.values():
        differ = {frozenset((p["a"], p["b"])) for p in comparison["pairs"] if p["holm"] < LEVEL}
        letters = tie_groups(comparison["order"], differ)
        comparison["letters"] = {str(row): row_letters for row, row_letters in letters.items()}
    return by_column


def compared_columns(grid: Grid) -> list[Column]:
    """The columns in which papers compare rows: the averages where a table has some, else every score."""
    averages = [c for c in grid.columns if c.mean or c.task == "Avg."]
    return averages or [c for c in grid.columns if c.delta is None]


def comparable(cell: Cell) -> bool:
    return bool(cell.values) and not cell.absent and not cell.stale and not is_control(cell)


def difference(a: Cell, b: Cell, scale: str) -> Difference:
    return paired_difference(combine_by_seed(lambda x, y: x - y, a, b).values(), item_variance(a, b, scale))


# ---------------------------------------------------------------- test items


def item_variance(a: Cell, b: Cell, scale: str) -> float | None:
    """Of the difference of two cells in printed units; None where items are not known."""
    variances = []
    for x, y in zip(a.parts or (a,), b.parts or (b,), strict=True):
        for task in tasks(x):
            first, second = (samples(cell, task, scale) for cell in (x, y))
            if first is None or second is None or not same_items(first + second):
                return None
            variances.append(variance(first, second))
    return a.factor**2 * sum(variances) / len(variances) ** 2


def tasks(cell: Cell) -> list[str]:
    """The tasks that a cell averages."""
    return protocol(cell.plan.evaluator).declaration.tasks if cell.plan.task == "Avg." else [cell.plan.task]


def samples(cell: Cell, task: str, scale: str) -> list[Sample] | None:
    """Of every seed of a cell the test items behind its score of a task; None where those of one are not known."""
    plan = cell.plan
    of_seeds = [_sample(*_items_file(spec, plan.evaluator, scale), task, plan.metric) for spec in plan.specs]
    known = [sample for sample in of_seeds if sample is not None]
    return known if len(known) == len(of_seeds) else None


def same_items(of_seeds: list[Sample]) -> bool:
    """Whether samples are of the same test items, as far as their number and their gold values show it."""
    return len({(len(s.values), None if s.gold is None else s.gold.tobytes()) for s in of_seeds}) == 1


def items_of_run(spec: Spec, evaluator: str, scale: str) -> Items:
    """Per-item values of a run by their names; none where it is not scored, or they are not kept."""
    return _items(*_items_file(spec, evaluator, scale))


def _items_file(spec: Spec, evaluator: str, scale: str) -> tuple[str, Path, str | None]:
    """Evaluator, path of the score JSON, and the file of items that it names; None without a JSON."""
    content, _ = score(spec, evaluator, scale)
    return evaluator, score_path(spec.run_id, evaluator, scale), content["items"] if content else None


@cached
def _items(evaluator: str, path: Path, file: str | None) -> Items:
    return ((items({"items": file}, path) if file else None) or {}).get(evaluator, {})


@cached
def _sample(evaluator: str, path: Path, file: str | None, task: str, metric: str) -> Sample | None:
    return sample(_items(evaluator, path, file), protocol(evaluator).declaration.items, task, metric)


def variance(a: list[Sample], b: list[Sample]) -> float:
    """Of the difference of two rows' means over seeds, as items vary.

    Args:
        a: of a row, one sample a seed; b: of the other. All of the same test items.
    """
    if a[0].gold is None:
        change = mean_values(a) - mean_values(b)
        return float(np.square(change).mean() / len(change))
    gold = a[0].gold.tobytes()
    replicates = [
        np.mean([_replicates(s.values.tobytes(), str(s.values.dtype), gold) for s in row], 0) for row in (a, b)
    ]
    return float(np.var(replicates[0] - replicates[1], ddof=1))


def mean_values(row: list[Sample]) -> np.ndarray:
    """(items,) each the mean over seeds."""
    return np.stack([seed.values for seed in row]).mean(0)


@cached
def resamples(items: int) -> np.ndarray:
    """(RESAMPLES, items): how often a bootstrap draws each item; the same for every row."""
    rng = np.random.default_rng(items)
    return rng.multinomial(items, np.full(items, 1 / items), RESAMPLES).astype(np.float32)


@cached
def _replicates(cosines: bytes, dtype: str, gold: bytes) -> np.ndarray:
    return spearman_resampled(np.frombuffer(cosines, dtype), gold)


def spearman_resampled(cosines: np.ndarray, gold: bytes) -> np.ndarray:
    """(RESAMPLES,) Spearman's correlation of each resample, ranks taken anew in each, ties by their middle.

    Args:
        cosines: (items,); gold: the bytes of (items,) float64.
    """
    (x, xx), (y, yy) = centred_ranks(cosines.tobytes(), str(cosines.dtype)), centred_ranks(gold, "float64")
    return np.einsum("bi,bi,bi->b", resamples(len(cosines)), x, y) / np.sqrt(xx * yy)


@lru_cache(16)  # for the gold scores, which every row shares
def centred_ranks(values: bytes, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """(RESAMPLES, items) ranks in each resample less their mean, and (RESAMPLES,) their sums of squares."""
    numbers = np.frombuffer(values, dtype)
    weights = resamples(len(numbers))
    ranks = resampled_ranks(numbers, weights) - np.float32((len(numbers) + 1) / 2)
    return ranks, np.einsum("bi,bi,bi->b", weights, ranks, ranks)


def resampled_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(resamples, items) ranks of items in resamples where an item occurs `weights` times."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)
    group = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(group, axis=1) - (group - 1) / 2
    sizes = np.diff(np.append(starts, len(values)))
    ranks = np.empty_like(weights)
    ranks[:, order] = np.repeat(middle, sizes, axis=1)
    return ranks
