"""Compute the controls of a scale, and decide which comparisons the scale may judge.

A control is a difference that every reader expects, such as SimCSE above the untrained encoder. A
scale that does not see it cannot tell methods of this kind apart. Its comparisons of such methods
keep their numbers and get no verdict.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from csebench.base.caches import cached_by_folder
from csebench.plan.catalog.registry import declaration
from csebench.plan.controls import CellPlace, PlannedControl, planned_controls
from csebench.plan.schema.declarations import Control, Training
from csebench.report.numbers.cells import Cell, printed_view, with_scores_of
from csebench.report.numbers.estimates import (
    CellPair,
    Estimate,
    estimate_of,
    printed_difference,
    weighted,
)
from csebench.report.numbers.refusals import ScaleCannotTell, mismatch, why_not_scored


@dataclass(frozen=True)
class ControlResult:
    """A control, and its difference in the scores of a scale."""

    control: Control
    estimate: Estimate | None = None  # None: a score is missing, or the rows cannot be compared
    printed: float | None = None  # the same difference in print, in points

    @property
    def holds(self) -> bool | None:
        """Whether the 95 % interval lies above what the control needs; None without an estimate."""
        if self.estimate is None:
            return None
        low, _ = self.estimate.interval()
        return low > self.control.least


@cached_by_folder
def control_results(scale: str) -> tuple[ControlResult, ...]:
    """Compute the controls of a scale from the scores that exist."""
    return tuple(control_result(planned, scale) for planned in planned_controls(scale))


def control_result(planned: PlannedControl, scale: str) -> ControlResult:
    """Compute one control.

    Other comparisons refuse a row whose loss is 0 from the start. A control accepts it, because it
    may ask just this: whether training without a loss leaves the scores where they were.
    """
    places = (planned.cell, planned.base)
    cell, base = with_scores_of([printed_cell(place, scale) for place in places], scale)
    printed = printed_difference([(cell, base)])

    cells = [cell, base]
    has_runs = bool(cell.plan.specs) and bool(base.plan.specs)
    if not has_runs or why_not_scored(cells) is not None or mismatch(cells) is not None:
        return ControlResult(planned.control, printed=printed)
    estimate = estimate_of(weighted([(cell, base)]), scale)
    return ControlResult(planned.control, estimate, printed)


def printed_cell(place: CellPlace, scale: str) -> Cell:
    """Build a cell of a control, with its printed value and without scores."""
    return printed_view(place.paper, place.table, scale).rows[place.row][place.column]


def training_of(pairs: Sequence[CellPair]) -> Training | None:
    """Say what kind of training the compared rows have.

    Returns:
        `labelled` if any row is trained on labels, else `unlabelled` if any row is trained. None if
        no row is trained: untrained encoders and fitted maps are always judged.
    """
    trainings: set[Training | None] = set()
    for cell in chain.from_iterable(pairs):
        for leaf in cell.leaves:
            trainings |= {declaration(spec.method).training for spec in leaf.plan.specs}
    return most_labelled(trainings)


def most_labelled(trainings: Collection[Training | None]) -> Training | None:
    """Say how compared rows count as trained: `labelled` if any is; None if none is trained."""
    for training in ("labelled", "unlabelled"):
        if training in trainings:
            return training
    return None


def why_scale_cannot_tell(pairs: Sequence[CellPair], scale: str) -> ScaleCannotTell | None:
    """Explain why a scale gives no verdict on a comparison; None if it gives one.

    The reason is a failed control for the kind of training that the compared rows have.
    """
    training = training_of(pairs)
    if training is None:
        return None
    return why_not_judged(training, scale)


def why_not_judged(training: Training, scale: str) -> ScaleCannotTell | None:
    """Explain why a scale gives no verdict on methods of a kind; None if it gives verdicts.

    Only a control that fails takes verdicts away. A control without scores takes none.
    """
    if not any(result.holds is False for result in controls_for(training, scale)):
        return None
    results = control_results(scale)
    holding = [result for result in results if result.holds is True]
    return ScaleCannotTell(scale, training, len(holding), len(results))


def controls_for(training: Training, scale: str) -> list[ControlResult]:
    """List the controls that decide whether a scale judges methods of a kind."""
    return [result for result in control_results(scale) if training in result.control.judges]


def scale_cannot_tell(cells: Sequence[Cell], scale: str) -> bool:
    """Whether a scale gives no verdict on comparisons of these rows."""
    return why_scale_cannot_tell([(cell, cell) for cell in cells], scale) is not None
