"""How far a printed value would move with another seed.

If the paper prints a deviation, that is used. Otherwise the deviation is taken from a seed sweep
that others published (evidence/). The sweep is on the same encoder, task, metric and kind of
training data, at the full size of the training set. No score of ours and no scale is read.
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import NamedTuple

from csebench.plan.catalog.evidence import FULL, score_name
from csebench.plan.catalog.registry import METHODS, tasks_of, valid_declarations
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell
from csebench.report.numbers.others import spread as seed_spread


class Variance(NamedTuple):
    """Variance of a printed value, or of a mean of them, with its degrees of freedom."""

    value: float
    df: float


def add(variances: Sequence[Variance | None]) -> Variance | None:
    """Add the variances of independent values; None if one is not known, or there are none."""
    known = [variance for variance in variances if variance is not None]
    if not known or len(known) < len(variances):
        return None
    total = sum(variance.value for variance in known)
    return Variance(total, stats.satterthwaite(*known))


def row_variance(cells: Sequence[Cell], of_one_run: bool = False) -> Variance | None:
    """Compute the variance of the mean of a row's printed cells.

    Cells of one training set come from one run, so their deviations add up. Runs on different
    training sets are independent, so their variances add up.

    Args:
        of_one_run: give the variance for one run, not for the mean over printed seeds.

    Returns:
        None if the variance of a cell is not known.
    """
    by_size: dict[str, list[Cell]] = {}
    for cell in cells:
        by_size.setdefault(cell.plan.column.size, []).append(cell)
    return add([share_variance(group, len(cells), of_one_run) for group in by_size.values()])


def share_variance(group: list[Cell], count: int, of_one_run: bool) -> Variance | None:
    """Compute the variance that cells of one run add to a mean of `count` cells."""
    if is_whole_average(group):
        # sweeps have the deviation of the average itself, which is smaller than the sum over tasks
        variances = [single_run_variance(group[0], "Avg.")]
        weight = len(group) / count
    else:
        variances = [printed_variance(cell, of_one_run) for cell in group]
        weight = 1 / count
    known = [variance for variance in variances if variance is not None]
    if len(known) < len(variances):
        return None
    deviation = weight * sum(sqrt(variance.value) for variance in known)
    return Variance(deviation**2, min(variance.df for variance in known))


def is_whole_average(cells: list[Cell]) -> bool:
    """Whether cells are single runs on exactly the tasks that their evaluator averages."""
    for cell in cells:
        if cell.published is None or cell.published.std is not None or cell.parts:
            return False
    evaluators = {cell.published_evaluator for cell in cells}
    if len(cells) < 2 or len(evaluators) > 1:
        return False
    return [cell.plan.column.task for cell in cells] == tasks_of(evaluators.pop())


def printed_variance(cell: Cell, of_one_run: bool = False) -> Variance | None:
    """Compute the variance of a printed value; if `of_one_run`, of one of its runs instead."""
    published = cell.published
    seeds = cell.published_seeds
    if published is not None and published.std is not None and seeds > 1:
        runs = 1 if of_one_run else seeds
        return Variance(published.std**2 / runs, seeds - 1)
    if not cell.parts:
        return single_run_variance(cell, cell.plan.column.task)
    if cell.plan.column.delta is None:  # the parts of a mean are tasks of one run: not independent
        return None
    return add([printed_variance(part, of_one_run) for part in cell.parts])


def single_run_variance(cell: Cell, task: str | None) -> Variance | None:
    """Find the variance of one run's score of a task, in printed units.

    It is 0 if nothing trains, else the variance of the nearest seed sweep on the same encoder.

    Returns:
        None if there is no such sweep, or if it trains on another kind of data.
    """
    column = cell.plan.column
    declared = valid_declarations(METHODS)
    recipe = cell.plan.row.run
    name = None
    method = None
    if recipe is not None:
        name = recipe.method
        method = declared.get(name)
    if method is not None and method.kind == "untrained":
        return Variance(0.0, inf)
    if task is None or column.metric is not None or column.size != FULL:
        return None
    score = score_name(cell.published_evaluator, task)
    if not score:
        return None
    sweep = seed_spread(cell.published_encoder, score, name)
    if sweep is None:
        return None
    swept_method = declared.get(sweep.method)
    if method and swept_method and method.corpus != swept_method.corpus:
        return None
    return Variance((sweep.std / 100 * cell.factor) ** 2, sweep.n - 1)
