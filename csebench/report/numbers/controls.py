"""What the controls of a scale show, and which comparisons it may therefore judge.

A scale that cannot see a difference that every reader expects, such as SimCSE above the untrained
encoder, cannot tell methods of this kind apart. Its comparisons of such methods keep their numbers
and get no verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from csebench.base.caches import cached_by_folder
from csebench.plan.controls import CellPlace, PlannedControl, planned_controls
from csebench.plan.schema.declarations import Control, Training
from csebench.report.numbers.cells import Cell, printed_view, with_scores_of
from csebench.report.numbers.estimates import CellPair, Estimate, estimate_of, weighted
from csebench.report.numbers.refusals import ScaleCannotTell, mismatch, why_not_scored


@dataclass(frozen=True)
class ControlResult:
    """A control, and what the scores of its scale show."""

    control: Control
    estimate: Estimate | None = None  # None: not all runs are scored
    printed: float | None = None  # the same difference in print, in points

    @property
    def holds(self) -> bool | None:
        """Whether the difference is shown to be as large as it must be; None without scores."""
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

    A row whose loss is 0 from the start counts, unlike in other comparisons: that training without
    a loss changes nothing is what a control may be about.
    """
    places = (planned.cell, planned.base)
    cell, base = with_scores_of([printed_cell(place, scale) for place in places], scale)
    printed = None
    if cell.published is not None and base.published is not None:
        difference = cell.published.value - base.published.value
        printed = cell.sign * 100 * difference / cell.factor

    cells = [cell, base]
    has_runs = bool(cell.plan.specs) and bool(base.plan.specs)
    if not has_runs or why_not_scored(cells) is not None or mismatch(cells) is not None:
        return ControlResult(planned.control, printed=printed)
    estimate = estimate_of(weighted([(cell, base)]), scale)
    return ControlResult(planned.control, estimate, printed)


def printed_cell(place: CellPlace, scale: str) -> Cell:
    """Build a cell of a control, without scores."""
    return printed_view(place.paper, place.table, scale).rows[place.row][place.column]


def training_of(pairs: Sequence[CellPair]) -> Training | None:
    """Say what kind of training the compared rows have.

    Returns:
        `labelled` if a row is trained on labels, `unlabelled` if a row is trained without. None if
        nothing is trained, as for an untrained encoder or a fitted map.
    """
    kinds: set[str] = set()
    for cell in chain.from_iterable(pairs):
        for leaf in cell.leaves:
            kinds |= leaf.kinds
    if "supervised" in kinds:
        return "labelled"
    if kinds & {"two_views", "token_level"}:
        return "unlabelled"
    return None


def why_scale_cannot_tell(pairs: Sequence[CellPair], scale: str) -> ScaleCannotTell | None:
    """Find whether a control of the scale that the compared rows depend on fails.

    A control whose runs are not scored says nothing.
    """
    training = training_of(pairs)
    if training is None:
        return None
    return blocked(training, scale)


def blocked(training: Training, scale: str) -> ScaleCannotTell | None:
    """Find whether a scale judges no methods of a kind; None if it does."""
    results = control_results(scale)
    failed = [result for result in results if result.holds is False]
    if not any(training in result.control.judges for result in failed):
        return None
    held = sum(result.holds is True for result in results)
    return ScaleCannotTell(scale, training, held, len(results))


def is_blocked(cells: Sequence[Cell], scale: str) -> bool:
    """Whether a scale judges no methods of the kind of these rows."""
    return why_scale_cannot_tell([(cell, cell) for cell in cells], scale) is not None
