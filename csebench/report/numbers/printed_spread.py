"""How far a printed value would move with another seed.

If the paper prints a deviation, that is used. Otherwise the deviation is taken from a seed sweep
that others published (evidence/). The sweep is on the same encoder, task, metric and kind of
training data, at the full size of the training set. No score of ours and no scale is read.

A borrowed deviation is an assumption. The sweeps come from a re-implementation, and papers print
smaller deviations. So a caller can pass a smaller deviation of the STS average
(ASSUMED_DEVIATIONS).
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import NamedTuple

from csebench.base.caches import cached
from csebench.plan.catalog.evidence import AVERAGE, FULL, score_name
from csebench.plan.catalog.registry import METHODS, tasks_of, valid_declarations
from csebench.plan.schema.declarations import AS_IT_IS
from csebench.plan.schema.paper import Grid, Published, Row
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell
from csebench.report.numbers.others import spread as seed_spread
from csebench.report.numbers.others import sweeps
from csebench.report.numbers.printed_averages import rows_with_scores, score_of

REFERENCE_ENCODER = "bert-base"
REFERENCE_TITLE = "BERT-base"
# Assumed deviations of the STS average over seeds on REFERENCE_ENCODER, in points, largest first.
# Claims are judged at each of them and at the borrowed deviation (0.84). The first is the rounded
# root mean square of the deviations that papers print at 10 % of the data (`deviations_on_part`).
# The second is their median.
ASSUMED_DEVIATIONS = (0.5, 0.35)
PART_OF_DATA = "10%"  # the largest part of the data on which papers print deviations


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


def row_variance(
    cells: Sequence[Cell], of_one_run: bool = False, deviation: float | None = None
) -> Variance | None:
    """Compute the variance of the mean of a row's printed cells.

    Cells of one training set come from one run, so their deviations add up. Runs on different
    training sets are independent, so their variances add up.

    Args:
        of_one_run: give the variance for one run, not for the mean over printed seeds.
        deviation: the deviation that is assumed (`single_run_variance`).

    Returns:
        None if the variance of a cell is not known.
    """
    by_size: dict[str, list[Cell]] = {}
    for cell in cells:
        by_size.setdefault(cell.plan.column.size, []).append(cell)
    variances = []
    for group in by_size.values():
        variances.append(share_variance(group, len(cells), of_one_run, deviation))
    return add(variances)


def share_variance(
    group: list[Cell], count: int, of_one_run: bool, deviation: float | None
) -> Variance | None:
    """Compute the variance that cells of one run add to a mean of `count` cells."""
    if is_whole_average(group):
        # sweeps have the deviation of the average itself, which is smaller than the sum over tasks
        variances = [single_run_variance(group[0], "Avg.", deviation)]
        weight = len(group) / count
    else:
        variances = [printed_variance(cell, of_one_run, deviation) for cell in group]
        weight = 1 / count
    known = [variance for variance in variances if variance is not None]
    if len(known) < len(variances):
        return None
    summed = weight * sum(sqrt(variance.value) for variance in known)
    return Variance(summed**2, min(variance.df for variance in known))


def is_whole_average(cells: list[Cell]) -> bool:
    """Whether cells are single runs on exactly the tasks that their evaluator averages."""
    for cell in cells:
        if cell.published is None or cell.published.std is not None or cell.parts:
            return False
        if cell.published_seeds > 1:
            return False
    evaluators = {cell.published_evaluator for cell in cells}
    if len(cells) < 2 or len(evaluators) > 1:
        return False
    return [cell.plan.column.task for cell in cells] == tasks_of(evaluators.pop())


def printed_variance(
    cell: Cell, of_one_run: bool = False, deviation: float | None = None
) -> Variance | None:
    """Compute the variance of a printed value; if `of_one_run`, of one of its runs instead.

    Args:
        deviation: the deviation that is assumed (`single_run_variance`).
    """
    published = cell.published
    seeds = cell.published_seeds
    if published is not None and published.std is not None and seeds > 1:
        runs = 1 if of_one_run else seeds
        return Variance(published.std**2 / runs, seeds - 1)
    if not cell.parts:
        one_run = single_run_variance(cell, cell.plan.column.task, deviation)
        if one_run is None or of_one_run:
            return one_run
        return Variance(one_run.value / seeds, one_run.df)
    if cell.plan.column.delta is None:  # the parts of a mean are tasks of one run: not independent
        return None
    return add([printed_variance(part, of_one_run, deviation) for part in cell.parts])


def single_run_variance(
    cell: Cell, task: str | None, deviation: float | None = None
) -> Variance | None:
    """Find the variance of one run's score of a task, in printed units.

    It is 0 if nothing trains, else the variance of the nearest seed sweep on the same encoder.

    Args:
        deviation: assumed deviation of the STS average on REFERENCE_ENCODER, in points. The
            deviations of all tasks and encoders shrink, too (`assumed_share`). None takes the sweep
            as it is.

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
    if method is not None and method.kind in AS_IT_IS:
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
    std = sweep.std * assumed_share(cell.published_encoder, deviation)
    return Variance((std / 100 * cell.factor) ** 2, sweep.n - 1)


def assumed_share(encoder: str, deviation: float | None) -> float:
    """Compute the factor by which an assumption shrinks the borrowed deviations on an encoder.

    Args:
        deviation: assumed deviation of the STS average on REFERENCE_ENCODER, in points.

    Returns:
        1 without an assumption, without a sweep, and if the sweep on the encoder deviates by no
        more than `deviation` already. No deviation of the STS average shrinks below `deviation`.
    """
    sweep = seed_spread(encoder, AVERAGE)
    reference = seed_spread(REFERENCE_ENCODER, AVERAGE)
    if deviation is None or sweep is None or reference is None:
        return 1.0
    return min(1.0, deviation / min(sweep.std, reference.std))


# ---------------------------------------------------------------- deviations that papers print


@cached
def deviations_on_part() -> list[float]:
    """List the deviations of the STS average that papers print on PART_OF_DATA, ascending.

    They are on REFERENCE_ENCODER and over several seeds. A seed also draws the part of the data. A
    row counts only if its average on all of the data reaches the mean of the sweep, because rows
    that learn less vary more (CT, Mirror-BERT, training without negatives). A value that several
    tables print counts once.
    """
    lowest_average = mean_of_sweep(REFERENCE_ENCODER)
    by_text: dict[str, float] = {}  # deviation by the printed text
    for printed in rows_with_scores():
        if printed.grid.encoder != REFERENCE_ENCODER or lowest_average is None:
            continue
        on_all = average_on(printed.grid, printed.row, FULL)
        on_part = average_on(printed.grid, printed.row, PART_OF_DATA)
        if on_all is None or on_part is None or on_all.value < lowest_average:
            continue
        if on_part.std is not None:
            by_text[on_part.text] = on_part.std
    return sorted(by_text.values())


def mean_of_sweep(encoder: str) -> float | None:
    """Compute the mean STS average of the largest seed sweep on an encoder; None without one."""
    largest = max(
        (sweep.runs.summary for sweep in sweeps() if sweep.key.encoder == encoder),
        key=lambda summary: summary.n,
        default=None,
    )
    return None if largest is None else largest.mean


def average_on(grid: Grid, row: Row, size: str) -> Published | None:
    """Find the STS average that a row prints for a size of the training set."""
    for column, value in zip(grid.columns, row.values, strict=True):
        if score_of(grid, column, size) == AVERAGE:
            return value
    return None
