"""Markdown pages about all papers: the coverage matrix (index), the claims, and the audit of the printed numbers.

Pages of single tables: csebench/report/markdown.py.
"""

from __future__ import annotations

import os
from collections import Counter

from csebench.plan.catalog import DEFAULT_SCALE, SIDE_BY_SIDE, paper, paper_names, results_folder
from csebench.plan.catalog import scale as read_scale
from csebench.plan.evidence import AVERAGE, names
from csebench.plan.targets import grid_label, grid_names, grid_order
from csebench.report.audit import findings
from csebench.report.claims import (
    HOLDS,
    REVERSED,
    UNTESTABLE,
    WEAK,
    JudgedClaim,
    Judgement,
    judge_all,
)
from csebench.report.evidence import spread
from csebench.report.markdown import NOT_COMPARABLE, markdown_table
from csebench.report.view import PAPER_SCALE, GridView, grid_view

VERDICTS = (HOLDS, WEAK, REVERSED, UNTESTABLE)
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
    """Every claim of every paper, on the printed numbers and on ours."""
    judged = judge_all(scale)
    parts = [
        f"# What the papers say of their tables, at scale {scale}",
        scale_warning(scale),
        claims_legend(),
        verdict_counts(judged),
    ]
    for name in paper_names():
        body = [
            [f"“{j.claim.quote}” (sec. {j.claim.section})", claim_link(j), *map(judgement_text, (j.published, j.ours))]
            for j in judged
            if j.paper == name
        ]
        head = ["claim", "of", "on the printed numbers", "on ours"]
        parts += [f"## {paper(name).label}: {paper(name).reference}", markdown_table(head, body)]
    return "\n\n".join(parts) + "\n"


def claims_legend() -> str:
    """How claims are judged."""
    return (
        "**holds**: every comparison that the sentence makes goes its way and is significant at 0.05; **holds but not"
        " significant**; **reversed**: one goes the other way, by however little; **not testable**: numbers are"
        " missing, or there is one seed. On the printed numbers the deviation over seeds is the printed one; a single"
        f" Spearman correlation gets that of the nearest seeds that others have published ({known_spreads()}). Nobody"
        " has published seeds for a single accuracy, recall or nDCG: the spread is not known there, and that such a"
        " claim is significant cannot be read off the print. On ours, rows are paired by seed, and the variance of"
        " test items is added where a table's comparisons have it."
    )


def known_spreads() -> str:
    """Deviations of the STS average over others' seeds, by encoder, and whose they are."""
    encoders = {title: spread(encoder, AVERAGE) for encoder, title in names().encoders.items()}
    known = {title: nearest for title, nearest in encoders.items() if nearest is not None}
    if not known:
        return "there are none"
    values = ", ".join(f"{title} {nearest.std:.2f}" for title, nearest in known.items())
    sources = "; ".join(
        dict.fromkeys(f"{s.n} seeds of {names().methods[s.method].title} by {s.source}" for s in known.values())
    )
    return f"{values} points on the STS average, more on a single task; {sources}, results/evidence.md"


def judgement_text(judgement: Judgement) -> str:
    return f"*{judgement.verdict}*: {judgement.detail}"


def claim_link(judged: JudgedClaim) -> str:
    """A link to the page of the table or figure that a claim is about."""
    place, ending = judged.claim.place, "md" if judged.claim.table else "svg"
    return f"[{place}]({judged.paper}/{place}.{ending})"


def verdict_counts(judged: list[JudgedClaim]) -> str:
    """A table with the number of claims per verdict, on the printed numbers and on ours."""
    counts = [Counter(j.published.verdict for j in judged), Counter(j.ours.verdict for j in judged)]
    body = [[verdict, *(str(count[verdict]) for count in counts)] for verdict in VERDICTS]
    return markdown_table([f"{len(judged)} claims", "on the printed numbers", "on ours"], body)


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
