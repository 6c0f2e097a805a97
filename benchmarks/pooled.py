"""How often the ranges of pooled sources hold what they should: 95 % is intended.

The true mean of a made-up source is a draw around the mean of all sources, and its runs are draws
around its own mean. Counted is how often the interval of the mean holds the mean of all sources,
and how often the range of a new run holds one run of a new source. Beside them stands the interval
of the mean if sources are weighted by precision (DerSimonian and Laird, with Hartung and Knapp's
error), which pool_sources does not do.

    python benchmarks/pooled.py [--draws 4000] [--quick]
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.report.numbers.random_effects import cochran_q, pool_sources
from csebench.report.numbers.stats import LEVEL, PlausibleRange, quantile, summarise

SEED = 0
WITHIN = 1.0  # deviation between runs of one source
SIZES = [  # runs of each source
    (50, 1, 1),
    (50, 1, 1, 1),
    (5, 5, 5, 5, 5),
    (50, 2, 2, 1, 1),
    (50, 3, 2, 2, *[1] * 10),
]


class Case(NamedTuple):
    """How the scores of sources come about."""

    sizes: tuple[int, ...]
    tau: float  # deviation between the true means of sources, with WITHIN as the unit


class Coverage(NamedTuple):
    """Shares of draws in which a range holds its value."""

    mean: float
    mean_by_precision: float
    new_run: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4000, help="made-up pools per line")
    parser.add_argument("--quick", action="store_true", help="50 pools of the first case")
    args = parser.parse_args()
    draws = 50 if args.quick else args.draws
    cases = [Case(sizes, tau) for sizes in SIZES for tau in (0.0, 0.5, 1.0, 2.0)]
    if args.quick:
        cases = cases[:1]
    started = time.perf_counter()
    lines = []
    for case in bar(cases, "cases"):
        coverage = coverage_of(case, draws)
        sizes = ", ".join(map(str, case.sizes))
        lines.append([sizes, case.tau, *(f"{share:.1%}" for share in coverage)])
    head = ["runs of sources", "tau", "mean", "mean by precision", "new run"]
    print(tabulate(lines, head, disable_numparse=True))
    print(f"{draws} draws per line, {time.perf_counter() - started:.0f} s")


def coverage_of(case: Case, draws: int) -> Coverage:
    """Count how often the ranges hold their values. The mean of all sources is 0."""
    generator = np.random.default_rng(SEED)
    held = np.zeros(3)
    for _ in range(draws):
        sources = []
        for size in case.sizes:
            true_mean = generator.normal(0, case.tau)
            sources.append(summarise(generator.normal(true_mean, WITHIN, size)))
        new_run = generator.normal(generator.normal(0, case.tau), WITHIN)
        effects = pool_sources(sources)
        assert effects is not None  # the first source has several runs
        means = np.array([source.mean for source in sources])
        variances = effects.within**2 / np.array(case.sizes)
        held += [
            effects.mean_range.encloses(0),
            range_by_precision(means, variances).encloses(0),
            effects.new_source_range(LEVEL).encloses(new_run),
        ]
    return Coverage(*(held / draws))


def range_by_precision(means: np.ndarray, variances: np.ndarray) -> PlausibleRange:
    """Compute the 95 % range of the mean with weights by precision.

    Args:
        means: (k,) mean of each source.
        variances: (k,) variance of each mean.
    """
    df = len(means) - 1
    weights = 1 / variances
    scale = weights.sum() - (weights**2).sum() / weights.sum()
    tau_squared = max(0.0, (cochran_q(means, variances) - df) / scale)
    weights = 1 / (variances + tau_squared)
    mean = weights @ means / weights.sum()
    error = np.sqrt(weights @ (means - mean) ** 2 / df / weights.sum())
    half = quantile(1 - LEVEL, df) * error
    return PlausibleRange(mean - half, mean + half)


if __name__ == "__main__":
    main()
