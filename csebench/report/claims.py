"""The claims that papers make about their tables, judged on the printed numbers and on our runs.

A claim is data (csebench/plan/papers.py: Claim). It becomes comparisons of two rows each, these become tests, and the
tests a verdict. Tests between all rows of a table: csebench/report/compare.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt

import numpy as np

from csebench.base.caches import cached
from csebench.base.errors import BadInput
from csebench.plan.catalog import paper, paper_names
from csebench.plan.evidence import score_name
from csebench.plan.papers import Claim, Published, SettingsTable
from csebench.report import stats
from csebench.report.evidence import Spread
from csebench.report.evidence import spread as seed_spread
from csebench.report.view import Cell, GridView, combine_by_seed, grid_view, is_control, printed_view

HOLDS, WEAK, REVERSED, UNTESTABLE = "holds", "holds but not significant", "reversed", "not testable"
SLACK = 1e-9  # rounding error of binary fractions


@dataclass(frozen=True)
class Comparison:
    """One difference that a claim is about, in printed units."""

    versus: str  # label of the other row
    column: str
    difference: float  # positive where it agrees with the claim
    error: float | None = None  # its standard error, with `df` degrees of freedom; None where unknown
    df: float = inf
    p: float | None = None  # two-sided
    unit: float = 0.0  # of the last printed digit


@dataclass(frozen=True)
class Judgement:
    verdict: str
    detail: str
    stated: bool | None = None  # whether the difference has the size that the claim states; None where it states none


@dataclass(frozen=True)
class JudgedClaim:
    paper: str
    claim: Claim
    published: Judgement
    ours: Judgement


def judge_all(scale: str) -> list[JudgedClaim]:
    """Every claim of every paper, on the printed numbers and on ours."""
    return [judge(name, claim, scale) for name in paper_names() for claim in paper(name).claims]


def judge(paper_name: str, claim: Claim, scale: str) -> JudgedClaim:
    ours = _judge(paper_name, claim, partial(_our_view, scale=scale), compare_runs)
    return JudgedClaim(paper_name, claim, judge_print(paper_name, claim, scale), ours)


def judge_print(paper_name: str, claim: Claim, scale: str) -> Judgement:
    """A claim on the printed numbers alone: no score is read."""
    return _judge(paper_name, claim, partial(_printed_view, scale=scale), compare_printed)


_our_view, _printed_view = cached(grid_view), cached(printed_view)  # many claims are about one table


def _judge(paper_name: str, claim: Claim, view: Callable[[str, str], GridView], compare: Callable) -> Judgement:
    """A claim on one side.

    Args:
        view: (paper, name of a table or figure) to its cells.
        compare: `compare_printed` or `compare_runs`.

    Raises:
        BadInput: the claim names a table, row or column that does not exist.
    """
    where = f"papers/{paper_name}.yaml: claim {claim.quote!r}"
    try:
        here = view(paper_name, claim.place)
        there = view(paper_name, f"table{claim.versus_table}") if claim.versus_table else here
        if isinstance(here.grid, SettingsTable) or isinstance(there.grid, SettingsTable):
            raise ValueError("a table of settings has no values to compare")
        pairings, grid = pair_cells(claim, here, there), here.grid
        digits = max(grid.column_digits(grid.columns[grid.column(label)]) for label in claim.columns)
    except (BadInput, ValueError) as error:
        raise BadInput(f"{where}: {str(error).rstrip('.')}.") from None
    comparisons = [compare(claim, here, *pairing) for pairing in pairings]
    if compare is compare_printed and claim.versus == "others":  # papers leave some cells of a row empty
        comparisons = [comparison for comparison in comparisons if comparison is not None]
    return combine_comparisons(claim, comparisons, digits)


def pair_cells(claim: Claim, here: GridView, there: GridView) -> list[tuple[str, str, list[tuple[Cell, Cell]]]]:
    """(other row, column, pairs of cells) of every comparison; with `on_average`, one comparison has all columns."""
    here_grid, there_grid = here.score_grid, there.score_grid
    row = here.rows[here_grid.row(claim.row)]
    versus = [] if claim.versus == "others" else claim.versus
    for label in (*claim.exclude, *versus):
        there_grid.row(label)
    if claim.versus == "others":
        excluded = {*claim.exclude} | ({claim.row} if here is there and claim.versus_column is None else set())
        versus = [r.label for r in there_grid.rows if r.label not in excluded]
    pairings = []
    for other, cells in zip(there_grid.rows, there.rows, strict=True):
        if other.label not in versus:
            continue
        pairs = [(row[here_grid.column(c)], cells[there_grid.column(claim.versus_column or c)]) for c in claim.columns]
        if claim.on_average:
            pairings.append((other.label, "average", pairs))
        else:
            pairings += [(other.label, column, [pair]) for column, pair in zip(claim.columns, pairs, strict=True)]
    return pairings


# ---------------------------------------------------------------- differences


def compare_printed(
    claim: Claim, here: GridView, versus: str, column: str, pairs: list[tuple[Cell, Cell]]
) -> Comparison | None:
    """The comparison of printed numbers; None where one is not printed."""
    printed = [cell.published for pair in pairs for cell in pair if cell.published is not None]
    if len(printed) < 2 * len(pairs):
        return None
    sign, unit = (-1 if claim.lower else 1), max(value.unit for value in printed)
    if claim.statistic == "std":
        ((a, b),), (a_std, b_std) = pairs, (value.std for value in printed)
        if a_std is None or b_std is None:
            return None
        p = f_test(a_std, a.published_seeds, b_std, b.published_seeds)
        return Comparison(versus, column, sign * (a_std - b_std), p=p, unit=unit)
    difference = float(np.mean([a.value - b.value for a, b in zip(printed[::2], printed[1::2], strict=True)]))
    parts = [part for row in zip(*pairs, strict=True) for part in row_variances(row)]
    return with_test(Comparison(versus, column, sign * difference, unit=unit), parts)


def compare_runs(
    claim: Claim, here: GridView, versus: str, column: str, pairs: list[tuple[Cell, Cell]]
) -> Comparison | None:
    """The comparison of our runs, paired by seed; None where a run is missing, stale or a control."""
    cells = [cell for pair in pairs for cell in pair]
    if any(not c.values or c.absent or c.stale or is_control(c) for c in cells):
        return None
    sign = -1 if claim.lower else 1
    if claim.statistic == "std":
        a, b = (stats.summarise(cell.values.values()) for cell in cells)
        if a.std is None or b.std is None:
            return None
        return Comparison(versus, column, sign * (a.std - b.std), p=f_test(a.std, a.n, b.std, b.n))
    differences = combine_by_seed(
        lambda *v: sum(a - b for a, b in zip(v[::2], v[1::2], strict=True)) / len(pairs), *cells
    )
    summary = stats.summarise(differences.values())
    parts = [summary.error] if summary.n > 1 else []
    if parts and len(pairs) == 1 and (items := stored_item_variance(here, *cells)) is not None:
        parts.append((items, inf))
    return with_test(Comparison(versus, column, sign * summary.mean), parts)


def with_test(comparison: Comparison, parts: Sequence[tuple[float, float] | None]) -> Comparison:
    """The comparison with its standard error and p, from parts (variance, its degrees of freedom).

    Without parts, or with an unknown one (None), error and p stay unknown.
    """
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return comparison
    error, df = sqrt(sum(variance for variance, _ in known)), stats.satterthwaite(*known)
    return replace(comparison, error=error, df=df, p=stats.two_sided(comparison.difference, *known))


def f_test(std1: float, n1: int, std2: float, n2: int) -> float | None:
    """Two-sided p of the F test that two deviations over n1 and n2 seeds are equal; None where it is undefined."""
    from scipy.special import fdtrc

    if not (std1 and std2 and n1 > 1 and n2 > 1):
        return None
    upper = float(fdtrc(n1 - 1, n2 - 1, (std1 / std2) ** 2))
    return 2 * min(upper, 1 - upper)


# ---------------------------------------------------------------- variances


def row_variances(cells: tuple[Cell, ...]) -> list[tuple[float, float] | None]:
    """Parts of the variance of the mean of a row's printed cells.

    Cells of one training set come from one run, so their deviations add up; runs of different sets are independent.
    """
    by_size: dict[str, list] = {}
    for cell in cells:
        by_size.setdefault(cell.plan.column.size, []).append(printed_variance(cell))
    variances = []
    for parts in by_size.values():
        if None in parts:
            return [None]
        deviation = sum(sqrt(variance) for variance, _ in parts) / len(cells)
        variances.append((deviation**2, min(df for _, df in parts)))
    return variances


def printed_variance(cell: Cell) -> tuple[float, float] | None:
    """Variance of a printed value and its degrees of freedom; of a single run that of the nearest seed sweep."""
    if cell.published is not None and cell.published.std is not None and cell.published_seeds > 1:
        return cell.published.std**2 / cell.published_seeds, cell.published_seeds - 1
    if cell.parts:
        if cell.plan.column.delta is None:
            return None
        parts = [variance for part in cell.parts if (variance := printed_variance(part)) is not None]
        return (sum(v for v, _ in parts), stats.satterthwaite(*parts)) if len(parts) == len(cell.parts) else None
    nearest = nearest_spread(cell)
    return None if nearest is None else ((nearest.std / 100 * cell.factor) ** 2, nearest.n - 1)


def nearest_spread(cell: Cell) -> Spread | None:
    """Deviation over seeds that others published for a printed cell's encoder and task; None where nobody has."""
    row, column = cell.plan.row, cell.plan.column
    if column.task is None or column.metric is not None:
        return None
    score = score_name(cell.published_evaluator, column.task)
    return None if score is None else seed_spread(cell.published_encoder, score, row.run.method if row.run else None)


def stored_item_variance(view: GridView, a: Cell, b: Cell) -> float | None:
    """Variance over test items of the difference of two cells of one column, as `csebench compare` stored it."""
    rows = {id(cell): i for i, cells in enumerate(view.rows) for cell in cells}
    for pair in view.comparisons.get(a.plan.column.label, {"pairs": []})["pairs"]:
        if a.plan.column is b.plan.column and {pair["a"], pair["b"]} == {rows[id(a)], rows.get(id(b))}:
            return pair.get("item_variance")
    return None


# ---------------------------------------------------------------- verdicts


def combine_comparisons(claim: Claim, comparisons: list[Comparison | None], digits: int) -> Judgement:
    """The verdict on all comparisons: each must agree with the claim and be significant; None cannot be made."""
    made = [comparison for comparison in comparisons if comparison is not None]
    if not made:
        return Judgement(UNTESTABLE, "no numbers to compare")
    lacking = f"{len(made)} of {len(comparisons)} comparisons can be made" if len(made) < len(comparisons) else ""
    judged = judge_equivalence(claim.within, made, digits) if claim.within else judge_difference(claim, made, digits)
    verdict = UNTESTABLE if lacking and judged.verdict in (HOLDS, WEAK) else judged.verdict
    return Judgement(verdict, "; ".join(filter(None, (judged.detail, lacking))), judged.stated)


def judge_difference(claim: Claim, comparisons: list[Comparison], digits: int) -> Judgement:
    """The verdict on a claim that one row is above others."""
    stated, size_detail = check_stated_size(claim, comparisons, digits)
    tests = 1
    if claim.up_to:  # the largest of several was picked
        tests, comparisons = len(comparisons), [max(comparisons, key=lambda c: c.difference)]
    weakest = min(comparisons, key=lambda c: c.difference)
    against = [c for c in comparisons if c.difference < 0]
    detail = f"{weakest.difference:+.{digits}f} than {weakest.versus}, {weakest.column}"
    if len(comparisons) > 1:
        detail = f"{len(comparisons) - len(against)} of {len(comparisons)} comparisons; smallest {detail}"
    detail += size_detail
    p_values = [c.p for c in comparisons if c.p is not None]
    if len(p_values) < len(comparisons):
        verdict = REVERSED if against else WEAK if all(c.unit for c in comparisons) else UNTESTABLE
        return Judgement(verdict, f"{detail}; the spread is not known", stated)
    p = p_values[comparisons.index(weakest)] if against else max(min(1.0, tests * p) for p in p_values)
    verdict = REVERSED if against else HOLDS if p < stats.LEVEL else WEAK
    return Judgement(verdict, f"{detail}, p = {p:.2g}", stated)


def judge_equivalence(within: Published, comparisons: list[Comparison], digits: int) -> Judgement:
    """The verdict on a claim that rows are comparable, by two one-sided tests.

    No difference may be larger than `within`, and a larger true difference must be implausible.
    """
    largest = max(comparisons, key=lambda c: abs(c.difference))
    detail = f"largest difference {largest.difference:+.{digits}f} than {largest.versus}, {largest.column}"
    if round(abs(largest.difference), 9) > within.value:
        return Judgement(REVERSED, detail)
    if any(c.error is None for c in comparisons):
        verdict = WEAK if all(c.unit for c in comparisons) else UNTESTABLE
        return Judgement(verdict, f"{detail}; the spread is not known")
    p = max(
        stats.upper_tail((within.value - abs(c.difference)) / c.error, c.df) if c.error else 0.0 for c in comparisons
    )
    return Judgement(HOLDS if p < stats.LEVEL else WEAK, f"{detail}, p of a larger one = {p:.2g}")


def check_stated_size(claim: Claim, comparisons: list[Comparison], digits: int) -> tuple[bool | None, str]:
    """Whether the difference has the size that the claim states, up to the rounding of both; and a text about it."""
    differences = [c.difference for c in comparisons]
    for stated, candidates in (
        (claim.by, differences),
        (claim.up_to, [max(differences)]),
        (claim.at_least, [min(differences)]),
    ):
        if stated is None:
            continue
        slack = stated.unit / 2 + max(c.unit for c in comparisons) + SLACK
        off = [d for d in candidates if abs(d - stated.value) > slack]
        if stated is claim.at_least:
            off = [d for d in off if d < stated.value]
        if off:
            return False, f"; says {stated.text}, is {off[0]:+.{digits}f}"
        return True, f"; says {stated.text}"
    return None, ""
