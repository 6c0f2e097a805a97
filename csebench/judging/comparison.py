"""Differences of systems, tested over test items and seeds, and groups that cannot be told apart.

Test and intervals are those of the tables (csebench/report/numbers/). Seeds of two systems are
independent of each other. A system with a single seed stands for this one model, so that only its
test items vary.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from math import inf, sqrt

import numpy as np

from csebench.judging.systems import JudgedSystem, JudgedSystems
from csebench.judging.task_scores import TaskScore
from csebench.report.numbers import stats
from csebench.report.numbers.compare import INACTIVE, Comparison, judge_together
from csebench.report.numbers.estimates import Estimate
from csebench.report.numbers.power import seeds_needed, smallest_difference
from csebench.report.numbers.refusals import Relation
from csebench.report.numbers.verdict_words import VerdictWord


@dataclass(frozen=True)
class UnpairedEstimate(Estimate):
    """A difference of two systems whose seeds are independent, in points.

    `seeds` is the larger number of seeds. `seed_sd` is the deviation of a difference of one seed of
    each system.
    """

    spreads: tuple[stats.Summary, ...] = ()  # of the seeds of each system

    @property
    def seed_counts(self) -> tuple[int, ...]:
        """The number of seeds of each system."""
        return tuple(spread.n for spread in self.spreads)

    def error(self, seeds: int | None = None) -> tuple[float, float]:
        """Compute the standard error and its degrees of freedom.

        Args:
            seeds: number of seeds of each system to assume; by default those that it has. A system
                of one seed does not vary.

        Returns:
            (inf, 1) if neither seeds nor test items give an error, so that nothing can be tested.
        """
        parts: list[stats.VariancePart] = []
        if self.item_se is not None:
            parts.append((self.item_se**2, inf))
        for spread in self.spreads:
            number = seeds or spread.n
            if spread.std is not None and number > 1:
                parts.append((spread.std**2 / number, number - 1))
        if not parts:
            return inf, 1
        return sqrt(sum(variance for variance, _ in parts)), stats.satterthwaite(*parts)


@dataclass(frozen=True)
class JudgedPair:
    """Two systems with their difference over all tasks and in each task."""

    first: JudgedSystem
    second: JudgedSystem
    overall: Comparison
    tasks: tuple[Comparison, ...]
    items: int | None  # of all tasks; None if not known


@dataclass(frozen=True)
class JudgedComparisons:
    """What is shown of systems."""

    compared: JudgedSystems
    pairs: tuple[JudgedPair, ...]  # in the order of the systems
    groups: tuple[tuple[str, ...], ...]  # see `groups_not_told_apart`; highest first
    within: float  # points; a difference that is shown to be within it counts as none

    def pair(self, first: str, second: str) -> JudgedPair:
        """Find the pair of two systems, in this order or in the other."""
        for pair in self.pairs:
            if {pair.first.name, pair.second.name} == {first, second}:
                return pair
        raise KeyError(f"{first}, {second}")


def judge_systems(compared: JudgedSystems, within: float | None = None) -> JudgedComparisons:
    """Compare all pairs of systems.

    The differences over all tasks are one family of tests, those of single tasks another one.

    Args:
        within: points; a difference that is shown to be within it counts as none. None for the
            limit of the tables.
    """
    within = within or INACTIVE
    pairs = list(combinations(compared.systems, 2))
    tasks = compared.tasks
    overall = judge_together((compare_systems(*pair, tasks) for pair in pairs), within)
    single = []
    for pair in pairs:
        single += [compare_systems(*pair, [task]) for task in tasks]
    by_task = iter(judge_together(single, within))

    judged_pairs = []
    for (first, second), comparison in zip(pairs, overall, strict=True):
        of_tasks = tuple(next(by_task) for _ in tasks)
        items = number_of_items(first, second, tasks)
        judged_pairs.append(JudgedPair(first, second, comparison, of_tasks, items))
    groups = groups_not_told_apart(compared, overall)
    return JudgedComparisons(compared, tuple(judged_pairs), groups, within)


def number_of_items(first: JudgedSystem, second: JudgedSystem, tasks: Sequence[str]) -> int | None:
    """Count the test items of tasks, or return None if they are not known for a task."""
    total = 0
    for task in tasks:
        count = stated_item_count([*first.scores[task], *second.scores[task]])
        if count is None:
            return None
        total += count
    return total


def stated_item_count(scores: Iterable[TaskScore]) -> int | None:
    """Return the number of test items that any of some scores on the same items states."""
    for score in scores:
        if score.item_count is not None:
            return score.item_count
    return None


# ---------------------------------------------------------------- one difference


def compare_systems(first: JudgedSystem, second: JudgedSystem, tasks: Sequence[str]) -> Comparison:
    """Estimate and test the mean difference of two systems over tasks.

    The comparison is not yet judged. It has no p if nothing gives an error.
    """
    estimate = estimate_difference(first, second, tasks)
    columns = tasks[0] if len(tasks) == 1 else f"mean of {len(tasks)} tasks"
    comparison = Comparison(first.name, second.name, columns, Relation.ONE_SEED, estimate=estimate)
    p = estimate.p()
    if p is None:
        return comparison
    low, high = estimate.interval()
    return replace(comparison, p=p, low=low, high=high)


def reversed_comparison(comparison: Comparison) -> Comparison:
    """Swap the systems of a comparison."""
    opposite = {Relation.BETTER: Relation.WORSE, Relation.WORSE: Relation.BETTER}
    estimate = comparison.estimate
    assert estimate is not None
    return replace(
        comparison,
        row=comparison.against,
        against=comparison.row,
        relation=opposite.get(comparison.relation, comparison.relation),
        estimate=replace(estimate, gain=-estimate.gain),
        low=negated(comparison.high),
        high=negated(comparison.low),
        family_low=negated(comparison.family_high),
        family_high=negated(comparison.family_low),
    )


def negated(number: float | None) -> float | None:
    return None if number is None else -number


def estimate_difference(
    first: JudgedSystem, second: JudgedSystem, tasks: Sequence[str]
) -> UnpairedEstimate:
    """Estimate the mean difference over tasks, with its errors over test items and seeds."""
    spreads = tuple(stats.summarise(system.mean_by_seed(tasks)) for system in (first, second))
    variances = [spread.std**2 for spread in spreads if spread.std is not None]
    return UnpairedEstimate(
        gain=spreads[0].mean - spreads[1].mean,
        seeds=max(spread.n for spread in spreads),
        seed_sd=sqrt(sum(variances)) if variances else None,
        item_se=item_error(first, second, tasks),
        spreads=spreads,
    )


def item_error(first: JudgedSystem, second: JudgedSystem, tasks: Sequence[str]) -> float | None:
    """Compute the standard error over test items, in points; None if a score has no replicates."""
    effects: dict[str, np.ndarray] = {}  # by the items that are resampled together
    for system, sign in ((first, 1), (second, -1)):
        for score in chain.from_iterable(system.scores[task] for task in tasks):
            if score.replicates is None:
                return None
            weight = sign * 100 / (len(tasks) * system.seeds)
            items = score.replicates.items
            effects[items] = effects.get(items, 0.0) + weight * score.replicates.clustered
    return sqrt(sum(np.var(effect) for effect in effects.values()))


# ---------------------------------------------------------------- what would decide it


def times_as_many_items(comparison: Comparison) -> float | None:
    """Compute how many times as many items a test needs for a difference as large as this one.

    Its power is that of `smallest_difference`. Its level is Bonferroni's. The number is rounded up
    to tenths.

    Returns:
        Infinity if the seeds alone vary too much, or if there is no difference. None if items are
        not known.
    """
    estimate = comparison.estimate
    assert estimate is not None
    if estimate.item_se is None:
        return None
    level = level_of_test(comparison)
    item_se = estimate.item_se
    difference = abs(estimate.gain)
    without_items = replace(estimate, item_se=0.0)
    if not difference or smallest_difference(without_items, None, level) >= difference:
        return inf

    def is_detected(tenths: int) -> bool:
        with_items = replace(estimate, item_se=item_se * sqrt(10 / tenths))
        return smallest_difference(with_items, None, level) <= difference

    return bisect_left(range(10**12), True, lo=1, key=is_detected) / 10


def seeds_that_decide(comparison: Comparison) -> float | None:
    """Compute the seeds of each system that a test needs for a difference as large as this one.

    A system with a single seed stands for this one model, and needs no others.

    Returns:
        Infinity if items alone vary too much. None if no system has several seeds.
    """
    estimate = comparison.estimate
    assert estimate is not None
    if estimate.seed_sd is None:
        return None
    return seeds_needed(abs(estimate.gain), estimate, level_of_test(comparison))


def level_of_test(comparison: Comparison) -> float:
    """Compute the level of one test of a family, as by Bonferroni."""
    return stats.LEVEL / comparison.family_size


# ---------------------------------------------------------------- groups


def groups_not_told_apart(
    compared: JudgedSystems, comparisons: Iterable[Comparison]
) -> tuple[tuple[str, ...], ...]:
    """Find the longest runs of neighbours in the ranking in which no two are told apart.

    Runs overlap, so a system can be in several groups. A pair without a common group may not be
    told apart either, because errors differ from pair to pair.
    """
    told_apart = set()
    for comparison in comparisons:
        if is_told_apart(comparison):
            told_apart.add(frozenset((comparison.row, comparison.against)))
    names = [system.name for system in ranked(compared)]
    groups: list[tuple[str, ...]] = []
    end_of_last = 0
    for start in range(len(names)):
        end = start + 1
        while end < len(names) and not is_apart_from_any(names[end], names[start:end], told_apart):
            end += 1
        if end > end_of_last:  # else the group before it contains this one
            groups.append(tuple(names[start:end]))
            end_of_last = end
    return tuple(groups)


def is_told_apart(comparison: Comparison) -> bool:
    """Whether one of two systems is shown to be higher."""
    return comparison.relation.word in (VerdictWord.HIGHER, VerdictWord.LOWER)


def is_apart_from_any(name: str, others: Iterable[str], told_apart: set[frozenset[str]]) -> bool:
    """Whether a system is told apart from any of the others."""
    return any(frozenset((name, other)) in told_apart for other in others)


def ranked(compared: JudgedSystems) -> list[JudgedSystem]:
    """Order systems by their mean score over tasks, highest first."""

    def highest_first(system: JudgedSystem) -> float:
        return -mean_score(system, compared.tasks)

    return sorted(compared.systems, key=highest_first)


def mean_score(system: JudgedSystem, tasks: Sequence[str]) -> float:
    """Average a system's score over tasks and seeds, in points."""
    return stats.summarise(system.mean_by_seed(tasks)).mean
