"""The page of the audit: what the published tables contradict, in themselves or one another."""

from collections import Counter

from csebench.plan.catalog.files import paper_names
from csebench.report.numbers.audit import (
    FINDING_KINDS,
    SERIOUS,
    SEVERITIES,
    Finding,
    findings,
    paper_label,
    place_label,
    where_label,
)
from csebench.report.pages.page import Fold, PageContent, Part, TextTable, as_list

SEVERAL = "Several papers"


def audit_page(_scale: str) -> PageContent:
    """Findings of several papers, of each, and of those not in papers/; the same at every scale,
    as no run is read."""
    sections: dict[str, list[Finding]] = {SEVERAL: []} | {
        paper_label(name): [] for name in paper_names()
    }
    for finding in findings():
        title = SEVERAL if len(finding.papers) > 1 else paper_label(finding.papers[0])
        sections.setdefault(title, []).append(finding)
    counts = Counter((f.kind, f.severity) for section in sections.values() for f in section)
    body = [
        [kind, *(str(counts[kind, severity]) for severity in SEVERITIES)] for kind in FINDING_KINDS
    ]
    severities = ", ".join(
        f"{sum(counts[kind, of] for kind in FINDING_KINDS)} {of}" for of in SEVERITIES
    )
    worst = [f for section in sections.values() for f in section if f.severity == SERIOUS]
    serious = as_list(
        f"{SERIOUS}, {', '.join(map(place_label, f.places))}: {f.text}" for f in worst
    )
    parts: list[Part] = [
        f"**{counts.total()} inconsistencies in the published tables: {severities}.**",
        *([serious] if serious else []),
        (
            "Recomputed from the numbers as printed, without any run. A finding says that two"
            " things in print do not agree, not which of them is wrong. A value copied from another"
            " paper and one of a re-run are two runs: that they differ is no finding."
        ),
        TextTable([f"{counts.total()} findings", *SEVERITIES], body),
        Fold(
            "What kinds and severities mean",
            [as_list(f"*{k}*: {m}." for k, m in (FINDING_KINDS | SEVERITIES).items())],
        ),
    ]
    for title, section in sections.items():
        label = place_label if title == SEVERAL else where_label
        body = [[f.severity, f.kind, "; ".join(map(label, f.places)), f.text] for f in section]
        table = TextTable(["severity", "kind", "place", "finding"], body) if body else "None."
        parts += [f"## {title}: {len(section)}", table]
    return PageContent("Inconsistencies in the published tables", "", parts)
