"""The papers' data figures, drawn from our scores: SVG, PNG, and what is plotted as CSV. Same scores, same bytes.

Here are figures of cells and of training curves. Panels of per-item values are drawn by the evaluator that declares
them and only laid out here.
"""

from __future__ import annotations

import textwrap
from operator import sub
from pathlib import Path
from typing import Any, NamedTuple

from csebench.plan.catalog import paper
from csebench.plan.catalog import scale as read_scale
from csebench.plan.declarations import Panel
from csebench.plan.grids import untrained_cell
from csebench.plan.papers import Row
from csebench.plan.registry import load_drawing, protocol
from csebench.plan.registry import panels as declared_panels
from csebench.plan.targets import grid_label, grid_path, page, score_path
from csebench.report import stats
from csebench.report.cells import (
    PAPER_SCALE,
    Cell,
    GridView,
    combine_by_seed,
    grid_view,
    is_deterministic,
    shown_score,
)
from csebench.report.provenance import substitutions
from csebench.score.drawing import MARKERS, STYLE, Source, figure_files, row_colour, write_files
from csebench.score.score_types import Items
from csebench.score.store import items, score, value

LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
GREY = "#595959"
COLUMNS = ["row", "column", "size", "mean", "std", "n", "seeds", "values", "published", "published_std", "unit"]
COLUMNS += ["runs"]
SMALL = 8  # points
OFFSET = 1.035  # between rows at the same size: a factor, as sizes are on a logarithmic axis
SINGLE_SEED: dict[str, Any] = {"marker": "x", "color": "black", "markersize": 8, "linestyle": "", "zorder": 5}
RIGHT_OF_AXES = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False, "handlelength": 3}  # of a legend
NO_SCORES = "no scores"
CURVE = ("alignment", "uniformity", "spearman")  # of a run's training, on STS-B dev
# Where the name of a point may stand: points to the right of it and above, and how it is aligned.
PLACES = [(8, 0, "left", "center"), (-8, 0, "right", "center"), (0, 8, "center", "bottom"), (0, -8, "center", "top")]
PLACES += [(x, y, "left" if x > 0 else "right", "center") for y in (12, -12, 22, -22) for x in (8, -8)]


class Mark(NamedTuple):
    """What is drawn of a cell, or of its difference to the baseline's."""

    ours: stats.Summary | None = None
    published: tuple[float, float | None] | None = None  # with its deviation
    single: bool = False  # of one seed, of a method that has randomness


def draw(paper_name: str, name: str, scale: str) -> list[Path]:
    """Writes a figure of a paper as `.svg`, `.png` and `.csv`.

    What is missing is named in the figure and empty in the table; a figure of which nothing is there is that sentence
    alone. Published values are drawn at the paper's own scale only: others are on another level.

    Returns:
        the files written.

    Raises:
        BadInput: a score JSON cannot be read.
    """
    import matplotlib
    from matplotlib.figure import Figure

    shown = grid_view(paper_name, name, scale)
    with matplotlib.rc_context(STYLE):
        figure = Figure(layout="constrained")
        table, notes, drawn = DRAWERS.get(shown.figure.kind, panels)(figure, shown)
        stem = grid_path(paper_name, name, scale, "svg").with_suffix("")
        if not drawn and shown.progress[0] and stem.with_suffix(".csv").exists():
            return []  # drawn where the per-item values were, which are not published
        if not drawn:
            figure = Figure(figsize=(7.4, 0.3), layout="constrained")
            scored = any(cell.values for cells in shown.rows for cell in cells)
            notes = [
                "nothing to draw" if scored else "nothing to draw: no scores yet",
                *(note for note in notes if note.startswith("missing: ")),
            ]
        add_title_and_notes(figure, shown, notes)
    return write_files(stem, figure_files(figure, table))


def add_title_and_notes(figure, shown: GridView, notes: list[str]) -> None:
    """A figure's title and the notes below it, for which it grows."""
    apart = "" if shown.scale == PAPER_SCALE else ": not comparable with the paper"
    citation, label, subject = paper(shown.paper).reference, grid_label(shown.name), shown.grid.title
    stale = {cell.plan.row.label: None for cells in shown.rows for cell in cells if cell.stale}
    notes += [f"of older code or other settings: {', '.join(stale)}"] if stale else []
    substituted = substitutions(page(shown.name, shown.scale, shown.paper))
    notes += [f"substituted at this scale: {'; '.join(substituted)}"] if substituted else []
    above, below = [subject, f"scale {shown.scale}{apart}"], [*notes, f"{label} of {citation}"]
    above, below = (wrapped(texts, figure, size) for texts, size in ((above, 10), (below, SMALL)))
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2 * above.count("\n") + 0.15 * below.count("\n") + 0.4)
    figure.suptitle(above)
    figure.supxlabel(below, x=0.01, ha="left", fontsize=SMALL, color=GREY)


def wrapped(texts: list[str], figure, size: float) -> str:
    """Lines that fit the width of a figure, at a font size in points."""
    width = int(72 * figure.get_figwidth() / (0.56 * size))
    return "\n".join(textwrap.fill(text, width, break_on_hyphens=False) for text in texts)


def row_style(row: Row, place: int) -> dict:
    """Colour, marker and line of a row: the colour of its method; marker and line tell it from the rows next to it."""
    cycles = {"marker": MARKERS, "linestyle": LINES}
    return {"color": row_colour(row, place)} | {key: values[place % len(values)] for key, values in cycles.items()}


def missing(shown: GridView, reasons: list[list[str | None]], columns: list[str]) -> list[str]:
    """`missing: miCSE, SCD at 0.1%, 10% (no scores); VaSCL (no adapter)`, from the reason of every cell."""
    labels_by_reason: dict[tuple[str, str], list[str]] = {}
    for row, row_reasons in zip(shown.figure.rows, reasons, strict=True):
        for reason in dict.fromkeys(filter(None, row_reasons)):
            affected = [column for column, r in zip(columns, row_reasons, strict=True) if r == reason]
            where = "" if len(affected) == len(row_reasons) else f" at {', '.join(dict.fromkeys(affected))}"
            labels_by_reason.setdefault((where, reason), []).append(row.label)
    parts = [f"{', '.join(labels)}{where} ({reason})" for (where, reason), labels in labels_by_reason.items()]
    return [f"missing: {'; '.join(parts)}"] if parts else []


# ---------------------------------------------------------------- figures of cells


def marks(shown: GridView, to_baseline: bool = False) -> list[list[Mark]]:
    """Of every cell; or of its difference to the baseline's, seed by seed, and none of the baseline itself."""
    if not to_baseline:
        return [[mark(cell.values, cell.published, shown, cell) for cell in cells] for cells in shown.rows]
    base = shown.rows[shown.figure.baseline_row]
    return [
        [Mark() if cells is base else difference(*pair, shown) for pair in zip(cells, base, strict=True)]
        for cells in shown.rows
    ]


def mark(values, published, shown: GridView, cell: Cell) -> Mark:
    drawn = (published.value, published.std) if published and shown.scale == PAPER_SCALE else None
    ours = stats.summarise(values.values()) if values else None
    return Mark(ours, drawn, len(values) == 1 and not is_deterministic(cell))


def difference(cell: Cell, base: Cell, shown: GridView) -> Mark:
    values = combine_by_seed(sub, cell, base) if cell.values and base.values else {}
    change = mark(values, cell.published, shown, cell)
    if change.published is None or base.published is None:
        return change._replace(published=None)
    return change._replace(published=(change.published[0] - base.published.value, None))


def cell_table(shown: GridView) -> list[list]:
    """One line a cell, with the difference to the baseline's where there is one."""
    head = COLUMNS + (["difference", "difference_std", "difference_n"] if shown.figure.baseline else [])
    changes = marks(shown, True) if shown.figure.baseline else None
    sizes, rows = read_scale(shown.scale).sizes, []
    for i, (row, cells) in enumerate(zip(shown.figure.rows, shown.rows, strict=True)):
        for j, (column, cell) in enumerate(zip(shown.figure.columns, cells, strict=True)):
            runs = {spec.seed: spec.run_id for spec in cell.plan.specs}
            printed = [cell.published.value, cell.published.std] if cell.published else [None, None]
            line = [row.label, column.label, sizes[column.size], *numbers(cell.ours), joined(cell.seeds)]
            line += [joined(f"{cell.values[seed]:.6g}" for seed in cell.seeds), *printed, unit(shown, j)]
            line += [joined(runs[seed] for seed in cell.seeds if seed in runs)]
            rows.append(line + (numbers(changes[i][j].ours) if changes else []))
    return [head, *rows]


def numbers(summary: stats.Summary | None) -> list:
    return [summary.mean, summary.std, summary.n] if summary else [None, None, 0]


def joined(values) -> str:
    return ";".join(map(str, values))


def unit(shown: GridView, column: int) -> str:
    """`spearman x 100`"""
    of = shown.figure.columns[column]
    metric = next((cells[column].plan.metric for cells in shown.rows if cells[column].plan.metric), of.metric or "")
    factor = of.factor or shown.figure.factor
    return metric if factor == 1 else f"{metric} x {factor:g}"


def cell_notes(shown: GridView, columns: list[str] | None = None) -> list[str]:
    columns = columns or [column.label for column in shown.figure.columns]
    notes = missing(shown, [[reason(cell) for cell in cells] for cells in shown.rows], columns)
    if shown.scale != PAPER_SCALE and any(cell.published for cells in shown.rows for cell in cells):
        notes.append("published values are not drawn, as they are of another scale; the table has them")
    counts = sorted({cell.ours.n for cells in shown.rows for cell in cells if cell.ours})
    seeds = "–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "no"
    text = f"means of {seeds} seed{'s' * (counts != [1])}; error bars and bands: ± one standard deviation over seeds"
    return [text, *notes]


def untrained_value(shown: GridView) -> float | None:
    """The untrained encoder's score, in printed units; None where a figure has no use for it or it is not scored."""
    cell = untrained_cell(shown.paper, shown.name, shown.scale)
    if cell is None:
        return None
    content, _ = shown_score(cell.specs[0], cell.evaluator, shown.scale)
    fraction = value(content, cell.task, cell.column.metric) if content else None
    return None if fraction is None else shown.figure.factor * fraction


def draw_untrained(axes, shown: GridView, vertical: bool = False) -> list:
    """A line at the untrained encoder's score; returns what a legend shows."""
    if (score := untrained_value(shown)) is None:
        return []
    style = {"color": GREY, "linestyle": (0, (1, 1)), "linewidth": 1.2, "zorder": 1}
    label = f"untrained encoder: {score:.{shown.figure.digits}f}"
    return [(axes.axvline if vertical else axes.axhline)(score, **style, label=label)]


def reason(cell: Cell) -> str | None:
    """Why a cell has less than all of its values."""
    if cell.plan.missing or not cell.absent:
        return cell.plan.missing
    return f"{cell.absent} of {len(cell.plan.specs)} runs" if cell.values else NO_SCORES


def curves(figure, shown: GridView):
    """A line a row over sizes: percent of 10⁶ sentences as the papers have them, at other scales sentences."""
    grid, sentences = shown.figure, read_scale(shown.scale).sizes
    percent = shown.scale == PAPER_SCALE
    x = [sentences[column.size] / 10_000 if percent else sentences[column.size] for column in grid.columns]
    figure.set_size_inches(11.4 if grid.baseline else 7.4, 4.2)
    axes = figure.subplots(1, 2 if grid.baseline else 1, squeeze=False)[0]
    of_panels = [marks(shown), *([marks(shown, True)] if grid.baseline else [])]
    handles = lines(axes[0], x, of_panels[0], grid.rows)
    drawn = bool(handles)
    handles += legend_of_single_seeds(of_panels) + draw_untrained(axes[0], shown)
    axes[0].set_ylabel(grid.axis)
    if grid.baseline:
        lines(axes[1], x, of_panels[1], grid.rows)
        base = grid.rows[grid.baseline_row]
        axes[1].axhline(0, **row_style(base, grid.baseline_row) | {"marker": "", "linewidth": 1, "zorder": 1})
        axes[1].set_ylabel(f"{grid.axis},\ndifference to {grid.baseline}, paired by seed")
    for ax in axes:
        sizes(ax, x)
        ax.set_xlabel(f"size of the training set ({'% of 10⁶ sentences' if percent else 'sentences'})")
    if drawn:
        axes[-1].legend(handles=handles, **RIGHT_OF_AXES)
    return cell_table(shown), cell_notes(shown, None if percent else [f"{size:,}" for size in x]), drawn


def lines(axes, x: list[float], marks: list[list[Mark]], rows: list[Row]) -> list:
    """A line a row over the sizes that it has values of, each a little beside the others; returns what a legend shows,
    in the order in which the lines end."""
    from matplotlib.lines import Line2D

    ends, more = [], {"markersize": 5, "linewidth": 1.5}
    for place, (row, row_marks) in enumerate(zip(rows, marks, strict=True)):
        style, offset = row_style(row, place), OFFSET ** (place - (len(rows) - 1) / 2)
        points = sorted(
            (size * offset, m.ours.mean, m.ours.std, m.single) for size, m in zip(x, row_marks, strict=True) if m.ours
        )
        if points:
            axes.plot(*zip(*(point[:2] for point in points), strict=True), **style, **more)
            ends.append((-points[-1][1], place, Line2D([], [], **style, **more, label=row.label)))
        if deviating := [point for point in points if point[2] is not None]:
            size, mean, std, _ = zip(*deviating, strict=True)
            low, high = ([m + sign * s for m, s in zip(mean, std, strict=True)] for sign in (-1, 1))
            axes.fill_between(size, low, high, color=style["color"], alpha=0.12, linewidth=0)
            axes.errorbar(size, mean, std, ecolor=style["color"], elinewidth=0.8, linestyle="")
        if alone := [point[:2] for point in points if point[3]]:
            axes.plot(*zip(*alone, strict=True), **SINGLE_SEED)
        for size, m in zip(x, row_marks, strict=True):
            draw_published(axes, size * offset, m, style)
    handles = [handle for *_, handle in sorted(ends, key=lambda end: end[:2])]
    return handles + legend_of_published(marks)


def legend_of_single_seeds(of_panels: list[list[list[Mark]]]) -> list:
    from matplotlib.lines import Line2D

    single = any(m.single for panel in of_panels for row_marks in panel for m in row_marks)
    return [Line2D([], [], **SINGLE_SEED, label="one seed")] if single else []


def legend_of_published(marks: list[list[Mark]]) -> list:
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"color": GREY, "marker": "D", "markerfacecolor": "white", "linestyle": ""}
    return [Line2D([], [], **style, label="published")] if any(m.published for row in marks for m in row) else []


def draw_published(axes, x: float, mark: Mark, style: dict) -> None:
    """A published value with its deviation, as a hollow marker."""
    if mark.published:
        hollow = {"linestyle": "", "markerfacecolor": "white", "markersize": 6, "elinewidth": 0.8, "zorder": 4}
        axes.errorbar(x, *mark.published, **style | hollow)


def sizes(axes, x) -> None:
    """A logarithmic axis with a tick at every size, slanted where they are many."""
    ticks = sorted(set(x))
    axes.set_xscale("log")
    axes.set_xlim(ticks[0] / 1.5, ticks[-1] * 1.5)
    axes.set_xticks(ticks, [f"{tick:,.0f}" if tick >= 1 else f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    if len(ticks) > 5:
        for label in axes.get_xticklabels():
            label.set(rotation=45, ha="right", rotation_mode="anchor", fontsize=SMALL)


def dots(figure, shown: GridView):
    """A dot with its deviation per row, below the name of each column; with a baseline, of the differences to it."""
    grid, of_rows = shown.figure, marks(shown, shown.figure.baseline is not None)
    rows = [i for i, row_marks in enumerate(of_rows) if any(m.ours or m.published for m in row_marks)]
    axes, y, ticks = figure.subplots(), 0, []
    for j, column in enumerate(grid.columns):
        if not any(of_rows[i][j].ours or of_rows[i][j].published for i in rows):
            continue
        if len(grid.columns) > 1:
            where = {"xycoords": ("axes fraction", "data"), "va": "center", "fontweight": "bold"}
            axes.annotate(column.label, (0.01, -y), **where)
            y += 1
        for i in rows:
            m, style = of_rows[i][j], {"color": row_colour(grid.rows[i], i), "marker": "o", "linestyle": ""}
            ticks.append((-y, grid.rows[i].label))
            if m.ours:
                axes.errorbar(m.ours.mean, -y, xerr=m.ours.std, capsize=2, **style)
                text = f"{m.ours.mean:{'+' if grid.baseline else ''}z.{shown.rows[i][j].digits}f}"
                label = f"{text}, one seed" if m.single else text
                more = {"xycoords": ("axes fraction", "data"), "va": "center", "annotation_clip": False}
                axes.annotate(label, (1.01, -y), **more)
            if m.published:
                value, std = m.published
                axes.errorbar(value, -y, xerr=std, **style | {"marker": "D", "markerfacecolor": "white"})
            y += 1
    if grid.baseline:
        axes.axvline(0, color=GREY, linewidth=1)
    handles = draw_untrained(axes, shown, vertical=True) + legend_of_published(of_rows)
    axes.set_yticks(*zip(*ticks, strict=True) if ticks else ([], []))
    axes.set_ylim(-max(y, 1) + 0.4, 0.6)
    axes.set_xlabel(grid.axis)
    figure.set_size_inches(8, 1.2 + 0.26 * max(y, 4))
    if handles:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    return cell_table(shown), cell_notes(shown), bool(rows)


def scatter(figure, shown: GridView):
    """A point a row: x, y and, where it has a value, the third column as colour."""
    grid, points = shown.figure, marks(shown)
    figure.set_size_inches(7.8, 5)
    axes = figure.subplots()
    drawn = [
        (row.label, *(m.ours for m in row_marks), row_colour(row, i))
        for i, (row, row_marks) in enumerate(zip(grid.rows, points, strict=True))
    ]
    drawn = [(label, x, y, score, edge) for label, x, y, score, edge in drawn if x and y]
    for _, x, y, _, edge in drawn:
        axes.errorbar(x.mean, y.mean, y.std, x.std, ecolor=edge, elinewidth=1)
        axes.plot(x.mean, y.mean, "o", markersize=8, markerfacecolor="white", markeredgecolor=edge, markeredgewidth=2)
    if known := [(x.mean, y.mean, score.mean, edge) for _, x, y, score, edge in drawn if score]:
        x, y, scores, edges = zip(*known, strict=True)
        cloud = axes.scatter(x, y, c=scores, cmap="cividis", s=64, edgecolors=edges, linewidths=2, zorder=3)
        figure.colorbar(cloud, ax=axes, label=title(shown, 2))
    for row, (x, y, _) in zip(grid.rows, points, strict=True):
        printed(axes, f"{row.label}, published", x.published, y.published)
    axes.set(xlabel=title(shown, 0), ylabel=grid.axis)
    axes.margins(0.15)
    if drawn:
        label_points(figure, axes, [(label, x, y) for label, x, y, *_ in drawn])
    anything = bool(drawn) or any(m.published for row_marks in points for m in row_marks[:2])
    return cell_table(shown), cell_notes(shown), anything


def printed(axes, label: str, x, y) -> None:
    """A published point, or a line where only one of its coordinates is printed."""
    text = {"fontsize": SMALL, "color": GREY, "va": "bottom"}
    if x and y:
        axes.errorbar(x[0], y[0], y[1], x[1], color=GREY, marker="D", markerfacecolor="white")
        axes.annotate(label, (x[0], y[0]), xytext=(5, 5), textcoords="offset points", **text)
    elif x:
        axes.axvline(x[0], color=GREY, linestyle=":")
        axes.text(x[0], 0, f" {label}", transform=axes.get_xaxis_transform(), rotation=90, **text)
    elif y:
        axes.axhline(y[0], color=GREY, linestyle=":")
        axes.text(1, y[0], label, transform=axes.get_yaxis_transform(), ha="right", **text)


def title(shown: GridView, column: int) -> str:
    """Of an axis: `Avg. STS (spearman x 100)`."""
    label, measure = shown.figure.columns[column].label, unit(shown, column)
    facts = [measure] if measure not in ("", label) else []
    facts += ["less is better"] if shown.figure.columns[column].lower else []
    return f"{label} ({', '.join(facts)})" if facts else label


def label_points(figure, axes, points) -> None:
    """Names of points, each at the first place where it covers no other name, no point and no error bar."""
    figure.draw_without_rendering()  # before it nothing is known of where on the page a point lies
    taken = []
    for _, x, y in points:
        for dx, dy in ((x.std or 0, 0), (0, y.std or 0)):
            low, high = axes.transData.transform([(x.mean - dx, y.mean - dy), (x.mean + dx, y.mean + dy)])
            taken.append((*(low - 6), *(high + 6)))
    for label, x, y in points:
        tried = []
        for dx, dy, ha, va in PLACES:
            where = {"textcoords": "offset points", "ha": ha, "va": va}
            text = axes.annotate(label, (x.mean, y.mean), xytext=(dx, dy), fontsize=SMALL, **where)
            box = text.get_window_extent().extents
            covered = sum(overlap(box, other) for other in taken)
            outside = box[0] < axes.bbox.x0 or axes.bbox.x1 < box[2]
            tried.append((covered + outside, len(tried), text, box))
        *_, best, box = min(tried, key=lambda place: place[:2])
        for *_, text, _ in tried:
            if text is not best:
                text.remove()
        taken.append(box)


def overlap(a, b) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# ---------------------------------------------------------------- figures of what runs keep


def training(figure, shown: GridView):
    """A row is a path in the plane of uniformity and alignment over the evaluated steps, the mean of its seeds."""
    figure.set_size_inches(7.8, 4.4)
    axes = figure.subplots()
    table: list[list] = [["row", "step", *(f"{key}{of}" for key in CURVE for of in ("", "_std")), "n", "runs"]]
    reasons, seeds = [], []
    for place, (row, (cell, *_)) in enumerate(zip(shown.figure.rows, shown.rows, strict=True)):
        steps, runs = curve(cell, shown.scale)
        absent = len(cell.plan.specs) - len(runs)
        partly = f"{absent} of {len(cell.plan.specs)} runs" if runs else NO_SCORES
        reasons.append([cell.plan.missing or (partly if absent else None)])
        if not steps:
            table.append([row.label] + [None] * (len(table[0]) - 1))
            continue
        for step, summaries in steps.items():
            values = [value for key in CURVE for value in (summaries[key].mean, summaries[key].std)]
            table.append([row.label, step, *values, summaries[CURVE[0]].n, joined(runs)])
        seeds.append(len(runs))
        path(axes, steps, row.label, row_style(row, place))
    axes.set_xlabel("uniformity on STS-B dev (log of the mean potential, less is better)")
    axes.set_ylabel("alignment on STS-B dev\n(mean squared distance, less is better)")
    axes.margins(0.12)
    if drawn := sorted(axes.lines, key=lambda line: -line.get_ydata()[-1]):
        scores = "STS-B dev Spearman x 100\nat the last step"
        axes.legend(handles=drawn, **RIGHT_OF_AXES, title=scores, alignment="left")
    counts = "–".join(dict.fromkeys(str(n) for n in (min(seeds), max(seeds)))) if seeds else "no"
    text = f"numbers beside the paths: steps of training; means of {counts} seeds"
    return table, [text, *missing(shown, reasons, [""])], bool(drawn)


def curve(cell: Cell, scale: str) -> tuple[dict[int, dict[str, stats.Summary]], list[str]]:
    """What the runs of a cell measured in training, by step, of the encoder that each kept; and the runs."""
    points: dict[int, list[dict]] = {}
    runs = []
    for spec in cell.plan.specs:
        content, _ = score(spec, cell.plan.evaluator, scale)
        training = content["training"] if content else {}
        kept_encoder = training.get("best_encoder", 0)
        for point in training.get("curve") or []:
            if point.get("encoder", 0) == kept_encoder and all(point[key] is not None for key in CURVE):
                points.setdefault(point["step"], []).append(point)
        runs += [spec.run_id] if training.get("curve") else []
    steps = {step: {k: stats.summarise(point[k] for point in points[step]) for k in CURVE} for step in sorted(points)}
    return steps, runs


def path(axes, steps, label: str, style) -> None:
    """Of a row, from the number of its first step to an arrow head at its last."""
    places = [(summaries["uniformity"].mean, summaries["alignment"].mean) for summaries in steps.values()]
    first, last = min(steps), max(steps)
    more = {"markersize": 4.5, "linewidth": 1.2, "markevery": range(max(1, len(places) - 1))}
    axes.plot(*zip(*places, strict=True), **style, **more, label=f"{label}: {100 * steps[last]['spearman'].mean:.2f}")
    if len(places) > 1:
        arrow = {"arrowstyle": "-|>,head_width=0.35,head_length=0.8", "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", places[-1], places[-2], arrowprops=arrow | {"color": style["color"]})
    for step, place in {first: places[0], last: places[-1]}.items():
        text = {"xytext": (6, 6), "textcoords": "offset points", "fontsize": SMALL, "color": style["color"]}
        axes.annotate(str(step), place, **text)


def panels(figure, shown: GridView):
    """What an evaluator draws of the run of each row's first seed, one part of the figure a row."""
    kind = shown.figure.kind
    (_, panel), draw_panel = declared_panels()[kind], load_drawing(kind)
    runs = [items_of_first_run(cell, panel, shown.scale) for cell, *_ in shown.rows]
    count = max(1, sum(arrays is not None for arrays, _, _ in runs))
    stacked = panel.width > 6
    rows, columns = (count, 1) if stacked else (1, count)
    figure.set_size_inches(max(6.4, columns * panel.width), rows * panel.height)
    parts = iter(figure.subfigures(rows, columns, squeeze=False).flat)
    table: list[list] = [["model"]]
    drawn = []
    for row, (cell, *_), (arrays, content, _) in zip(shown.figure.rows, shown.rows, runs, strict=True):
        if arrays is None or content is None:
            table.append([row.label])
            continue
        drawn.append(next(parts))
        head, *lines = draw_panel(drawn[-1], arrays, Source(cell.plan.evaluator, row.label, content))
        published = [i for i, name in enumerate(head) if name != "text"]  # sentences belong to others
        table[0] = ["model", *(head[i] for i in published)]
        table += [[row.label, *(line[i] for i in published)] for line in lines]
    if panel.shared_axes:
        for axes in zip(*(part.axes for part in drawn), strict=True):
            if axes[0].get_label() != "<colorbar>":
                same_axes(axes)
    table = [line + [None] * (len(table[0]) - len(line)) for line in table]
    notes = ["of every row one run, that of the first seed", *missing(shown, [[why] for *_, why in runs], [""])]
    return table, notes, bool(drawn)


def items_of_first_run(cell: Cell, panel: Panel, scale: str) -> tuple[Items | None, dict | None, str | None]:
    """Per-item values and score JSON of a cell's first run; or None and why there are none."""
    if not cell.plan.specs:
        return None, None, cell.plan.missing
    spec = cell.plan.specs[0]
    content, _ = score(spec, cell.plan.evaluator, scale)
    if content is None:
        return None, None, NO_SCORES
    if value(content, cell.plan.task, cell.plan.column.metric) is None:
        needs = protocol(cell.plan.evaluator).declaration.needs
        return None, None, f"no score {cell.plan.task}: {cell.plan.evaluator} needs {needs}"
    file = score_path(spec.run_id, cell.plan.evaluator, scale)
    arrays = (items(content, file) or {}).get(cell.plan.evaluator, {})
    if panel.item not in arrays:
        reason = f"no {panel.item} among its per-item values" if arrays else "its per-item values are not here"
        return None, None, reason
    return arrays, content, None


def same_axes(axes) -> None:
    """Limits that hold all that each of them shows."""
    for which in ("xlim", "ylim"):
        limits = [getattr(ax, f"get_{which}")() for ax in axes]
        for ax in axes:
            ax.set(**{which: (min(low for low, _ in limits), max(high for _, high in limits))})


DRAWERS = {"curves": curves, "bars": dots, "scatter": scatter, "training": training}  # any other kind: panels
