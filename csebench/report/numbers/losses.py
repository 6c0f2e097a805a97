"""Read how far training came: the loss of a row's runs at their first and last evaluation."""

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
    first_step: int  # step of the first evaluation
    first: float  # loss at this step
    last_step: int
    last: float


def row_losses(view: GridView) -> list[RowLoss]:
    """List the training loss of every row with trained runs that have scores."""
    losses = []
    for row, cells in zip(view.score_grid.rows, view.rows, strict=True):
        curves = loss_curves(cells, view.scale)
        if not curves:
            continue
        first_points = [curve[0] for curve in curves]
        last_points = [curve[-1] for curve in curves]
        loss = RowLoss(
            row.label,
            len(curves),
            first_step=min(point["step"] for point in first_points),
            first=fmean(point["loss"] for point in first_points),
            last_step=max(point["step"] for point in last_points),
            last=fmean(point["loss"] for point in last_points),
        )
        losses.append(loss)
    return losses


def loss_curves(cells: Iterable[Cell], scale: str) -> list[list[dict]]:
    """Read the training curve of each run of a row. Cells of a row may share runs."""
    curves: dict[str, list[dict]] = {}  # by run
    for cell in cells:
        for leaf in cell.leaves:
            if leaf.plan.row.label != cell.plan.row.label:
                continue  # the baseline that the cell subtracts
            for spec in leaf.plan.specs:
                curve = loss_curve(spec, leaf.plan.evaluator, scale)
                if curve:
                    curves[spec.run_id] = curve
    return [*curves.values()]


def loss_curve(spec: Spec, evaluator: str, scale: str) -> list[dict]:
    """Read the training curve of a run from its score file.

    Returns:
        a point with `step` and `loss` for each evaluation during training. Empty if the run has no
        score, or was not trained.
    """
    content, _ = stored_score(spec, evaluator, scale)
    if content is None:
        return []
    return content.get("training", {}).get("curve") or []
