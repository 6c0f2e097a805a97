"""The difference of two rows as a number with its errors.

A test set is a sample of items, and seeds are a sample of trainings. The variance of a difference
is the sum of its variances over items and over seeds. The variance over items comes from resamples
of the items, which are published with the scores (csebench/score/replicates.py). All test sets of
an evaluator are resampled together. Evaluators that declare no items (alignment, purity, tasks of
MTEB) give an error over seeds alone. Whether two rows may be compared at all is decided in
refusals.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf, sqrt

import numpy as np

from csebench.base.caches import cached_by_folder
from csebench.plan.catalog.registry import protocol
from csebench.plan.grids import CellPlan
from csebench.plan.targets import score_path
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, averaged_tasks, combine_by_seed
from csebench.score.replicates import Replicates, read_replicates
from csebench.score.store import read_scores

CellPair = tuple[Cell, Cell]  # cells of two rows in one column
WeightedCell = tuple[float, Cell]


@dataclass(frozen=True)
class Estimate:
    """A difference over seeds and test items.

    Its unit is that of the weighted cells it comes from: points (0.01 of a score) with `weighted`,
    printed units in contrasts.py.
    """

    gain: float
    seeds: int
    seed_sd: float | None  # of the differences, one per seed; None for a single seed
    item_se: float | None  # None if test items are not known

    @property
    def seed_counts(self) -> tuple[int, ...]:
        """The numbers of seeds behind the difference: one number if its seeds are paired."""
        return (self.seeds,)

    def error(self, seeds: int | None = None) -> tuple[float, float]:
        """Compute the standard error and its degrees of freedom.

        Args:
            seeds: number of seeds to assume; by default the seeds of the estimate.

        Returns:
            (inf, 1) if neither seeds nor test items give an error, so that nothing can be tested.
        """
        seeds = seeds or self.seeds
        variances: list[tuple[float, float]] = []  # each with its degrees of freedom
        if self.item_se is not None:
            variances.append((self.item_se**2, inf))
        if self.seed_sd is not None and seeds > 1:
            variances.append((self.seed_sd**2 / seeds, seeds - 1))
        if not variances:
            return inf, 1
        total = sum(variance for variance, _ in variances)
        return sqrt(total), stats.satterthwaite(*variances)

    def p(self) -> float | None:
        """Compute the two-sided p; None if there is no error to test with."""
        error, df = self.error()
        if error == inf:
            return None
        return stats.two_sided(self.gain, (error**2, df))

    def interval(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Compute the two-sided interval with confidence 1 - level."""
        error, df = self.error()
        half = 0.0
        if error:
            half = error * stats.quantile(1 - level, df)
        return self.gain - half, self.gain + half

    def is_within(self, limit: float, count: int = 1) -> bool:
        """Whether the difference is shown to be at most `limit` in both directions.

        This is a test of equivalence by two one-sided tests, each at LEVEL over `count` as by
        Bonferroni. A two-sided interval at twice that level has the same bounds.

        Args:
            count: number of comparisons in the family.
        """
        low, high = self.interval(2 * stats.LEVEL / count)
        return max(abs(low), abs(high)) <= limit


def weighted(pairs: Sequence[CellPair]) -> list[WeightedCell]:
    """Write the mean difference of pairs as a weighted sum of cells, in points.

    A positive sum means that the first cells are better, also if less is better.
    """
    terms = []
    for cell, base in pairs:
        weight = cell.sign * 100 / (cell.factor * len(pairs))
        terms.append((weight, cell))
        terms.append((-weight, base))
    return terms


def printed_difference(pairs: Sequence[CellPair]) -> float | None:
    """Average the differences of published values, in points; None if one is not printed."""
    gains = []
    for cell, base in pairs:
        if cell.published is None or base.published is None:
            return None
        difference = cell.published.value - base.published.value
        gains.append(cell.sign * 100 * difference / cell.factor)
    return float(np.mean(gains))


def estimate_of(terms: Sequence[WeightedCell], scale: str) -> Estimate:
    """Estimate a weighted sum of cells over the seeds that they share, with both errors."""
    weights = [weight for weight, _ in terms]
    cells = [cell for _, cell in terms]

    def weighted_sum(*values: float) -> float:
        return sum(weight * value for weight, value in zip(weights, values, strict=True))

    differences = stats.summarise(combine_by_seed(weighted_sum, *cells).values())
    item_se = error_over_items(terms, scale)
    return Estimate(differences.mean, differences.n, differences.std, item_se)


def error_over_items(terms: Sequence[WeightedCell], scale: str) -> float | None:
    """Compute the standard error of a weighted sum of cells over test items.

    Returns:
        None if a score has no replicates over test items.
    """
    effects = item_effects(terms, scale)
    if effects is None:
        return None
    # each entry has other test items, so that the errors are independent
    return sqrt(sum(np.var(effect) for effect in effects.values()))


def item_effects(terms: Sequence[WeightedCell], scale: str) -> dict[str, np.ndarray] | None:
    """Compute the replicates of a weighted sum of cells over test items.

    Cells that are compared all have replicates of the same items, or none has any. Others are
    refused earlier (`refusals.mismatch`).

    Returns:
        Replicates by the digest of the test items; None if a score has no replicates.
    """
    effects: dict[str, np.ndarray] = {}
    items_of_task: dict[tuple[str, str], str] = {}
    leaves = chain.from_iterable(cell.weighted_leaves(weight) for weight, cell in terms)
    for weight, leaf in leaves:
        plan = leaf.plan
        runs = tuple(spec.run_id for spec in plan.specs)
        tasks = averaged_tasks(plan)
        for task in tasks:
            mean = mean_replicates(runs, plan.evaluator, task, plan.metric, scale)
            if mean is None:
                return None
            first_items = items_of_task.setdefault((plan.evaluator, task), mean.items)
            if mean.items != first_items:
                return None
            task_weight = weight * leaf.factor / len(tasks)
            effects[mean.items] = effects.get(mean.items, 0.0) + task_weight * mean.clustered
    return effects


@cached_by_folder
def mean_replicates(
    runs: tuple[str, ...], evaluator: str, task: str, metric: str, scale: str
) -> Replicates | None:
    """Average the replicates of a task's score over runs.

    Returns:
        None if a run has no replicates of the score, or if runs were scored on different items.
    """
    by_run = []
    for run in runs:
        content = read_scores(score_path(run, evaluator, scale))
        if content is None:
            return None
        replicates = read_replicates(content, task, metric)
        if replicates is None:
            return None
        by_run.append(replicates)
    if len({replicates.items for replicates in by_run}) != 1:
        return None
    mean = np.mean([replicates.clustered for replicates in by_run], 0)
    return Replicates(by_run[0].items, mean)


def is_over_seeds_only(estimate: Estimate, pairs: Sequence[CellPair]) -> bool:
    """Whether the error over test items is missing although an evaluator declares items."""
    if estimate.item_se is not None:
        return False
    cells = chain.from_iterable(pairs)
    leaves = chain.from_iterable(cell.leaves for cell in cells)
    return any(has_items(leaf.plan) for leaf in leaves)


def has_items(plan: CellPlan) -> bool:
    """Whether the evaluator declares how test items make the score of a cell."""
    if not plan.evaluator:  # the made-up numbers of benchmarks/judge.py have no evaluator
        return False
    rule = protocol(plan.evaluator).declaration.items
    return rule is not None and rule.metric in (None, plan.metric)
