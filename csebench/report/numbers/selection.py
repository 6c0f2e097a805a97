"""How much a score gains if the best of several seeds is reported: exact, from others' sweeps."""

from dataclasses import dataclass
from math import comb

import numpy as np

from csebench.plan.catalog.evidence import DEV
from csebench.report.numbers.others import Sweep
from csebench.report.numbers.stats import SLACK


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
