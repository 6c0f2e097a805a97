"""Inconsistencies in the published tables: within a table, between tables, and between tables and
text.

Arithmetic on the printed numbers alone, without scores or runs; `errata` in papers/*.yaml and
evidence/methods.yaml list what it cannot find. Copies of one mistake are one finding with all
places. Error rates: benchmarks/judge.py.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product
from math import ceil, floor
from typing import NamedTuple

from csebench.plan.catalog import evidence
from csebench.plan.catalog.files import DEFAULT_SCALE, paper, paper_names
from csebench.plan.catalog.registry import tasks_of, valid_evaluators
from csebench.plan.schema.paper import Column, Grid, Published, Row
from csebench.plan.targets import grid_label, grid_names
from csebench.report.numbers import claims
from csebench.report.numbers.others import rows as score_rows
from csebench.report.numbers.stats import SLACK
from csebench.report.words.claims import detail_text

MIN_SHARED = 3  # cells that two rows have in common before they are compared
MIN_EQUAL = 0.6  # fraction of these that are equal before the others count as contradictions
# units of the last printed digit up to which a wrong or inconsistent value is a minor finding
LAST_DIGITS = 10

WRONG_SUM, IMPOSSIBLE, INCONSISTENT = "wrong sum", "impossible value", "inconsistent value"
NEAR_DUPLICATE, SENTENCE, READING = (
    "near-duplicate rows",
    "sentence against table",
    "found by reading",
)
FINDING_KINDS = {
    SENTENCE: (
        "the printed numbers go the other way, or differ by another amount than the sentence says"
    ),
    INCONSISTENT: "one setting has two values",
    NEAR_DUPLICATE: "rows of several tables are equal but for a few cells",
    WRONG_SUM: "an average or a difference is not that of its row",
    IMPOSSIBLE: (
        "no count of correct items gives it: a mean of runs, a coarser source, or a misprint"
    ),
    READING: "not by arithmetic",
}
SERIOUS, NOTABLE, MINOR = "serious", "notable", "minor"
SEVERITIES = {
    SERIOUS: "contradicts what a paper concludes, significantly or by another size",
    NOTABLE: "a sentence, a number or an equation is wrong or doubtful",
    MINOR: (
        f"at most {LAST_DIGITS} units of the last digit, a possible mean of runs, a label, a"
        " citation, a wording"
    ),
}


class Place(NamedTuple):
    # of papers/; the title of a method of evidence/methods.yaml, where the text is in none of them
    paper: str
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
    """All findings, the most severe first. An erratum of a row says more, and replaces what the
    checks find of it."""
    errata = [(name, erratum) for name in paper_names() for erratum in paper(name).errata]
    errata += [
        (method.title, erratum)
        for method in evidence.evidence_names().methods.values()
        for erratum in method.errata
    ]
    explained = [
        (erratum.kind, Place(name, erratum.where), erratum.row)
        for name, erratum in errata
        if erratum.row
    ]
    copied: dict[tuple, Finding] = {}
    for row in printed_rows():
        # those of a copy, whatever it is called
        values = tuple((cell.score, cell.value.text) for cell in row)
        for cell, check in product(row, (check_average, check_share)):
            if finding := check(cell):  # what papers copied from one another is one finding
                key = finding.kind, values, cell.grid.columns.index(cell.column)
                first = copied.setdefault(key, finding)
                copied[key] = first._replace(
                    places=tuple(dict.fromkeys((*first.places, *finding.places)))
                )
    every = []
    for finding in (
        *copied.values(),
        *check_claims(),
        *check_repeated_settings(),
        *check_similar_rows(),
    ):
        rows = [
            row
            for kind, place, row in explained
            if kind == finding.kind and place in finding.places
        ]
        every += [] if any(row in finding.text for row in rows) else [finding]
    for name, erratum in errata:
        places = (Place(name, erratum.where), *(Place(*place) for place in erratum.also.items()))
        text = f"{erratum.row}: {erratum.text}" if erratum.row else erratum.text
        every.append(Finding(erratum.kind, erratum.severity, places, text))
    return sorted(
        every,
        key=lambda f: (
            [*SEVERITIES].index(f.severity),
            [*FINDING_KINDS].index(f.kind),
            f.places,
            f.text,
        ),
    )


def size_severity(off: float, unit: float) -> str:
    return MINOR if off <= LAST_DIGITS * unit + SLACK else NOTABLE


@dataclass(frozen=True, eq=False)
class PrintedCell:
    """A published value, and where it stands."""

    place: Place
    grid: Grid
    row: Row
    column: Column
    value: Published

    @property
    def number(self) -> tuple[float, float | None]:
        return self.value.value, self.value.std

    @property
    def score(self) -> tuple:
        """What it measures, and on which size of the training set."""
        return (
            self.grid.column_evaluator(self.column),
            self.column.task,
            self.column.metric,
            self.column.size,
        )

    @property
    def setting(self) -> tuple | None:
        """What it depends on, apart from what is measured, as far as its recipe states it."""
        if (recipe := self.row.run) is None:
            return None
        constant = recipe.model_dump(exclude={"sweep", "encoder"})
        sweep = sorted((recipe.sweep | self.column.sweep).items())
        return self.place.paper, str(constant), str(sweep), recipe.encoder or self.grid.encoder


def printed_rows() -> list[list[PrintedCell]]:
    """The published values of every row of a table of scores."""
    return [
        [
            PrintedCell(Place(name, place), grid, row, c, v)
            for c, v in zip(grid.columns, row.values, strict=True)
            if v
        ]
        for name, place, grid, row in score_rows()
        if place.startswith("table")
    ]


def check_average(cell: PrintedCell) -> Finding | None:
    """A printed average against the mean of its row, and a printed difference against its two
    values. One unit of the last digit is allowed: half for the rounding of what is averaged, half
    for that of the average.
    """
    grid, row, column, printed = cell.grid, cell.row, cell.column, cell.value
    index = grid.columns.index(column)
    before = [value.value for value in row.values[:index] if value is not None]
    if len(before) == index > 1 and (
        column.mean or averages_tasks(grid, column, grid.columns[:index])
    ):
        expected = sum(before) / index
        text = (
            f"{row.label}: the columns average {expected:.{grid.digits + 1}f}, printed is"
            f" {printed.text}"
        )
    elif column.delta is not None:
        minuend = grid.column(column.delta)
        value, base = row.values[minuend], grid.rows[grid.baseline_row].values[minuend]
        if not value or not base:
            return None
        expected = value.value - base.value
        text = f"{row.label}: {value.text} - {base.text} is not the printed {printed.text}"
    else:
        return None
    off = abs(expected - printed.value)
    is_wrong = off > printed.unit + SLACK
    return (
        Finding(WRONG_SUM, size_severity(off, printed.unit), (cell.place,), text)
        if is_wrong
        else None
    )


def averages_tasks(grid: Grid, column: Column, before: list[Column]) -> bool:
    """Whether a column is its evaluator's average of exactly the columns before it."""
    same_run = {(c.evaluator, c.size) for c in before} == {(column.evaluator, column.size)}
    return (
        column.task == "Avg."
        and same_run
        and [c.task for c in before] == tasks_of(grid.column_evaluator(column))
    )


def check_share(cell: PrintedCell) -> Finding | None:
    """An accuracy or recall that no count of correct items gives."""
    grid, printed = cell.grid, cell.value
    declared = valid_evaluators().get(grid.column_evaluator(cell.column).partition(":")[0])
    items = declared.counts.get(cell.column.task or "") if declared else None
    if items is None or printed.std is not None:
        return None
    correct = printed.value / grid.factor * items
    nearest = [n / items * grid.factor for n in (floor(correct), ceil(correct))]
    if any(abs(share - printed.value) <= printed.unit / 2 + SLACK for share in nearest):
        return None
    options = ", ".join(f"{share:.{grid.digits}f}" for share in nearest)
    share = f"{printed.text} %" if grid.factor == 100 else printed.text
    text = (
        f"{cell.row.label}, {cell.column.label}: {share} is impossible with {items:,} items;"
        f" nearest: {options}"
    )
    return Finding(IMPOSSIBLE, MINOR, (cell.place,), text)


def check_claims() -> Iterator[Finding]:
    """Sentences of the text that the printed numbers reverse, or whose stated size differs."""
    for name, rows in claims.stated_quotes(DEFAULT_SCALE, paper_names()):
        judged = [(claim, claims.judge_printed(name, claim, DEFAULT_SCALE)) for claim in rows]
        wrong = [
            (claim, j)
            for claim, j in judged
            if j.verdict == claims.ClaimVerdict.CONTRADICTED or j.size == claims.StatedSize.OTHER
        ]
        if not wrong:
            continue
        serious = any(
            j.direction != claims.Direction.AGREES and j.significance == claims.Significance.YES
            for _, j in wrong
        )
        serious |= any(
            j.size == claims.StatedSize.OTHER and claim.less_than is None for claim, j in wrong
        )
        places = dict.fromkeys(f"sec. {claim.section} on {claim.place}" for claim, _ in wrong)
        details = [
            f"{claim.row}: {detail_text(j)}" if len(rows) > 1 else detail_text(j)
            for claim, j in wrong
        ]
        text = f"“{rows[0].quote}”: {'; '.join(dict.fromkeys(details))}"
        yield Finding(
            SENTENCE, SERIOUS if serious else NOTABLE, tuple(Place(name, p) for p in places), text
        )


def check_repeated_settings() -> Iterator[Finding]:
    """Settings that a paper prints in two tables with different values; all columns of a setting
    are one finding."""
    by_setting: dict[tuple, dict[tuple, list[PrintedCell]]] = {}
    for cell in chain.from_iterable(printed_rows()):
        if cell.setting is not None and cell.column.task is not None:
            by_setting.setdefault(cell.setting, {}).setdefault(cell.score, []).append(cell)
    for by_score in by_setting.values():
        texts, places, largest = [], set(), (0.0, 1.0)
        for cells in by_score.values():
            wrong = [pair for pair in combinations(cells, 2) if contradict(*pair)]
            if not wrong:
                continue
            largest = max(
                largest, *((abs(a.value.value - b.value.value), a.value.unit) for a, b in wrong)
            )
            by_text: dict[str, list[str]] = {}
            for cell in dict.fromkeys(chain.from_iterable(wrong)):
                places.add(cell.place)
                by_text.setdefault(cell.value.text, []).append(
                    f"{grid_label(cell.place.where)} ({cell.row.label})"
                )
            values = ", ".join(
                f"{text} in {' and '.join(where)}" for text, where in by_text.items()
            )
            texts.append(f"{cells[0].column.label}: {values}")
        if texts:
            yield Finding(
                INCONSISTENT, size_severity(*largest), tuple(sorted(places)), "; ".join(texts)
            )


def contradict(a: PrintedCell, b: PrintedCell) -> bool:
    """Two values of one setting in two tables; one that is copied and one of a re-run are two
    runs, and may differ."""
    return (
        a.place != b.place
        and a.number != b.number
        and {a.row.source, b.row.source} != {"copied", "rerun"}
    )


def check_similar_rows() -> Iterator[Finding]:
    """Rows of several tables that are equal in most of their shared cells, but not in all;
    copies of one are one."""
    rows = [
        {cell.score: cell for cell in row if cell.column.task is not None} for row in printed_rows()
    ]
    # the group of each row; groups with a pair of copies become one
    groups = list(range(len(rows)))
    for (i, a), (j, b) in combinations(enumerate(rows), 2):
        if groups[i] != groups[j] and are_copies(a, b):
            groups = [groups[i] if group == groups[j] else group for group in groups]
    for group in sorted({*groups}):
        yield from differing_copies(
            [row for row, of in zip(rows, groups, strict=True) if of == group]
        )


def are_copies(a: dict[tuple, PrintedCell], b: dict[tuple, PrintedCell]) -> bool:
    """Whether rows of two tables share enough equal cells, and are not compared by
    check_repeated_settings."""
    shared = a.keys() & b.keys()
    equal = sum(a[score].number == b[score].number for score in shared)
    if len(shared) < MIN_SHARED or equal < MIN_EQUAL * len(shared):
        return False
    settings = [{cell.setting for cell in row.values()} - {None} for row in (a, b)]
    return (
        len({cell.place for cell in chain(a.values(), b.values())}) > 1
        and not settings[0] & settings[1]
    )


def differing_copies(rows: list[dict[tuple, PrintedCell]]) -> Iterator[Finding]:
    """What differs in rows that are copies of one, as one finding."""
    texts, off = [], (0.0, 1.0)
    for score in dict.fromkeys(chain.from_iterable(rows)):
        by_value: dict[tuple, list[PrintedCell]] = {}
        for cell in (row[score] for row in rows if score in row):
            by_value.setdefault(cell.number, []).append(cell)
        if len(by_value) < 2:
            continue
        alike, means = [*by_value.values()], [mean for mean, _ in by_value]
        off = max(off, (max(means) - min(means), alike[0][0].value.unit))
        values = [
            f"{same[0].value.text} in {', '.join(place_label(one.place) for one in same)}"
            for same in alike
        ]
        _, task, _, size = score
        texts.append(f"{task}{'' if size == '100%' else f' ({size})'}: {'; '.join(values)}")
    if texts:
        firsts = [next(iter(row.values())) for row in rows]
        labels = " = ".join(dict.fromkeys(cell.row.label for cell in firsts))
        places = tuple(dict.fromkeys(cell.place for cell in firsts))
        yield Finding(
            NEAR_DUPLICATE, size_severity(*off), places, f"{labels}, but {'. '.join(texts)}"
        )


def place_label(place: Place) -> str:
    """`miCSE Table 1`, `miCSE sec. 1 on Table 2`."""
    return f"{paper_label(place.paper)} {where_label(place)}"


def where_label(place: Place) -> str:
    """`Table 2` for `table2`, `sec. 1 on Table 2` for `sec. 1 on table2`; other places as they
    are."""
    names = grid_names(place.paper) if place.paper in paper_names() else ()
    return re.sub(
        r"\w+", lambda word: grid_label(word[0]) if word[0] in names else word[0], place.where
    )


def paper_label(name: str) -> str:
    """`miCSE` for `micse`; a title that is no paper of papers/ stays as it is."""
    return (paper(name).label or name) if name in paper_names() else name
