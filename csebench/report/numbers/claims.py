"""What papers conclude from their tables, judged on the printed numbers and on our runs.

A claim is data (csebench/plan/schema/paper.py). It becomes contrasts of two rows each; these give a
judgement, which keeps direction, test and size apart; claims with one quote are rows of one
sentence. Error rates: benchmarks/judge.py.

Every p is that of one contrast by itself, two-sided. That all of several contrasts go the claim's
way needs each of them to be significant, and no correction; that one of several does is tested with
Bonferroni's correction.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, sqrt

import numpy as np

from csebench.base.caches import cached, cached_by_folder
from csebench.plan.catalog.files import paper
from csebench.plan.schema.paper import Claim, Published
from csebench.plan.targets import grid_defect
from csebench.report.numbers import compare, stats
from csebench.report.numbers.cells import PAPER_SCALE, Cell, GridView, grid_view, printed_view
from csebench.report.numbers.printed_spread import add, row_variance
from csebench.report.numbers.stats import SLACK, Summary
from csebench.report.words.comparisons import (
    VERBS,
    differences_text,
    outward,
    reason_text,
    setting_difference_text,
)

SUPPORTED, NOT_SHOWN, CONTRADICTED, UNTESTABLE = (
    "supported",
    "not shown",
    "contradicted",
    "not testable",
)
VERDICTS = (SUPPORTED, NOT_SHOWN, CONTRADICTED, UNTESTABLE)
AGREES, OPPOSES, MIXED = "agrees", "opposes", "mixed"
YES, NO, UNTESTED = "yes", "no", "untested"
AS_STATED, OTHER, NO_SIZE = "as stated", "other", "none"
SEEN, NOT_SEEN, OPPOSITE = "seen here", "not seen", "the opposite is seen here"
UNASKED = VERBS[compare.Relation.NOT_ASKED]
NO_NUMBERS = "no numbers to compare"
CellPairs = list[
    tuple[Cell, Cell]
]  # of one difference; their mean, where a claim is about an average
# many claims are about one table
_our_view, _printed_view = cached_by_folder(grid_view), cached(printed_view)


@dataclass(frozen=True)
class Contrast:
    """One difference that a claim is about, in printed units."""

    versus: str  # label of the other row
    column: str
    difference: float  # positive where it agrees with a claim that a row is above
    # its standard error, with `df` degrees of freedom; None where unknown
    error: float | None = None
    df: float = inf
    p: float | None = None  # two-sided
    unit: float = 0.0  # of the last printed digit; 0 for runs of ours
    # shared settings in which our rows differ beside what the claim is about
    differs: tuple[str, ...] = ()
    over_seeds_only: bool = False  # of ours, though the evaluator declares items

    def half(self, times: int) -> float:
        """Half the width of the 95 % interval, which holds for as many contrasts at once."""
        return (
            inf
            if self.error is None
            else self.error * stats.quantile(1 - stats.LEVEL / times, self.df)
        )


@dataclass(frozen=True)
class Judgement:
    """What contrasts say of a claim, or rows of a sentence."""

    direction: str | None  # whether the numbers go the claim's way; None: nothing can be said
    shown: str  # whether a test rules out chance for that direction
    size: str  # whether the difference has the size that the claim states
    detail: str
    # that what is contrary to the claim is chance, corrected for its contrasts
    contrary_p: float | None = None
    # the largest difference that goes the other way, in printed units
    contrary: float | None = None
    notes: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()  # shared settings in which our rows differ
    # the difference above which 95 % exclude the claim; of a sentence that of one claim only
    excludes: float = inf
    # whether an opposite direction contradicts by itself, as in print, or has to be shown
    strict: bool = True
    claims_significance: bool = False
    contrasts: tuple[Contrast, ...] = ()  # the numbers behind it

    @property
    def verdict(self) -> str:
        """One of VERDICTS: a direction without a test is no support; claimed but absent
        significance contradicts."""
        if self.direction is None or (self.direction == AGREES and self.shown == UNTESTED):
            return UNTESTABLE
        if self.direction != AGREES:
            return CONTRADICTED if self.strict or self.shown == YES else NOT_SHOWN
        if self.shown == YES:
            return SUPPORTED
        return CONTRADICTED if self.claims_significance and self.strict else NOT_SHOWN

    @property
    def verdict_and_size(self) -> str:
        """`supported, of another size`; `contradicted, by 0.02 (not significant)`."""
        text = self.verdict
        if text == CONTRADICTED and self.contrary is not None:
            text += (
                f", by {self.contrary:.3g}" if self.contrary > SLACK else ", by less than rounding"
            )
            text += (
                ""
                if self.shown == YES
                else " (not significant)"
                if self.shown == NO
                else " (not tested)"
            )
        elif text == CONTRADICTED and self.direction == AGREES:
            text += ", as not significant"
        return f"{text}, of another size" if self.size == OTHER else text

    @property
    def seen(self) -> str:
        """What a study on another encoder saw; it never contradicts a paper's sentence."""
        if self.direction is None or self.shown == UNTESTED:
            return UNASKED
        return NOT_SEEN if self.shown != YES else SEEN if self.direction == AGREES else OPPOSITE

    @property
    def text(self) -> str:
        """The verdict in italics, and the numbers."""
        return f"*{self.verdict_and_size}*: {'; '.join((self.detail, *self.notes))}"


@dataclass(frozen=True)
class Judged:
    """A claim, or a sentence over the claims with its quote, on the printed numbers and on ours."""

    paper: str
    scale: str
    claims: list[Claim]
    published: Judgement
    ours: Judgement
    rows: list["Judged"]  # a sentence's claims, one by one

    @property
    def here(self) -> str:
        """What our runs say, with the numbers."""
        ours, seen, limit, bound = self.ours, self.ours.seen, self.ours.excludes, ""
        if self.scale == PAPER_SCALE:
            return ours.text
        detail = parts_text(row.ours.seen for row in self.rows) if self.rows[1:] else ours.detail
        if seen == UNASKED:
            return f"{seen}: {'; '.join((detail, *ours.notes))}"
        if seen == NOT_SEEN and limit < inf:
            bound = (
                "; any such difference is excluded"
                if limit <= 0
                else f"; above {outward(limit)} is excluded"
            )
        unmatched = f"; not matched: {differences_text(ours.differs)}" if ours.differs else ""
        return f"*{seen}*: {detail}{bound}{unmatched}"

    @property
    def places(self) -> list[str]:
        """Tables and figures that it is about."""
        return list(dict.fromkeys(claim.place for claim in self.claims))


def judge_all(scale: str, paper_names: Iterable[str], place: str | None = None) -> list[Judged]:
    """Every sentence of papers, or of a table or figure, on the printed numbers and ours; none
    about a broken one."""
    return [
        judge_quote(name, of[0].quote, scale)
        for name, of in stated_quotes(scale, paper_names, place)
    ]


def stated_quotes(
    scale: str, paper_names: Iterable[str], place: str | None = None
) -> list[tuple[str, list[Claim]]]:
    """(paper, claims of a sentence) of papers, or of a table or figure; without those about one
    that is broken."""
    stated = [
        (name, of_quote)
        for name in paper_names
        for of_quote in paper(name).claims_by_quote().values()
    ]
    about = [of for of in stated if any(place in (None, claim.place) for claim in of[1])]
    return [
        of
        for of in about
        if not any(grid_defect(of[0], p, scale) for claim in of[1] for p in claim.places)
    ]


@cached_by_folder
def judge_quote(paper_name: str, quote: str, scale: str) -> Judged:
    """A sentence of a paper: one verdict over the rows that it is about."""
    claims = paper(paper_name).claims_by_quote()[quote]
    rows = [judge(paper_name, claim, scale) for claim in claims]
    published, ours = (
        judge_sentence([row.published for row in rows]),
        judge_sentence([row.ours for row in rows]),
    )
    return Judged(paper_name, scale, claims, published, ours, rows)


def judge(paper_name: str, claim: Claim, scale: str) -> Judged:
    """A claim by itself."""
    published, ours = (
        judge_numbers(paper_name, claim, scale, printed) for printed in (True, False)
    )
    return Judged(paper_name, scale, [claim], published, ours, [])


def judge_numbers(paper_name: str, claim: Claim, scale: str, printed: bool) -> Judgement:
    """A claim on our runs, or on the printed numbers alone: no score is read then, and every
    scale gives the same."""
    view, contrast = (_printed_view, contrast_printed) if printed else (_our_view, contrast_runs)
    here, there = (view(paper_name, claim.places[index], scale) for index in (0, -1))
    digits = max(here.column(label)[0].digits for label in claim.columns)
    contrasts = [contrast(claim, here, *pairing) for pairing in pair_cells(claim, here, there)]
    if printed and claim.versus == "others":  # papers leave some cells of a row empty
        contrasts = [one for one in contrasts if not isinstance(one, str)]
    return replace(judge_row(claim, contrasts, digits), strict=printed)


def pair_cells(claim: Claim, here: GridView, there: GridView) -> list[tuple[str, str, CellPairs]]:
    """(other row, column, pairs of cells) of every contrast; with `on_average`, one contrast has
    all columns."""
    here_grid, there_grid = here.score_grid, there.score_grid
    row, pairings = here.rows[here_grid.row(claim.row)], []
    for index in claim.versus_rows(there_grid, here is there):
        other, cells = there_grid.rows[index], there.rows[index]
        pairs = [
            (row[here_grid.column(c)], cells[there_grid.column(claim.versus_column or c)])
            for c in claim.columns
        ]
        label = f"{other.label} ({claim.versus_column})" if claim.versus_column else other.label
        if claim.on_average:
            pairings.append((label, "average", pairs))
        else:
            pairings += [
                (label, column, [pair]) for column, pair in zip(claim.columns, pairs, strict=True)
            ]
    return pairings


def contrast_printed(
    claim: Claim, here: GridView, versus: str, column: str, pairs: CellPairs
) -> Contrast | str:
    """Of printed numbers; or why there is none."""
    printed = [cell.published for pair in pairs for cell in pair if cell.published is not None]
    if len(printed) < 2 * len(pairs):
        return NO_NUMBERS
    sign, unit = (-1 if claim.lower else 1), max(value.unit for value in printed)
    if claim.statistic == "std":
        sides = [
            Summary(v.value, v.std, cell.published_seeds)
            for v, cell in zip(printed, pairs[0], strict=True)
        ]
        return contrast_deviations(versus, column, sign, sides, unit) or NO_NUMBERS
    difference = sign * float(
        np.mean([a.value - b.value for a, b in zip(printed[::2], printed[1::2], strict=True)])
    )
    # two differences to one baseline differ as their minuends do: the baseline cancels
    varying = []
    for a, b in pairs:
        cancels = (
            a.plan.column.delta
            and b.plan.column.delta
            and a.parts
            and b.parts
            and a.parts[1] is b.parts[1]
        )
        varying.append((a.parts[0], b.parts[0]) if cancels else (a, b))
    variance = add([row_variance(row) for row in zip(*varying, strict=True)])
    if variance is None:
        return Contrast(versus, column, difference, unit=unit)
    p = stats.two_sided(difference, variance)
    return Contrast(versus, column, difference, sqrt(variance[0]), variance[1], p, unit)


def contrast_runs(
    claim: Claim, here: GridView, versus: str, column: str, pairs: CellPairs
) -> Contrast | str:
    """Of our runs, paired by seed, over seeds and test items; or why there is none."""
    cells = [cell for pair in pairs for cell in pair]
    if refusal := compare.why_not(pairs):
        if refusal.relation == compare.Relation.SAME_RUNS:
            return "both rows are the same runs at this scale"
        return reason_text(refusal.reason) or refusal.relation
    if any(cell.is_control for cell in cells):
        return "a row is a control"
    if not_standard := [cell.plan.row.label for cell in cells if not cell.is_standard]:
        return f"the test data of {not_standard[0]} is not known to be the standard set"
    if any(differ_in_size_unseen(*pair) for pair in pairs):
        return "runs see fewer sentences than either column has"
    sign = -1 if claim.lower else 1
    if claim.statistic == "std":
        return (
            contrast_deviations(versus, column, sign, [c.ours for c in cells if c.ours], 0.0)
            or "one seed"
        )
    terms = [
        (s * sign / len(pairs), cell)
        for pair in pairs
        for s, cell in zip((1, -1), pair, strict=True)
    ]
    estimate = compare.estimate_of(terms, here.scale)
    if estimate.is_within(SLACK):
        return reason_text(compare.EqualScores())
    if estimate.is_within(compare.INACTIVE * pairs[0][0].factor / 100):
        return f"the difference stays within {compare.INACTIVE:g} points"
    (error, df), p = estimate.error(), estimate.p()
    sizes = {"sentences"} if claim.versus_column else set()  # what the claim itself compares
    differs = tuple(
        setting_difference_text(setting)
        for setting in compare.setting_differences(*pairs[0])
        if setting.name not in sizes
    )
    known_error = None if p is None else error
    only = compare.is_over_seeds_only(estimate, pairs)
    return Contrast(
        versus, column, estimate.gain, known_error, df, p, differs=differs, over_seeds_only=only
    )


def differ_in_size_unseen(a: Cell, b: Cell) -> bool:
    """Whether two cells have corpora of different sizes, and none of their runs sees as many
    sentences as either."""
    specs = [[spec for leaf in cell.leaves for spec in leaf.plan.specs] for cell in (a, b)]
    size1, size2 = ({spec.corpus.size for spec in of_cell if spec.corpus} for of_cell in specs)
    if not size1 or not size2 or size1 == size2:
        return False
    params = [spec.params for spec in chain(*specs)]
    return max(float(p.get("steps", inf)) * float(p.get("batch_size", 1)) for p in params) <= min(
        size1 | size2
    )


def contrast_deviations(
    versus: str, column: str, sign: int, sides: list[Summary], unit: float
) -> Contrast | None:
    """Of two deviations, by the two-sided F test; None where one is not known."""
    from scipy.special import fdtrc

    a, b = sides
    if a.std is None or b.std is None:
        return None
    tested = a.std and b.std and min(a.n, b.n) > 1
    upper = float(fdtrc(a.n - 1, b.n - 1, (a.std / b.std) ** 2)) if tested else None
    p = None if upper is None else 2 * min(upper, 1 - upper)
    return Contrast(versus, column, sign * (a.std - b.std), p=p, unit=unit)


def judge_row(claim: Claim, contrasts: Sequence[Contrast | str], digits: int) -> Judgement:
    """The judgement on the contrasts of one claim, with `digits` in its numbers; a text is why
    one cannot be made."""
    made = tuple(c for c in contrasts if isinstance(c, Contrast))
    if not made:
        return Judgement(
            None, UNTESTED, NO_SIZE, next((c for c in contrasts if isinstance(c, str)), NO_NUMBERS)
        )
    rule = {"above": judge_above, "comparable": judge_comparable, "not worse": judge_not_worse}[
        claim.relation
    ]
    judged, notes = rule(claim, made, digits), ()
    if len(made) < len(contrasts):
        notes = (f"{len(made)} of {len(contrasts)} comparisons can be made",)
        judged = replace(judged, direction=None) if judged.direction == AGREES else judged
    differs = tuple(dict.fromkeys(chain.from_iterable(c.differs for c in made)))
    significance = "significant" in claim.quote.lower()  # or `significantly`, which is judged, too
    return replace(
        judged, notes=notes, differs=differs, claims_significance=significance, contrasts=made
    )


def judge_sentence(rows: Sequence[Judgement]) -> Judgement:
    """One judgement on a sentence that says something of several rows: it agrees if every row
    does; one row that opposes it opposes the sentence, significantly if the row's p times the
    number of rows is."""
    if len(rows) == 1:
        return rows[0]
    opposed = [row for row in rows if row.direction in (OPPOSES, MIXED)]
    known = (row.contrary_p for row in opposed if row.contrary_p is not None)
    p, shown_p = corrected(min(known, default=None), len(rows))
    if opposed:
        direction = OPPOSES if len(opposed) == len(rows) else MIXED
        shown = YES if shown_p == YES else NO
    else:
        direction = None if any(row.direction is None for row in rows) else AGREES
        shown = next(
            state for state in (UNTESTED, NO, YES) if any(row.shown == state for row in rows)
        )
    size = next(
        (size for size in (OTHER, AS_STATED) if any(row.size == size for row in rows)), NO_SIZE
    )
    contrary = max((row.contrary for row in opposed if row.contrary is not None), default=None)
    differs = tuple(dict.fromkeys(chain.from_iterable(row.differs for row in rows)))
    detail = parts_text(row.verdict for row in rows)
    judged = Judgement(
        direction, shown, size, detail, p, contrary, differs=differs, strict=rows[0].strict
    )
    return replace(judged, claims_significance=any(row.claims_significance for row in rows))


def parts_text(verdicts: Iterable[str]) -> str:
    """`4 parts: 1 supported, 3 not shown`, or `4 parts` where all have one verdict."""
    counts = Counter(verdicts)
    listed = [
        f"{counts[v]} {v}" for v in (*VERDICTS, SEEN, NOT_SEEN, OPPOSITE, UNASKED) if v in counts
    ]
    return f"{counts.total()} parts" + (f": {', '.join(listed)}" if listed[1:] else "")


def corrected(p: float | None, times: int) -> tuple[float | None, str]:
    """Bonferroni's correction: p times the number of tests, None where there is none; whether it
    is significant."""
    if p is None:
        return None, UNTESTED
    p = min(1.0, p * times)
    return p, YES if p < stats.LEVEL else NO


def judge_above(claim: Claim, contrasts: Sequence[Contrast], digits: int) -> Judgement:
    """A row is above (or below) all others: every contrast goes its way, and each is
    significant. Where some go the other way, that is shown if one of them is significant among
    all that were looked at."""
    size, bounds = (
        stated_size(claim, contrasts),
        [c.difference + c.half(len(contrasts)) for c in contrasts],
    )
    tested, times, excludes = contrasts, 1, min(bounds)
    if claim.up_to is not None:  # the largest of several was picked
        tested, times, excludes = (
            [max(contrasts, key=lambda c: c.difference)],
            len(contrasts),
            max(bounds),
        )
    if against := [c for c in tested if c.difference < 0]:
        which, times = "against", len(tested)
        picked = min(against, key=lambda c: (inf if c.p is None else c.p, c.difference))
    elif any(c.p is None for c in tested):
        which, picked = "smallest", min(tested, key=lambda c: c.difference)
    else:
        which, picked = "weakest", max(tested, key=lambda c: (c.p, -c.difference))
    p, shown = corrected(None if which == "smallest" else picked.p, times)
    detail = describe(claim, picked, digits, times)
    if len(tested) > 1:
        detail = (
            f"{len(tested) - len(against)} of {len(tested)} comparisons agree; {which}: {detail}"
        )
    if not against:
        return Judgement(AGREES, shown, size, detail, excludes=excludes)
    direction = OPPOSES if len(against) == len(tested) else MIXED
    return Judgement(
        direction, shown, size, detail, p, max(-c.difference for c in against), excludes=excludes
    )


def judge_comparable(claim: Claim, contrasts: Sequence[Contrast], digits: int) -> Judgement:
    """Rows are comparable: within a stated limit, or by no difference that is shown, which
    proves no equality."""
    if claim.less_than is not None:
        return judge_limit(claim, claim.less_than, contrasts, digits)
    known = [c for c in contrasts if c.p is not None]
    clearest = min(known or contrasts, key=lambda c: (c.p or 0.0, -abs(c.difference)))
    p, shown = corrected(clearest.p, len(contrasts))
    text = f"no limit is stated; {describe(claim, clearest, digits, len(contrasts))}"
    if shown == YES:
        return Judgement(OPPOSES, YES, NO_SIZE, text, p, abs(clearest.difference))
    if len(known) == len(contrasts):
        largest = max(abs(c.difference) + c.half(len(known)) for c in known)
        return Judgement(AGREES, NO, NO_SIZE, text, excludes=largest)
    others = f"; of others {no_test(contrasts[0])}" if known else ""
    return Judgement(None, UNTESTED, NO_SIZE, text + others)


def judge_not_worse(claim: Claim, contrasts: Sequence[Contrast], digits: int) -> Judgement:
    """A row is on par or better, one-sided: opposed only where it is shown to be worse."""
    judged = judge_above(claim, contrasts, digits)
    if judged.direction == AGREES or judged.shown == YES:
        return judged
    direction, shown = (AGREES, NO) if all(c.p is not None for c in contrasts) else (None, UNTESTED)
    return replace(
        judged, direction=direction, shown=shown, detail=f"no limit is stated; {judged.detail}"
    )


def judge_limit(
    claim: Claim, limit: Published, contrasts: Sequence[Contrast], digits: int
) -> Judgement:
    """Rows differ by less than a limit: two one-sided tests (TOST) at half level, as both
    verdicts are possible."""
    largest = max(contrasts, key=lambda c: abs(c.difference))
    excess = abs(largest.difference) - limit.value
    within = excess < -SLACK
    direction, size, contrary = (
        (AGREES, AS_STATED, None) if within else (OPPOSES, OTHER, max(excess, 0.0))
    )
    text = describe_size(claim, largest, digits)
    if unknown := next((c for c in contrasts if c.error is None), None):
        return Judgement(
            direction, UNTESTED, size, f"{text}; {no_test(unknown)}", contrary=contrary
        )
    # all have to be within
    tested, times = (contrasts, 1) if within else ([largest], len(contrasts))
    p = max(
        stats.two_sided(limit.value - abs(c.difference), ((c.error or 0.0) ** 2, c.df))
        for c in tested
    )
    text = f"{text}, {p_text(p, times)} against the limit"
    if any(c.over_seeds_only for c in tested):
        text += ", over seeds only"
    p, shown = corrected(p, times)
    return Judgement(direction, shown, size, text, None if within else p, contrary)


def stated_size(claim: Claim, contrasts: Sequence[Contrast]) -> str:
    """Whether the difference has the size that the claim states, up to rounding."""
    stated = claim.by or claim.up_to
    if stated is None:
        return NO_SIZE
    off = [c.difference - stated.value for c in contrasts]
    lowest = max(off) if claim.up_to is not None else min(off)
    slack = stated.unit / 2 + max(c.unit for c in contrasts) + SLACK
    return AS_STATED if -slack <= lowest and max(off) <= slack else OTHER


def describe(claim: Claim, contrast: Contrast, digits: int, times: int) -> str:
    """`+0.24 over SimCSE-BERTbase in Avg. (claimed: +2.60), p = 0.018`, which is corrected for
    as many tests."""
    if contrast.p is None:
        return f"{describe_size(claim, contrast, digits)}; {no_test(contrast)}"
    text = f"{describe_size(claim, contrast, digits)}, {p_text(contrast.p, times)}"
    return f"{text} over seeds only" if contrast.over_seeds_only else text


def describe_size(claim: Claim, contrast: Contrast, digits: int) -> str:
    """`+0.24 over SimCSE-BERTbase in Avg. (claimed: up to +2.60)`, `0.40 below … (claimed: less
    than 0.4)`."""
    difference = -contrast.difference if claim.lower else contrast.difference
    size = f"{abs(difference):.{digits}f}"
    text = f"+{size} over" if difference >= 0 else f"{size} below"
    text = (
        f"{'deviation ' if claim.statistic == 'std' else ''}{text} {contrast.versus} in"
        f" {contrast.column}"
    )
    for prefix, stated in (("", claim.by), ("up to ", claim.up_to)):
        if stated is not None:
            return (
                f"{text} (claimed:"
                f" {prefix}{f'{stated.text} below' if claim.lower else f'+{stated.text}'})"
            )
    return (
        text if claim.less_than is None else f"{text} (claimed: less than {claim.less_than.text})"
    )


def p_text(p: float, times: int) -> str:
    """`p = 0.072 for 4 comparisons`, with Bonferroni's correction."""
    return f"p = {min(1.0, p * times):.2g}" + (f" for {times} comparisons" if times > 1 else "")


def no_test(contrast: Contrast) -> str:
    """Why a contrast has no p."""
    return "the spread is not known" if contrast.unit else "one seed"
