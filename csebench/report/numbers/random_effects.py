"""Pool the runs of several sources with a random-effects model.

The mean of a source is a draw around the mean of all sources, and a run is a draw around the mean
of its source. The model gives the deviations within and between sources, and the range of a run of
a new source. Which runs are pooled, others.py decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from csebench.plan.schema.paper import Published
from csebench.report.numbers import stats
from csebench.report.numbers.stats import PlausibleRange, Summary, VariancePart

# With two sources, the 95 % range is wider than 12 deviations and says nothing.
SOURCES_NEEDED = 3


@dataclass(frozen=True)
class RandomEffects:
    """What the runs of several sources say together, in the units of the runs."""

    sources: int
    mean: float  # of the sources' means; each source counts the same
    error: float  # standard error of `mean`
    tau: float  # deviation between the true means of sources
    within: float  # deviation between runs of one source
    within_df: int  # degrees of freedom of `within`
    q: float  # Cochran's Q, which is sources - 1 on average if tau is 0
    p: float  # of Q: chance of such a large Q if tau is 0

    @property
    def run_deviation(self) -> float:
        """Deviation between runs of different sources."""
        return sqrt(self.tau**2 + self.within**2)

    @property
    def mean_range(self) -> PlausibleRange:
        """Compute the range of the mean of all sources, at 95 %."""
        half = stats.quantile(1 - stats.LEVEL, self.sources - 1) * self.error
        return PlausibleRange(self.mean - half, self.mean + half)

    def scaled(self, factor: float) -> "RandomEffects":
        """Convert to other units: multiply means and deviations by `factor`."""
        return replace(
            self,
            mean=factor * self.mean,
            error=factor * self.error,
            tau=factor * self.tau,
            within=factor * self.within,
        )

    def new_source_range(self, level: float, runs: int = 1) -> PlausibleRange:
        """Compute the range that holds the mean of `runs` runs of a new source.

        Its confidence is 1 - level. It is mean ± t(k-1) · √(error² + tau² + within²/runs) for k
        sources: the prediction interval of Higgins, Thompson and Spiegelhalter (2009, "A
        re-evaluation of random-effects meta-analysis", J. R. Stat. Soc. A 172) with the runs' own
        variance added. They take k-2 degrees of freedom. With k-1, the range already holds more
        than 95 % (benchmarks/pooled.py).
        """
        prediction_error = sqrt(self.error**2 + self.tau**2 + self.within**2 / runs)
        half = stats.quantile(1 - level, self.sources - 1) * prediction_error
        return PlausibleRange(self.mean - half, self.mean + half)

    def verdict(self, printed: Published, seeds: int, point: float = 1.0) -> stats.Verdict:
        """Judge whether a printed value is a plausible result of a new source.

        Args:
            seeds: number of runs that the printed value is a mean of.
            point: a point (0.01 of a score) in the units of the runs.
        """
        inner = self.new_source_range(stats.LEVEL, seeds).widened(printed.unit / 2)
        outer = self.new_source_range(stats.OUTER_LEVEL, seeds).widened(printed.unit / 2)
        return stats.verdict_in(self.mean - printed.value, printed, inner, outer, point)


def pool_sources(sources: Sequence[Summary]) -> RandomEffects | None:
    """Pool the runs of several sources.

    Every source counts the same, however many runs it has. With weights by precision, a source of
    50 runs has nearly all weight if tau is estimated as 0, which often happens with few sources.
    Then 95 % intervals of the mean hold too little, also those of Hartung and Knapp (Röver, Knapp
    and Friede 2015, "Hartung-Knapp-Sidik-Jonkman approach and its modification for random-effects
    meta-analysis with few studies", BMC Med. Res. Methodol. 15). With equal weights, their interval
    is Student's t on the means, which holds 95 % (benchmarks/pooled.py).

    All sources share one deviation between runs, because two or three runs say little about their
    own. So a source with one run, or without a stated deviation, can be pooled.

    Args:
        sources: number, mean and deviation of the runs of each source.

    Returns:
        None if there are fewer than SOURCES_NEEDED sources, or if no deviation within a source is
        known.
    """
    within = within_variance(sources)
    if len(sources) < SOURCES_NEEDED or within is None:
        return None
    from scipy.special import fdtrc  # upper tail of F

    variance, df = within
    means = np.array([source.mean for source in sources])
    variances = np.array([variance / source.n for source in sources])  # of the means
    q = cochran_q(means, variances)
    between_df = len(sources) - 1
    return RandomEffects(
        sources=len(sources),
        mean=float(means.mean()),
        error=float(means.std(ddof=1)) / sqrt(len(sources)),
        tau=sqrt(between_variance(means, variances)),
        within=sqrt(variance),
        within_df=int(df),
        q=q,
        # With a shared variance, Q / df is the F of an analysis of variance.
        p=float(fdtrc(between_df, df, q / between_df)),
    )


def within_variance(sources: Sequence[Summary]) -> VariancePart | None:
    """Compute the variance of runs around the means of their sources, with degrees of freedom.

    Returns:
        None if no source states a deviation, or if all deviations are 0.
    """
    squares = 0.0
    df = 0
    for source in sources:
        if source.std is not None:
            squares += (source.n - 1) * source.std**2
            df += source.n - 1
    if squares == 0:
        return None
    return squares / df, df


def between_variance(means: np.ndarray, variances: np.ndarray) -> float:
    """Estimate tau², the variance between the true means of sources.

    It is the variance of the means minus the average variance that they have from their own runs,
    and at least 0: the estimator of Hedges (1983, "A random effects model for effect sizes",
    Psychol. Bull. 93), which goes back to Cochran (1954, "The combination of estimates from
    different experiments", Biometrics 10).

    Args:
        means: (k,) mean of each source.
        variances: (k,) variance of each mean.
    """
    return max(0.0, float(means.var(ddof=1) - variances.mean()))


def cochran_q(means: np.ndarray, variances: np.ndarray) -> float:
    """Compute Cochran's Q: squared distances of means from their weighted mean, over variances.

    Args:
        means: (k,) mean of each source.
        variances: (k,) variance of each mean.
    """
    weights = 1 / variances
    weighted_mean = weights @ means / weights.sum()
    return float(weights @ (means - weighted_mean) ** 2)
