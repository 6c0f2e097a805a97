"""Pages over all papers: what there is (index), what the papers say (claims), what the print contradicts (audit)."""

from __future__ import annotations

from collections import Counter

from csebench.plan.catalog import SIDE_BY_SIDE, paper, paper_names
from csebench.plan.catalog import scale as read_scale
from csebench.plan.targets import grid_label, grid_names, grid_order
from csebench.report.audit import findings
from csebench.report.claims import (
    HOLDS,
    REVERSED,
    SPREAD_SIZE,
    UNTESTABLE,
    WEAK,
    Judged,
    Judgement,
    judge_all,
    typical_spread,
)
from csebench.report.markdown import NOT_COMPARABLE, grid
from csebench.report.view import PAPER_SCALE, View, view

VERDICTS = (HOLDS, WEAK, REVERSED, UNTESTABLE)
STATES = {
    "complete": "complete",
    "partial": "partial",
    "missing": "missing",
    "settings": "settings",
    "nothing to run": "cited only",
}


def warning(scale: str) -> str:
    about = f"**Scale `{scale}`: {read_scale(scale).purpose}**"
    return about if scale == PAPER_SCALE else f"{about} {NOT_COMPARABLE}"


def coverage(scale: str) -> dict[str, list[View]]:
    """Every table and figure of every paper."""
    return {name: [view(name, own, scale) for own in grid_names(name)] for name in paper_names()}


def index(scale: str) -> str:
    """Table by paper: how much of what can be run at a scale has been."""
    every = coverage(scale)
    parts = [f"# Results at scale {scale}", warning(scale)]
    for kind, ending in (("table", "md"), ("figure", "svg")):
        names = {v.name for own in every.values() for v in own if v.name.startswith(kind)}
        body = []
        for grid_name in sorted(names, key=grid_order):
            of = {name: v for name, own in every.items() for v in own if v.name == grid_name}
            link = f"[{grid_label(grid_name)}]({grid_name}.md)" if kind == "table" else grid_label(grid_name)
            cells = [f"[{counted(of[n])}]({n}/{grid_name}.{ending})" if n in of else "" for n in paper_names()]
            body.append([link, *cells])
        parts.append(grid(["", *(paper(name).label for name in paper_names())], body))
    states = Counter(v.state for own in every.values() for v in own)
    parts += [
        "A cell: how many of the runs that the table or figure shows have their scores. "
        + "; ".join(f"{count} {STATES[state]}" for state, count in sorted(states.items()))
        + ".",
        f"[All methods side by side]({SIDE_BY_SIDE}.md) · [what the papers say of their tables](claims.md) ·"
        " [what the print contradicts](audit.md) · [the same to browse](html/index.html) · [every score](scores.csv)",
    ]
    return "\n\n".join(parts) + "\n"


def counted(shown: View) -> str:
    """`complete, 48 runs`, `partial, 12 of 48 runs`."""
    done, every = shown.progress
    if not every:
        return STATES[shown.state]
    return f"{STATES[shown.state]}, {every if done == every else f'{done} of {every}'} runs"


def claims(scale: str) -> str:
    """Every claim of every paper, on the printed numbers and on ours."""
    judged = judge_all(scale)
    parts = [
        f"# What the papers say of their tables, at scale {scale}",
        warning(scale),
        legend(),
        tally(judged),
    ]
    for name in paper_names():
        own = [j for j in judged if j.paper == name]
        body = [
            [f"“{j.claim.says}” (sec. {j.claim.section})", linked(j), *map(said, (j.published, j.ours))] for j in own
        ]
        head = ["claim", "of", "on the printed numbers", "on ours"]
        parts += [f"## {paper(name).label}: {paper(name).reference}", grid(head, body)]
    return "\n\n".join(parts) + "\n"


def legend() -> str:
    """How claims are judged."""
    typical = typical_spread()
    single = "unknown" if typical is None else f"{100 * typical:.2f} points"
    return (
        "**holds**: every comparison that the sentence makes goes its way and is significant at 0.05; **holds but not"
        " significant**; **reversed**: one goes the other way, by however little; **not testable**: numbers are"
        " missing, or there is one seed. On the printed numbers the deviation over seeds is the printed one; a single"
        f" Spearman correlation gets {single}, the median of what is printed at"
        f" {SPREAD_SIZE} of the data, as nothing better is known (of a single task it is larger), and a single"
        " accuracy, recall or nDCG none: that such a claim is significant cannot be read off the print. On ours, rows"
        " are paired by seed, and the variance of test items is added where a table's comparisons have it."
    )


def said(judgement: Judgement) -> str:
    return f"*{judgement.verdict}*: {judgement.detail}"


def linked(judged: Judged) -> str:
    ending = "md" if judged.claim.table else "svg"
    return f"[{judged.place}]({judged.paper}/{judged.place}.{ending})"


def tally(judged: list[Judged]) -> str:
    """Counts of verdicts, on the printed numbers and on ours."""
    counts = [Counter(j.published.verdict for j in judged), Counter(j.ours.verdict for j in judged)]
    body = [[verdict, *(str(count[verdict]) for count in counts)] for verdict in VERDICTS]
    return grid([f"{len(judged)} claims", "on the printed numbers", "on ours"], body)


def audit(scale: str) -> str:
    """Every finding; the same at every scale, as nothing is run for it."""
    found = findings()
    parts = [
        "# What the printed tables contradict",
        "Recomputed from the numbers as printed: averages and differences of rows, sentences of the text, settings"
        " that are printed twice, rows of two tables that are equal but for a few cells, shares of a known number of"
        " test items. *read*: noticed by reading, not by arithmetic. A finding says that two things in print do not"
        " fit, not which of them is wrong.",
    ]
    for name in paper_names():
        body = [[f.place, f.kind, f.text] for f in found if f.paper == name]
        parts += [f"## {paper(name).label}: {len(body)}", grid(["place", "kind", "finding"], body)]
    return "\n\n".join(parts) + "\n"


REPORTS = {"index": index, "claims": claims, "audit": audit}
