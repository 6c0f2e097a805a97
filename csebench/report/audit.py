"""Inconsistencies in the published tables: within a table, between tables, and between tables and text.

Arithmetic on the printed numbers alone: no score is read, no run is needed. Errors that arithmetic cannot find are
listed by hand as `errata` in papers/*.yaml and evidence/methods.yaml. What several papers copied from one another is
one finding with all its places. How often the checks are wrong is measured by benchmarks/judge.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import combinations
from math import ceil, floor
from typing import NamedTuple

from csebench.plan import evidence
from csebench.plan.catalog import DEFAULT_SCALE, paper, paper_names
from csebench.plan.grids import find_grid
from csebench.plan.papers import Column, Erratum, Grid, Published, Recipe, Row, SettingsTable
from csebench.plan.registry import protocol
from csebench.plan.targets import grid_label, grid_names
from csebench.report import claims

SLACK = 1e-9  # rounding error of binary fractions
MIN_SHARED = 3  # cells that two rows have in common before they are compared
MIN_EQUAL = 0.6  # fraction of these that are equal before the others count as contradictions
LAST_DIGITS = 10  # units of the last printed digit up to which a wrong or inconsistent value is a minor finding

WRONG_SUM, IMPOSSIBLE, INCONSISTENT = "wrong sum", "impossible value", "inconsistent value"
NEAR_DUPLICATE, SENTENCE, READING = "near-duplicate rows", "sentence against table", "found by reading"
KINDS = {
    SENTENCE: "the printed numbers go the other way, or differ by another amount than the sentence says",
    INCONSISTENT: "one setting has two values",
    NEAR_DUPLICATE: "rows of several tables are equal but for a few cells",
    WRONG_SUM: "an average or a difference is not that of its row",
    IMPOSSIBLE: "no count of correct items gives it: a mean of runs, a coarser source, or a misprint",
    READING: "not by arithmetic",
}
SERIOUS, NOTABLE, MINOR = "serious", "notable", "minor"
SEVERITIES = {
    SERIOUS: "contradicts what a paper concludes, significantly or by another size",
    NOTABLE: "a sentence, a number or an equation is wrong or doubtful",
    MINOR: f"at most {LAST_DIGITS} units of the last digit, a possible mean of runs, a label, a citation, a wording",
}


class Place(NamedTuple):
    paper: str  # of papers/; the title of a method of evidence/methods.yaml, where the text is in none of them
    where: str  # table2, or a place in the text


class Finding(NamedTuple):
    kind: str
    severity: str
    places: tuple[Place, ...]
    text: str

    @property
    def papers(self) -> list[str]:
        return list(dict.fromkeys(place.paper for place in self.places))


def findings() -> list[Finding]:
    """All findings, the most severe first.

    An erratum with a row replaces what the checks find of that row: it says more.
    """
    checks = (check_averages, check_shares, check_claims, check_repeated_settings, check_similar_rows)
    computed = [finding for check in checks for finding in check() if not is_explained(finding)]
    return sorted([*computed, *list_errata()], key=severity_order)


def is_explained(finding: Finding) -> bool:
    """Whether an erratum of the same kind, place and row says what a check has found."""
    return any(
        erratum.row is not None and erratum.row in finding.text and erratum.kind == finding.kind
        for place in finding.places
        if place.paper in paper_names()
        for erratum in paper(place.paper).errata
        if erratum.where == place.where
    )


def severity_order(finding: Finding) -> tuple:
    return list(SEVERITIES).index(finding.severity), list(KINDS).index(finding.kind), finding.places, finding.text


def merge_copies(keyed: Iterable[tuple[tuple, Finding]]) -> Iterator[Finding]:
    """Findings with the same key are one, with all their places and the text of the first."""
    by_key: dict[tuple, list[Finding]] = {}
    for key, finding in keyed:
        by_key.setdefault(key, []).append(finding)
    for copies in by_key.values():
        places = dict.fromkeys(place for finding in copies for place in finding.places)
        yield copies[0]._replace(places=tuple(places))


def size_severity(off: float, unit: float) -> str:
    return MINOR if off <= LAST_DIGITS * unit + SLACK else NOTABLE


def score_tables() -> list[tuple[str, str, Grid]]:
    """(paper, name, grid) of every table of scores."""
    tables = [(p, n, find_grid(p, n)) for p in paper_names() for n in grid_names(p) if n.startswith("table")]
    return [(p, n, grid) for p, n, grid in tables if not isinstance(grid, SettingsTable)]


def published_values(grid: Grid) -> Iterator[tuple[Row, Column, Published]]:
    return ((row, c, value) for row in grid.rows for c, value in zip(grid.columns, row.values, strict=True) if value)


def printed_row(grid: Grid, row: Row) -> tuple:
    """What a row prints, whatever it is called: the same for a copy of it."""
    return tuple((score_key(grid, c), v.text) for c, v in zip(grid.columns, row.values, strict=True) if v)


def check_averages() -> Iterator[Finding]:
    """A printed average against the mean of its row, and a printed difference against its two values.

    One unit of the last digit is allowed: half for the rounding of what is averaged, half for that of the average.
    """
    return merge_copies(_wrong_sums())


def _wrong_sums() -> Iterator[tuple[tuple, Finding]]:
    for name, place, grid in score_tables():
        for row, column, printed in published_values(grid):
            index = grid.columns.index(column)
            before = [value for value in row.values[:index] if value is not None]
            if len(before) == index > 1 and is_average(grid, column, grid.columns[:index]):
                expected = sum(v.value for v in before) / len(before)
                text = f"{row.label}: the columns average {expected:.{grid.digits + 1}f}, printed is {printed.text}"
            elif column.delta is not None:
                minuend = grid.column(column.delta)
                value, base = row.values[minuend], grid.rows[grid.baseline_row].values[minuend]
                if not value or not base:
                    continue
                expected = value.value - base.value
                text = f"{row.label}: {value.text} - {base.text} is not the printed {printed.text}"
            else:
                continue
            off = abs(expected - printed.value)
            if off > printed.unit + SLACK:
                finding = Finding(WRONG_SUM, size_severity(off, printed.unit), (Place(name, place),), text)
                yield (printed_row(grid, row), index), finding


def is_average(grid: Grid, column: Column, before: list[Column]) -> bool:
    """Whether a column is the average of exactly the columns before it."""
    if column.mean:
        return True
    same_run = {(c.evaluator, c.size) for c in before} == {(column.evaluator, column.size)}
    tasks = protocol(grid.column_evaluator(column)).declaration.tasks
    return column.task == "Avg." and same_run and [c.task for c in before] == tasks


def check_shares() -> Iterator[Finding]:
    """An accuracy or recall that no count of correct items gives."""
    return merge_copies(_impossible_shares())


def _impossible_shares() -> Iterator[tuple[tuple, Finding]]:
    for name, place, grid in score_tables():
        for row, column, printed in published_values(grid):
            items = protocol(grid.column_evaluator(column)).declaration.counts.get(column.task or "")
            if items is None or printed.std is not None:
                continue
            correct = printed.value / grid.factor * items
            nearest = [n / items * grid.factor for n in (floor(correct), ceil(correct))]
            if all(abs(share - printed.value) > printed.unit / 2 + SLACK for share in nearest):
                options = ", ".join(f"{share:.{grid.digits}f}" for share in nearest)
                unit = " %" if grid.factor == 100 else ""
                text = f"{row.label}, {column.label}: {printed.text}{unit} is impossible with {items:,} items"
                finding = Finding(IMPOSSIBLE, MINOR, (Place(name, place),), f"{text}; nearest: {options}")
                yield (printed_row(grid, row), column.label), finding


def check_claims() -> Iterator[Finding]:
    """Sentences of the text that the printed numbers reverse, or whose stated size differs."""
    for name in paper_names():
        for quote, rows in paper(name).claims_by_quote().items():
            judged = [(claim, claims.judge_print(name, claim, DEFAULT_SCALE)) for claim in rows]
            wrong = [(claim, j) for claim, j in judged if j.verdict == claims.CONTRADICTED or j.size == claims.OTHER]
            if not wrong:
                continue
            serious = any(
                (j.direction != claims.AGREES and j.shown == claims.YES)
                or (j.size == claims.OTHER and claim.less_than is None)
                for claim, j in wrong
            )
            places = dict.fromkeys(f"sec. {claim.section} on {claim.place}" for claim, _ in wrong)
            details = [f"{claim.row}: {j.detail}" if len(rows) > 1 else j.detail for claim, j in wrong]
            text = f"“{quote}”: " + "; ".join(dict.fromkeys(details))
            yield Finding(SENTENCE, SERIOUS if serious else NOTABLE, tuple(Place(name, p) for p in places), text)


def check_repeated_settings() -> Iterator[Finding]:
    """Settings that a paper prints in two tables with different values; all columns of a setting are one finding."""
    cells: dict[tuple, dict[tuple, list]] = {}
    for name, place, grid in score_tables():
        for row, column, printed in published_values(grid):
            if row.run is not None and column.task is not None:
                setting = cells.setdefault((name, *setting_key(grid, row.run, column)), {})
                setting.setdefault(score_key(grid, column), []).append(PrintedCell(place, row, column, printed))
    for (name, *_), by_score in cells.items():
        texts, places, largest = [], {}, (0.0, 1.0)
        for values in by_score.values():
            wrong = [pair for pair in combinations(values, 2) if contradict(*pair)]
            for (place1, _, _, value1), (place2, _, _, value2) in wrong:
                places |= {Place(name, place1): None, Place(name, place2): None}
                largest = max(largest, (abs(value1.value - value2.value), value1.unit))
            by_text: dict[str, list[str]] = {}
            for place, row, _, value in dict.fromkeys(cell for pair in wrong for cell in pair):
                by_text.setdefault(value.text, []).append(f"{grid_label(place)} ({row.label})")
            if wrong:
                column = values[0][2]
                texts.append(f"{column.label}: " + ", ".join(f"{v} in {' and '.join(p)}" for v, p in by_text.items()))
        if texts:
            yield Finding(INCONSISTENT, size_severity(*largest), tuple(sorted(places)), "; ".join(texts))


class PrintedCell(NamedTuple):
    place: str
    row: Row
    column: Column
    value: Published

    def __hash__(self) -> int:
        return hash((self.place, self.row.label, self.column.label))


def contradict(a: PrintedCell, b: PrintedCell) -> bool:
    """Two values of one setting in two tables; one that is copied and one of a re-run are two runs, and may differ."""
    return a.place != b.place and differ(a.value, b.value) and {a.row.source, b.row.source} != {"copied", "rerun"}


def differ(value1: Published, value2: Published) -> bool:
    return (value1.value, value1.std) != (value2.value, value2.std)


def setting_key(grid: Grid, recipe: Recipe, column: Column) -> tuple:
    """What a printed value depends on, apart from what is measured, as far as its recipe states it."""
    constant = recipe.model_dump(exclude={"sweep", "encoder"})
    sweep = sorted((recipe.sweep | column.sweep).items())
    return str(constant), str(sweep), recipe.encoder or grid.encoder


def score_key(grid: Grid, column: Column) -> tuple:
    """What a column measures, and on which size of the training set."""
    return grid.column_evaluator(column), column.task, column.metric, column.size


class PrintedRow(NamedTuple):
    place: Place
    row: Row
    settings: set[tuple]
    values: dict[tuple, Published]  # by score_key


def check_similar_rows() -> Iterator[Finding]:
    """Rows of several tables that are equal in most of their shared cells, but not in all; copies of one are one."""
    import networkx

    rows = [
        PrintedRow(
            Place(name, place),
            row,
            {setting_key(grid, row.run, c) for c in grid.columns} if row.run else set(),
            {score_key(grid, c): v for c, v in zip(grid.columns, row.values, strict=True) if v and c.task is not None},
        )
        for name, place, grid in score_tables()
        for row in grid.rows
    ]
    copies = networkx.Graph()
    for (i, a), (j, b) in combinations(enumerate(rows), 2):
        same_setting = a.place.paper == b.place.paper and a.settings & b.settings  # of check_repeated_settings
        shared = a.values.keys() & b.values.keys()
        equal = sum(not differ(a.values[key], b.values[key]) for key in shared)
        if a.place != b.place and not same_setting and len(shared) >= MIN_SHARED and equal >= MIN_EQUAL * len(shared):
            copies.add_edge(i, j)
    for group in networkx.connected_components(copies):
        if finding := describe_copies([rows[i] for i in sorted(group)]):
            yield finding


def describe_copies(rows: list[PrintedRow]) -> Finding | None:
    """What differs in rows that are copies of one; None where nothing does."""
    texts, off = [], (0.0, 1.0)
    for key in dict.fromkeys(key for row in rows for key in row.values):
        by_value: dict[tuple, list[PrintedRow]] = {}
        for row in rows:
            if (value := row.values.get(key)) is not None:
                by_value.setdefault((value.value, value.std), []).append(row)
        if len(by_value) < 2:
            continue
        values = [
            f"{same[0].values[key].text} in {', '.join(place_label(row.place) for row in same)}"
            for same in by_value.values()
        ]
        means, unit = [mean for mean, _ in by_value], next(iter(by_value.values()))[0].values[key].unit
        off = max(off, (max(means) - min(means), unit))
        size = "" if key[3] == "100%" else f" ({key[3]})"
        texts.append(f"{key[1]}{size}: {'; '.join(values)}")
    if not texts:
        return None
    places = tuple(dict.fromkeys(row.place for row in rows))
    labels = " = ".join(dict.fromkeys(row.row.label for row in rows))
    return Finding(NEAR_DUPLICATE, size_severity(*off), places, f"{labels}, but {'. '.join(texts)}")


def place_label(place: Place) -> str:
    """`miCSE Table 1`, `miCSE sec. 1 on Table 2`."""
    return f"{paper_label(place.paper)} {where_label(place)}"


def where_label(place: Place) -> str:
    """`Table 2` for `table2`, `sec. 1 on Table 2` for `sec. 1 on table2`; other places as they are."""
    names = grid_names(place.paper) if place.paper in paper_names() else ()
    return re.sub(r"\w+", lambda word: grid_label(word[0]) if word[0] in names else word[0], place.where)


def paper_label(name: str) -> str:
    """`miCSE` for `micse`; a title that is no paper of papers/ stays as it is."""
    return (paper(name).label or name) if name in paper_names() else name


def section_id(title: str) -> str:
    """`micse` for miCSE, in addresses; `several` for findings of several papers."""
    ids = {method.title: name for name, method in evidence.names().methods.items()}
    ids |= {paper_label(name): name for name in paper_names()}
    return ids.get(title, "several")


def list_errata() -> Iterator[Finding]:
    """Errors that no check above can find, as papers/*.yaml and, for other papers, evidence/methods.yaml list them."""
    listed = [(name, paper(name).errata) for name in paper_names()]
    listed += [(method.title, method.errata) for method in evidence.names().methods.values()]
    for name, errata in listed:
        yield from (erratum_finding(name, erratum) for erratum in errata)


def erratum_finding(name: str, erratum: Erratum) -> Finding:
    places = (Place(name, erratum.where), *(Place(*place) for place in erratum.also.items()))
    text = f"{erratum.row}: {erratum.text}" if erratum.row else erratum.text
    return Finding(erratum.kind, erratum.severity, places, text)
