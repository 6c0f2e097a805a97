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
from csebench.report.pages.answer_text import printed_difference_text
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
ONE_SEED = Estimate(0.25, 1, None, None)
SAME = Estimate(0.004, 5, 0.002, None)
COMPARED = [
    (
        comparison(Relation.BETTER, 0.073, 1.031),
        "A is higher than B: +0.55 (95 % +0.07 to +1.04).",
    ),
    (
        comparison(Relation.WORSE, -0.81, -0.149),
        "A is lower than B: -0.48 (95 % -0.81 to -0.14).",
    ),
    (
        OPEN,
        "A against B is unclear: +0.01 (95 % -0.30 to +0.31).",
    ),
    (
        comparison(Relation.INACTIVE, -0.03, 0.03, estimate=SAME),
        "A is the same as B: within 0.02 points; +0.00 (90 % +0.00 to +0.01).",
    ),
    (
        comparison(Relation.ONE_SEED, estimate=ONE_SEED, family_low=None, family_high=None),
        "A against B is not tested: one seed; +0.25.",
    ),
    (
        comparison(Relation.PARTIAL, estimate=None, scored=(3, 10)),
        "A against B is not tested: 3 of 10 runs are scored.",
    ),
    (
        comparison(Relation.OUTDATED, estimate=None),
        "A against B is not tested: the scores are of older code or of other settings.",
    ),
]
NOT_COMPARED = [
    (
        Relation.NOT_RUN,
        NoRuns("A", None),
        "A has no runs",
    ),
    (
        Relation.NOT_RUN,
        NoRuns("A", "its code is not public"),
        "its code is not public",
    ),
    (
        Relation.NOT_RUN,
        NoSuchScore(),
        "the evaluator gave no such score",
    ),
    (
        Relation.SAME_RUNS,
        None,
        "both rows are the same runs at this scale",
    ),
    (
        Relation.NOT_ASKED,
        EqualScores(),
        "both rows have the same score in every run",
    ),
    (
        Relation.NOT_ASKED,
        LossIsZero("A"),
        "the loss of A is 0 from the start, so training changes nothing",
    ),
    (
        Relation.NOT_ASKED,
        PremiseNotShown("B", "100%", "the mean of 1%, 10%", 0.31, 1.0, "9.9 points"),
        "the question presumes that B loses significantly more than 1 point in the mean of 1%, 10%,"
        " compared with 100%; here it loses only 0.3 points (in the paper: 9.9 points)",
    ),
    (
        Relation.UNPAIRED,
        ReplicatesMissing("B", "sts", 1, 3),
        "1 of 3 runs of B have no replicates over the test items of sts",
    ),
]


@pytest.mark.parametrize(("relation", "reason", "text"), NOT_COMPARED)
def test_rows_that_are_not_compared_are_not_tested_for_a_reason(relation, reason, text):
    refused = comparison(relation, estimate=None, reason=reason)
    assert sentence(refused) == f"A against B is not tested: {text}."
    assert comparison_row(refused)[3] == f"not tested: {text}"


@pytest.mark.parametrize(("compared", "text"), COMPARED)
def test_bounds_are_rounded_outward_and_what_is_not_known_is_said(compared, text):
    assert sentence(compared) == text


def test_no_negative_zero_is_printed():
    almost_nothing = comparison(Relation.NOT_SHOWN, -0.012, 0.004, printed=-0.001)
    assert sentence(almost_nothing).endswith(": +0.00 (95 % -0.02 to +0.01).")
    assert comparison_row(almost_nothing)[4] == "+0.00"
    several = answer(almost_nothing, replace(almost_nothing, row="C"))
    assert "(+0.00; all" in family_sentence(several)
    assert "-0.00" not in printed_difference_text(answer(almost_nothing))
    blocked = ScaleCannotTell("mini", "unlabelled", held=1, controls=3)
    not_judged = replace(almost_nothing, relation=Relation.CANNOT_TELL, reason=blocked)
    assert sentence(not_judged).endswith(
        "(2 of its 3 controls fail); the difference is +0.00 (95 % -0.02 to +0.01)."
    )


def test_a_family_is_one_sentence():
    in_two_columns = answer(SHOWN, replace(OPEN, columns="1%"))
    assert family_sentence(in_two_columns) == (
        "Higher in Avg. (+1.50; 95 % +1.00 to +2.00); unclear in 1% (+0.01; 95 % -0.30 to +0.31)."
    )
    over_two_rows = answer(SHOWN, replace(SHOWN, row="C", family_high=2.345))
    assert family_sentence(over_two_rows) == (
        "Higher: A, C (+1.50; all 95 % intervals within +1.00 to +2.35)."
    )


def test_rows_that_are_not_tested_have_their_reason_in_the_sentence_of_a_family():
    unscored = comparison(Relation.PARTIAL, estimate=None, scored=(3, 10))
    lower = replace(SHOWN, relation=Relation.WORSE, row="C")
    assert family_sentence(answer(unscored, lower)) == (
        "Higher: none of 2; lower: C (+1.50; 95 % +1.00 to +2.00); not tested (3 of 10 runs are"
        " scored): A."
    )
    assert family_sentence(answer(unscored, unscored)) == "Not tested: 3 of 10 runs are scored."


def test_the_interval_of_a_sentence_holds_for_all_comparisons_of_its_question():
    pair = replace(OPEN, family_high=0.52)
    assert "-0.30 to +0.52" in sentence(pair)
    two_pairs = answer(pair, replace(pair, row="C"))
    assert "all 95 % intervals within -0.30 to +0.52" in family_sentence(two_pairs)


def test_answers_at_the_scale_of_the_paper_have_the_printed_difference():
    shown = answer(SHOWN)
    assert f"{family_sentence(shown)} {printed_difference_text(shown)}" == (
        "A is higher than B: +1.50 (95 % +1.00 to +2.00). The paper prints +2.50."
    )


@pytest.fixture
def count_primary(monkeypatch):
    """A function that counts comparisons, each as the primary answer of a table."""

    def count(*comparisons, but=()):
        by_name = {str(number): compared for number, compared in enumerate(comparisons)}
        views = []
        for name, compared in by_name.items():
            family = Family(question=name, rows=[("A", "B")], primary=compared not in but)
            grid = SimpleNamespace(compare=[family])
            views.append(SimpleNamespace(grid=grid, paper="msse", name=f"table{name}"))
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
    tested = tuple(("msse", f"table{number}") for number in range(4))
    assert counts == PrimaryAnswers(tested, significant=3, after_holm=1)
    text = primary_answers_text(counts)
    assert "4 primary questions can be tested here (MSSE Table 0, MSSE Table 1" in text
    assert "Significant answers: 3; with Holm's correction over all tested primary" in text
    assert "questions: 1. " in text
    assert primary_answers_text(PrimaryAnswers((), 0, 0)) == ""


@pytest.mark.parametrize(
    ("relation", "expected"), [(Relation.INACTIVE, (2, 1, 0)), (Relation.TUNED_AWAY, (1, 1, 1))]
)
def test_a_difference_next_to_nothing_is_no_significant_answer(relation, expected, count_primary):
    """Where a search found no effect of a term, nothing is tested."""
    next_to_nothing = comparison(relation, p_family=0.001)
    better = comparison(Relation.BETTER, p_family=0.03)
    counts = count_primary(next_to_nothing, better)
    assert (len(counts.tested), counts.significant, counts.after_holm) == expected
