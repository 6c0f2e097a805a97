"""How often published questions find a difference that is not there: the error rate of every family
of comparisons of a scale, and of the sets of best rows, under the complete null.

All rows of a family are drawn with the same mean: a deviation over seeds as its rows have it, and
an error over test items that the published replicates give, joint over rows and columns. A family
errs if any comparison is significant after its correction, a set of best rows if it leaves out the
first row; 5 % are intended for both.

    python benchmarks/families.py [--scale mini] [--draws 4000] [--quick]
"""

import argparse
import time
from math import sqrt

import numpy as np
from scipy.special import stdtr, stdtrit
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.plan import targets
from csebench.plan.schema.paper import SettingsTable
from csebench.report.numbers import compare, estimates
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.stats import LEVEL

SEED = 0


def p_values(seeds_mean, seeds_variance, n, item_effect, item_se):
    """(draws,) two-sided p of a comparison, as Estimate in
    csebench/report/numbers/estimates.py computes it."""
    parts = seeds_variance / n
    variance = parts + item_se**2
    df = variance**2 / np.maximum(parts**2 / (n - 1), 1e-300)
    return 2 * stdtr(df, -np.abs(seeds_mean + item_effect) / np.sqrt(np.maximum(variance, 1e-300)))


def draw_rows(rng, count, n, deviation, draws):
    """(rows, draws, n) scores of equal rows over seeds; the difference of two has the deviation."""
    return deviation / sqrt(2) * rng.standard_normal((count, draws, n))


def family_error(rng, view, family, draws):
    """(share of draws in which a family of equal rows has a significant comparison, comparisons,
    seeds); None where they are not tested over seeds and items."""
    pairs = [
        (*rows, columns)
        for rows in compare.row_pairs(view, family)
        for columns in compare.column_groups(view, family)
    ]
    tested = [
        (pair, c)
        for pair in pairs
        if (c := compare.compare(view, *pair)).p is not None and c.estimate.seed_sd
    ]
    if not tested or any(c.estimate.item_se is None for _, c in tested):
        return None
    n = min(c.estimate.seeds for _, c in tested)
    deviation = float(np.median([c.estimate.seed_sd for _, c in tested]))
    runs, signs, ps = {}, {}, []
    for (row, against, columns), c in tested:
        for index in (row, against):
            if (index, *columns) not in runs:
                (runs[index, *columns],) = draw_rows(rng, 1, n, deviation, draws)
        difference, effect = runs[row, *columns] - runs[against, *columns], 0.0
        cells = [(view.rows[row][i], view.rows[against][i]) for i in columns]
        cells = [pair for pair in cells if all(cell.can_be_run for cell in pair)]
        effects = estimates.item_effects(estimates.weighted(cells), view.scale)
        for items, replicates in effects.items():
            signs.setdefault(
                items, rng.standard_normal((draws, len(replicates))) / sqrt(len(replicates))
            )
            effect = effect + signs[items] @ replicates
        ps.append(
            p_values(difference.mean(1), difference.var(1, ddof=1), n, effect, c.estimate.item_se)
        )
    smallest = np.min(ps, 0)  # Holm's correction rejects none if not this one
    return float(np.mean(smallest * len(ps) < LEVEL)), len(ps), n


def best_error(rng, view, column, draws):
    """The share of draws in which the set of best rows leaves out the first of equal rows."""
    cells = [
        cell
        for i, cell in enumerate(view.column(column.label))
        if cell.is_comparable and compare.block(view, i) is not None and len(cell.values) > 1
    ]
    if len(cells) < 2:
        return None
    n, deviation = (
        min(len(cell.values) for cell in cells),
        float(np.median([cell.ours.std for cell in cells])),
    )
    effects = [estimates.item_effects([(100 / cell.factor, cell)], view.scale) for cell in cells]
    if None in effects:  # no replicates
        return None
    runs = draw_rows(rng, len(cells), n, deviation * sqrt(2), draws)
    signs = {
        items: rng.standard_normal((draws, len(r))) / sqrt(len(r))
        for e in effects
        for items, r in e.items()
    }
    out = np.zeros(draws, dtype=bool)
    for other in range(1, len(cells)):
        difference, effect, item_variance = runs[other] - runs[0], 0.0, 0.0
        for items in effects[0]:
            replicates = effects[other][items] - effects[0][items]
            effect, item_variance = (
                effect + signs[items] @ replicates,
                item_variance + replicates.var(),
            )
        parts = difference.var(1, ddof=1) / n
        variance = parts + item_variance
        df = variance**2 / np.maximum(parts**2 / (n - 1), 1e-300)
        bound = stdtrit(df, 1 - LEVEL / (len(cells) - 1)) * np.sqrt(variance)
        out |= difference.mean(1) + effect > bound
    return float(out.mean()), len(cells), n


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--draws", type=int, default=4000, help="draws per line")
    parser.add_argument("--quick", action="store_true", help="50 draws of one table")
    args = parser.parse_args()
    draws, rng, started = (
        50 if args.quick else args.draws,
        np.random.default_rng(SEED),
        time.perf_counter(),
    )
    grids = [("micse", "table2")] if args.quick else []
    grids = grids or list(
        dict.fromkeys(grid for page in targets.pages(args.scale) for grid in page.grids())
    )
    families, best = [], []
    for grid in bar(grids, "simulating", "table"):
        view = grid_view(*grid, args.scale)
        if isinstance(view.grid, SettingsTable):
            continue
        for family in view.grid.compare:
            if (rate := family_error(rng, view, family, draws)) is not None:
                families.append(["/".join(grid), family.question, rate[1], rate[2], rate[0]])
        for column in (view.score_grid.columns[i] for i in compare.summary_columns(view)):
            if (rate := best_error(rng, view, column, draws)) is not None:
                best.append(["/".join(grid), column.label, rate[1], rate[2], rate[0]])
    print(
        tabulate(
            families, ["table", "question", "comparisons", "seeds", "error rate"], floatfmt=".3f"
        ),
        "\n",
    )
    print(tabulate(best, ["table", "column", "rows", "seeds", "error rate"], floatfmt=".3f"))
    for what, rows in (("families", families), ("sets of best rows", best)):
        rates = [row[-1] for row in rows]
        if rates:
            text = f"{np.median(rates):.3f} in the median, {max(rates):.3f} at most"
            print(f"\n{len(rows)} {what}: error rate {text}; 0.05 are intended")
    print(f"{draws} draws per line, seed {SEED}; {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
