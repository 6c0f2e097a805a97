"""Power: the smallest true difference of two rows that their test detects, and how many seeds a difference needs.

Numbers in, numbers out, for the tests of csebench/report/stats.py: rows paired by seed (`paired_difference`), and rows
whose seeds have nothing in common (Welch). Tables: csebench/report/table_power.py
and planned_power.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isnan, sqrt

from csebench.report.stats import LEVEL, quantile, satterthwaite

POWER = 0.8  # the chance with which a "smallest difference" is detected


@dataclass(frozen=True)
class Design:
    """What the difference of two rows' means varies by, in the units of the scores.

    Attributes:
        std: paired: of the differences, one per seed; else of the seeds of either row. None where it is not known.
        item_variance: of the difference over test items, which more seeds do not reduce; None where not known.
        paired: whether the rows are compared seed by seed, or as independent samples of the same size and spread.
    """

    std: float | None
    item_variance: float | None = None
    paired: bool = True

    def error(self, seeds: int) -> tuple[float, float]:
        """Standard error of the difference over `seeds` seeds of each row, and its degrees of freedom.

        The error is infinite where nothing can be tested: one seed, and no test items.
        """
        parts = [] if self.item_variance is None else [(self.item_variance, inf)]
        if self.std is not None and seeds > 1:
            samples = 1 if self.paired else 2
            parts.append((samples * self.std**2 / seeds, samples * (seeds - 1)))
        if not parts:
            return inf, 1
        return sqrt(sum(variance for variance, _ in parts)), satterthwaite(*parts)


def smallest_difference(design: Design, seeds: int, level: float = LEVEL, power: float = POWER) -> float:
    """The true difference that a two-sided test at `level` detects with a chance of `power`.

    Spreads are taken for the true ones. Infinite where nothing can be tested.
    """
    error, df = design.error(seeds)
    return error * noncentrality(df, level, power)


def interval_text(difference: float, design: Design, seeds: int, digits: int) -> str:
    """`95 % interval +0.40 to +0.92, over 3 seeds and test items`: what a difference is tested over stands with it."""
    error, df = design.error(seeds)
    half = error * quantile(1 - LEVEL, df)
    low, high = (f"{bound:+z.{digits}f}" for bound in (difference - half, difference + half))
    over = [] if design.std is None or seeds < 2 else [f"{seeds} seeds"]
    over += [] if design.item_variance is None else ["test items"]
    return f"95 % interval {low} to {high}, over {' and '.join(over)}"


def noncentrality(df: float, level: float = LEVEL, power: float = POWER) -> float:
    """True difference / standard error at which Student's t exceeds its two-sided threshold with a chance of `power`.

    The chance of a significant difference with the wrong sign is left out: below 1e-6 at a power of 0.8.

    >>> round(noncentrality(8), 2)  # two rows of five seeds
    3.2
    """
    from scipy.special import nctdtrinc, ndtri

    threshold = quantile(1 - level, df)
    if df > 1e6:
        return threshold + float(ndtri(power))
    return float(nctdtrinc(df, 1 - power, threshold))


def power_of(difference: float, design: Design, seeds: int, level: float = LEVEL) -> float:
    """The chance that a two-sided test at `level` detects a true difference, from the noncentral t distribution.

    >>> round(power_of(1.0, Design(0.84, paired=False), 5), 2)  # SimCSE on BERT-base, five seeds of either row
    0.38
    """
    from scipy.stats import nct, norm

    error, df = design.error(seeds)
    if error in (0, inf):
        return float(error == 0 and difference != 0)
    shift, threshold = abs(difference) / error, quantile(1 - level, df)
    if df > 1e6:
        return float(norm.sf(threshold - shift) + norm.cdf(-threshold - shift))
    wrong_sign = float(nct.cdf(-threshold, df, shift))  # not a number where it is too small for scipy
    return float(nct.sf(threshold, df, shift)) + (0.0 if isnan(wrong_sign) else wrong_sign)


def seeds_needed(difference: float, design: Design, level: float = LEVEL, power: float = POWER) -> float | None:
    """The number of seeds of each row with which the test detects a true difference.

    Infinite where the test items alone vary too much for any number of seeds; None where the spread of seeds is not
    known.
    """
    if design.std is None:
        return None

    def enough(seeds: int) -> bool:
        return smallest_difference(design, seeds, level, power) <= difference

    if sqrt(design.item_variance or 0.0) * noncentrality(inf, level, power) >= difference:
        return inf
    high = 2
    while not enough(high):
        high *= 2
    low = high // 2  # too few, but where 2 are enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
