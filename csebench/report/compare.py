"""Which rows of a table differ: paired tests over seeds and test items, Holm's correction, groups of ties.

Rows are compared in the columns that papers compare them in: the averages where a table has some, else every score. A
test set is a sample of items, seeds are a sample of trainings; the variance of a difference is the sum of both
(csebench/report/stats.py: paired). Items: for Spearman a bootstrap of the graded pairs, the same resamples for every
row; for accuracy, recall and nDCG the permutation of signs of the items' differences, which for one seed of accuracies
is McNemar's test. Where a score is no mean over items (alignment, purity, tasks of MTEB) seeds are all there is.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np

from csebench.base.caches import cached
from csebench.base.files import write_json
from csebench.data.sts import read_sts
from csebench.plan.catalog import data_root
from csebench.plan.catalog import scale as read_scale
from csebench.plan.registry import protocol
from csebench.plan.targets import grid_path, score_path
from csebench.report.stats import LEVEL, Difference, holm, paired, tie_groups
from csebench.report.view import Cell, View, combined, is_control, view
from csebench.score.store import items, score

RESAMPLES = 500


def compare(paper_name: str, name: str, scale: str) -> Path:
    """Writes what a page shows of per-item values, which are not published with the scores."""
    out, shown = grid_path(paper_name, name, scale, "items.json"), view(paper_name, name, scale)
    write_json(out, {"comparisons": comparisons(shown), "neighbours": neighbours(shown)})
    return out


def neighbours(shown: View) -> dict | None:
    """What the first run of every row found, and what the paper prints (MSSE Table 8)."""
    if getattr(shown.grid, "evaluator", None) != "neighbours":
        return None
    kept = {}
    for (cell, *_), row in zip(shown.rows, shown.grid.rows, strict=True):
        for spec in cell.plan.specs[:1]:
            content, _ = score(spec, cell.plan.evaluator, shown.scale)
            path = score_path(spec.run_id, cell.plan.evaluator, shown.scale)
            if content and (found := (items(content, path) or {}).get("neighbours")):
                kept[row.label] = found
    if not kept:
        return None
    first = next(iter(kept.values()))
    return {
        "queries": first["queries"].tolist(),
        "found": {label: found["neighbours"].tolist() for label, found in kept.items()},
        "printed": dict(zip(("RankCSE", "MSSE"), first["published"].swapaxes(0, 1).tolist(), strict=True)),
    }


def comparisons(shown: View) -> dict:
    """For each column the rows from the best, their letters, every pair's test."""
    columns = shown.grid.columns if shown.rows else []
    averages = [c for c in columns if c.mean or c.task == "Avg."]
    scored = averages or [c for c in columns if c.delta is None]
    found = {}
    for column in scored:
        cells = {i: cell for i, cell in enumerate(shown.column(column.label)) if comparable(cell)}
        order = sorted(cells, key=lambda i: (cells[i].ours.mean * (1 if column.lower else -1), i))
        tests = [(a, b, difference(cells[a], cells[b], shown.scale)) for a, b in combinations(order, 2)]
        if tests and all(test.p is not None for *_, test in tests):  # what cannot be tested is no tie
            pairs = [{"a": a, "b": b, **vars(test)} for a, b, test in tests]
            found[column.label] = {"order": order, "pairs": pairs}
    every = [pair for own in found.values() for pair in own["pairs"]]
    for pair, adjusted in zip(every, holm([pair["p"] for pair in every]), strict=True):
        pair["holm"] = adjusted
    for own in found.values():
        differ = {frozenset((p["a"], p["b"])) for p in own["pairs"] if p["holm"] < LEVEL}
        own["letters"] = {str(row): letters for row, letters in tie_groups(own["order"], differ).items()}
    return found


def comparable(cell: Cell) -> bool:
    return bool(cell.values) and not cell.absent and not cell.stale and not is_control(cell)


def difference(a: Cell, b: Cell, scale: str) -> Difference:
    return paired(combined(lambda x, y: x - y, a, b).values(), item_variance(a, b, scale))


def item_variance(a: Cell, b: Cell, scale: str) -> float | None:
    """Of the difference of two cells in printed units; None where items are not known."""
    found = []
    for x, y in zip(a.parts or (a,), b.parts or (b,), strict=True):
        for task in tasks(x):
            own = [sample(cell, task, scale) for cell in (x, y)]
            if any(values is None for values in own):
                return None
            found.append(variance(*own, task, x.plan.evaluator, scale))
    return a.factor**2 * sum(found) / len(found) ** 2


def tasks(cell: Cell) -> list[str]:
    """The tasks that a cell averages."""
    return protocol(cell.plan.evaluator).declaration.tasks if cell.plan.task == "Avg." else [cell.plan.task]


def sample(cell: Cell, task: str, scale: str) -> np.ndarray | None:
    """(seeds, items): what each test item adds to the score of a task, or its cosine where that is Spearman's."""
    own = [of_run(spec, cell.plan.evaluator, task, cell.plan.metric, scale) for spec in cell.plan.specs]
    return None if any(values is None for values in own) else np.stack(own)


def of_run(spec, evaluator: str, task: str, metric: str | None, scale: str) -> np.ndarray | None:
    content, _ = score(spec, evaluator, scale)
    kept = known_items(score_path(spec.run_id, evaluator, scale), content["items"]).get(evaluator, {})
    name = evaluator.partition(":")[0]
    if name in ("sts", "stsb_dev"):
        found = [values for part, values in kept.items() if part.startswith(f"{task}/")]  # in the order of read_sts
        return np.concatenate(found) if found else None
    if name == "transfer":
        return kept.get(task)
    if name == "beir":  # of several forums each counts the same, however many queries it has
        wanted = metric or protocol(evaluator).metric
        parts = [values for key, values in kept.items() if key.rpartition("/")[2] == wanted]
        queries = sum(map(len, parts))
        weighted = [values * queries / (len(parts) * len(values)) for values in parts]
        return np.concatenate(weighted) if parts else None
    if name == "stsb_retrieval" and "rank" in kept:
        return kept["rank"] <= int((metric or protocol(evaluator).metric).partition("@")[2])
    return None


@cached
def known_items(path: Path, kept: str) -> dict:
    return items({"items": kept}, path) or {}


def variance(a: np.ndarray, b: np.ndarray, task: str, evaluator: str, scale: str) -> float:
    """Of the difference of two rows' means over seeds, as items vary; of values (seeds, items)."""
    if evaluator.partition(":")[0] not in ("sts", "stsb_dev"):
        change = a.astype(float).mean(0) - b.astype(float).mean(0)
        return float(np.square(change).mean() / len(change))
    gold = graded(task, "dev" if evaluator == "stsb_dev" else "test", scale)
    replicates = [np.mean([_replicates(own.tobytes(), str(own.dtype), gold) for own in row], 0) for row in (a, b)]
    return float(np.var(replicates[0] - replicates[1], ddof=1))


@cached
def graded(task: str, split: str, scale: str) -> bytes:
    """Gold scores of a task's pairs, hashable."""
    parts = read_sts(data_root(read_scale(scale)), task, split)
    return np.concatenate([p.gold for p in parts]).astype(np.float64).tobytes()


@cached
def resamples(items: int) -> np.ndarray:
    """(RESAMPLES, items): how often a bootstrap draws each item; the same for every row."""
    rng = np.random.default_rng(items)
    return rng.multinomial(items, np.full(items, 1 / items), RESAMPLES).astype(np.float32)


@cached
def _replicates(cosines: bytes, dtype: str, gold: bytes) -> np.ndarray:
    return spearman_resampled(np.frombuffer(cosines, dtype), gold)


def spearman_resampled(cosines: np.ndarray, gold: bytes) -> np.ndarray:
    """(RESAMPLES,) Spearman's correlation of each resample, ranks taken anew in each, ties by their middle."""
    (x, xx), (y, yy) = centred_ranks(cosines.tobytes(), str(cosines.dtype)), centred_ranks(gold, "float64")
    return np.einsum("bi,bi,bi->b", resamples(len(cosines)), x, y) / np.sqrt(xx * yy)


@lru_cache(16)  # for the gold scores, which every row shares
def centred_ranks(values: bytes, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """(RESAMPLES, items) ranks in each resample less their mean, and (RESAMPLES,) their sums of squares."""
    found = np.frombuffer(values, dtype)
    weights = resamples(len(found))
    ranks = resampled_ranks(found, weights) - np.float32((len(found) + 1) / 2)
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
