"""From comparisons to verdicts: when a claim holds, is reversed, or a difference is shown; on a row and on a sentence.

Numbers in, verdicts out. Which cells are compared, and with which errors: csebench/report/claims.py. How often the
rules here are wrong is measured by benchmarks/judge.py.

Every p is that of one comparison by itself, two-sided, so that it is the same wherever the comparison is shown. A
claim that all of several comparisons go its way needs each of them to be significant, which takes no correction. That
one of several goes the other way, or that the largest of several is above zero, is tested with Bonferroni's
correction: p times their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from csebench.plan.papers import Claim, Published
from csebench.report import stats

HOLDS, WEAK = "holds", "holds but not significant"
UNTESTED = "holds, not tested: spread unknown"
EQUAL, DIFFERENT = "no difference shown", "difference shown"  # of a claim that rows are comparable, without a limit
REVERSED, WEAK_REVERSED = "reversed", "reversed, not significant"
UNTESTABLE = "not testable"
VERDICTS = (HOLDS, WEAK, UNTESTED, EQUAL, DIFFERENT, WEAK_REVERSED, REVERSED, UNTESTABLE)
CONTRARY = (REVERSED, WEAK_REVERSED, DIFFERENT)  # what a claim says is not so
SIZE_OFF = "size not as claimed"  # next to a verdict: the difference is not the number that the sentence states
SLACK = 1e-9  # rounding error of binary fractions


@dataclass(frozen=True)
class SeedSource:
    """Whose seeds the deviation of a single printed run comes from; `seeds` is None where none are published."""

    what: str  # task and metric
    encoder: str
    deviation: str = ""  # in printed units
    seeds: str | None = None  # `50 seeds of unsup-SimCSE, hppRC-simple-simcse`


@dataclass(frozen=True)
class Comparison:
    """One difference that a claim is about, in printed units."""

    versus: str  # label of the other row
    column: str
    difference: float  # positive where it agrees with the claim
    error: float | None = None  # its standard error, with `df` degrees of freedom; None where unknown
    df: float = inf
    p: float | None = None  # two-sided
    unit: float = 0.0  # of the last printed digit; 0 for runs of ours
    spreads: tuple[SeedSource, ...] = ()  # of single printed runs


@dataclass(frozen=True)
class Judgement:
    verdict: str
    detail: str
    stated: bool | None = None  # whether the difference has the size that the claim states; None where it states none
    contrary_p: float | None = None  # that what is contrary to the claim is chance, corrected for its comparisons
    notes: tuple[str, ...] = ()  # whose seeds it uses, what is missing

    @property
    def text(self) -> str:
        return "; ".join((self.detail, *self.notes))

    @property
    def verdict_and_size(self) -> str:
        """`holds`, or `holds, size not as claimed`."""
        return f"{self.verdict}, {SIZE_OFF}" if self.stated is False else self.verdict


def judge_row(
    claim: Claim, comparisons: Sequence[Comparison | None], digits: int, reason: str = "no numbers to compare"
) -> Judgement:
    """The verdict on the comparisons of one claim; None is a comparison that cannot be made.

    Args:
        digits: of differences in the detail.
        reason: why no comparison can be made, if none can.
    """
    made = [comparison for comparison in comparisons if comparison is not None]
    if not made:
        return Judgement(UNTESTABLE, reason)
    if claim.less_than is not None:
        judged = judge_limit(claim, claim.less_than, made, digits)
    else:
        rules = {"above": judge_above, "comparable": judge_comparable, "not worse": judge_not_worse}
        judged = rules[claim.relation](claim, made, digits)
    notes = spread_notes(made)
    verdict = judged.verdict
    if len(made) < len(comparisons):
        notes.append(f"{len(made)} of {len(comparisons)} comparisons can be made")
        verdict = verdict if verdict in CONTRARY else UNTESTABLE
    return replace(judged, verdict=verdict, notes=tuple(notes))


def judge_sentence(rows: Sequence[Judgement]) -> Judgement:
    """One verdict on a sentence that says something of several rows.

    It holds if it holds of every row; one row of which it is reversed reverses it. That is significant if the row's p,
    times the number of rows, is.
    """
    if len(rows) == 1:
        return rows[0]
    verdicts = [row.verdict for row in rows]
    contrary = [row for row in rows if row.verdict in CONTRARY]
    p = min((row.contrary_p for row in contrary if row.contrary_p is not None), default=None)
    p = None if p is None else min(1.0, p * len(rows))
    significant = p is not None and p < stats.LEVEL
    if any(row.verdict != DIFFERENT for row in contrary):
        verdict = REVERSED if significant else WEAK_REVERSED
    elif contrary and significant:
        verdict = DIFFERENT
    else:
        verdict = next(v for v in (UNTESTABLE, DIFFERENT, EQUAL, UNTESTED, WEAK, HOLDS) if v in verdicts)
        verdict = EQUAL if verdict == DIFFERENT else verdict  # of one row, but not of all that were looked at
    sizes = {row.stated for row in rows} - {None}
    counts = Counter(verdicts)
    detail = f"{len(rows)} rows: " + ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v])
    return Judgement(verdict, detail, all(sizes) if sizes else None, p)


# ---------------------------------------------------------------- the four relations


def judge_above(claim: Claim, comparisons: list[Comparison], digits: int) -> Judgement:
    """A row is above (or below) all others: every comparison goes its way, and each is significant."""
    stated = has_stated_size(claim, comparisons)
    tested = comparisons
    if claim.up_to is not None:  # the largest of several was picked
        tested = [max(comparisons, key=lambda c: c.difference)]
    against = [c for c in tested if c.difference < 0]
    if against:
        return judge_against(claim, tested, against, stated, digits)
    weakest = max(tested, key=lambda c: (-1.0 if c.p is None else c.p, -c.difference))
    if any(c.p is None for c in tested):
        weakest = min(tested, key=lambda c: c.difference)
        text = f"{describe(claim, weakest, digits)}; {no_test(weakest)}"
        verdict = UNTESTED if weakest.unit else UNTESTABLE
        return Judgement(verdict, of_all(len(comparisons), len(comparisons), text, "smallest", claim), stated)
    picked_from = len(comparisons) if claim.up_to is not None else 1
    verdict = HOLDS if (weakest.p or 0.0) * picked_from < stats.LEVEL else WEAK
    text = f"{describe(claim, weakest, digits)}, {p_text(weakest.p, picked_from)}"
    return Judgement(verdict, of_all(len(comparisons), len(comparisons), text, "weakest", claim), stated)


def judge_against(
    claim: Claim, tested: list[Comparison], against: list[Comparison], stated: bool | None, digits: int
) -> Judgement:
    """Some comparisons go the other way: reversed, if one of them is significant among all that were looked at."""
    worst = min(against, key=lambda c: (inf if c.p is None else c.p, c.difference))
    text = describe(claim, worst, digits)
    if worst.p is None:
        detail = of_all(len(tested) - len(against), len(tested), f"{text}; {no_test(worst)}", "against", claim)
        return Judgement(WEAK_REVERSED, detail, stated)
    p = min(1.0, worst.p * len(tested))
    verdict = REVERSED if p < stats.LEVEL else WEAK_REVERSED
    text = f"{text}, {p_text(worst.p, len(tested))}"
    return Judgement(verdict, of_all(len(tested) - len(against), len(tested), text, "against", claim), stated, p)


def judge_comparable(claim: Claim, comparisons: list[Comparison], digits: int) -> Judgement:
    """Rows are comparable, within no limit that the paper states: whether a difference is shown."""
    known = [c for c in comparisons if c.p is not None]
    if not known:
        largest = max(comparisons, key=lambda c: abs(c.difference))
        return Judgement(UNTESTABLE, f"no limit is stated; {describe(claim, largest, digits)}; {no_test(largest)}")
    clearest = min(known, key=lambda c: (c.p, -abs(c.difference)))
    p = min(1.0, (clearest.p or 0.0) * len(comparisons))
    text = f"no limit is stated; {describe(claim, clearest, digits)}, {p_text(clearest.p, len(comparisons))}"
    if p < stats.LEVEL:
        return Judgement(DIFFERENT, text, contrary_p=p)
    if len(known) < len(comparisons):
        return Judgement(UNTESTABLE, f"{text}; {no_test(next(c for c in comparisons if c.p is None))}")
    return Judgement(EQUAL, text)


def judge_not_worse(claim: Claim, comparisons: list[Comparison], digits: int) -> Judgement:
    """A row is on par or better, one-sided: reversed only where it is shown to be worse."""
    against = [c for c in comparisons if c.difference < 0]
    if not against:
        return judge_above(claim, comparisons, digits)
    judged = judge_against(claim, comparisons, against, None, digits)
    if judged.verdict == REVERSED:
        return judged
    verdict = EQUAL if all(c.p is not None for c in comparisons) else UNTESTABLE
    return Judgement(verdict, f"no limit is stated; {judged.detail}")


def judge_limit(claim: Claim, limit: Published, comparisons: list[Comparison], digits: int) -> Judgement:
    """Rows differ by less than a stated limit: a test against the limit, which the sentence may pass or fail.

    It holds by two one-sided tests (TOST). Each side is tested at half the level, as both verdicts are possible.
    """
    largest = max(comparisons, key=lambda c: abs(c.difference))
    excess = abs(largest.difference) - limit.value
    stated = excess < -SLACK
    text = describe(claim, largest, digits)
    if any(c.error is None for c in comparisons):
        detail = f"{text}; {no_test(next(c for c in comparisons if c.error is None))}"
        return Judgement((UNTESTED if largest.unit else UNTESTABLE) if stated else WEAK_REVERSED, detail, stated)
    if not stated:
        beyond = limit_p(excess, largest)
        p = min(1.0, beyond * len(comparisons))
        detail = f"{text}, {p_text(beyond, len(comparisons))} against the limit"
        return Judgement(REVERSED if p < stats.LEVEL else WEAK_REVERSED, detail, stated, p)
    p = max(limit_p(limit.value - abs(c.difference), c) for c in comparisons)
    return Judgement(HOLDS if p < stats.LEVEL else WEAK, f"{text}, p = {p:.2g} against the limit", stated)


def limit_p(distance: float, comparison: Comparison) -> float:
    """Two-sided p that a distance from a limit is chance."""
    if not comparison.error:
        return 0.0 if distance > SLACK else 1.0
    return min(1.0, 2 * stats.upper_tail(distance / comparison.error, comparison.df))


def has_stated_size(claim: Claim, comparisons: list[Comparison]) -> bool | None:
    """Whether the difference has the size that the claim states, up to rounding; None if it states none."""
    differences = [c.difference for c in comparisons]
    for stated, candidates in (
        (claim.by, differences),
        (claim.up_to, [max(differences)]),
        (claim.at_least, [min(differences)]),
    ):
        if stated is None:
            continue
        slack = stated.unit / 2 + max(c.unit for c in comparisons) + SLACK
        off = [d for d in candidates if abs(d - stated.value) > slack]
        if stated is claim.at_least:
            off = [d for d in off if d < stated.value]
        return not off
    return None


# ---------------------------------------------------------------- text


def describe(claim: Claim, comparison: Comparison, digits: int) -> str:
    """`+0.24 over SimCSE-BERTbase in Avg. (claimed: +2.60)`, or `0.40 below …`."""
    difference = -comparison.difference if claim.lower else comparison.difference
    size = f"{abs(difference):.{digits}f}"
    text = f"+{size} over" if difference >= 0 else f"{size} below"
    text = f"{'deviation ' if claim.statistic == 'std' else ''}{text} {comparison.versus} in {comparison.column}"
    return f"{text} (claimed: {size_text(claim)})" if size_text(claim) else text


def size_text(claim: Claim) -> str:
    """The size that a claim states: `+2.60`, `up to +15`, `less than 0.4`; empty where it states none."""
    for prefix, stated in (("", claim.by), ("up to ", claim.up_to), ("at least ", claim.at_least)):
        if stated is not None:
            return f"{prefix}{stated.text} below" if claim.lower else f"{prefix}+{stated.text}"
    return f"less than {claim.less_than.text}" if claim.less_than is not None else ""


def of_all(agreeing: int, count: int, text: str, which: str, claim: Claim) -> str:
    """`12 of 13 comparisons agree; against: …`; a single comparison, or a picked one, stands by itself."""
    if count == 1 or claim.up_to is not None:
        return text
    return f"{agreeing} of {count} comparisons agree; {which}: {text}"


def p_text(p: float | None, times: int = 1) -> str:
    """`p = 0.018`, or `p = 0.018 (× 4 comparisons)` where it is judged with Bonferroni's correction."""
    return f"p = {p:.2g}" + (f" (× {times} comparisons)" if times > 1 else "")


def no_test(comparison: Comparison) -> str:
    """Why a comparison has no p."""
    return "the spread is not known" if comparison.unit else "one seed"


def spread_notes(comparisons: list[Comparison]) -> list[str]:
    """Whose seeds stand behind single printed runs, by encoder, and of what nobody has published seeds."""
    sources = list(dict.fromkeys(source for comparison in comparisons for source in comparison.spreads))
    notes = []
    for seeds, encoder in dict.fromkeys((s.seeds, s.encoder) for s in sources if s.seeds is not None):
        deviations = sorted({s.deviation for s in sources if (s.seeds, s.encoder) == (seeds, encoder)}, key=float)
        spread = deviations[0] if len(deviations) == 1 else f"{deviations[0]} to {deviations[-1]}"
        notes.append(f"spread {spread} on {encoder} ({seeds})")
    if unknown := [s for s in sources if s.seeds is None]:
        scores, encoders = dict.fromkeys(s.what for s in unknown), dict.fromkeys(s.encoder for s in unknown)
        notes.append(f"nobody has published seeds of {', '.join(scores)} on {' or '.join(encoders)}")
    return notes
