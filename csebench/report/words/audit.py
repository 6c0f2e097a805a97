"""Sentences for findings of the audit: on its page, in its verb and in JSON.

The findings themselves are in csebench/report/numbers/audit.py.
"""

import re
from collections.abc import Iterable

from csebench.base.terminal import and_list
from csebench.plan.catalog.files import paper, paper_names
from csebench.plan.targets import grid_label, grid_names
from csebench.report.numbers.audit import (
    LAST_DIGITS,
    DifferingCopies,
    DifferingScore,
    ErratumFacts,
    Finding,
    FindingKind,
    ImpossibleValue,
    InconsistentSetting,
    Place,
    PrintedCell,
    RepeatedScore,
    Severity,
    WrongAverage,
    WrongDifference,
    WrongSentence,
)
from csebench.report.numbers.claims import ClaimOutcome
from csebench.report.words.claims import (
    detail_text,
    marked_if_it_depends,
    quoted,
    remark_on_outcome,
)

KIND_MEANINGS = {
    FindingKind.SENTENCE: (
        "the printed numbers go the other way, have another size than the sentence says, or are not"
        " significant where it says “significantly”"
    ),
    FindingKind.INCONSISTENT: "one setting has two values",
    FindingKind.NEAR_DUPLICATE: "rows of several tables are equal but for a few cells",
    FindingKind.WRONG_SUM: "an average or a difference is not that of its row",
    FindingKind.IMPOSSIBLE: (
        "no count of correct items gives this accuracy; it may be a mean of runs, rounded in its"
        " source, or a misprint"
    ),
    FindingKind.READING: "a person found it in the text, not a computation",
}
SEVERITY_MEANINGS = {
    Severity.SERIOUS: (
        "the numbers are significantly against a sentence, or differ from the size that it states"
        " (if it only states a limit, as “less than 0.4”, the finding is notable)"
    ),
    Severity.NOTABLE: "a sentence, a number or an equation does not fit",
    Severity.MINOR: (
        f"the difference is at most {LAST_DIGITS} units of the last digit, or may come from a mean"
        " of runs, or concerns only a label, a citation or a wording"
    ),
}


def in_reading_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings for a reader: the most severe first, then by kind, place and words."""
    severities = list(Severity)
    kinds = list(FindingKind)

    def rank(finding: Finding) -> tuple[int, int, tuple[Place, ...], str]:
        severity = severities.index(finding.severity)
        return severity, kinds.index(finding.kind), finding.places, finding_text(finding)

    return sorted(findings, key=rank)


def finding_text(finding: Finding) -> str:
    """Word a finding, by the kind of its facts."""
    match finding.facts:
        case WrongAverage() as facts:
            mean = f"{facts.mean:.{facts.digits + 1}f}"
            return f"{facts.row}: the columns average {mean}, printed is {facts.printed.text}"
        case WrongDifference() as facts:
            difference = f"{facts.value.text} - {facts.subtracted.text}"
            return f"{facts.row}: {difference} is not the printed {facts.printed.text}"
        case ImpossibleValue() as facts:
            return impossible_text(facts)
        case InconsistentSetting() as facts:
            return inconsistent_text(facts)
        case DifferingCopies() as facts:
            scores = "; ".join(differing_score_text(score) for score in facts.scores)
            return f"copies of one row ({', '.join(facts.labels)}) differ in {scores}"
        case WrongSentence() as facts:
            return sentence_text(facts)
        case ErratumFacts() as facts:
            return f"{facts.row}: {facts.text}" if facts.row else facts.text


def impossible_text(facts: ImpossibleValue) -> str:
    """Word a value that no count of items gives, with the nearest possible ones."""
    printed = facts.printed.text
    if facts.is_percentage:
        printed += " %"
    nearest = ", ".join(f"{share:.{facts.digits}f}" for share in facts.nearest)
    return (
        f"{facts.row}, {facts.column}: no run on {facts.items:,} items gives {printed};"
        f" nearest: {nearest}"
    )


def inconsistent_text(facts: InconsistentSetting) -> str:
    """Word the values of one setting, with each pattern of places once.

    `STS-B and SICK-R: 78.66 and 70.10 in Table 1 (Ours), but 78.70 and 70.20 in Table 4 (again)`
    """
    scores_by_places: dict[tuple[str, ...], list[RepeatedScore]] = {}
    for score in facts.scores:
        places = tuple(cells_text(cells) for cells in by_printed_value(score).values())
        scores_by_places.setdefault(places, []).append(score)
    texts = []
    for places, scores in scores_by_places.items():
        columns = and_list([score.column for score in scores])
        # for each group of places, the value of every score
        values = zip(*(by_printed_value(score) for score in scores), strict=True)
        groups = []
        for values_here, where in zip(values, places, strict=True):
            groups.append(f"{and_list(list(values_here))} in {where}")
        texts.append(f"{columns}: {', but '.join(groups)}")
    return "; ".join(texts)


def by_printed_value(score: RepeatedScore) -> dict[str, list[PrintedCell]]:
    """Group the cells of a score by what they print."""
    cells_by_value: dict[str, list[PrintedCell]] = {}
    for cell in score.cells:
        cells_by_value.setdefault(cell.value.text, []).append(cell)
    return cells_by_value


def cells_text(cells: Iterable[PrintedCell]) -> str:
    """Name the rows of cells, each with its tables: `Table 2 and Table 3 (SimCSE)`."""
    places_by_row: dict[str, list[str]] = {}
    for cell in cells:
        places_by_row.setdefault(cell.row.label, []).append(grid_label(cell.place.where))
    texts = []
    for row, places in places_by_row.items():
        texts.append(f"{and_list(places)} ({row})")
    return and_list(texts)


def differing_score_text(score: DifferingScore) -> str:
    """Word what copies print of a score: `STS-B: 78.66 in A Table 1, but 78.70 in B Table 2`."""
    values = []
    for cells in score.cells_by_value:
        places = and_list([place_label(cell.place) for cell in cells])
        values.append(f"{cells[0].value.text} in {places}")
    name = score.task if score.size == "100%" else f"{score.task} ({score.size})"
    return f"{name}: {', but '.join(values)}"


def sentence_text(facts: WrongSentence) -> str:
    """Word a sentence with the numbers that contradict it."""
    return f"{quoted(facts.quote)}: {'; '.join(contrary_numbers(facts))}"


def contrary_numbers(facts: WrongSentence) -> list[str]:
    """Word the numbers that contradict a sentence, a text for each of its wrong claims."""
    claims = [wrong.judgement.claim for wrong in facts.wrong]
    places = {claim.place for claim in claims if claim is not None}
    details = []
    for wrong, claim in zip(facts.wrong, claims, strict=True):
        detail = detail_text(wrong.judgement)
        if wrong.judgement.outcome == ClaimOutcome.UNPROVEN_SIGNIFICANCE:
            detail = f"{remark_on_outcome(wrong.judgement)}; {detail}"
        detail = marked_if_it_depends(detail, wrong.verdicts)
        if len(places) > 1 and claim is not None:
            detail = f"{grid_label(claim.place)}: {detail}"
        details.append(detail)
    return list(dict.fromkeys(details))


# ---------------------------------------------------------------- places


def place_label(place: Place) -> str:
    """Name a place with its paper: `miCSE Table 1`, `miCSE sec. 1 on Table 2`."""
    return f"{paper_label(place.paper)} {where_label(place)}"


def where_label(place: Place) -> str:
    """Name a place in its paper: `Table 2` for `table2`, `sec. 1 on Table 2` for a sentence."""
    names = grid_names(place.paper) if place.paper in paper_names() else []

    def label(word: re.Match) -> str:
        return grid_label(word[0]) if word[0] in names else word[0]

    return re.sub(r"\w+", label, place.where)


def paper_label(name: str) -> str:
    """Give the short name of a paper: `miCSE` for `micse`.

    The name of a paper that is not in papers/ stays as it is.
    """
    if name not in paper_names():
        return name
    return paper(name).label or name
