"""The words for a comparison, and how its numbers are rounded: the same on pages, in verbs, JSON and figures.

Bounds are rounded outward, so that what is said to be excluded is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil, floor, inf

from csebench.plan.catalog import DEFAULT_SCALE
from csebench.report.compare import (
    BETTER,
    INACTIVE,
    INACTIVE_HERE,
    NOT_ASKED,
    NOT_RUN,
    NOT_SHOWN,
    ONE_SEED,
    OUTDATED,
    PARTIAL,
    SAME_RUNS,
    WORSE,
    Answer,
    Comparison,
)

SMOKE = f"No answer: scale {DEFAULT_SCALE} only shows that the workflow runs."
MOST_NAMES = 4  # of rows that a sentence lists


def sentence(comparison: Comparison, equality: bool = False) -> str:
    """The answer that a comparison gives, without what is not matched: one sentence."""
    c = comparison
    row, against = subject(c.row), subject(c.against)
    row = f"{row[:1].upper()}{row[1:]}" if row.startswith("setting") else row
    if c.relation == SAME_RUNS:
        return f"{row} and {against} are the same runs at this scale."
    if c.relation == NOT_ASKED:
        return f"Cannot be asked here: {c.reason}."
    if c.relation == NOT_RUN:
        return f"Nothing is run here: {c.reason}."
    if c.relation == OUTDATED:
        return "No answer: the scores are of older code."
    if c.relation == PARTIAL:
        return f"No answer yet: {c.scored[0]} of {c.scored[1]} runs are scored."
    assert c.estimate is not None
    if c.relation == ONE_SEED:
        side = "above" if c.estimate.gain >= 0 else "below"
        gain = f"{abs(c.estimate.gain):.2f}"
        return f"{row} scores {gain} points {side} {against}, with one seed: chance is not excluded."
    if c.relation == INACTIVE_HERE:
        return f"{row} changes nothing here: it stays within {INACTIVE:g} points of {against}."
    if c.relation == BETTER:
        return f"{row} beats {against} here, by {span(c.low, c.high)} points."
    if c.relation == WORSE:
        return f"{row} is worse than {against} here, by {span(-(c.high or 0), -(c.low or 0))} points."
    if equality:
        bound = outward(max(-(c.family_low or 0), c.family_high or 0))
        return f"{row} is not shown to differ from {against} here; more than {bound} points is excluded."
    return f"{row} is not shown to beat {against} here; {excluded(c)}."


def excluded(comparison: Comparison) -> str:
    """`a gain above 0.5 points is excluded`, or that any gain is."""
    high = comparison.family_high or 0.0
    return "any gain is excluded" if high <= 0 else f"a gain above {outward(high)} points is excluded"


def not_matched(comparison: Comparison) -> str:
    """`Not matched: learning rate 3e-5 against 1e-4.`; empty where nothing else differs, or nothing is compared."""
    differs = ", ".join(f"{s.name} {s.here} against {s.there}" for s in comparison.differs)
    return f"Not matched: {differs}." if differs and comparison.estimate else ""


def family_sentence(answer: Answer) -> str:
    """What the comparisons of a family show together: which rows are better, which worse, what is excluded."""
    comparisons, equality = answer.comparisons, answer.family.equality
    if len(comparisons) == 1:
        return " ".join(filter(None, [sentence(comparisons[0], equality), not_matched(comparisons[0])]))
    parts, run = [], [c for c in comparisons if c.relation != NOT_RUN]
    for relation, verb in VERBS.items():
        rows = [c for c in comparisons if c.relation == relation]
        if not rows:
            continue
        if len(rows) < len(comparisons) or relation in (BETTER, WORSE):
            verb += names(rows, comparisons if relation == NOT_RUN else run)
        elif relation == NOT_SHOWN:
            verb = "nothing shown"
        else:
            reasons = dict.fromkeys(c.reason for c in rows if c.reason)
            verb += f": {', '.join(reasons)}" if reasons else f" in {count_of(rows)}"
        parts.append(verb + (f" ({family_bound(rows, equality)})" if relation == NOT_SHOWN else ""))
    tested = [c for c in comparisons if c.estimate]
    if unmatched := [c for c in tested if c.differs]:
        count = count_of(tested) if len(unmatched) == len(tested) else f"{len(unmatched)} of {count_of(tested, False)}"
        settings = dict.fromkeys(setting.name for c in unmatched for setting in c.differs)
        parts[-1] += f". Not matched in {count}: {', '.join(settings)}"
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


VERBS = {  # of relations, in the order in which a family's sentence has them
    BETTER: "better",
    WORSE: "worse",
    NOT_SHOWN: "not shown",
    INACTIVE_HERE: f"changes nothing here (within {INACTIVE:g} points)",
    SAME_RUNS: "the same runs as what they are compared with",
    ONE_SEED: "one seed, so that chance is not excluded",
    NOT_ASKED: "cannot be asked here",
    PARTIAL: "not all runs are scored",
    OUTDATED: "scores of older code",
    NOT_RUN: "not run here",
}


def count_of(comparisons: Sequence[Comparison], all_of_them: bool = True) -> str:
    """`all 4 comparisons`"""
    number = len(comparisons)
    return "both comparisons" if all_of_them and number == 2 else f"{'all ' * all_of_them}{number} comparisons"


def family_bound(comparisons: Sequence[Comparison], equality: bool) -> str:
    """What is excluded in each of several comparisons."""
    highest = max(max(-(c.family_low or 0) if equality else -inf, c.family_high or 0) for c in comparisons)
    if highest <= 0:
        return "any gain is excluded"
    return f"{'differences' if equality else 'gains'} above {outward(highest)} points are excluded"


def names(comparisons: Sequence[Comparison], family: Sequence[Comparison]) -> str:
    """What tells comparisons from the others of a family, while they are few, with the word before it: rows, what one
    row is compared with, or columns."""
    rows, bases, columns = ({getattr(c, key) for c in family} for key in ("row", "against", "columns"))
    by_name: dict[str, list[str]] = {}
    for c in comparisons:
        row, against = short_label(c.row), short_label(c.against)
        name = against if len(rows) == 1 else row
        if len(rows) > 1 and len(bases) > 1 and against not in row:
            name = f"{row} against {against}"
        by_name.setdefault(name, []).append(c.columns)
    word, listed = ":", [f"{n} ({', '.join(cols)})" if len(cols) < len(columns) else n for n, cols in by_name.items()]
    if len(rows) == len(bases) == 1 < len(columns):
        word, listed = " in", [c.columns for c in comparisons]
    elif len(rows) == 1:
        word = " than" if comparisons[0].relation in (BETTER, WORSE) else " against"
    few = len(listed) <= MOST_NAMES and all(len(cols) < 4 or len(cols) == len(columns) for cols in by_name.values())
    return f"{word} {', '.join(listed)}" if few else f": {len(comparisons)} of {len(family)}"


def comparison_row(comparison: Comparison) -> list[str]:
    """A line of the table of declared comparisons, as under COMPARISON_HEAD."""
    c = comparison
    if c.estimate is None:
        return [c.row, c.against, c.columns, "–", "–", "–", "–", c.reason or c.relation]
    interval = "–" if c.low is None or c.high is None else f"{c.low:+.2f} to {c.high:+.2f}"
    p = "–" if c.p_family is None else f"{c.p_family:.2g}"
    settings = ", ".join(f"{s.name} {s.here} against {s.there}" for s in c.differs) or "–"
    return [c.row, c.against, c.columns, f"{c.estimate.gain:+.2f}", interval, p, str(c.estimate.seeds), settings]


COMPARISON_HEAD = ["row", "against", "column", "difference", "95 % interval", "p", "seeds", "what else differs"]


def span(low: float | None, high: float | None) -> str:
    """`0.07 to 1.1`: the ends of an interval of sizes, rounded outward."""
    return f"{inward(max(low or 0, 0))} to {outward(high or 0)}"


def outward(bound: float) -> str:
    """A bound rounded up: one decimal, two below 0.2."""
    digits = 2 if abs(bound) < 0.2 else 1
    return f"{ceil(bound * 10**digits - 1e-9) / 10**digits:z.{digits}f}"


def inward(bound: float) -> str:
    """A lower bound rounded down."""
    digits = 2 if abs(bound) < 0.2 else 1
    return f"{floor(bound * 10**digits + 1e-9) / 10**digits:z.{digits}f}"


def short_label(label: str) -> str:
    """A row's name without the citation that papers print behind it: `SimCSE` for `SimCSE (Gao et al., 2021)`."""
    name, _, behind = label.rpartition(" (")
    return name if "et al" in behind or re.search(r"\b(19|20)\d\d[a-z]?\)$", behind) else label


def subject(label: str) -> str:
    """A row as the subject of a sentence: `setting 0.04` for a row that is called by its number."""
    short = short_label(label)
    return f"setting {short}" if re.fullmatch(r"[\d.e%+-]+", short) else short
