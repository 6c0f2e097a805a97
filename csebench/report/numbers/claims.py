"""Judgements on what papers conclude from their tables, by the printed numbers and by our runs.

A claim is data (csebench/plan/schema/paper.py). It is split into contrasts, which compare two rows
each (contrasts.py). Each relation has a rule that makes a judgement from the contrasts. A judgement
keeps direction, significance and size apart. Claims with the same quote are rows of one sentence.
The words for a judgement are in csebench/report/words/claims.py. benchmarks/judge.py measures the
error rates of the rules.

Papers print most numbers without a deviation over seeds. Such a number gets the deviation of runs
that others published, which is an assumption. So claims are judged at smaller deviations as well
(ASSUMED_DEVIATIONS in printed_spread.py).

If every contrast has to go the claim's way, each has to be significant, and no correction is
needed. If one of several contrasts is picked, its p is corrected by Bonferroni's method.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from csebench.base.caches import cached, cached_by_folder
from csebench.plan.catalog.files import paper
from csebench.plan.schema.paper import Claim, Published
from csebench.plan.targets import grid_defect
from csebench.report.numbers import stats
from csebench.report.numbers.cells import GridView, grid_view, printed_view
from csebench.report.numbers.contrasts import (
    NO_NUMBERS,
    Contrast,
    NoContrast,
    Obstacle,
    contrast_printed,
    contrast_runs,
    pair_cells,
)
from csebench.report.numbers.printed_spread import ASSUMED_DEVIATIONS
from csebench.report.numbers.row_settings import Setting
from csebench.report.numbers.stats import SLACK
from csebench.report.numbers.verdict_words import VerdictWord

# ---------------------------------------------------------------- values


class Direction(StrEnum):
    """Which way the numbers go."""

    AGREES = "agrees"
    OPPOSES = "opposes"
    MIXED = "mixed"  # some agree, some oppose


class Significance(StrEnum):
    """Whether a test rules out chance for the direction of the numbers."""

    YES = "yes"
    NO = "no"
    INCOMPLETE = "incomplete"  # some differences have no test, and the others decide nothing
    UNTESTED = "untested"


class StatedSize(StrEnum):
    """Whether a difference has the size that the claim states."""

    AS_STATED = "as stated"
    OTHER = "other"
    NONE = "none"  # the claim states no size


class ClaimVerdict(StrEnum):
    """The verdict on a paper's claim, in a word."""

    SUPPORTED = "supported"
    OPEN = "open"  # chance is not ruled out
    AGAINST = "against"  # the opposite is shown
    MISPRINT = "misprint"  # the printed numbers have another size than the sentence states
    CANNOT_TELL = "cannot tell"  # there is no test

    @property
    def is_contradiction(self) -> bool:
        """Whether the printed numbers say something else than the sentence."""
        return self in (ClaimVerdict.AGAINST, ClaimVerdict.MISPRINT)


class ClaimOutcome(StrEnum):
    """What the test of a claim gives. It is finer than the verdict, and leaves out the size."""

    SUPPORTED = "supported"
    NOT_SHOWN = "not shown"
    AGAINST = "against beyond chance"
    OTHER_WAY = "goes the other way"  # only of printed numbers: it may be chance
    UNPROVEN_SIGNIFICANCE = "says significant without showing it"
    UNTESTABLE = "not testable"

    @property
    def goes_against(self) -> bool:
        """Whether the numbers oppose the claim, even if by chance, or lack the significance that it
        states."""
        return self in (
            ClaimOutcome.AGAINST,
            ClaimOutcome.OTHER_WAY,
            ClaimOutcome.UNPROVEN_SIGNIFICANCE,
        )


class Pick(StrEnum):
    """Why one of several contrasts was picked."""

    AGAINST = "against"  # of those that go the other way, it is the clearest
    SMALLEST = "smallest"  # it is the smallest difference; no contrast has a p
    WEAKEST = "weakest"  # of those that have a p, it has the largest


@dataclass(frozen=True)
class PickedContrast:
    """The contrast that decides whether a row is above all others."""

    contrast: Contrast
    pick: Pick
    tests: int  # number of tests that its p is corrected for
    agreeing: int  # contrasts that go the claim's way
    compared: int  # contrasts that have to go the claim's way


@dataclass(frozen=True)
class ClearestContrast:
    """The contrast that speaks most clearly against rows being comparable."""

    contrast: Contrast
    tests: int  # number of tests that its p is corrected for


@dataclass(frozen=True)
class LimitTest:
    """The test whether rows differ by less than a limit that the claim states."""

    largest: Contrast
    p: float | None = None  # not corrected; None if the error of a contrast is not known
    tests: int = 1  # number of tests that p has to be corrected for
    over_seeds_only: bool = False


@dataclass(frozen=True)
class RowVerdicts:
    """The verdicts on the claims of a sentence, which decide on the sentence."""

    verdicts: tuple[ClaimVerdict, ...]
    excludes_a_size: bool = False  # our runs exclude the size that one of the claims states


Basis = NoContrast | PickedContrast | ClearestContrast | LimitTest | RowVerdicts


@dataclass(frozen=True)
class Judgement:
    """The result of a claim's contrasts, or of a sentence's claims."""

    direction: Direction | None  # None: nothing can be said
    significance: Significance
    size: StatedSize
    basis: Basis  # what decided it
    # p of the numbers that go against the claim, corrected for its contrasts
    contrary_p: float | None = None
    # the largest difference that goes the other way, in printed units
    contrary: float | None = None
    # 95 % intervals exclude any difference in the claim's direction that is larger than this;
    # infinite if nothing is excluded, and for a sentence over several claims
    excludes: float = inf
    # the claim needs a limit to be shown and states none
    lacks_limit: bool = False
    # for printed numbers: an opposite direction counts even if it is not significant
    strict: bool = True
    claims_significance: bool = False
    # for our runs: a contrast could not be made, because controls of the scale fail
    controls_fail: bool = False
    differs: tuple[Setting, ...] = ()  # shared settings that our rows do not have in common
    contrasts: tuple[Contrast, ...] = ()  # that could be made
    contrasts_asked: int = 0  # that the claim is about
    claim: Claim | None = None  # None for a sentence over several claims
    digits: int = 2  # of the printed numbers

    @property
    def outcome(self) -> ClaimOutcome:
        """Give what the test shows, whatever size the claim states.

        A direction without a test is no support. If a sentence says that a difference is
        significant, a test on the printed numbers has to show it.
        """
        if self.direction is None:
            return ClaimOutcome.UNTESTABLE
        if self.direction != Direction.AGREES:
            if self.significance == Significance.YES:
                return ClaimOutcome.AGAINST
            return ClaimOutcome.OTHER_WAY if self.strict else ClaimOutcome.NOT_SHOWN
        if self.significance == Significance.UNTESTED:
            return ClaimOutcome.UNTESTABLE
        if self.significance == Significance.YES:
            return ClaimOutcome.SUPPORTED
        is_tested = self.significance == Significance.NO
        if is_tested and self.claims_significance and self.strict:
            return ClaimOutcome.UNPROVEN_SIGNIFICANCE
        return ClaimOutcome.NOT_SHOWN

    @property
    def verdict(self) -> ClaimVerdict:
        """Give the verdict in a word.

        Printed numbers of another size than the sentence states are a misprint, unless the opposite
        is shown. Without a test no other verdict is possible, whichever way the numbers go. Our
        runs support no claim whose size they exclude.
        """
        outcome = self.outcome
        if outcome == ClaimOutcome.AGAINST:
            return ClaimVerdict.AGAINST
        if self.strict and self.is_misprinted:
            return ClaimVerdict.MISPRINT
        if self.direction is None or self.significance == Significance.UNTESTED:
            return ClaimVerdict.CANNOT_TELL
        if outcome == ClaimOutcome.SUPPORTED and not self.excludes_stated_size:
            return ClaimVerdict.SUPPORTED
        return ClaimVerdict.OPEN

    @property
    def is_misprinted(self) -> bool:
        """Whether printed numbers have another size than a sentence, or one of its claims, states.

        Nothing is said of a claim if some of its contrasts could not be made.
        """
        if isinstance(self.basis, RowVerdicts):
            return ClaimVerdict.MISPRINT in self.basis.verdicts
        return self.size == StatedSize.OTHER and self.direction is not None

    @property
    def excludes_stated_size(self) -> bool:
        """Whether the intervals of contrasts exclude the size that a claim states.

        A sentence is excluded if one of its claims is.
        """
        if isinstance(self.basis, RowVerdicts):
            return self.basis.excludes_a_size
        if self.claim is None or self.size != StatedSize.OTHER:
            return False
        stated = self.claim.by or self.claim.up_to
        if stated is None:
            return False
        contrasts = self.contrasts
        if self.claim.up_to is not None:
            contrasts = (max(contrasts, key=lambda contrast: contrast.difference),)
        for contrast in contrasts:
            excess = abs(contrast.difference - stated.value)
            if excess > contrast.half(len(contrasts)):
                return True
        return False

    @property
    def word(self) -> VerdictWord:
        """Give the verdict on the row of a claim against the other rows, by our runs.

        At another scale than that of the papers, runs contradict no paper's sentence. They only
        compare rows.
        """
        lacks_tests = self.significance in (Significance.UNTESTED, Significance.INCOMPLETE)
        if self.direction is None or lacks_tests:
            if self.controls_fail:
                return VerdictWord.CANNOT_TELL
            return VerdictWord.NOT_TESTED
        if self.contrasts and all(contrast.is_inactive for contrast in self.contrasts):
            return VerdictWord.SAME
        if self.significance == Significance.NO:
            return VerdictWord.UNCLEAR
        assert self.claim is not None, "the claims of a sentence have a word each"
        is_higher = self.direction == Direction.AGREES
        if self.claim.relation == "comparable":
            if is_higher:
                return VerdictWord.SAME
            is_higher = self.clearest_difference > 0
        if self.claim.lower:
            is_higher = not is_higher
        return VerdictWord.HIGHER if is_higher else VerdictWord.LOWER

    @property
    def p(self) -> float | None:
        """Give the corrected p of the difference that decided. None if no single difference did."""
        match self.basis:
            case PickedContrast() | ClearestContrast() as basis:
                return corrected(basis.contrast.p, basis.tests)
            case LimitTest() as basis:
                return corrected(basis.p, basis.tests)
        return None

    @property
    def clearest_difference(self) -> float:
        """Give the difference that speaks most clearly against rows being comparable."""
        match self.basis:
            case ClearestContrast(contrast):
                return contrast.difference
            case LimitTest(largest):
                return largest.difference
        return 0.0


@dataclass(frozen=True)
class AssumedJudgement:
    """A judgement by printed numbers that assumes a smaller deviation than others published."""

    deviation: float  # of printed_spread.ASSUMED_DEVIATIONS
    judgement: Judgement


@dataclass(frozen=True)
class VerdictAtDeviation:
    """The verdict on printed numbers under one assumption about the deviation over seeds."""

    deviation: float | None  # None: the deviation that others published
    verdict: ClaimVerdict
    p: float | None = None  # corrected; None if no single difference decided the verdict


@dataclass(frozen=True)
class Judged:
    """A claim, or a sentence over claims with one quote, judged by printed numbers and our runs."""

    paper: str
    scale: str
    claims: list[Claim]
    published: Judgement  # at the deviations that others published
    assumed: tuple[AssumedJudgement, ...]  # by printed numbers, too; largest deviation first
    ours: Judgement
    rows: list["Judged"]  # a sentence's claims, one by one; empty for a claim

    @property
    def printed_verdicts(self) -> list[VerdictAtDeviation]:
        """List the verdicts on the printed numbers, at the largest deviation first."""
        return verdicts_at_deviations(self.published, self.assumed)

    @property
    def depends_on_deviation(self) -> bool:
        """Whether the verdict on the printed numbers changes with the assumed deviation."""
        return len({at.verdict for at in self.printed_verdicts}) > 1

    @property
    def words(self) -> list[VerdictWord]:
        """List the verdicts on our runs, a word per claim."""
        if not self.rows:
            return [self.ours.word]
        return [row.ours.word for row in self.rows]

    @property
    def places(self) -> list[str]:
        """Name the tables and figures of the claims, each once."""
        return list(dict.fromkeys(claim.place for claim in self.claims))


def verdicts_at_deviations(
    published: Judgement, assumed: Iterable[AssumedJudgement]
) -> list[VerdictAtDeviation]:
    """List the verdict at the published deviation, then those at the assumed ones."""
    verdicts = [VerdictAtDeviation(None, published.verdict, published.p)]
    for at in assumed:
        judgement = at.judgement
        verdicts.append(VerdictAtDeviation(at.deviation, judgement.verdict, judgement.p))
    return verdicts


# ---------------------------------------------------------------- from papers to judgements


def judge_all(scale: str, paper_names: Iterable[str], place: str | None = None) -> list[Judged]:
    """Judge every sentence of papers. Sentences about a broken table or figure are left out.

    Args:
        place: only sentences about this table or figure.
    """
    sentences = stated_quotes(scale, paper_names, place)
    return [judge_quote(name, claims[0].quote, scale) for name, claims in sentences]


def stated_quotes(
    scale: str, paper_names: Iterable[str], place: str | None = None
) -> list[tuple[str, list[Claim]]]:
    """List the sentences of papers, each as its paper and its claims.

    Sentences about a broken table or figure are left out.

    Args:
        place: only sentences about this table or figure.
    """
    sentences = []
    for name in paper_names:
        for claims in paper(name).claims_by_quote().values():
            is_meant = place is None or any(claim.place == place for claim in claims)
            if is_meant and not is_about_broken_grid(name, claims, scale):
                sentences.append((name, claims))
    return sentences


def is_about_broken_grid(paper_name: str, claims: list[Claim], scale: str) -> bool:
    """Whether a table or figure of claims cannot be read at a scale."""
    for claim in claims:
        if any(grid_defect(paper_name, place, scale) for place in claim.places):
            return True
    return False


@cached_by_folder
def judge_quote(paper_name: str, quote: str, scale: str) -> Judged:
    """Judge a sentence of a paper: one verdict over all its claims."""
    claims = paper(paper_name).claims_by_quote()[quote]
    rows = [judge(paper_name, claim, scale) for claim in claims]
    published = judge_sentence([row.published for row in rows])
    assumed = []
    for index, deviation in enumerate(ASSUMED_DEVIATIONS):
        judgement = judge_sentence([row.assumed[index].judgement for row in rows])
        assumed.append(AssumedJudgement(deviation, judgement))
    ours = judge_sentence([row.ours for row in rows])
    return Judged(paper_name, scale, claims, published, tuple(assumed), ours, rows)


def judge(paper_name: str, claim: Claim, scale: str) -> Judged:
    """Judge a claim by itself."""
    published = judge_printed(paper_name, claim, scale)
    assumed = judge_at_smaller_deviations(paper_name, claim, scale)
    ours = judge_runs(paper_name, claim, scale)
    return Judged(paper_name, scale, [claim], published, assumed, ours, [])


def judge_at_smaller_deviations(
    paper_name: str, claim: Claim, scale: str
) -> tuple[AssumedJudgement, ...]:
    """Judge a claim by the printed numbers at each of ASSUMED_DEVIATIONS."""
    assumed = []
    for deviation in ASSUMED_DEVIATIONS:
        judgement = judge_printed(paper_name, claim, scale, deviation)
        assumed.append(AssumedJudgement(deviation, judgement))
    return tuple(assumed)


def judge_printed(
    paper_name: str, claim: Claim, scale: str, deviation: float | None = None
) -> Judgement:
    """Judge a claim by the printed numbers.

    No score is read, so the judgement is the same at every scale.

    Args:
        deviation: assumed deviation over seeds of numbers that are printed without one
            (`printed_spread.single_run_variance`). None takes the deviation that others published.
    """
    here = _printed_view(paper_name, claim.places[0], scale)
    there = _printed_view(paper_name, claim.places[-1], scale)
    pairings = pair_cells(claim, here, there)
    contrasts = [contrast_printed(claim, pairing, deviation) for pairing in pairings]
    if claim.versus == "others":  # papers leave some cells of a row empty
        contrasts = [contrast for contrast in contrasts if isinstance(contrast, Contrast)]
    return judge_row(claim, contrasts, digits_of(claim, here))


def judge_runs(paper_name: str, claim: Claim, scale: str) -> Judgement:
    """Judge a claim by our runs at a scale."""
    here = _our_view(paper_name, claim.places[0], scale)
    there = _our_view(paper_name, claim.places[-1], scale)
    pairings = pair_cells(claim, here, there)
    count = len(pairings)
    contrasts = [contrast_runs(claim, pairing, scale, count) for pairing in pairings]
    judgement = judge_row(claim, contrasts, digits_of(claim, here))
    if len(judgement.contrasts) < count and judgement.direction == Direction.AGREES:
        judgement = replace(judgement, direction=None)  # nothing is said before all are made
    return replace(judgement, strict=False)


# Many claims are about one table.
@cached
def _printed_view(paper_name: str, place: str, scale: str) -> GridView:
    return printed_view(paper_name, place, scale)


@cached_by_folder
def _our_view(paper_name: str, place: str, scale: str) -> GridView:
    return grid_view(paper_name, place, scale)


def digits_of(claim: Claim, view: GridView) -> int:
    """Count the decimals with which numbers of a claim are printed."""
    return max(view.column(label)[0].digits for label in claim.columns)


# ---------------------------------------------------------------- one claim


def judge_row(claim: Claim, contrasts: Sequence[Contrast | NoContrast], digits: int) -> Judgement:
    """Judge a claim by its contrasts.

    If some contrasts could not be made, the others do not support the claim.

    Args:
        contrasts: all that the claim is about; a NoContrast is one that could not be made.
        digits: decimals of the printed numbers.
    """
    contrasts_made = tuple(c for c in contrasts if isinstance(c, Contrast))
    obstacles = [c for c in contrasts if isinstance(c, NoContrast)]
    controls_fail = any(c.obstacle == Obstacle.CANNOT_TELL for c in obstacles)
    if not contrasts_made:
        return Judgement(
            None,
            Significance.UNTESTED,
            StatedSize.NONE,
            deciding_obstacle(obstacles),
            controls_fail=controls_fail,
            claim=claim,
            digits=digits,
            contrasts_asked=len(contrasts),
        )

    match claim.relation:
        case "above":
            judgement = judge_above(claim, contrasts_made)
        case "comparable" if claim.less_than is not None:
            judgement = judge_limit(claim.less_than, contrasts_made)
        case "comparable":
            judgement = judge_comparable(contrasts_made)
        case "not worse":
            judgement = judge_not_worse(claim, contrasts_made)
    if obstacles and judgement.direction == Direction.AGREES:
        judgement = replace(judgement, significance=incomplete(judgement.significance))
    return replace(
        judgement,
        controls_fail=controls_fail,
        claim=claim,
        digits=digits,
        contrasts=contrasts_made,
        contrasts_asked=len(contrasts),
        differs=unique_settings(contrasts_made),
        claims_significance=claim.states_significance,
    )


def deciding_obstacle(obstacles: Sequence[NoContrast]) -> NoContrast:
    """Choose the reason that is given if no contrast could be made.

    Failing controls come first, because they say that the scale cannot tell. Else it is the first
    reason.
    """
    for obstacle in obstacles:
        if obstacle.obstacle == Obstacle.CANNOT_TELL:
            return obstacle
    return obstacles[0] if obstacles else NO_NUMBERS


def judge_above(claim: Claim, contrasts: Sequence[Contrast]) -> Judgement:
    """Judge that a row is above (or below) all others.

    Every contrast has to go the claim's way, and each has to be significant. If the claim states
    `up_to`, only the largest contrast counts, and its p is corrected.
    """
    # upper ends of intervals that hold for all contrasts at once
    bounds = [contrast.difference + contrast.half(len(contrasts)) for contrast in contrasts]
    if claim.up_to is None:
        tested = list(contrasts)
        tests = 1
        excludes = min(bounds)
    else:
        tested = [max(contrasts, key=lambda contrast: contrast.difference)]
        tests = len(contrasts)
        excludes = max(bounds)

    if any(contrast.difference < 0 for contrast in tested):
        judgement = judge_reversed(tested)
    else:
        judgement = judge_weakest(tested, tests)
    return replace(judgement, size=stated_size(claim, contrasts), excludes=excludes)


def judge_weakest(tested: Sequence[Contrast], tests: int) -> Judgement:
    """Judge that a row is above others if every contrast goes this way.

    All are significant if the weakest is, so the weakest decides. If some contrasts have no p, it
    is not shown that all are significant.
    """
    with_test = [contrast for contrast in tested if contrast.p is not None]

    def weakness(contrast: Contrast) -> tuple[float, float]:
        assert contrast.p is not None
        return contrast.p, -contrast.difference

    if with_test:
        pick = Pick.WEAKEST
        picked = max(with_test, key=weakness)
    else:
        pick = Pick.SMALLEST
        picked = min(tested, key=lambda contrast: contrast.difference)
    significance = significance_of(corrected(picked.p, tests))
    if len(with_test) < len(tested):
        significance = incomplete(significance)
    basis = PickedContrast(picked, pick, tests, agreeing=len(tested), compared=len(tested))
    return Judgement(Direction.AGREES, significance, StatedSize.NONE, basis)


def judge_reversed(tested: Sequence[Contrast]) -> Judgement:
    """Judge that a row is above others if some contrast goes the other way.

    The opposite is shown if one of these is significant, corrected for the number of `tested`.
    """

    def clearest_first(contrast: Contrast) -> tuple[float, float]:
        p = inf if contrast.p is None else contrast.p
        return p, contrast.difference

    against = [contrast for contrast in tested if contrast.difference < 0]
    agreeing = len(tested) - len(against)
    picked = min(against, key=clearest_first)
    p = corrected(picked.p, len(tested))
    significance = significance_of(p)
    if p is None and any(contrast.p is not None for contrast in tested):
        significance = Significance.INCOMPLETE
    return Judgement(
        Direction.MIXED if agreeing else Direction.OPPOSES,
        significance,
        StatedSize.NONE,
        PickedContrast(picked, Pick.AGAINST, len(tested), agreeing, compared=len(tested)),
        contrary_p=p,
        contrary=max(-contrast.difference for contrast in against),
    )


def judge_not_worse(claim: Claim, contrasts: Sequence[Contrast]) -> Judgement:
    """Judge that a row is on par or better. Only a row that is shown to be worse opposes this."""
    judgement = judge_above(claim, contrasts)
    if judgement.direction == Direction.AGREES or judgement.significance == Significance.YES:
        return judgement
    # it scores lower, but is not shown to be worse: without a limit, this may count as on par
    direction = None
    significance = Significance.UNTESTED
    if any(contrast.p is not None for contrast in contrasts):
        direction = Direction.AGREES
        significance = Significance.NO
    return replace(judgement, direction=direction, significance=significance, lacks_limit=True)


def judge_comparable(contrasts: Sequence[Contrast]) -> Judgement:
    """Judge that rows are comparable, if the claim states no limit for their difference.

    A difference that is not shown proves no equality. So the claim is opposed or open, but never
    supported.
    """

    def clearest_first(contrast: Contrast) -> tuple[float, float]:
        return contrast.p or 0.0, -abs(contrast.difference)

    with_test = [contrast for contrast in contrasts if contrast.p is not None]
    clearest = min(with_test or contrasts, key=clearest_first)  # without any p, the largest
    tests = len(contrasts)
    basis = ClearestContrast(clearest, tests)
    p = corrected(clearest.p, tests)
    if significance_of(p) == Significance.YES:
        return Judgement(
            Direction.OPPOSES,
            Significance.YES,
            StatedSize.NONE,
            basis,
            contrary_p=p,
            contrary=abs(clearest.difference),
            lacks_limit=True,
        )
    if not with_test:
        return Judgement(None, Significance.UNTESTED, StatedSize.NONE, basis, lacks_limit=True)
    excludes = max(abs(contrast.difference) + contrast.half(tests) for contrast in contrasts)
    return Judgement(
        Direction.AGREES,
        Significance.NO,
        StatedSize.NONE,
        basis,
        excludes=excludes,
        lacks_limit=True,
    )


def judge_limit(limit: Published, contrasts: Sequence[Contrast]) -> Judgement:
    """Judge that rows differ by less than a limit.

    This is the two one-sided tests procedure (TOST). Each test has half the level, because the
    difference may be shown to be below or above the limit. All contrasts have to be within the
    limit. If the largest is not, its p is corrected.
    """
    largest = max(contrasts, key=lambda contrast: abs(contrast.difference))
    excess = abs(largest.difference) - limit.value
    is_within = excess < -SLACK
    if is_within:
        tested = list(contrasts)
        tests = 1
        judgement = Judgement(
            Direction.AGREES, Significance.UNTESTED, StatedSize.AS_STATED, LimitTest(largest)
        )
    else:
        tested = [largest]
        tests = len(contrasts)
        judgement = Judgement(
            Direction.OPPOSES,
            Significance.UNTESTED,
            StatedSize.OTHER,
            LimitTest(largest),
            contrary=max(excess, 0.0),
        )
    with_test = [contrast for contrast in tested if contrast.error is not None]
    if not with_test:
        return judgement

    p = max(p_against_limit(contrast, limit) for contrast in with_test)
    over_seeds_only = any(contrast.over_seeds_only for contrast in with_test)
    corrected_p = corrected(p, tests)
    significance = significance_of(corrected_p)
    if len(with_test) < len(tested):
        significance = incomplete(significance)
    return replace(
        judgement,
        significance=significance,
        basis=LimitTest(largest, p, tests, over_seeds_only),
        contrary_p=None if is_within else corrected_p,
    )


def p_against_limit(contrast: Contrast, limit: Published) -> float:
    """Compute the two-sided p of the hypothesis that a difference is as large as the limit."""
    error = contrast.error or 0.0
    return stats.two_sided(limit.value - abs(contrast.difference), (error**2, contrast.df))


def stated_size(claim: Claim, contrasts: Sequence[Contrast]) -> StatedSize:
    """Say whether differences have the size that a claim states, up to rounding.

    Every contrast has to have the size `by`. The largest has to have the size `up_to`.
    """
    stated = claim.by or claim.up_to
    if stated is None:
        return StatedSize.NONE
    excesses = [contrast.difference - stated.value for contrast in contrasts]
    if claim.up_to is not None:
        excesses = [max(excesses)]
    slack = stated.unit / 2 + max(contrast.unit for contrast in contrasts) + SLACK
    if all(-slack <= excess <= slack for excess in excesses):
        return StatedSize.AS_STATED
    return StatedSize.OTHER


def corrected(p: float | None, tests: int) -> float | None:
    """Correct a p for a number of tests by Bonferroni's method. None stays None."""
    return None if p is None else min(1.0, p * tests)


def significance_of(p: float | None) -> Significance:
    """Say whether a p, which is corrected already, is significant."""
    if p is None:
        return Significance.UNTESTED
    return Significance.YES if p < stats.LEVEL else Significance.NO


def incomplete(significance: Significance) -> Significance:
    """Say what tests show if other differences have none: that all are significant is not shown."""
    if significance == Significance.YES:
        return Significance.INCOMPLETE
    return significance


def unique_settings(parts: Iterable[Contrast | Judgement]) -> tuple[Setting, ...]:
    """List the settings in which rows of contrasts or judgements differ, each once."""
    settings: list[Setting] = []
    for part in parts:
        settings += part.differs
    return tuple(dict.fromkeys(settings))


# ---------------------------------------------------------------- a sentence over several claims


def judge_sentence(rows: Sequence[Judgement]) -> Judgement:
    """Judge a sentence by the judgements on its claims.

    The numbers oppose the sentence if they oppose one claim. This is significant if the lowest p of
    such claims, corrected for the number of claims, is significant. Else they agree with it, as far
    as claims have numbers. A claim without a test leaves the sentence open, unless none has a test.
    """
    if len(rows) == 1:
        return rows[0]
    opposed = [row for row in rows if row.direction in (Direction.OPPOSES, Direction.MIXED)]
    known_p = [row.contrary_p for row in opposed if row.contrary_p is not None]
    contrary = [row.contrary for row in opposed if row.contrary is not None]
    p = corrected(min(known_p, default=None), len(rows))
    if not opposed:
        direction = Direction.AGREES
        significance = significance_of_all(rows)
    else:
        direction = Direction.OPPOSES if len(opposed) == len(rows) else Direction.MIXED
        significance = significance_of(p)
        if p is None and significance_of_all(rows) != Significance.UNTESTED:
            significance = Significance.INCOMPLETE
    return Judgement(
        direction,
        significance,
        size_of_all(rows),
        RowVerdicts(
            tuple(row.verdict for row in rows), any(row.excludes_stated_size for row in rows)
        ),
        contrary_p=p,
        contrary=max(contrary, default=None),
        differs=unique_settings(rows),
        strict=rows[0].strict,
        claims_significance=any(row.claims_significance for row in rows),
    )


def significance_of_all(rows: Sequence[Judgement]) -> Significance:
    """Say what holds for all claims: significant if each is, untested if none has a test."""
    tested = []
    for row in rows:
        if row.direction is not None and row.significance != Significance.UNTESTED:
            tested.append(row.significance)
    if not tested:
        return Significance.UNTESTED
    if Significance.NO in tested:
        return Significance.NO
    if len(tested) < len(rows) or Significance.INCOMPLETE in tested:
        return Significance.INCOMPLETE
    return Significance.YES


def size_of_all(rows: Sequence[Judgement]) -> StatedSize:
    """Say whether the differences have the stated sizes, as far as claims state one."""
    found = {row.size for row in rows}
    if StatedSize.OTHER in found:
        return StatedSize.OTHER
    if StatedSize.AS_STATED in found:
        return StatedSize.AS_STATED
    return StatedSize.NONE
