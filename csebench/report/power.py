"""Power, before training: the smallest true difference that a test detects, and how many seeds a difference needs.

For the tests of csebench/report/compare.py (rows paired by seed, over seeds and test items), from spreads that are
known: of scores, printed, or of seeds that others have published.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt

from csebench.plan.catalog import paper_names
from csebench.report import claims
from csebench.report.cells import Cell, GridView, printed_view
from csebench.report.compare import answers, can_be_run
from csebench.report.printed_spread import single_run_variance
from csebench.report.stats import LEVEL, quantile, satterthwaite

POWER = 0.8  # the chance with which a "smallest difference" is detected
ITEM_ERROR = 0.18  # points: of a difference over test items, the median of the comparisons at scale mini
SHARES = (0.5, 1.0, 1.5)  # of ITEM_ERROR at which seeds are counted, as it is not known on another encoder
HEAD = ["table", "row", "against", "column", "difference", "sd", "known from", "seeds", "detects", "seeds needed"]
CLAIMS_HEAD = ["paper", "about", "claim", "row", "against", "column", "printed", "sd", "no item error"]
CLAIMS_HEAD += [f"item error {share * ITEM_ERROR:.2f}" for share in SHARES]
UNKNOWN = "no seeds are published"


@dataclass(frozen=True)
class Design:
    """What the difference of two rows varies by, in points."""

    std: float  # of the differences, one per seed
    item_variance: float = 0.0  # of the difference over test items, which more seeds do not reduce

    def error(self, seeds: int) -> tuple[float, float]:
        """Standard error over `seeds` seeds, and its degrees of freedom; infinite where nothing can be tested."""
        parts = [(self.item_variance, inf)] if self.item_variance else []
        if seeds > 1:
            parts.append((self.std**2 / seeds, seeds - 1))
        return (sqrt(sum(variance for variance, _ in parts)), satterthwaite(*parts)) if parts else (inf, 1)


def smallest_difference(design: Design, seeds: int, level: float = LEVEL, power: float = POWER) -> float:
    """The true difference that a two-sided test at `level` detects with a chance of `power`; infinite if none is."""
    error, df = design.error(seeds)
    return error * noncentrality(df, level, power)


def noncentrality(df: float, level: float = LEVEL, power: float = POWER) -> float:
    """True difference / standard error at which Student's t exceeds its two-sided threshold with a chance of `power`.

    The chance of a significant difference with the wrong sign is left out: below 1e-6 at a power of 0.8.

    >>> round(noncentrality(8), 2)
    3.2
    """
    from scipy.special import nctdtrinc, ndtri

    threshold = quantile(1 - level, df)
    return threshold + float(ndtri(power)) if df > 1e6 else float(nctdtrinc(df, 1 - power, threshold))


def seeds_needed(difference: float, design: Design, level: float = LEVEL, power: float = POWER) -> float:
    """The number of seeds of each row with which the test detects a true difference; infinite where the test items
    alone vary too much for any number."""
    if not difference or sqrt(design.item_variance) * noncentrality(inf, level, power) >= difference:
        return inf

    def are_enough(seeds: int) -> bool:
        return smallest_difference(design, seeds, level, power) <= difference

    high = 2
    while not are_enough(high):
        high *= 2
    return bisect_left(range(high), True, lo=2, key=are_enough)


def table_rows(views: Iterable[GridView], difference: float | None = None) -> list[list]:
    """What every declared comparison of rows that can be run will show, as under HEAD; seeds are counted for a
    difference in points, or for the printed one."""
    rows = []
    compared = [(of, c) for of in views for answer in answers(of) for c in answer.comparisons]
    for view, c in compared:
        labels = [column.label for column in view.score_grid.columns]
        column = labels.index(c.columns) if c.columns in labels else -1
        cells = [view.rows[view.score_grid.row(label)][column] for label in (c.row, c.against)]
        if not all(map(can_be_run, cells)):
            continue
        seeds = max(len(leaf.plan.specs) for cell in cells for leaf in cell.leaves)
        design, source = printed_design(*cells), "print, or others' seeds"
        if c.estimate is not None and c.estimate.seed_sd:
            design, source = Design(c.estimate.seed_sd, (c.estimate.item_se or 0.0) ** 2), "these scores"
        wanted = abs(difference if difference is not None else c.printed or 0.0)
        about = [f"{view.paper}/{view.name}", c.row, c.against, c.columns, f"{wanted:.2f}"]
        if design is None:
            rows.append([*about, "–", UNKNOWN, seeds, "–", "–"])
            continue
        smallest = smallest_difference(design, seeds)
        detects = "–" if smallest == inf else f"{smallest:.2f}"
        needed = seeds_text(seeds_needed(wanted, design))
        rows.append([*about, f"{design.std:.2f}", source, seeds, detects, needed])
    return rows


def printed_design(a: Cell, b: Cell) -> Design | None:
    """How the difference of two rows varies, from printed deviations or seeds that others published, in points."""
    first, second = run_variance(a), run_variance(b)
    return None if first is None or second is None else Design(sqrt(first + second))


def run_variance(cell: Cell) -> float | None:
    """Variance of one run of a printed cell, in squared points; None where it is not known."""
    unit = (100 / cell.factor) ** 2
    if cell.published is not None and cell.published.std is not None and cell.published_seeds > 1:
        return unit * cell.published.std**2
    variance = single_run_variance(cell, cell.plan.column.task or "Avg.").value
    return None if variance is None else unit * variance


def claim_rows() -> list[list]:
    """Whether each claim can be tested at all at the papers' own scale, as under CLAIMS_HEAD: the seeds that would
    show its printed difference, without an error over test items and with three sizes of it."""
    rows, stated = [], claims.stated_quotes("paper", paper_names())
    for name, claim in [(n, c) for n, _, of_quote in stated for c in of_quote if c.relation == "above"]:
        here, there = (printed_view(name, claim.places[index], "paper") for index in (0, -1))
        for versus, column, pairs in claims.pair_cells(claim, here, there):
            contrast = claims.contrast_printed(claim, here, versus, column, pairs)
            of_one = claim.statistic == "value" and len(pairs) == 1
            if isinstance(contrast, str) or not of_one or contrast.difference <= 0:
                continue
            points, design = contrast.difference * 100 / pairs[0][0].factor, printed_design(*pairs[0])
            seeds = ["–", *[UNKNOWN] * (1 + len(SHARES))]
            if design is not None:
                designs = [Design(design.std, (share * ITEM_ERROR) ** 2) for share in (0.0, *SHARES)]
                seeds = [f"{design.std:.2f}", *(seeds_text(seeds_needed(points, design)) for design in designs)]
            rows.append([name, claim.place, claim.quote, claim.row, versus, column, f"{points:+.2f}", *seeds])
    return rows


def seeds_text(seeds: float) -> str:
    """The number of seeds as text: `13`, `no number` where test items alone vary too much."""
    return "no number" if seeds == inf else f"{seeds:.0f}"
