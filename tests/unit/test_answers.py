"""Every case of the answer line: from the values of a comparison to its sentence."""

from dataclasses import replace
from typing import Any

import pytest

from csebench.plan.papers import Family
from csebench.report import compare
from csebench.report.compare import Answer, Comparison, Estimate, Setting
from csebench.report.pages.table import printed_lead
from csebench.report.words import family_sentence, not_matched, sentence

VIEW: Any = None
FAMILY = Family(question="?", rows=[("A", "B")])
ENDS = ("low", "high", "family_low", "family_high")
RATE = Setting("learning rate", "3e-5", "1e-4")


def comparison(relation, low=None, high=None, **values):
    """A against B, at 5 seeds; the interval is that of the family too."""
    ends: dict[str, Any] = {key: (low, high)[key.endswith("high")] for key in ENDS}
    ends["estimate"] = Estimate(((low or 0) + (high or 0)) / 2, 5, 0.1, None)
    return Comparison("A (Gao et al., 2021)", "B", "Avg.", relation, **ends | values)


SHOWN, OPEN = comparison(compare.BETTER, 1, 2, printed=2.5), comparison(compare.NOT_SHOWN, -0.3, 0.31, printed=2.5)
CASES = {
    "A beats B here, by 0.07 to 1.1 points.": comparison(compare.BETTER, 0.073, 1.03),
    "A is worse than B here, by 0.14 to 0.9 points.": comparison(compare.WORSE, -0.81, -0.149),
    "A is not shown to beat B here (+0.01); a gain above 0.4 points is excluded.": OPEN,
    "A is not shown to beat B here (-0.11); any gain is excluded.": comparison(compare.NOT_SHOWN, -0.2, -0.01),
    "A and B are the same runs at this scale.": comparison(compare.SAME_RUNS, estimate=None),
    "A and B score the same here, within 0.02 points.": comparison(compare.INACTIVE_HERE, -0.01, 0.01),
    "A scores 0.25 points above B, with one seed: chance is not excluded.": comparison(compare.ONE_SEED, 0.25, 0.25),
    "No answer yet: 3 of 10 runs are scored.": comparison(compare.PARTIAL, estimate=None, scored=(3, 10)),
    "No answer: the scores are of older code.": comparison(compare.OUTDATED, estimate=None),
    "Not run here: no data.": comparison(compare.NOT_RUN, estimate=None, reason="no data"),
    "Cannot be asked here: the loss is 0.": comparison(compare.NOT_ASKED, estimate=None, reason="the loss is 0"),
}


@pytest.mark.parametrize("text", CASES)
def test_an_answer(text):
    assert sentence(CASES[text]) == text


def test_equality_excludes_differences_on_both_sides():
    said = sentence(comparison(compare.NOT_SHOWN, -0.85, 0.4), equality=True)
    assert said == "A is not shown to differ from B here (-0.22); more than 0.9 points is excluded."


def test_what_is_not_matched_is_said_where_something_is_compared():
    unmatched = comparison(compare.BETTER, 1, 2, differs=(RATE, Setting("batch", "50", "64")))
    matched = comparison(compare.BETTER, 1, 2)
    assert not_matched([unmatched]) == "Not matched: learning rate 3e-5 against 1e-4, batch 50 against 64."
    assert not_matched([replace(unmatched, estimate=None)]) == "" == not_matched([matched])
    some = not_matched([RATED, replace(RATED, row="C"), matched])
    assert some == "Not matched in 2 of 3 comparisons: learning rate 3e-5 against 1e-4."


WORSE = comparison(compare.WORSE, -2, -1)
NOT_HERE, RATED = comparison(compare.NOT_RUN, estimate=None, reason="no data"), replace(SHOWN, differs=(RATE,))
BOUND = "(+0.01; gains above 0.4 points are excluded)"
FAMILIES = {
    f"Better than B; no gain shown against C {BOUND}.": [SHOWN, replace(OPEN, against="C")],
    f"Better in Avg.; no gain shown in 1% {BOUND}.": [SHOWN, replace(OPEN, columns="1%")],
    f"No gain shown {BOUND}.": [OPEN, replace(OPEN, row="C", family_high=0.2)],
    f"Better: none of 2; worse: A; no gain shown: C {BOUND}.": [WORSE, replace(OPEN, row="C")],
    "Not run here: no data.": [NOT_HERE, replace(NOT_HERE, against="C")],
    "Better: A, C.": [RATED, replace(SHOWN, row="C")],
}


@pytest.mark.parametrize("text", FAMILIES)
def test_a_family_is_one_sentence(text):
    assert family_sentence(Answer(FAMILY, VIEW, tuple(FAMILIES[text]))) == text


def test_a_comparison_that_two_questions_share_is_listed_once():
    asked = [Answer(FAMILY, VIEW, (SHOWN,)), Answer(FAMILY, VIEW, (SHOWN, replace(SHOWN, columns="1%")))]
    assert [[c.columns for c in listed] for _, listed in compare.each_pair_once(asked)] == [["Avg."], ["1%"]]


def test_a_bound_of_one_pair_is_its_own_and_of_several_theirs_at_once():
    one = replace(OPEN, family_high=0.52)
    assert "a gain above 0.4 points" in sentence(one)
    assert "gains above 0.6 points" in family_sentence(Answer(FAMILY, VIEW, (one, replace(one, row="C"))))


def test_answers_at_the_scale_of_the_paper():
    compared = (SHOWN, comparison(compare.WORSE, -2, -1, printed=2.5), OPEN)
    assert [printed_lead(Answer(FAMILY, VIEW, (replace(c, p=0.5),))) for c in compared] == [
        "A's lead over B (printed +2.50) is shown: +1.50.",
        "A is worse than B (printed +2.50): -1.50.",
        "A's lead over B (printed +2.50) is not shown: +0.01; a gain above 0.4 points is excluded.",
    ]
