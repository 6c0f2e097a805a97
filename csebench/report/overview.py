"""Markdown pages about all papers: the coverage matrix (index), the claims, and the audit of the printed numbers.

Pages of single tables: csebench/report/markdown.py.
"""

from __future__ import annotations

import os
from collections import Counter

from csebench.base.errors import by_number
from csebench.plan.catalog import DEFAULT_SCALE, SIDE_BY_SIDE, VARIANTS, paper, paper_names, results_folder
from csebench.plan.targets import grid_label, grid_names
from csebench.plan.tuning import search_files
from csebench.report.answers import answers_section
from csebench.report.audit import KINDS, SEVERITIES, Finding, findings, paper_label, place_label, where_label
from csebench.report.cells import GridView, grid_view, scored_text
from csebench.report.claims_page import claims_sections
from csebench.report.markdown import STALE, markdown_table, scale_warning

SEVERAL = "Several papers"
STATE_LABELS = {"nothing to run": "cited only"}  # other states are printed as they are


def views_by_paper(scale: str) -> dict[str, list[GridView]]:
    """Every table and figure of every paper."""
    return {
        paper_name: [grid_view(paper_name, name, scale) for name in grid_names(paper_name)]
        for paper_name in paper_names()
    }


# ---------------------------------------------------------------- index


def index_page(scale: str) -> str:
    """The coverage matrix, tables and figures × papers: how many of the runs of each have scores."""
    views = {(view.paper, view.name): view for of_paper in views_by_paper(scale).values() for view in of_paper}
    evidence = os.path.relpath(results_folder(DEFAULT_SCALE) / "evidence.md", results_folder(scale))
    parts = [
        f"# Results at scale {scale}",
        f"[Does it reproduce?]({evidence}) Scores of other people who trained these methods on the papers' encoders.",
        scale_warning(scale),
        *([] if scale == DEFAULT_SCALE else answers_section(scale)),
        "## Tables and figures",
    ]
    for kind, ending in (("table", "md"), ("figure", "svg")):
        body = []
        for name in sorted({name for _, name in views if name.startswith(kind)}, key=by_number):
            link = f"[{grid_label(name)}]({name}.md)" if kind == "table" else grid_label(name)
            cells = [
                f"[{progress_label(views[p, name])}]({p}/{name}.{ending})" if (p, name) in views else ""
                for p in paper_names()
            ]
            body.append([link, *cells])
        parts.append(markdown_table(["", *(paper(name).label for name in paper_names())], body))
    states = Counter(view.state for view in views.values())
    parts += [
        "A cell: how many of the runs that the table or figure shows have their scores;"
        f" {STALE}: with an older code version or other settings. "
        + "; ".join(f"{count} {STATE_LABELS.get(state, state)}" for state, count in sorted(states.items()))
        + ".",
        ("[What tuning bought each method](tuning.md) · " if search_files(scale) else "")
        + f"[All methods side by side]({SIDE_BY_SIDE}.md) · [papers and released code]({VARIANTS}.md) ·"
        " [what the papers say of their tables](claims.md) · [inconsistencies in the published tables](audit.md) ·"
        " [every score](scores.csv) · [every cell](cells.csv) ·"
        f" to browse: `csebench html --scale {scale}` writes {results_folder(scale)}/html/index.html",
    ]
    return "\n\n".join(parts) + "\n"


def progress_label(view: GridView) -> str:
    """`complete: 48 of 48 runs scored, 8 of them †`, `cited only`."""
    done, shown = view.progress
    state = STATE_LABELS.get(view.state, view.state)
    return f"{state}: {scored_text(done, shown, view.outdated)}" if shown else state


# ---------------------------------------------------------------- claims


def claims_page(scale: str) -> str:
    """Every sentence of every paper about its tables, on the printed numbers and on ours."""
    parts = [f"# What the papers say of their tables, at scale {scale}", scale_warning(scale), *claims_sections(scale)]
    return "\n\n".join(parts) + "\n"


# ---------------------------------------------------------------- audit


def audit_page(scale: str) -> str:
    """Every finding of the audit; the same at every scale, as it needs no run."""
    sections = findings_by_section(findings())
    parts = ["# Inconsistencies in the published tables", audit_legend(), finding_counts(sections)]
    for title, section in sections.items():
        label = place_label if title == SEVERAL else where_label
        body = [[f.severity, f.kind, "; ".join(map(label, f.places)), f.text] for f in section]
        head = ["severity", "kind", "place", "finding"]
        parts += [f"## {title}: {len(section)}", markdown_table(head, body) if body else "None."]
    return "\n\n".join(parts) + "\n"


def audit_legend() -> str:
    """What the kinds and severities of findings mean."""
    kinds = "\n".join(f"- *{kind}*: {meaning}." for kind, meaning in KINDS.items())
    severities = "\n".join(f"- **{severity}**: {meaning}." for severity, meaning in SEVERITIES.items())
    return (
        "Recomputed from the numbers as printed, without any run. A finding says that two things in print do not"
        " agree, not which of them is wrong. What several papers print is one finding with all its places. A value"
        " copied from another paper and one of a re-run are two runs: that they differ is no finding."
        f"\n\n{kinds}\n\n{severities}"
    )


def findings_by_section(all_findings: list[Finding]) -> dict[str, list[Finding]]:
    """Findings of several papers, of each paper, and of papers that are not in papers/."""
    sections: dict[str, list[Finding]] = {SEVERAL: []} | {paper_label(name): [] for name in paper_names()}
    for finding in all_findings:
        title = SEVERAL if len(finding.papers) > 1 else paper_label(finding.papers[0])
        sections.setdefault(title, []).append(finding)
    return sections


def finding_counts(sections: dict[str, list[Finding]]) -> str:
    """A table with the number of findings per kind and severity."""
    counts = Counter((f.kind, f.severity) for section in sections.values() for f in section)
    body = [[kind, *(str(counts[kind, severity]) for severity in SEVERITIES)] for kind in KINDS]
    return markdown_table([f"{counts.total()} findings", *SEVERITIES], body)
