"""Power, before training: the smallest true difference that a test detects, and seeds needed.

The tests are in estimates.py. How much differences vary is known from our scores, from printed
deviations, or from seeds that others published (printed_spread.py). Lines of tables are worded in
csebench/report/words/power.py.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from math import inf, sqrt

from csebench.plan.catalog.files import paper_names
from csebench.plan.schema.paper import Claim
from csebench.report.numbers import claims
from csebench.report.numbers.cells import GridView, printed_view
from csebench.report.numbers.compare import Comparison, answers
from csebench.report.numbers.contrasts import (
    NoContrast,
    contrast_printed,
    pair_cells,
    varying_cells,
)
from csebench.report.numbers.estimates import CellPair, Estimate
from csebench.report.numbers.printed_spread import add, row_variance
from csebench.report.numbers.stats import LEVEL, quantile

POWER = 0.8  # the chance with which a "smallest difference" is detected
ITEM_ERROR = 0.18  # points: assumed standard error of a difference over test items
# the error is not known on the papers' encoders, so seeds are counted for these multiples of it
SHARES = (0.0, 0.5, 1.0, 1.5)


@dataclass(frozen=True)
class ComparisonPower:
    """What a declared comparison can show."""

    table: str  # `micse/table2`
    row: str
    against: str
    columns: str
    difference: float | None  # points, to be detected; None if none is given or printed
    seeds: int
    design: Estimate | None  # how the difference varies; None if no seeds are published
    is_scored: bool  # whether the design comes from our scores

    @property
    def detects(self) -> float:
        """The smallest true difference that is detected; infinite if none is."""
        assert self.design is not None
        return smallest_difference(self.design, self.seeds)

    @property
    def needs(self) -> float | None:
        """The seeds that the difference needs; infinite if no number is enough.

        None if there is no difference to detect.
        """
        assert self.design is not None
        if self.difference is None:
            return None
        return seeds_needed(self.difference, self.design)


@dataclass(frozen=True)
class ClaimPower:
    """The seeds with which a test would show one printed difference of a claim."""

    paper: str
    claim: Claim
    versus: str
    column: str
    difference: float  # printed, in points; positive, because it goes the claim's way
    seed_sd: float | None  # None if no seeds are published
    needs: tuple[float, ...] = ()  # seeds, one number for each of SHARES; empty without `seed_sd`


# ---------------------------------------------------------------- a test


def smallest_difference(design: Estimate, seeds: int | None, level: float = LEVEL) -> float:
    """Compute the true difference that a two-sided test detects with a chance of POWER.

    Args:
        design: how the difference varies over seeds and test items.
        seeds: None for the seeds of the design.
        level: of the test.

    Returns:
        Infinity if no difference is detected.
    """
    error, df = design.error(seeds)
    return error * noncentrality(df, level)


def noncentrality(df: float, level: float = LEVEL) -> float:
    """Compute the true difference, in standard errors, that is detected with a chance of POWER.

    With this difference, Student's t exceeds its two-sided threshold with a chance of POWER. The
    chance of a significant difference with the wrong sign is left out. It is below 1e-6 at a power
    of 0.8.

    >>> round(noncentrality(8), 2)
    3.2
    """
    from scipy.special import nctdtrinc, ndtri

    threshold = quantile(1 - level, df)
    if df > 1e6:  # the normal distribution, also for infinitely many degrees of freedom
        return threshold + float(ndtri(POWER))
    return float(nctdtrinc(df, 1 - POWER, threshold))


def seeds_needed(difference: float, design: Estimate, level: float = LEVEL) -> float:
    """Compute the fewest seeds per row with which the test detects a true difference.

    Args:
        level: of the test.

    Returns:
        Infinity if test items alone vary too much, or if there is no difference.
    """
    if not difference or (design.item_se or 0.0) * noncentrality(inf, level) >= difference:
        return inf

    def is_detected(seeds: int) -> bool:
        return smallest_difference(design, seeds, level) <= difference

    return bisect_left(range(10**12), True, lo=2, key=is_detected)


def printed_design(pairs: Sequence[CellPair]) -> Estimate | None:
    """Estimate how a mean difference of cells varies from seed to seed, in points.

    A baseline that both cells of a pair share does not vary in their difference.

    Returns:
        None if a deviation is neither printed nor known from seeds of others.
    """
    rows = zip(*[varying_cells(*pair) for pair in pairs], strict=True)
    variance = add([row_variance(cells, of_one_run=True) for cells in rows])
    if variance is None:
        return None
    factor = pairs[0][0].factor
    return Estimate(0.0, 1, sqrt(variance.value) * 100 / factor, None)


# ---------------------------------------------------------------- tables


def table_power(view: GridView, difference: float | None = None) -> list[ComparisonPower]:
    """Compute what the declared comparisons of a table can show, if both rows can be run.

    Args:
        difference: points to detect; by default the printed difference of each comparison.
    """
    powers = []
    for comparison in chain.from_iterable(answer.comparisons for answer in answers(view)):
        cells = chain.from_iterable(comparison.pairs)
        if all(cell.can_be_run for cell in cells):
            powers.append(comparison_power(view, comparison, difference))
    return powers


def comparison_power(
    view: GridView, comparison: Comparison, difference: float | None
) -> ComparisonPower:
    """Compute what one comparison can show, from our scores if they have a deviation."""
    if difference is None:
        difference = comparison.printed
    if difference is not None:
        difference = abs(difference)
    cells = chain.from_iterable(comparison.pairs)
    leaves = chain.from_iterable(cell.leaves for cell in cells)
    seeds = max(len(leaf.plan.specs) for leaf in leaves)
    is_scored = comparison.estimate is not None and bool(comparison.estimate.seed_sd)
    design = comparison.estimate if is_scored else printed_design(comparison.pairs)
    return ComparisonPower(
        table=f"{view.paper}/{view.name}",
        row=comparison.row,
        against=comparison.against,
        columns=comparison.columns,
        difference=difference,
        seeds=seeds,
        design=design,
        is_scored=is_scored,
    )


# ---------------------------------------------------------------- claims


def claim_powers() -> list[ClaimPower]:
    """Compute the seeds that would show the printed difference of each claim that a row is above.

    The papers' own scale is taken. A claim with several differences counts by the one that needs
    most seeds without an error over items, or by the largest if it states `up_to`. If others
    published no seeds for some, it counts by the smallest of these. Claims are left out if no
    printed difference goes their way.
    """
    powers = []
    for paper, claims_of_quote in claims.stated_quotes("paper", paper_names()):
        for claim in claims_of_quote:
            if claim.relation != "above" or claim.statistic != "value":
                continue
            contrasts = list(contrast_powers(paper, claim))
            if not contrasts:
                continue
            order = by_difference if claim.up_to is not None else by_seeds_needed
            powers.append(max(contrasts, key=order))
    return powers


def by_difference(power: ClaimPower) -> float:
    return power.difference


def by_seeds_needed(power: ClaimPower) -> tuple[bool, list[float], float]:
    """Order differences by the seeds that they need; unknown numbers come last.

    `needs` is in ascending order of the error over items, so the smallest error is compared first.
    Of differences that need equally many, or an unknown number, the smallest comes last.
    """
    return power.seed_sd is None, list(power.needs), -power.difference


def contrast_powers(paper: str, claim: Claim) -> Iterator[ClaimPower]:
    """Yield the power for each printed difference that goes the claim's way."""
    here = printed_view(paper, claim.places[0], "paper")
    there = here  # the same cells, so that a baseline that both rows share is seen to be shared
    if claim.places[-1] != claim.places[0]:
        there = printed_view(paper, claim.places[-1], "paper")
    for pairing in pair_cells(claim, here, there):
        contrast = contrast_printed(claim, pairing)
        if isinstance(contrast, NoContrast) or contrast.difference <= 0:
            continue
        versus = pairing.versus
        column = pairing.column
        points = contrast.difference * 100 / pairing.pairs[0][0].factor
        design = printed_design(pairing.pairs)
        if design is None:
            yield ClaimPower(paper, claim, versus, column, points, None)
        else:
            needs = seeds_by_item_error(points, design)
            yield ClaimPower(paper, claim, versus, column, points, design.seed_sd, needs)


def seeds_by_item_error(points: float, design: Estimate) -> tuple[float, ...]:
    """Compute the seeds that a difference needs, for every share of ITEM_ERROR."""
    designs = [replace(design, item_se=share * ITEM_ERROR) for share in SHARES]
    needs = [seeds_needed(points, with_items) for with_items in designs]
    # a larger item error also raises the degrees of freedom, which must not lower the numbers
    return tuple(accumulate(needs, max))
