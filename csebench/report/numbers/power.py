"""Power, before training: the smallest true difference that a test detects, and how many seeds a
difference needs.

For the tests of csebench/report/numbers/compare.py, from known spreads: of scores, printed, or of
seeds that others published.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain
from math import inf, sqrt

from csebench.plan.catalog.files import paper_names
from csebench.report.numbers import claims, compare, contrasts
from csebench.report.numbers.cells import Cell, GridView, printed_view
from csebench.report.numbers.printed_spread import add, row_variance
from csebench.report.numbers.stats import LEVEL, quantile

POWER = 0.8  # the chance with which a "smallest difference" is detected
ITEM_ERROR = 0.18  # assumed, in points: of a difference over test items
# of ITEM_ERROR at which seeds are counted, as it is not known on another encoder
SHARES = (0.0, 0.5, 1.0, 1.5)
POWER_COLUMNS = [
    "table",
    "row",
    "against",
    "column",
    "difference",
    "sd",
    "known from",
    "seeds",
    "detects",
    "seeds needed",
]
LEGEND = (
    "In points (0.01 of a score). detects: the smallest true difference that a two-sided test at"
    f" 0.05 detects with {100 * POWER:.0f} % power; no number: test items alone vary too much for"
    " any number of seeds."
)
CLAIMS_HEAD = ["paper", "about", "claim", "row", "against", "column", "printed", "sd"]
CLAIMS_HEAD += [f"seeds, {share * ITEM_ERROR:.2f}" for share in SHARES]
CLAIMS_LEGEND = (
    f"The seeds of each row that show a printed difference with {100 * POWER:.0f} % power, by the"
    " error of that difference over test items, in points: it is not known for the papers'"
    " encoders. no number: test items alone vary too much."
)
UNKNOWN = "no seeds are published"


def smallest_difference(design: compare.Estimate, seeds: int, level: float = LEVEL) -> float:
    """The true difference that a two-sided test at `level` detects with a chance of POWER;
    infinite if none is."""
    error, df = design.error(seeds)
    return error * noncentrality(df, level)


def noncentrality(df: float, level: float = LEVEL) -> float:
    """True difference / standard error at which Student's t exceeds its two-sided threshold with a
    chance of POWER. The chance of a significant difference with the wrong sign is left out: below
    1e-6 at a power of 0.8.

    >>> round(noncentrality(8), 2)
    3.2
    """
    from scipy.special import nctdtrinc, ndtri

    threshold = quantile(1 - level, df)
    return (
        threshold + float(ndtri(POWER)) if df > 1e6 else float(nctdtrinc(df, 1 - POWER, threshold))
    )


def seeds_needed(difference: float, design: compare.Estimate) -> float:
    """Seeds of each row with which the test detects a true difference; infinite if test items
    alone vary too much."""
    if not difference or (design.item_se or 0.0) * noncentrality(inf) >= difference:
        return inf
    return bisect_left(
        range(10**12),
        True,
        lo=2,
        key=lambda seeds: smallest_difference(design, seeds) <= difference,
    )


def table_rows(view: GridView, difference: float | None = None) -> list[list]:
    """What comparisons that can be run will show, as under HEAD; seeds for a difference in
    points, or as printed."""
    rows = []
    for c in chain.from_iterable(answer.comparisons for answer in compare.answers(view)):
        cells = [*chain.from_iterable(c.pairs)]
        if not all(cell.can_be_run for cell in cells):
            continue
        seeds = max(len(leaf.plan.specs) for cell in cells for leaf in cell.leaves)
        design, source = printed_design(c.pairs), "print, or others' seeds"
        if c.estimate is not None and c.estimate.seed_sd:
            design, source = c.estimate, "these scores"
        wanted = abs(difference if difference is not None else c.printed or 0.0)
        known = ["–", UNKNOWN, seeds, "–", "–"]
        if design is not None:
            smallest, needed = (
                smallest_difference(design, seeds),
                needed_seeds_text(seeds_needed(wanted, design)),
            )
            known = [
                f"{design.seed_sd:.2f}",
                source,
                seeds,
                "–" if smallest == inf else f"{smallest:.2f}",
                needed,
            ]
        rows.append(
            [f"{view.paper}/{view.name}", c.row, c.against, c.columns, f"{wanted:.2f}", *known]
        )
    return rows


def printed_design(pairs: Sequence[tuple[Cell, Cell]]) -> compare.Estimate | None:
    """How the mean difference of pairs of cells varies, in points, by printed deviations or
    seeds of others."""
    variance = add([row_variance(cells, of_one_run=True) for cells in zip(*pairs, strict=True)])
    return (
        None
        if variance is None
        else compare.Estimate(0.0, 1, sqrt(variance[0]) * 100 / pairs[0][0].factor, None)
    )


def claim_rows() -> list[list]:
    """Seeds that would show each claim's printed difference at the papers' own scale, as under
    CLAIMS_HEAD, without an error over test items and with three sizes of it; of several differences
    the one that needs most seeds, or the largest, where the claim picks that. Left out are claims
    without a printed difference of their sign.
    """
    rows, stated = [], claims.stated_quotes("paper", paper_names())
    for name, claim in [
        (n, c) for n, of_quote in stated for c in of_quote if c.relation == "above"
    ]:
        here, there = (printed_view(name, claim.places[index], "paper") for index in (0, -1))
        of_claim = []
        for pairing in contrasts.pair_cells(claim, here, there):
            versus, column, pairs = pairing.versus, pairing.column, pairing.pairs
            contrast = contrasts.contrast_printed(claim, pairing)
            if (
                isinstance(contrast, contrasts.NoContrast)
                or claim.statistic != "value"
                or contrast.difference <= 0
            ):
                continue
            points, design = contrast.difference * 100 / pairs[0][0].factor, printed_design(pairs)
            needed, seeds = [inf], ["–", *[UNKNOWN] * len(SHARES)]
            if design is not None:
                designs = [replace(design, item_se=share * ITEM_ERROR) for share in SHARES]
                # more error, no fewer
                needed = [*accumulate((seeds_needed(points, d) for d in designs), max)]
                seeds = [f"{design.seed_sd:.2f}", *map(needed_seeds_text, needed)]
            row = [
                name,
                claim.place,
                claim.quote,
                claim.row,
                versus,
                column,
                f"{points:+.2f}",
                *seeds,
            ]
            rank = (points,) if claim.up_to is not None else (design is None, needed[::-1])
            of_claim.append((rank, row))
        rows += [max(of_claim, key=lambda c: c[0])[1]] if of_claim else []
    return rows


def needed_seeds_text(seeds: float) -> str:
    """The number of seeds as text: `13`, `no number` where test items alone vary too much."""
    return "no number" if seeds == inf else f"{seeds:.0f}"
