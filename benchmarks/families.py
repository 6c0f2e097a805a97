"""How often the published questions find a difference that does not exist.

Simulated are the error rates of every family of comparisons of a scale, and of the sets of best
rows, under the complete null.

All rows of a family are drawn with the same mean. They have a deviation over seeds as the real rows
have it, and an error over test items from the published replicates, joint over rows and columns. A
family errs if any comparison is significant after its correction. A set of best rows errs if it
leaves out the first row. 5 % are intended for both.

    python benchmarks/families.py [--scale mini] [--draws 4000] [--quick]
"""

import argparse
import time
from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.plan import targets
from csebench.plan.schema.paper import Column, Family, SettingsTable
from csebench.report.numbers import compare, estimates
from csebench.report.numbers.cells import Cell, GridView, grid_view
from csebench.report.numbers.estimates import Estimate
from csebench.report.numbers.stats import LEVEL

SEED = 0
SMALLEST = 1e-300  # keeps divisors above 0


class ErrorRate(NamedTuple):
    """How often a family, or a set of best rows, errs."""

    count: int  # of comparisons, or of rows
    seeds: int
    share: float  # of the draws


class TestedPair(NamedTuple):
    """Two rows that a question compares, by index, with their difference in the real scores."""

    row: int
    against: int
    columns: list[int]
    estimate: Estimate


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--draws", type=int, default=4000, help="draws per line")
    parser.add_argument("--quick", action="store_true", help="50 draws of one table")
    args = parser.parse_args()
    draws = 50 if args.quick else args.draws
    rng = np.random.default_rng(SEED)
    started = time.perf_counter()

    families: list[list] = []
    best: list[list] = []
    for paper_name, name in bar(simulated_grids(args.scale, args.quick), "simulating", "table"):
        view = grid_view(paper_name, name, args.scale)
        if isinstance(view.grid, SettingsTable):
            continue
        label = f"{paper_name}/{name}"
        for family in view.grid.compare:
            rate = family_error(rng, view, family, draws)
            if rate is not None:
                families.append([label, family.question, *rate])
        for index in compare.summary_columns(view):
            column = view.score_grid.columns[index]
            rate = best_error(rng, view, column, draws)
            if rate is not None:
                best.append([label, column.label, *rate])

    head = ["table", "question", "comparisons", "seeds", "error rate"]
    print(tabulate(families, head, floatfmt=".3f"), "\n")
    print(tabulate(best, ["table", "column", "rows", "seeds", "error rate"], floatfmt=".3f"))
    print_summary("families", families)
    print_summary("sets of best rows", best)
    print(f"{draws} draws per line, seed {SEED}; {time.perf_counter() - started:.0f} s")


def simulated_grids(scale: str, is_quick: bool) -> list[tuple[str, str]]:
    """List the tables and figures on the pages of a scale; one of them for a quick run."""
    if is_quick:
        return [("micse", "table2")]
    grids: dict[tuple[str, str], None] = {}  # as an ordered set
    for page in targets.pages(scale):
        grids |= dict.fromkeys(page.grids())
    return list(grids)


def print_summary(name: str, rows: list[list]) -> None:
    rates = [row[-1] for row in rows]
    if rates:
        text = f"{np.median(rates):.3f} in the median, {max(rates):.3f} at most"
        print(f"\n{len(rows)} {name}: error rate {text}; 0.05 are intended")


# ---------------------------------------------------------------- families of comparisons


def family_error(rng, view: GridView, family: Family, draws: int) -> ErrorRate | None:
    """Simulate a family of equal rows, and count the draws with a significant comparison.

    Returns:
        None if the comparisons are not tested over seeds and items.
    """
    tested = tested_pairs(view, family)
    if not tested or any(pair.estimate.item_se is None for pair in tested):
        return None
    n = min(pair.estimate.seeds for pair in tested)
    deviation = float(np.median([pair.estimate.seed_sd for pair in tested]))

    runs = {}  # by row and columns
    signs = {}  # by the digest of test items
    p_of_comparisons = []
    for row, against, columns, estimate in tested:
        # over seeds
        for index in (row, against):
            if (index, *columns) not in runs:
                (runs[index, *columns],) = draw_rows(rng, 1, n, deviation, draws)
        difference = runs[row, *columns] - runs[against, *columns]

        # over test items
        pairs = compare.runnable_pairs(view, row, against, columns)
        effects = estimates.item_effects(estimates.weighted(pairs), view.scale)
        effect = 0.0
        for items, replicates in effects.items():
            # Signs are drawn for every comparison, so that the random numbers after them stay the
            # same. Only the first signs of the items count: items are joint over comparisons.
            signs.setdefault(items, draw_signs(rng, draws, len(replicates)))
            effect = effect + signs[items] @ replicates

        p = p_values(difference.mean(1), difference.var(1, ddof=1), n, effect, estimate.item_se)
        p_of_comparisons.append(p)
    smallest = np.min(p_of_comparisons, 0)  # if Holm's correction rejects any, it rejects this one
    share = float(np.mean(smallest * len(tested) < LEVEL))
    return ErrorRate(len(tested), n, share)


def tested_pairs(view: GridView, family: Family) -> list[TestedPair]:
    """Find the comparisons of a question that are tested and have a deviation over seeds."""
    tested = []
    for row, against in compare.row_pairs(view, family):
        for columns in compare.column_groups(view, family):
            comparison = compare.compare(view, row, against, columns)
            estimate = comparison.estimate
            if comparison.p is not None and estimate is not None and estimate.seed_sd:
                tested.append(TestedPair(row, against, columns, estimate))
    return tested


def p_values(seeds_mean, seeds_variance, n: int, item_effect, item_se: float) -> np.ndarray:
    """Compute the (draws,) two-sided p of a comparison.

    Estimate in csebench/report/numbers/estimates.py computes the same, for one draw.
    """
    seeds_part = seeds_variance / n
    variance = seeds_part + item_se**2
    df = degrees_of_freedom(variance, seeds_part, n)
    error = np.sqrt(np.maximum(variance, SMALLEST))
    return 2 * stdtr(df, -np.abs(seeds_mean + item_effect) / error)


# ---------------------------------------------------------------- sets of best rows


def best_error(rng, view: GridView, column: Column, draws: int) -> ErrorRate | None:
    """Simulate equal rows, and count the draws in which the best rows leave out the first one.

    Returns:
        None if fewer than two rows are ranked, or scores have no replicates.
    """
    cells = ranked_cells(view, column)
    if len(cells) < 2:
        return None
    n = min(len(cell.values) for cell in cells)
    deviation = float(np.median([cell.ours.std for cell in cells]))
    effects = [estimates.item_effects([(100 / cell.factor, cell)], view.scale) for cell in cells]
    if None in effects:
        return None

    runs = draw_rows(rng, len(cells), n, deviation * sqrt(2), draws)
    signs = {}  # by the digest of test items
    for effects_of_cell in effects:
        for items, replicates in effects_of_cell.items():
            signs[items] = draw_signs(rng, draws, len(replicates))

    first_is_left_out = np.zeros(draws, dtype=bool)
    for other in range(1, len(cells)):
        difference = runs[other] - runs[0]
        effect = 0.0
        item_variance = 0.0
        for items in effects[0]:
            replicates = effects[other][items] - effects[0][items]
            effect = effect + signs[items] @ replicates
            item_variance = item_variance + replicates.var()
        seeds_part = difference.var(1, ddof=1) / n
        variance = seeds_part + item_variance
        df = degrees_of_freedom(variance, seeds_part, n)
        bound = stdtrit(df, 1 - LEVEL / (len(cells) - 1)) * np.sqrt(variance)
        first_is_left_out |= difference.mean(1) + effect > bound
    return ErrorRate(len(cells), n, float(first_is_left_out.mean()))


def ranked_cells(view: GridView, column: Column) -> list[Cell]:
    """List the cells of a column that are ranked and have several seeds."""
    cells = []
    for index, cell in enumerate(view.column(column.label)):
        is_ranked = cell.is_comparable and compare.block(view, index) is not None
        if is_ranked and len(cell.values) > 1:
            cells.append(cell)
    return cells


# ---------------------------------------------------------------- draws


def draw_rows(rng, count: int, n: int, deviation: float, draws: int) -> np.ndarray:
    """Draw the (rows, draws, n) scores of equal rows over seeds.

    Args:
        deviation: of the difference of two rows.
    """
    return deviation / sqrt(2) * rng.standard_normal((count, draws, n))


def draw_signs(rng, draws: int, replicates: int) -> np.ndarray:
    """Draw weights of replicates: a weighted sum has the deviation of the replicates."""
    return rng.standard_normal((draws, replicates)) / sqrt(replicates)


def degrees_of_freedom(variance: np.ndarray, seeds_part: np.ndarray, n: int) -> np.ndarray:
    """Compute Satterthwaite's degrees of freedom, if only the part over seeds is estimated."""
    return variance**2 / np.maximum(seeds_part**2 / (n - 1), SMALLEST)


if __name__ == "__main__":
    main()
