"""The words for a comparison, and how its numbers are rounded: the same on pages, in verbs, JSON and figures.

Bounds are rounded outward, so that what is said to be excluded is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil, floor

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
    row, against = short_label(c.row), short_label(c.against)
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
    """`Not matched: learning rate 3e-5 against 1e-4.`; empty where nothing else differs."""
    differs = ", ".join(f"{s.name} {s.here} against {s.there}" for s in comparison.differs)
    return f"Not matched: {differs}." if differs else ""


def family_sentence(answer: Answer) -> str:
    """What the comparisons of a family show together: which rows are better, which worse, what is excluded."""
    comparisons = answer.comparisons
    if len(comparisons) == 1:
        return " ".join(filter(None, [sentence(comparisons[0], answer.family.equality), not_matched(comparisons[0])]))
    parts = []
    for relation, verb in ((BETTER, "better"), (WORSE, "worse")):
        if rows := [c for c in comparisons if c.relation == relation]:
            parts.append(f"{verb}: {names(rows, comparisons)}")
    if unclear := [c for c in comparisons if c.relation == NOT_SHOWN]:
        bounds = sorted(
            max(-(c.family_low or 0), c.family_high or 0) if answer.family.equality else (c.family_high or 0)
            for c in unclear
        )
        what = "differences" if answer.family.equality else "gains"
        low, high = outward(max(bounds[0], 0)), outward(bounds[-1])
        above = f"above {low}" if low == high else f"above {low} to {high}"
        count = "nothing shown" if len(unclear) == len(comparisons) else f"not shown: {names(unclear, comparisons)}"
        parts.append(f"{count} ({what} {above} points are excluded)")
    for relation, verb in (
        (INACTIVE_HERE, f"changes nothing (within {INACTIVE:g} points)"),
        (SAME_RUNS, "the same runs as what they are compared with"),
        (ONE_SEED, "one seed, so that chance is not excluded"),
        (NOT_ASKED, "cannot be asked here"),
        (PARTIAL, "not all runs are scored"),
        (OUTDATED, "scores of older code"),
        (NOT_RUN, "not run here"),
    ):
        if rows := [c for c in comparisons if c.relation == relation]:
            parts.append(f"{verb}: {names(rows, comparisons)}")
    text = "; ".join(parts)
    unmatched = sum(bool(c.differs) for c in comparisons)
    if unmatched:
        text += f". Not matched: {'all' if unmatched == len(comparisons) else unmatched} of {len(comparisons)} pairs"
    return f"{text[:1].upper()}{text[1:]}."


def names(comparisons: Sequence[Comparison], of: Sequence[Comparison]) -> str:
    """What tells comparisons from the others of a family, while they are few: rows, or what one row is compared with;
    columns where not all of them are meant."""
    one_row = len({c.row for c in of}) == 1
    columns = {c.columns for c in of}
    by_name: dict[str, list[str]] = {}
    for c in comparisons:
        by_name.setdefault(f"against {short_label(c.against)}" if one_row else short_label(c.row), []).append(
            c.columns
        )
    if len(by_name) > MOST_NAMES:
        return f"{len(comparisons)} of {len(of)} comparisons"
    texts = [f"{name} ({', '.join(cols)})" if len(cols) < len(columns) else name for name, cols in by_name.items()]
    return ", ".join(texts)


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
