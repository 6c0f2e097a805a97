"""Pages: a pure function of the papers' tables and the scores. Same scores, same bytes; no dates."""

from __future__ import annotations

from tabulate import tabulate

from csebench.plan import SIDE_BY_SIDE, CellPlan, Page, corpus_of, find_table, paper, plan_table, score_path
from csebench.plan import scale as read_scale
from csebench.registry import COMPONENTS, EVALUATORS, METHODS, declaration, protocol
from csebench.schema import Published
from csebench.stats import Summary, summarise
from csebench.store import read, value

DIGITS = 2
SOURCES = {"measured": "measured by the authors", "rerun": "re-run by the authors", "copied": "copied"}


def percent(x: float) -> str:
    return f"{100 * x:.{DIGITS}f}"


def summary(cell: CellPlan, scale: str, evaluator: str) -> tuple[Summary | None, int]:
    """Mean and deviation over the seeds that have a score, and how many have none."""
    found = [value(s.run_id, evaluator, scale, cell.column.task) for s in cell.specs]
    known = [v for v in found if v is not None]
    return (summarise(known) if known else None), len(found) - len(known)


def cell_text(ours: Summary | None, missing: int, published: Published | None, best: bool) -> str:
    """`78.41 ± 0.31 (78.13)`: ours over seeds, then in brackets the published value."""
    if ours is None:
        text = "missing" if missing else "–"
    else:
        text = percent(ours.mean) + ("" if ours.std is None else f" ± {percent(ours.std)}")
        text = f"**{text}**" if best else text
        text += f" [{missing} missing]" if missing else ""
    return text if published is None else f"{text} ({published.text.replace('±', ' ± ')})"


def is_control(cells: list[CellPlan]) -> bool:
    """Whether a row is run and its method is a control; a broken method file has no run."""
    return bool(cells[0].specs) and declaration(cells[0].specs[0].method).kind == "control"


def table_section(paper_name: str, number: str, scale: str) -> str:
    """One paper's table: ours beside the published numbers, then why rows have no run, then notes."""
    table, rows = find_table(paper_name, number), plan_table(paper_name, number, scale)
    ours = [[summary(cell, scale, table.evaluator) for cell in row] for row in rows]
    best = []
    compared = [sums for cells, sums in zip(rows, ours, strict=True) if not is_control(cells)]
    for column in range(len(table.columns)):
        means = [percent(row[column][0].mean) for row in compared if row[column][0] is not None]
        best.append(max(means, key=float) if len(means) > 1 else None)
    body, absent, origins = [], [], []
    for row, cells, sums in zip(table.rows, rows, ours, strict=True):
        shown = [
            cell_text(s, missing, published, s is not None and percent(s.mean) == best[i])
            for i, ((s, missing), published) in enumerate(zip(sums, row.values, strict=True))
        ]
        body.append([row.label, *shown])
        reasons = sorted({c.missing for c in cells if c.missing})
        absent += [f"- {row.label}: {'; '.join(reasons)}."] if reasons else []
        if any(row.values):
            origin = SOURCES[row.source] + (f" from {row.origin}" if row.origin else "")
            origins.append(f"- {row.label}: {origin}." + (f" {row.note}" if row.note else ""))
    about = paper(paper_name)
    title = table.title if paper_name == SIDE_BY_SIDE else f"{about.reference} · Table {number}: {table.title}"
    grid = tabulate(body, ["Model", *(c.label for c in table.columns)], tablefmt="pipe", disable_numparse=True)
    parts = [f"## {title}", f"*{about.title}.* {table.caption}".strip(), grid]
    if absent:
        parts += ["Nothing is run here, published value only:", "\n".join(absent)]
    if table.notes:
        parts += ["Notes:", "\n".join(f"- {note}" for note in table.notes)]
    if origins:
        folded = "<details><summary>Where the published values come from</summary>"
        parts += [folded, "\n".join(origins), "</details>"]
    return "\n\n".join(parts)


def head(page: Page) -> str:
    """Scale, encoder, data and seeds, so that no small-scale number can be taken for a result."""
    at = read_scale(page.scale)
    few = "; ".join(f"{size}: {', '.join(map(str, own))}" for size, own in at.seeds_by_size.items())
    own = ", ".join(map(str, at.seeds)) + (f" ({few})" if few else "")
    encoders = "; ".join(f"{role}: `{e.name}` @ {e.revision[:12]}" for role, e in sorted(at.encoders.items()))
    sizes = ", ".join(f"{label} = {n:,}" for label, n in at.sizes.items())
    runs = page.runs().values()
    used = {spec.method for spec in runs} | {name for spec in runs for name in spec.components}
    layers = {"": at.override, **{n: v for n, v in {**at.methods, **at.components}.items() if n in used}}
    override = "; ".join(
        (f"{name}: " if name else "") + ", ".join(f"{k} {v}" for k, v in sorted(values.items()))
        for name, values in layers.items()
        if values
    )
    shown = sorted({protocol(find_table(*table).evaluator).metric for table in page.tables()})
    metrics = [metric.capitalize() for metric in shown]
    kinds = {declaration(spec.method).corpus: spec.method for spec in runs if spec.corpus}
    corpora = {f"Training {kind}": corpus_of(declaration(method), at) for kind, method in sorted(kinds.items())}
    lines = [
        f"# {'All methods' if page.number == SIDE_BY_SIDE else f'Table {page.number}'} at scale {at.scale}",
        f"**Scale `{at.scale}`: {at.purpose}**",
        tabulate(
            [
                ["Encoder", encoders],
                *([k, f"`{c.path}` (sha256 {c.sha256[:12]}…); {c.note}"] for k, c in corpora.items()),
                ["Sentences of a column", sizes],
                ["Seeds", own],
                ["Settings of the scale", override or "none: the papers' own settings"],
                ["Precision, threads", f"{at.precision}, {at.threads}; evaluation {at.evaluation.precision}"],
            ],
            ["", ""],
            tablefmt="pipe",
        ),
        f"A cell is `ours ± deviation over seeds (published)`, {', '.join(metrics)} × 100; bold is the best of ours"
        " but controls, ties together; – is no run or no number. Deviations are of the sample (ddof = 1).",
    ]
    if at.scale != "paper":
        lines.append("**Not comparable with the published numbers**: another encoder, other data, fewer steps.")
    return "\n\n".join(lines)


def commit(provenance: dict) -> str:
    return str(provenance["commit"])[:10] + ("+changes" if provenance["dirty_diff_sha256"] else "")


def foot(page: Page) -> str:
    """Protocols, choices, and what the scores on the page were made with."""
    wanted = page.scores()
    found = [c for run, evaluator in sorted(wanted) if (c := read(score_path(run, evaluator, page.scale)))]
    evaluators = sorted({evaluator for _, evaluator in wanted})
    declared = [protocol(e).declaration for e in evaluators]
    commits = sorted({commit(c["training"]["provenance"]) for c in found})
    versions = sorted({f"torch {c['provenance']['packages']['torch']}" for c in found})
    hardware = sorted({c["training"]["provenance"]["gpu"] or c["training"]["provenance"]["processor"] for c in found})
    lines = [
        "## How this page was made",
        "\n".join(
            [
                f"- Runs: {len(found)} of {len(wanted)} scored; corpus subsets are drawn by the run's seed.",
                *(f"- Evaluator {d.name} version {d.version}, protocol {d.protocol} ({d.source})." for d in declared),
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
        (EVALUATORS, {d.name for d in declared}),
    ):
        choices += [f"- `{n}`: {text}" for n in sorted(used) for text in declaration(n, folder).deviations]
    if choices:
        lines += ["Where methods deviate from the paper, or it leaves a choice:", "\n".join(choices)]
    return "\n\n".join(lines)


def render(page: Page) -> str:
    sections = [table_section(p, n, page.scale) for p, n in page.tables()]
    return "\n\n".join([head(page), *sections, foot(page)]) + "\n"
