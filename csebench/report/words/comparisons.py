"""Words for a comparison, and how its numbers are rounded.

They are the same on pages, in verbs, JSON and figures. Bounds are rounded outward: what lies
outside of a printed interval is excluded.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from csebench.base.terminal import capitalised, counted
from csebench.plan.catalog.files import DEFAULT_SCALE, paper
from csebench.plan.rows import short_label
from csebench.plan.schema.declarations import Training
from csebench.plan.targets import grid_label
from csebench.report.numbers.compare import INACTIVE, Answer, Comparison
from csebench.report.numbers.primary_answers import PrimaryAnswers
from csebench.report.numbers.refusals import (
    DifferentData,
    EqualScores,
    LossIsZero,
    NoRuns,
    NoSuchScore,
    PremiseNotShown,
    Reason,
    Relation,
    ReplicatesMissing,
    ScaleCannotTell,
    ScoredElsewhere,
)
from csebench.report.numbers.row_settings import (
    PROJECTOR,
    START_ENCODER,
    Setting,
    kept_differences,
    setting_name,
    setting_text,
)
from csebench.report.numbers.stats import LEVEL, SLACK
from csebench.report.numbers.tuned_away import TunedAway
from csebench.report.numbers.verdict_words import VerdictWord
from csebench.report.words.cells import elsewhere_text

SMOKE = f"Not tested: scale {DEFAULT_SCALE} only shows that the workflow runs."
MOST_ROWS = 6  # that a sentence lists
MOST_COLUMNS = 3  # of a row that a sentence lists, if not all
MOST_SETTINGS = 3  # that a sentence lists
OUTDATED_SCORES = "the scores are of older code or of other settings"
HOW_TRAINED: dict[Training, str] = {"unlabelled": "without labels", "labelled": "with labels"}
PREPOSITIONS = {  # between a verdict and the row that others are compared with
    VerdictWord.HIGHER: " than",
    VerdictWord.LOWER: " than",
    VerdictWord.SAME: " as",
}
GROUP_ORDER = [  # in which the sentence of a question names its groups
    Relation.BETTER,
    Relation.WORSE,
    Relation.NOT_SHOWN,
    Relation.INACTIVE,
    Relation.TUNED_AWAY,
    Relation.CANNOT_TELL,
    Relation.SAME_RUNS,
    Relation.ONE_SEED,
    Relation.NOT_ASKED,
    Relation.OTHER_DATA,
    Relation.UNPAIRED,
    Relation.PARTIAL,
    Relation.OUTDATED,
    Relation.NOT_RUN,
]
COMPARISON_HEAD = [
    "row",
    "against",
    "column",
    "verdict",
    "difference",
    "95 % interval",
    "p",
    "seeds",
    "what else differs",
]


# ---------------------------------------------------------------- one comparison


def sentence(comparison: Comparison) -> str:
    """Word what a comparison shows: the verdict, then the numbers or the reason.

    `A is higher than B: +0.67 (95 % +0.26 to +1.07).`
    """
    return f"{verdict_sentence(comparison)}: {details_text(comparison)}."


def verdict_sentence(comparison: Comparison) -> str:
    """Word the verdict on two rows without its numbers: `A is higher than B`."""
    row = short_label(comparison.row)
    against = short_label(comparison.against)
    word = comparison.relation.word
    match word:
        case VerdictWord.HIGHER | VerdictWord.LOWER:
            return f"{row} is {word} than {against}"
        case VerdictWord.SAME:
            return f"{row} is the {word} as {against}"
        case VerdictWord.CANNOT_TELL:
            return f"Cannot tell {row} from {against}"
        case VerdictWord.UNCLEAR | VerdictWord.NOT_TESTED:
            return f"{row} against {against} is {word}"


def details_text(comparison: Comparison) -> str:
    """Word what follows a verdict: the reason if there is one, then the difference and interval."""
    reason = reason_of_verdict(comparison)
    if comparison.estimate is None:
        return reason
    numbers = numbers_text(comparison)
    if len(comparison.pairs) > 1:
        numbers += f" on average over the columns {comparison.columns}"
    if comparison.relation == Relation.CANNOT_TELL:
        return f"{reason}; the difference is {numbers}"
    return f"{reason}; {numbers}" if reason else numbers


def reason_of_verdict(comparison: Comparison) -> str:
    """Word why a comparison has its verdict. Empty if its numbers alone decide."""
    match comparison.relation:
        case Relation.INACTIVE:
            return f"within {INACTIVE:g} points"
        case Relation.TUNED_AWAY:
            terms = " and ".join(f"the {term_name(term)}" for term in comparison.tuned_away)
            return f"the search found no effect of {terms} (at most {INACTIVE:g} points)"
        case Relation.SAME_RUNS:
            return "both rows are the same runs at this scale"
        case Relation.ONE_SEED:
            return "one seed"
        case Relation.OUTDATED:
            return OUTDATED_SCORES
        case Relation.PARTIAL:
            scored, runs = comparison.scored
            return f"{scored} of {runs} runs are scored"
    return reason_text(comparison.reason)


def numbers_text(comparison: Comparison) -> str:
    """Write the difference and its interval: `+0.67 (95 % +0.26 to +1.07)`.

    Only the difference is written if nothing is tested.
    """
    assert comparison.estimate is not None
    difference = f"{comparison.estimate.gain:+z.2f}"
    interval = verdict_interval(comparison)
    if interval is None:
        return difference
    return f"{difference} ({interval.percent} % {outward_range(interval.low, interval.high, '+')})"


@dataclass(frozen=True)
class VerdictInterval:
    """The interval that a verdict rests on, in points."""

    percent: int
    low: float
    high: float


def verdict_interval(comparison: Comparison) -> VerdictInterval | None:
    """Give the interval that the verdict of a comparison rests on; None if nothing is tested.

    It holds for all comparisons of a question at once. Two rows are shown to be the same by an
    interval of 90 %, because each of its ends is tested at 5 %.
    """
    if comparison.family_low is None or comparison.family_high is None:
        return None
    if comparison.relation.word != VerdictWord.SAME:
        return VerdictInterval(95, comparison.family_low, comparison.family_high)
    assert comparison.estimate is not None
    low, high = comparison.estimate.interval(2 * LEVEL / comparison.family_size)
    return VerdictInterval(90, low, high)


def reason_text(reason: Reason | None) -> str:
    """Word why two rows are not compared; empty without a reason."""
    match reason:
        case NoRuns(row, stated):
            return stated or f"{row} has no runs"
        case NoSuchScore():
            return "the evaluator gave no such score"
        case LossIsZero(row):
            return f"the loss of {row} is 0 from the start, so training changes nothing"
        case EqualScores():
            return "both rows have the same score in every run"
        case PremiseNotShown(row, most, less, loss, least, printed):
            unit = "point" if least == 1 else "points"
            return (
                f"the question presumes that {row} loses significantly more than {least:g} {unit}"
                f" in {less}, compared with {most}; here it loses only {loss:z.1f} points (in the"
                f" paper: {printed})"
            )
        case ScaleCannotTell():
            return cannot_tell_text(reason)
        case ScoredElsewhere(cell):
            return f"{cell.plan.row.label}: {elsewhere_text(cell)}"
        case DifferentData():
            return different_data_text(reason)
        case ReplicatesMissing(row, evaluator, lacking, runs):
            count = f"{lacking} of {runs} runs of {row}"
            return f"{count} have no replicates over the test items of {evaluator}"
    return ""


def cannot_tell_text(reason: ScaleCannotTell) -> str:
    """Word why a scale gives no verdict on methods of a kind, and how many of its controls fail."""
    how = HOW_TRAINED[reason.training]
    verb = "fails" if reason.failed == 1 else "fail"
    controls = f"{reason.failed} of its {reason.controls} controls {verb}"
    return f"scale {reason.scale} does not tell methods trained {how} apart ({controls})"


def different_data_text(reason: DifferentData) -> str:
    """Word that two rows have different test data, with the hashes in which the data differ.

    `A and B are scored on different test data (sts: data 0123456789ab and data 94b655eb25db)`
    """
    first = reason.first
    second = reason.second
    assert first.data is not None and second.data is not None
    hashes = f"{first.data.text_beside(second.data)} and {second.data.text_beside(first.data)}"
    rows = f"{first.plan.row.label} and {second.plan.row.label}"
    return f"{rows} are scored on different test data ({second.plan.evaluator}: {hashes})"


def comparison_row(comparison: Comparison) -> list[str]:
    """Write a row of the table of declared comparisons, with a cell for each of COMPARISON_HEAD."""
    word = comparison.relation.word
    labels = [comparison.row, comparison.against, comparison.columns]
    estimate = comparison.estimate
    if estimate is None:
        return [*labels, f"{word}: {reason_of_verdict(comparison)}", "–", "–", "–", "–", "–"]
    if word == VerdictWord.NOT_TESTED:
        verdict = f"{word}: {reason_of_verdict(comparison)}"
    else:
        verdict = str(word)
    interval = "–"
    if comparison.family_low is not None and comparison.family_high is not None:
        interval = outward_range(comparison.family_low, comparison.family_high, "+")
    p = "–"
    if comparison.p_family is not None:
        p = f"{comparison.p_family:.2g}"
    settings = ", ".join(setting_difference_text(setting) for setting in comparison.differs) or "–"
    numbers = [f"{estimate.gain:+z.2f}", interval, p, str(estimate.seeds)]
    return [*labels, verdict, *numbers, settings]


# ---------------------------------------------------------------- settings


def other_settings_text(comparisons: Iterable[Comparison]) -> str:
    """Word the settings that differ although the comparison is about something else.

    `Besides what is compared, these settings differ: learning rate (3e-5 vs. 1e-4).`

    Settings that a method keeps by definition are named after them, without values. The text is
    empty if no other setting differs. Comparisons without an estimate are left out. Only the first
    settings are listed, so a start encoder or projector that differs comes first.
    """
    tested = [comparison for comparison in comparisons if comparison.estimate]
    settings = [setting for comparison in tested for setting in comparison.differs]
    if not settings:
        return ""
    where = ""
    unmatched = sum(bool(comparison.differs) for comparison in tested)
    if len({comparison.differs for comparison in tested}) > 1:
        where = f" in {unmatched} of {len(tested)} comparisons"
    settings.sort(key=lambda setting: setting.name not in (START_ENCODER, PROJECTOR))
    texts = []
    counts = Counter(map(setting_difference_text, settings))
    is_in_all = min(counts.values()) >= unmatched
    for text, count in counts.items():
        texts.append(text if is_in_all else f"{text} in {count}")
    text = f"Besides what is compared, these settings differ{where}: {differences_text(texts)}."
    kept: list[str] = []
    for comparison in tested:
        kept += kept_differences(comparison.pairs)
    if kept:
        names = ", ".join(dict.fromkeys(kept))
        text += f" Methods also keep settings of their own, which are not counted: {names}."
    return text


def setting_difference_text(setting: Setting) -> str:
    """Word a setting with both values: `learning rate (3e-5 vs. 1e-4)`."""
    return f"{setting.name} ({setting.here} vs. {setting.there})"


def differences_text(texts: Iterable[str]) -> str:
    """Join the texts of settings; list only the first of many: `a, b, c and 2 more`."""
    different = list(dict.fromkeys(texts))
    text = ", ".join(different[:MOST_SETTINGS])
    if len(different) > MOST_SETTINGS:
        text += f" and {len(different) - MOST_SETTINGS} more"
    return text


def remarks(comparisons: Sequence[Comparison]) -> str:
    """Word what else a reader has to know of comparisons: unmatched settings and tuned-away terms.

    If a comparison shows no difference because a term is tuned away, the text says what the search
    tried. Other tuned-away terms are only named. The text is empty if there is nothing to say.
    """
    explained: list[TunedAway] = []
    others: list[TunedAway] = []
    for comparison in comparisons:
        if comparison.relation == Relation.TUNED_AWAY:
            explained += comparison.tuned_away
        else:
            others += comparison.tuned_away
    texts = [tuned_away_text(term) for term in explained]
    texts += [term_name(term) for term in others if term not in explained]
    sentences = [other_settings_text(comparisons), tuned_away_sentence(texts)]
    return " ".join(sentence for sentence in sentences if sentence)


def tuned_away(terms: Iterable[TunedAway]) -> str:
    """Word of which terms a search found no effect, and what it tried. Empty if there are none."""
    return tuned_away_sentence(tuned_away_text(term) for term in terms)


def tuned_away_sentence(texts: Iterable[str]) -> str:
    """Join the texts of terms: `A search found no effect of the A, the B and 2 more. …`"""
    terms = differences_text(f"the {text}" for text in texts)
    if not terms:
        return ""
    return (
        f"A search found no effect of {terms}. So comparisons of these rows do not show what such a"
        " term does."
    )


def term_name(term: TunedAway) -> str:
    """Name a term by its weight and row: `reconstruction in InforMin-CL`."""
    return f"{setting_name(term.search.parameter)} in {short_label(term.row)}"


def tuned_away_text(term: TunedAway) -> str:
    """Word a term, its scores on dev, and the weights that the search tried.

    `λ in A (on STS-B dev, the chosen weight 3e-5 scores 63.87, the weight 1e-5 scores 63.85, the
    declared weight 0.4 scores 62.46; 12 weights were tried, from 1e-5 to 4, not 0)`
    """
    search = term.search
    weakest = search.weakest
    chosen = search.chosen
    untuned = search.untuned
    choice = setting_text(chosen.weight)
    if untuned == chosen:
        scores = [f"the declared weight {choice}, which is used, scores {chosen.dev:.2f}"]
    else:
        scores = [f"the chosen weight {choice} scores {chosen.dev:.2f}"]
    if weakest != chosen:
        scores.append(f"the weight {setting_text(weakest.weight)} scores {weakest.dev:.2f}")
    if untuned is not None and untuned not in (chosen, weakest):
        declared = setting_text(untuned.weight)
        scores.append(f"the declared weight {declared} scores {untuned.dev:.2f}")

    ends = f"{setting_text(weakest.weight)} to {setting_text(search.strongest)}"
    tried = f"{search.values} weights were tried, from {ends}"
    if weakest.weight > 0:
        tried += ", not 0"
    return f"{term_name(term)} (on STS-B dev, {', '.join(scores)}; {tried})"


# ---------------------------------------------------------------- a question


def family_sentence(answer: Answer) -> str:
    """Word the answer to a question, without the settings that are not matched.

    The comparisons with one verdict are named together, with their differences and intervals.
    """
    comparisons = answer.comparisons
    if len(comparisons) == 1:
        return sentence(comparisons[0])
    groups: dict[Relation, list[Comparison]] = {}
    for relation in GROUP_ORDER:
        group = [comparison for comparison in comparisons if comparison.relation == relation]
        if group:
            groups[relation] = group

    parts = []
    expects_gains = not answer.family.equality
    if expects_gains and next(iter(groups)) == Relation.WORSE:
        parts.append(f"{VerdictWord.HIGHER}: none of {len(those_run(comparisons))}")
    for relation, group in groups.items():
        parts.append(group_text(relation, group, answer))
    return f"{capitalised('; '.join(parts))}."


def primary_answers_text(answers: PrimaryAnswers) -> str:
    """Say how many primary answers of a scale are significant, before and after Holm's correction.

    Empty if none is tested.
    """
    if not answers.tested:
        return ""
    places = [f"{paper(name).label} {grid_label(table)}" for name, table in answers.tested]
    return (
        "Apart from these, each table or figure below has questions of its own. The main one is its"
        f" *primary question*. {counted(len(places), 'primary question')} can be tested here"
        f" ({', '.join(places)}). Significant answers: {answers.significant or 'none'}; with Holm's"
        f" correction over all tested primary questions: {answers.after_holm or 'none'}. A claim of"
        " the paper can need more rows than a question, and is then not tested."
    )


def those_run(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Leave out the comparisons of rows that are not run."""
    return [comparison for comparison in comparisons if comparison.relation != Relation.NOT_RUN]


def group_text(relation: Relation, group: Sequence[Comparison], answer: Answer) -> str:
    """Word which comparisons of a question have a relation: `lower than SimCSE, PCL (…)`."""
    comparisons = answer.comparisons
    word = relation.word
    reason = shared_reason(group)
    is_ranked = word in (VerdictWord.HIGHER, VerdictWord.LOWER)
    if len(group) == len(comparisons) and not is_ranked:
        text = f"{word}: {reason}" if reason else str(word)
    else:
        text = f"{word} ({reason})" if reason else str(word)
        # Comparisons that are run are counted among those that are run, all others among all.
        is_not_run = relation == Relation.NOT_RUN
        text += distinguishing_names(group, comparisons if is_not_run else those_run(comparisons))
    if word not in (VerdictWord.CANNOT_TELL, VerdictWord.NOT_TESTED):
        text += f" ({numbers_of_group(group)})"
    return text


def shared_reason(group: Sequence[Comparison]) -> str:
    """Word the reason that all comparisons of a group have; empty if there are several or none.

    The reason why a scale cannot tell is left out, because a page says it once.
    """
    if group[0].relation == Relation.CANNOT_TELL:
        return ""
    if group[0].relation == Relation.TUNED_AWAY:
        return f"the search found no effect of the term (at most {INACTIVE:g} points)"
    reasons = {reason_of_verdict(comparison) for comparison in group}
    return reasons.pop() if len(reasons) == 1 else ""


def numbers_of_group(group: Sequence[Comparison]) -> str:
    """Write the differences of tested comparisons, and a range that holds all of their intervals.

    `-0.12 to +0.30; all 95 % intervals within -0.55 to +0.61`
    """
    gains = [comparison.estimate.gain for comparison in group if comparison.estimate]
    intervals = [interval for interval in map(verdict_interval, group) if interval is not None]
    ends = dict.fromkeys(f"{gain:+z.2f}" for gain in (min(gains), max(gains)))
    low = min(interval.low for interval in intervals)
    high = max(interval.high for interval in intervals)
    bounds = outward_range(low, high, "+")
    percent = intervals[0].percent
    if len(group) == 1:
        return f"{ends.popitem()[0]}; {percent} % {bounds}"
    return f"{' to '.join(ends)}; all {percent} % intervals within {bounds}"


@dataclass(frozen=True)
class Variety:
    """How many different rows and columns the comparisons of a question have."""

    rows: int
    bases: int  # rows that others are compared with
    columns: int


def distinguishing_names(comparisons: Sequence[Comparison], family: Sequence[Comparison]) -> str:
    """Name the rows or columns of a few comparisons of a question, to follow a verb.

    - `: SimCSE, PCL` if the question is about several rows
    - ` than SimCSE` or ` against SimCSE` if it compares one row with several
    - ` in 1%, 10%` if it compares two rows in several columns
    - `: 12 of 40` if there are too many names to list
    """
    variety = Variety(
        rows=len({comparison.row for comparison in family}),
        bases=len({comparison.against for comparison in family}),
        columns=len({comparison.columns for comparison in family}),
    )
    columns_of: dict[str, list[str]] = {}
    for comparison in comparisons:
        name = name_in_question(comparison, variety)
        columns_of.setdefault(name, []).append(comparison.columns)

    only_columns_differ = variety.rows == variety.bases == 1 and variety.columns > 1
    if only_columns_differ:
        names = [comparison.columns for comparison in comparisons]
    else:
        names = [with_columns(name, columns_of[name], variety) for name in columns_of]
    if len(names) > MOST_ROWS or has_many_columns(columns_of.values(), variety):
        return f": {len(comparisons)} of {len(family)}"

    if only_columns_differ:
        word = " in"
    elif variety.rows > 1:
        word = ":"
    else:
        word = PREPOSITIONS.get(comparisons[0].relation.word, " against")
    return f"{word} {', '.join(names)}"


def name_in_question(comparison: Comparison, variety: Variety) -> str:
    """Name a comparison by what varies in its question: by its row, its base, or both."""
    row = short_label(comparison.row)
    against = short_label(comparison.against)
    if variety.rows == 1:
        return against
    if variety.bases > 1 and against not in row:
        return f"{row} against {against}"
    return row


def has_many_columns(columns_of_rows: Iterable[Sequence[str]], variety: Variety) -> bool:
    """Whether some row needs a list of too many columns. A row with all columns needs no list."""
    counts = [len(columns) for columns in columns_of_rows]
    return any(count > MOST_COLUMNS and count != variety.columns for count in counts)


def with_columns(name: str, columns: Sequence[str], variety: Variety) -> str:
    """Add columns to a name, unless they are all columns of the question."""
    if len(columns) >= variety.columns:
        return name
    return f"{name} ({', '.join(columns)})"


# ---------------------------------------------------------------- numbers and labels


def outward_range(low: float, high: float, sign: str = "") -> str:
    """Write a range with two decimals, rounded outward: `74.16 to 75.15`.

    Args:
        sign: `+` writes the sign of positive numbers, too: `-0.21 to +0.15`.
    """
    lower = floor(100 * low + SLACK) / 100
    upper = ceil(100 * high - SLACK) / 100
    return f"{lower:{sign}z.2f} to {upper:{sign}z.2f}"


def outward(bound: float, is_lower: bool = False) -> str:
    """Round an upper bound up, or a lower bound down. One decimal; two if it is below 0.2."""
    digits = 2 if abs(bound) < 0.2 else 1
    scaled = bound * 10**digits
    whole = floor(scaled + SLACK) if is_lower else ceil(scaled - SLACK)
    return f"{whole / 10**digits:z.{digits}f}"


def ends_text(counts: Iterable[int]) -> str:
    """Word the lowest and the highest number of seeds, without 0: `1 to 3`, `3`, `no`."""
    present = sorted({*counts} - {0})
    if not present:
        return "no"
    if len(present) == 1:
        return str(present[0])
    return f"{present[0]} to {present[-1]}"
