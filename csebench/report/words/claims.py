"""Sentences for judgements on papers' claims: on pages, in verbs and in JSON.

The judgements themselves are in csebench/report/numbers/claims.py. How pages arrange the sentences
is in csebench/report/pages/claims.py.
"""

from collections import Counter
from collections.abc import Iterable
from math import inf

from csebench.plan.schema.paper import Claim
from csebench.report.numbers.cells import PAPER_SCALE
from csebench.report.numbers.claims import (
    ClaimVerdict,
    ClearestContrast,
    Direction,
    Judged,
    Judgement,
    LimitTest,
    PickedContrast,
    RowVerdicts,
    Seen,
    Significance,
    StatedSize,
)
from csebench.report.numbers.compare import INACTIVE
from csebench.report.numbers.contrasts import Contrast, NoContrast, Obstacle
from csebench.report.numbers.refusals import EqualScores
from csebench.report.numbers.stats import SLACK
from csebench.report.words.comparisons import (
    differences_text,
    outward,
    reason_text,
    setting_difference_text,
)


def judgement_text(judgement: Judgement) -> str:
    """Word a judgement: the verdict in italics, then the numbers."""
    numbers = "; ".join([detail_text(judgement), *notes(judgement)])
    return f"*{verdict_and_size(judgement)}*: {numbers}"


def here_text(judged: Judged) -> str:
    """Word what our runs show of a claim or sentence, with the numbers.

    At the scale of the papers this is a verdict. On other encoders it is only what was seen.
    """
    ours = judged.ours
    if judged.scale == PAPER_SCALE:
        return judgement_text(ours)
    if len(judged.rows) > 1:
        detail = parts_text(row.ours.seen for row in judged.rows)
    else:
        detail = detail_text(ours)
    if ours.seen == Seen.UNASKED:
        return f"{ours.seen}: {'; '.join([detail, *notes(ours)])}"
    text = f"*{ours.seen}*: {detail}"
    if ours.seen == Seen.NOT_SEEN and ours.excludes < inf:
        text += f"; {excluded_differences(ours.excludes)}"
    if ours.differs:
        settings = map(setting_difference_text, ours.differs)
        text += f"; not matched: {differences_text(settings)}"
    return text


def excluded_differences(bound: float) -> str:
    """Word which differences in the claim's direction are excluded."""
    if bound <= 0:
        return "any such difference is excluded"
    return f"above {outward(bound)} is excluded"


def verdict_and_size(judgement: Judgement) -> str:
    """Word a verdict: `supported, of another size`, `contradicted, by 0.02 (not significant)`."""
    text = str(judgement.verdict)
    if judgement.verdict == ClaimVerdict.CONTRADICTED:
        if judgement.contrary is not None:
            text += f", {contrary_text(judgement.contrary, judgement.significance)}"
        elif judgement.direction == Direction.AGREES:
            text += ", as not significant"
    if judgement.size == StatedSize.OTHER:
        text += ", of another size"
    return text


def contrary_text(contrary: float, significance: Significance) -> str:
    """Word by how much numbers go against the claim: `by 0.02 (not significant)`."""
    text = f"by {contrary:.3g}" if contrary > SLACK else "by less than rounding"
    match significance:
        case Significance.YES:
            return text
        case Significance.NO:
            return f"{text} (not significant)"
        case Significance.UNTESTED:
            return f"{text} (not tested)"


# ---------------------------------------------------------------- the numbers of a judgement


def notes(judgement: Judgement) -> list[str]:
    """Say how many contrasts could be made, if not all of them."""
    made = len(judgement.contrasts)
    if 0 < made < judgement.contrasts_asked:
        return [f"{made} of {judgement.contrasts_asked} comparisons can be made"]
    return []


def detail_text(judgement: Judgement) -> str:
    """Word the numbers that decided a judgement."""
    text = basis_text(judgement)
    return f"no limit is stated; {text}" if judgement.lacks_limit else text


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
            if basis.others_untested:
                text += f"; of others {no_test(basis.contrast)}"
            return text
        case LimitTest() as basis:
            return limit_text(judgement, basis)


def parts_text(verdicts: Iterable[ClaimVerdict | Seen]) -> str:
    """Count verdicts: `4 parts: 1 supported, 3 not shown`, or `4 parts` if all are the same."""
    counts = Counter(verdicts)
    text = f"{counts.total()} parts"
    if len(counts) < 2:
        return text
    found = [verdict for verdict in (*ClaimVerdict, *Seen) if verdict in counts]
    listed = [f"{counts[verdict]} {verdict}" for verdict in found]
    return f"{text}: {', '.join(listed)}"


def obstacle_text(no_contrast: NoContrast) -> str:
    """Say why two rows give no contrast."""
    match no_contrast.obstacle:
        case Obstacle.NO_NUMBERS:
            return "no numbers to compare"
        case Obstacle.SAME_RUNS:
            return "both rows are the same runs at this scale"
        case Obstacle.NOT_COMPARABLE:
            assert no_contrast.refusal is not None
            return reason_text(no_contrast.refusal.reason) or no_contrast.refusal.relation
        case Obstacle.CONTROL:
            return "a row is a control"
        case Obstacle.NOT_STANDARD:
            return f"the test data of {no_contrast.row} is not known to be the standard set"
        case Obstacle.SAME_SENTENCES:
            return "runs see fewer sentences than either column has"
        case Obstacle.ONE_SEED:
            return "one seed"
        case Obstacle.EQUAL_SCORES:
            return reason_text(EqualScores())
        case Obstacle.INACTIVE:
            return f"the difference stays within {INACTIVE:g} points"


def picked_text(judgement: Judgement, basis: PickedContrast) -> str:
    """Word the contrast that decides whether a row is above others, after how many agree."""
    text = contrast_text(judgement, basis.contrast, basis.tests)
    if basis.compared == 1:
        return text
    return f"{basis.agreeing} of {basis.compared} comparisons agree; {basis.pick}: {text}"


def limit_text(judgement: Judgement, basis: LimitTest) -> str:
    """Word the test of the largest difference against a stated limit."""
    text = difference_text(judgement, basis.largest)
    if basis.p is None:
        return f"{text}; {no_test(basis.largest)}"
    text += f", {p_text(basis.p, basis.tests)} against the limit"
    if basis.over_seeds_only:
        text += ", over seeds only"
    return text


# ---------------------------------------------------------------- one contrast


def contrast_text(judgement: Judgement, contrast: Contrast, tests: int) -> str:
    """Word a contrast and its test: `+0.24 over SimCSE in Avg. (claimed: +2.60), p = 0.018`.

    Args:
        tests: the number of tests that p is corrected for.
    """
    text = difference_text(judgement, contrast)
    if contrast.p is None:
        return f"{text}; {no_test(contrast)}"
    text += f", {p_text(contrast.p, tests)}"
    if contrast.over_seeds_only:
        text += " over seeds only"
    return text


def difference_text(judgement: Judgement, contrast: Contrast) -> str:
    """Word a difference: `0.40 below SimCSE in Avg. (claimed: less than 0.4)`."""
    claim = judgement.claim
    assert claim is not None, "only the judgement on a claim has contrasts"
    # the difference of a contrast is positive if it agrees with the claim, also if less is better
    difference = -contrast.difference if claim.lower else contrast.difference
    size = f"{abs(difference):.{judgement.digits}f}"
    text = f"+{size} over" if difference >= 0 else f"{size} below"
    text += f" {contrast.versus} in {contrast.column}"
    if claim.statistic == "std":
        text = f"deviation {text}"
    if claim.gains_over:
        text = f"gain {text}"
    claimed = claimed_text(claim)
    return f"{text} (claimed: {claimed})" if claimed else text


def claimed_text(claim: Claim) -> str:
    """Word the size that a claim states: `+2.60`, `up to +5.91`. Empty if it states no size."""
    if claim.less_than is not None:
        return f"less than {claim.less_than.text}"
    stated = claim.by or claim.up_to
    if stated is None:
        return ""
    text = f"{stated.text} below" if claim.lower else f"+{stated.text}"
    return text if claim.by is not None else f"up to {text}"


def p_text(p: float, tests: int) -> str:
    """Word a p with Bonferroni's correction: `p = 0.072 for 4 comparisons`."""
    text = f"p = {min(1.0, p * tests):.2g}"
    return f"{text} for {tests} comparisons" if tests > 1 else text


def no_test(contrast: Contrast) -> str:
    """Say why a contrast has no p."""
    return "the spread is not known" if contrast.is_printed else "one seed"


# ---------------------------------------------------------------- the claim itself


def claim_formula(claim: Claim) -> str:
    """Word what a claim compares: `miCSE > SimCSE, PCL; column Avg.`"""
    row = gain_name(claim, claim.row)
    if claim.statistic == "std":
        row = f"deviation of {claim.row}"
    columns = ", ".join(claim.columns)
    if claim.on_average:
        columns = f"the average of {columns}"
    word = "column" if len(claim.columns) == 1 else "columns"
    return f"{row} {relation_sign(claim)} {versus_text(claim)}; {word} {columns}"


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
    """Word the rows that a claim compares its row with: `every other row but PCL of Table 3`."""
    text = "every other row"
    if claim.versus != "others":
        text = list_names([gain_name(claim, label) for label in claim.versus])
    if claim.exclude:
        text += f" but {list_names(claim.exclude)}"
    if claim.versus_table:
        text += f" of Table {claim.versus_table}"
    if claim.versus_column:
        text += f" ({claim.versus_column})"
    return text


def gain_name(claim: Claim, label: str) -> str:
    """Name a row, or its gain: `AMI+CT`, `AMI+CT − CT`."""
    base = claim.gains_over.get(label)
    return label if base is None else f"{label} − {base}"


def list_names(labels: list[str]) -> str:
    """List up to three names, or count the rows."""
    return ", ".join(labels) if len(labels) <= 3 else f"{len(labels)} rows"
