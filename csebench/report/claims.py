"""The claims that papers make about their tables, judged on the printed numbers and on our runs.

A claim is data (csebench/plan/papers.py: Claim). It becomes comparisons of two rows each, these become tests, and the
tests a verdict (csebench/report/judging.py); claims with the same quote are rows of one sentence. Tests between all
rows of a table: csebench/report/compare.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt

import numpy as np

from csebench.base.caches import cached, cached_by_folder
from csebench.base.errors import BadInput
from csebench.plan.catalog import paper, paper_names
from csebench.plan.papers import Claim, SettingsTable
from csebench.plan.spec import Spec
from csebench.plan.targets import grid_names
from csebench.report import stats
from csebench.report.compare import item_variances
from csebench.report.judging import Comparison, Judgement, judge_row, judge_sentence
from csebench.report.printed_spread import row_variances, sources_of
from csebench.report.cells import (
    Cell,
    GridView,
    cell_identity,
    combine_by_seed,
    grid_view,
    is_comparable,
    printed_view,
    same_runs,
)


@dataclass(frozen=True)
class JudgedClaim:
    paper: str
    claim: Claim
    published: Judgement
    ours: Judgement


@dataclass(frozen=True)
class JudgedSentence:
    """A sentence of a paper: one verdict over the rows that it is about."""

    paper: str
    quote: str
    rows: list[JudgedClaim]
    published: Judgement
    ours: Judgement

    @property
    def sections(self) -> list[str]:
        return list(dict.fromkeys(row.claim.section for row in self.rows))

    @property
    def places(self) -> list[str]:
        """Tables and figures that the sentence is about."""
        return list(dict.fromkeys(row.claim.place for row in self.rows))


def judge_all(scale: str) -> list[JudgedSentence]:
    """Every sentence of every paper, on the printed numbers and on ours."""
    return [judge_quote(name, quote, scale) for name in paper_names() for quote in claims_by_quote(name)]


def judge_quote(paper_name: str, quote: str, scale: str) -> JudgedSentence:
    rows = [judge(paper_name, claim, scale) for claim in claims_by_quote(paper_name)[quote]]
    published, ours = (judge_sentence([getattr(row, side) for row in rows]) for side in ("published", "ours"))
    return JudgedSentence(paper_name, quote, rows, published, ours)


def claims_by_quote(paper_name: str) -> dict[str, list[Claim]]:
    """A paper's claims by the sentence that makes them, in the order of the file."""
    return paper(paper_name).claims_by_quote()


def judge(paper_name: str, claim: Claim, scale: str) -> JudgedClaim:
    ours = _judge(paper_name, claim, partial(_our_view, scale=scale), compare_runs)
    return JudgedClaim(paper_name, claim, judge_print(paper_name, claim, scale), ours)


def judge_print(paper_name: str, claim: Claim, scale: str) -> Judgement:
    """A claim on the printed numbers alone: no score is read, and every scale gives the same."""
    return _judge(paper_name, claim, partial(_printed_view, scale=scale), compare_printed)


_our_view, _printed_view = cached_by_folder(grid_view), cached(printed_view)  # many claims are about one table


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
    cells = [cell for *_, pairs in pairings for pair in pairs for cell in pair]
    return judge_row(claim, comparisons, digits, "no numbers to compare" if compare is compare_printed else why(cells))


def why(cells: list[Cell]) -> str:
    """Why our cells cannot be compared."""
    if all(map(same_runs, cells[::2], cells[1::2])) and all(map(is_comparable, cells)):
        return "both rows are the same runs at this scale"
    if any(differ_in_size_unseen(a, b) for a, b in zip(cells[::2], cells[1::2], strict=True)):
        return "runs see fewer sentences than either column has"
    if any(cell.unchanged for cell in cells):
        return "a row's loss is 0, so that training changes nothing"
    if any(cell.values and cell.stale for cell in cells):
        return "scores are of an older code version or of other settings (†)"
    return "runs have no scores yet" if any(cell.absent for cell in cells) else "a row has no runs, or is a control"


def pair_cells(claim: Claim, here: GridView, there: GridView) -> list[tuple[str, str, list[tuple[Cell, Cell]]]]:
    """(other row, column, pairs of cells) of every comparison; with `on_average`, one comparison has all columns."""
    here_grid, there_grid = here.score_grid, there.score_grid
    row = here.rows[here_grid.row(claim.row)]
    pairings = []
    for index in claim.versus_rows(there_grid, here is there):
        other, cells = there_grid.rows[index], there.rows[index]
        pairs = [(row[here_grid.column(c)], cells[there_grid.column(claim.versus_column or c)]) for c in claim.columns]
        label = f"{other.label} ({claim.versus_column})" if claim.versus_column else other.label
        if claim.on_average:
            pairings.append((label, "average", pairs))
        else:
            pairings += [(label, column, [pair]) for column, pair in zip(claim.columns, pairs, strict=True)]
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
    rows = zip(*(without_shared_baseline(*pair) for pair in pairs), strict=True)
    variances = [variance for row in rows for variance in row_variances(row)]
    comparison = Comparison(versus, column, sign * difference, unit=unit, spreads=sources_of(variances))
    return with_test(comparison, [variance.part for variance in variances])


def compare_runs(
    claim: Claim, here: GridView, versus: str, column: str, pairs: list[tuple[Cell, Cell]]
) -> Comparison | None:
    """The comparison of our runs, paired by seed; None where a run is missing, stale or a control, where training
    changes nothing, where both rows are the same runs, or where columns of different sizes train on equally many
    sentences.

    The variance over test items counts where it is known, as in the tests between rows of a table, so that both give
    one p; not for an average over columns.
    """
    cells = [cell for pair in pairs for cell in pair]
    if not all(map(is_comparable, cells)) or all(same_runs(*pair) for pair in pairs):
        return None
    if any(cell.unchanged for cell in cells) or any(differ_in_size_unseen(*pair) for pair in pairs):
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
    parts: list[tuple[float, float] | None] = []
    if len(pairs) == 1:
        items = item_variance(*without_shared_baseline(*pairs[0]), here.scale)
        parts += [] if items is None else [(items, inf)]
    parts += [summary.error] if summary.n > 1 else []
    return with_test(Comparison(versus, column, sign * summary.mean), parts)


def item_variance(a: Cell, b: Cell, scale: str) -> float | None:
    """Variance over test items of the difference of two cells: as a table stores it, else from their replicates; None
    where it is not known."""
    stored = stored_item_variances(scale).get(frozenset((cell_identity(a), cell_identity(b))))
    if stored is not None or a.plan.column.delta or b.plan.column.delta:
        return stored
    clustered, _ = item_variances(a, b, scale) or (None, None)
    return clustered


def differ_in_size_unseen(a: Cell, b: Cell) -> bool:
    """Whether two cells have corpora of different sizes, and none of their runs sees as many sentences as either."""
    sizes = [{spec.corpus.size for spec in specs(cell) if spec.corpus} for cell in (a, b)]
    if not all(sizes) or sizes[0] == sizes[1]:
        return False
    schedules = [spec.params for cell in (a, b) for spec in specs(cell)]
    seen = max(float(params.get("steps", inf)) * float(params.get("batch_size", 1)) for params in schedules)
    return seen <= min(sizes[0] | sizes[1])


def specs(cell: Cell) -> list[Spec]:
    """Of a cell's runs, those of its parts among them."""
    return [spec for part in cell.parts for spec in specs(part)] if cell.parts else list(cell.plan.specs)


def without_shared_baseline(a: Cell, b: Cell) -> tuple[Cell, Cell]:
    """Two differences to one baseline differ as their minuends do: the baseline cancels."""
    if a.plan.column.delta and b.plan.column.delta and a.parts and b.parts and a.parts[1] is b.parts[1]:
        return a.parts[0], b.parts[0]
    return a, b


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


# ---------------------------------------------------------------- what tables have compared


@cached_by_folder
def stored_item_variances(scale: str) -> dict[frozenset, float]:
    """Variance over test items of the difference of two cells, by their identities, as tables of a scale store it."""
    variances: dict[frozenset, float] = {}
    for name in paper_names():
        for view in (_our_view(name, grid, scale=scale) for grid in grid_names(name)):
            for label, comparison in view.comparisons.items():
                cells = view.column(label)
                for pair in comparison["pairs"]:
                    if pair.get("item_variance") is not None:
                        both = frozenset(cell_identity(cells[pair[key]]) for key in ("a", "b"))
                        variances.setdefault(both, pair["item_variance"])
    return variances
