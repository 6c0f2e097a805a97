"""Markdown pages of tables: a pure function of plan and scores. Same scores, same bytes; no dates.

Pages about all papers: csebench/report/overview.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import inf, sqrt
from statistics import median

from csebench.plan.catalog import GENERATED, SIDE_BY_SIDE, VARIANTS, paper
from csebench.plan.catalog import scale as read_scale
from csebench.plan.declarations import Scale
from csebench.plan.grids import find_grid, recipe_values, substitute, substitute_sweep
from csebench.plan.papers import SettingsRow, SettingsTable
from csebench.plan.recipe import corpus_of
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, any_declaration, declaration, names, protocol
from csebench.plan.targets import Page, grid_label, target_name
from csebench.plan.tuning import settings_text, tuned_settings
from csebench.report import stats
from csebench.report.cells import PAPER_SCALE, Cell, GridView, grid_view, is_control, scored_text, shown_score
from csebench.report.evidence import Others
from csebench.report.findings import grid_finding
from csebench.report.planned_power import planned_text
from csebench.report.table_power import pair_powers
from csebench.report.table_power import scored_text as tested_text

SOURCES = {"measured": "measured by the authors", "rerun": "re-run by the authors", "copied": "copied"}
SIGNS = {stats.REPRODUCED: "✓", stats.CLOSE: "≈", stats.LOWER: "↓", stats.HIGHER: "↑", stats.TOO_FEW: "?"}
STALE = "†"
CHANGES = "+changes"  # after a commit: files had changes that were not committed
DEVIATIONS = "Where methods deviate from the paper, or it leaves a choice"
SETTINGS_KEY = "the value in the recipe at scale paper (printed value); ✓ equal, ≠ different, – not printed"
OTHERS = (
    "**Others' runs** on the paper's own encoder, as they published them, not mixed with ours. In brackets the"
    " published value, and the verdict on it that follows from these runs alone (results/evidence.md):"
)


def not_comparable(scale_name: str) -> str:
    """Why the numbers of a scale other than paper cannot be compared with the published ones."""
    return f"**Not comparable with the published numbers**: {read_scale(scale_name).differs}."


def cell_text(cell: Cell, letters: str = "") -> str:
    """`78.41 ± 0.31<sup>a</sup> (78.13 ✓ ±0.86)`: ours over seeds and the letters of rows that do not differ, then the
    published value, its verdict, and the half-width."""
    text = f"**{cell.text}**" if cell.best else cell.text
    text += STALE if cell.stale else ""
    text += f"<sup>{letters}</sup>" if letters else ""
    text += f" [{cell.absent} missing]" if cell.absent and cell.values else ""
    if cell.published is None:
        return text
    published = cell.published.text.replace("±", " ± ")
    if cell.verdict and cell.verdict.name in SIGNS:
        published += f" {SIGNS[cell.verdict.name]}"
        published += "" if cell.verdict.half_width is None else f" ±{cell.number(cell.verdict.half_width)}"
    return f"{text} ({published})"


def heading(view: GridView) -> str:
    """`Somebody 2022 · Table 2: Title`"""
    if view.paper in GENERATED:
        return view.grid.title
    return f"{paper(view.paper).reference} · {grid_label(view.name)}: {view.grid.title}"


def grid_section(view: GridView) -> str:
    """One paper's table: what it shows, our values and the published ones, how to read them, notes; where published
    values come from is folded."""
    table, about = view.grid, paper(view.paper)
    caption = table.caption if view.paper == VARIANTS else f"*{about.title}.* {table.caption}".strip()
    parts = [f"## {heading(view)}", f"**Finding.** {grid_finding(view)}", caption]
    if isinstance(table, SettingsTable):
        parts += [settings_comparison(view, table), f"A cell: {SETTINGS_KEY}."]
    else:
        parts += [score_table(view), reading_key(view), *retrieved_texts(view), *others_section(view)]
    of_rows = [*missing_scores(view), *equal_rows(view), *unchanged_rows(view)]
    if notes := [*of_rows, *(f"- {note}" for note in table.notes)]:
        parts += ["Notes:", "\n".join(notes)]
    if isinstance(table, SettingsTable):
        return "\n\n".join(parts)
    if power := power_text(view):
        parts.append(folded("What the tests between rows can show", power, *shared_sentences(view)))
    if absent := missing_reasons(view):
        parts.append(folded("Rows without a run here: published value only", "\n".join(absent)))
    if origins := source_lines(view):
        parts.append(folded("Where the published values come from", "\n".join(origins)))
    return "\n\n".join(parts)


def score_table(view: GridView) -> str:
    """Our values with letters, and the published ones."""
    columns = view.score_grid.columns
    letters = [view.comparisons.get(column.label, {"letters": {}})["letters"] for column in columns]
    body = [
        [
            view.grid.rows[i].label,
            *(cell_text(cell, of.get(str(i), "")) for cell, of in zip(view.rows[i], letters, strict=True)),
        ]
        for i in row_order(view)
    ]
    return markdown_table(["Model", *(column.label for column in columns)], body)


def row_order(view: GridView) -> list[int]:
    """Indices of rows as a page shows them: as printed; on the page of all methods from the best, controls last."""
    rows = range(len(view.rows))
    if view.paper != SIDE_BY_SIDE:
        return [*rows]
    average = view.column("Avg.")
    return sorted(rows, key=lambda i: (is_control(average[i]), -average[i].mean if average[i].values else inf))


def reading_key(view: GridView) -> str:
    """How to read a cell: only the signs that this table has."""
    cells = [cell for row in view.rows for cell in row]
    metrics = sorted({cell.plan.metric for cell in cells if cell.plan.metric})
    unit = "percent" if view.score_grid.factor == 100 else "units of the metric"
    parts = [
        f"A cell: our mean ± standard deviation over seeds (published value), in {unit} unless the column says"
        f" otherwise ({', '.join(metrics) or 'no score'}); deviations are of the sample (ddof = 1)."
    ]
    if any(cell.best for cell in cells):
        parts.append(
            "Bold: our best score per encoder, ties included; no control, and no cell that lacks runs or is outdated."
        )
    if any(cell.stale for cell in cells):
        parts.append(f"{STALE}: scored with an older code version or with other settings.")
    if any(cell.ours is None for cell in cells):
        parts.append("–: no run or no number.")
    if view.comparisons:
        parts.append(f"Raised letters: rows {ties_meaning(view)}.")
    if view.outdated_comparisons:
        parts.append(
            "No letters: scores have changed since the rows were compared"
            f" (`csebench compare {target_name(view.paper, view.name)} --scale {view.scale}` compares them again)."
        )
    if view.scale == PAPER_SCALE:
        signs = ", ".join(f"{sign} {name}" for name, sign in SIGNS.items())
        parts.append(
            f"Behind a published value: {signs}, and ± the half-width of the 95 % interval around ours in which it"
            " would count as reproduced (a prediction interval for as many runs as the paper has; Welch's where it"
            " prints a deviation). A wide interval is weak evidence: with few seeds it holds many values."
        )
    return " ".join(parts)


def others_section(view: GridView) -> list[str]:
    """Scores of runs that other people published, in a table apart from ours, and how these runs differ."""
    rows = [
        (row.label, cells)
        for row, cells in zip(view.grid.rows, view.rows, strict=True)
        if any(cell.others for cell in cells)
    ]
    if not rows:
        return []
    columns = [i for i in range(len(view.grid.columns)) if any(cells[i].others for _, cells in rows)]
    body = [[label, *(others_text(cells[i]) for i in columns)] for label, cells in rows]
    lines = []
    for label, cells in rows:
        sources = dict.fromkeys(others_source(cell.others) for cell in cells if cell.others)
        lines.append(f"- {label}: {' / '.join(sources)}")
    head = ["Model", *(view.grid.columns[i].label for i in columns)]
    return [OTHERS, markdown_table(head, body), folded("Whose runs these are, and how they differ", "\n".join(lines))]


def others_text(cell: Cell) -> str:
    """`75.11 ± 0.84, n = 50 (76.25 ✓ ±1.72)`: others' runs, then the published value with its verdict on them."""
    if cell.others is None:
        return "–"
    summary, verdict = cell.others.summary, cell.others.verdict
    std = "" if summary.std is None else f" ± {cell.number(summary.std)}"
    text = f"{cell.number(summary.mean)}{std}, n = {summary.n}"
    if verdict is None or cell.published is None:
        return text
    published = [cell.published.text.replace("±", " ± "), SIGNS.get(verdict.name, "")]
    half_width = "" if verdict.half_width is None else f" ±{cell.number(verdict.half_width)}"
    return f"{text} ({' '.join(filter(None, published))}{half_width})"


def others_source(others: Others) -> str:
    """Whose runs they are, and how they differ from the authors' and from the row's."""
    return f"{others.kind}, {', '.join(others.sources)}: {others.differs}."


def markdown_table(head: list[str], body: list[list[str]]) -> str:
    """A Markdown table of texts, without padding."""
    rows = [[escape_cell(text) for text in row] for row in (head, *body)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def folded(summary: str, *parts: str) -> str:
    """Parts of a page behind a line that unfolds them."""
    return "\n\n".join([f"<details><summary>{summary}</summary>", *parts, "</details>"])


def escape_cell(text: str) -> str:
    """A text that stays in its cell: pipes, line ends, HTML, and a backtick without a second one are escaped."""
    text = escape_html(" ".join(text.splitlines())).replace("|", "\\|")
    return text if text.count("`") % 2 == 0 else text.replace("`", "\\`")


def escape_html(text: str) -> str:
    """Markdown whose only HTML is the folding and the raised letters of pages, and whose only links are to web pages
    and within results/.

    For texts of papers/ and evidence/, of score JSONs (names of hardware) and of data sets (what was retrieved).
    """
    text = re.sub(r"<(?!/?(details|summary|sup)>)(?=[A-Za-z/!?])", "&lt;", text)
    return re.sub(r"\]\((?=\s*[A-Za-z][\w+.-]*:)(?!https?://)", "]\\(", text)


def settings_comparison(view: GridView, table: SettingsTable) -> str:
    """A table of settings with cells `128 (128 ✓)`: the value in the recipe at scale paper, and the printed one."""
    signs = {True: " ✓", False: " ≠", None: ""}
    body = [
        [
            row.label,
            *(f"{ours} ({printed or '–'}{signs[equal]})" for ours, printed, equal in settings_cells(view, row)),
        ]
        for row in table.rows
    ]
    return markdown_table(["Setting", *(c.label for c in table.columns)], body)


def settings_cells(view: GridView, row: SettingsRow) -> list[tuple[str, str | None, bool | None]]:
    """(ours, printed, whether they are equal; None where nothing is printed) for each cell of a row."""
    pairs = zip(row.values, recipe_values(view.paper, view.name, row.param), strict=True)
    return [(f"{ours:g}", text, None if text is None else float(text) == float(ours)) for text, ours in pairs]


def missing_reasons(view: GridView) -> list[str]:
    """Why rows, or some of their columns, have no run, as lines of a list."""
    if isinstance(view.grid, SettingsTable):
        return []
    lines = []
    for row, cells in zip(view.grid.rows, view.rows, strict=True):
        by_reason: dict[str, list[str]] = {}
        for cell in cells:
            if cell.plan.missing:
                by_reason.setdefault(cell.plan.missing, []).append(cell.plan.column.label)
        for reason, columns in by_reason.items():
            whole = len(columns) == sum(cell.plan.column.task is not None for cell in cells) or not row.run
            lines.append(f"- {row.label}{'' if whole else ', ' + ', '.join(columns)}: {reason}.")
    return lines


def equal_rows(view: GridView) -> list[str]:
    """Which variants of a method are the same runs at this scale, whose settings replace what differs; as lines of a
    list."""
    if view.paper != VARIANTS:
        return []
    labels: dict[tuple[str, ...], list[str]] = {}
    for row, cells in zip(view.grid.rows, view.rows, strict=True):
        labels.setdefault(tuple(spec.run_id for spec in cells[0].plan.specs), []).append(row.label)
    return [
        f"- {' and '.join(same)}: the same runs here, as the settings of scale {view.scale} replace what differs."
        for runs, same in labels.items()
        if runs and len(same) > 1
    ]


def unchanged_rows(view: GridView) -> list[str]:
    """Rows whose loss is 0 in all their runs, so that training changes no weight; as lines of a list."""
    lines = []
    for row, cells in zip(view.grid.rows, view.rows, strict=False):
        runs = {spec.run_id for cell in cells for spec in cell.plan.specs}
        if runs and all(cell.unchanged for cell in cells):
            text = f"the loss is 0 from the first evaluation to the last in all {len(runs)} runs: training changes"
            lines.append(f"- {row.label}: {text} nothing, and the scores are those of the encoder it starts from.")
    return lines


def missing_scores(view: GridView) -> list[str]:
    """Why planned scores are not there: cells of a row with the same reason on one line."""
    lines = []
    for row, cells in zip(view.grid.rows, view.rows, strict=False):
        by_reason: dict[str, list[str]] = {}
        for cell in cells:
            for reason in cell.reasons:
                by_reason.setdefault(reason, []).append(cell.plan.column.label)
        lines += [f"- {row.label}, {', '.join(labels)}: {reason.rstrip('.')}." for reason, labels in by_reason.items()]
    return lines


def source_lines(view: GridView) -> list[str]:
    """Where the published values of rows come from, as lines of a list."""
    if isinstance(view.grid, SettingsTable):
        return []
    return [
        f"- {row.label}: {SOURCES[row.source]}"
        + (f" from {row.origin}" if row.origin else "")
        + "."
        + (f" {row.note}" if row.note else "")
        for row in view.grid.rows
        if any(row.values) or row.note
    ]


def shared_sentences(view: GridView) -> list[str]:
    """How much the errors over test items grow as items share sentences; nothing where that is not known."""
    pairs = [pair for comparison in view.comparisons.values() for pair in comparison["pairs"]]
    factors = [sqrt(p["item_variance"] / p["naive_variance"]) for p in pairs if p.get("naive_variance")]
    if not factors:
        return []
    return [
        "Test items that share a sentence are resampled together: the standard error over items is"
        f" {median(factors):.2f} times that of single items (median of {len(factors)} pairs; {min(factors):.2f} to"
        f" {max(factors):.2f})."
    ]


def ties_meaning(view: GridView) -> str:
    """What it means that rows share a letter: the test, and what it is paired over."""
    pairs = [pair for comparison in view.comparisons.values() for pair in comparison["pairs"]]
    items = sum(pair.get("item_variance") is not None for pair in pairs)
    over = "seeds" + (" and test items" if items == len(pairs) else ", and items where known" if items else "")
    test = f"paired over {over}, Holm over {len(pairs)} pairs"
    return f"that share a letter do not differ significantly at {stats.LEVEL:g} ({test})"


def power_text(view: GridView) -> str | None:
    """What the tests between rows can show; None where no two trained rows are compared."""
    pairs = pair_powers(view)
    return tested_text(view, pairs) if pairs else planned_text(view)


def retrieved_texts(view: GridView) -> list[str]:
    """What was retrieved for each query, and what the paper prints, as tables (MSSE Table 8)."""
    parts = []
    for query, head, rows in retrieved_tables(view):
        parts += [f"Query: {query}", markdown_table(head, rows)]
    return parts


def retrieved_tables(view: GridView) -> list[tuple[str, list[str], list[list[str]]]]:
    """(query, head, rows) for each query; a row has the texts at one rank."""
    if view.texts is None:
        return []
    retrieved, printed = view.texts["retrieved"], view.texts["printed"]
    head, tables = ["", *retrieved, *(f"{label} (printed)" for label in printed)], []
    for number, query in enumerate(view.texts["queries"]):
        ranks = zip(*(column[number] for column in (*retrieved.values(), *printed.values())), strict=True)
        tables.append((query, head, [[f"#{rank}", *texts] for rank, texts in enumerate(ranks, 1)]))
    return tables


def scale_warning(scale: str) -> str:
    """The purpose of a scale; unless it is scale paper, that its numbers are not comparable, and which sizes of the
    training set are more than a run sees."""
    purpose = f"**Scale `{scale}`: {read_scale(scale).purpose}**"
    if scale == PAPER_SCALE:
        return purpose
    return " ".join(filter(None, [purpose, not_comparable(scale), sizes_not_seen(read_scale(scale))]))


def sizes_not_seen(scale: Scale) -> str:
    """In which columns a run repeats sentences, and in which it sees not all; empty where the scale sets no schedule,
    or no column has more than a run sees."""
    steps, batch = (scale.override.get(key) for key in ("steps", "batch_size"))
    if not (isinstance(steps, int) and isinstance(batch, int)):
        return ""
    seen = steps * batch
    larger = [label for label, size in scale.sizes.items() if size > seen]
    if not larger:
        return ""
    return (
        f"A run trains on {steps} batches of {batch}, {seen:,} sentences in all (rows with another batch size: more or"
        " fewer): it repeats those of a smaller training set and sees a part of a larger one. So columns of more"
        f" ({', '.join(larger)}) differ in which sentences are drawn, not in how many are seen."
    )


def page_head(page: Page) -> str:
    """Title and scale, so that no small-scale number is taken for a result."""
    lines = [f"# {page_title(page)} at scale {page.scale}", scale_warning(page.scale)]
    return "\n\n".join([*lines, variants_legend()] if page.papers == (VARIANTS,) else lines)


def variants_legend() -> str:
    """What the rows of the page of variants are, and which methods have none."""
    without = [name for name in names(METHODS) if name not in paper(VARIANTS).tables]
    return (
        "Where a method's public code differs from its paper, it has a table: **as printed** is the paper, **as"
        " released** the code with what it does by mistake, **released, repaired** the code where it would not run, or"
        " is not what the paper ran. The notes state each difference; those that no row can show are listed with the"
        f" deviations at the end. Methods without such rows: {', '.join(without)}."
    )


def page_title(page: Page) -> str:
    """`miCSE, Table 2`, `Table 2` of all papers, `All methods`, `Papers and released code`."""
    if page.papers == (VARIANTS,):
        return "Papers and released code"
    if page.name == SIDE_BY_SIDE:
        return "All methods"
    label = grid_label(page.name)
    return f"{paper(page.papers[0]).label or page.papers[0]}, {label}," if len(page.papers) == 1 else label


def page_conditions(page: Page) -> list[list[str]]:
    """Encoder, data, seeds and settings behind all numbers of a page, as (label, text)."""
    scale, runs = read_scale(page.scale), page.runs().values()
    tables = {"/".join(grid) for grid in page.grids()}
    others = scale.seeds_by_size | {table: seeds for table, seeds in scale.seeds_by_table.items() if table in tables}
    few = "; ".join(f"{name}: {', '.join(map(str, seeds))}" for name, seeds in others.items())
    used = {spec.method for spec in runs} | {name for spec in runs for name in spec.components}
    layers = {"": scale.override, **{n: v for n, v in {**scale.methods, **scale.components}.items() if n in used}}
    override = "; ".join(
        (f"{name}: " if name else "") + ", ".join(f"{k} {v}" for k, v in sorted(values.items()))
        for name, values in layers.items()
        if values
    )
    if scale.steps_factor < 1:
        override = f"{scale.steps_factor:g} of the steps; {override}".removesuffix("; ")
    kinds = {declaration(spec.method).corpus: spec.method for spec in runs if spec.corpus}
    corpora = {f"Training {kind}": corpus_of(declaration(method), scale) for kind, method in sorted(kinds.items())}
    encoders = "; ".join(f"{role}: `{e.name}` @ {e.revision[:12]}" for role, e in sorted(scale.encoders.items()))
    rows = [
        ["Encoder", encoders],
        *([kind, f"`{c.path}` (sha256 {c.sha256[:12]}…); {c.note}"] for kind, c in corpora.items() if c),
        ["Sentences of a column", ", ".join(f"{label} = {n:,}" for label, n in scale.sizes.items())],
        ["Seeds", ", ".join(map(str, scale.seeds)) + (f" ({few})" if few else "")],
        ["Settings of the scale", override or "none: the papers' own settings"],
        ["Precision, threads", f"{scale.precision}, {scale.threads}; evaluation {scale.evaluation.precision}"],
    ]
    tuned = {name: s for name, s in tuned_settings(page.scale).items() if name.partition("+")[0] in used}
    if tuned:
        text = "; ".join(f"{name}: {settings_text(settings)}" for name, settings in tuned.items())
        rows.append(["Chosen on STS-B dev", f"{text}; not where a row, variant or sweep sets the same parameter"])
    if substitutes := substitutions(page):
        rows.append(["Substituted at this scale", "; ".join(substitutes)])
    return rows


def substitutions(page: Page) -> list[str]:
    """`evaluator transfer by transfer:fasttest`: evaluators and swept values that the page's scale replaces."""
    scale, replaced = read_scale(page.scale), {}
    for paper_name, name in page.grids():
        table = find_grid(paper_name, name)
        if isinstance(table, SettingsTable):
            continue
        for evaluator in {table.column_evaluator(column) for column in table.columns if column.task}:
            replaced[f"evaluator {evaluator}"] = (evaluator, substitute(evaluator, scale))
        for sweep in [row.run.sweep for row in table.rows if row.run] + [column.sweep for column in table.columns]:
            for key, value in sweep.items():
                replaced[f"{key} {value}"] = (value, substitute_sweep({key: value}, scale)[0].get(key))
    return [f"{what} by {new}" for what, (old, new) in sorted(replaced.items()) if new not in (old, None)]


def commit_label(provenance: dict) -> str:
    """`0123456789+changes`"""
    return str(provenance["commit"])[:10] + (CHANGES if provenance["dirty_diff_sha256"] else "")


def provenance_section(page: Page) -> str:
    """How the scores on a page were made, and where methods deviate from the papers; nothing is folded."""
    choices = deviation_lines(page)
    return "\n\n".join([provenance_lines(page), *([f"{DEVIATIONS}:", "\n".join(choices)] if choices else [])])


def provenance_lines(page: Page) -> str:
    """How the scores on a page were made, as a list: runs, protocols, commits, hardware."""
    wanted = page.scores()
    shown = [shown_score(spec, evaluator, page.scale) for (_, evaluator), spec in sorted(wanted.items())]
    contents, outdated = [content for content, _ in shown if content], sum(old for _, old in shown)
    evaluators = sorted({evaluator for _, evaluator in wanted})
    declared = {e: protocol(e).declaration for e in evaluators}
    drawn_by = "a seed of their own" if any(spec.seeds for spec in wanted.values()) else "the run's seed"
    lines = [
        f"- {scored_text(len(contents), len(wanted), outdated)}; corpus subsets are drawn by {drawn_by}.",
        *(f"- Evaluator {e} version {d.version}, protocol {d.protocol} ({d.source})." for e, d in declared.items()),
        *unversioned_lines(contents),
        *made_by_lines(contents),
        f"- Regenerate: `snakemake -j4 {page.path}`.",
    ]
    return "\n".join(lines)


def deviation_lines(page: Page) -> list[str]:
    """Where the methods, components and evaluators of a page deviate from papers, as lines of a list."""
    wanted = page.scores()
    lines = []
    for folder, used in (
        (METHODS, {spec.method for spec in wanted.values()}),
        (COMPONENTS, {name for spec in wanted.values() for name in spec.components}),
        (EVALUATORS, {protocol(evaluator).declaration.name for _, evaluator in wanted}),
    ):
        lines += [f"- `{n}`: {text}" for n in sorted(used) for text in any_declaration(n, folder).deviations]
    return lines


def made_sections(page: Page, conditions: Sequence[list[str]] = ()) -> list[str]:
    """The end of a page: how its scores were made; folded, the settings and the deviations from the papers."""
    settings = "\n".join(f"- **{label}**: {text}" for label, text in conditions)
    parts = [
        "## How this page was made",
        provenance_lines(page),
        folded("Encoder, data, seeds and settings", settings),
    ]
    if choices := deviation_lines(page):
        parts.append(folded(DEVIATIONS, "\n".join(choices)))
    return parts


def made_by_lines(contents: list[dict]) -> list[str]:
    """Commits, versions and hardware behind scores, as a line of a list; nothing where there are no scores."""
    if not contents:
        return []
    trainings = [content["training"]["provenance"] for content in contents]
    commits = ", ".join(sorted({commit_label(training) for training in trainings}))
    if CHANGES in commits:
        commits += f" ({CHANGES}: the code had changes that were not committed; score files hold their sha256)"
    versions = sorted({f"torch {content['provenance']['packages']['torch']}" for content in contents})
    hardware = sorted({training["gpu"] or training["processor"] for training in trainings})
    return [f"- Commit: {commits}; {', '.join(versions)}; hardware: {', '.join(hardware)}."]


def unversioned_lines(contents: list[dict]) -> list[str]:
    """Which scores were made with code that had changed without a new version, as lines of a list."""
    scores = Counter(
        unit
        for content in contents
        for unit in {
            *content["provenance"].get("unversioned_code", []),
            *content["training"]["provenance"].get("unversioned_code", []),
        }
    )
    return [
        f"- **Code of {unit} changed without a new version**: {count} of {len(contents)} scores were made with it, and"
        " may differ from those of the version."
        for unit, count in sorted(scores.items())
    ]


def render_page(page: Page) -> str:
    """A page as Markdown."""
    sections = [grid_section(grid_view(p, n, page.scale)) for p, n in page.grids()]
    return "\n\n".join([page_head(page), *sections, *made_sections(page, page_conditions(page))]) + "\n"
