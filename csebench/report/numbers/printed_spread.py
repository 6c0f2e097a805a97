"""How far a printed value would move with another seed: its own deviation, or that of seeds that
others published.

A deviation that a paper prints counts first. A single run gets that of a seed sweep of evidence/ on
the same encoder, task, metric and kind of training data, at the full size of the training set. No
score and no scale is read.
"""

from collections.abc import Sequence
from math import inf, sqrt

from csebench.plan.catalog.evidence import FULL, score_name
from csebench.plan.catalog.registry import METHODS, tasks_of, valid_declarations
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell
from csebench.report.numbers.others import spread as seed_spread

# of the mean of printed cells, with its degrees of freedom; None: not known
Variance = tuple[float, float] | None


def add(variances: Sequence[Variance]) -> Variance:
    """The variance of a sum of independent values; not known where that of one is not."""
    known = [variance for variance in variances if variance is not None]
    if not known or len(known) < len(variances):
        return None
    return sum(value for value, _ in known), stats.satterthwaite(*known)


def row_variance(cells: Sequence[Cell], of_one_run: bool = False) -> Variance:
    """Variance of the mean of a row's printed cells, or of one run behind each. Cells of one
    training set come from one run, so their deviations add up; runs of different sets are
    independent. All tasks that a protocol averages, together, have the spread of their average."""
    by_size: dict[str, list[Cell]] = {}
    for cell in cells:
        by_size.setdefault(cell.plan.column.size, []).append(cell)
    parts: list[Variance] = []
    for group in by_size.values():
        variances, weight = [printed_variance(cell, of_one_run) for cell in group], 1 / len(cells)
        if is_whole_average(group):
            variances, weight = [single_run_variance(group[0], "Avg.")], len(group) / len(cells)
        known = [variance for variance in variances if variance is not None]
        deviation = weight * sum(sqrt(value) for value, _ in known)
        parts.append(
            (deviation**2, min(df for _, df in known)) if len(known) == len(variances) else None
        )
    return add(parts)


def is_whole_average(cells: list[Cell]) -> bool:
    """Whether cells are single runs of exactly the tasks that their protocol averages."""
    single = all(c.published is not None and c.published.std is None and not c.parts for c in cells)
    tasks, evaluators = (
        [cell.plan.column.task for cell in cells],
        {cell.published_evaluator for cell in cells},
    )
    return (
        single and len(tasks) > 1 and len(evaluators) == 1 and tasks == tasks_of(evaluators.pop())
    )


def printed_variance(cell: Cell, of_one_run: bool = False) -> Variance:
    """Variance of one printed value, or of one of the runs behind it."""
    if cell.published is not None and cell.published.std is not None and cell.published_seeds > 1:
        runs = 1 if of_one_run else cell.published_seeds
        return cell.published.std**2 / runs, cell.published_seeds - 1
    if not cell.parts:
        return single_run_variance(cell, cell.plan.column.task)
    is_delta = cell.plan.column.delta is not None
    return add([printed_variance(part, of_one_run) for part in cell.parts]) if is_delta else None


def single_run_variance(cell: Cell, task: str | None) -> Variance:
    """Variance of one run's score of a task: 0 where nothing trains, else of the nearest seed
    sweep on its encoder."""
    column, recipe, declared = cell.plan.column, cell.plan.row.run, valid_declarations(METHODS)
    method = declared.get(recipe.method) if recipe else None
    if method is not None and method.kind == "untrained":
        return 0.0, inf
    if task is None or column.metric is not None or column.size != FULL:
        return None
    score = score_name(cell.published_evaluator, task)
    nearest = (
        seed_spread(cell.published_encoder, score, recipe and recipe.method) if score else None
    )
    of_sweep = declared.get(nearest.method) if nearest else None
    if nearest is None or (method and of_sweep and method.corpus != of_sweep.corpus):
        return None
    return (nearest.std / 100 * cell.factor) ** 2, nearest.n - 1
