"""The pages that are not tables of papers, by target. A new one is registered here, and in csebench/plan/grids.py
(`EXTRA`) where it is a table with runs of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from csebench.plan import variance
from csebench.plan.targets import Page
from csebench.report import (
    evidence_figures,
    evidence_page,
    overview,
    tuning_page,
    variance_page,
)
from csebench.report.markdown import render_page


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
EXTRA = {variance.NAME: variance_page.page}


def page_text(page: Page) -> str:
    """A page of tables as Markdown."""
    return EXTRA[page.name](page.scale) if page.name in EXTRA else render_page(page)
