"""Figures of kind `training`: how alignment and uniformity of a row move while it trains."""

from dataclasses import dataclass
from itertools import chain

from csebench.base.terminal import capitalised
from csebench.plan.schema.paper import Row
from csebench.report.figures.narrow import KeyEntry, stacked_axes, write_key
from csebench.report.figures.parts import DrawnFigure, row_style, seeds_note
from csebench.report.figures.point_labels import PointLabel, write_point_labels
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.store import stored_score

CURVE = ("alignment", "uniformity", "spearman")  # measured in training on STS-B dev
TRAINING_HEAD = [
    "row",
    "step",
    "alignment",
    "alignment_std",
    "uniformity",
    "uniformity_std",
    "spearman",
    "spearman_std",
    "n",
    "runs",
]


@dataclass(frozen=True)
class TrainingCurve:
    """What the runs of a row measured at the evaluated steps, averaged over the runs."""

    steps: dict[int, dict[str, stats.Summary]]  # by step, then by the names of CURVE
    runs: list[str]  # ids


def draw_training(figure, view: GridView) -> DrawnFigure:
    """Draw a path per row in the plane of uniformity and alignment, the mean over its seeds.

    A path is named below the axes. Its first step has a text, its last one an arrow head.
    """
    (axes,) = stacked_axes(figure, 1, len(view.figure.rows))
    table: list[list] = [TRAINING_HEAD]
    seeds = []
    paths: list[DrawnPath] = []
    for place, (row, cells) in enumerate(zip(view.figure.rows, view.rows, strict=True)):
        curve = training_curve(cells[0], view.scale)
        if not curve.steps:
            table.append([row.label])
            continue
        table += training_rows(row, curve)
        seeds.append(len(curve.runs))
        paths.append(draw_path(axes, row, place, curve))

    axes.set_xlabel("uniformity on STS-B dev\n(log of the mean potential, less is better)")
    axes.set_ylabel("alignment on STS-B dev\n(mean squared distance, less is better)")
    axes.margins(0.12)
    labels = list(chain.from_iterable(path.labels for path in paths))
    points = list(chain.from_iterable(path.points for path in paths))
    write_point_labels(axes, labels, points)
    write_key(axes, [path.key for path in paths])
    remark = "Beside the names: Spearman x 100 on STS-B dev at the last step."
    note = f"{capitalised(view.figure.axis)}: {seeds_note(seeds)}. {remark}"
    return DrawnFigure(table, note, is_empty=not seeds)


def training_curve(cell: Cell, scale: str) -> TrainingCurve:
    """Average the curves of a cell's runs, each of the encoder that the run kept."""
    points: dict[int, list[dict]] = {}  # by step
    runs = []
    for spec in cell.plan.specs:
        content, _ = stored_score(spec, cell.plan.evaluator, scale)
        training = content["training"] if content else {}
        measured = training.get("curve") or []
        if measured:
            runs.append(spec.run_id)
        kept_encoder = training.get("best_encoder", 0)
        for point in measured:
            if point.get("encoder", 0) != kept_encoder:
                continue
            if all(point[key] is not None for key in CURVE):
                points.setdefault(point["step"], []).append(point)

    steps: dict[int, dict[str, stats.Summary]] = {}
    for step in sorted(points):
        steps[step] = {}
        for key in CURVE:
            steps[step][key] = stats.summarise(point[key] for point in points[step])
    return TrainingCurve(steps, runs)


def training_rows(row: Row, curve: TrainingCurve) -> list[list]:
    """Write the steps of a curve as rows under TRAINING_HEAD."""
    rows = []
    for step, summaries in curve.steps.items():
        values = []
        for key in CURVE:
            values += [summaries[key].mean, summaries[key].std]
        seeds = summaries[CURVE[0]].n
        rows.append([row.label, step, *values, seeds, " ".join(curve.runs)])
    return rows


@dataclass(frozen=True)
class DrawnPath:
    """A path that was drawn, with the texts that it needs."""

    key: KeyEntry  # its name, with the score at the last step
    labels: list[PointLabel]  # the first step
    points: list[tuple[float, float]]


def draw_path(axes, row: Row, place: int, curve: TrainingCurve) -> DrawnPath:
    """Draw the path of a row. Its texts are written when all paths are drawn."""
    x = [summaries["uniformity"].mean for summaries in curve.steps.values()]
    y = [summaries["alignment"].mean for summaries in curve.steps.values()]
    first_step = min(curve.steps)
    last_step = max(curve.steps)
    last_score = 100 * curve.steps[last_step]["spearman"].mean

    style = row_style(row, place)
    markers = range(max(1, len(x) - 1))  # the last point has the arrow head
    (line,) = axes.plot(
        x,
        y,
        **style,
        markersize=4.5,
        linewidth=1.2,
        markevery=markers,
    )
    if len(x) > 1:
        arrow = {"arrowstyle": "-|>", "color": style["color"]}
        axes.annotate("", (x[-1], y[-1]), (x[-2], y[-2]), arrowprops=arrow)

    key = KeyEntry(line, f"{row.label}, step {last_step}: {last_score:.2f}", y[-1])
    labels = []
    if first_step != last_step:
        labels.append(PointLabel(f"step {first_step}", x[0], y[0], style["color"]))
    return DrawnPath(key, labels, list(zip(x, y, strict=True)))
