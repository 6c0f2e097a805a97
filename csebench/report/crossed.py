"""Shares of variance from a crossed design: blocks in which two seeds of every source meet in every combination.

Numbers in, numbers out; the design is in csebench/plan/variance.py, the page in csebench/report/variance_page.py.

Sums and differences over the two seeds of each of S sources, divided by √2, turn a block of 2^S scores into 2^S
contrasts that are independent under a random-effects model. A contrast has the subset v of sources over which it takes
differences; its mean square over blocks has the expectation Σ 2^(S-|u|) σ²_u over the effects u that include v.
"""

from __future__ import annotations

from itertools import product
from math import sqrt
from typing import NamedTuple

import numpy as np

from csebench.report.stats import LEVEL, satterthwaite


class Share(NamedTuple):
    """A share of the variance over all sources, with its interval at 95 %."""

    value: float
    low: float
    high: float


class MeanSquares(NamedTuple):
    """Of the contrasts of a design with S sources; the contrast without a difference is that of the blocks' means."""

    values: np.ndarray  # (2,) * S
    df: np.ndarray  # (2,) * S

    def pool(self, where: np.ndarray) -> tuple[float, float]:
        """The sum of some mean squares, and its degrees of freedom."""
        values = self.values[where]
        return float(values.sum()), min(satterthwaite(*zip(values, self.df[where], strict=True)), self.df[where].sum())


def mean_squares(scores: np.ndarray) -> MeanSquares:
    """Of the contrasts of scores (B, 2, …, 2): B blocks, two seeds of each source. B is at least 2."""
    blocks = len(scores)
    contrasts = scores
    for axis in range(1, scores.ndim):
        first, second = np.split(contrasts, 2, axis=axis)
        contrasts = np.concatenate([first + second, first - second], axis=axis) / sqrt(2)
    values, df = np.square(contrasts).mean(0), np.full(contrasts.shape[1:], float(blocks))
    nothing = (0,) * values.ndim
    values[nothing], df[nothing] = contrasts[(slice(None), *nothing)].var(ddof=1), blocks - 1
    return MeanSquares(values, df)


def total_deviation(squares: MeanSquares) -> Share:
    """The standard deviation where all sources vary, with its interval."""
    from scipy.special import chdtri

    total, df = squares.pool(np.ones_like(squares.values, bool))
    variance = total / squares.values.size
    low, high = (variance * df / chdtri(df, p) for p in (LEVEL / 2, 1 - LEVEL / 2))
    return Share(sqrt(variance), sqrt(low), sqrt(high))


def share_alone(squares: MeanSquares, source: int) -> Share:
    """The variance that is left where only one source varies, on average over the seeds of the others; by an F
    interval for the ratio of the contrasts with and without that source."""
    from scipy.special import fdtri

    differs = np.moveaxis(_differs(squares), 0, -1)[..., source]
    (of_source, df1), (of_rest, df2) = squares.pool(differs), squares.pool(~differs)
    if not of_rest:
        return Share(*(1.0 if of_source else 0.0,) * 3)
    ratio, upper = of_source / of_rest, 1 - LEVEL / 2
    ratios = (ratio, ratio / fdtri(df1, df2, upper), ratio * fdtri(df2, df1, upper))
    return Share(*(min(1.0, 2 * r / (1 + r)) for r in ratios))


def _differs(squares: MeanSquares) -> np.ndarray:
    """(S, 2, …, 2): whether each contrast takes differences over each source."""
    shape = squares.values.shape
    return np.array(list(product((False, True), repeat=len(shape)))).T.reshape(len(shape), *shape)
