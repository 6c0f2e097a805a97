"""What evaluators draw from per-item values: of one model, as figures and texts of its own; of a paper's rows, as
one figure. Same scores, same bytes.

Evaluators declare what they draw and draw it (evaluators/_template.py). Figures of cells: csebench/report/figures.py.
"""

from __future__ import annotations

from pathlib import Path

from csebench.base.errors import BadInput
from csebench.base.files import read_json
from csebench.plan.declarations import Panel, Texts
from csebench.plan.registry import load_drawing, panels, protocol, valid_evaluators
from csebench.plan.targets import score_path
from csebench.report.cells import Cell, GridView
from csebench.report.markdown import escape_cell, escape_html
from csebench.score import store
from csebench.score.drawing import STYLE, Source, csv_bytes, figure_files, write_files
from csebench.score.score_types import Items


def plot(scores: Path, out: Path) -> list[Path]:
    """Every figure that a score JSON has the data for, into the folder `out`.

    Args:
        scores: what `csebench evaluate` or `csebench publish` wrote.

    Returns:
        the files written.

    Raises:
        BadInput: not such a JSON, its per-item values are gone, or none of its evaluators has a figure.
    """
    content, by_evaluator = read(scores)
    model, files = content.get("run") or Path(content["model"]).name, {}
    for evaluator, items in by_evaluator.items():
        wanted, source = protocol(evaluator), Source(evaluator, model, content)
        if (texts := wanted.declaration.texts) is not None:
            page, table = retrieved_texts(wanted.declaration.title, texts, items, source)
            files[out / wanted.key] = {".csv": csv_bytes(table), ".md": page.encode()}
        for kind, panel in wanted.declaration.panels.items():
            if panel.item in items:
                files[out / f"{wanted.key}{panel.ending}"] = figure_files(*draw(kind, panel, items, source))
    if not files:
        raise BadInput(f"{scores}: has nothing to plot: no per-item values of {', '.join(plotted())}.")
    return [path for stem, contents in files.items() for path in write_files(stem, contents)]


def plotted() -> list[str]:
    """Evaluators that have something to plot."""
    declared = valid_evaluators().values()
    return [evaluator.name for evaluator in declared if evaluator.panels or evaluator.texts]


def draw(kind: str, panel: Panel, items: Items, source: Source):
    """A panel as a figure that stands alone, and the table of what it plots."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(panel.width, panel.height), layout="constrained")
        return figure, load_drawing(kind)(figure, items, source)


def draw_rows(figure, view: GridView) -> tuple[list[list], str, bool]:
    """A paper's figure: what an evaluator draws of the run of each row's first seed, one part of the figure a row.
    Returns what is plotted, a note, and whether anything is."""
    kind = view.figure.kind
    (_, panel), draw_panel = panels()[kind], load_drawing(kind)
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


def read(scores: Path) -> tuple[dict, dict[str, Items]]:
    """The JSON, and its items by evaluator, of those that have something to plot."""
    try:
        content = read_json(scores)
        file, _, _ = content["items"], content["model"], content["evaluations"]
    except (LookupError, TypeError):
        raise BadInput(f"{scores}: not a score JSON of `csebench evaluate`.") from None
    by_evaluator = store.items(content, scores)
    if by_evaluator is None:
        raise BadInput(f"{scores}: its per-item values are gone: no {scores.with_suffix('.items.npz')}, no {file}.")
    return content, {text: items for text, items in by_evaluator.items() if text.partition(":")[0] in plotted()}


def retrieved_texts(title: str, texts: Texts, items: Items, source: Source) -> tuple[str, list[list]]:
    """A Markdown page of the texts that a model retrieved, with those that papers print; and the same as a table."""
    page = [f"# {title}: {source.model}", ""]
    table: list[list] = [["query", "place", "text", "cosine", *(f"{label.lower()}_paper" for label in texts.labels)]]
    head = [source.model, "cosine", *(f"{label} (paper)" for label in texts.labels)]
    columns = (items[name] for name in (texts.queries, texts.retrieved, texts.cosines, texts.printed))
    for query, retrieved, cosines, printed in zip(*columns, strict=True):
        page += [f"Query: {query}", "", f"| | {' | '.join(head)} |", "|-" * (len(head) + 1) + "|"]
        for place, (text, cosine, *others) in enumerate(zip(retrieved, cosines, *printed, strict=True), 1):
            table.append([query, place, text, cosine, *others])
            cells = (f"#{place}", text, f"{cosine:.3f}", *others)
            page.append("| " + " | ".join(map(escape_cell, cells)) + " |")
        page.append("")
    return escape_html("\n".join(page)), table
