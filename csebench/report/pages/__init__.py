"""The pages of results/ that are no tables of papers, by target: a new one is registered here."""

from __future__ import annotations

from collections.abc import Callable

from csebench.report.pages.audit import audit_page
from csebench.report.pages.claims import claims_page
from csebench.report.pages.index import index_page
from csebench.report.pages.page import Page

PAGES: dict[str, Callable[[str], Page]] = {"index": index_page, "claims": claims_page, "audit": audit_page}
