"""How often a comparison over random settings finds a difference that does not exist.

Both rows of a made-up comparison have the same distribution. A setting moves both rows together,
each row has noise of its own at each setting, and some settings diverge: they count as the
untrained encoder. STS-B dev follows the score with noise. Two errors are counted, of which 5 % are
intended: that of the mean over settings, and that of the best of several settings by dev.

    python benchmarks/over_settings.py [--draws 4000] [--quick]
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.report.numbers.estimates import Estimate
from csebench.report.numbers.over_settings import MOST_PICKED_FROM, Candidates, estimate_of_best
from csebench.report.numbers.stats import LEVEL

SEED = 0
UNTRAINED = -15.0  # points: what a diverged run loses against a usual one


class Case(NamedTuple):
    """How the scores of two rows come about, in points."""

    settings: int
    shared: float  # deviation of what a setting does to both rows
    own: float  # deviation of what a setting does to one row
    diverging: float  # share of the runs of a row


CASES = [
    Case(settings, shared, own, diverging)
    for settings in (8, 16, 24, 48)
    for shared, own, diverging in ((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (2.0, 0.5, 0.1))
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=4000, help="made-up comparisons per line")
    parser.add_argument("--quick", action="store_true", help="50 comparisons of the first case")
    args = parser.parse_args()
    draws = 50 if args.quick else args.draws
    cases = CASES[:1] if args.quick else CASES
    started = time.perf_counter()
    lines = []
    for case in bar(cases, "cases"):
        of_mean, of_best = error_rates(case, draws)
        count = min(MOST_PICKED_FROM, case.settings // 3)
        row = [case.settings, case.shared, case.own, f"{case.diverging:.0%}"]
        lines.append([*row, f"{of_mean:.1%}", count, f"{of_best:.1%}"])
    head = ["settings", "shared", "own", "diverging", "mean errs", "best of", "best errs"]
    print(tabulate(lines, head, disable_numparse=True))
    print(f"{draws} made-up comparisons a line, {time.perf_counter() - started:.0f} s.")


def error_rates(case: Case, draws: int) -> tuple[float, float]:
    """Return the share of made-up comparisons that find a difference: in the mean, in the best."""
    rng = np.random.default_rng(SEED)
    count = min(MOST_PICKED_FROM, case.settings // 3)
    of_mean = 0
    of_best = 0
    for _ in range(draws):
        shared = rng.normal(0, case.shared, case.settings)
        own = made_up_row(case, shared, rng)
        other = made_up_row(case, shared, rng)
        gains = own.values - other.values
        mean = Estimate(float(gains.mean()), case.settings, float(gains.std(ddof=1)), None)
        of_mean += is_significant(mean)
        of_best += is_significant(estimate_of_best(count, own, other))
    return of_mean / draws, of_best / draws


def made_up_row(case: Case, shared: np.ndarray, rng: np.random.Generator) -> Candidates:
    """Make up the scores of a row on the test sets and on dev."""
    values = shared + rng.normal(0, case.own, case.settings)
    diverges = rng.random(case.settings) < case.diverging
    values = np.where(diverges, UNTRAINED, values)
    dev = values + rng.normal(0, 0.5, case.settings)
    return Candidates(dev, values)


def is_significant(estimate: Estimate) -> bool:
    p = estimate.p()
    assert p is not None  # there are several settings
    return p < LEVEL


if __name__ == "__main__":
    main()
