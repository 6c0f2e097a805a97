"""The sentences that papers draw from their tables, judged on the printed numbers and on ours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import inf, sqrt

import numpy as np

from csebench import stats
from csebench.errors import BadInput
from csebench.papers import Claim, Published, Settings
from csebench.plan import find_grid, grids, paper, paper_names
from csebench.view import Cell, View, combined, is_control, view
from csebench.view import digits as column_digits

HOLDS, WEAK, REVERSED, UNTESTABLE = "holds", "holds but not significant", "reversed", "not testable"
LEVEL = 0.05
SPREAD_SIZE = "10%"  # the largest training set at which the papers print deviations


@dataclass(frozen=True)
class Compared:
    """One comparison that a claim makes."""

    than: str
    column: str
    difference: float  # positive: as the claim says
    p: float | None  # two-sided; None: nothing to test it on
    unit: float = 0.0  # of the last printed digit


@dataclass(frozen=True)
class Judgement:
    verdict: str
    detail: str
    stated: bool | None = None  # whether the size of the difference is what the claim states; None: it states none


@dataclass(frozen=True)
class Judged:
    paper: str
    claim: Claim
    published: Judgement
    ours: Judgement

    @property
    def place(self) -> str:
        return place(self.claim)


def place(claim: Claim) -> str:
    return f"table{claim.table}" if claim.table else f"figure{claim.figure}"


def judge_all(scale: str) -> list[Judged]:
    return [judge(name, claim, scale) for name in paper_names() for claim in paper(name).claims]


def judge(paper_name: str, claim: Claim, scale: str) -> Judged:
    """A claim on the printed numbers and on ours.

    Raises:
        BadInput: it names a row or column that its table does not have.
    """
    here = cached_view(paper_name, place(claim), scale)
    there = cached_view(paper_name, f"table{claim.than_table}", scale) if claim.than_table else here
    try:
        groups = comparisons(claim, here, there)
    except ValueError as error:
        raise BadInput(f"papers/{paper_name}.yaml: claim {claim.says!r}: {error}.") from None
    digits = max(column_digits(here.grid, here.grid.columns[here.grid.column(label)]) for label in claim.columns)
    printed = [on_print(claim, *group) for group in groups]
    ours = [on_runs(claim, here, *group) for group in groups]
    return Judged(paper_name, claim, judgement(claim, printed, digits), judgement(claim, ours, digits))


@cache
def cached_view(paper_name: str, name: str, scale: str) -> View:
    return view(paper_name, name, scale)


def comparisons(claim: Claim, here: View, there: View) -> list[tuple[str, str, list[tuple[Cell, Cell]]]]:
    """(other row, column, pairs of cells) of every comparison; of an average all columns' pairs are one comparison."""
    row = here.rows[here.grid.row(claim.row)]
    for label in (*claim.but, *(claim.than if claim.than != "others" else ())):
        there.grid.row(label)
    left_out = {*claim.but} | ({claim.row} if here is there and claim.than_column is None else set())
    asked = [r.label for r in there.grid.rows if r.label not in left_out] if claim.than == "others" else claim.than
    found = []
    for other, cells in zip(there.grid.rows, there.rows, strict=True):
        if other.label in asked:
            pairs = [
                (row[here.grid.column(c)], cells[there.grid.column(claim.than_column or c)]) for c in claim.columns
            ]
            if claim.on_average:
                found.append((other.label, "average", pairs))
            else:
                found += [(other.label, column, [pair]) for column, pair in zip(claim.columns, pairs, strict=True)]
    return found


# ---------------------------------------------------------------- differences


def on_print(claim: Claim, than: str, column: str, pairs: list[tuple[Cell, Cell]]) -> Compared | None:
    """Of the printed numbers; None where one is not printed."""
    printed = [(a.published, b.published) for a, b in pairs]
    if any(one is None or other is None for one, other in printed):
        return None
    sign, unit = (-1 if claim.lower else 1), max(one.unit for pair in printed for one in pair)
    if claim.of == "std":
        if any(one.std is None for pair in printed for one in pair):
            return None
        ((a, b),), ((one, other),) = pairs, printed
        p = variances_differ(one.std, seeds_of(a), other.std, seeds_of(b))
        return Compared(than, column, sign * (one.std - other.std), p, unit)
    difference = float(np.mean([one.value - other.value for one, other in printed]))
    parts = [spread(cell) for pair in pairs for cell in pair]
    variance = sum(part for part, _ in parts) / len(pairs) ** 2
    p = stats.p_value(difference / sqrt(variance), stats.satterthwaite(*parts))
    return Compared(than, column, sign * difference, p, unit)


def seeds_of(cell: Cell) -> int:
    """Runs behind a printed value."""
    column = cell.plan.column
    return column.seeds or next(g.seeds for g in _grids() if column in g.columns)


@cache
def _grids() -> list:
    found = [find_grid(name, own) for name in paper_names() for own in grids(name)]
    return [grid for grid in found if not isinstance(grid, Settings)]


def spread(cell: Cell) -> tuple[float, float]:
    """Variance of a printed value and its degrees of freedom; of a single run the typical one, taken as known."""
    printed, seeds = cell.published, seeds_of(cell)
    if printed.std is not None and seeds > 1:
        return printed.std**2 / seeds, seeds - 1
    factor = cell.plan.column.factor or next(g.factor for g in _grids() if cell.plan.column in g.columns)
    return (typical_spread() * factor) ** 2, inf


@cache
def typical_spread() -> float:
    """The median of the deviations that the papers print of the largest training set that has some, as a fraction."""
    found = [
        value.std / 100
        for grid in _grids()
        for row in grid.rows
        if row.source != "copied"
        for value, column in zip(row.values, grid.columns, strict=True)
        if value is not None and value.std is not None and column.size == SPREAD_SIZE
    ]
    return float(np.median(found))


def variances_differ(one: float, n: int, other: float, m: int) -> float | None:
    """p of the F test of two deviations, two-sided."""
    from scipy.stats import f

    if not (one and other and n > 1 and m > 1):
        return None
    upper = f.sf((one / other) ** 2, n - 1, m - 1)
    return float(2 * min(upper, 1 - upper))


def on_runs(claim: Claim, here: View, than: str, column: str, pairs: list[tuple[Cell, Cell]]) -> Compared | None:
    """Of our runs, paired by seed; None where one is missing, or is a control."""
    cells = [cell for pair in pairs for cell in pair]
    if any(not c.values or c.absent or c.stale or is_control(c) for c in cells):
        return None
    sign = -1 if claim.lower else 1
    if claim.of == "std":
        one, other = (cell.ours for cell in cells[:2])
        if one.std is None or other.std is None:
            return None
        return Compared(
            than, column, sign * (one.std - other.std), variances_differ(one.std, one.n, other.std, other.n)
        )
    count = len(pairs)
    differences = combined(lambda *v: sum(a - b for a, b in zip(v[::2], v[1::2], strict=True)) / count, *cells)
    found = stats.paired(differences.values())
    return Compared(than, column, sign * found.mean, recorded(here, *cells) if count == 1 else found.p)


def recorded(here: View, a: Cell, b: Cell) -> float | None:
    """p of two rows of one column, with the test items' variance where the table's comparisons have it."""
    rows = {id(cell): i for i, own in enumerate(here.rows) for cell in own}
    own = here.comparisons.get(a.plan.column.label, {"pairs": []})
    if a.plan.column == b.plan.column and id(b) in rows:
        for pair in own["pairs"]:
            if {pair["a"], pair["b"]} == {rows[id(a)], rows[id(b)]} and pair["seeds"] > 1:
                return pair["p"]
    return stats.paired(combined(lambda x, y: x - y, a, b).values()).p


# ---------------------------------------------------------------- verdicts


def judgement(claim: Claim, found: list[Compared | None], digits: int) -> Judgement:
    """What the comparisons come to: every one must go as the claim says, and be significant, by Holm's correction."""
    found = [c for c in found if c is not None]
    if not found:
        return Judgement(UNTESTABLE, "no numbers to compare")
    if claim.within is not None:
        return equivalent(claim.within, found, digits)
    against = [c for c in found if c.difference <= 0]
    if claim.up_to is not None:
        best = max(found, key=lambda c: c.difference)
        found, against = [best], [best] if best.difference <= 0 else []
    weakest = min(found, key=lambda c: c.difference)
    detail = f"{weakest.difference:+.{digits}f} than {weakest.than}, {weakest.column}"
    if len(found) > 1:
        detail = f"{len(found) - len(against)} of {len(found)} comparisons; smallest {detail}"
    stated, said = as_stated(claim, found, digits)
    detail += said
    if any(c.p is None for c in found):
        return Judgement(REVERSED if against else UNTESTABLE, f"{detail}; one seed", stated)
    highest = max(stats.holm([c.p for c in found]))
    if against:
        return Judgement(REVERSED, f"{detail}, p = {weakest.p:.2g}", stated)
    return Judgement(HOLDS if highest < LEVEL else WEAK, f"{detail}, p = {highest:.2g}", stated)


def equivalent(within: Published, found: list[Compared], digits: int) -> Judgement:
    """`comparable`: no difference is larger than what the claim allows, nor may it be, by two one-sided tests."""
    largest = max(found, key=lambda c: abs(c.difference))
    detail = f"largest difference {largest.difference:+.{digits}f} than {largest.than}, {largest.column}"
    if round(abs(largest.difference), 9) > within.value:
        return Judgement(REVERSED, detail)
    if any(c.p is None for c in found):
        return Judgement(UNTESTABLE, f"{detail}; one seed")
    # the standard error behind a two-sided p of a difference, as of a normal variate
    from scipy.stats import norm

    for c in found:
        error = abs(c.difference) / norm.isf(c.p / 2) if 0 < c.p < 1 else 0.0
        if error and norm.sf((within.value - abs(c.difference)) / error) > LEVEL:
            return Judgement(WEAK, detail)
    return Judgement(HOLDS, detail)


def as_stated(claim: Claim, found: list[Compared], digits: int) -> tuple[bool | None, str]:
    """Whether the size of the difference is what the claim says, to its digits and the rounding of both numbers."""
    for stated, differences in (
        (claim.by, [c.difference for c in found]),
        (claim.up_to, [max(c.difference for c in found)]),
        (claim.at_least, [min(c.difference for c in found)]),
    ):
        if stated is None:
            continue
        slack = stated.unit / 2 + max(c.unit for c in found) + 1e-9
        off = [
            d
            for d in differences
            if (d < stated.value - slack if stated is claim.at_least else abs(d - stated.value) > slack)
        ]
        if off:
            return False, f"; says {stated.text}, is {off[0]:+.{digits}f}"
        return True, f"; says {stated.text}"
    return None, ""
