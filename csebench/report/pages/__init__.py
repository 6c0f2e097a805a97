"""All pages of results/, with their pictures and tables.

A new kind of page over all tables is registered in PAGES. The other modules of this folder decide
what each page says.
"""

from collections.abc import Iterator
from pathlib import Path

from csebench.base.files import write_text
from csebench.plan import targets
from csebench.plan.catalog.files import RESULTS, results_folder
from csebench.plan.schema.paper import Figure
from csebench.report import csv_tables
from csebench.report.figures.evidence import draw_runs
from csebench.report.figures.forest import draw_forest
from csebench.report.figures.over_settings import draw_over_settings
from csebench.report.figures.printed_gains import draw_gains
from csebench.report.figures.scores import draw_figure
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.compare import answers
from csebench.report.pages.answer_text import all_comparisons, nothing_to_draw, picture_title
from csebench.report.pages.audit import audit_page
from csebench.report.pages.claims import claims_page
from csebench.report.pages.evidence import evidence_page
from csebench.report.pages.index import index_page
from csebench.report.pages.method_settings import settings_page
from csebench.report.pages.table import table_page

PAGES = {
    "index": index_page,
    "claims": claims_page,
    "audit": audit_page,
    "settings": settings_page,
    "evidence": evidence_page,
}


def write_all(scale: str) -> list[Path]:
    """Write every page, picture and table of a scale.

    Returns:
        The files that were written.
    """
    # make all texts first, so that an error in one leaves all files as they are
    contents = dict(texts(scale))
    for path, text in contents.items():
        write_text(path, text)
    pictures: list[Path] = []
    for page in targets.pages(scale):
        if has_picture(page):
            pictures += draw_page(page)
    return [*contents, *pictures, *draw_runs(RESULTS), *draw_gains(RESULTS)]


def stale_files(scale: str) -> list[Path]:
    """Find the pages and tables of a scale that are missing or do not follow from the scores."""
    stale = []
    for path, text in texts(scale):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
    return stale


def texts(scale: str) -> Iterator[tuple[Path, str]]:
    """Make every page and CSV table of a scale from the scores that exist."""
    for page in targets.pages(scale):
        yield page.path.with_suffix(".md"), table_page(page).write("markdown")
    for name, make_page in PAGES.items():
        yield page_path(name, scale), make_page(scale).write("markdown")
    yield from csv_tables.csv_files(scale).items()


def page_path(name: str, scale: str) -> Path:
    """Give the file of a page of PAGES. The page of evidence belongs to no scale."""
    folder = RESULTS if name == "evidence" else results_folder(scale)
    return folder / f"{name}.md"


def has_picture(page: targets.Page) -> bool:
    """Whether a page may have a picture. A figure has none if its runs lack the scores it shows."""
    if page.path.suffix != ".svg":
        return True
    (grid,) = page.grids()
    return not nothing_to_draw(grid_view(*grid, page.scale))


def draw_page(page: targets.Page) -> list[Path]:
    """Draw the picture of a page: a paper's figure, or the comparisons of a table.

    Comparisons over random settings are drawn point by point, others as a forest plot.

    Returns:
        The files that were written. A page of several tables has no picture.
    """
    if len(page.grids()) > 1:
        return []
    view = grid_view(*page.grids()[0], page.scale)
    answered = answers(view)
    title = picture_title(view, answered)
    if isinstance(view.grid, Figure):
        return draw_figure(view, title)
    if not title:
        return []
    over_settings = [c for c in all_comparisons(answered) if c.over_settings is not None]
    if over_settings:
        return draw_over_settings(view, over_settings, title)
    return draw_forest(view, answered, title)
