"""What the printed tables contradict, in themselves, in the text or in one another: arithmetic, no run needed."""

from __future__ import annotations

from itertools import combinations
from math import ceil, floor
from typing import NamedTuple

from csebench.plan.catalog import DEFAULT_SCALE, paper, paper_names
from csebench.plan.grids import find_grid
from csebench.plan.papers import Column, Grid, Published, Row, Settings
from csebench.plan.registry import protocol
from csebench.plan.targets import grid_names
from csebench.report import claims

SLACK = 1e-9  # what binary fractions do to decimal ones
ALIKE = 0.6  # of two rows' cells that are equal before the others count as contradictions


class Finding(NamedTuple):
    paper: str
    place: str  # table2, or where in the text
    kind: str
    text: str


def findings() -> list[Finding]:
    """Every finding, by paper; those that no arithmetic gives are the papers' `errata`."""
    found = [*averages(), *shares(), *quoted(), *settings_printed_twice(), *rows_alike(), *by_hand()]
    return sorted(found, key=lambda f: (f.paper, f.kind, f.place, f.text))


def tables() -> list[tuple[str, str, Grid]]:
    every = [(p, n, find_grid(p, n)) for p in paper_names() for n in grid_names(p) if n.startswith("table")]
    return [(p, n, grid) for p, n, grid in every if not isinstance(grid, Settings)]


def cells(grid: Grid):
    return ((row, c, value) for row in grid.rows for c, value in zip(grid.columns, row.values, strict=True) if value)


def averages():
    """A printed average against the mean of its row, and a printed difference against its two values.

    One unit of the last digit is allowed: half for the rounding of what is averaged, half for that of the average.
    """
    for name, place, grid in tables():
        for row, column, printed in cells(grid):
            at = grid.columns.index(column)
            before = row.values[:at]
            if len(before) > 1 and None not in before and averages_those(grid, column, grid.columns[:at]):
                mean = sum(v.value for v in before) / len(before)
                if abs(mean - printed.value) > printed.unit + SLACK:
                    text = f"{row.label}: the columns average {mean:.{grid.digits + 1}f}, printed is {printed.text}"
                    yield Finding(name, place, "average", text)
            elif column.delta is not None:
                of = grid.column(column.delta)
                own, base = row.values[of], grid.rows[grid.row(grid.baseline)].values[of]
                if own and base and abs(own.value - base.value - printed.value) > printed.unit + SLACK:
                    text = f"{row.label}: {own.text} - {base.text} is not the printed {printed.text}"
                    yield Finding(name, place, "difference", text)


def averages_those(grid: Grid, column: Column, before: list[Column]) -> bool:
    same = {(c.evaluator, c.size) for c in before} == {(column.evaluator, column.size)}
    averaged = [c.task for c in before] == protocol(evaluator(grid, column)).declaration.tasks
    return column.mean or (column.task == "Avg." and same and averaged)


def shares():
    """An accuracy or recall that no count of right answers gives."""
    for name, place, grid in tables():
        for row, column, printed in cells(grid):
            items = protocol(evaluator(grid, column)).declaration.counts.get(column.task)
            if items is None or printed.std is not None:
                continue
            right = printed.value / grid.factor * items
            near = [n / items * grid.factor for n in (floor(right), ceil(right))]
            if all(abs(share - printed.value) > printed.unit / 2 + SLACK for share in near):
                options = " or ".join(f"{share:.{grid.digits}f}" for share in near)
                text = (
                    f"{row.label}, {column.label}: {printed.text} is no share of {items} items ({options} is): a mean"
                )
                yield Finding(name, place, "impossible share", f"{text} of runs, a coarser source, or a misprint")


def evaluator(grid: Grid, column: Column) -> str:
    return column.evaluator or grid.evaluator


def quoted():
    """Sentences of the text against the tables that they speak of."""
    for name in paper_names():
        for claim in paper(name).claims:
            found = claims.judge_print(name, claim, DEFAULT_SCALE)
            if found.verdict == claims.REVERSED or found.stated is False:
                where = f"sec. {claim.section} on {claims.place(claim)}"
                yield Finding(name, where, "text", f"“{claim.says}”: {found.detail}")


def settings_printed_twice():
    """One paper, one setting, two values."""
    seen: dict[tuple, list] = {}
    for name, place, grid in tables():
        for row, column, printed in cells(grid):
            if row.run is not None and column.task is not None:
                uses = seen.setdefault((name, *setting(grid, row, column)), [])
                uses.append((place, row.label, column.label, printed))
    for (name, *_), uses in seen.items():
        for (place, label, column, one), (other_place, other_label, other_column, other) in combinations(uses, 2):
            if differ(one, other) and place != other_place:
                text = f"{label}, {column}: {one.text}, but {other_place}, {other_label}, {other_column}: {other.text}"
                yield Finding(name, place, "one setting, two values", text)


def differ(one: Published, other: Published) -> bool:
    return (one.value, one.std) != (other.value, other.std)


def setting(grid: Grid, row: Row, column: Column) -> tuple:
    """What a printed value depends on, as far as its recipe says."""
    recipe = row.run.model_dump(exclude={"sweep", "encoder"})
    sweep = sorted((row.run.sweep | column.sweep).items())
    return str(recipe), str(sweep), row.run.encoder or grid.encoder, *score(grid, column)


def score(grid: Grid, column: Column) -> tuple:
    return evaluator(grid, column), column.task, column.metric, column.size


def rows_alike():
    """Rows of two tables that are equal but for a few cells."""
    printed = [
        (name, place, row.label, {score(grid, c): v for c, v in zip(grid.columns, row.values, strict=True) if v})
        for name, place, grid in tables()
        for row in grid.rows
    ]
    for (name, place, label, one), (other_name, other_place, other_label, other) in combinations(printed, 2):
        shared = [score for score in one if score in other and score[1] is not None]
        off = [score for score in shared if differ(one[score], other[score])]
        if (name, place) == (other_name, other_place) or len(shared) < 3 or not off:
            continue
        if len(shared) - len(off) >= ALIKE * len(shared):
            listed = "; ".join(f"{s[1]} ({s[3]}) {one[s].text} against {other[s].text}" for s in off)
            text = f"{label} is {other_label} of {other_name} {other_place}, but for {listed}"
            yield Finding(name, place, "rows alike", text)


def by_hand():
    for name in paper_names():
        for erratum in paper(name).errata:
            yield Finding(name, erratum.where, "read", erratum.says)
