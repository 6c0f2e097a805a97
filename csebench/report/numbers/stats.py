"""Statistics over seeds and test items: summaries, the verdict on a published value, tests
between rows. Numbers in, numbers out; which cells are compared is decided in claims.py and
compare.py."""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from csebench.plan.schema.paper import SEEDS_NEEDED, Published

REPRODUCED, CLOSE, LOWER, HIGHER = "reproduced", "close", "lower", "higher"
TOO_FEW, NOT_COMPARABLE = "too few seeds", "not comparable"

LEVEL = 0.05  # of every test
SLACK = 1e-9  # rounding error of binary fractions
ORDER_STATISTICS = 39  # values of which the lowest and the highest hold 95 % of further ones


class Summary(NamedTuple):
    mean: float
    std: float | None  # of the sample (ddof = 1); None for a single value
    n: int


def summarise(values) -> Summary:
    """Mean and standard deviation of values, one per seed."""
    values = np.asarray(list(values), dtype=float)
    return Summary(
        float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None, len(values)
    )


def quantile(level: float, df: float) -> float:
    """Two-sided quantile of Student's t: level 0.95 gives the 97.5 % point. df may be infinite."""
    from scipy.special import stdtrit

    return float(stdtrit(df, (1 + level) / 2))


def satterthwaite(*parts: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of variances, each (variance, its degrees of freedom)."""
    total = sum(variance for variance, _ in parts)
    below = sum(variance**2 / df for variance, df in parts)
    return total**2 / below if below else inf


class Verdict(NamedTuple):
    name: str
    low: float | None = None  # the printed values that would count as reproduced, in printed units
    high: float | None = None
    reason: str = ""


def verdict(values, published: Published, seeds: int = 1, deterministic: bool = False) -> Verdict:
    """Whether a published value, of as many `seeds`, is a plausible draw from the distribution of
    our values, one per seed, in printed units.

    For one run, or a mean without a deviation, the interval is the prediction interval mean ±
    t(.975, n-1) · s · √(1/seeds + 1/n); for one run against 39 or more values that of their order
    statistics, which assumes no distribution. For a mean with a deviation over `seeds` runs it is
    Welch's interval for the difference of two means. Half a unit of the last printed digit is added
    for rounding. A value inside the interval at 95 % is reproduced, inside the normal one at 99 %
    close. A deterministic row, one without randomness, has only rounding errors: a value within one
    printed unit is reproduced, within ten close.
    """
    values = [*values]
    normal = verdict_on(summarise(values), published, seeds, deterministic)
    if len(values) < ORDER_STATISTICS or normal.low is None or seeds > 1 or deterministic:
        return normal
    ordered = sorted(values)
    # values beyond either end of the interval, and its end
    cut = int(LEVEL * (len(values) + 1) / 2 + SLACK)
    low, high = ordered[cut - 1] - published.unit / 2, ordered[-cut] + published.unit / 2
    inside = low - SLACK <= published.value <= high + SLACK
    return Verdict(
        REPRODUCED if inside else CLOSE if normal.name == REPRODUCED else normal.name, low, high
    )


def verdict_on(
    ours: Summary, published: Published, seeds: int = 1, deterministic: bool = False
) -> Verdict:
    """The same as `verdict` for runs of which only the number, mean and deviation are known."""
    if deterministic:
        inner, outer = published.unit, 10 * published.unit
    elif ours.n < SEEDS_NEEDED:
        return Verdict(TOO_FEW, reason=f"{ours.n} of at least {SEEDS_NEEDED} seeds")
    elif ours.std is None:
        return Verdict(NOT_COMPARABLE, reason="no deviation is stated")
    else:
        error, df = ours.std * sqrt(1 / seeds + 1 / ours.n), ours.n - 1
        if published.std is not None and seeds > 1:
            variances = (ours.std**2 / ours.n, ours.n - 1), (published.std**2 / seeds, seeds - 1)
            error, df = sqrt(sum(variance for variance, _ in variances)), satterthwaite(*variances)
        inner, outer = (quantile(level, df) * error + published.unit / 2 for level in (0.95, 0.99))
    off = ours.mean - published.value
    name = CLOSE if abs(off) <= outer + SLACK else HIGHER if off > 0 else LOWER
    return Verdict(
        REPRODUCED if abs(off) <= inner + SLACK else name, ours.mean - inner, ours.mean + inner
    )


def two_sided(difference: float, *parts: tuple[float, float]) -> float:
    """Two-sided p of a difference with a variance of parts, as of `satterthwaite`; a mere
    rounding error is none."""
    from scipy.special import stdtr

    variance = sum(part for part, _ in parts)
    if abs(difference) <= SLACK or variance == 0:
        return float(abs(difference) <= SLACK)
    return 2 * float(stdtr(satterthwaite(*parts), -abs(difference) / sqrt(variance)))


def holm(p_values: list[float]) -> list[float]:
    """p-values adjusted by Holm's method, in the order of the input."""
    order = np.argsort(p_values, kind="stable")
    times = np.arange(len(p_values), 0, -1)  # the smallest p by the number of tests, and so on
    adjusted = np.maximum.accumulate(np.minimum(1.0, times * np.take(p_values, order)))
    return adjusted[np.argsort(order)].tolist()
