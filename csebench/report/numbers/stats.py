"""Statistics over seeds and test items: summaries, verdicts on published values, tests.

Numbers in, numbers out. Which cells are compared is decided in compare.py and claims.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from csebench.plan.schema.paper import SEEDS_NEEDED, Published
from csebench.report.numbers.verdict_words import PrintedWord

# verdicts on a published value, finer than printed_word; LOWER and HIGHER say where our runs are
AGREES, INCONCLUSIVE, CLOSE = "agrees", "inconclusive", "close"
LOWER, HIGHER = "lower", "higher"
TOO_FEW, NOT_COMPARABLE = "too few seeds", "not comparable"

LEVEL = 0.05  # significance level of every test
OUTER_LEVEL = 0.01  # of the wider interval; a value that only this interval encloses is close
AGREEMENT = 1.0  # points: an interval that is not narrower than plus or minus this is inconclusive
SLACK = 1e-9  # rounding error of binary fractions
# the fewest values for which a further value is between their lowest and highest with 95 % chance
ORDER_STATISTICS = 39

VariancePart = tuple[float, float]  # a variance and its degrees of freedom


class Summary(NamedTuple):
    """Mean and standard deviation of values, one per seed."""

    mean: float
    std: float | None  # of the sample (ddof = 1); None for a single value
    n: int

    @property
    def margin(self) -> float:
        """Half the width of the 95 % interval of the mean; 0 for a single value."""
        if self.std is None:
            return 0.0
        return quantile(1 - LEVEL, self.n - 1) * self.std / sqrt(self.n)


def summarise(values: Iterable[float]) -> Summary:
    """Compute mean and standard deviation of values, one per seed."""
    array = np.asarray(list(values), dtype=float)
    std = None
    if len(array) > 1:
        std = float(array.std(ddof=1))
    return Summary(float(array.mean()), std, len(array))


# ---------------------------------------------------------------- a published value


class Verdict(NamedTuple):
    """Whether a published value could be one of ours.

    The bounds enclose the published values that our runs do not rule out, in printed units. They
    are None if the value is not tested. Its name is then TOO_FEW if there are too few seeds, and
    NOT_COMPARABLE if the deviation of our runs is not known.
    """

    name: str
    distance: float  # our mean minus the published value, in printed units
    low: float | None = None
    high: float | None = None


def printed_word(name: str) -> PrintedWord:
    """Give the word for a verdict on a published value.

    Args:
        name: of the verdict, or an empty text without one.
    """
    if name == AGREES:
        return PrintedWord.AGREES
    if name == INCONCLUSIVE:
        return PrintedWord.INCONCLUSIVE
    if name in (CLOSE, LOWER, HIGHER):
        return PrintedWord.DIFFERS
    return PrintedWord.NOT_TESTED


@dataclass(frozen=True)
class PlausibleRange:
    """The published values that runs do not rule out at one level, in printed units."""

    low: float
    high: float

    def encloses(self, value: float) -> bool:
        return self.low - SLACK <= value <= self.high + SLACK

    def widened(self, margin: float) -> "PlausibleRange":
        """Move both ends outwards by a margin."""
        return PlausibleRange(self.low - margin, self.high + margin)

    def is_narrow(self, point: float) -> bool:
        """Whether it is narrower than plus or minus AGREEMENT.

        Args:
            point: a point (0.01 of a score) in printed units.
        """
        return self.high - self.low < 2 * AGREEMENT * point


def verdict(
    values: Iterable[float],
    published: Published,
    seeds: int = 1,
    deterministic: bool = False,
    point: float = 1.0,
) -> Verdict:
    """Judge whether a published value is a plausible draw from the distribution of our values.

    For one run, or a mean without a deviation, the interval is the prediction interval mean ±
    t(.975, n-1) · s · √(1/seeds + 1/n). For a mean with a deviation it is Welch's interval for the
    difference of two means. Both assume normal values. For one run against 39 or more values it is
    the interval of their order statistics, which assumes no distribution. Half a unit of the last
    printed digit is added for rounding.

    A wide interval rules out little, so a value inside it need not agree. A value inside the 95 %
    interval agrees if the interval is narrower than ± AGREEMENT. Otherwise it is inconclusive. A
    value outside the 95 % interval is close if it is inside the 99 % interval of the same kind.
    Order statistics have a 99 % interval only from 199 values on.

    A deterministic row has only rounding errors. Its intervals are ± one and ± ten printed units.

    Args:
        values: one per seed, in printed units.
        seeds: number of runs that the published value is a mean of.
        deterministic: whether the row has no randomness.
        point: a point (0.01 of a score) in printed units.
    """
    values = list(values)
    if len(values) < ORDER_STATISTICS or seeds > 1 or deterministic:
        return verdict_on(summarise(values), published, seeds, deterministic, point)
    inner = order_range(values, published, LEVEL)
    outer = order_range(values, published, OUTER_LEVEL)
    assert inner is not None  # there are enough values
    return verdict_in(summarise(values).mean - published.value, published, inner, outer, point)


def order_range(
    values: Sequence[float], published: Published, level: float
) -> PlausibleRange | None:
    """Compute the range that holds a further value with confidence 1 - level, by ranks alone.

    Returns:
        None if there are too few values for this level.
    """
    ordered = sorted(values)
    # the range starts at the value of this rank from below and ends at the one from above
    rank = int(level * (len(ordered) + 1) / 2)
    if rank == 0:
        return None
    half_unit = published.unit / 2
    return PlausibleRange(ordered[rank - 1] - half_unit, ordered[-rank] + half_unit)


def verdict_on(
    ours: Summary,
    published: Published,
    seeds: int = 1,
    deterministic: bool = False,
    point: float = 1.0,
) -> Verdict:
    """Judge as `verdict` does, from the number, mean and deviation of our runs alone."""
    distance = ours.mean - published.value
    if deterministic:
        inner = published.unit
        outer = 10 * published.unit
    elif ours.n < SEEDS_NEEDED:
        return Verdict(TOO_FEW, distance)
    elif ours.std is None:
        return Verdict(NOT_COMPARABLE, distance)
    else:
        error, df = error_to_published(ours, ours.std, published, seeds)
        inner = quantile(1 - LEVEL, df) * error + published.unit / 2
        outer = quantile(1 - OUTER_LEVEL, df) * error + published.unit / 2
    return verdict_in(
        distance,
        published,
        PlausibleRange(ours.mean - inner, ours.mean + inner),
        PlausibleRange(ours.mean - outer, ours.mean + outer),
        point,
    )


def verdict_in(
    distance: float,
    published: Published,
    inner: PlausibleRange,
    outer: PlausibleRange | None,
    point: float,
) -> Verdict:
    """Judge a published value by the ranges at 95 % and 99 %; `outer` is None if there is none."""
    if inner.encloses(published.value):
        name = AGREES if inner.is_narrow(point) else INCONCLUSIVE
    elif outer is not None and outer.encloses(published.value):
        name = CLOSE
    elif published.value > inner.high:
        name = LOWER
    else:
        name = HIGHER
    return Verdict(name, distance, inner.low, inner.high)


def error_to_published(
    ours: Summary, std: float, published: Published, seeds: int
) -> tuple[float, float]:
    """Compute the standard error of our mean against a published one, with degrees of freedom."""
    if published.std is None or seeds == 1:
        return std * sqrt(1 / seeds + 1 / ours.n), ours.n - 1
    our_part = (std**2 / ours.n, ours.n - 1)
    their_part = (published.std**2 / seeds, seeds - 1)
    return sqrt(our_part[0] + their_part[0]), satterthwaite(our_part, their_part)


# ---------------------------------------------------------------- tests


def quantile(level: float, df: float) -> float:
    """Compute the two-sided quantile of Student's t: level 0.95 gives the 97.5 % point.

    Args:
        df: degrees of freedom, which may be infinite.
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))


def satterthwaite(*parts: VariancePart) -> float:
    """Compute the degrees of freedom of a sum of variances."""
    total = sum(variance for variance, _ in parts)
    denominator = sum(variance**2 / df for variance, df in parts)
    if not denominator:
        return inf
    return total**2 / denominator


def two_sided(difference: float, *parts: VariancePart) -> float:
    """Compute the two-sided p of a difference whose variance is the sum of parts.

    A difference within rounding error counts as none and has p 1. If nothing varies, every larger
    difference has p 0.
    """
    from scipy.special import stdtr

    variance = sum(part for part, _ in parts)
    if abs(difference) <= SLACK:
        return 1.0
    if variance == 0:
        return 0.0
    return 2 * float(stdtr(satterthwaite(*parts), -abs(difference) / sqrt(variance)))


def holm(p_values: list[float]) -> list[float]:
    """Adjust p-values by Holm's method; returns them in the order of the input.

    The smallest of n p-values is multiplied by n, the next one by n - 1, and so on. None may be
    lower than the one before it.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    multiplied = np.minimum(1.0, factors * np.take(p_values, order))
    adjusted = np.maximum.accumulate(multiplied)
    return adjusted[np.argsort(order)].tolist()
