"""The words for a comparison, and how its numbers are rounded: the same on pages, in verbs, JSON
and figures. Bounds are rounded outward, so that what is said to be excluded is."""

import re
from collections.abc import Iterable, Sequence
from math import ceil, floor, inf

from csebench.plan.catalog.files import DEFAULT_SCALE
from csebench.report.numbers import compare
from csebench.report.numbers.compare import Answer, Comparison
from csebench.report.numbers.stats import SLACK

SMOKE = f"No answer: scale {DEFAULT_SCALE} only shows that the workflow runs."
MOST_ROWS = 6  # of rows that a sentence lists
MOST_SETTINGS = 3  # in which rows differ
VERBS = {  # of relations, in the order in which a family's sentence has them
    compare.BETTER: "better",
    compare.WORSE: "worse",
    compare.NOT_SHOWN: "no gain shown",
    compare.INACTIVE_HERE: f"changes nothing here (within {compare.INACTIVE:g} points)",
    compare.SAME_RUNS: "the same runs as what they are compared with",
    compare.ONE_SEED: "one seed, so that chance is not excluded",
    compare.NOT_ASKED: "cannot be asked here",
    compare.OTHER_DATA: "scored on other test data",
    compare.UNPAIRED: "not all runs have replicates over test items",
    compare.PARTIAL: "not all runs are scored",
    compare.OUTDATED: "scores of older code",
    compare.NOT_RUN: "not run here",
}
COMPARISON_HEAD = [
    "row",
    "against",
    "column",
    "difference",
    "95 % interval",
    "p",
    "seeds",
    "what else differs",
]


def sentence(comparison: Comparison, equality: bool = False) -> str:
    """The answer that a comparison gives by itself, without what is not matched: one sentence."""
    c = comparison
    row, against = short_label(c.row), short_label(c.against)
    without_estimate = {
        compare.SAME_RUNS: f"{row} and {against} are the same runs at this scale.",
        compare.NOT_ASKED: f"Cannot be asked here: {c.reason}.",
        compare.NOT_RUN: f"Not run here: {c.reason}.",
        compare.OTHER_DATA: f"Cannot be compared: {c.reason}.",
        compare.UNPAIRED: f"Cannot be compared: {c.reason}.",
        compare.OUTDATED: "No answer: the scores are of older code or of other settings.",
        compare.PARTIAL: f"No answer yet: {c.scored[0]} of {c.scored[1]} runs are scored.",
    }
    if c.estimate is None:
        return without_estimate[c.relation]
    gain, low, high = c.estimate.gain, c.low or 0.0, c.high or 0.0
    if c.relation == compare.ONE_SEED:
        side = "above" if gain >= 0 else "below"
        return (
            f"{row} scores {abs(gain):.2f} points {side} {against}, with one seed: chance is not"
            " excluded."
        )
    if c.relation == compare.INACTIVE_HERE:
        return f"{row} and {against} score the same here, within {compare.INACTIVE:g} points."
    if c.relation == compare.BETTER:
        return (
            f"{row} beats {against} here, by {outward(low, is_lower=True)} to {outward(high)}"
            " points."
        )
    if c.relation == compare.WORSE:
        return (
            f"{row} is worse than {against} here, by {outward(-high, is_lower=True)} to"
            f" {outward(-low)} points."
        )
    if equality:
        bound = f"more than {outward(max(-low, high))} points is excluded"
        return f"{row} is not shown to differ from {against} here ({gain:+.2f}); {bound}."
    return f"{row} is not shown to beat {against} here ({gain:+.2f}); {excluded(high)}."


def excluded(high: float, gains: str = "a gain above {} points is excluded") -> str:
    """`a gain above 0.5 points is excluded`, or that any gain is."""
    return "any gain is excluded" if high <= 0 else gains.format(outward(high))


def not_matched(comparisons: Iterable[Comparison]) -> str:
    """`Not matched: learning rate 3e-5 against 1e-4.`; empty where nothing else differs, or
    nothing is compared."""
    tested = [c for c in comparisons if c.estimate]
    texts = [setting.text for c in tested for setting in c.differs]
    count = f" in {sum(bool(c.differs) for c in tested)} of {len(tested)} comparisons"
    where = count if len({c.differs for c in tested}) > 1 else ""
    return f"Not matched{where}: {differences_text(texts)}." if texts else ""


def differences_text(texts: Sequence[str]) -> str:
    """`learning rate 3e-5 against 1e-4`; of many the first."""
    first, more = [*dict.fromkeys(texts)][:MOST_SETTINGS], len({*texts}) - MOST_SETTINGS
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def family_sentence(answer: Answer) -> str:
    """What a family shows, but for what is not matched: which rows are better or worse, what is
    excluded at once."""
    comparisons, equality = answer.comparisons, answer.family.equality
    if len(comparisons) == 1:
        return sentence(comparisons[0], equality)
    run = [c for c in comparisons if c.relation != compare.NOT_RUN]
    relations = [relation for relation in VERBS if any(c.relation == relation for c in comparisons)]
    parts = (
        [f"better: none of {len(run)}"] if relations[0] == compare.WORSE and not equality else []
    )
    for relation in relations:
        rows, verb = [c for c in comparisons if c.relation == relation], VERBS[relation]
        if relation == compare.NOT_SHOWN and equality:
            verb = "no difference shown"
        if len(rows) < len(comparisons) or relation in (compare.BETTER, compare.WORSE):
            verb += distinguishing_names(rows, comparisons if relation == compare.NOT_RUN else run)
        elif reasons := dict.fromkeys(c.reason for c in rows if c.reason):
            verb += f": {', '.join(reasons)}"
        if relation == compare.NOT_SHOWN:  # estimates, and what is excluded in each at once
            gains = [c.estimate.gain for c in rows if c.estimate]
            ends = dict.fromkeys(f"{gain:+.2f}" for gain in (min(gains), max(gains)))
            highest = max(
                max(-(c.family_low or 0) if equality else -inf, c.family_high or 0) for c in rows
            )
            bound = (
                "differences above {} points are excluded"
                if equality
                else "gains above {} points are excluded"
            )
            verb += f" ({' to '.join(ends)}; {excluded(highest, bound)})"
        parts.append(verb)
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def distinguishing_names(comparisons: Sequence[Comparison], family: Sequence[Comparison]) -> str:
    """What tells a few comparisons from the others, after a word: rows, what one row is compared
    with, or columns."""
    rows, bases, columns = (
        {getattr(c, key) for c in family} for key in ("row", "against", "columns")
    )
    by_name: dict[str, list[str]] = {}
    for c in comparisons:
        row, against = short_label(c.row), short_label(c.against)
        name = against if len(rows) == 1 else row
        if len(rows) > 1 and len(bases) > 1 and against not in row:
            name = f"{row} against {against}"
        by_name.setdefault(name, []).append(c.columns)
    word, listed = (
        ":",
        [
            f"{n} ({', '.join(cols)})" if len(cols) < len(columns) else n
            for n, cols in by_name.items()
        ],
    )
    if len(rows) == len(bases) == 1 < len(columns):
        word, listed = " in", [c.columns for c in comparisons]
    elif len(rows) == 1:
        word = " than" if comparisons[0].relation in (compare.BETTER, compare.WORSE) else " against"
    few = len(listed) <= MOST_ROWS and all(
        len(cols) < 4 or len(cols) == len(columns) for cols in by_name.values()
    )
    return f"{word} {', '.join(listed)}" if few else f": {len(comparisons)} of {len(family)}"


def comparison_row(comparison: Comparison) -> list[str]:
    """A line of the table of declared comparisons, as under COMPARISON_HEAD."""
    c = comparison
    if c.estimate is None:
        return [c.row, c.against, c.columns, "–", "–", "–", "–", c.reason or c.relation]
    low, high = c.family_low, c.family_high
    interval = "–" if low is None or high is None else outward_range(low, high, "+")
    p = "–" if c.p_family is None else f"{c.p_family:.2g}"
    settings = ", ".join(setting.text for setting in c.differs) or "–"
    return [
        c.row,
        c.against,
        c.columns,
        f"{c.estimate.gain:+.2f}",
        interval,
        p,
        str(c.estimate.seeds),
        settings,
    ]


def outward_range(low: float, high: float, sign: str = "") -> str:
    """`74.16 to 75.15`, with two decimals, rounded outward; with the sign `+`, `-0.21 to +0.15`."""
    return (
        f"{floor(100 * low + SLACK) / 100:{sign}z.2f} to"
        f" {ceil(100 * high - SLACK) / 100:{sign}z.2f}"
    )


def outward(bound: float, is_lower: bool = False) -> str:
    """A bound rounded up, a lower one down: one decimal, two below 0.2."""
    digits = 2 if abs(bound) < 0.2 else 1
    whole = floor(bound * 10**digits + SLACK) if is_lower else ceil(bound * 10**digits - SLACK)
    return f"{whole / 10**digits:z.{digits}f}"


def ends_text(counts: Iterable[int]) -> str:
    """`1 to 3`, `3`, `no`: the lowest and the highest of numbers of seeds."""
    known = sorted({*counts} - {0})
    return " to ".join(map(str, dict.fromkeys((known[0], known[-1])))) if known else "no"


def short_label(label: str) -> str:
    """A row's name without the citation that papers print behind it: `SimCSE` for `SimCSE (Gao
    et al., 2021)`."""
    name, _, behind = label.rpartition(" (")
    return name if "et al" in behind or re.search(r"\b(19|20)\d\d[a-z]?\)$", behind) else label
