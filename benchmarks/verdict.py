"""Error rates of the verdict on a published value, by simulation.

Our values and the published ones are drawn from the same distribution, then from distributions whose means are 1, 2
and 4 standard deviations apart. With equal means every verdict but `reproduced` is a false alarm; 5 % are intended. A
published mean is over five runs, with their deviation. Published numbers are rounded to two digits.

    python benchmarks/verdict.py [--draws 20000] [--quick]
"""

import argparse
import time
from itertools import product

import numpy as np
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.plan.papers import Published
from csebench.report import stats

SEED = 0
MEAN, DEVIATION = 78.0, 0.5  # of a run, in printed units
PUBLISHED = {"one run": 1, "mean ± std of 5": 5}
SPREADS = {  # of deviation 1
    "normal": lambda rng, size: rng.standard_normal(size),
    "t, 3 df": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
}
OFF = (0, 1, 2, 4)  # deviations of a seed
NAMES = (stats.REPRODUCED, stats.CLOSE, stats.LOWER, stats.HIGHER)


def printed(runs):
    """One run, or the mean of several with their deviation."""
    value = round(float(runs.mean()), 2)
    std = round(float(runs.std(ddof=1)), 2) if len(runs) > 1 else None
    return Published(value=value, std=std, text=f"{value:.2f}")


def rates(rng, spread, ours, theirs, off, draws):
    """Fraction of each verdict; `ours` and `theirs` are numbers of runs."""
    runs = MEAN + DEVIATION * SPREADS[spread](rng, (draws, ours + theirs))
    runs[:, ours:] += off * DEVIATION
    verdicts = [stats.verdict(draw[:ours], printed(draw[ours:]), theirs).name for draw in runs]
    return [verdicts.count(name) / draws for name in NAMES]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20_000, help="draws per line")
    parser.add_argument("--quick", action="store_true", help="200 draws per line")
    args = parser.parse_args()
    draws, rng, started = 200 if args.quick else args.draws, np.random.default_rng(SEED), time.perf_counter()
    lines = [*product(OFF, PUBLISHED, SPREADS, (3, 5, 10))]
    rows = [
        [off, kind, spread, ours, *rates(rng, spread, ours, PUBLISHED[kind], off, draws)]
        for off, kind, spread, ours in bar(lines, "simulating", "line")
    ]
    head = ["deviations off", "published", "spread", "seeds", *NAMES]
    print(tabulate(rows, head, floatfmt=".3f"))
    print(f"\n{draws} draws per line, seed {SEED}; one standard error is at most {0.5 / draws**0.5:.4f}", end="; ")
    print(f"{time.perf_counter() - started:.0f} s")
    alarms = [1 - row[4] for row in rows if row[0] == 0]
    print(f"false alarms: {min(alarms):.3f} to {max(alarms):.3f}, 0.05 are intended")


if __name__ == "__main__":
    main()
