"""The page of the audit: where published tables contradict themselves or one another.

It arranges findings (csebench/report/numbers/audit.py) and their sentences
(csebench/report/words/audit.py) by paper.
"""

from collections import Counter
from itertools import chain

from csebench.base.terminal import counted
from csebench.plan.catalog.files import paper_names
from csebench.report.numbers.audit import Finding, FindingKind, Severity, findings
from csebench.report.pages.page import Fold, PageContent, Part, TextTable, as_list, linked_count
from csebench.report.words.audit import (
    KIND_MEANINGS,
    SEVERITY_MEANINGS,
    finding_text,
    in_reading_order,
    paper_label,
    place_label,
    where_label,
)
from csebench.report.words.claim_counts import severity_counts

SEVERAL = "Several papers"


def audit_page(_scale: str) -> PageContent:
    """Show findings about several papers, about each paper, and about papers not in papers/.

    The page is the same at every scale, because no run is read.
    """
    sections = findings_by_section()
    in_order = list(chain.from_iterable(sections.values()))
    parts: list[Part] = [
        f"**{len(in_order)} inconsistencies in the published tables: {severity_counts(in_order)}.**"
    ]
    serious = [finding for finding in in_order if finding.severity == Severity.SERIOUS]
    if serious:
        parts.append(as_list(serious_line(finding) for finding in serious))
    parts += [
        links_table(sections),
        (
            "A count links to its findings. Those of the kind *found by reading* were noted by a"
            " person. All others are recomputed from the numbers as printed. A finding shows"
            " that two printed things disagree. It does not say which is wrong. The end of the page"
            " [explains levels and kinds](#how-findings-are-made)."
        ),
    ]
    for title, section in sections.items():
        parts += section_parts(title, section)
    parts += [
        "## How findings are made",
        (
            "If one paper copies a value and another runs the model again, the two values may"
            " differ. Such a difference is not a finding."
        ),
        counts_table(in_order),
        meanings_list(),
    ]
    return PageContent("Inconsistencies in the published tables", "", parts)


def findings_by_section() -> dict[str, list[Finding]]:
    """Sort findings into the sections of the page. Every paper has one, even if it is empty."""
    sections: dict[str, list[Finding]] = {SEVERAL: []}
    for name in paper_names():
        sections[paper_label(name)] = []
    for finding in in_reading_order(findings()):
        if len(finding.papers) > 1:
            title = SEVERAL
        else:
            title = paper_label(finding.papers[0])
        sections.setdefault(title, []).append(finding)
    return sections


def links_table(sections: dict[str, list[Finding]]) -> TextTable:
    """Count findings by section and severity, with links to them."""
    rows = []
    for title, section in sections.items():
        counts = Counter(finding.severity for finding in section)
        cells = []
        for severity in Severity:
            cells.append(linked_count(counts[severity], severity_heading(title, severity)))
        rows.append([title, *cells])
    return TextTable(["about", *Severity], rows)


def severity_heading(title: str, severity: Severity) -> str:
    return f"{title}: {severity}"


def section_parts(title: str, section: list[Finding]) -> list[Part]:
    """Show the findings of a section by severity. Minor ones are folded."""
    parts: list[Part] = [f"## {title}"]
    if not section:
        parts.append("No findings.")
    for severity in Severity:
        findings_here = [finding for finding in section if finding.severity == severity]
        if not findings_here:
            continue
        parts.append(f"### {severity_heading(title, severity)}")
        table = section_table(findings_here, names_papers=title == SEVERAL)
        if severity == Severity.MINOR:
            parts.append(Fold(counted(len(findings_here), "finding"), [table]))
        else:
            parts.append(table)
    return parts


def serious_line(finding: Finding) -> str:
    """Word a serious finding for the top of the page."""
    places = ", ".join(place_label(place) for place in finding.places)
    return f"{finding.severity}, {places}: {finding_text(finding)}"


def counts_table(all_findings: list[Finding]) -> TextTable:
    """Count findings by kind and severity."""
    counts = Counter((finding.kind, finding.severity) for finding in all_findings)
    rows = []
    for kind in FindingKind:
        rows.append([kind, *(str(counts[kind, severity]) for severity in Severity)])
    return TextTable([f"{len(all_findings)} findings", *Severity], rows)


def meanings_list() -> str:
    """Say what the names of kinds and severities mean."""
    meanings = KIND_MEANINGS | SEVERITY_MEANINGS
    return as_list(f"*{name}*: {meaning}." for name, meaning in meanings.items())


def section_table(section: list[Finding], names_papers: bool) -> TextTable:
    """Make the table of a section.

    Args:
        names_papers: whether the name of a place includes its paper.
    """
    label = place_label if names_papers else where_label
    rows = []
    for finding in section:
        places = "; ".join(label(place) for place in finding.places)
        rows.append([places, finding_text(finding), finding.kind])
    return TextTable(["place", "finding", "kind"], rows)
