"""One row of a table against another: the difference as one value, which pages, figures, claims,
verbs and CSV share.

A test set is a sample of items, seeds are a sample of trainings; the variance of a difference is
the sum of both. That over items comes from resamples of the items, which are published with the
scores (csebench/score/replicates.py), of all test sets of an evaluator together. Rows of evaluators
that declare no items (alignment, purity, tasks of MTEB) are compared over seeds alone. Rows that
are scored on different test data are not compared. Neither are rows of which some runs have
replicates of a score and others have none. Which pairs a table compares is declared beside it
(csebench/plan/schema/paper.py: Family).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from csebench.base.caches import cached_by_folder
from csebench.plan.catalog.registry import declaration, protocol, tasks_of
from csebench.plan.grids import CellPlan
from csebench.plan.schema.paper import OTHERS, Column, Family, Grid
from csebench.plan.targets import score_path
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, GridView, combine_by_seed, same_runs
from csebench.score.replicates import Replicates, read_replicates
from csebench.score.store import read_scores

INACTIVE = 0.02  # points: an effect that is shown to be smaller is none
# which gives a difference no error, and so no bound
EQUAL_SCORES = "both rows have the same score in every run"
# settings that rows should have in common, and what they are called where it is not their name
COMPARED_SETTINGS = (
    "learning_rate",
    "temperature",
    "pooler",
    "batch_size",
    "steps",
    "max_length",
    "dropout",
)
CALLED = {"learning_rate": "learning rate", "batch_size": "batch", "max_length": "length"}
BETTER, WORSE, NOT_SHOWN = "better", "worse", "not shown"
SAME_RUNS, INACTIVE_HERE, ONE_SEED = "same runs", "inactive", "one seed"
PARTIAL, OUTDATED, NOT_ASKED, NOT_RUN = "partial", "outdated", "cannot be asked", "not run"
OTHER_DATA, UNPAIRED = "other data", "unpaired"


class Setting(NamedTuple):
    """A shared setting in which two rows differ."""

    name: str
    here: str
    there: str

    @property
    def text(self) -> str:
        return f"{self.name} {self.here} against {self.there}"


@dataclass(frozen=True)
class Estimate:
    """A difference over seeds and test items, in points (0.01 of a score)."""

    gain: float
    seeds: int
    seed_sd: float | None  # of the differences, one per seed; None for a single seed
    item_se: float | None  # None where test items are not known

    def error(self, seeds: int | None = None) -> tuple[float, float]:
        """(standard error over its seeds, or as many others, degrees of freedom); infinite where
        there is no test."""
        seeds = seeds or self.seeds
        parts = [] if self.item_se is None else [(self.item_se**2, inf)]
        if self.seed_sd is not None and seeds > 1:
            parts.append((self.seed_sd**2 / seeds, seeds - 1))
        return (sqrt(sum(v for v, _ in parts)), stats.satterthwaite(*parts)) if parts else (inf, 1)

    def p(self) -> float | None:
        """Two-sided."""
        error, df = self.error()
        return None if error == inf else stats.two_sided(self.gain, (error**2, df))

    def interval(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Two-sided, at 1 - level."""
        error, df = self.error()
        half = error * stats.quantile(1 - level, df) if error else 0.0
        return self.gain - half, self.gain + half

    def is_within(self, limit: float) -> bool:
        """Whether two one-sided tests show that the difference is no larger than a limit, in
        either direction."""
        return max(map(abs, self.interval(2 * stats.LEVEL))) <= limit


@dataclass(frozen=True)
class Comparison:
    """A row against another over columns. Positive gains are better, also where less is better."""

    row: str
    against: str
    columns: str  # `Avg.`, `0.1% to 100%`
    relation: str
    estimate: Estimate | None = None
    p: float | None = None
    p_family: float | None = None  # after Holm's correction over the family
    low: float | None = None  # 95 % interval of this comparison
    high: float | None = None
    family_low: float | None = None  # simultaneous interval of the family
    family_high: float | None = None
    differs: tuple[Setting, ...] = ()  # beside what the comparison is about
    reason: str = ""  # why there is no estimate
    printed: float | None = None  # the difference of the published values, in points
    scored: tuple[int, int] = (0, 0)  # runs with scores, and all
    # though its evaluator declares items: score files have no replicates over them
    over_seeds_only: bool = False
    # cells that are compared
    pairs: tuple[tuple[Cell, Cell], ...] = field(default=(), compare=False, repr=False)

    @property
    def is_judged(self) -> bool:
        """Whether the printed difference can be judged by our runs."""
        return all(cell.judged for cell in chain.from_iterable(self.pairs))


class Answer(NamedTuple):
    """A family of a table or figure with its comparisons."""

    family: Family
    comparisons: tuple[Comparison, ...]


def answers(view: GridView) -> list[Answer]:
    """Every declared question of a table or figure, the primary one first."""
    return [
        answer(view, family)
        for family in sorted(view.grid.compare, key=lambda family: not family.primary)
    ]


def answer(view: GridView, family: Family) -> Answer:
    """A family, with Holm's correction over its comparisons."""
    groups, refused = column_groups(view, family), no_premise(view, family)
    comparisons = [
        compare(view, *pair, columns, refused)
        for pair in row_pairs(view, family)
        for columns in groups
    ]
    tested = [c for c in comparisons if c.p is not None]
    adjusted = iter(stats.holm([c.p for c in tested if c.p is not None]))
    judged_ones = (
        judged(c, next(adjusted), len(tested)) if c.p is not None else c for c in comparisons
    )
    return Answer(family, tuple(judged_ones))


def no_premise(view: GridView, family: Family) -> str:
    """Why a question cannot be asked, where its premise is not shown; empty where it is, or
    nothing is scored."""
    grid, premise = view.score_grid, family.premise
    if premise is None:
        return ""
    cells = view.rows[grid.row(premise.row)]
    pairs = [
        (cells[grid.column(premise.most)], cells[grid.column(label)]) for label in premise.less
    ]
    if (
        why_not(pairs)
        or (estimate := estimate_of(weighted(pairs), view.scale)).interval()[0] > premise.least
    ):
        return ""
    loses = (
        f"{premise.row} itself loses {estimate.gain:z.1f} points, not shown to be over"
        f" {premise.least:g}"
    )
    return f"{loses} (in the paper {premise.printed})"


def row_pairs(view: GridView, family: Family) -> list[tuple[int, int]]:
    """Indices of the rows that a family compares; `others` are rows with runs on the same
    encoder and kind of data."""
    grid, pairs = view.score_grid, []
    for row, against in family.rows:
        base = grid.row(against)
        alike = (
            i for i in range(len(grid.rows)) if i != base and block(view, i) == block(view, base)
        )
        pairs += [(i, base) for i in (alike if row == OTHERS else [grid.row(row)])]
    return pairs


def column_groups(view: GridView, family: Family) -> list[list[int]]:
    """Indices of the columns of each comparison of a pair."""
    if isinstance(family.columns, list):
        return [[view.score_grid.column(label) for label in family.columns]]
    return (
        [[i] for i in single_columns(view.score_grid)]
        if family.columns == "each"
        else [summary_columns(view)]
    )


def summary_columns(view: GridView) -> list[int]:
    """The columns whose mean sums up a table: its own averages, or all where it has none that
    can be run."""
    declared = [
        i
        for i, column in enumerate(view.score_grid.columns)
        if column.mean or column.task == "Avg."
    ]
    if any(row[i].can_be_run for i in declared for row in view.rows):
        return declared
    return single_columns(view.score_grid)


def single_columns(grid: Grid) -> list[int]:
    """The columns of single scores; those of averages where a table has no others."""
    shown = [i for i, column in enumerate(grid.columns) if not column.mean and column.delta is None]
    return [i for i in shown if grid.columns[i].task != "Avg."] or shown


def block(view: GridView, index: int) -> tuple | None:
    """What rows that are ranked together share: encoder, kind of data; None for controls and
    rows that are not run."""
    cells = [cell for cell in view.rows[index] if cell.plan.specs]
    if not cells or cells[0].is_control:
        return None
    recipe, method = cells[0].plan.row.run, declaration(cells[0].plan.specs[0].method)
    return (recipe and recipe.encoder) or view.score_grid.encoder, method.corpus


def judged(comparison: Comparison, p_family: float, count: int) -> Comparison:
    """A comparison as one of `count` of a family. Its interval has Bonferroni's level, and ends
    at 0 where that contains 0 but Holm's test shows a difference."""
    assert comparison.estimate is not None
    low, high = comparison.estimate.interval(stats.LEVEL / count)
    relation = comparison.relation
    if relation != INACTIVE_HERE:
        relation = (
            NOT_SHOWN
            if p_family >= stats.LEVEL
            else BETTER
            if comparison.estimate.gain > 0
            else WORSE
        )
    low, high = (
        max(low, 0.0) if relation == BETTER else low,
        min(high, 0.0) if relation == WORSE else high,
    )
    return replace(
        comparison, p_family=p_family, relation=relation, family_low=low, family_high=high
    )


def best_rows(view: GridView, column: Column) -> list[set[int]]:
    """The rows of a column that may be best at 95 %, per block of rows that are ranked together: a
    row is not where one is better by a one-sided test at 5 % over the number of other rows. Blocks
    of one row are left out.
    """
    blocks: dict[tuple, list[int]] = {}
    cells = view.column(column.label)
    for index, cell in enumerate(cells):
        if column.delta is None and cell.is_comparable and (of := block(view, index)) is not None:
            blocks.setdefault(of, []).append(index)
    return [may_be_best(rows, cells, view.scale) for rows in blocks.values() if len(rows) > 1]


def may_be_best(rows: list[int], cells: list[Cell], scale: str) -> set[int]:
    """Those of rows that no higher one beats."""
    level = 2 * stats.LEVEL / (len(rows) - 1)  # of a two-sided interval, of which one side counts
    ranked = sorted(rows, key=lambda row: -cells[row].sign * cells[row].mean)

    def is_better(other: int, row: int) -> bool:
        if unlike([*cells[other].leaves, *cells[row].leaves]) is not None:
            return False
        return estimate_of(weighted([(cells[other], cells[row])]), scale).interval(level)[0] > 0

    return {
        row
        for i, row in enumerate(ranked)
        if not any(is_better(other, row) for other in ranked[:i])
    }


# ---------------------------------------------------------------- one comparison


def compare(
    view: GridView, row: int, against: int, columns: Sequence[int], refused: str = ""
) -> Comparison:
    """A row against another, averaged over those columns in which both can be run, as a family
    of its own; `refused` is why its question cannot be asked, where it cannot."""
    grid = view.score_grid
    pairs = [(view.rows[row][i], view.rows[against][i]) for i in columns]
    pairs = [pair for pair in pairs if all(cell.can_be_run for cell in pair)] or pairs
    labels = [one.plan.column.label for one, _ in pairs]
    leaves = [leaf for pair in pairs for cell in pair for leaf in cell.leaves]
    runs = {(spec.run_id, leaf.plan.evaluator) for leaf in leaves for spec in leaf.plan.specs}
    printed = [(a, a.published, b.published) for a, b in pairs if a.published and b.published]
    gains = [a.sign * 100 * (one.value - base.value) / a.factor for a, one, base in printed]
    about = Comparison(
        grid.rows[row].label,
        grid.rows[against].label,
        ", ".join(labels) if len(labels) < 3 else f"{labels[0]} to {labels[-1]}",
        NOT_RUN,
        differs=setting_differences(*pairs[0]),
        printed=float(np.mean(gains)) if len(gains) == len(pairs) else None,
        scored=(sum(view.runs[run] is not None for run in runs), len(runs)),
        pairs=tuple(pairs),
    )
    if state := (NOT_ASKED, refused) if refused else why_not(pairs):
        return replace(about, relation=state[0], reason=state[1])
    terms = weighted(pairs)
    estimate = estimate_of(terms, view.scale)
    about = replace(about, over_seeds_only=is_over_seeds_only(estimate, pairs))
    if estimate.is_within(stats.SLACK):
        return replace(about, relation=NOT_ASKED, reason=EQUAL_SCORES)
    if estimate.error()[0] == inf or (
        estimate.seed_sd is None and not all(c.is_deterministic for _, c in terms)
    ):
        return replace(about, relation=ONE_SEED, estimate=estimate)
    relation = INACTIVE_HERE if estimate.is_within(INACTIVE) else NOT_SHOWN
    p, (low, high) = estimate.p(), estimate.interval()
    return judged(
        replace(about, relation=relation, estimate=estimate, p=p, low=low, high=high), p or 0.0, 1
    )


def why_not(pairs: Sequence[tuple[Cell, Cell]]) -> tuple[str, str] | None:
    """Why rows cannot be compared: a relation and the reason; None where they can."""
    cells = [*chain.from_iterable(pairs)]
    leaves = [leaf for cell in cells for leaf in cell.leaves]
    if missing := next(
        (leaf.plan for leaf in leaves if not leaf.plan.specs and not leaf.values), None
    ):
        return NOT_RUN, missing.missing or f"{missing.row.label} has no runs"
    if all(same_runs(*pair) for pair in pairs):
        return SAME_RUNS, ""
    if unchanged := next((cell.plan.row.label for cell in cells if cell.unchanged), None):
        return (
            NOT_ASKED,
            f"the loss of {unchanged} is 0 from the start, so training changes nothing",
        )
    if (reason := scored_elsewhere(leaves)) is not None:
        return OTHER_DATA, reason
    if any(cell.absent for cell in cells):
        return PARTIAL, ""
    if not all(cell.values for cell in cells):
        return NOT_RUN, "the evaluator gave no such score"
    if any(cell.stale for cell in cells):
        return OUTDATED, ""
    return unlike(leaves)


def scored_elsewhere(leaves: Sequence[Cell]) -> str | None:
    """Say which row has scores on other test data than its table; None where none has."""
    reasons = (
        f"{leaf.plan.row.label}: {leaf.why_elsewhere}" for leaf in leaves if leaf.why_elsewhere
    )
    return next(reasons, None)


def unlike(leaves: Sequence[Cell]) -> tuple[str, str] | None:
    """Why complete cells cannot be compared: a relation and the reason; None where they can.

    Two tables may have different test data. Replicates over test items that only some runs of a
    score have would drop the error over items in silence.
    """
    first: dict[str, Cell] = {}  # by evaluator
    for leaf in leaves:
        one = first.setdefault(leaf.plan.evaluator, leaf)
        if leaf.data and one.data and not leaf.data.is_same_as(one.data):
            labels = f"{one.plan.row.label} and {leaf.plan.row.label}"
            hashes = f"{one.data.text_beside(leaf.data)} and {leaf.data.text_beside(one.data)}"
            return (
                OTHER_DATA,
                f"{labels} are scored on different test data ({leaf.plan.evaluator}: {hashes})",
            )
    for scores in by_score(leaves).values():
        lacking = [leaf for leaf in scores if leaf.without_replicates]
        if any(set(leaf.values) - leaf.without_replicates for leaf in scores) and lacking:
            label, count = lacking[0].plan.row.label, len(lacking[0].without_replicates)
            runs = f"{count} of {len(lacking[0].values)} runs of {label}"
            return (
                UNPAIRED,
                f"{runs} have no replicates over the test items of {lacking[0].plan.evaluator}",
            )
    return None


def by_score(leaves: Iterable[Cell]) -> dict[tuple[str, str, str], list[Cell]]:
    """Cells by what is measured: evaluator, task and metric."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for leaf in leaves:
        groups.setdefault((leaf.plan.evaluator, leaf.plan.task, leaf.plan.metric), []).append(leaf)
    return groups


def is_over_seeds_only(estimate: Estimate, pairs: Sequence[tuple[Cell, Cell]]) -> bool:
    """Whether the error over test items is missing though an evaluator declares them."""
    leaves = chain.from_iterable(cell.leaves for cell in chain.from_iterable(pairs))
    return estimate.item_se is None and any(has_items(leaf.plan) for leaf in leaves)


def has_items(plan: CellPlan) -> bool:
    """Whether an evaluator declares how items make a cell's score."""
    if not plan.evaluator:  # of made-up numbers (benchmarks/judge.py)
        return False
    rule = protocol(plan.evaluator).declaration.items
    return rule is not None and rule.metric in (None, plan.metric)


def weighted(pairs: Sequence[tuple[Cell, Cell]]) -> list[tuple[float, Cell]]:
    """The mean difference of pairs of cells as a weighted sum of cells, in points; positive is
    better."""
    terms = []
    for a, b in pairs:
        weight = a.sign * 100 / (a.factor * len(pairs))
        terms += [(weight, a), (-weight, b)]
    return terms


def estimate_of(terms: Sequence[tuple[float, Cell]], scale: str) -> Estimate:
    """A weighted sum of cells over the seeds that they share, with its errors over seeds and
    items."""
    weights, cells = [weight for weight, _ in terms], [cell for _, cell in terms]
    values = combine_by_seed(lambda *v: sum(w * x for w, x in zip(weights, v, strict=True)), *cells)
    summary, effects = stats.summarise(values.values()), item_effects(terms, scale)
    # evaluators are independent
    item_se = None if effects is None else sqrt(sum(map(np.var, effects.values())))
    return Estimate(summary.mean, summary.n, summary.std, item_se)


def setting_differences(a: Cell, b: Cell) -> tuple[Setting, ...]:
    """Shared settings, encoder and training data in which two rows differ, but for those that
    the comparison is about: what rows of one method state differently, and what a method keeps
    by definition."""
    first, second = (
        next((leaf.plan for leaf in cell.leaves if leaf.plan.specs), None) for cell in (a, b)
    )
    if first is None or second is None:
        return ()
    here, there = first.specs[0], second.specs[0]
    subject = (
        stated(first.row.run) ^ stated(second.row.run) if here.method == there.method else set()
    )
    about = {key for key, _ in subject} | {
        key for of in (here, there) for key in declaration(of.method).keeps
    }
    settings = [
        Setting(
            CALLED.get(key, key), setting_text(here.params[key]), setting_text(there.params[key])
        )
        for key in COMPARED_SETTINGS
        if key not in about and key in here.params and key in there.params
    ]
    if here.run_before is None and there.run_before is None:
        settings.append(Setting("encoder", here.encoder.name, there.encoder.name))
    if here.corpus and there.corpus:
        settings.append(Setting("corpus", here.corpus.name, there.corpus.name))
        settings.append(Setting("sentences", f"{here.corpus.size:,}", f"{there.corpus.size:,}"))
    return tuple(setting for setting in settings if setting.here != setting.there)


def stated(recipe) -> set[tuple[str, str]]:
    """The settings that a row states by itself, of its variant too."""
    variant = declaration(recipe.method).variant_params.get(recipe.variant or "default", {})
    return {
        (key, str(v))
        for key, v in (variant | recipe.params | recipe.sweep).items()
        if key != "components"
    }


def setting_text(value) -> str:
    """A value as people write it: `3e-5`, `0.05`, `avg`."""
    if isinstance(value, float) and 0 < value < 0.001:
        return np.format_float_scientific(value, trim="-", exp_digits=1)
    return f"{value:g}" if isinstance(value, float) else str(value)


def item_effects(terms: Sequence[tuple[float, Cell]], scale: str) -> dict[str, np.ndarray] | None:
    """By test items, the replicates of a weighted sum of cells; None where a score has none.

    Rows of which only some runs have them, or which have other items, were refused before
    (`unlike`).
    """
    sums: dict[str, np.ndarray] = {}
    items: dict[tuple[str, str], str] = {}
    for weight, cell in chain.from_iterable(term.weighted_leaves(share) for share, term in terms):
        plan, runs = cell.plan, tuple(spec.run_id for spec in cell.plan.specs)
        tasks = tasks_of(plan.evaluator) if plan.task == "Avg." else [plan.task]
        for task in tasks:
            mean = mean_replicates(runs, plan.evaluator, task, plan.metric, scale)
            if mean is None or items.setdefault((plan.evaluator, task), mean.items) != mean.items:
                return None
            sums[mean.items] = (
                sums.get(mean.items, 0.0) + weight * cell.factor / len(tasks) * mean.clustered
            )
    return sums


@cached_by_folder
def mean_replicates(
    runs: tuple[str, ...], evaluator: str, task: str, metric: str, scale: str
) -> Replicates | None:
    """Replicates of a task's score, the mean over runs; None where one has none, or was scored
    on other items."""
    contents = [read_scores(score_path(run, evaluator, scale)) for run in runs]
    read = [read_replicates(content, task, metric) for content in contents if content]
    known = [replicates for replicates in read if replicates is not None]
    if len(known) < len(runs) or len({replicates.items for replicates in known}) != 1:
        return None
    return Replicates(known[0].items, np.mean([replicates.clustered for replicates in known], 0))
