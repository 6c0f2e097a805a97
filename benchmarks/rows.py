"""How often the test between two rows of a table finds a difference that is not there, by simulation.

Differences of equal rows are drawn: one per seed, and their mean also varies over test items, whose variance is known.
The smaller levels are the strictest of Holm's correction over 6 and over 153 pairs.

    python benchmarks/rows.py [--draws 50000] [--quick]
"""

import argparse
import time

import numpy as np
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.report.stats import LEVEL, paired_difference

SEED = 0
SEEDS = (3, 5, 10)
RATIOS = (0.25, 1, 4)  # variance of the mean over test items / that over seeds
LEVELS = {"0.05": LEVEL, "0.05/6": LEVEL / 6, "0.05/153": LEVEL / 153}


def rates(rng, seeds, ratio, draws):
    """Fraction of draws that are significant at each level."""
    by_seed = rng.standard_normal((draws, seeds))
    by_items = np.sqrt(ratio / seeds) * rng.standard_normal((draws, 1))
    ps = np.array([paired_difference(draw, ratio / seeds).p for draw in by_seed + by_items])
    return [(ps < level).mean() for level in LEVELS.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=50_000, help="draws per line")
    parser.add_argument("--quick", action="store_true", help="200 draws per line")
    args = parser.parse_args()
    draws, rng, started = 200 if args.quick else args.draws, np.random.default_rng(SEED), time.perf_counter()
    lines = [(seeds, ratio) for seeds in SEEDS for ratio in RATIOS]
    rows = [[*line, *rates(rng, *line, draws)] for line in bar(lines, "simulating", "line")]
    print(tabulate(rows, ["seeds", "items / seeds", *LEVELS], floatfmt=("", "g", ".4f", ".4f", ".5f")))
    print(f"\n{draws} draws per line, seed {SEED}; {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
