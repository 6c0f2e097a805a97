"""What the HTML pages show of a table, of its rows and cells, and of the runs behind them; the layout is in
templates/, the pages are listed in csebench/report/html.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from csebench.base.terminal import csv_text
from csebench.plan import catalog, targets
from csebench.plan.papers import Column, Figure, Row
from csebench.plan.spec import Spec
from csebench.report import csv_tables, markdown
from csebench.report.cells import Cell, GridView, is_control, is_deterministic
from csebench.report.findings import finding_column
from csebench.report.table_power import PairPower
from csebench.score.drawing import row_colour
from csebench.score.store import score

FIGURES = "figures"
PICTURES = ("svg", "png", "csv")
MANY_COLUMNS = 4  # a table with more scrolls on a narrow screen
DOTS = 8  # rows of a small figure


class RunDetails(NamedTuple):
    """A run that a page shows, and the evaluators whose scores of it the page shows."""

    spec: Spec
    evaluators: list[str]
    content: dict | None  # of its first score JSON
    stale: bool


class Dot(NamedTuple):
    """A row of a small figure: its value, and places of the value and of mean ± deviation in percent of the width."""

    label: str
    text: str
    place: float
    low: float
    high: float
    colour: str
    stale: bool
    one_seed: bool


# ---------------------------------------------------------------- rows and cells


def pinned_column(view: GridView) -> str | None:
    """Label of the last average of a long table: it stays in sight where the table scrolls."""
    averages = [column.label for column in view.score_grid.columns if column.mean or column.label.startswith("Avg")]
    return averages[-1] if averages and len(view.grid.columns) > MANY_COLUMNS else None


def significantly_best(view: GridView, row: int, cell: Cell) -> bool:
    """Whether a cell has the best value of its column, and the tests tell it from every other row."""
    letters = view.comparisons.get(cell.plan.column.label, {"letters": {}})["letters"]
    others = "".join(text for other, text in letters.items() if other != str(row))
    mine = letters.get(str(row), "")
    return cell.best and bool(mine and others) and not set(mine) & set(others)


def number_parts(text: str) -> tuple[str, str, str]:
    """(`78`, `.41`, `± 0.31`) of `78.41±0.31`: what stands before the decimal point, from it, and the deviation."""
    mean, sign, std = (part.strip() for part in text.partition("±"))
    whole, point, fraction = mean.partition(".")
    return whole, point + fraction, f"± {std}" if sign else ""


def whole_digits(view: GridView) -> int:
    """The most characters before the decimal point among the numbers of a table."""
    cells = [cell for row in view.rows for cell in row]
    texts = [cell.text for cell in cells if cell.values]
    texts += [cell.published.text for cell in cells if cell.published]
    return max((len(number_parts(text)[0]) for text in texts), default=1)


def summary_text(cell: Cell, summary) -> str:
    """`78.41±0.31` of a summary in the digits of a cell."""
    return cell.number(summary.mean) + ("" if summary.std is None else f"±{cell.number(summary.std)}")


def spoken_cell(view: GridView, row: int, cell: Cell) -> str:
    """A cell for a screen reader: its row and column, and whose each number is."""
    best = ", significantly best" if significantly_best(view, row, cell) else ", best" if cell.best else ""
    parts = [f"ours {cell.text}{best}{', outdated' if cell.stale else ''}"]
    if cell.published:
        verdict = f", {cell.verdict.name}" if cell.verdict and cell.verdict.name in markdown.SIGNS else ""
        parts.append(f"printed {cell.published.text.replace('±', ' ± ')}{verdict}")
    if cell.others:
        parts.append(f"others {summary_text(cell, cell.others.summary).replace('±', ' ± ')}")
    return f"{view.grid.rows[row].label}, {cell.plan.column.label}: {'; '.join(parts)}"


def kinds_in_row(cells: list[Cell]) -> list[str]:
    """Whose numbers the lines of a row's cells are, from above."""
    kinds = {"printed": any(c.published for c in cells), "others": any(c.others for c in cells)}
    kinds["runs"] = any(c.values and c.absent for c in cells)
    return ["ours", *(kind for kind, has in kinds.items() if has)]


def csv_of_cells(view: GridView, row: int, cells: list[Cell]) -> str:
    """Cells of a row as they are in `cells.csv`, with its head."""
    lines = [csv_tables.cell_row(view, row + 1, cell) for cell in cells]
    return csv_text(csv_tables.CELLS, lines)


def latex_of_cells(view: GridView, row: int, cells: list[Cell]) -> str:
    """Cells of a row as a LaTeX table (package booktabs): ours, and below it what is printed."""
    head = ["", *(cell.plan.column.label for cell in cells)]
    body = [[view.grid.rows[row].label, *(cell.text for cell in cells)]]
    if any(cell.published for cell in cells):
        body.append(["printed", *(cell.published.text if cell.published else "–" for cell in cells)])
    return tabulate(body, head, tablefmt="latex_booktabs", disable_numparse=True).replace("±", r"$\pm$")


def dots(view: GridView) -> tuple[str, list[Dot]]:
    """The small figure of a table: its column, and the best rows of it with the controls, from the best."""
    columns = [c for c in view.score_grid.columns if c.delta is None and any(x.values for x in view.column(c.label))]
    if not columns:
        return "", []
    column: Column = finding_column(view) or columns[-1]
    cells = sorted((c for c in view.column(column.label) if c.values), key=lambda c: c.mean, reverse=not column.lower)
    trained = [cell for cell in cells if not is_control(cell)]
    controls = [cell for cell in cells if is_control(cell)][:2]
    shown = [cell for cell in cells if cell in trained[: DOTS - len(controls)] + controls]
    spans = [(cell.mean - (cell.ours.std or 0), cell.mean + (cell.ours.std or 0)) for cell in shown if cell.ours]
    low, high = min(min(span) for span in spans), max(max(span) for span in spans)

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 1) if high > low else 50.0

    return column.label, [
        Dot(
            c.plan.row.label,
            c.text,
            place(c.mean),
            place(a),
            place(b),
            row_colour(c.plan.row, number),
            c.stale,
            one_seed=len(c.values) == 1 and not is_deterministic(c),
        )
        for number, (c, (a, b)) in enumerate(zip(shown, spans, strict=True))
    ]


# ---------------------------------------------------------------- tables and figures


def has_details(cell: Cell) -> bool:
    return bool(cell.values or cell.absent or cell.published or cell.plan.missing)


def row_anchor(view: GridView, row: int) -> str:
    return f"{view.name}-r{row}"


def cell_anchor(view: GridView, row: int, column: int) -> str:
    return f"{view.name}-r{row}-c{column}"


def page_of_view(view: GridView) -> targets.Page:
    """The Markdown page or figure of a view."""
    return targets.page(view.name, view.scale, None if view.paper == catalog.SIDE_BY_SIDE else view.paper)


def snakemake_command(view: GridView) -> str:
    return f"snakemake -j4 {page_of_view(view).path}"


def conditions_rows(view: GridView) -> list[list[str]]:
    return markdown.page_conditions(page_of_view(view))


def provenance_text(view: GridView) -> str:
    return markdown.provenance_section(page_of_view(view))


def figure_files(view: GridView) -> dict[str, Path]:
    """The existing files of a figure, by their ending; none for a table."""
    if not isinstance(view.grid, Figure):
        return {}
    paths = {ending: targets.grid_path(view.paper, view.name, view.scale, ending) for ending in PICTURES}
    return {ending: path for ending, path in paths.items() if path.exists()}


def figure_link(view: GridView, ending: str) -> str:
    return f"{FIGURES}/{view.paper}-{view.name}.{ending}"


def row_letters(view: GridView, row: int, label: str) -> str:
    """Letters of a row in a compared column: it does not differ from rows with the same letter."""
    return view.comparisons.get(label, {"letters": {}})["letters"].get(str(row), "")


def tested_pairs(view: GridView) -> list[tuple[str, str, str, dict]]:
    """(column, row, other row, test) of every pair of rows that was compared."""
    labels = [row.label for row in view.grid.rows]
    return [
        (column, labels[pair["a"]], labels[pair["b"]], pair)
        for column, comparison in view.comparisons.items()
        for pair in comparison["pairs"]
    ]


def pairs_of_cell(view: GridView, cell: Cell, row: int, powers: list[PairPower]) -> list[tuple[str, float, PairPower]]:
    """(other row, difference to it, power) of every pair of a cell's column that has it."""
    column, pairs = cell.plan.column.label, []
    for power in powers:
        if power.column == column and row in power.rows:
            (other,) = power.rows - {row}
            pairs.append((view.grid.rows[other].label, cell.mean - view.column(column)[other].mean, power))
    return pairs


def error_text(variance: float | None) -> str:
    """Standard error of a difference over test items."""
    return "–" if variance is None else f"{variance**0.5:.2g}"


# ---------------------------------------------------------------- a cell's details


def seed_rows(cell: Cell, scale: str) -> list[tuple[int, str | None, Spec | None, str | None]]:
    """(seed, value, run, id of the older run whose score is shown instead) of a cell; a derived cell has no runs."""
    number = f".{cell.digits + 2}f"
    if not cell.plan.specs:
        return [(seed, format(cell.values[seed], number), None, None) for seed in cell.seeds]
    rows = []
    for spec in cell.plan.specs:
        content, stale = score(spec, cell.plan.evaluator, scale)
        value = format(cell.values[spec.seed], number) if content else None
        rows.append((spec.seed, value, spec, content["run"] if content and stale else None))
    return rows


def derivation(view: GridView, cell: Cell) -> str:
    """How a cell without runs is computed."""
    if cell.plan.column.delta is not None:
        return f"Difference to {view.score_grid.baseline} in column {cell.plan.column.delta}"
    return "Mean of the columns before it, seed by seed"


def source_label(row: Row) -> str:
    return markdown.SOURCES[row.source] + (f" from {row.origin}" if row.origin else "")


def runs_on_page(views: list[GridView]) -> dict[str, tuple[RunDetails, list[Spec]]]:
    """The runs of a page by id, each with the runs that it starts from."""
    specs, before, evaluators = {}, {}, {}
    for cell in (cell for view in views for row in view.rows for cell in row):
        for spec in cell.plan.specs:
            specs[spec.run_id], before[spec.run_id] = spec, list(cell.plan.before)
            evaluators.setdefault(spec.run_id, set()).add(cell.plan.evaluator)
    scale = views[0].scale
    return {run: (run_details(specs[run], sorted(evaluators[run]), scale), before[run]) for run in sorted(specs)}


def run_details(spec: Spec, evaluators: list[str], scale: str) -> RunDetails:
    for evaluator in evaluators:
        content, stale = score(spec, evaluator, scale)
        if content is not None:
            return RunDetails(spec, evaluators, content, stale)
    return RunDetails(spec, evaluators, None, False)


def run_facts(run: RunDetails, scale: str) -> dict[str, str]:
    """What was run and how it was trained, by label; the latter once it has scores."""
    spec = run.spec
    method = f"{spec.method} version {spec.method_version}"
    method += "".join(f" + {name} version {c.version}" for name, c in spec.components.items())
    facts = {"Method": method, "Encoder": f"{spec.encoder.name} @ {spec.encoder.revision[:12]}"}
    if spec.corpus:
        drawn = f"{spec.corpus.size:,} drawn with seed {spec.corpus.subset_seed}"
        facts["Corpus"] = f"{spec.corpus.name} (sha256 {spec.corpus.sha256[:12]}), {drawn}"
    values = {**spec.params, **{f"{n}.{k}": v for n, c in spec.components.items() for k, v in c.params.items()}}
    facts["Settings"] = ", ".join(f"{key} {value}" for key, value in values.items()) or "none"
    if run.content is not None:
        facts |= _training_facts(run.content)
        paths = [targets.score_path(run.content["run"], evaluator, scale) for evaluator in run.evaluators]
        facts["Scores"] = ", ".join(str(path) for path in paths if path.exists())
    return facts


def _training_facts(content: dict) -> dict[str, str]:
    training, scoring = content["training"], content["provenance"]
    provenance, facts = training["provenance"], {}
    if training.get("best_step") is not None:
        best = f"best at step {training['best_step']:,} of {training['steps']:,}"
        facts["Training"] = f"{best}, STS-B dev {100 * training['best_dev']:.2f}"
    dirty = provenance["dirty_diff_sha256"]
    facts["Commit"] = str(provenance["commit"]) + (f", with changes (sha256 {dirty[:12]})" if dirty else ", clean")
    if scoring["commit"] != provenance["commit"] or scoring["dirty_diff_sha256"] != dirty:
        facts["Scored at"] = markdown.commit_label(scoring)
    if changed := sorted({u for p in (provenance, scoring) for u in p.get("unversioned_code", [])}):
        facts["Code changed without a new version"] = ", ".join(changed)
    facts["Torch"] = provenance["packages"]["torch"]
    hardware = provenance["gpu"] or provenance["processor"]
    facts["Hardware"] = f"{hardware}, {provenance['cores']} cores, threads used: {provenance['threads']}"
    facts["Started"] = f"{provenance['started']}, {provenance['seconds']:,.0f} s; scored {scoring['started']}"
    return facts


def run_commands(run: RunDetails, before: list[Spec], scale_name: str) -> str:
    """The commands that make a run and its scores without Snakemake, in order."""
    scale, run_id = catalog.scale(scale_name), run.spec.run_id
    lines = [f"csebench work {spec.run_id} --scale {scale_name}" for spec in (*before, run.spec)]
    lines += [f"csebench publish {run_id} {evaluator} --scale {scale_name}" for evaluator in run.evaluators]
    settings = scale.evaluation
    evaluate = f"csebench evaluate --model runs/{run_id}/model --evaluators {','.join(run.evaluators)}"
    evaluate += f" --precision {settings.precision} --batch-size {settings.batch_size}"
    evaluate += f" --max-length {settings.max_length}" if settings.max_length else ""
    evaluate += f" --data {scale.data_root}" if scale.data_root else ""
    return "\n".join([*lines, f"{evaluate} --out runs/{run_id}/again.json"])
