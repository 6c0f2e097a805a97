"""How much a score gains if the best of several seeds is reported: exact, from others' sweeps."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from csebench.plan.catalog.evidence import DEV
from csebench.plan.schema.paper import Published
from csebench.report.numbers.others import PooledMethod, Sweep, sweeps
from csebench.report.numbers.stats import SLACK

MOST_PICKED = 20  # runs from which a source may pick its best


@dataclass(frozen=True)
class SelectionGain:
    """How much picking the best of a number of seeds adds to the mean test score."""

    by_dev: float  # if the dev set picks it
    by_test: float  # if the test sets themselves pick it
    reach: float  # chance that the seed picked by dev reaches the printed value


@dataclass(frozen=True)
class Selection:
    """How much picking seeds adds to the test score in one sweep."""

    seeds: int
    correlation: float  # of dev and test scores
    mean: float
    gains: tuple[SelectionGain, ...]  # one per number of seeds, as far as the sweep has as many
    best_by_dev: float  # test score of the seed that is best on dev
    best_by_test: float


@dataclass(frozen=True)
class BestScores:
    """Expected test score of the best of 1, 2, 3, … runs of an average source."""

    by_dev: tuple[float, ...]  # if the dev set picks it
    by_test: tuple[float, ...]  # if the test sets themselves pick it


def selection_of(sweep: Sweep, picked_from: tuple[int, ...]) -> Selection | None:
    """Compute how much picking the best seed adds to the test score in a sweep.

    Args:
        picked_from: numbers of seeds to pick from, ascending.

    Returns:
        None if a run has no score on the dev set.
    """
    runs = [run for _, run in sweep.runs.runs]
    if any(DEV[0] not in run.scores for run in runs):
        return None
    dev = np.array([run.scores[DEV[0]].value for run in runs])
    test = np.array(sweep.runs.values)
    reached = (test >= sweep.printed.value.value - SLACK).astype(float)
    mean = sweep.runs.summary.mean
    gains = []
    for count in picked_from:
        if count > len(test):
            break
        by_dev = expected_of_best(count, dev, test)
        by_test = expected_of_best(count, test, test)
        reach = expected_of_best(count, dev, reached)
        gains.append(SelectionGain(by_dev - mean, by_test - mean, reach))
    return Selection(
        seeds=len(test),
        correlation=float(np.corrcoef(dev, test)[0, 1]),
        mean=mean,
        gains=tuple(gains),
        best_by_dev=float(test[dev.argmax()]),
        best_by_test=float(test.max()),
    )


def best_scores(pooled: PooledMethod) -> BestScores | None:
    """Compute what the best of up to MOST_PICKED runs of an average source is expected to score.

    It is the mean over sources, plus what picking adds in the seed sweep on the same encoder.

    Returns:
        None without a seed sweep whose runs have scores on the dev set.
    """
    sweep = next((sweep for sweep in sweeps() if sweep.key == pooled.key), None)
    if sweep is None:
        return None
    selection = selection_of(sweep, tuple(range(1, MOST_PICKED + 1)))
    if selection is None:
        return None
    mean = pooled.runs.effects.mean
    return BestScores(
        by_dev=tuple(mean + gain.by_dev for gain in selection.gains),
        by_test=tuple(mean + gain.by_test for gain in selection.gains),
    )


def runs_to_reach(printed: Published, scores: Sequence[float]) -> int | None:
    """Return the smallest number of runs whose best is expected to reach a printed value.

    A score reaches it if it is at least as high when rounded as printed.

    Args:
        scores: expected score of the best of 1, 2, 3, … runs.

    Returns:
        None if none of these scores reaches it.
    """
    for count, score in enumerate(scores, 1):
        if score >= printed.value - printed.unit / 2 - SLACK:
            return count
    return None


def expected_of_best(count: int, ranking: np.ndarray, values: np.ndarray) -> float:
    """Compute the mean value of the best run, over all subsets of `count` runs.

    The three subsets of two runs have the best values 20, 60 and 60:

    >>> expected_of_best(2, np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 60.0]))
    46.666666666666664

    Args:
        count: number of runs in a subset.
        ranking: a score per run, whose highest is best.
        values: the value of each run, in the same order.
    """
    return float(chances_of_best(count, ranking) @ values)


def chances_of_best(count: int, ranking: np.ndarray) -> np.ndarray:
    """Compute how likely each run is the best one of a random subset of `count` runs.

    The run of rank r (from 0) is the best in C(r, count-1) of the C(n, count) subsets. Runs with
    the same ranking are equally likely to be picked, so they share their chances.

    Args:
        count: number of runs in a subset.
        ranking: (n,) a score per run, whose highest is best.

    Returns:
        (n,) chances, in the same order; their sum is 1.
    """
    runs = len(ranking)
    subsets_won = np.array([comb(rank, count - 1) for rank in range(runs)], dtype=float)
    order = np.argsort(ranking, kind="stable")
    chances = np.empty(runs)
    chances[order] = subsets_won / comb(runs, count)

    # runs with the same ranking share their chances
    _, group, size = np.unique(ranking, return_inverse=True, return_counts=True)
    chance_of_group = np.bincount(group, weights=chances) / size
    return chance_of_group[group]
