"""Every page of results/ with its files. A new kind of page is registered in PAGES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from csebench.base.files import write_text
from csebench.plan import targets
from csebench.plan.catalog import DEFAULT_SCALE, RESULTS, results_folder
from csebench.plan.papers import Figure, SettingsTable
from csebench.report import csv_tables, evidence_figure, figures
from csebench.report.cells import grid_view
from csebench.report.compare import answers
from csebench.report.forest import draw_forest
from csebench.report.pages.audit import audit_page
from csebench.report.pages.claims import claims_page
from csebench.report.pages.evidence import evidence_page
from csebench.report.pages.index import index_page
from csebench.report.pages.page import Page
from csebench.report.pages.table import answer_title, nothing_to_draw, table_page

PAGES: dict[str, Callable[[str], Page]] = {
    "index": index_page,
    "claims": claims_page,
    "audit": audit_page,
    "evidence": evidence_page,
}


def page_path(name: str, scale: str) -> Path:
    """Where a page of PAGES is written: that of evidence is of no scale."""
    return (RESULTS if name == "evidence" else results_folder(scale)) / f"{name}.md"


def write_report(name: str, scale: str) -> list[Path]:
    """Writes a page of PAGES with its figures; returns the files."""
    path = page_path(name, scale)
    write_text(path, PAGES[name](scale).write("markdown"))
    return [path, *(evidence_figure.draw_runs(path.parent) if name == "evidence" else [])]


def write_page(page: targets.Page, path: Path | None = None) -> list[Path]:
    """Writes the page of a table or figure with its picture; returns the files.

    Args:
        path: of the Markdown, where it is another than the page's own, as in results/partial/: then alone.
    """
    markdown = path or page.path.with_suffix(".md")
    write_text(markdown, table_page(page).write("markdown"))
    return [markdown, *(draw(page) if path is None or path == page.path else [])]


def draw(page: targets.Page) -> list[Path]:
    """Draws what a page shows: a paper's figure, or the forest plot of a table's comparisons."""
    if len(page.grids()) > 1:
        return []
    ((paper_name, name),) = page.grids()
    view = grid_view(paper_name, name, page.scale)
    if isinstance(view.grid, Figure):
        return figures.draw(paper_name, name, page.scale)
    if isinstance(view.grid, SettingsTable) or page.scale == DEFAULT_SCALE:
        return []
    answered = answers(view)
    return draw_forest(view, answered, answer_title(answered))


def texts(scale: str) -> Iterator[tuple[Path, str]]:
    """Every page and CSV table of a scale, from the scores that are there."""
    for page in targets.pages(scale):
        yield page.path.with_suffix(".md"), table_page(page).write("markdown")
    for name in PAGES:
        if name != "evidence":
            yield page_path(name, scale), PAGES[name](scale).write("markdown")
    yield from csv_tables.csv_files(scale).items()


def write_all(scale: str) -> list[Path]:
    """Writes every page, picture and table of a scale."""
    written = []
    for path, text in texts(scale):
        write_text(path, text)
        written.append(path)
    return written + [path for page in targets.pages(scale) if has_picture(page) for path in draw(page)]


def has_picture(page: targets.Page) -> bool:
    """Whether there may be something to draw; not where scored runs lack the scores that a figure shows."""
    return page.path.suffix != ".svg" or not nothing_to_draw(grid_view(*page.grids()[0], page.scale))


def stale_files(scale: str) -> list[Path]:
    """Pages and tables of a scale that are missing, or other than its scores give."""
    return [path for path, text in texts(scale) if not path.exists() or path.read_text(encoding="utf-8") != text]
