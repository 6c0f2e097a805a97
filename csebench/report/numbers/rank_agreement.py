"""Measure whether differences that are large in the papers are large at a scale, too.

The measure is the rank correlation between the declared differences of a scale and the printed
ones. The first page of a scale shows it below the controls. No verdict depends on the correlation,
because it needs the scores of all pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from csebench.plan.schema.declarations import Training
from csebench.report.numbers.cells import GridView
from csebench.report.numbers.compare import answers
from csebench.report.numbers.controls import training_of
from csebench.report.numbers.stats import LEVEL

RESAMPLES = 2000
FEWEST = 10  # differences; with fewer, no correlation is computed


@dataclass(frozen=True)
class RankAgreement:
    """A rank correlation with its 95 % interval over tables."""

    correlation: float
    low: float
    high: float
    differences: int
    tables: int


@dataclass(frozen=True)
class DifferencePair:
    """A declared difference here and in print, in points."""

    table: str
    here: float
    printed: float


def rank_agreement(views: Sequence[GridView], training: Training) -> RankAgreement | None:
    """Correlate the differences of a scale with the printed differences, for one kind of methods.

    The interval is a bootstrap over whole tables, because differences of the same table share rows.

    Returns:
        None if there are fewer than FEWEST differences.
    """
    pairs = difference_pairs(views, training)
    if len(pairs) < FEWEST:
        return None
    by_table: dict[str, list[DifferencePair]] = {}
    for pair in pairs:
        by_table.setdefault(pair.table, []).append(pair)
    tables = [*by_table.values()]

    generator = np.random.default_rng(0)
    correlations = []
    for _ in range(RESAMPLES):
        resample: list[DifferencePair] = []
        for index in generator.integers(len(tables), size=len(tables)):
            resample += tables[index]
        correlations.append(rank_correlation(resample))
    # A resample whose differences are all equal has no correlation (NaN) and is left out.
    low, high = np.nanquantile(correlations, [LEVEL / 2, 1 - LEVEL / 2])
    return RankAgreement(
        rank_correlation(pairs), float(low), float(high), len(pairs), len(by_table)
    )


def difference_pairs(views: Sequence[GridView], training: Training) -> list[DifferencePair]:
    """List the declared differences that are estimated here and printed."""
    pairs = []
    for view in views:
        for answer in answers(view):
            for comparison in answer.comparisons:
                if comparison.estimate is None or comparison.printed is None:
                    continue
                if training_of(comparison.pairs) != training:
                    continue
                table = f"{view.paper}/{view.name}"
                here = comparison.estimate.gain
                pairs.append(DifferencePair(table, here, comparison.printed))
    return pairs


def rank_correlation(pairs: Sequence[DifferencePair]) -> float:
    """Compute Spearman's correlation of differences here with differences in print.

    Returns:
        NaN if the differences are all equal here, or in print.
    """
    from scipy.stats import rankdata

    here = rankdata([pair.here for pair in pairs])
    printed = rankdata([pair.printed for pair in pairs])
    if np.ptp(here) == 0 or np.ptp(printed) == 0:
        return float("nan")
    return float(np.corrcoef(here, printed)[0, 1])
