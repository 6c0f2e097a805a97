"""Every page of results/ with its files. A new kind of page is registered in PAGES."""

from collections.abc import Iterator
from pathlib import Path

from csebench.base.files import write_text
from csebench.plan import targets
from csebench.plan.catalog.files import RESULTS, results_folder
from csebench.plan.schema.paper import Figure
from csebench.report import csv_tables
from csebench.report.figures import scores as figures
from csebench.report.figures.evidence import draw_runs
from csebench.report.figures.forest import draw_forest
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.compare import answers
from csebench.report.pages.audit import audit_page
from csebench.report.pages.claims import claims_page
from csebench.report.pages.evidence import evidence_page
from csebench.report.pages.index import index_page
from csebench.report.pages.table import forest_title, nothing_to_draw, table_page

PAGES = {"index": index_page, "claims": claims_page, "audit": audit_page, "evidence": evidence_page}


def page_path(name: str, scale: str) -> Path:
    """Where a page of PAGES is written: that of evidence is of no scale."""
    return (RESULTS if name == "evidence" else results_folder(scale)) / f"{name}.md"


def draw_page(page: targets.Page) -> list[Path]:
    """Draws what a page shows: a paper's figure, or the forest plot of a table's comparisons."""
    if len(page.grids()) > 1:
        return []
    view = grid_view(*page.grids()[0], page.scale)
    if isinstance(view.grid, Figure):
        return figures.draw_figure(view)
    title = forest_title(view, answered := answers(view))
    return draw_forest(view, answered, title) if title else []


def texts(scale: str) -> Iterator[tuple[Path, str]]:
    """Every page and CSV table of a scale, from the scores that are there."""
    for page in targets.pages(scale):
        yield page.path.with_suffix(".md"), table_page(page).write("markdown")
    for name, page_of in PAGES.items():
        yield page_path(name, scale), page_of(scale).write("markdown")
    yield from csv_tables.csv_files(scale).items()


def write_all(scale: str) -> list[Path]:
    """Writes every page, picture and table of a scale."""
    written = dict(texts(scale))
    for path, text in written.items():
        write_text(path, text)
    pictures = [
        path for page in targets.pages(scale) if has_picture(page) for path in draw_page(page)
    ]
    return [*written, *pictures, *draw_runs(RESULTS)]


def has_picture(page: targets.Page) -> bool:
    """Whether there may be something to draw; not where scored runs lack the scores that a
    figure shows."""
    return page.path.suffix != ".svg" or not nothing_to_draw(
        grid_view(*page.grids()[0], page.scale)
    )


def stale_files(scale: str) -> list[Path]:
    """Pages and tables of a scale that are missing, or other than its scores give."""
    return [
        path
        for path, text in texts(scale)
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
