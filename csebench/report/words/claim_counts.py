"""Counts of verdicts and findings in words: for the pages of claims and audit, and for README."""

from collections import Counter
from collections.abc import Iterable, Sequence

from csebench.report.numbers.audit import Finding, Severity
from csebench.report.numbers.claims import ClaimVerdict, Judged
from csebench.report.words.claims import verdict_range


def verdict_counts(sentences: Sequence[Judged]) -> str:
    """Count sentences by their verdict on printed numbers: `19 to 28 supported, 48 …`.

    A count is the range over the assumed deviations. A verdict that no sentence has is left out.
    """
    texts = []
    for verdict in ClaimVerdict:
        count = verdict_range(sentences, verdict)
        if count != "0":
            texts.append(f"{count} {verdict}")
    return ", ".join(texts)


def severity_counts(findings: Iterable[Finding]) -> str:
    """Count findings by severity: `2 serious, 30 notable, 12 minor`."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(f"{counts[severity]} {severity}" for severity in Severity)
