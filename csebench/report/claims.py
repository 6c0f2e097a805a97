"""The sentences that papers draw from their tables, judged on the printed numbers and on ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from math import inf, sqrt

import numpy as np

from csebench.base.caches import cached
from csebench.base.errors import BadInput
from csebench.plan.catalog import paper, paper_names
from csebench.plan.grids import find_grid
from csebench.plan.papers import Claim, Grid, Published, Settings
from csebench.plan.registry import protocol
from csebench.plan.targets import grid_names
from csebench.report import stats
from csebench.report.view import Cell, View, combined, is_control, on_print, view
from csebench.report.view import digits as column_digits

HOLDS, WEAK, REVERSED, UNTESTABLE = "holds", "holds but not significant", "reversed", "not testable"
SPREAD_SIZE = "10%"  # the largest training set at which the papers print deviations


@dataclass(frozen=True)
class Compared:
    """One comparison that a claim makes."""

    than: str
    column: str
    difference: float  # positive: as the claim says
    error: float | None = None  # its standard error, of `df` degrees of freedom; None: nothing to tell it by
    df: float = inf
    p: float | None = None  # two-sided
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
    """Every claim of every paper, on the printed numbers and on ours."""
    return [judge(name, claim, scale) for name in paper_names() for claim in paper(name).claims]


def judge(paper_name: str, claim: Claim, scale: str) -> Judged:
    ours = judgement_on(paper_name, claim, lookup(view, scale), on_runs)
    return Judged(paper_name, claim, judge_print(paper_name, claim, scale), ours)


def judge_print(paper_name: str, claim: Claim, scale: str) -> Judgement:
    """On the printed numbers alone: no score is read."""
    return judgement_on(paper_name, claim, lookup(on_print, scale), on_paper)


@cached
def lookup(function, scale: str):
    """`function(paper, name)` at a scale, computed once per table or figure."""
    return cache(partial(function, scale=scale))


def judgement_on(paper_name: str, claim: Claim, shown, compared) -> Judgement:
    """A claim on one side.

    Raises:
        BadInput: it names a table, row or column that there is not.
    """
    where = f"papers/{paper_name}.yaml: claim {claim.says!r}"
    try:
        here = shown(paper_name, place(claim))
        there = shown(paper_name, f"table{claim.than_table}") if claim.than_table else here
        if isinstance(here.grid, Settings) or isinstance(there.grid, Settings):
            raise ValueError("a table of settings has no values to compare")
        groups = comparisons(claim, here, there)
        digits = max(column_digits(here.grid, here.grid.columns[here.grid.column(label)]) for label in claim.columns)
    except (BadInput, ValueError) as error:
        raise BadInput(f"{where}: {str(error).rstrip('.')}.") from None
    found = [compared(claim, here, *group) for group in groups]
    if compared is on_paper and claim.than == "others":  # of which some are not printed
        found = [c for c in found if c is not None]
    return judgement(claim, found, digits)


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


def on_paper(claim: Claim, here: View, than: str, column: str, pairs: list[tuple[Cell, Cell]]) -> Compared | None:
    """Of the printed numbers; None where one is not printed."""
    printed = [cell.published for pair in pairs for cell in pair]
    if None in printed:
        return None
    sign, unit = (-1 if claim.lower else 1), max(value.unit for value in printed)
    if claim.of == "std":
        if any(value.std is None for value in printed):
            return None
        ((a, b),) = pairs
        p = variances_differ(a.published.std, a.published_seeds, b.published.std, b.published_seeds)
        return Compared(than, column, sign * (a.published.std - b.published.std), p=p, unit=unit)
    found = Compared(
        than,
        column,
        sign * float(np.mean([a.value - b.value for a, b in zip(printed[::2], printed[1::2], strict=True)])),
    )
    parts = [part for side in zip(*pairs, strict=True) for part in spread(side)]
    return tested(found, parts, unit)


def tested(found: Compared, parts: list[tuple[float, float] | None], unit: float = 0.0) -> Compared:
    """With the standard error from parts, each (variance, its degrees of freedom); one unknown, and all is."""
    if not parts or None in parts:
        return replace(found, unit=unit)
    error, df = sqrt(sum(variance for variance, _ in parts)), stats.satterthwaite(*parts)
    p = stats.two_sided(found.difference, *parts)
    return replace(found, error=error, df=df, p=p, unit=unit)


def spread(cells: tuple[Cell, ...]) -> list[tuple[float, float] | None]:
    """Variances of the mean of one row's printed cells: columns of one training set are one run, others are apart."""
    by_size: dict[str, list] = {}
    for cell in cells:
        by_size.setdefault(cell.plan.column.size, []).append(printed_spread(cell))
    found = []
    for own in by_size.values():
        if None in own:
            return [None]
        deviation = sum(sqrt(variance) for variance, _ in own) / len(cells)
        found.append((deviation**2, min(df for _, df in own)))
    return found


def printed_spread(cell: Cell) -> tuple[float, float] | None:
    """Variance of a printed value and its degrees of freedom; of a single run the typical one, taken as known."""
    if cell.published.std is not None and cell.published_seeds > 1:
        return cell.published.std**2 / cell.published_seeds, cell.published_seeds - 1
    if cell.parts:
        if cell.plan.column.delta is None:
            return None
        parts = [printed_spread(part) for part in cell.parts]
        return None if None in parts else (sum(v for v, _ in parts), stats.satterthwaite(*parts))
    evaluator = cell.plan.evaluator or cell.plan.column.evaluator or Grid.model_fields["evaluator"].default
    rule = protocol(evaluator).declaration.items
    if rule is None or rule.score != "spearman" or typical_spread() is None:  # deviations that papers print are of it
        return None
    return (typical_spread() * cell.factor) ** 2, inf


@cached
def typical_spread() -> float | None:
    """The median of the deviations that the papers print of the largest training set that has some, as a fraction."""
    found = [
        value.std / grid.factor
        for name in paper_names()
        for grid in (find_grid(name, own) for own in grid_names(name))
        if not isinstance(grid, Settings)
        for row in grid.rows
        if row.source != "copied"
        for value, column in zip(row.values, grid.columns, strict=True)
        if value is not None and value.std is not None and column.size == SPREAD_SIZE
    ]
    return float(np.median(found)) if found else None


def variances_differ(one: float, n: int, other: float, m: int) -> float | None:
    """p of the F test of two deviations, two-sided."""
    from scipy.special import fdtrc

    if not (one and other and n > 1 and m > 1):
        return None
    upper = float(fdtrc(n - 1, m - 1, (one / other) ** 2))
    return 2 * min(upper, 1 - upper)


def on_runs(claim: Claim, here: View, than: str, column: str, pairs: list[tuple[Cell, Cell]]) -> Compared | None:
    """Of our runs, paired by seed; None where one is missing, or is a control."""
    cells = [cell for pair in pairs for cell in pair]
    if any(not c.values or c.absent or c.stale or is_control(c) for c in cells):
        return None
    sign = -1 if claim.lower else 1
    if claim.of == "std":
        one, other = (cell.ours for cell in cells)
        if one.std is None or other.std is None:
            return None
        p = variances_differ(one.std, one.n, other.std, other.n)
        return Compared(than, column, sign * (one.std - other.std), p=p)
    count = len(pairs)
    differences = combined(lambda *v: sum(a - b for a, b in zip(v[::2], v[1::2], strict=True)) / count, *cells)
    found = stats.summarise(differences.values())
    parts = [(found.std**2 / found.n, found.n - 1)] if found.n > 1 else []
    if parts and count == 1 and (items := item_variance(here, *cells)) is not None:
        parts.append((items, inf))
    return tested(Compared(than, column, sign * found.mean), parts)


def item_variance(here: View, a: Cell, b: Cell) -> float | None:
    """Of two rows of one column, as the table's comparisons have it (csebench/report/compare.py)."""
    rows = {id(cell): i for i, own in enumerate(here.rows) for cell in own}
    for pair in here.comparisons.get(a.plan.column.label, {"pairs": []})["pairs"]:
        if a.plan.column is b.plan.column and {pair["a"], pair["b"]} == {rows[id(a)], rows.get(id(b))}:
            return pair.get("item_variance")
    return None


# ---------------------------------------------------------------- verdicts


def judgement(claim: Claim, every: list[Compared | None], digits: int) -> Judgement:
    """What the comparisons come to: each must go as the claim says, and be significant."""
    found = [c for c in every if c is not None]
    if not found:
        return Judgement(UNTESTABLE, "no numbers to compare")
    lacking = f"{len(found)} of {len(every)} comparisons can be made" if len(found) < len(every) else ""
    made = equivalent(claim.within, found, digits) if claim.within else greater(claim, found, digits)
    detail = "; ".join(filter(None, (made.detail, lacking)))
    verdict = UNTESTABLE if lacking and made.verdict in (HOLDS, WEAK) else made.verdict
    return Judgement(verdict, detail, made.stated)


def greater(claim: Claim, found: list[Compared], digits: int) -> Judgement:
    stated, said = as_stated(claim, found, digits)
    tests = 1
    if claim.up_to:  # the largest of several was picked
        tests, found = len(found), [max(found, key=lambda c: c.difference)]
    weakest = min(found, key=lambda c: c.difference)
    against = [c for c in found if c.difference < 0]
    detail = f"{weakest.difference:+.{digits}f} than {weakest.than}, {weakest.column}"
    if len(found) > 1:
        detail = f"{len(found) - len(against)} of {len(found)} comparisons; smallest {detail}"
    detail += said
    if any(c.p is None for c in found):
        verdict = REVERSED if against else WEAK if all(c.unit for c in found) else UNTESTABLE
        return Judgement(verdict, f"{detail}; the spread is not known", stated)
    highest = weakest.p if against else max(min(1.0, tests * c.p) for c in found)
    verdict = REVERSED if against else HOLDS if highest < stats.LEVEL else WEAK
    return Judgement(verdict, f"{detail}, p = {highest:.2g}", stated)


def equivalent(within: Published, found: list[Compared], digits: int) -> Judgement:
    """`comparable`: no difference is larger than what the claim allows, nor may it be, by two one-sided tests."""
    largest = max(found, key=lambda c: abs(c.difference))
    detail = f"largest difference {largest.difference:+.{digits}f} than {largest.than}, {largest.column}"
    if round(abs(largest.difference), 9) > within.value:
        return Judgement(REVERSED, detail)
    if any(c.error is None for c in found):
        return Judgement(WEAK if all(c.unit for c in found) else UNTESTABLE, f"{detail}; the spread is not known")
    highest = max(
        stats.upper_tail((within.value - abs(c.difference)) / c.error, c.df) if c.error else 0.0 for c in found
    )
    return Judgement(HOLDS if highest < stats.LEVEL else WEAK, f"{detail}, p of a larger one = {highest:.2g}")


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
        off = [d for d in differences if abs(d - stated.value) > slack]
        if stated is claim.at_least:
            off = [d for d in off if d < stated.value]
        if off:
            return False, f"; says {stated.text}, is {off[0]:+.{digits}f}"
        return True, f"; says {stated.text}"
    return None, ""
