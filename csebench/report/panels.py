"""What evaluators draw from per-item values of a paper's rows, as one figure. Same scores, same bytes.

Evaluators declare what they draw and draw it (evaluators/_template.py). Figures of cells: csebench/report/figures.py.
"""

from csebench.plan.declarations import Panel
from csebench.plan.registry import load_drawing
from csebench.plan.targets import score_path
from csebench.report.cells import Cell, GridView
from csebench.score import store
from csebench.score.drawing import Source
from csebench.score.score_types import Items


def draw_rows(figure, view: GridView) -> tuple[list[list], str, bool]:
    """A paper's figure: what an evaluator draws of the run of each row's first seed, one part of the figure a row.
    Returns what is plotted, a note, and whether anything is."""
    panel, draw_panel = load_drawing(view.figure.kind)
    runs = [items_of_first_run(cell, panel, view.scale) for cell, *_ in view.rows]
    count = max(1, sum(run is not None for run in runs))
    stacked = panel.width > 6
    rows, columns = (count, 1) if stacked else (1, count)
    figure.set_size_inches(max(6.4, columns * panel.width), rows * panel.height)
    parts = iter(figure.subfigures(rows, columns, squeeze=False).flat)
    table: list[list] = [["model"]]
    drawn = []
    for row, (cell, *_), run in zip(view.figure.rows, view.rows, runs, strict=True):
        if run is None:
            table.append([row.label])
            continue
        arrays, content = run
        drawn.append(next(parts))
        head, *lines = draw_panel(drawn[-1], arrays, Source(cell.plan.evaluator, row.label, content))
        published = [i for i, name in enumerate(head) if name != "text"]  # sentences belong to others
        table[0] = ["model", *(head[i] for i in published)]
        table += [[row.label, *(line[i] for i in published)] for line in lines]
    for axes in zip(*(part.axes for part in drawn), strict=True) if panel.shared_axes else ():
        if axes[0].get_label() == "<colorbar>":
            continue
        for which in ("xlim", "ylim"):  # limits that hold all that each of them shows
            limits = [getattr(ax, f"get_{which}")() for ax in axes]
            for ax in axes:
                ax.set(**{which: (min(low for low, _ in limits), max(high for _, high in limits))})
    table = [line + [None] * (len(table[0]) - len(line)) for line in table]
    return table, "of every row one run, that of the first seed", bool(drawn)


def items_of_first_run(cell: Cell, panel: Panel, scale: str) -> tuple[Items, dict] | None:
    """Per-item values and score JSON of a cell's first run; None where they are not here."""
    if not cell.plan.specs:
        return None
    spec = cell.plan.specs[0]
    content, _ = store.score(spec, cell.plan.evaluator, scale)
    if content is None or store.value(content, cell.plan.task, cell.plan.column.metric) is None:
        return None
    file = score_path(spec.run_id, cell.plan.evaluator, scale)
    arrays = (store.items(content, file) or {}).get(cell.plan.evaluator, {})
    return (arrays, content) if panel.item in arrays else None
