"""Which rows of a table differ: paired tests over seeds and test items, Holm's correction, groups of ties.

Rows are compared in the columns that papers compare them in: the averages where a table has some, else every score. A
test set is a sample of items, seeds are a sample of trainings; the variance of a difference is the sum of both
(csebench/report/stats.py: paired_difference). That over items is the variance of the difference in resamples of the
items, which are published with the scores (csebench/score/replicates.py), of all test sets of an evaluator together.
Where an evaluator declares no items (alignment, purity, tasks of MTEB) rows are compared over seeds alone.

What is written is published with the page. It is not replaced by a comparison that knows less: where scores have no
replicates any more, or not yet, the tests over items that were written before stay as long as the scores are the same.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput
from csebench.base.files import with_digest, write_json
from csebench.plan.papers import Column
from csebench.plan.registry import protocol
from csebench.plan.spec import Spec
from csebench.plan.targets import grid_path, score_path
from csebench.report.stats import LEVEL, Difference, holm, paired_difference, tie_groups
from csebench.report.view import Cell, GridView, differences, grid_view, has_changed, is_comparable
from csebench.score.replicates import Replicates, read_replicates
from csebench.score.score_types import Items
from csebench.score.store import items, read_scores, score


def compare(paper_name: str, name: str, scale: str) -> Path:
    """Writes the tests between rows that a page shows, and texts that are not published with the scores.

    Raises:
        BadInput: the file that is there was made from more than the scores have now, and they have changed.
    """
    out, shown = path_of(paper_name, name, scale), grid_view(paper_name, name, scale)
    write_json(out, with_digest({"comparisons": comparisons(shown), "texts": texts(shown)}))
    return out


def path_of(paper_name: str, name: str, scale: str) -> Path:
    return grid_path(paper_name, name, scale, "items.json")


def pair_rows(paper_name: str, name: str, scale: str) -> list[dict]:
    """The tests that a table's file holds, one per column and pair of rows, by the labels of the rows."""
    shown = grid_view(paper_name, name, scale)
    labels = [row.label for row in shown.grid.rows]
    return [
        {"target": f"{paper_name}/{name}", "column": column, **pair, "a": labels[pair["a"]], "b": labels[pair["b"]]}
        for column, comparison in shown.comparisons.items()
        for pair in comparison["pairs"]
    ]


def letter_rows(paper_name: str, name: str, scale: str) -> list[list]:
    """Column, row, and the row's letters, from the best row: rows with a common letter do not differ."""
    shown = grid_view(paper_name, name, scale)
    labels = [row.label for row in shown.grid.rows]
    return [
        [column, labels[row], comparison["letters"][str(row)]]
        for column, comparison in shown.comparisons.items()
        for row in comparison["order"]
    ]


def texts(shown: GridView) -> dict | None:
    """What the first run of every row retrieved, and what papers print; None where the evaluator has no texts."""
    kept = shown.texts or {"runs": {}}
    retrieved, runs, queries, printed = {}, {}, kept.get("queries"), kept.get("printed")
    for cell, *_ in shown.rows:
        declared = protocol(cell.plan.evaluator).declaration.texts if cell.plan.specs else None
        if not declared:
            continue
        spec, label = cell.plan.specs[0], cell.plan.row.label
        if arrays := items_of_run(spec.run_id, cell.plan.evaluator, shown.scale):
            retrieved[label] = arrays[declared.retrieved].tolist()
            queries = arrays[declared.queries].tolist()
            of_labels = arrays[declared.printed].swapaxes(0, 1).tolist()  # (L, Q, K)
            printed = dict(zip(declared.labels, of_labels, strict=True))
        elif kept.get("runs", {}).get(label) == spec.run_id:
            retrieved[label] = kept["retrieved"][label]
        else:
            continue
        runs[label] = spec.run_id
    return {"queries": queries, "retrieved": retrieved, "printed": printed, "runs": runs} if retrieved else None


def comparisons(shown: GridView) -> dict:
    """For each column the rows from the best, their letters, every pair's test."""
    by_column = {}
    for column in compared_columns(shown) if shown.rows else []:
        cells = {i: cell for i, cell in enumerate(shown.column(column.label)) if is_comparable(cell)}
        order = sorted(cells, key=lambda i: (cells[i].mean * (1 if column.lower else -1), i))
        tests = [(a, b, difference(cells[a], cells[b], shown.scale)) for a, b in combinations(order, 2)]
        testable = tests and all(test.p is not None for *_, test in tests)  # what cannot be tested is no tie
        pairs = [{"a": a, "b": b, **vars(test)} for a, b, test in tests] if testable else []
        kept = (shown.comparisons | shown.outdated_comparisons).get(column.label, {"order": [], "pairs": []})
        if knows_items(kept["pairs"]) and not knows_items(pairs):
            require_unchanged(shown, column.label, kept["pairs"])
            order, pairs = kept["order"], kept["pairs"]
        if pairs:
            by_column[column.label] = {"order": order, "pairs": pairs}
    every = [pair for comparison in by_column.values() for pair in comparison["pairs"]]
    for pair, adjusted in zip(every, holm([pair["p"] for pair in every]), strict=True):
        pair["holm"] = adjusted
    for comparison in by_column.values():
        differ = {frozenset((p["a"], p["b"])) for p in comparison["pairs"] if p["holm"] < LEVEL}
        letters = tie_groups(comparison["order"], differ)
        comparison["letters"] = {str(row): row_letters for row, row_letters in letters.items()}
    return by_column


def compared_columns(view: GridView) -> list[Column]:
    """The columns in which papers compare rows: the averages where a table has some, else every score. An average that
    no row can have at the scale, since a score in it lacks data there, does not count."""
    averages = [c for c in view.score_grid.columns if c.mean or c.task == "Avg."]
    if any(has_runs(cell) for column in averages for cell in view.column(column.label)):
        return averages
    return [c for c in view.score_grid.columns if c not in averages and c.delta is None]


def has_runs(cell: Cell) -> bool:
    """Whether runs can give a cell's value: all those that it is the mean of."""
    return all(part.plan.specs for part in cell.parts or (cell,))


def difference(a: Cell, b: Cell, scale: str) -> Difference:
    return paired_difference(differences(a, b), *(item_variances(a, b, scale) or ()))


# ---------------------------------------------------------------- what was written before


def knows_items(pairs: list[dict]) -> bool:
    """Whether the rows of a column were tested over items, all of them."""
    return bool(pairs) and all(pair.get("item_variance") is not None for pair in pairs)


def require_unchanged(shown: GridView, column: str, pairs: list[dict]) -> None:
    """Raises BadInput unless the scores of a column still have the differences that were tested over items."""
    labels = [row.label for row in shown.score_grid.rows]
    changed = [row for pair in pairs if has_changed(shown, column, pair) for row in (pair["a"], pair["b"])]
    if changed:
        rows = ", ".join(labels[row] for row in dict.fromkeys(changed) if row < len(labels))
        raise BadInput(
            f"{path_of(shown.paper, shown.name, shown.scale)}: {column}: was tested over test items, and scores have"
            f" changed since ({rows}), but not all of them have replicates over items now. Publish the scores of every"
            " row again (`csebench publish RUN EVALUATOR`), or delete the file: rows are then compared over seeds"
            " alone."
        )


# ---------------------------------------------------------------- test items


def item_variances(a: Cell, b: Cell, scale: str) -> tuple[float, float] | None:
    """Variance of the difference of two cells over test items, in printed units: with items that share a sentence
    resampled together, and with single items. None where replicates of one are not known, or not of the same items.

    Tasks of one evaluator are resampled jointly; those of different ones are taken as independent.
    """
    by_items: dict[str, list[tuple[Replicates, Replicates]]] = {}
    for x, y in zip(a.parts or (a,), b.parts or (b,), strict=True):
        for task in tasks(x):
            first, second = mean_replicates(x, task, scale), mean_replicates(y, task, scale)
            if first is None or second is None or first.items != second.items:
                return None
            by_items.setdefault(first.items, []).append((first, second))
    scores = sum(map(len, by_items.values()))
    clustered, naive = (
        sum(np.var(sum(getattr(x, kind) - getattr(y, kind) for x, y in pairs)) for pairs in by_items.values())
        for kind in ("clustered", "naive")
    )
    return float((a.factor / scores) ** 2 * clustered), float((a.factor / scores) ** 2 * naive)


def tasks(cell: Cell) -> list[str]:
    """The tasks that a cell averages."""
    return protocol(cell.plan.evaluator).declaration.tasks if cell.plan.task == "Avg." else [cell.plan.task]


def mean_replicates(cell: Cell, task: str, scale: str) -> Replicates | None:
    """Of a task's score, the mean over a cell's seeds; None where one has none, or was scored on other items."""
    plan = cell.plan
    of_seeds = [replicates_of_run(spec, plan.evaluator, task, plan.metric, scale) for spec in plan.specs]
    known = [replicates for replicates in of_seeds if replicates is not None]
    if len(known) < len(of_seeds) or len({replicates.items for replicates in known}) != 1:
        return None
    means = (np.mean([getattr(replicates, kind) for replicates in known], 0) for kind in ("clustered", "naive"))
    return Replicates(known[0].items, *means)


def replicates_of_run(spec: Spec, evaluator: str, task: str, metric: str, scale: str) -> Replicates | None:
    content, _ = score(spec, evaluator, scale)
    return read_replicates(content, task, metric) if content else None


def items_of_run(run_id: str, evaluator: str, scale: str) -> Items:
    """Per-item values of a run by their names; none where it is not scored, or they are not kept."""
    path = score_path(run_id, evaluator, scale)
    content = read_scores(path)
    return ((content and items(content, path)) or {}).get(evaluator, {})
