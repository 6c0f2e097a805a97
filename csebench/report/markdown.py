"""Pages: a pure function of the papers' tables and the scores. Same scores, same bytes; no dates."""

from __future__ import annotations

from tabulate import tabulate

from csebench.plan.catalog import SIDE_BY_SIDE, paper
from csebench.plan.catalog import scale as read_scale
from csebench.plan.grids import find_grid, settings_of, substitute, substitute_sweep
from csebench.plan.papers import Settings, SettingsRow
from csebench.plan.recipe import corpus_of
from csebench.plan.registry import COMPONENTS, EVALUATORS, METHODS, declaration, protocol
from csebench.plan.targets import Page, grid_label, score_path
from csebench.report import stats
from csebench.report.view import PAPER_SCALE, Cell, View, view
from csebench.score.store import read

SOURCES = {"measured": "measured by the authors", "rerun": "re-run by the authors", "copied": "copied"}
SIGNS = {stats.REPRODUCED: "✓", stats.CLOSE: "≈", stats.LOWER: "↓", stats.HIGHER: "↑", stats.TOO_FEW: "?"}
STALE = "†"
NOT_COMPARABLE = "**Not comparable with the published numbers**: another encoder, other data, fewer steps."


def cell_text(cell: Cell) -> str:
    """`78.41 ± 0.31 (78.13 ✓ ±0.86)`: ours over seeds, then the published value, its verdict and the half-width."""
    text = f"**{cell.text}**" if cell.best else cell.text
    text += STALE if cell.stale else ""
    text += f" [{cell.absent} missing]" if cell.absent and cell.values else ""
    if cell.published is None:
        return text
    published = cell.published.text.replace("±", " ± ")
    if cell.verdict and cell.verdict.name in SIGNS:
        published += f" {SIGNS[cell.verdict.name]}"
        published += "" if cell.verdict.half_width is None else f" ±{cell.number(cell.verdict.half_width)}"
    return f"{text} ({published})"


def heading(shown: View) -> str:
    about = paper(shown.paper)
    if shown.paper == SIDE_BY_SIDE:
        return shown.grid.title
    return f"{about.reference} · {grid_label(shown.name)}: {shown.grid.title}"


def section(shown: View) -> str:
    """One paper's table: ours beside the published numbers, which rows differ, why rows have no run, notes."""
    table, about = shown.grid, paper(shown.paper)
    parts = [f"## {heading(shown)}", f"*{about.title}.* {table.caption}".strip()]
    if isinstance(table, Settings):
        parts.append(settings_grid(shown))
    else:
        body = [[row.label, *map(cell_text, cells)] for row, cells in zip(table.rows, shown.rows, strict=True)]
        parts.append(grid(["Model", *(c.label for c in table.columns)], body))
        parts += [ties(shown)] if shown.comparisons else []
        parts += texts(shown)
    if absent := reasons(shown):
        parts += ["Nothing is run here, published value only:", "\n".join(absent)]
    if table.notes:
        parts += ["Notes:", "\n".join(f"- {note}" for note in table.notes)]
    if origins := sources(shown):
        folded = "<details><summary>Where the published values come from</summary>"
        parts += [folded, "\n".join(origins), "</details>"]
    return "\n\n".join(parts)


def grid(head: list[str], body: list[list[str]]) -> str:
    return tabulate([[escape(v) for v in row] for row in body], head, tablefmt="pipe", disable_numparse=True)


def escape(text: str) -> str:
    return text.replace("|", "\\|")


def settings_grid(shown: View) -> str:
    """`128 (128 ✓)`: what the recipe has at the paper's own settings, and what is printed."""
    signs = {True: " ✓", False: " ≠", None: ""}
    body = [
        [
            row.label,
            *(f"{ours} ({printed or '–'}{signs[equal]})" for ours, printed, equal in settings_cells(shown, row)),
        ]
        for row in shown.grid.rows
    ]
    return grid(["Setting", *(c.label for c in shown.grid.columns)], body)


def settings_cells(shown: View, row: SettingsRow) -> list[tuple[str, str | None, bool | None]]:
    """(ours, printed, whether they are equal) of a row of a table of settings."""
    own = zip(row.values, settings_of(shown.paper, shown.name, row.param), strict=True)
    return [(f"{ours:g}", text, None if text is None else float(text) == float(ours)) for text, ours in own]


def reasons(shown: View) -> list[str]:
    """Why cells have no run: of a whole row, or of some of its columns."""
    found = []
    for row, cells in zip(shown.grid.rows, shown.rows, strict=False):
        by_reason: dict[str, list[str]] = {}
        for cell in cells:
            if cell.plan.missing:
                by_reason.setdefault(cell.plan.missing, []).append(cell.plan.column.label)
        for reason, columns in by_reason.items():
            whole = len(columns) == sum(cell.plan.column.task is not None for cell in cells) or not row.run
            found.append(f"- {row.label}{'' if whole else ', ' + ', '.join(columns)}: {reason}.")
    return found


def sources(shown: View) -> list[str]:
    if isinstance(shown.grid, Settings):
        return []
    return [
        f"- {row.label}: {SOURCES[row.source]}"
        + (f" from {row.origin}" if row.origin else "")
        + "."
        + (f" {row.note}" if row.note else "")
        for row in shown.grid.rows
        if any(row.values) or row.note
    ]


def ties(shown: View) -> str:
    """Rows that share a letter do not differ."""
    lines = []
    for label, own in shown.comparisons.items():
        names = [f"{shown.grid.rows[i].label} ({own['letters'][str(i)]})" for i in own["order"]]
        lines.append(f"- {label}: {', '.join(names)}.")
    return f"Rows from the best; those {tied(shown)}:\n\n" + "\n".join(lines)


def tied(shown: View) -> str:
    """What it means that rows share a letter."""
    pairs = [pair for own in shown.comparisons.values() for pair in own["pairs"]]
    items = sum(pair.get("item_variance") is not None for pair in pairs)
    over = "seeds" + (" and test items" if items == len(pairs) else ", and items where known" if items else "")
    return f"that share a letter do not differ at {stats.LEVEL:g} (paired over {over}, Holm over {len(pairs)} pairs)"


def texts(shown: View) -> list[str]:
    """What was retrieved for each query, and what the paper prints, as tables (MSSE Table 8)."""
    if shown.texts is None:
        return []
    retrieved, printed = shown.texts["retrieved"], shown.texts["printed"]
    head = ["", *retrieved, *(f"{label} (printed)" for label in printed)]
    parts = []
    for number, query in enumerate(shown.texts["queries"]):
        places = zip(*(of_row[number] for of_row in (*retrieved.values(), *printed.values())), strict=True)
        parts += [f"Query: {query}", grid(head, [[f"#{i}", *cells] for i, cells in enumerate(places, 1)])]
    return parts


def head(page: Page) -> str:
    """Scale, encoder, data and seeds, so that no small-scale number can be taken for a result."""
    at = read_scale(page.scale)
    title = "All methods" if page.name == SIDE_BY_SIDE else grid_label(page.name)
    metrics = sorted({cell.metric for cell in page.cells() if cell.metric})
    lines = [
        f"# {title} at scale {at.scale}",
        f"**Scale `{at.scale}`: {at.purpose}**",
        tabulate(conditions(page), ["", ""], tablefmt="pipe"),
        "A cell is `ours ± deviation over seeds (published)`; in percent, unless it says otherwise"
        f" ({', '.join(metrics) or 'no score'}); bold is the best of ours on an encoder but controls, ties together;"
        f" – is no run or no number; {STALE} is of an older version of the code. Deviations are of the sample"
        " (ddof = 1).",
    ]
    if at.scale == PAPER_SCALE:
        signs = ", ".join(f"{sign} {name}" for name, sign in SIGNS.items())
        lines.append(
            f"Behind a published value: {signs}, and ± the half-width of the 95 % interval around ours in which it"
            " would count as reproduced (a prediction interval for as many runs as the paper has; Welch's where it"
            " prints a deviation). Wide is weak: few seeds reproduce much."
        )
    else:
        lines.append(NOT_COMPARABLE)
    return "\n\n".join(lines)


def conditions(page: Page) -> list[list[str]]:
    """What every number of a page was made with, as rows of two columns."""
    at, runs = read_scale(page.scale), page.runs().values()
    few = "; ".join(f"{size}: {', '.join(map(str, own))}" for size, own in at.seeds_by_size.items())
    used = {spec.method for spec in runs} | {name for spec in runs for name in spec.components}
    layers = {"": at.override, **{n: v for n, v in {**at.methods, **at.components}.items() if n in used}}
    override = "; ".join(
        (f"{name}: " if name else "") + ", ".join(f"{k} {v}" for k, v in sorted(values.items()))
        for name, values in layers.items()
        if values
    )
    kinds = {declaration(spec.method).corpus: spec.method for spec in runs if spec.corpus}
    corpora = {f"Training {kind}": corpus_of(declaration(method), at) for kind, method in sorted(kinds.items())}
    encoders = "; ".join(f"{role}: `{e.name}` @ {e.revision[:12]}" for role, e in sorted(at.encoders.items()))
    rows = [
        ["Encoder", encoders],
        *([kind, f"`{c.path}` (sha256 {c.sha256[:12]}…); {c.note}"] for kind, c in corpora.items()),
        ["Sentences of a column", ", ".join(f"{label} = {n:,}" for label, n in at.sizes.items())],
        ["Seeds", ", ".join(map(str, at.seeds)) + (f" ({few})" if few else "")],
        ["Settings of the scale", override or "none: the papers' own settings"],
        ["Precision, threads", f"{at.precision}, {at.threads}; evaluation {at.evaluation.precision}"],
    ]
    if played := substitutions(page):
        rows.append(["Played by others here", "; ".join(played)])
    return rows


def substitutions(page: Page) -> list[str]:
    """Evaluators and swept values of the page's tables that something else plays at its scale."""
    at, found = read_scale(page.scale), {}
    for paper_name, name in page.grids():
        table = find_grid(paper_name, name)
        if isinstance(table, Settings):
            continue
        for evaluator in {column.evaluator or table.evaluator for column in table.columns if column.task}:
            found[f"evaluator {evaluator}"] = (evaluator, substitute(evaluator, at))
        for sweep in [row.run.sweep for row in table.rows if row.run] + [column.sweep for column in table.columns]:
            for key, value in sweep.items():
                found[f"{key} {value}"] = (value, substitute_sweep({key: value}, at)[0][key])
    return [f"{what} by {own}" for what, (asked, own) in sorted(found.items()) if own not in (asked, None)]


def commit(provenance: dict) -> str:
    return str(provenance["commit"])[:10] + ("+changes" if provenance["dirty_diff_sha256"] else "")


def made(page: Page) -> str:
    """Protocols, choices, and what the scores on the page were made with."""
    wanted = page.scores()
    found = [c for run, evaluator in sorted(wanted) if (c := read(score_path(run, evaluator, page.scale)))]
    evaluators = sorted({evaluator for _, evaluator in wanted})
    declared = {e: protocol(e).declaration for e in evaluators}
    commits = sorted({commit(c["training"]["provenance"]) for c in found})
    versions = sorted({f"torch {c['provenance']['packages']['torch']}" for c in found})
    hardware = sorted({c["training"]["provenance"]["gpu"] or c["training"]["provenance"]["processor"] for c in found})
    lines = [
        "\n".join(
            [
                f"- Runs: {len(found)} of {len(wanted)} scored; corpus subsets are drawn by the run's seed.",
                *(
                    f"- Evaluator {e} version {d.version}, protocol {d.protocol} ({d.source})."
                    for e, d in declared.items()
                ),
                f"- Commit: {', '.join(commits) or 'none'}; {', '.join(versions) or 'no versions'};"
                f" hardware: {', '.join(hardware) or 'none'}.",
                f"- Regenerate: `snakemake -j4 {page.path}`.",
            ]
        ),
    ]
    choices = []
    for folder, used in (
        (METHODS, {spec.method for spec in wanted.values()}),
        (COMPONENTS, {name for spec in wanted.values() for name in spec.components}),
        (EVALUATORS, {d.name for d in declared.values()}),
    ):
        choices += [f"- `{n}`: {text}" for n in sorted(used) for text in declaration(n, folder).deviations]
    if choices:
        lines += ["Where methods deviate from the paper, or it leaves a choice:", "\n".join(choices)]
    return "\n\n".join(lines)


def render(page: Page) -> str:
    sections = [section(view(p, n, page.scale)) for p, n in page.grids()]
    return "\n\n".join([head(page), *sections, "## How this page was made", made(page)]) + "\n"
