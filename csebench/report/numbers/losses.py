"""How far training came: the loss of a row's runs at their first and last reading."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from csebench.plan.schema.spec import Spec
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.store import stored_score


@dataclass(frozen=True)
class RowLoss:
    """The training loss of the runs of a row, as means over the runs."""

    row: str
    runs: int
    first_step: int  # of the first reading
    first: float
    last_step: int
    last: float


def row_losses(view: GridView) -> list[RowLoss]:
    """List the training loss of every row with trained runs that have scores."""
    losses = []
    for row, cells in zip(view.score_grid.rows, view.rows, strict=True):
        curves = loss_curves(cells, view.scale)
        if curves:
            losses.append(
                RowLoss(
                    row.label,
                    len(curves),
                    first_step=min(curve[0]["step"] for curve in curves),
                    first=fmean(curve[0]["loss"] for curve in curves),
                    last_step=max(curve[-1]["step"] for curve in curves),
                    last=fmean(curve[-1]["loss"] for curve in curves),
                )
            )
    return losses


def loss_curves(cells: Iterable[Cell], scale: str) -> list[list[dict]]:
    """Read the evaluations during training of each run of a row, from its scores."""
    curves: dict[str, list[dict]] = {}  # by run
    for cell in cells:
        for leaf in cell.leaves:
            if leaf.plan.row.label != cell.plan.row.label:
                continue  # a run of the baseline that is subtracted
            for spec in leaf.plan.specs:
                curve = loss_curve(spec, leaf.plan.evaluator, scale)
                if curve:
                    curves[spec.run_id] = curve
    return [*curves.values()]


def loss_curve(spec: Spec, evaluator: str, scale: str) -> list[dict]:
    """Read the evaluations during training of a run; none if it has no score, or no training."""
    content, _ = stored_score(spec, evaluator, scale)
    if content is None:
        return []
    return content.get("training", {}).get("curve") or []
