"""The page of the audit: where papers contradict themselves or one another.

It arranges findings (csebench/report/numbers/audit.py) and their sentences
(csebench/report/words/audit.py) by paper.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import chain

from csebench.base.terminal import capitalised, counted
from csebench.plan.catalog.files import paper_names
from csebench.report.numbers.audit import (
    ErratumFacts,
    Finding,
    FindingKind,
    Severity,
    WrongSentence,
    findings,
)
from csebench.report.numbers.stats import LEVEL
from csebench.report.pages.page import Fold, PageContent, Part, TextTable, as_list, linked_count
from csebench.report.words.audit import (
    KIND_MEANINGS,
    SEVERITY_MEANINGS,
    contrary_numbers,
    finding_text,
    in_reading_order,
    paper_label,
    place_label,
    where_label,
)
from csebench.report.words.claim_counts import severity_counts
from csebench.report.words.claims import ASSUMED_DEVIATION, DEPENDS, quoted

SEVERAL = "Several papers"


def audit_page(_scale: str) -> PageContent:
    """Show findings about several papers, about each paper, and about papers not in papers/.

    The page is the same at every scale, because no run is read.
    """
    sections = findings_by_section()
    in_order = list(chain.from_iterable(sections.values()))
    parts: list[Part] = [
        f"**{len(in_order)} inconsistencies in the papers: {severity_counts(in_order)}.**"
    ]
    serious = [finding for finding in in_order if finding.severity == Severity.SERIOUS]
    if serious:
        parts.append(as_list(serious_line(finding) for finding in serious))
    parts += [
        links_table(sections),
        (
            f"A count links to its findings. {noted_text(in_order)} A finding shows that two"
            " printed things do not fit together, that one cannot be right, or that a procedure has"
            " a flaw. A computed finding does not say which of two is wrong. The end of the page"
            " [explains kinds and levels](#kinds-and-levels-of-findings)."
        ),
        (
            f"A difference is significant if p is below {LEVEL:g}. p depends on the standard"
            " deviation over seeds. If a paper prints none, that of others' runs is assumed ([how"
            f" claims are judged](claims.md#how-claims-are-judged)). {DEPENDS} marks a sentence"
            f" that has another verdict if seeds deviate less. {ASSUMED_DEVIATION}"
        ),
    ]
    for title, section in sections.items():
        parts += section_parts(title, section)
    parts += [
        "## Kinds and levels of findings",
        counts_table(in_order),
        "Kinds:",
        meanings_list(KIND_MEANINGS),
        "Levels:",
        meanings_list(SEVERITY_MEANINGS),
        (
            "If one paper copies a value and another runs the model again, the two values may"
            " differ. Such a difference is not a finding."
        ),
    ]
    return PageContent("Inconsistencies in the papers", "", parts)


def noted_text(all_findings: list[Finding]) -> str:
    """Say which findings a person noted, and which are computed."""
    noted = 0
    for finding in all_findings:
        if isinstance(finding.facts, ErratumFacts) and finding.kind != FindingKind.READING:
            noted += 1
    others = f" and {noted} of other kinds" if noted else ""
    return (
        f"Those of the kind *{FindingKind.READING}*{others} were noted by a person. The others are"
        " computed from the printed numbers."
    )


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
    return TextTable(["paper", *Severity], rows)


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
    level = capitalised(finding.severity)
    if isinstance(finding.facts, WrongSentence):
        paper = paper_label(finding.papers[0])
        places = ", ".join(where_label(place) for place in finding.places)
        quote = quoted(finding.facts.quote)
        numbers = "; ".join(contrary_numbers(finding.facts))
        return f"{level}: {paper} ({places}) states {quote}. By its table, {numbers}."
    places = ", ".join(place_label(place) for place in finding.places)
    return f"{level}: {places}. {finding_text(finding)}"


def counts_table(all_findings: list[Finding]) -> TextTable:
    """Count findings by kind and severity."""
    counts = Counter((finding.kind, finding.severity) for finding in all_findings)
    rows = []
    for kind in FindingKind:
        rows.append([kind, *(str(counts[kind, severity]) for severity in Severity)])
    return TextTable([f"{len(all_findings)} findings", *Severity], rows)


def meanings_list(meanings: Mapping[FindingKind, str] | Mapping[Severity, str]) -> str:
    """Say what the names of kinds, or of severities, mean."""
    return as_list(f"*{name}*: {meaning}." for name, meaning in meanings.items())


def section_table(section: list[Finding], names_papers: bool) -> TextTable:
    """Make the table of a section. Each of several wrong claims of a sentence has a line.

    Args:
        names_papers: whether the name of a place includes its paper.
    """
    label = place_label if names_papers else where_label
    rows = []
    for finding in section:
        places = "; ".join(label(place) for place in finding.places)
        lines = finding_lines(finding)
        rows.append([places, lines[0], finding.kind])
        rows += [["", f"· {line}", ""] for line in lines[1:]]
    return TextTable(["place", "finding", "kind"], rows)


def finding_lines(finding: Finding) -> list[str]:
    """Word a finding, in a line unless it is about several claims of a sentence."""
    if isinstance(finding.facts, WrongSentence):
        numbers = contrary_numbers(finding.facts)
        if len(numbers) > 1:
            return [quoted(finding.facts.quote), *numbers]
    return [finding_text(finding)]
