"""What the tests of a table with scores can show: for every pair of rows the smallest true difference that its test
detects, and how many seeds half a point and a point need.

The statistics are in csebench/report/power.py; which rows are tested, in csebench/report/compare.py; tables without
scores, in csebench/report/planned_power.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from math import inf
from statistics import median

from csebench.plan.papers import Column, SettingsTable
from csebench.report.cells import GridView, differences, is_comparable
from csebench.report.compare import compared_columns
from csebench.report.power import POWER, Design, seeds_needed, smallest_difference
from csebench.report.stats import LEVEL, summarise

POINTS = (0.5, 1.0)  # differences for which seeds are counted; a point is 0.01 of a score: 1 % or 1 of Spearman x 100


@dataclass(frozen=True)
class PairPower:
    """What the test between two rows of a column can show, in printed units."""

    column: str
    rows: frozenset[int]
    seeds: int
    design: Design
    smallest: float  # true difference detected with 80 % power at 0.05, before Holm's correction
    smallest_holm: float  # at the strictest level of Holm's correction, 0.05 / number of pairs
    tests: int  # that Holm's correction is over
    needed: tuple[float | None, ...]  # seeds for each of POINTS, before Holm's correction


def pair_powers(view: GridView) -> list[PairPower]:
    """Every pair of rows that the table tests, or could test over seeds alone; none for a table of settings."""
    if isinstance(view.grid, SettingsTable) or not view.rows:
        return []
    designs = list(pair_designs(view))
    tests = sum(len(comparison["pairs"]) for comparison in view.comparisons.values()) or len(designs)
    powers = []
    for column, rows, seeds, design in designs:
        unit = view.score_grid.column_factor(column) / 100
        smallest, holm = (smallest_difference(design, seeds, level) for level in (LEVEL, LEVEL / tests))
        needed = tuple(seeds_needed(points * unit, design) for points in POINTS)
        powers.append(PairPower(column.label, rows, seeds, design, smallest, holm, tests, needed))
    return powers


def pair_designs(view: GridView) -> Iterable[tuple[Column, frozenset[int], int, Design]]:
    """(column, rows, number of seeds, how their difference varies) of every pair that can be tested."""
    for column in compared_columns(view):
        stored = {frozenset((p["a"], p["b"])): p for p in view.comparisons.get(column.label, {"pairs": []})["pairs"]}
        cells = {i: cell for i, cell in enumerate(view.column(column.label)) if is_comparable(cell)}
        for a, b in combinations(cells, 2):
            by_seed = summarise(differences(cells[a], cells[b]))
            item_variance = stored.get(frozenset((a, b)), {}).get("item_variance")
            design = Design(by_seed.std, item_variance)
            if 0 < design.error(by_seed.n)[0] < inf:
                yield column, frozenset((a, b)), by_seed.n, design


def scored_text(view: GridView, pairs: list[PairPower]) -> str:
    """The smallest detectable differences of tested rows, and the seeds that a difference needs."""
    digits = max(view.score_grid.column_digits(column) for column in view.score_grid.columns)
    smallest = [pair.smallest for pair in pairs]
    counts = sorted({pair.seeds for pair in pairs})
    seeds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    items = sum(pair.design.item_variance is not None for pair in pairs)
    over = (
        "seeds and test items" if items == len(pairs) else "seeds, and items where known" if items else "seeds alone"
    )
    tested = f"paired over {over}, n = {seeds}"
    if len(pairs) == 1:
        text = (
            f"With {100 * POWER:.0f} % power the test of the one pair of rows ({tested}) detects a true difference of"
        )
        text += f" {smallest[0]:.{digits}f}."
    else:
        text = (
            f"With {100 * POWER:.0f} % power the test of the median pair of rows ({tested}) detects a true difference"
            f" of {median(smallest):.{digits}f} before Holm's correction ({min(smallest):.{digits}f} to"
            f" {max(smallest):.{digits}f} over {len(pairs)} pairs), and of"
            f" {median(pair.smallest_holm for pair in pairs):.{digits}f} at its strictest level,"
            f" {LEVEL:g}/{pairs[0].tests}."
        )
    before = " before the correction" if len(pairs) > 1 else ""
    factors = {view.score_grid.column_factor(column) for column in compared_columns(view)}
    point = "" if factors == {100} else " (a point is 0.01 of the score)"
    needs = "; ".join(f"{points:g} {'point' if points == 1 else 'points'}: {need}" for points, need in _needs(pairs))
    return (
        text
        + (f" Seeds needed{before}{point}: {needs}." if needs else "")
        + " The spreads of these runs are taken for the true ones."
    )


def _needs(pairs: list[PairPower]) -> Iterable[tuple[float, str]]:
    """`3 in the median pair, 12 at most` for each of POINTS; none where no spread over seeds is known."""
    for points, *counts in zip(POINTS, *(pair.needed for pair in pairs), strict=True):
        stated = [count for count in counts if count is not None]
        finite = [count for count in stated if count < inf]
        if not stated:
            continue
        few = f"{finite[0]:,.0f}" if len(finite) == 1 else ""
        if len(finite) > 1:
            few = f"{median(finite):,.0f} in the median pair, {max(finite):,.0f} at most"
        if never := len(stated) - len(finite):
            where = "" if never == len(pairs) else f" in {never} of {len(pairs)} pairs"
            few = f"no number is enough{where}, as test items alone vary too much" + (f"; else {few}" if few else "")
        yield points, few


def needed_label(seeds: float | None) -> str:
    """The number of seeds as text: `13`, `none` where no number is enough, `–` where it is not known."""
    return "–" if seeds is None else "none" if seeds == inf else f"{seeds:,.0f}"
