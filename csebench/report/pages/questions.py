"""Which table answers a question on the first page of a scale, so that other pages lead there."""

from collections.abc import Sequence
from pathlib import Path

from csebench.plan.catalog.files import paper
from csebench.plan.grids import find_grid
from csebench.plan.rows import short_label
from csebench.plan.schema.paper import Family, Grid, UnscoredTable
from csebench.plan.targets import grid_label, planned_grids
from csebench.report.numbers.cells import GridView
from csebench.report.pages.page import relative_path


def first_page_questions(grid: Grid | UnscoredTable) -> list[Family]:
    """List the questions of a table or figure that the first page of a scale shows."""
    return [family for family in grid.compare if family.first_page]


def owner_text(view: GridView, family: Family, folder: Path) -> str:
    """Link to the table of the same paper whose answer the first page of the scale shows.

    Two questions are the same if each compares one pair of rows, and their labels are the same
    without citations.

    Args:
        folder: folder of the page, from which the link starts.

    Returns:
        An empty text if the first page shows this table's answer, or no other table's.
    """
    if family.first_page or not family.is_one_comparison:
        return ""
    for paper_name, name in planned_grids(view.scale):
        if paper_name != view.paper or name == view.name:
            continue
        for owner in first_page_questions(find_grid(paper_name, name)):
            if owner.is_one_comparison and pair(owner.rows) == pair(family.rows):
                label = f"{paper(paper_name).label} {grid_label(name)}"
                path = relative_path(paper_name, name, view.scale, "md", folder)
                return f"“{owner.first_page}” is answered on [{label}]({path})."
    return ""


def pair(rows: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Give the labels of the only pair of rows of a question, without citations."""
    ((row, against),) = rows
    return short_label(row), short_label(against)
