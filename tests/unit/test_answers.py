"""The answer line, from the values of a comparison to its sentence; golden files hold what the
study shows of it."""

from dataclasses import replace

import pytest

from csebench.plan.schema.paper import Family
from csebench.report.numbers.compare import Answer, Comparison
from csebench.report.numbers.estimates import Estimate
from csebench.report.numbers.refusals import (
    EqualScores,
    LossIsZero,
    NoRuns,
    NoSuchScore,
    PremiseNotShown,
    Relation,
    ReplicatesMissing,
)
from csebench.report.pages.answer_text import printed_lead
from csebench.report.words.comparisons import family_sentence, sentence


def comparison(relation, low=0.0, high=0.0, **values):
    """A against B, at 5 seeds; the interval is that of the family too."""
    ends = {"low": low, "high": high, "family_low": low, "family_high": high}
    values = {"estimate": Estimate((low + high) / 2, 5, 0.1, None), **ends} | values
    return Comparison("A (Gao et al., 2021)", "B", "Avg.", relation, **values)


def answer(*comparisons):
    return Answer(Family(question="?", rows=[("A", "B")]), comparisons)


SHOWN, OPEN = (
    comparison(Relation.BETTER, 1, 2, printed=2.5),
    comparison(Relation.NOT_SHOWN, -0.3, 0.31, printed=2.5),
)
CASES = {
    "A beats B here, by 0.07 to 1.1 points.": comparison(Relation.BETTER, 0.073, 1.03),
    "A is worse than B here, by 0.14 to 0.9 points.": comparison(Relation.WORSE, -0.81, -0.149),
    "A is not shown to beat B here (+0.01); a gain above 0.4 points is excluded.": OPEN,
    "A is not shown to beat B here (-0.11); any gain is excluded.": comparison(
        Relation.NOT_SHOWN, -0.2, -0.01
    ),
    "A scores 0.25 points above B, with one seed: chance is not excluded.": comparison(
        Relation.ONE_SEED, 0.25, 0.25
    ),
    "No answer yet: 3 of 10 runs are scored.": comparison(
        Relation.PARTIAL, estimate=None, scored=(3, 10)
    ),
    "No answer: the scores are of older code or of other settings.": comparison(
        Relation.OUTDATED, estimate=None
    ),
}


REFUSED = {
    "Not run here: A has no runs.": (Relation.NOT_RUN, NoRuns("A", None)),
    "Not run here: its code is not public.": (
        Relation.NOT_RUN,
        NoRuns("A", "its code is not public"),
    ),
    "Not run here: the evaluator gave no such score.": (Relation.NOT_RUN, NoSuchScore()),
    "A and B are the same runs at this scale.": (Relation.SAME_RUNS, None),
    "Cannot be asked here: both rows have the same score in every run.": (
        Relation.NOT_ASKED,
        EqualScores(),
    ),
    "Cannot be asked here: the loss of A is 0 from the start, so training changes nothing.": (
        Relation.NOT_ASKED,
        LossIsZero("A"),
    ),
    "Cannot be asked here: B itself loses 0.3 points, not shown to be over 1 (in the paper 9.9).": (
        Relation.NOT_ASKED,
        PremiseNotShown("B", 0.31, 1.0, "9.9"),
    ),
    "Cannot be compared: 1 of 3 runs of B have no replicates over the test items of sts.": (
        Relation.UNPAIRED,
        ReplicatesMissing("B", "sts", 1, 3),
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_rows_that_are_not_compared_have_a_reason_in_words(text):
    relation, reason = REFUSED[text]
    assert sentence(comparison(relation, estimate=None, reason=reason)) == text


@pytest.mark.parametrize("text", CASES)
def test_bounds_are_rounded_outward_and_what_is_not_known_is_said(text):
    assert sentence(CASES[text]) == text


def test_a_family_is_one_sentence():
    text = "Better in Avg.; no gain shown in 1% (+0.01; gains above 0.4 points are excluded)."
    assert family_sentence(answer(SHOWN, replace(OPEN, columns="1%"))) == text
    assert family_sentence(answer(SHOWN, replace(SHOWN, row="C"))) == "Better: A, C."


def test_a_bound_of_one_pair_is_its_own_and_of_several_theirs_at_once():
    one = replace(OPEN, family_high=0.52)
    assert "a gain above 0.4 points" in sentence(one)
    assert "gains above 0.6 points" in family_sentence(answer(one, replace(one, row="C")))


def test_answers_at_the_scale_of_the_paper():
    compared = (SHOWN, comparison(Relation.WORSE, -2, -1, printed=2.5), OPEN)
    assert [printed_lead(answer(replace(c, p=0.5))) for c in compared] == [
        "A's lead over B (printed +2.50) is shown: +1.50.",
        "A is worse than B (printed +2.50): -1.50.",
        "A's lead over B (printed +2.50) is not shown: +0.01; a gain above 0.4 points is excluded.",
    ]
