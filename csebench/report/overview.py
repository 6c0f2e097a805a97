"""Markdown pages about all papers: the coverage matrix (index), the claims, and the audit of the printed numbers.

Pages of single tables: csebench/report/markdown.py.
"""

from __future__ import annotations

import os
from collections import Counter

from csebench.plan.catalog import DEFAULT_SCALE, SIDE_BY_SIDE, paper, paper_names, results_folder
from csebench.plan.catalog import scale as read_scale
from csebench.plan.targets import grid_label, grid_names, grid_order
from csebench.report.audit import findings
from csebench.report.claims_page import claims_sections
from csebench.report.markdown import NOT_COMPARABLE, markdown_table
from csebench.report.view import PAPER_SCALE, GridView, grid_view

STATE_LABELS = {"nothing to run": "cited only"}  # other states are printed as they are


def scale_warning(scale: str) -> str:
    """The purpose of a scale, and that its numbers are not comparable unless it is scale paper."""
    purpose = f"**Scale `{scale}`: {read_scale(scale).purpose}**"
    return purpose if scale == PAPER_SCALE else f"{purpose} {NOT_COMPARABLE}"


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
    ]
    for kind, ending in (("table", "md"), ("figure", "svg")):
        body = []
        for name in sorted({name for _, name in views if name.startswith(kind)}, key=grid_order):
            link = f"[{grid_label(name)}]({name}.md)" if kind == "table" else grid_label(name)
            cells = [
                f"[{progress_label(views[p, name])}]({p}/{name}.{ending})" if (p, name) in views else ""
                for p in paper_names()
            ]
            body.append([link, *cells])
        parts.append(markdown_table(["", *(paper(name).label for name in paper_names())], body))
    states = Counter(view.state for view in views.values())
    parts += [
        "A cell: how many of the runs that the table or figure shows have their scores. "
        + "; ".join(f"{count} {STATE_LABELS.get(state, state)}" for state, count in sorted(states.items()))
        + ".",
        f"[All methods side by side]({SIDE_BY_SIDE}.md) · [what the papers say of their tables](claims.md) ·"
        " [what the print contradicts](audit.md) · [the same to browse](html/index.html) · [every score](scores.csv)",
    ]
    return "\n\n".join(parts) + "\n"


def progress_label(view: GridView) -> str:
    """`complete, 48 runs`, `partial, 12 of 48 runs`, `cited only`."""
    done, shown = view.progress
    state = STATE_LABELS.get(view.state, view.state)
    if not shown:
        return state
    return f"{state}, {shown if done == shown else f'{done} of {shown}'} runs"


# ---------------------------------------------------------------- claims


def claims_page(scale: str) -> str:
    """Every sentence of every paper about its tables, on the printed numbers and on ours."""
    parts = [f"# What the papers say of their tables, at scale {scale}", scale_warning(scale), *claims_sections(scale)]
    return "\n\n".join(parts) + "\n"


# ---------------------------------------------------------------- audit


def audit_page(scale: str) -> str:
    """Every finding of the audit; the same at every scale, as it needs no run."""
    all_findings = findings()
    parts = [
        "# What the printed tables contradict",
        "Recomputed from the numbers as printed: averages and differences of rows, sentences of the text, settings"
        " that are printed twice, rows of two tables that are equal but for a few cells, shares of a known number of"
        " test items. *read*: noticed by reading, not by arithmetic. A finding says that two things in print do not"
        " fit, not which of them is wrong.",
    ]
    for name in paper_names():
        body = [[f.place, f.kind, f.text] for f in all_findings if f.paper == name]
        parts += [f"## {paper(name).label}: {len(body)}", markdown_table(["place", "kind", "finding"], body)]
    return "\n\n".join(parts) + "\n"


REPORTS = {"index": index_page, "claims": claims_page, "audit": audit_page}
