"""Inconsistencies in papers: in a table, between tables, and between tables and text.

The checks are arithmetic on the printed numbers. They read no score and no run. What they cannot
find is listed as `errata` in papers/*.yaml and evidence/methods.yaml. Findings are values here.
Their sentences are made in csebench/report/words/audit.py. benchmarks/judge.py measures the error
rates of the checks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, combinations
from math import ceil, floor
from typing import NamedTuple

from csebench.plan.catalog import evidence
from csebench.plan.catalog.files import DEFAULT_SCALE, paper, paper_names
from csebench.plan.catalog.registry import tasks_of, valid_evaluators
from csebench.plan.schema.paper import Claim, Column, Erratum, Grid, Published, Row
from csebench.report.numbers.claims import (
    Direction,
    Judgement,
    Significance,
    VerdictAtDeviation,
    judge_at_smaller_deviations,
    judge_printed,
    stated_quotes,
    verdicts_at_deviations,
)
from csebench.report.numbers.printed_averages import rows_with_scores
from csebench.report.numbers.stats import SLACK

MIN_SHARED = 3  # scores that two rows must have in common to be copies of one row
MIN_EQUAL = 0.6  # fraction of these scores that must be equal
# a value that is off by at most this many units of its last printed digit is a minor finding
LAST_DIGITS = 10

# ---------------------------------------------------------------- values


class FindingKind(StrEnum):
    """What kind of inconsistency a finding is, in the order in which pages list them."""

    SENTENCE = "sentence against table"
    INCONSISTENT = "inconsistent value"
    NEAR_DUPLICATE = "near-duplicate rows"
    WRONG_SUM = "wrong average or difference"
    IMPOSSIBLE = "impossible value"
    READING = "found by reading"


class Severity(StrEnum):
    """How much a finding matters, the most severe first."""

    SERIOUS = "serious"
    NOTABLE = "notable"
    MINOR = "minor"


class Place(NamedTuple):
    """Where something is printed."""

    paper: str  # its name, in papers/ or as evidence/methods.yaml gives it
    where: str  # table2, or a place in the text


class MeasuredScore(NamedTuple):
    """What a cell of a table measures, and the size of the training set."""

    evaluator: str
    task: str | None
    metric: str | None
    size: str


class PrintedSetting(NamedTuple):
    """The setting of the run that a printed value measures, as far as its recipe states it."""

    paper: str
    recipe: str
    sweep: str
    encoder: str


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
        """Give the value and its deviation."""
        return self.value.value, self.value.std

    @property
    def score(self) -> MeasuredScore:
        """Say what the value measures."""
        evaluator = self.grid.column_evaluator(self.column)
        return MeasuredScore(evaluator, self.column.task, self.column.metric, self.column.size)

    @property
    def setting(self) -> PrintedSetting | None:
        """Give the setting of the run. None if the row has no recipe."""
        recipe = self.row.run
        if recipe is None:
            return None
        constant = recipe.model_dump(exclude={"sweep", "encoder"})
        sweep = sorted((recipe.sweep | self.column.sweep).items())
        encoder = recipe.encoder or self.grid.encoder
        return PrintedSetting(self.place.paper, str(constant), str(sweep), encoder)


@dataclass(frozen=True)
class WrongAverage:
    """An average that is not the mean of the columns before it."""

    row: str
    mean: float
    printed: Published
    digits: int  # of the table


@dataclass(frozen=True)
class WrongDifference:
    """A difference that is not the difference of its two values."""

    row: str
    value: Published
    subtracted: Published
    printed: Published


@dataclass(frozen=True)
class ImpossibleValue:
    """An accuracy or recall that no count of correct items gives."""

    row: str
    column: str
    printed: Published
    items: int
    nearest: tuple[float, float]  # possible values, in printed units
    digits: int  # of the table
    is_percentage: bool


@dataclass(frozen=True)
class RepeatedScore:
    """A score of one setting that is printed with different values."""

    column: str  # its label
    cells: tuple[PrintedCell, ...]


@dataclass(frozen=True)
class InconsistentSetting:
    """The scores of one setting that two tables print differently."""

    scores: tuple[RepeatedScore, ...]


@dataclass(frozen=True)
class DifferingScore:
    """A score in which copies of a row differ."""

    task: str | None
    size: str
    cells_by_value: tuple[tuple[PrintedCell, ...], ...]  # one group of cells for each value


@dataclass(frozen=True)
class DifferingCopies:
    """Copies of one row that differ in a few scores."""

    labels: tuple[str, ...]  # of the row
    scores: tuple[DifferingScore, ...]


@dataclass(frozen=True)
class WrongClaim:
    """A claim that the printed numbers contradict, or whose size is another one."""

    judgement: Judgement
    verdicts: list[VerdictAtDeviation]  # at the largest deviation over seeds first


@dataclass(frozen=True)
class WrongSentence:
    """A sentence with wrong claims."""

    quote: str
    wrong: tuple[WrongClaim, ...]
    claims: int  # number of claims in the sentence, wrong or not


@dataclass(frozen=True)
class ErratumFacts:
    """An erratum, in the words of its file."""

    row: str | None  # the row that it explains
    text: str


FindingFacts = (
    WrongAverage
    | WrongDifference
    | ImpossibleValue
    | InconsistentSetting
    | DifferingCopies
    | WrongSentence
    | ErratumFacts
)


@dataclass(frozen=True)
class Finding:
    """An inconsistency in print."""

    kind: FindingKind
    severity: Severity
    places: tuple[Place, ...]
    facts: FindingFacts
    rows: tuple[str, ...]  # labels of the rows with the inconsistency

    @property
    def papers(self) -> list[str]:
        """Name the papers of the places, each once."""
        return list(dict.fromkeys(place.paper for place in self.places))


# ---------------------------------------------------------------- all findings


def findings() -> list[Finding]:
    """Find all inconsistencies, in the order of the checks.

    An erratum explains more than a check can. It replaces a finding of the checks with the same
    kind, row and place.
    """
    errata = errata_findings()
    found = [
        *check_cells(),
        *check_claims(),
        *check_repeated_settings(),
        *check_similar_rows(),
    ]
    unexplained = [finding for finding in found if not is_explained(finding, errata)]
    return unexplained + errata


def errata_findings() -> list[Finding]:
    """List the errata of papers/*.yaml and evidence/methods.yaml as findings."""
    errors = []
    for name in paper_names():
        errors += [erratum_finding(name, erratum) for erratum in paper(name).errata]
    for method in evidence.evidence_names().methods.values():
        owner = method.paper or method.title
        errors += [erratum_finding(owner, erratum) for erratum in method.errata]
    return errors


def erratum_finding(owner: str, erratum: Erratum) -> Finding:
    """Make a finding of an erratum.

    Args:
        owner: name of the paper in papers/, or the name that evidence/methods.yaml gives it.
    """
    places = [Place(owner, erratum.where)]
    places += [Place(*place) for place in erratum.also.items()]
    rows = (erratum.row,) if erratum.row else ()
    facts = ErratumFacts(erratum.row, erratum.text)
    return Finding(
        FindingKind(erratum.kind), Severity(erratum.severity), tuple(places), facts, rows
    )


def is_explained(finding: Finding, read: Sequence[Finding]) -> bool:
    """Whether an erratum is about the same kind, place and row as a finding of the checks."""
    for erratum in read:
        is_about_row = bool(set(erratum.rows) & set(finding.rows))
        is_about_place = erratum.places[0] in finding.places
        if erratum.kind == finding.kind and is_about_row and is_about_place:
            return True
    return False


def printed_rows() -> list[list[PrintedCell]]:
    """List the published values of every row of a table of scores."""
    rows = []
    for name, grid_name, grid, row in rows_with_scores():
        if not grid_name.startswith("table"):
            continue
        place = Place(name, grid_name)
        cells = []
        for column, value in zip(grid.columns, row.values, strict=True):
            if value is not None:
                cells.append(PrintedCell(place, grid, row, column, value))
        rows.append(cells)
    return rows


def severity_of_largest(differences: Iterable[tuple[float, float]]) -> Severity:
    """Rate differences by the largest, in units of its last printed digit.

    Args:
        differences: pairs of a difference and the unit of its last printed digit.
    """
    off, unit = max(differences, key=lambda pair: pair[0] / pair[1])
    return size_severity(off, unit)


def size_severity(off: float, unit: float) -> Severity:
    """Rate a value by how far it is off, in units of its last printed digit."""
    return Severity.MINOR if off <= LAST_DIGITS * unit + SLACK else Severity.NOTABLE


# ---------------------------------------------------------------- one cell


def check_cells() -> list[Finding]:
    """Check every cell by itself. A mistake in copies of one row is one finding."""
    found: dict[tuple, Finding] = {}
    for row in printed_rows():
        # copies of a row are known by their values, because their labels may differ
        values = tuple((cell.score, cell.value.text) for cell in row)
        for cell in row:
            for finding in (check_average(cell), check_share(cell)):
                if finding is None:
                    continue
                key = (finding.kind, values, cell.grid.columns.index(cell.column))
                first_copy = found.setdefault(key, finding)
                places = dict.fromkeys([*first_copy.places, *finding.places])
                found[key] = replace(first_copy, places=tuple(places))
    return list(found.values())


def check_average(cell: PrintedCell) -> Finding | None:
    """Check a printed average against the mean of its row, or a difference against its values.

    One unit of the last digit is allowed: half for the rounding of what is averaged, half for the
    rounding of the average.
    """
    index = cell.grid.columns.index(cell.column)  # also the number of columns before it
    before = [value.value for value in cell.row.values[:index] if value is not None]
    is_complete = index > 1 and len(before) == index
    if is_complete and averages_columns(cell.grid, cell.column, cell.grid.columns[:index]):
        mean = sum(before) / index
        facts = WrongAverage(cell.row.label, mean, cell.value, cell.grid.digits)
        return wrong_sum(cell, mean, facts)
    if cell.column.delta is not None:
        return check_difference(cell, cell.column.delta)
    return None


def averages_columns(grid: Grid, column: Column, before: list[Column]) -> bool:
    """Whether a column is the average of exactly the columns before it."""
    if column.mean:
        return True
    of_one_run = {(c.evaluator, c.size) for c in before} == {(column.evaluator, column.size)}
    all_tasks = tasks_of(grid.column_evaluator(column))
    return column.task == "Avg." and of_one_run and [c.task for c in before] == all_tasks


def check_difference(cell: PrintedCell, minuend: str) -> Finding | None:
    """Check a printed difference to the baseline row.

    Args:
        minuend: label of the column whose values are subtracted.
    """
    index = cell.grid.column(minuend)
    value = cell.row.values[index]
    baseline = cell.grid.rows[cell.grid.baseline_row].values[index]
    if value is None or baseline is None:
        return None
    facts = WrongDifference(cell.row.label, value, baseline, cell.value)
    return wrong_sum(cell, value.value - baseline.value, facts)


def wrong_sum(
    cell: PrintedCell, expected: float, facts: WrongAverage | WrongDifference
) -> Finding | None:
    """Make a finding of an average or difference that is off by more than rounding."""
    printed = cell.value
    off = abs(expected - printed.value)
    if off <= printed.unit + SLACK:
        return None
    severity = size_severity(off, printed.unit)
    return Finding(FindingKind.WRONG_SUM, severity, (cell.place,), facts, (cell.row.label,))


def check_share(cell: PrintedCell) -> Finding | None:
    """Check whether some count of correct items gives a printed accuracy or recall."""
    printed = cell.value
    items = item_count(cell)
    if items is None or printed.std is not None:
        return None
    factor = cell.grid.factor
    correct = printed.value / factor * items
    nearest = (floor(correct) / items * factor, ceil(correct) / items * factor)
    if any(abs(share - printed.value) <= printed.unit / 2 + SLACK for share in nearest):
        return None
    facts = ImpossibleValue(
        row=cell.row.label,
        column=cell.column.label,
        printed=printed,
        items=items,
        nearest=nearest,
        digits=cell.grid.digits,
        is_percentage=factor == 100,
    )
    return Finding(FindingKind.IMPOSSIBLE, Severity.MINOR, (cell.place,), facts, (cell.row.label,))


def item_count(cell: PrintedCell) -> int | None:
    """Look up the number of items in an accuracy or recall. None for other scores."""
    evaluator = cell.grid.column_evaluator(cell.column).partition(":")[0]
    declared = valid_evaluators().get(evaluator)
    if declared is None:
        return None
    return declared.counts.get(cell.column.task or "")


# ---------------------------------------------------------------- sentences


def check_claims() -> Iterator[Finding]:
    """Find sentences that the printed numbers contradict, or whose stated size is another one."""
    for name, claims in stated_quotes(DEFAULT_SCALE, paper_names()):
        finding = check_sentence(name, claims)
        if finding is not None:
            yield finding


def check_sentence(paper_name: str, claims: list[Claim]) -> Finding | None:
    """Check the claims of one sentence against the printed numbers."""
    wrong_claims = []
    wrong = []
    is_serious = False
    for claim in claims:
        judgement = judge_printed(paper_name, claim, DEFAULT_SCALE)
        has_other_size = judgement.is_misprinted
        if not judgement.outcome.goes_against and not has_other_size:
            continue
        assumed = judge_at_smaller_deviations(paper_name, claim, DEFAULT_SCALE)
        wrong_claims.append(claim)
        wrong.append(WrongClaim(judgement, verdicts_at_deviations(judgement, assumed)))
        is_significant = judgement.significance == Significance.YES
        if judgement.direction != Direction.AGREES and is_significant:
            is_serious = True
        # to exceed a limit is to oppose the claim, which the condition above covers
        if has_other_size and claim.less_than is None:
            is_serious = True
    if not wrong:
        return None
    places = [Place(paper_name, f"sec. {c.section} on {c.place}") for c in wrong_claims]
    return Finding(
        FindingKind.SENTENCE,
        Severity.SERIOUS if is_serious else Severity.NOTABLE,
        tuple(dict.fromkeys(places)),
        WrongSentence(claims[0].quote, tuple(wrong), len(claims)),
        tuple(claim.row for claim in wrong_claims),
    )


# ---------------------------------------------------------------- one setting in two tables


def check_repeated_settings() -> Iterator[Finding]:
    """Find settings whose scores differ between two tables of a paper.

    All scores of a setting make one finding.
    """
    by_setting: dict[PrintedSetting, dict[MeasuredScore, list[PrintedCell]]] = {}
    for cell in chain.from_iterable(printed_rows()):
        setting = cell.setting
        if setting is not None and cell.column.task is not None:
            by_setting.setdefault(setting, {}).setdefault(cell.score, []).append(cell)
    for by_score in by_setting.values():
        finding = check_setting(list(by_score.values()))
        if finding is not None:
            yield finding


def check_setting(cells_by_score: list[list[PrintedCell]]) -> Finding | None:
    """Check whether the tables of a paper agree on one setting.

    Args:
        cells_by_score: for each score of the setting, all cells that print it.
    """
    scores: list[RepeatedScore] = []
    differing: list[PrintedCell] = []
    differences = []  # each with the unit of its last printed digit
    for cells in cells_by_score:
        pairs = [pair for pair in combinations(cells, 2) if contradict(*pair)]
        if not pairs:
            continue
        for first, second in pairs:
            off = abs(first.value.value - second.value.value)
            differences.append((off, first.value.unit))
        cells_of_pairs = tuple(dict.fromkeys(chain.from_iterable(pairs)))
        scores.append(RepeatedScore(cells[0].column.label, cells_of_pairs))
        differing += cells_of_pairs
    if not scores:
        return None
    return Finding(
        FindingKind.INCONSISTENT,
        severity_of_largest(differences),
        tuple(sorted({cell.place for cell in differing})),
        InconsistentSetting(tuple(scores)),
        tuple(dict.fromkeys(cell.row.label for cell in differing)),
    )


def contradict(first: PrintedCell, second: PrintedCell) -> bool:
    """Whether two cells print different values of one setting in two tables.

    A copied value and a value of a re-run come from two runs, and may differ.
    """
    if first.place == second.place or first.number == second.number:
        return False
    return {first.row.source, second.row.source} != {"copied", "rerun"}


# ---------------------------------------------------------------- one row in several tables

CellsByScore = dict[MeasuredScore, PrintedCell]  # of one row


def check_similar_rows() -> Iterator[Finding]:
    """Find rows of several tables that are equal in most of their shared scores, but not in all.

    All copies of one row make one finding.
    """
    rows: list[CellsByScore] = []
    for cells in printed_rows():
        rows.append({cell.score: cell for cell in cells if cell.column.task is not None})

    # each row starts in a group of its own; groups are merged when two of their rows are copies
    groups = list(range(len(rows)))
    for first, second in combinations(range(len(rows)), 2):
        kept = groups[first]
        merged = groups[second]
        if kept != merged and are_copies(rows[first], rows[second]):
            groups = [kept if group == merged else group for group in groups]

    for group in sorted(set(groups)):
        members = [row for row, its_group in zip(rows, groups, strict=True) if its_group == group]
        finding = differing_copies(members)
        if finding is not None:
            yield finding


def are_copies(first: CellsByScore, second: CellsByScore) -> bool:
    """Whether rows of two tables share enough equal scores to be copies of one row.

    Rows with a setting in common do not count, because check_repeated_settings compares them.
    """
    shared = first.keys() & second.keys()
    equal = [score for score in shared if first[score].number == second[score].number]
    if len(shared) < MIN_SHARED or len(equal) < MIN_EQUAL * len(shared):
        return False
    places = {cell.place for cell in (*first.values(), *second.values())}
    if len(places) == 1:
        return False
    return settings_of(first).isdisjoint(settings_of(second))


def settings_of(row: CellsByScore) -> set[PrintedSetting]:
    """Collect the settings of a row's cells, as far as they are known."""
    settings = [cell.setting for cell in row.values()]
    return {setting for setting in settings if setting is not None}


def differing_copies(rows: list[CellsByScore]) -> Finding | None:
    """Make a finding of copies of one row, if they differ."""
    scores = []
    differences = []  # each with the unit of its last printed digit
    all_scores = dict.fromkeys(chain.from_iterable(rows))
    for score in all_scores:
        by_number: dict[tuple[float, float | None], list[PrintedCell]] = {}
        for row in rows:
            if score in row:
                by_number.setdefault(row[score].number, []).append(row[score])
        if len(by_number) < 2:
            continue
        cells_by_value = tuple(tuple(cells) for cells in by_number.values())
        scores.append(DifferingScore(score.task, score.size, cells_by_value))
        values = [value for value, _ in by_number]
        differences.append((max(values) - min(values), cells_by_value[0][0].value.unit))
    if not scores:
        return None
    first_cells = [next(iter(row.values())) for row in rows]
    labels = tuple(dict.fromkeys(cell.row.label for cell in first_cells))
    return Finding(
        FindingKind.NEAR_DUPLICATE,
        severity_of_largest(differences),
        tuple(dict.fromkeys(cell.place for cell in first_cells)),
        DifferingCopies(labels, tuple(scores)),
        labels,
    )
