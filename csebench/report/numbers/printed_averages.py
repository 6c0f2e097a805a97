"""The averages that methods' authors print, from papers/*.yaml and evidence/methods.yaml.

An average is over the seven STS test sets. Runs that others published are compared with these
averages (others.py). No score is read, and no scale matters.
"""

from dataclasses import dataclass
from typing import NamedTuple

from csebench.base.caches import cached
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import AVERAGE, FULL, MatchKey
from csebench.plan.catalog.files import paper_names
from csebench.plan.grids import find_grid
from csebench.plan.schema.paper import Column, Grid, Published, Row
from csebench.plan.targets import grid_names


class PrintedRow(NamedTuple):
    """A row of a table or figure of scores."""

    paper: str
    grid_name: str  # table2, figure3
    grid: Grid
    row: Row


@dataclass(frozen=True)
class PrintedAverage:
    """The average that a row of papers/ prints for a method on an encoder."""

    paper: str
    grid_name: str
    value: Published
    seeds: int
    tests: int  # scores of the method in this row
    is_measured: bool  # whether the authors of the paper measured it

    @property
    def preference(self) -> tuple[int, bool]:
        """Rank averages; the highest has most scores, and of these a measured one is preferred."""
        return self.tests, self.is_measured


@dataclass(frozen=True)
class AuthorsPrint:
    """The average that a method's authors print for an encoder."""

    value: Published
    seeds: int  # number of seeds that the value is a mean of
    row: PrintedAverage | None  # the row that prints it; None if evidence/methods.yaml states it
    note: str | None  # a remark on it in evidence/methods.yaml
    other_rows: tuple[PrintedAverage, ...]  # rows that print other values, one per value


@cached
def printed_by_authors(key: MatchKey) -> AuthorsPrint | None:
    """Find the average that a method's authors print for an encoder. None if it is not known.

    The value that evidence/methods.yaml states counts first. The file states one if no row of
    papers/ prints the average, or if rows print different ones. Otherwise the row with scores on
    most test sets counts. Of several such rows, a measured one counts before a copied one, and then
    the first. Re-runs by another paper, and values of unknown source, do not count.
    """
    averages = printed_averages(key)
    stated = evidence.evidence_names().methods[key.method].printed.get(key.encoder)
    if stated is not None and key.pooler == evidence.default_pooler(key.method):
        other_rows = rows_with_another_value(averages, stated.value)
        return AuthorsPrint(stated.value, stated.seeds, None, stated.note, other_rows)
    if averages:
        chosen = max(averages, key=lambda average: average.preference)
        other_rows = rows_with_another_value(averages, chosen.value)
        return AuthorsPrint(chosen.value, chosen.seeds, chosen, None, other_rows)
    return None


def rows_with_another_value(
    averages: list[PrintedAverage], value: Published
) -> tuple[PrintedAverage, ...]:
    """List rows that print as many test sets as any other row, but another average.

    If several rows print the same other average, the last one stands for them.
    """
    most = max((average.tests for average in averages), default=0)
    by_text = {}
    for average in averages:
        if average.tests == most and average.value.value != value.value:
            by_text[average.value.text] = average
    return tuple(by_text.values())


def printed_averages(key: MatchKey) -> list[PrintedAverage]:
    """List the averages that rows of papers/ print for a method, measured or copied.

    If a paper that evidence/methods.yaml names prints the average, other papers do not count. So
    a paper that repeats the rows of a named one cannot replace it.
    """
    averages = []
    for printed_row in rows_with_scores():
        row = printed_row.row
        if row.source not in ("measured", "copied"):
            continue
        if evidence.key_of_row(row, printed_row.grid.encoder) != key:
            continue
        average = average_of_row(printed_row)
        if average is not None:
            averages.append(average)
    named = evidence.evidence_names().papers
    in_named = [average for average in averages if average.paper in named]
    return in_named or averages


def average_of_row(printed_row: PrintedRow) -> PrintedAverage | None:
    """Read the average that a row prints, and count its scores. None if it prints no average."""
    grid = printed_row.grid
    row = printed_row.row
    values: dict[str, Published] = {}
    seeds: dict[str, int] = {}
    for column, value in zip(grid.columns, row.values, strict=True):
        score = score_of(grid, column)
        if score is not None and value is not None:
            values[score] = value
            seeds[score] = column.seeds or grid.seeds
    if AVERAGE not in values:
        return None
    return PrintedAverage(
        printed_row.paper,
        printed_row.grid_name,
        values[AVERAGE],
        seeds[AVERAGE],
        tests=len(values),
        is_measured=row.source == "measured",
    )


@cached
def rows_with_scores() -> list[PrintedRow]:
    """List every row of papers/ that shows scores, the rows of named papers first."""
    rows = []
    for name in papers_in_order():
        for grid_name in grid_names(name):
            grid = find_grid(name, grid_name)
            if isinstance(grid, Grid):
                rows += [PrintedRow(name, grid_name, grid, row) for row in grid.rows]
    return rows


def papers_in_order() -> list[str]:
    """List the valid papers: those that evidence/methods.yaml names, then the others by name."""
    valid = paper_names()
    named = [name for name in evidence.evidence_names().papers if name in valid]
    return list(dict.fromkeys([*named, *valid]))


def score_of(grid: Grid, column: Column, size: str = FULL) -> str | None:
    """Give a column's score the name that it has in evidence. None if evidence cannot have it."""
    if column.task is None or column.metric is not None or column.sweep or column.size != size:
        return None
    return evidence.score_name(column.evaluator or grid.evaluator, column.task)
