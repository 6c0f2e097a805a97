"""Comparisons of rows, as values that pages, figures, claims, verbs and CSV share.

A table declares its questions (csebench/plan/schema/paper.py: Family). A question asks for
comparisons of pairs of rows over columns. Their p-values are corrected for their number. The
difference of two rows and its errors are computed in estimates.py. Why rows are not compared is
found in refusals.py, and what else differs between them in row_settings.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf
from typing import NamedTuple

from csebench.plan.catalog.registry import declaration
from csebench.plan.schema.paper import OTHERS, Column, Family, Grid
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.numbers.controls import scale_cannot_tell, why_scale_cannot_tell
from csebench.report.numbers.estimates import (
    CellPair,
    Estimate,
    estimate_of,
    is_over_seeds_only,
    printed_difference,
    weighted,
)
from csebench.report.numbers.over_settings import OverSettings, over_settings
from csebench.report.numbers.refusals import (
    EqualScores,
    PremiseNotShown,
    Reason,
    Refusal,
    Relation,
    ScaleCannotTell,
    mismatch,
    why_not,
)
from csebench.report.numbers.row_settings import Setting, setting_differences
from csebench.report.numbers.tuned_away import TunedAway, terms_tuned_away

INACTIVE = 0.02  # points: an effect that is shown to be smaller counts as none


@dataclass(frozen=True)
class Comparison:
    """A row against another over columns. Positive gains are better, also if less is better."""

    row: str
    against: str
    columns: str  # `Avg.`, `0.1% to 100%`
    relation: Relation
    estimate: Estimate | None = None
    p: float | None = None
    p_family: float | None = None  # after Holm's correction over the family
    low: float | None = None  # 95 % interval of this comparison
    high: float | None = None
    family_low: float | None = None  # simultaneous interval of the family
    family_high: float | None = None
    family_size: int = 1  # tested comparisons of the family
    differs: tuple[Setting, ...] = ()  # settings in which the rows should agree, and do not
    # terms that only one row has, and of which a search found no effect
    tuned_away: tuple[TunedAway, ...] = ()
    # why there is no estimate or no verdict; None if the relation says it
    reason: Reason | None = None
    printed: float | None = None  # the difference of the published values, in points
    scored: tuple[int, int] = (0, 0)  # runs with scores, and all runs
    # the evaluator declares test items, but score files have no replicates over them
    over_seeds_only: bool = False
    over_settings: OverSettings | None = None  # if the table has random settings
    pairs: tuple[CellPair, ...] = field(default=(), compare=False, repr=False)

    @property
    def is_judged(self) -> bool:
        """Whether the printed difference can be judged by our runs."""
        return all(cell.judged for cell in chain.from_iterable(self.pairs))


class Answer(NamedTuple):
    """A question of a table or figure with its comparisons."""

    family: Family
    comparisons: tuple[Comparison, ...]


class RankBlock(NamedTuple):
    """Encoder and kind of training data, which rows must share to be ranked together."""

    encoder: str  # role
    corpus: str  # kind of training data


# ---------------------------------------------------------------- questions of a table


def answers(view: GridView) -> list[Answer]:
    """Answer every declared question of a table or figure, the primary one first."""
    families = sorted(view.grid.compare, key=lambda family: not family.primary)
    return [answer(view, family) for family in families]


def answer(view: GridView, family: Family) -> Answer:
    """Answer a question, with Holm's correction over its comparisons."""
    failed_premise = premise_not_shown(view, family)
    groups = column_groups(view, family)
    comparisons = []
    for row, against in row_pairs(view, family):
        for columns in groups:
            comparisons.append(compare(view, row, against, columns, failed_premise))
    return Answer(family, tuple(judge_together(comparisons)))


def premise_not_shown(view: GridView, family: Family) -> PremiseNotShown | None:
    """Check that a row loses as much in some columns as a question takes for granted.

    Returns:
        The loss, if it is not shown to be large enough. None if it is, if the question takes no
        loss for granted, or if the loss cannot be tested.
    """
    premise = family.premise
    if premise is None:
        return None
    grid = view.score_grid
    cells = view.rows[grid.row(premise.row)]
    most = cells[grid.column(premise.most)]
    pairs = [(most, cells[grid.column(label)]) for label in premise.less]
    if why_not(pairs) is not None:
        return None
    estimate = estimate_of(weighted(pairs), view.scale)
    low, _ = estimate.interval()
    if low > premise.least:
        return None
    less = columns_label(premise.less)
    if len(premise.less) > 1:
        less = f"the mean of {less}"
    return PremiseNotShown(
        row=premise.row,
        most=premise.most,
        less=less,
        loss=estimate.gain,
        least=premise.least,
        printed=premise.printed,
    )


def row_pairs(view: GridView, family: Family) -> list[tuple[int, int]]:
    """List the pairs of rows that a question compares, by index.

    `others` stands for all rows that are ranked together with the row they are compared with.
    """
    grid = view.score_grid
    pairs = []
    for row, against in family.rows:
        base = grid.row(against)
        rows = [grid.row(row)] if row != OTHERS else rows_ranked_with(view, base)
        pairs.extend((index, base) for index in rows)
    return pairs


def rows_ranked_with(view: GridView, base: int) -> list[int]:
    """List the other rows on the same encoder and with the same kind of data."""
    base_block = block(view, base)
    others = [index for index in range(len(view.score_grid.rows)) if index != base]
    return [index for index in others if block(view, index) == base_block]


def block(view: GridView, index: int) -> RankBlock | None:
    """Find the block that a row is ranked in; None for controls and rows that are not run."""
    cells = [cell for cell in view.rows[index] if cell.plan.specs]
    if not cells or cells[0].is_control:
        return None
    plan = cells[0].plan
    encoder = view.score_grid.encoder
    if plan.row.run is not None and plan.row.run.encoder:
        encoder = plan.row.run.encoder
    return RankBlock(encoder, declaration(plan.specs[0].method).corpus)


def column_groups(view: GridView, family: Family) -> list[list[int]]:
    """List the columns of a question, by index, in groups that are each averaged and compared."""
    if isinstance(family.columns, list):
        return [[view.score_grid.column(label) for label in family.columns]]
    if family.columns == "each":
        left_out = [view.score_grid.column(label) for label in family.left_out]
        each = single_columns(view.score_grid)
        return [[index] for index in each if index not in left_out]
    return [summary_columns(view)]


def summary_columns(view: GridView) -> list[int]:
    """Find the columns whose mean sums up a table, by index.

    These are the table's own averages, or its columns of single scores if no average can be run.
    """
    averages = []
    for index, column in enumerate(view.score_grid.columns):
        if column.mean or column.task == "Avg.":
            averages.append(index)
    for row in view.rows:
        if any(row[index].can_be_run for index in averages):
            return averages
    return single_columns(view.score_grid)


def single_columns(grid: Grid) -> list[int]:
    """Find the columns of single scores, by index; averages if a table has no others."""
    scores = []
    for index, column in enumerate(grid.columns):
        if not column.mean and column.delta is None:
            scores.append(index)
    single = [index for index in scores if grid.columns[index].task != "Avg."]
    return single or scores


# ---------------------------------------------------------------- one comparison


def compare(
    view: GridView,
    row: int,
    against: int,
    columns: Sequence[int],
    failed_premise: PremiseNotShown | None = None,
) -> Comparison:
    """Compare a row with another, without a correction for other comparisons.

    Args:
        columns: columns to average over. Those in which only one row can be run are left out.
        failed_premise: why the question cannot be asked.
    """
    pairs = runnable_pairs(view, row, against, columns)
    comparison = without_result(view, row, against, pairs)
    if failed_premise is not None:
        refusal = Refusal(Relation.NOT_ASKED, failed_premise)
    else:
        refusal = why_not(pairs)
    if refusal is not None:
        return replace(comparison, relation=refusal.relation, reason=refusal.reason)
    return with_result(comparison, view.scale)


def runnable_pairs(
    view: GridView, row: int, against: int, columns: Sequence[int]
) -> list[CellPair]:
    """Pair the cells of two rows that can both be run; all pairs if there are none."""
    pairs = [(view.rows[row][column], view.rows[against][column]) for column in columns]
    runnable = [(cell, base) for cell, base in pairs if cell.can_be_run and base.can_be_run]
    return runnable or pairs


def without_result(view: GridView, row: int, against: int, pairs: Sequence[CellPair]) -> Comparison:
    """State what is compared, which settings differ, what is printed and how many runs exist."""
    runs = set()
    for cell in chain.from_iterable(pairs):
        for leaf in cell.leaves:
            runs.update((spec.run_id, leaf.plan.evaluator) for spec in leaf.plan.specs)
    scored = sum(view.runs[run] is not None for run in runs)

    return Comparison(
        view.score_grid.rows[row].label,
        view.score_grid.rows[against].label,
        columns_label([cell.plan.column.label for cell, _ in pairs]),
        Relation.NOT_RUN,
        differs=setting_differences(pairs),
        tuned_away=terms_tuned_away(pairs, view.scale),
        printed=printed_difference(pairs),
        scored=(scored, len(runs)),
        pairs=tuple(pairs),
    )


def columns_label(labels: Sequence[str]) -> str:
    """Name columns that are averaged: `1%, 10%`, `0.1% to 100%`."""
    if len(labels) > 2:
        return f"{labels[0]} to {labels[-1]}"
    return ", ".join(labels)


def with_result(comparison: Comparison, scale: str) -> Comparison:
    """Estimate and test the difference of rows that can be compared."""
    pairs = comparison.pairs
    estimate = estimate_of(weighted(pairs), scale)
    comparison = replace(comparison, over_seeds_only=is_over_seeds_only(estimate, pairs))
    if estimate.is_within(stats.SLACK):
        return replace(comparison, relation=Relation.NOT_ASKED, reason=EqualScores())
    over = over_settings(pairs, scale)
    comparison = replace(comparison, estimate=estimate, over_settings=over)
    if not can_be_tested(estimate, pairs):
        return replace(comparison, relation=Relation.ONE_SEED)

    cannot_tell = why_scale_cannot_tell(pairs, scale)
    p = estimate.p()
    assert p is not None  # there is an error
    low, high = estimate.interval()
    comparison = replace(comparison, p=p, low=low, high=high, reason=cannot_tell)
    return judged(comparison, p, 1)


def judge_together(comparisons: Iterable[Comparison], limit: float = INACTIVE) -> list[Comparison]:
    """Judge the comparisons that are tested, with Holm's correction for their number.

    Args:
        limit: points; a difference that is shown to be within it counts as none.
    """
    comparisons = list(comparisons)
    p_values = [comparison.p for comparison in comparisons if comparison.p is not None]
    adjusted_p_values = iter(stats.holm(p_values))  # in the same order
    corrected = []
    for comparison in comparisons:
        if comparison.p is not None:
            comparison = judged(comparison, next(adjusted_p_values), len(p_values), limit)
        corrected.append(comparison)
    return corrected


def can_be_tested(estimate: Estimate, pairs: Sequence[CellPair]) -> bool:
    """Whether chance can be excluded: over several seeds, or without any randomness."""
    error, _ = estimate.error()
    if error == inf:
        return False
    if estimate.seed_sd is not None:
        return True
    return all(cell.is_deterministic for cell in chain.from_iterable(pairs))


def judged(
    comparison: Comparison, p_family: float, count: int, limit: float = INACTIVE
) -> Comparison:
    """Judge a tested comparison as one of `count` in its family.

    The interval has Bonferroni's level. Holm's test is stronger, so that it may show a difference
    although this interval contains 0. The interval is then cut at 0.

    Args:
        limit: points; a difference that is shown to be within it counts as none.
    """
    estimate = comparison.estimate
    assert estimate is not None
    relation = relation_shown(comparison, estimate, p_family, count, limit)
    low, high = estimate.interval(stats.LEVEL / count)
    if relation == Relation.BETTER:
        low = max(low, 0.0)
    if relation == Relation.WORSE:
        high = min(high, 0.0)
    return replace(
        comparison,
        p_family=p_family,
        relation=relation,
        family_low=low,
        family_high=high,
        family_size=count,
    )


def relation_shown(
    comparison: Comparison, estimate: Estimate, p_family: float, count: int, limit: float
) -> Relation:
    """Choose what a tested comparison shows, as one of `count` in its family.

    A scale whose controls fail shows nothing. A difference counts as none if it is shown to be
    within the limit, even if its p is significant.
    """
    if isinstance(comparison.reason, ScaleCannotTell):
        return Relation.CANNOT_TELL
    if estimate.is_within(limit, count):
        return Relation.TUNED_AWAY if comparison.tuned_away else Relation.INACTIVE
    if p_family >= stats.LEVEL:
        return Relation.NOT_SHOWN
    return Relation.BETTER if estimate.gain > 0 else Relation.WORSE


# ---------------------------------------------------------------- best rows


def best_rows(view: GridView, column: Column) -> list[set[int]]:
    """Find the rows that may be best in a column at 95 %, for each block of rows ranked together.

    A row is left out if another one is better by a one-sided test at 5 % over the number of other
    rows. Blocks of a single row, columns of differences, and rows that the scale cannot tell apart
    have no best rows.
    """
    if column.delta is not None:
        return []
    cells = view.column(column.label)
    blocks: dict[RankBlock, list[int]] = {}
    for index, cell in enumerate(cells):
        if not cell.is_comparable:
            continue
        rank_block = block(view, index)
        if rank_block is not None:
            blocks.setdefault(rank_block, []).append(index)
    best = []
    for rows in blocks.values():
        if len(rows) > 1 and not scale_cannot_tell([cells[row] for row in rows], view.scale):
            best.append(may_be_best(rows, cells, view.scale))
    return best


def may_be_best(rows: list[int], cells: list[Cell], scale: str) -> set[int]:
    """Choose the rows than which no other row is shown to be better."""
    # the lower end of a two-sided interval is a one-sided test at half the interval's level
    level = 2 * stats.LEVEL / (len(rows) - 1)

    def best_first(row: int) -> float:
        return -cells[row].sign * cells[row].mean

    def is_better(other: int, row: int) -> bool:
        if mismatch([*cells[other].leaves, *cells[row].leaves]) is not None:
            return False
        estimate = estimate_of(weighted([(cells[other], cells[row])]), scale)
        low, _ = estimate.interval(level)
        return low > 0

    ranked = sorted(rows, key=best_first)
    best = set()
    for rank, row in enumerate(ranked):
        if not any(is_better(other, row) for other in ranked[:rank]):
            best.add(row)
    return best
