"""The papers' data figures, drawn from our scores as SVG, with their numbers as CSV. Same scores,
same bytes. Evaluators declare and draw what is made of their per-item values
(evaluators/_template.py); it is laid out here.
"""

import textwrap
from collections.abc import Iterable
from dataclasses import replace
from operator import sub
from pathlib import Path

from csebench.base.terminal import counted
from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import load_drawing
from csebench.plan.grids import untrained_cell
from csebench.plan.schema.declarations import Panel
from csebench.plan.schema.paper import Row
from csebench.plan.targets import grid_path, score_path
from csebench.report.csv_tables import CELLS, cell_rows
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, GridView, combine_parts
from csebench.report.words.comparisons import ends_text
from csebench.score.data_of_scores import Scored
from csebench.score.drawing import (
    GREY,
    MARKERS,
    STYLE,
    WIDTH,
    DrawingSource,
    row_colour,
    write_figure,
)
from csebench.score.score_types import Items
from csebench.score.store import items, stored_score, value

LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
OFFSET = 1.035  # between rows at the same size: a factor, as sizes are on a logarithmic axis
# of a legend
RIGHT_OF_AXES = {
    "loc": "upper left",
    "bbox_to_anchor": (1, 1),
    "handlelength": 3,
    "alignment": "left",
}
CURVE = ("alignment", "uniformity", "spearman")  # of a run's training, on STS-B dev


def draw_figure(view: GridView) -> list[Path]:
    """Writes a paper's figure as `.svg` and `.csv`, where what is missing is empty; returns the
    files."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
        if draw_cells := {"curves": draw_curves, "bars": dots, "scatter": scatter}.get(
            view.figure.kind
        ):
            drawn = draw_cells(figure, view)
            table = [CELLS, *([*row.values()] for row in cell_rows(view))]
            counts = (cell.ours.n for cell in view.cells if cell.ours)
            note = seeds_note(counts, "error bars: ± one standard deviation over seeds")
        else:
            table, note, drawn = (draw_training if view.figure.kind == "training" else draw_rows)(
                figure, view
            )
        if view.elsewhere:
            note += f"; left out: {counted(view.elsewhere, 'run')} scored on other test data"
        svg = grid_path(view.paper, view.name, view.scale, "svg")
        if not drawn and view.progress[0] and svg.exists():
            return []  # drawn where the per-item values were, which are not published
        if not drawn:
            figure, note = (
                Figure(figsize=(WIDTH, 0.3), layout="constrained"),
                "nothing to draw: no scores",
            )
        apart = "" if view.judged else ", not comparable with the paper"
        columns = int(14 * figure.get_figwidth())  # characters that fit
        heading = textwrap.fill(f"{view.grid.title} (scale {view.scale}{apart})", columns)
        note = textwrap.fill(note, columns)
        figure.set_figheight(
            figure.get_figheight() + 0.2 * heading.count("\n") + 0.18 * note.count("\n") + 0.45
        )
        figure.suptitle(heading)
        figure.supxlabel(note, x=0.01, ha="left", fontsize=9)
        return write_figure(svg, figure, table)


def row_style(row: Row, place: int) -> dict:
    """Colour, marker and line of a row: the colour of its method; marker and line tell it from
    the rows next to it."""
    marker, line = MARKERS[place % len(MARKERS)], LINES[place % len(LINES)]
    return {"color": row_colour(row, place), "marker": marker, "linestyle": line}


# ---------------------------------------------------------------- figures of cells


def baseline_differences(view: GridView) -> list[list[Cell]]:
    """Of every cell to the baseline's, seed by seed; none of the baseline itself."""
    base, rows = view.rows[view.figure.baseline_row], []
    for cells in view.rows:
        empty = [replace(cell, values={}) for cell in cells]
        parts = zip(empty, cells, base, strict=True)
        rows.append(
            empty
            if cells is base
            else [combine_parts(one, [cell, of], sub) for one, cell, of in parts]
        )
    return rows


def seeds_note(counts: Iterable[int], more: str) -> str:
    """`means of 1 to 3 seeds; …`"""
    seeds = ends_text(counts)
    return f"means of {seeds} seed{'s' * (seeds != '1')}; {more}"


def draw_untrained(draw_line, shown: GridView) -> list:
    """A line (`axhline`, `axvline`) at the untrained encoder's score, if it has one; returns
    what a legend shows."""
    cell = untrained_cell(shown.paper, shown.name, shown.scale)
    if cell is None:
        return []
    content, is_outdated = stored_score(cell.specs[0], cell.evaluator, shown.scale)
    if content is None or not shown.is_on_its_data(cell.evaluator, Scored(content, is_outdated)):
        return []
    fraction = value(content, cell.task, cell.column.metric)
    if fraction is None:
        return []
    place = shown.figure.factor * fraction
    pooler = cell.specs[0].params["pooler"]
    is_matched = {spec.params["pooler"] for cell in shown.cells for spec in cell.plan.specs} == {
        pooler
    }
    label = (
        f"untrained encoder{'' if is_matched else f', {pooler}'}: {place:.{shown.figure.digits}f}"
    )
    return [
        draw_line(place, color=GREY, linestyle=(0, (1, 1)), linewidth=1.2, zorder=1, label=label)
    ]


def draw_curves(figure, shown: GridView) -> bool:
    """A line a row over the sizes of the training set."""
    grid, sentences = shown.figure, read_scale(shown.scale).sizes
    x = [sentences[column.size] for column in grid.columns]
    count = 2 if grid.baseline else 1
    figure.set_size_inches(WIDTH, 3.6 * count)
    axes = figure.subplots(count, squeeze=False)[:, 0]
    handles = draw_lines(axes[0], x, shown.rows, grid.rows)
    untrained = draw_untrained(axes[0].axhline, shown)
    axes[0].set_ylabel(grid.axis.replace(", ", ",\n"))
    if grid.baseline:
        draw_lines(axes[1], x, baseline_differences(shown), grid.rows)
        base = grid.rows[grid.baseline_row]
        axes[1].axhline(
            0, **row_style(base, grid.baseline_row) | {"marker": "", "linewidth": 1, "zorder": 1}
        )
        axes[1].set_ylabel(f"difference to {grid.baseline},\npaired by seed")
    ticks = sorted({*x})
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if len(ticks) > 5 else {}
    for ax in axes:
        ax.set(xscale="log", xlim=(ticks[0] / 1.5, ticks[-1] * 1.5))
        ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks], **slanted)
        ax.minorticks_off()
    seen = f"; every run sees {shown.sentences_seen:,}" if shown.sentences_seen else ""
    axes[-1].set_xlabel(f"sentences in the training pool{seen}")
    if handles:
        axes[0].legend(handles=handles + untrained, **RIGHT_OF_AXES)
    return bool(handles)


def draw_lines(axes, x: list[int], cells: list[list[Cell]], rows: list[Row]) -> list:
    """A line a row over its sizes, a little apart; returns what a legend shows, in the order in
    which lines end."""
    ends, more = [], {"markersize": 5, "linewidth": 1.5, "elinewidth": 0.9}
    for place, (row, row_cells) in enumerate(zip(rows, cells, strict=True)):
        style, offset = row_style(row, place), OFFSET ** (place - (len(rows) - 1) / 2)
        by_size = sorted(zip(x, row_cells, strict=True), key=lambda point: point[0])
        points = [
            (size * offset, cell.ours.mean, cell.ours.std or 0.0)
            for size, cell in by_size
            if cell.ours
        ]
        if points:
            line = axes.errorbar(*zip(*points, strict=True), **style, **more, label=row.label)
            ends.append((-points[-1][1], place, line))
    return [handle for *_, handle in sorted(ends)]


def dots(figure, shown: GridView) -> bool:
    """A dot with its deviation per row, below the name of each column; with a baseline, of the
    differences to it."""
    grid, cells = shown.figure, baseline_differences(shown) if shown.figure.baseline else shown.rows
    rows = [i for i, of_row in enumerate(cells) if any(cell.ours for cell in of_row)]
    axes, labels, headings = figure.subplots(), [], []  # a label per line, from the top
    for j, column in enumerate(grid.columns):
        if not any(cells[i][j].ours for i in rows):
            continue
        if len(grid.columns) > 1:
            headings.append(len(labels))
            labels.append(column.label)
        for i in rows:
            cell, style = (
                cells[i][j],
                {"color": row_colour(grid.rows[i], i), "marker": "o", "linestyle": ""},
            )
            y = -len(labels)
            labels.append(grid.rows[i].label)
            if cell.ours:
                axes.errorbar(cell.ours.mean, y, xerr=cell.ours.std, capsize=2, **style)
                label = f"{cell.ours.mean:{'+' if grid.baseline else ''}z.{cell.digits}f}"
                axes.annotate(
                    label,
                    (1.01, y),
                    xycoords=("axes fraction", "data"),
                    va="center",
                    annotation_clip=False,
                )
    if grid.baseline:
        axes.axvline(0, color=GREY, linewidth=1)
    handles = draw_untrained(axes.axvline, shown)
    axes.set_yticks([-place for place in range(len(labels))], labels)
    for place in headings:
        axes.get_yticklabels()[place].set_fontweight("bold")
    axes.set(ylim=(-max(len(labels), 1) + 0.4, 0.6), xlabel=grid.axis)
    figure.set_size_inches(WIDTH, 1.2 + 0.26 * max(len(labels), 4))
    if handles:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1))
    return bool(rows)


def scatter(figure, shown: GridView) -> bool:
    """A point a row: x and y; the third column stands in the legend."""
    grid, axes = shown.figure, figure.subplots()
    for i, (row, (x, y, *others)) in enumerate(zip(grid.rows, shown.rows, strict=True)):
        style = {"color": row_colour(row, i), "linestyle": ""}
        score = f": {others[0].ours.mean:.2f}" if others and others[0].ours else ""
        if x.ours and y.ours:
            where = (x.ours.mean, y.ours.mean, y.ours.std, x.ours.std)
            axes.errorbar(
                *where,
                **style,
                marker=MARKERS[i % len(MARKERS)],
                markersize=8,
                label=f"{row.label}{score}",
            )
        for cell, line in ((x, axes.axvline), (y, axes.axhline)):
            if cell.published and cell.judged:
                line(
                    cell.published.value,
                    color=style["color"],
                    linestyle=":",
                    label=f"{row.label}, published",
                )
    axes.set(
        xlabel=grid.columns[0].label + " (less is better)" * grid.columns[0].lower, ylabel=grid.axis
    )
    axes.margins(0.12)
    if drawn := axes.has_data():
        axes.legend(**RIGHT_OF_AXES, title=grid.columns[2].label if len(grid.columns) > 2 else None)
    return drawn


# ---------------------------------------------------------------- figures of what runs keep


def draw_training(figure, shown: GridView):
    """A row is a path in the plane of uniformity and alignment over the evaluated steps, the
    mean of its seeds, from the number of its first step to an arrow head at its last."""
    axes = figure.subplots()
    table: list[list] = [
        ["row", "step", *(f"{key}{of}" for key in CURVE for of in ("", "_std")), "n", "runs"]
    ]
    seeds = []
    for place, (row, (cell, *_)) in enumerate(zip(shown.figure.rows, shown.rows, strict=True)):
        steps, runs = curve(cell, shown.scale)
        if not steps:
            table.append([row.label])
            continue
        for step, summaries in steps.items():
            values = [value for key in CURVE for value in (summaries[key].mean, summaries[key].std)]
            table.append([row.label, step, *values, summaries[CURVE[0]].n, " ".join(runs)])
        seeds.append(len(runs))
        places = [
            (summaries["uniformity"].mean, summaries["alignment"].mean)
            for summaries in steps.values()
        ]
        style, at_end = row_style(row, place), 100 * steps[max(steps)]["spearman"].mean
        more = {"markersize": 4.5, "linewidth": 1.2, "markevery": range(max(1, len(places) - 1))}
        axes.plot(*zip(*places, strict=True), **style, **more, label=f"{row.label}: {at_end:.2f}")
        if len(places) > 1:
            axes.annotate(
                "",
                places[-1],
                places[-2],
                arrowprops={"arrowstyle": "-|>", "color": style["color"]},
            )
        for step, end in {min(steps): places[0], max(steps): places[-1]}.items():
            axes.annotate(str(step), end, (6, 6), textcoords="offset points", color=style["color"])
    axes.set_xlabel("uniformity on STS-B dev (log of the mean potential, less is better)")
    axes.set_ylabel("alignment on STS-B dev\n(mean squared distance, less is better)")
    axes.margins(0.12)
    if drawn := sorted(axes.lines, key=lambda line: -line.get_ydata()[-1]):
        axes.legend(
            handles=drawn, **RIGHT_OF_AXES, title="STS-B dev Spearman x 100\nat the last step"
        )
    return table, seeds_note(seeds, "numbers beside the paths: steps of training"), bool(drawn)


def curve(cell: Cell, scale: str) -> tuple[dict[int, dict[str, stats.Summary]], list[str]]:
    """What the runs of a cell measured in training, by step, of the encoder that each kept; and
    the runs."""
    points: dict[int, list[dict]] = {}
    runs = []
    for spec in cell.plan.specs:
        content, _ = stored_score(spec, cell.plan.evaluator, scale)
        training = content["training"] if content else {}
        kept_encoder = training.get("best_encoder", 0)
        for point in training.get("curve") or []:
            if point.get("encoder", 0) == kept_encoder and all(
                point[key] is not None for key in CURVE
            ):
                points.setdefault(point["step"], []).append(point)
        runs += [spec.run_id] if training.get("curve") else []
    steps = {
        step: {k: stats.summarise(point[k] for point in points[step]) for k in CURVE}
        for step in sorted(points)
    }
    return steps, runs


def draw_rows(figure, view: GridView) -> tuple[list[list], str, bool]:
    """A part a row: what an evaluator draws of its first seed's run. Returns the table, a note,
    if any is drawn."""
    panel, draw_panel = load_drawing(view.figure.kind)
    runs = [items_of_first_run(cell, panel, view) for cell, *_ in view.rows]
    count = max(1, sum(run is not None for run in runs))
    rows, columns = (count, 1) if panel.width > 6 else (1, count)
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
        head, *lines = draw_panel(
            drawn[-1], arrays, DrawingSource(cell.plan.evaluator, row.label, content)
        )
        # sentences belong to others
        published = [i for i, name in enumerate(head) if name != "text"]
        table[0] = ["model", *(head[i] for i in published)]
        table += [[row.label, *(line[i] for i in published)] for line in lines]
    for axes in zip(*(part.axes for part in drawn), strict=True) if panel.shared_axes else ():
        if axes[0].get_label() == "<colorbar>":
            continue
        left, right, bottom, top = zip(*(ax.axis() for ax in axes), strict=True)
        for ax in axes:  # limits that hold all that each of them shows
            ax.axis((min(left), max(right), min(bottom), max(top)))
    return table, "of every row one run, that of the first seed", bool(drawn)


def items_of_first_run(cell: Cell, panel: Panel, view: GridView) -> tuple[Items, dict] | None:
    """Per-item values and score JSON of a cell's first run; None where they are not here, or of
    other test data."""
    if not cell.plan.specs:
        return None
    spec = cell.plan.specs[0]
    content, is_outdated = stored_score(spec, cell.plan.evaluator, view.scale)
    if content is None or value(content, cell.plan.task, cell.plan.column.metric) is None:
        return None
    if not view.is_on_its_data(cell.plan.evaluator, Scored(content, is_outdated)):
        return None
    file = score_path(spec.run_id, cell.plan.evaluator, view.scale)
    arrays = (items(content, file) or {}).get(cell.plan.evaluator, {})
    return (arrays, content) if panel.item in arrays else None
