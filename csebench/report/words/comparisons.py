"""Words for a comparison, and how its numbers are rounded.

They are the same on pages, in verbs, JSON and figures. Bounds are rounded outward: if a sentence
says that a value is excluded, it is.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from csebench.plan.catalog.files import DEFAULT_SCALE
from csebench.plan.schema.declarations import Training
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
    setting_name,
    setting_text,
)
from csebench.report.numbers.stats import SLACK
from csebench.report.numbers.tuned_away import TunedAway
from csebench.report.words.cells import elsewhere_text

SMOKE = f"No answer: scale {DEFAULT_SCALE} only shows that the workflow runs."
MOST_ROWS = 6  # that a sentence lists
MOST_COLUMNS = 3  # of a row that a sentence lists, if not all
MOST_SETTINGS = 3  # that a sentence lists
HOW_TRAINED: dict[Training, str] = {"unlabelled": "without labels", "labelled": "with labels"}
VERBS = {  # in the order in which the sentence of a question has them
    Relation.BETTER: "better",
    Relation.WORSE: "worse",
    Relation.NOT_SHOWN: "no gain shown",
    Relation.INACTIVE: f"changes nothing here (within {INACTIVE:g} points)",
    Relation.TUNED_AWAY: f"tuned away by the search (within {INACTIVE:g} points)",
    Relation.CANNOT_TELL: "cannot tell",
    Relation.SAME_RUNS: "the same runs as what they are compared with",
    Relation.ONE_SEED: "one seed, so that chance is not excluded",
    Relation.NOT_ASKED: "cannot be asked here",
    Relation.OTHER_DATA: "scored on other test data",
    Relation.UNPAIRED: "not all runs have replicates over test items",
    Relation.PARTIAL: "not all runs are scored",
    Relation.OUTDATED: "scores of older code",
    Relation.NOT_RUN: "not run here",
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


# ---------------------------------------------------------------- one comparison


def sentence(comparison: Comparison, equality: bool = False) -> str:
    """Word what a comparison shows, in one sentence, without the settings that are not matched.

    Args:
        equality: the question is whether both rows are equal, not whether the first is better.
    """
    if comparison.estimate is None:
        return sentence_without_estimate(comparison)
    row = short_label(comparison.row)
    against = short_label(comparison.against)
    gain = comparison.estimate.gain
    low = comparison.low or 0.0
    high = comparison.high or 0.0
    match comparison.relation:
        case Relation.ONE_SEED:
            side = "above" if gain >= 0 else "below"
            points = f"{row} scores {abs(gain):.2f} points {side} {against}"
            return f"{points}, with one seed: chance is not excluded."
        case Relation.CANNOT_TELL:
            difference = f"{row} from {against} ({gain:+z.2f})"
            return f"Cannot tell {difference}: {reason_text(comparison.reason)}."
        case Relation.INACTIVE:
            return f"{row} and {against} score the same here, within {INACTIVE:g} points."
        case Relation.TUNED_AWAY:
            terms = " and ".join(f"the {term_name(term)}" for term in comparison.tuned_away)
            stays = f"{row} stays within {INACTIVE:g} points of {against} here"
            return f"{stays}: the search tuned {terms} away."
        case Relation.BETTER:
            ends = f"{outward(low, is_lower=True)} to {outward(high)}"
            return f"{row} beats {against} here, by {ends} points."
        case Relation.WORSE:
            ends = f"{outward(-high, is_lower=True)} to {outward(-low)}"
            return f"{row} is worse than {against} here, by {ends} points."
    if equality:
        bound = f"more than {outward(max(-low, high))} points is excluded"
        return f"{row} is not shown to differ from {against} here ({gain:+z.2f}); {bound}."
    return f"{row} is not shown to beat {against} here ({gain:+z.2f}); {excluded(high)}."


def sentence_without_estimate(comparison: Comparison) -> str:
    """Word why a comparison shows nothing."""
    reason = reason_text(comparison.reason)
    match comparison.relation:
        case Relation.SAME_RUNS:
            rows = f"{short_label(comparison.row)} and {short_label(comparison.against)}"
            return f"{rows} are the same runs at this scale."
        case Relation.NOT_ASKED:
            return f"Cannot be asked here: {reason}."
        case Relation.NOT_RUN:
            return f"Not run here: {reason}."
        case Relation.OTHER_DATA | Relation.UNPAIRED:
            return f"Cannot be compared: {reason}."
        case Relation.OUTDATED:
            return "No answer: the scores are of older code or of other settings."
        case Relation.PARTIAL:
            scored, runs = comparison.scored
            return f"No answer yet: {scored} of {runs} runs are scored."
    raise ValueError(f"a comparison that is {comparison.relation} has an estimate")


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
        case PremiseNotShown(row, loss, least, printed):
            loss_here = f"{row} itself loses {loss:z.1f} points, not shown to be over {least:g}"
            return f"{loss_here} (in the paper {printed})"
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
    """Word why a scale gives no verdict on methods of a kind, and how many of its controls hold."""
    how = HOW_TRAINED[reason.training]
    controls = f"controls: {reason.held} of {reason.controls}"
    return (
        f"at scale {reason.scale}, training {how} changes nothing that these test sets can see"
        f" ({controls})"
    )


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


def excluded(high: float, gains: str = "a gain above {} points is excluded") -> str:
    """Word which gains an upper bound excludes: `a gain above 0.5 points is excluded`.

    Args:
        high: the upper bound; if it is not positive, any gain is excluded.
        gains: the text around the bound.
    """
    if high <= 0:
        return "any gain is excluded"
    return gains.format(outward(high))


def comparison_row(comparison: Comparison) -> list[str]:
    """Write a row of the table of declared comparisons, with a cell for each of COMPARISON_HEAD."""
    rows = [comparison.row, comparison.against, comparison.columns]
    estimate = comparison.estimate
    if estimate is None:
        why = reason_text(comparison.reason) or comparison.relation
        return [*rows, "–", "–", "–", "–", why]
    interval = "–"
    if comparison.family_low is not None and comparison.family_high is not None:
        interval = outward_range(comparison.family_low, comparison.family_high, "+")
    p = "–"
    if comparison.p_family is not None:
        p = f"{comparison.p_family:.2g}"
    settings = ", ".join(setting_difference_text(setting) for setting in comparison.differs) or "–"
    return [*rows, f"{estimate.gain:+z.2f}", interval, p, str(estimate.seeds), settings]


# ---------------------------------------------------------------- settings


def not_matched(comparisons: Iterable[Comparison]) -> str:
    """Word the settings that differ: `Not matched: learning rate 3e-5 against 1e-4.`

    The text is empty if no setting differs. Comparisons without an estimate are left out. Only the
    first settings are listed, so a start encoder or projector that differs comes first.
    """
    tested = [comparison for comparison in comparisons if comparison.estimate]
    settings = [setting for comparison in tested for setting in comparison.differs]
    if not settings:
        return ""
    where = ""
    if len({comparison.differs for comparison in tested}) > 1:
        unmatched = sum(bool(comparison.differs) for comparison in tested)
        where = f" in {unmatched} of {len(tested)} comparisons"
    settings.sort(key=lambda setting: setting.name not in (START_ENCODER, PROJECTOR))
    return f"Not matched{where}: {differences_text(map(setting_difference_text, settings))}."


def setting_difference_text(setting: Setting) -> str:
    """Word a setting with both values: `learning rate 3e-5 against 1e-4`."""
    return f"{setting.name} {setting.here} against {setting.there}"


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
    sentences = [not_matched(comparisons), tuned_away_sentence(texts)]
    return " ".join(sentence for sentence in sentences if sentence)


def tuned_away(terms: Iterable[TunedAway]) -> str:
    """Word which terms a search left without effect, and what it tried. Empty if there are none."""
    return tuned_away_sentence(tuned_away_text(term) for term in terms)


def tuned_away_sentence(texts: Iterable[str]) -> str:
    """Join the texts of terms: `Tuned away: A, B and 2 more.`"""
    terms = differences_text(texts)
    return f"Tuned away: {terms}." if terms else ""


def term_name(term: TunedAway) -> str:
    """Name a term by its weight and row: `reconstruction of InforMin-CL`."""
    return f"{setting_name(term.search.parameter)} of {short_label(term.row)}"


def tuned_away_text(term: TunedAway) -> str:
    """Word a term, the weights that the search tried, and their scores on dev.

    `λ of A (of 12 weights from 1e-5 to 4 the search chose 3e-5, with 63.87 on dev; 1e-5 has 63.85,
    the paper's 0.4 has 62.46; 0 was not tried)`
    """
    search = term.search
    weakest = search.weakest
    chosen = search.chosen
    untuned = search.untuned
    ends = f"{setting_text(weakest.weight)} to {setting_text(search.strongest)}"
    choice = setting_text(chosen.weight)
    if untuned == chosen:
        choice = f"the paper's {choice}"
    others = []
    if weakest != chosen:
        others.append(f"{setting_text(weakest.weight)} has {weakest.dev:.2f}")
    if untuned is not None and untuned not in (chosen, weakest):
        others.append(f"the paper's {setting_text(untuned.weight)} has {untuned.dev:.2f}")

    text = f"of {search.values} weights from {ends} the search chose {choice}"
    text += f", with {chosen.dev:.2f} on dev"
    if others:
        text += f"; {', '.join(others)}"
    if weakest.weight > 0:
        text += "; 0 was not tried"
    return f"{term_name(term)} ({text})"


# ---------------------------------------------------------------- a question


def family_sentence(answer: Answer) -> str:
    """Word the answer to a question, without the settings that are not matched.

    The sentence says which rows are better or worse. For the other rows it says what is excluded
    for all of them at once.
    """
    comparisons = answer.comparisons
    equality = answer.family.equality
    if len(comparisons) == 1:
        return sentence(comparisons[0], equality)
    by_relation: dict[Relation, list[Comparison]] = {}
    for relation in VERBS:
        having = [comparison for comparison in comparisons if comparison.relation == relation]
        if having:
            by_relation[relation] = having

    parts = []
    first_relation = next(iter(by_relation))
    if first_relation == Relation.WORSE and not equality:
        parts.append(f"better: none of {len(those_run(comparisons))}")
    for relation, having in by_relation.items():
        parts.append(relation_text(relation, having, answer))
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def primary_answers_text(answers: PrimaryAnswers) -> str:
    """Say how many primary answers of a scale are significant, before and after Holm's correction.

    Empty if none is tested.
    """
    if not answers.tested:
        return ""
    return (
        f"Every table and figure has at most one primary question. Of the {answers.tested} answers"
        f" that are tested, {answers.significant} are significant by themselves, and"
        f" {answers.after_holm} after Holm's correction over all of them."
    )


def those_run(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Leave out the comparisons of rows that are not run."""
    return [comparison for comparison in comparisons if comparison.relation != Relation.NOT_RUN]


def relation_text(relation: Relation, having: Sequence[Comparison], answer: Answer) -> str:
    """Word which comparisons of a question have a relation: `worse than SimCSE, PCL`."""
    comparisons = answer.comparisons
    equality = answer.family.equality
    text = VERBS[relation]
    if relation == Relation.NOT_SHOWN and equality:
        text = "no difference shown"

    is_of_all = len(having) == len(comparisons)
    if is_of_all and relation not in (Relation.BETTER, Relation.WORSE):
        text += reasons_text(having)
    elif relation == Relation.NOT_RUN:
        text += distinguishing_names(having, comparisons)
    else:
        text += distinguishing_names(having, those_run(comparisons))

    if relation == Relation.NOT_SHOWN:
        text += f" ({not_shown_text(having, equality)})"
    return text


def reasons_text(comparisons: Sequence[Comparison]) -> str:
    """List the reasons of comparisons after a colon; empty if there are none."""
    reasons: dict[str, None] = {}
    for comparison in comparisons:
        if comparison.relation != Relation.CANNOT_TELL:  # the page says it once
            reasons[reason_text(comparison.reason)] = None
    known = [reason for reason in reasons if reason]
    if not known:
        return ""
    return f": {', '.join(known)}"


def not_shown_text(comparisons: Sequence[Comparison], equality: bool) -> str:
    """Word gains that are not shown, and what is excluded for all of them at once.

    `-0.12 to +0.30; gains above 0.6 points are excluded`
    """
    gains = [comparison.estimate.gain for comparison in comparisons if comparison.estimate]
    ends = dict.fromkeys(f"{gain:+z.2f}" for gain in (min(gains), max(gains)))
    bound = max(comparison.family_high or 0 for comparison in comparisons)
    excluded_text = "gains above {} points are excluded"
    if equality:
        lowest = min(comparison.family_low or 0 for comparison in comparisons)
        bound = max(-lowest, bound)
        excluded_text = "differences above {} points are excluded"
    return f"{' to '.join(ends)}; {excluded(bound, excluded_text)}"


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
    is_ranked = comparisons[0].relation in (Relation.BETTER, Relation.WORSE)
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
    elif is_ranked:
        word = " than"
    else:
        word = " against"
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


def short_label(label: str) -> str:
    """Leave out the citation after a row's name: `SimCSE` for `SimCSE (Gao et al., 2021)`."""
    name, _, citation = label.rpartition(" (")
    ends_in_year = re.search(r"\b(19|20)\d\d[a-z]?\)$", citation)
    if "et al" in citation or ends_in_year:
        return name
    return label
