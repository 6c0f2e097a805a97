"""The pages that are not tables of papers, by target: a new one is registered here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from csebench.report import evidence_figures, evidence_page, overview, tuning_page


class Report(NamedTuple):
    """A page without runs of its own. Both functions are given the scale."""

    text: Callable[[str], str]  # the page as Markdown
    draw: Callable[[Path, str], object] | None = None  # its figures, into a folder


REPORTS = {
    "index": Report(overview.index_page),
    "claims": Report(overview.claims_page),
    "audit": Report(overview.audit_page),
    "evidence": Report(lambda _: evidence_page.page(), lambda folder, _: evidence_figures.draw(folder)),
    tuning_page.NAME: Report(tuning_page.page, tuning_page.draw),
}
