"""The answer line: a comparison's values are worded in a sentence. Golden files hold the sentences
of the study."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from csebench.plan.schema.paper import Family
from csebench.report.numbers.compare import Answer, Comparison
from csebench.report.numbers.estimates import Estimate
from csebench.report.numbers.primary_answers import PrimaryAnswers, count_primary_answers
from csebench.report.numbers.refusals import (
    EqualScores,
    LossIsZero,
    NoRuns,
    NoSuchScore,
    PremiseNotShown,
    Relation,
    ReplicatesMissing,
    ScaleCannotTell,
)
from csebench.report.pages.answer_text import printed_lead
from csebench.report.words.comparisons import (
    comparison_row,
    family_sentence,
    primary_answers_text,
    sentence,
)


def comparison(relation, low=0.0, high=0.0, **fields):
    """Compare A with B over 5 seeds, with the same interval for the pair and for its family.

    Args:
        fields: replace the fields of the comparison.
    """
    defaults = {
        "estimate": Estimate((low + high) / 2, 5, 0.1, None),
        "low": low,
        "high": high,
        "family_low": low,
        "family_high": high,
    }
    return Comparison("A (Gao et al., 2021)", "B", "Avg.", relation, **defaults | fields)


def answer(*comparisons):
    return Answer(Family(question="?", rows=[("A", "B")]), comparisons)


SHOWN = comparison(Relation.BETTER, 1, 2, printed=2.5)
OPEN = comparison(Relation.NOT_SHOWN, -0.3, 0.31, printed=2.5)
COMPARED = [
    (
        comparison(Relation.BETTER, 0.073, 1.03),
        "A beats B here, by 0.07 to 1.1 points.",
    ),
    (
        comparison(Relation.WORSE, -0.81, -0.149),
        "A is worse than B here, by 0.14 to 0.9 points.",
    ),
    (
        OPEN,
        "A is not shown to beat B here (+0.01); a gain above 0.4 points is excluded.",
    ),
    (
        comparison(Relation.NOT_SHOWN, -0.2, -0.01),
        "A is not shown to beat B here (-0.11); any gain is excluded.",
    ),
    (
        comparison(Relation.ONE_SEED, 0.25, 0.25),
        "A scores 0.25 points above B, with one seed: chance is not excluded.",
    ),
    (
        comparison(Relation.PARTIAL, estimate=None, scored=(3, 10)),
        "No answer yet: 3 of 10 runs are scored.",
    ),
    (
        comparison(Relation.OUTDATED, estimate=None),
        "No answer: the scores are of older code or of other settings.",
    ),
]
NOT_COMPARED = [
    (
        Relation.NOT_RUN,
        NoRuns("A", None),
        "Not run here: A has no runs.",
    ),
    (
        Relation.NOT_RUN,
        NoRuns("A", "its code is not public"),
        "Not run here: its code is not public.",
    ),
    (
        Relation.NOT_RUN,
        NoSuchScore(),
        "Not run here: the evaluator gave no such score.",
    ),
    (
        Relation.SAME_RUNS,
        None,
        "A and B are the same runs at this scale.",
    ),
    (
        Relation.NOT_ASKED,
        EqualScores(),
        "Cannot be asked here: both rows have the same score in every run.",
    ),
    (
        Relation.NOT_ASKED,
        LossIsZero("A"),
        "Cannot be asked here: the loss of A is 0 from the start, so training changes nothing.",
    ),
    (
        Relation.NOT_ASKED,
        PremiseNotShown("B", 0.31, 1.0, "9.9"),
        "Cannot be asked here: B itself loses 0.3 points, not shown to be over 1 (in the paper"
        " 9.9).",
    ),
    (
        Relation.UNPAIRED,
        ReplicatesMissing("B", "sts", 1, 3),
        "Cannot be compared: 1 of 3 runs of B have no replicates over the test items of sts.",
    ),
]


@pytest.mark.parametrize(("relation", "reason", "text"), NOT_COMPARED)
def test_rows_that_are_not_compared_have_a_reason_in_words(relation, reason, text):
    assert sentence(comparison(relation, estimate=None, reason=reason)) == text


@pytest.mark.parametrize(("compared", "text"), COMPARED)
def test_bounds_are_rounded_outward_and_what_is_not_known_is_said(compared, text):
    assert sentence(compared) == text


def test_no_negative_zero_is_printed():
    almost_nothing = comparison(Relation.NOT_SHOWN, -0.012, 0.004, printed=-0.001)
    assert "(+0.00)" in sentence(almost_nothing)
    assert comparison_row(almost_nothing)[3] == "+0.00"
    several = answer(almost_nothing, replace(almost_nothing, row="C"))
    assert "(+0.00; gains" in family_sentence(several)
    assert "-0.00" not in printed_lead(answer(replace(almost_nothing, p=0.5)))
    blocked = ScaleCannotTell("mini", "unlabelled", held=1, controls=3)
    not_judged = replace(almost_nothing, relation=Relation.CANNOT_TELL, reason=blocked)
    assert sentence(not_judged).startswith("Cannot tell A from B (+0.00): ")


def test_a_family_is_one_sentence():
    in_two_columns = answer(SHOWN, replace(OPEN, columns="1%"))
    text = "Better in Avg.; no gain shown in 1% (+0.01; gains above 0.4 points are excluded)."
    assert family_sentence(in_two_columns) == text
    over_two_rows = answer(SHOWN, replace(SHOWN, row="C"))
    assert family_sentence(over_two_rows) == "Better: A, C."


def test_a_bound_of_one_pair_is_its_own_and_of_several_theirs_at_once():
    pair = replace(OPEN, family_high=0.52)
    assert "a gain above 0.4 points" in sentence(pair)
    two_pairs = answer(pair, replace(pair, row="C"))
    assert "gains above 0.6 points" in family_sentence(two_pairs)


@pytest.mark.parametrize(
    ("compared", "text"),
    [
        (SHOWN, "A's lead over B (printed +2.50) is shown: +1.50."),
        (
            comparison(Relation.WORSE, -2, -1, printed=2.5),
            "A is worse than B (printed +2.50): -1.50.",
        ),
        (
            OPEN,
            "A's lead over B (printed +2.50) is not shown: +0.01; a gain above 0.4 points is"
            " excluded.",
        ),
    ],
)
def test_answers_at_the_scale_of_the_paper(compared, text):
    assert printed_lead(answer(replace(compared, p=0.5))) == text


@pytest.fixture
def count_primary(monkeypatch):
    """A function that counts comparisons, each as the primary answer of a table."""

    def count(*comparisons, but=()):
        by_name = {str(number): compared for number, compared in enumerate(comparisons)}
        views = []
        for name, compared in by_name.items():
            family = Family(question=name, rows=[("A", "B")], primary=compared not in but)
            views.append(SimpleNamespace(grid=SimpleNamespace(compare=[family])))
        monkeypatch.setattr(
            "csebench.report.numbers.primary_answers.answer",
            lambda _, family: answer(by_name[family.question]),
        )
        return count_primary_answers(views)

    return count


def test_primary_answers_of_all_tables_are_corrected_together(count_primary):
    """Of 0.001, 0.02, 0.03 and 0.5, three are significant, but 3 · 0.02 is not. One question has no
    test, and another one is not primary."""
    p_values = (0.03, 0.001, 0.5, 0.02, None)
    comparisons = [comparison(Relation.NOT_SHOWN, p_family=p) for p in p_values]
    not_primary = comparison(Relation.NOT_SHOWN, p_family=0.0001)
    counts = count_primary(*comparisons, not_primary, but=[not_primary])
    assert counts == PrimaryAnswers(tested=4, significant=3, after_holm=1)
    assert "Of the 4 answers that are tested, 3 are" in primary_answers_text(counts)
    assert primary_answers_text(PrimaryAnswers(0, 0, 0)) == ""


@pytest.mark.parametrize("relation", [Relation.INACTIVE, Relation.TUNED_AWAY])
def test_a_difference_next_to_nothing_is_no_significant_answer(relation, count_primary):
    next_to_nothing = comparison(relation, p_family=0.001)
    better = comparison(Relation.BETTER, p_family=0.03)
    assert count_primary(next_to_nothing, better) == PrimaryAnswers(2, 1, after_holm=0)
