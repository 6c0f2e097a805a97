"""Pages: a pure function of the papers' tables and the scores. Same scores, same bytes; no dates."""

from __future__ import annotations

from tabulate import tabulate

from csebench.plan import DEFAULT_SCALE, CellPlan, Page, dataset, find_table, paper, plan_table, score_path
from csebench.plan import scale as read_scale
from csebench.registry import EVALUATORS, METHODS, declaration
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
    printed = "–" if published is None else published.text.replace("±", " ± ")
    return f"{text} ({printed})"


def table_section(paper_name: str, number: str, scale: str) -> str:
    """One paper's table: ours beside the published numbers, then why rows have no run, then notes."""
    table, rows = find_table(paper_name, number), plan_table(paper_name, number, scale)
    ours = [[summary(cell, scale, table.evaluator) for cell in row] for row in rows]
    best = []
    for column in range(len(table.columns)):
        means = [percent(row[column][0].mean) for row in ours if row[column][0] is not None]
        best.append(max(means, key=float) if len(means) > 1 else None)
    body, absent, remarks = [], [], []
    for row, cells, sums in zip(table.rows, rows, ours, strict=True):
        shown = [
            cell_text(s, missing, published, s is not None and percent(s.mean) == best[i])
            for i, ((s, missing), published) in enumerate(zip(sums, row.values, strict=True))
        ]
        body.append([row.label, *shown])
        reasons = {c.missing for c in cells if c.missing}
        absent += [f"- {row.label}: {'; '.join(sorted(reasons))}."] if reasons else []
        origin = SOURCES[row.source] + (f" from {row.origin}" if row.origin else "")
        remarks.append(f"- {row.label}: published value {origin}." + (f" {row.note}" if row.note else ""))
    grid = tabulate(body, ["Model", *(c.label for c in table.columns)], tablefmt="pipe", disable_numparse=True)
    about = paper(paper_name)
    parts = [
        f"## {about.reference} · Table {number}: {table.title}",
        f"*{about.title}.* {table.caption}".strip(),
        grid,
    ]
    if absent:
        parts.append("Nothing is run here, published value only:\n\n" + "\n".join(absent))
    if table.notes:
        parts.append("Notes:\n\n" + "\n".join(f"- {n}" for n in table.notes))
    parts.append(
        "<details><summary>Where the published values come from</summary>\n\n" + "\n".join(remarks) + "\n\n</details>"
    )
    return "\n\n".join(parts)


def head(page: Page) -> str:
    """Scale, encoder, data and seeds, so that no small-scale number can be taken for a result."""
    at = read_scale(page.scale)
    corpus = dataset(at.corpus)
    few = "; ".join(f"{size}: {', '.join(map(str, own))}" for size, own in at.seeds_by_size.items())
    own = ", ".join(map(str, at.seeds)) + (f" ({few})" if few else "")
    encoders = "; ".join(f"{role}: `{e.name}` @ {e.revision[:12]}" for role, e in sorted(at.encoders.items()))
    sizes = ", ".join(f"{label} = {n:,}" for label, n in at.sizes.items())
    override = ", ".join(f"{k} {v}" for k, v in sorted(at.override.items())) or "none: the papers' own settings"
    lines = [
        f"# Table {page.number} at scale {at.scale}",
        f"**Scale `{at.scale}`: {at.purpose}**",
        tabulate(
            [
                ["Encoder", encoders],
                ["Training corpus", f"`{corpus.path}` (sha256 {corpus.sha256[:12]}…); {corpus.note}"],
                ["Sentences of a column", sizes],
                ["Seeds", own],
                ["Settings of the scale", override],
                ["Precision, threads", f"{at.precision}, {at.threads}; evaluation {at.evaluation.precision}"],
            ],
            ["", ""],
            tablefmt="pipe",
        ),
        "A cell is `ours ± deviation over seeds (published)`, Spearman × 100; bold is the best of ours, ties together;"
        " – is no run or no number. Deviations are of the sample (ddof = 1).",
    ]
    if at.scale != "paper":
        lines.append("**Not comparable with the published numbers**: another encoder, other data, fewer steps.")
    return "\n\n".join(lines)


def foot(page: Page) -> str:
    """Protocols, choices, and what the scores on the page were made with."""
    wanted = page.scores()
    found = [c for run, evaluator in sorted(wanted) if (c := read(score_path(run, evaluator, page.scale)))]
    evaluators = sorted({evaluator for _, evaluator in wanted})
    declared = [declaration(e, EVALUATORS) for e in evaluators]
    commits = sorted({str(c["training"]["provenance"]["commit"])[:10] for c in found})
    versions = sorted({f"torch {c['provenance']['packages']['torch']}" for c in found})
    hardware = sorted({c["training"]["provenance"]["gpu"] or c["training"]["provenance"]["processor"] for c in found})
    target = page.path if page.scale == DEFAULT_SCALE else f"{page.path} --config scale={page.scale}"
    lines = [
        "## How this page was made",
        "\n".join(
            [
                f"- Runs: {len(found)} of {len(wanted)} scored; corpus subsets are drawn by the run's seed.",
                *(f"- Evaluator {d.name} version {d.version}, protocol {d.protocol} ({d.source})." for d in declared),
                f"- Commit: {', '.join(commits) or 'none'}; {', '.join(versions) or 'no versions'};"
                f" hardware: {', '.join(hardware) or 'none'}.",
                f"- Regenerate: `snakemake -j4 {target}`.",
            ]
        ),
    ]
    names = sorted({spec.method for spec in wanted.values()})
    rows = [
        [f"`{n}`", declaration(n, METHODS).title, "; ".join(declaration(n, METHODS).deviations) or "none"]
        for n in names
    ]
    if rows:
        lines.append("Deviations and choices of the methods (components: `csebench show ami`, `csebench show moco`):")
        lines.append(tabulate(rows, ["Method", "", "Deviations"], tablefmt="pipe"))
    return "\n\n".join(lines)


def render(page: Page) -> str:
    sections = [table_section(p, n, page.scale) for p, n in page.tables()]
    return "\n\n".join([head(page), *sections, foot(page)]) + "\n"
