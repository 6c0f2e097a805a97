"""Figures that an evaluator declares and draws: a panel per row, from per-item values of a run."""

from csebench.plan.catalog.registry import load_drawing
from csebench.plan.schema.declarations import Panel
from csebench.plan.targets import score_path
from csebench.report.figures.parts import DrawnFigure
from csebench.report.numbers.cells import Cell, GridView
from csebench.score.data_of_scores import Scored
from csebench.score.drawing import DrawingSource
from csebench.score.score_types import Items
from csebench.score.store import items, stored_score, value

WIDEST_BESIDE = 6  # inches: wider panels stand below one another


def draw_panels(figure, view: GridView) -> DrawnFigure:
    """Lay out the panels of the rows, each drawn from the run of its first seed."""
    panel, draw_panel = load_drawing(view.figure.kind)
    sources = [items_of_first_run(cells[0], panel, view) for cells in view.rows]
    panel_count = sum(source is not None for source in sources)
    subfigures = iter(split_figure(figure, panel, max(1, panel_count)))

    table: list[list] = [["model"]]
    drawn = []
    for row, cells, source in zip(view.figure.rows, view.rows, sources, strict=True):
        if source is None:
            table.append([row.label])
            continue
        subfigure = next(subfigures)
        drawn.append(subfigure)
        arrays, content = source
        drawing_source = DrawingSource(cells[0].plan.evaluator, row.label, content)
        head, *lines = draw_panel(subfigure, arrays, drawing_source)

        # texts are left out of the table: sentences of data sets belong to others
        published = [index for index, name in enumerate(head) if name != "text"]
        table[0] = ["model", *(head[index] for index in published)]
        for line in lines:
            table.append([row.label, *(line[index] for index in published)])

    if panel.shared_axes:
        share_limits(drawn)
    return DrawnFigure(table, "of every row one run, that of the first seed", is_empty=not drawn)


def split_figure(figure, panel: Panel, count: int):
    """Split a figure into equal parts for panels, side by side if they are narrow."""
    rows = 1
    columns = count
    if panel.width > WIDEST_BESIDE:
        rows = count
        columns = 1
    figure.set_size_inches(max(6.4, columns * panel.width), rows * panel.height)
    return figure.subfigures(rows, columns, squeeze=False).flat


def share_limits(subfigures: list) -> None:
    """Give axes at the same place of all panels the limits that hold everything they show."""
    for same_axes in zip(*(subfigure.axes for subfigure in subfigures), strict=True):
        if same_axes[0].get_label() == "<colorbar>":
            continue
        limits = [axes.axis() for axes in same_axes]
        left, right, bottom, top = zip(*limits, strict=True)
        for axes in same_axes:
            axes.axis((min(left), max(right), min(bottom), max(top)))


def items_of_first_run(cell: Cell, panel: Panel, view: GridView) -> tuple[Items, dict] | None:
    """Read per-item values and the score JSON of a cell's first run.

    Returns:
        None if there is no score, or if the items are not on this machine or of other test data.
    """
    if not cell.plan.specs:
        return None
    spec = cell.plan.specs[0]
    evaluator = cell.plan.evaluator
    content, is_outdated = stored_score(spec, evaluator, view.scale)
    if content is None or value(content, cell.plan.task, cell.plan.column.metric) is None:
        return None
    if not view.is_on_its_data(evaluator, Scored(content, is_outdated)):
        return None
    file = score_path(spec.run_id, evaluator, view.scale)
    arrays = (items(content, file) or {}).get(evaluator, {})
    return (arrays, content) if panel.item in arrays else None
