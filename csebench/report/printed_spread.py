"""How far a printed value would move with another seed: its own deviation, or that of seeds that others published.

A deviation that a paper prints counts first. A single run gets that of a seed sweep of evidence/ on the same encoder,
task and metric, trained on the same kind of data, at the full size of the training set. Nothing here reads a score or
a scale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

from csebench.plan.evidence import FULL, score_name
from csebench.plan.registry import METHODS, tasks_of, valid_declarations
from csebench.report import stats
from csebench.report.cells import Cell
from csebench.report.others import Spread
from csebench.report.others import spread as seed_spread


@dataclass(frozen=True)
class Variance:
    """Of the mean of printed cells."""

    value: float | None  # None: not known
    df: float = inf


def add(variances: Sequence[Variance]) -> Variance:
    """The variance of a sum of independent values; not known where that of one is not."""
    known = [(variance.value, variance.df) for variance in variances if variance.value is not None]
    if not known or len(known) < len(variances):
        return Variance(None)
    return Variance(sum(value for value, _ in known), stats.satterthwaite(*known))


def row_variance(cells: Sequence[Cell], of_one_run: bool = False) -> Variance:
    """Variance of the mean of a row's printed cells, or of what one run has behind it.

    Cells of one training set come from one run, so their deviations add up; runs of different sets are independent.
    All tasks that a protocol averages, together, have the spread of their average.
    """
    by_size: dict[str, list[Cell]] = {}
    for cell in cells:
        by_size.setdefault(cell.plan.column.size, []).append(cell)
    parts = []
    for group in by_size.values():
        whole = is_whole_average(group)
        variances = (
            [single_run_variance(group[0], "Avg.")]
            if whole
            else [printed_variance(cell, of_one_run) for cell in group]
        )
        weight, total = (len(group) if whole else 1) / len(cells), add(variances)
        if total.value is not None:
            deviation = weight * sum(sqrt(variance.value or 0.0) for variance in variances)
            total = Variance(deviation**2, min(variance.df for variance in variances))
        parts.append(total)
    return add(parts)


def is_whole_average(cells: list[Cell]) -> bool:
    """Whether cells are single runs of exactly the tasks that their protocol averages."""
    evaluators = {cell.published_evaluator for cell in cells}
    single = all(c.published is not None and c.published.std is None and not c.parts for c in cells)
    tasks = [cell.plan.column.task for cell in cells]
    of_all = len(evaluators) == 1 and tasks == tasks_of(evaluators.pop())
    return single and len(tasks) > 1 and of_all


def printed_variance(cell: Cell, of_one_run: bool = False) -> Variance:
    """Variance of one printed value, or of one of the runs behind it."""
    if cell.published is not None and cell.published.std is not None and cell.published_seeds > 1:
        runs = 1 if of_one_run else cell.published_seeds
        return Variance(cell.published.std**2 / runs, cell.published_seeds - 1)
    if not cell.parts:
        return single_run_variance(cell, cell.plan.column.task)
    if cell.plan.column.delta is None:
        return Variance(None)
    return add([printed_variance(part, of_one_run) for part in cell.parts])


def single_run_variance(cell: Cell, task: str | None) -> Variance:
    """Variance of one run's score of a task, from the nearest seed sweep; none of a row that nothing trains."""
    row = cell.plan.row
    declared = valid_declarations(METHODS).get(row.run.method) if row.run else None
    if declared is not None and declared.kind == "untrained":
        return Variance(0.0)
    nearest = nearest_spread(cell, task)
    if nearest is None:
        return Variance(None)
    return Variance((nearest.std / 100 * cell.factor) ** 2, nearest.n - 1)


def nearest_spread(cell: Cell, task: str | None) -> Spread | None:
    """Deviation over seeds that others published for a printed cell's encoder and a task; None where nobody has."""
    row, column = cell.plan.row, cell.plan.column
    if task is None or column.metric is not None or column.size != FULL:
        return None
    score = score_name(cell.published_evaluator, task)
    method = row.run.method if row.run else None
    nearest = None if score is None else seed_spread(cell.published_encoder, score, method)
    if nearest is None:
        return None
    kinds = {training_data(method), training_data(nearest.method)} - {None}
    return nearest if len(kinds) < 2 else None


def training_data(method: str | None) -> str | None:
    """The kind of corpus that a method trains on (`sentences`, `triplets`); None where methods/ has no valid file."""
    declared = valid_declarations(METHODS).get(method or "")
    return declared and declared.corpus
