"""Sentences for judgements on papers' claims: on pages, in verbs and in JSON.

The judgements themselves are in csebench/report/numbers/claims.py. How pages arrange the sentences
is in csebench/report/pages/claims.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from math import inf
from operator import attrgetter

from csebench.plan.schema.paper import Claim
from csebench.report.numbers.cells import PAPER_SCALE
from csebench.report.numbers.claims import (
    ClaimOutcome,
    ClaimVerdict,
    ClearestContrast,
    Direction,
    Judged,
    Judgement,
    LimitTest,
    Pick,
    PickedContrast,
    RowVerdicts,
    Significance,
    VerdictAtDeviation,
)
from csebench.report.numbers.compare import INACTIVE
from csebench.report.numbers.contrasts import Contrast, NoContrast, Obstacle
from csebench.report.numbers.printed_spread import ASSUMED_DEVIATIONS, REFERENCE_TITLE
from csebench.report.numbers.refusals import EqualScores, Refusal, Relation
from csebench.report.numbers.stats import SLACK
from csebench.report.numbers.verdict_words import VerdictWord
from csebench.report.words.comparisons import (
    OUTDATED_SCORES,
    differences_text,
    outward,
    reason_text,
    setting_difference_text,
    term_name,
)

# stands before a verdict on printed numbers that changes with the assumed deviation over seeds
DEPENDS = "◇"
_LARGEST = f"{ASSUMED_DEVIATIONS[0]:g}"
ASSUMED_DEVIATION = (
    f"“If seeds deviate by {_LARGEST}” means: if the STS average of {REFERENCE_TITLE} deviates by"
    f" {_LARGEST}, and not by what others measured. Other encoders and tasks have measured"
    f" deviations of their own. Those above that of {REFERENCE_TITLE} are scaled by the same"
    f" factor. Those below it are only capped at {_LARGEST}."
)


def on_print_text(judged: Judged) -> str:
    """Word what the printed numbers say: a verdict, its numbers, and the deviations that change it.

    `◇ *open*: A is 1.98 above B in column Avg., p = 0.1; *supported* if seeds deviate by 0.5
    or less in the STS average of BERT-base (p = 0.02 at 0.5)`
    """
    return marked_if_it_depends(judgement_text(judged.published), judged.printed_verdicts)


def marked_if_it_depends(text: str, verdicts: list[VerdictAtDeviation]) -> str:
    """Add to the text of a verdict which smaller deviations change it, with a mark. None may."""
    others = other_verdicts_text(verdicts)
    return f"{DEPENDS} {text}; {others}" if others else text


def other_verdicts_text(verdicts: list[VerdictAtDeviation]) -> str:
    """Word the verdicts at smaller deviations, with p at the largest of them.

    `*supported* if seeds deviate by 0.5 or less in the STS average of BERT-base (p = 0.02 at 0.5)`

    Args:
        verdicts: on printed numbers, at the largest deviation first.

    Returns:
        The text. It is empty if no verdict differs.
    """
    texts = []
    for at, deviations in changed_verdicts(verdicts):
        text = f"*{at.verdict}* if seeds deviate by {deviations} in the STS average of"
        text += f" {REFERENCE_TITLE}"
        if at.p is not None:
            text += f" (p = {at.p:.2g} at {at.deviation:g})"
        texts.append(text)
    return ", ".join(texts)


def short_other_verdicts(verdicts: list[VerdictAtDeviation]) -> str:
    """Word the verdicts at smaller deviations for a narrow column: `supported at 0.5 or less`."""
    return ", ".join(
        f"{at.verdict} at {deviations}" for at, deviations in changed_verdicts(verdicts)
    )


def changed_verdicts(
    verdicts: list[VerdictAtDeviation],
) -> Iterator[tuple[VerdictAtDeviation, str]]:
    """List the changes of the verdict while the deviation becomes smaller than the published one.

    Yields:
        the verdict at the largest of its deviations, and all of them: `0.5 or less`.
    """
    for _, group in groupby(verdicts, attrgetter("verdict")):
        of_verdict = list(group)
        largest = of_verdict[0]
        if largest.deviation is None:
            continue
        deviations = f"{largest.deviation:g}"
        if of_verdict[-1] == verdicts[-1]:
            deviations += " or less"
        yield largest, deviations


def judgement_text(judgement: Judgement) -> str:
    """Word a judgement: the verdict in italics, why it is not clearer, and the numbers."""
    parts = [remark_on_outcome(judgement), detail_with_reason(judgement)]
    return f"*{judgement.verdict}*: {'; '.join(part for part in parts if part)}"


def here_text(judged: Judged) -> str:
    """Word what our runs show of a claim or sentence, with the numbers.

    At the scale of the papers this is a verdict on the claim. Runs on other encoders only compare
    rows: `*higher*: A is 0.18 above B in column Avg. (the sentence says +2.60), p = 0.01`
    """
    ours = judged.ours
    if judged.scale == PAPER_SCALE:
        return judgement_text(ours)
    if len(judged.rows) > 1:
        parts = parts_text(judged.words)
        is_one_word = len(set(judged.words)) == 1
        return f"*{judged.words[0]}*: {parts}" if is_one_word else parts
    text = f"*{ours.word}*: {detail_with_reason(ours)}"
    allowed = allowed_differences(ours)
    if ours.word == VerdictWord.UNCLEAR and allowed:
        text += f"; {allowed}"
    if ours.differs:
        settings = map(setting_difference_text, ours.differs)
        text += f"; the rows also differ in {differences_text(settings)}"
    return text + tuned_away_part(judged)


def tuned_away_part(judged: Judged) -> str:
    """Word of which terms a search found no effect in our runs; empty if none."""
    parts = judged.rows or [judged]
    contrasts = chain.from_iterable(part.ours.contrasts for part in parts)
    terms = chain.from_iterable(contrast.tuned_away for contrast in contrasts)
    names = differences_text(f"the {term_name(term)}" for term in terms)
    return f"; remark: a search found no effect of {names}" if names else ""


def allowed_differences(judgement: Judgement) -> str:
    """Word which differences the 95 % intervals of our runs allow.

    It is empty if they allow any, and if a row has to be above several others: their intervals have
    no common end.
    """
    claim = judgement.claim
    if claim is None or judgement.excludes == inf:
        return ""
    bound = outward(judgement.excludes)
    is_one = len(judgement.contrasts) == 1
    intervals = "the 95 % interval allows" if is_one else "the 95 % intervals allow"
    if claim.relation == "comparable":
        return f"{intervals} a difference of at most {bound}"
    if not is_one and claim.up_to is None:
        return ""
    if judgement.excludes <= 0:
        return f"{intervals} no difference in the claimed direction"
    return f"{intervals} at most {bound} in the claimed direction"


def remark_on_outcome(judgement: Judgement) -> str:
    """Word how numbers go against a claim, or lack what it says.

    `the numbers go the other way by 0.40 (not significant)`

    Returns:
        Empty if the verdict says it, or if `picked_text` counts the comparisons that disagree.
    """
    if judgement.outcome == ClaimOutcome.UNPROVEN_SIGNIFICANCE:
        text = "the sentence says “significantly”, but"
        if isinstance(judgement.basis, PickedContrast) and judgement.basis.compared == 1:
            return f"{text} the difference is not significant"
        return f"{text} not every difference is significant"
    goes_other_way = judgement.outcome in (ClaimOutcome.AGAINST, ClaimOutcome.OTHER_WAY)
    if not goes_other_way or judgement.contrary is None or judgement.contrary <= SLACK:
        return ""
    if isinstance(judgement.basis, PickedContrast) and judgement.basis.compared > 1:
        return ""
    text = "the numbers go the other way by"
    if isinstance(judgement.basis, RowVerdicts):
        text = f"{text} up to"
        if judgement.direction == Direction.MIXED:
            text = f"in part, {text}"
    return f"{text} {judgement.contrary:.3g} ({SIGNIFICANCE_TEXTS[judgement.significance]})"


SIGNIFICANCE_TEXTS = {
    Significance.YES: "significant",
    Significance.NO: "not significant",
    Significance.INCOMPLETE: "without a test",
    Significance.UNTESTED: "without a test",
}


# ---------------------------------------------------------------- the numbers of a judgement


def detail_with_reason(judgement: Judgement) -> str:
    """Word the numbers of a judgement, after the reason why they are not all.

    `only 1 of 6 comparisons was made here (A is 0.62 above B in column Avg., p = 0.089)`
    """
    reason = why_not_all(judgement)
    detail = detail_text(judgement)
    return f"{reason} ({detail})" if reason else detail


def why_not_all(judgement: Judgement) -> str:
    """Say why some contrasts have no numbers, and how many have. Empty if all or none have."""
    made = len(judgement.contrasts)
    if not 0 < made < judgement.contrasts_asked:
        return ""
    verb = "was" if made == 1 else "were"
    counts = f"only {made} of {judgement.contrasts_asked} comparisons {verb}"
    if judgement.word == VerdictWord.CANNOT_TELL:
        return f"{counts} judged, because for others {OBSTACLES[Obstacle.CANNOT_TELL]}"
    if judgement.strict:
        return f"{counts} printed with all numbers"
    return f"{counts} made here"


def detail_text(judgement: Judgement) -> str:
    """Word the numbers that decided a judgement."""
    text = basis_text(judgement)
    if not judgement.lacks_limit or judgement.claim is None:
        return text
    if judgement.claim.relation == "not worse":
        return f"the sentence says “on par or better”, but states no limit for “on par”; {text}"
    return f"the sentence says that rows are alike, but states no limit; {text}"


def basis_text(judgement: Judgement) -> str:
    """Word what decided a judgement, by the kind of its basis."""
    match judgement.basis:
        case RowVerdicts() as basis:
            return parts_text(basis.verdicts)
        case NoContrast() as basis:
            return obstacle_text(basis)
        case PickedContrast() as basis:
            return picked_text(judgement, basis)
        case ClearestContrast() as basis:
            text = contrast_text(judgement, basis.contrast, basis.tests)
            if has_tests_in_part(judgement):
                text += f"; {untested_text(judgement)}"
            return text
        case LimitTest() as basis:
            return limit_text(judgement, basis)


def parts_text(verdicts: Iterable[ClaimVerdict] | Iterable[VerdictWord]) -> str:
    """Count the verdicts on the parts of a sentence: `4 parts: 1 supported, 3 open`.

    The text is `4 parts` if all have the same verdict.
    """
    counts = Counter(map(str, verdicts))
    parts = f"{counts.total()} parts"
    if len(counts) < 2:
        return parts
    order = list(map(str, (*ClaimVerdict, *VerdictWord)))
    listed = []
    for verdict in sorted(counts, key=order.index):
        listed.append(f"{counts[verdict]} {verdict}")
    return f"{parts}: {', '.join(listed)}"


OBSTACLES = {  # texts that need nothing else of a NoContrast
    Obstacle.NO_NUMBERS: "not all numbers of the comparison are printed",
    Obstacle.SAME_RUNS: "both rows are the same runs at this scale",
    Obstacle.CONTROL: "a row is a control",
    Obstacle.SAME_SENTENCES: "our runs are too short for the size of the corpus to matter",
    Obstacle.ONE_SEED: "one seed",
    Obstacle.EQUAL_SCORES: reason_text(EqualScores()),
    Obstacle.CANNOT_TELL: "controls of the scale fail",
}


def obstacle_text(no_contrast: NoContrast) -> str:
    """Say why two rows give no contrast."""
    match no_contrast.obstacle:
        case Obstacle.NOT_COMPARABLE:
            assert no_contrast.refusal is not None
            return refusal_text(no_contrast.refusal)
        case Obstacle.NOT_STANDARD:
            return f"the test data of {no_contrast.row} is not known to be the standard set"
    return OBSTACLES[no_contrast.obstacle]


def refusal_text(refusal: Refusal) -> str:
    """Say why our scores of two rows are not compared."""
    match refusal.relation:
        case Relation.PARTIAL:
            return "some of the runs that it needs were not made yet"
        case Relation.OUTDATED:
            return OUTDATED_SCORES
    return reason_text(refusal.reason) or refusal.relation


def picked_text(judgement: Judgement, basis: PickedContrast) -> str:
    """Word the contrast that decides whether a row is above others, after how many agree."""
    text = contrast_text(judgement, basis.contrast, basis.tests)
    if basis.compared == 1:
        return text
    counts = f"{basis.agreeing} of {basis.compared} comparisons agree"
    match basis.pick:
        case Pick.AGAINST:
            return f"{other_way_text(judgement, basis)} {text}"
        case Pick.WEAKEST:
            if has_tests_in_part(judgement):
                untested = untested_text(judgement)
                return f"{counts}; in the weakest that is tested, {text}; {untested}"
            return f"{counts}; in the weakest, {text}"
        case Pick.SMALLEST:
            return f"{counts}; in the smallest, {text}"


def other_way_text(judgement: Judgement, basis: PickedContrast) -> str:
    """Count the contrasts that go against a claim, and introduce the clearest of them.

    `1 of 49 comparisons goes the other way (not significant):`
    """
    against = basis.compared - basis.agreeing
    verb = "goes" if against == 1 else "go"
    text = f"{against} of {basis.compared} comparisons {verb} the other way"
    text += f" ({SIGNIFICANCE_TEXTS[judgement.significance]})"
    if against == 1:
        return f"{text}:"
    clearest = "largest" if basis.contrast.p is None else "clearest"
    return f"{text}; in the {clearest},"


def has_tests_in_part(judgement: Judgement) -> bool:
    """Whether some contrasts have a p and others have none."""
    return len({contrast.p is None for contrast in judgement.contrasts}) == 2


def untested_text(judgement: Judgement) -> str:
    """Say how many comparisons have no p, and why: `2 of the 4 comparisons have no test: …`"""
    untested = [contrast for contrast in judgement.contrasts if contrast.p is None]
    have = "has" if len(untested) == 1 else "have"
    comparisons = f"{len(untested)} of the {len(judgement.contrasts)} comparisons"
    return f"{comparisons} {have} no test: {no_test(untested[0])}"


def limit_text(judgement: Judgement, basis: LimitTest) -> str:
    """Word the test of the largest difference against a stated limit.

    `A is 0.14 below B in column Avg.; it is not shown that the difference is smaller than 0.4 (test
    against the limit, p = 0.71)`
    """
    if basis.p is None:
        return with_test(judgement, basis.largest, f"; {no_test(basis.largest)}")
    assert judgement.claim is not None and judgement.claim.less_than is not None
    shown = "shown" if judgement.significance == Significance.YES else "not shown"
    compared = "smaller" if judgement.direction == Direction.AGREES else "larger"
    p = p_text(basis.p, basis.tests)
    if basis.over_seeds_only:
        p += ", over seeds only"
    limit = judgement.claim.less_than.text
    test = f"; it is {shown} that the difference is {compared} than {limit}"
    test += f" (test against the limit, {p})"
    return with_test(judgement, basis.largest, test)


# ---------------------------------------------------------------- one contrast


def contrast_text(judgement: Judgement, contrast: Contrast, tests: int) -> str:
    """Word a contrast and its test.

    `A is 0.24 above B in column Avg. (the sentence says +2.60), p = 0.018`

    Args:
        tests: the number of tests that p is corrected for.
    """
    if contrast.is_inactive:
        return with_test(judgement, contrast, f", within {INACTIVE:g} points")
    if contrast.p is None:
        return with_test(judgement, contrast, f"; {no_test(contrast)}")
    test = f", {p_text(contrast.p, tests)}"
    if contrast.over_seeds_only:
        test += " over seeds only"
    return with_test(judgement, contrast, test)


def with_test(judgement: Judgement, contrast: Contrast, test: str) -> str:
    """Word a difference, followed by its test unless the judgement rests on the digits alone."""
    text = difference_text(judgement, contrast)
    if judgement.verdict == ClaimVerdict.MISPRINT:
        return text
    return f"{text}{test}"


def difference_text(judgement: Judgement, contrast: Contrast) -> str:
    """Word a difference: `A is 0.40 below SimCSE in column Avg. (the sentence says +0.2)`."""
    claim = judgement.claim
    assert claim is not None, "only the judgement on a claim has contrasts"
    difference = signed_difference(claim, contrast)
    size = f"{abs(difference):.{judgement.digits}f}"
    if is_within_row(claim, contrast.versus):
        text = columns_difference(claim, difference, size)
    elif claim.versus_column is not None:
        row = f"{subject(claim)} in {column_text(claim, contrast)}"
        text = rows_difference(claim, contrast, difference, size, row)
    else:
        text = rows_difference(claim, contrast, difference, size, subject(claim))
        text += f" in {column_text(claim, contrast)}"
    stated = stated_text(claim)
    return f"{text} (the sentence says {stated})" if stated else text


def rows_difference(
    claim: Claim, contrast: Contrast, difference: float, size: str, row: str
) -> str:
    """Word on which side of another row a row is: `A is 0.40 above B`, `A equals B`.

    Args:
        size: of the difference, as it is printed without its sign.
        row: the name of the first row.
    """
    versus = versus_name(claim, contrast.versus)
    if subject(claim) != claim.row:
        compared = "smaller" if difference < 0 else "larger"
        return f"{row} is {compared} by {size} than that of {versus}"
    if float(size) == 0:
        return f"{row} equals {versus}"
    side = "below" if difference < 0 else "above"
    return f"{row} is {size} {side} {versus}"


def columns_difference(claim: Claim, difference: float, size: str) -> str:
    """Word a difference between two columns of a row: `A is 0.40 higher in column x than in y`."""
    compared = "lower" if difference < 0 else "higher"
    columns = f"column {claim.columns[0]} than in column {claim.versus_column}"
    return f"{subject(claim)} is {size} {compared} in {columns}"


def subject(claim: Claim) -> str:
    """Name what a claim compares of its row: the row itself, its gain or its deviation."""
    if claim.gains_over:
        return f"the gain of {claim.row}"
    if claim.statistic == "std":
        return f"the deviation of {claim.row}"
    return claim.row


def column_text(claim: Claim, contrast: Contrast) -> str:
    """Name the column of a contrast. A mean that we compute is told from a column of the paper."""
    if claim.on_average:
        return "the mean of the columns"
    if contrast.less_is_better:
        return f"column {contrast.column} (less is better)"
    return f"column {contrast.column}"


def deciding_difference_text(judgement: Judgement) -> str:
    """Word the difference that decided a judgement, and the stated one: `+1.98, stated +3.94`.

    Empty if no single difference decided it.
    """
    match judgement.basis:
        case PickedContrast(contrast) | ClearestContrast(contrast) | LimitTest(contrast):
            claim = judgement.claim
            assert claim is not None, "only the judgement on a claim has contrasts"
            text = f"{signed_difference(claim, contrast):+z.{judgement.digits}f}"
            stated = stated_text(claim)
            return f"{text}, stated {stated}" if stated else text
    return ""


def signed_difference(claim: Claim, contrast: Contrast) -> float:
    """Give the difference between the rows of a claim.

    That of a contrast is positive if it agrees with the claim, also if less is better.
    """
    return -contrast.difference if claim.lower else contrast.difference


def stated_text(claim: Claim) -> str:
    """Word the size that a claim states: `+2.60`, `up to +5.91`. Empty if it states no size."""
    if claim.less_than is not None:
        return f"less than {claim.less_than.text}"
    stated = claim.by or claim.up_to
    if stated is None:
        return ""
    text = f"{stated.text} below" if claim.lower else f"+{stated.text}"
    return text if claim.by is not None else f"up to {text}"


def p_text(p: float, tests: int) -> str:
    """Word a p with Bonferroni's correction: `p = 0.072 (corrected for 4 comparisons)`."""
    text = f"p = {min(1.0, p * tests):.2g}"
    return f"{text} (corrected for {tests} comparisons)" if tests > 1 else text


def no_test(contrast: Contrast) -> str:
    """Say why a contrast has no p."""
    if contrast.has_zero_deviation:
        return "a deviation is 0"
    return "the deviation over seeds is not known" if contrast.is_printed else "one seed"


# ---------------------------------------------------------------- many sentences


def verdict_range(sentences: Iterable[Judged], *verdicts: ClaimVerdict) -> str:
    """Count the sentences that have one of these verdicts on their printed numbers.

    The text is the range over the assumed deviations: `14 to 23`, or `14` if they agree.
    """
    counts: Counter[float | None] = Counter()  # by deviation
    for sentence in sentences:
        for at in sentence.printed_verdicts:
            counts[at.deviation] += at.verdict in verdicts
    ends = dict.fromkeys((min(counts.values(), default=0), max(counts.values(), default=0)))
    return " to ".join(map(str, ends))


def open_text(sentences: Iterable[Judged]) -> str:
    """Say which sentences are open although the printed numbers do not go along with them."""
    counts = Counter(
        judged.published.outcome
        for judged in sentences
        if judged.published.verdict == ClaimVerdict.OPEN
    )
    return (
        f"In {counts[ClaimOutcome.OTHER_WAY]} open sentences, at least one comparison goes the"
        " other way, which may be chance."
        f" {counts[ClaimOutcome.UNPROVEN_SIGNIFICANCE]} others call a difference significant, but"
        " the test does not find it so."
    )


# ---------------------------------------------------------------- the claim itself


def quoted(text: str) -> str:
    """Put a text in quotation marks. Those inside become single."""
    return f"“{text.replace('“', '‘').replace('”', '’')}”"


def claim_formula(claim: Claim) -> str:
    """Word what a claim compares: `miCSE > SimCSE, PCL; column Avg.`"""
    if claim.versus == [claim.row] and is_within_row(claim, claim.row):
        sign = relation_sign(claim)
        return f"{claim.row}: column {claim.columns[0]} {sign} column {claim.versus_column}"
    row = gain_name(claim, claim.row)
    versus = versus_text(claim)
    if claim.statistic == "std":
        row = f"deviation of {claim.row}"
        versus = f"that of {versus}"
    columns = ", ".join(claim.columns)
    word = "column" if len(claim.columns) == 1 else "columns"
    if claim.on_average:
        word = f"mean of {word}"
    return f"{row} {relation_sign(claim)} {versus}; {word} {columns}"


def is_within_row(claim: Claim, versus: str) -> bool:
    """Whether a claim compares a row with itself in another column.

    Args:
        versus: label of the row that it is compared with.
    """
    is_other_column = claim.versus_column is not None and claim.versus_table is None
    return is_other_column and row_label(claim, versus) == claim.row


def row_label(claim: Claim, versus: str) -> str:
    """Give the label of the other row of a contrast, without the column that may follow it."""
    return versus.removesuffix(f" ({claim.versus_column})")


def versus_name(claim: Claim, versus: str) -> str:
    """Name the other row of a contrast: `SimCSE`, `SimCSE (Table 1, column Avg.)`, `column 1%`.

    Args:
        versus: as `Contrast` and `ClaimPower` have it.
    """
    if claim.versus_column is None:
        return versus
    if is_within_row(claim, versus):
        return f"column {claim.versus_column}"
    place = f"column {claim.versus_column}"
    if claim.versus_table:
        place = f"Table {claim.versus_table}, {place}"
    return f"{row_label(claim, versus)} ({place})"


def relation_sign(claim: Claim) -> str:
    """Give the sign between the row of a claim and the other rows."""
    match claim.relation:
        case "above":
            return "<" if claim.lower else ">"
        case "comparable":
            return "≈"
        case "not worse":
            return "≤" if claim.lower else "≥"


def versus_text(claim: Claim) -> str:
    """Word the rows that a claim compares its row with: `every other row except PCL of Table 3`."""
    text = "every other row"
    if claim.versus != "others":
        text = ", ".join(gain_name(claim, label) for label in claim.versus)
    if claim.exclude:
        text += f" except {', '.join(claim.exclude)}"
    if claim.versus_column:
        return versus_name(claim, text)
    if claim.versus_table:
        text += f" of Table {claim.versus_table}"
    return text


def gain_name(claim: Claim, label: str) -> str:
    """Name a row, or its gain: `AMI+CT`, `AMI+CT − CT`."""
    base = claim.gains_over.get(label)
    return label if base is None else f"{label} − {base}"
