"""Inconsistencies in the published tables: within a table, between tables, and between tables and text.

Arithmetic on the printed numbers alone: no score is read, no run is needed. Errors that arithmetic cannot find are
listed by hand as `errata` in papers/*.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import ceil, floor
from typing import NamedTuple

from csebench.plan.catalog import DEFAULT_SCALE, paper, paper_names
from csebench.plan.grids import find_grid
from csebench.plan.papers import Column, Grid, Published, Recipe, Row, SettingsTable
from csebench.plan.registry import protocol
from csebench.plan.targets import grid_names
from csebench.report import claims

SLACK = 1e-9  # rounding error of binary fractions
MIN_SHARED = 3  # cells that two rows have in common before they are compared
MIN_EQUAL = 0.6  # fraction of these that are equal before the others count as contradictions


class Finding(NamedTuple):
    paper: str
    place: str  # table2, or a place in the text
    kind: str
    text: str


def findings() -> list[Finding]:
    """All findings, sorted by paper, kind and place."""
    checks = (
        check_averages,
        check_shares,
        check_claims,
        check_repeated_settings,
        check_similar_rows,
        list_errata,
    )
    return sorted((f for check in checks for f in check()), key=lambda f: (f.paper, f.kind, f.place, f.text))


def score_tables() -> list[tuple[str, str, Grid]]:
    """(paper, name, grid) of every table of scores."""
    tables = [(p, n, find_grid(p, n)) for p in paper_names() for n in grid_names(p) if n.startswith("table")]
    return [(p, n, grid) for p, n, grid in tables if not isinstance(grid, SettingsTable)]


def published_values(grid: Grid) -> Iterator[tuple[Row, Column, Published]]:
    return ((row, c, value) for row in grid.rows for c, value in zip(grid.columns, row.values, strict=True) if value)


def check_averages() -> Iterator[Finding]:
    """A printed average against the mean of its row, and a printed difference against its two values.

    One unit of the last digit is allowed: half for the rounding of what is averaged, half for that of the average.
    """
    for name, place, grid in score_tables():
        for row, column, printed in published_values(grid):
            index = grid.columns.index(column)
            before = [value for value in row.values[:index] if value is not None]
            if len(before) == index > 1 and is_average(grid, column, grid.columns[:index]):
                mean = sum(v.value for v in before) / len(before)
                if abs(mean - printed.value) > printed.unit + SLACK:
                    text = f"{row.label}: the columns average {mean:.{grid.digits + 1}f}, printed is {printed.text}"
                    yield Finding(name, place, "average", text)
            elif column.delta is not None:
                minuend = grid.column(column.delta)
                value, base = row.values[minuend], grid.rows[grid.baseline_row].values[minuend]
                if value and base and abs(value.value - base.value - printed.value) > printed.unit + SLACK:
                    text = f"{row.label}: {value.text} - {base.text} is not the printed {printed.text}"
                    yield Finding(name, place, "difference", text)


def is_average(grid: Grid, column: Column, before: list[Column]) -> bool:
    """Whether a column is the average of exactly the columns before it."""
    if column.mean:
        return True
    same_run = {(c.evaluator, c.size) for c in before} == {(column.evaluator, column.size)}
    tasks = protocol(grid.column_evaluator(column)).declaration.tasks
    return column.task == "Avg." and same_run and [c.task for c in before] == tasks


def check_shares() -> Iterator[Finding]:
    """An accuracy or recall that no count of correct items gives."""
    for name, place, grid in score_tables():
        for row, column, printed in published_values(grid):
            items = protocol(grid.column_evaluator(column)).declaration.counts.get(column.task or "")
            if items is None or printed.std is not None:
                continue
            correct = printed.value / grid.factor * items
            nearest = [n / items * grid.factor for n in (floor(correct), ceil(correct))]
            if all(abs(share - printed.value) > printed.unit / 2 + SLACK for share in nearest):
                options = " or ".join(f"{share:.{grid.digits}f}" for share in nearest)
                text = (
                    f"{row.label}, {column.label}: {printed.text} is no share of {items} items ({options} is): a mean"
                )
                yield Finding(name, place, "impossible share", f"{text} of runs, a coarser source, or a misprint")


def check_claims() -> Iterator[Finding]:
    """Claims of the text that the printed numbers reverse, or whose stated size differs."""
    for name in paper_names():
        for claim in paper(name).claims:
            judged = claims.judge_print(name, claim, DEFAULT_SCALE)
            if judged.verdict == claims.REVERSED or judged.stated is False:
                where = f"sec. {claim.section} on {claim.place}"
                yield Finding(name, where, "text", f"“{claim.quote}”: {judged.detail}")


def check_repeated_settings() -> Iterator[Finding]:
    """One setting that a paper prints in two tables with different values."""
    cells: dict[tuple, list] = {}
    for name, place, grid in score_tables():
        for row, column, printed in published_values(grid):
            if row.run is not None and column.task is not None:
                same_setting = cells.setdefault((name, *setting_key(grid, row.run, column)), [])
                same_setting.append((place, row.label, column.label, printed))
    for (name, *_), same_setting in cells.items():
        for (place1, row1, column1, value1), (place2, row2, column2, value2) in combinations(same_setting, 2):
            if differ(value1, value2) and place1 != place2:
                text = f"{row1}, {column1}: {value1.text}, but {place2}, {row2}, {column2}: {value2.text}"
                yield Finding(name, place1, "one setting, two values", text)


def differ(value1: Published, value2: Published) -> bool:
    return (value1.value, value1.std) != (value2.value, value2.std)


def setting_key(grid: Grid, recipe: Recipe, column: Column) -> tuple:
    """What a printed value depends on, as far as its recipe states it."""
    constant = recipe.model_dump(exclude={"sweep", "encoder"})
    sweep = sorted((recipe.sweep | column.sweep).items())
    return str(constant), str(sweep), recipe.encoder or grid.encoder, *score_key(grid, column)


def score_key(grid: Grid, column: Column) -> tuple:
    """What a column measures, and on which size of the training set."""
    return grid.column_evaluator(column), column.task, column.metric, column.size


def check_similar_rows() -> Iterator[Finding]:
    """Rows of two tables that are equal in most of their shared cells, but not in all."""
    rows = [
        (name, place, row.label, {score_key(grid, c): v for c, v in zip(grid.columns, row.values, strict=True) if v})
        for name, place, grid in score_tables()
        for row in grid.rows
    ]
    for (name1, place1, label1, row1), (name2, place2, label2, row2) in combinations(rows, 2):
        shared = [key for key in row1 if key in row2 and key[1] is not None]
        off = [key for key in shared if differ(row1[key], row2[key])]
        if (name1, place1) == (name2, place2) or len(shared) < MIN_SHARED or not off:
            continue
        if len(shared) - len(off) >= MIN_EQUAL * len(shared):
            cells = "; ".join(f"{key[1]} ({key[3]}) {row1[key].text} against {row2[key].text}" for key in off)
            yield Finding(name1, place1, "rows alike", f"{label1} is {label2} of {name2} {place2}, but for {cells}")


def list_errata() -> Iterator[Finding]:
    """Errors that no check above can find, as papers/*.yaml lists them."""
    for name in paper_names():
        for erratum in paper(name).errata:
            yield Finding(name, erratum.where, "read", erratum.text)
