"""Why two rows are not compared: each reason as a value with its facts.

A comparison needs all runs of both rows, scored by today's code on the same test data. Either all
runs of a score have replicates over test items, or none has any. The sentences for these reasons
are made in csebench/report/words/comparisons.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from csebench.plan.schema.declarations import Training
from csebench.report.numbers.cells import Cell
from csebench.report.numbers.estimates import CellPair
from csebench.report.numbers.verdict_words import VerdictWord


class Relation(StrEnum):
    """What a comparison of two rows shows, or why it shows nothing, as CSV and JSON state it.

    It is finer than the word that readers see (`word`).
    """

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "not shown"
    SAME_RUNS = "same runs"
    INACTIVE = "inactive"  # the difference is shown to be next to nothing
    TUNED_AWAY = "tuned away"  # a search found no effect of the term that differs
    CANNOT_TELL = "cannot tell"  # controls of the scale fail, so that nothing is judged
    ONE_SEED = "one seed"  # there is a difference, but nothing to test it with
    PARTIAL = "partial"  # runs without scores
    OUTDATED = "outdated"
    NOT_ASKED = "cannot be asked"
    NOT_RUN = "not run"
    OTHER_DATA = "other data"  # scored on different test data
    UNPAIRED = "unpaired"  # only some runs have replicates over test items

    @property
    def word(self) -> VerdictWord:
        """Give the verdict in one of six words."""
        match self:
            case Relation.BETTER:
                return VerdictWord.HIGHER
            case Relation.WORSE:
                return VerdictWord.LOWER
            case Relation.INACTIVE:
                return VerdictWord.SAME
            case Relation.NOT_SHOWN:
                return VerdictWord.UNCLEAR
            case Relation.CANNOT_TELL:
                return VerdictWord.CANNOT_TELL
        return VerdictWord.NOT_TESTED


# ---------------------------------------------------------------- reasons


@dataclass(frozen=True)
class NoRuns:
    """A row has no runs at this scale."""

    row: str
    stated: str | None  # why, as its paper's file or the plan states it


@dataclass(frozen=True)
class NoSuchScore:
    """The evaluator gave no score of the task and metric."""


@dataclass(frozen=True)
class LossIsZero:
    """Training a row changes nothing, because its loss is 0 from the start."""

    row: str


@dataclass(frozen=True)
class PremiseNotShown:
    """A row does not lose as much as the question takes for granted."""

    row: str
    most: str  # label of the column that it loses from
    less: str  # the column that it loses to, or `the mean of 0.01% to 0.1%`
    loss: float  # points, as estimated here
    least: float  # points that it must be shown to lose more than
    printed: str  # its loss in the paper, and where


@dataclass(frozen=True)
class EqualScores:
    """Both rows have the same score in every run, so the difference has no error to bound it by."""


@dataclass(frozen=True)
class ScaleCannotTell:
    """A control fails, so that the scale judges no methods of this kind."""

    scale: str
    training: Training
    held: int  # controls that hold
    controls: int

    @property
    def failed(self) -> int:
        return self.controls - self.held


@dataclass(frozen=True)
class ScoredElsewhere:
    """Runs of a cell are scored on other test data than its table."""

    cell: Cell


@dataclass(frozen=True)
class DifferentData:
    """Two cells of one evaluator are scored on different test data."""

    first: Cell
    second: Cell


@dataclass(frozen=True)
class ReplicatesMissing:
    """Some runs of a score have replicates over test items, but runs of this row have none."""

    row: str
    evaluator: str
    lacking: int  # runs
    runs: int


Reason = (
    NoRuns
    | NoSuchScore
    | LossIsZero
    | PremiseNotShown
    | EqualScores
    | ScaleCannotTell
    | ScoredElsewhere
    | DifferentData
    | ReplicatesMissing
)


@dataclass(frozen=True)
class Refusal:
    """The relation of two rows that are not compared, with the reason if it needs one."""

    relation: Relation
    reason: Reason | None = None


# ---------------------------------------------------------------- rules


def why_not(pairs: Sequence[CellPair]) -> Refusal | None:
    """Find why rows cannot be compared over pairs of cells; None if they can."""
    cells = list(chain.from_iterable(pairs))
    leaves = list(chain.from_iterable(cell.leaves for cell in cells))
    for leaf in leaves:
        if not leaf.plan.specs and not leaf.values:  # made-up values have no runs, and count
            return Refusal(Relation.NOT_RUN, NoRuns(leaf.plan.row.label, leaf.plan.missing))
    if all(same_runs(cell, base) for cell, base in pairs):
        return Refusal(Relation.SAME_RUNS)
    for cell in cells:
        if cell.unchanged:
            return Refusal(Relation.NOT_ASKED, LossIsZero(cell.plan.row.label))
    return why_not_scored(cells) or mismatch(leaves)


def why_not_scored(cells: Sequence[Cell]) -> Refusal | None:
    """Find whether scores of cells are missing, outdated or on other data; None if all count."""
    for leaf in chain.from_iterable(cell.leaves for cell in cells):
        if leaf.elsewhere:
            return Refusal(Relation.OTHER_DATA, ScoredElsewhere(leaf))
    if any(cell.absent for cell in cells):
        return Refusal(Relation.PARTIAL)
    if not all(cell.values for cell in cells):
        return Refusal(Relation.NOT_RUN, NoSuchScore())
    if any(cell.is_outdated for cell in cells):
        return Refusal(Relation.OUTDATED)
    return None


def same_runs(a: Cell, b: Cell) -> bool:
    """Whether two cells measure the same on the same runs."""
    if not a.parts and not a.plan.specs:
        return False
    return runs_and_scores(a) == runs_and_scores(b)


def runs_and_scores(cell: Cell) -> list[tuple[set[str], set[tuple[str, ...]]]]:
    """List the run ids of each leaf, with the scores that the leaf shows of them."""
    measured = []
    for leaf in cell.leaves:
        run_ids = {spec.run_id for spec in leaf.plan.specs}
        measured.append((run_ids, leaf.plan.scores))
    return measured


def mismatch(leaves: Sequence[Cell]) -> Refusal | None:
    """Find why complete cells cannot be compared: other data or missing replicates.

    Cells of two tables may have different test data. If only some runs of a score have replicates
    over test items, a comparison would silently leave out the error over items.

    Returns:
        None if they can be compared.
    """
    first_of_evaluator: dict[str, Cell] = {}
    for leaf in leaves:
        first = first_of_evaluator.setdefault(leaf.plan.evaluator, leaf)
        if leaf.data and first.data and not leaf.data.is_same_as(first.data):
            return Refusal(Relation.OTHER_DATA, DifferentData(first, leaf))

    for cells in by_score(leaves).values():
        lacking = [cell for cell in cells if cell.without_replicates]
        some_runs_have = any(set(cell.values) - cell.without_replicates for cell in cells)
        if lacking and some_runs_have:
            return Refusal(Relation.UNPAIRED, replicates_missing(lacking[0]))
    return None


def by_score(leaves: Iterable[Cell]) -> dict[tuple[str, str, str], list[Cell]]:
    """Group cells by what they measure: evaluator, task and metric."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for leaf in leaves:
        plan = leaf.plan
        groups.setdefault((plan.evaluator, plan.task, plan.metric), []).append(leaf)
    return groups


def replicates_missing(cell: Cell) -> ReplicatesMissing:
    """Count the runs of a cell without replicates."""
    return ReplicatesMissing(
        row=cell.plan.row.label,
        evaluator=cell.plan.evaluator,
        lacking=len(cell.without_replicates),
        runs=len(cell.values),
    )
