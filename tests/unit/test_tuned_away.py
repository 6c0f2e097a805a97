"""Terms that a search has left without effect: how they are found, and what pages say of them."""

import pytest

from csebench.base.project import ROOT
from csebench.plan.catalog.registry import METHODS, declaration, valid_declarations
from csebench.plan.recipe import SEARCHED_TOGETHER
from csebench.plan.tuning import Search, Trial, made_search
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.compare import answers
from csebench.report.numbers.refusals import Relation
from csebench.report.numbers.tuned_away import searches_without_effect, weights_without_effect
from csebench.report.words.comparisons import family_sentence, remarks, tuned_away_text


def search(scores, chosen, name="informin_cl", parameter="reconstruction"):
    """Make a search on one weight; the scores of two seeds are 0.002 apart.

    Args:
        scores: {weight: mean score on dev}, in the order of the trials.
    """
    spec = made_search("informin_cl", "mini").spec
    trials = []
    for weight, dev in scores.items():
        runs = [
            {"run": "a", "seed": 1, "dev": dev - 0.001},
            {"run": "b", "seed": 2, "dev": dev + 0.001},
        ]
        trials.append(Trial.model_validate({"settings": {parameter: weight}, "runs": runs}))
    return Search(
        name=name, planned=len(trials), spec=spec, trials=trials, chosen={parameter: chosen}
    )


def test_the_weakest_weight_is_chosen():
    (found,) = weights_without_effect(search({0.4: 0.62, 0.1: 0.63, 4.0: 0.61, 0.01: 0.64}, 0.01))
    assert found.chosen == found.weakest
    assert found.untuned is not None
    assert (found.untuned.weight, found.untuned.dev) == (0.4, pytest.approx(62))
    assert (found.values, found.strongest) == (4, 4.0)


@pytest.mark.parametrize(
    ("dev_at_0", "is_tuned_away"), [(0.6401, True), (0.6390, True), (0.6380, False)]
)
def test_a_weight_has_an_effect_if_the_weakest_scores_lower_than_seeds_deviate(
    dev_at_0, is_tuned_away
):
    """The deviation between two seeds is 0.0014."""
    found = list(weights_without_effect(search({1.0: 0.64, 0.0: dev_at_0, 10.0: 0.63}, 1.0)))
    assert bool(found) == is_tuned_away


def test_shared_settings_and_numbers_without_decimals_are_no_weights():
    for parameter in SEARCHED_TOGETHER:
        assert not list(weights_without_effect(search({1.0: 0.6, 0.1: 0.6}, 1.0, "x", parameter)))
    assert not list(weights_without_effect(search({2: 0.6, 1: 0.6}, 2, "x", "layers")))


def test_the_searches_of_the_study_that_left_a_term_without_effect():
    found = {weights.method for weights in searches_without_effect("mini")}
    assert {"informin_cl", "infocse", "ct+ami"} <= found
    assert not {"micse", "msse", "simcse", "ct", "scd"} & found
    assert not searches_without_effect("paper")


def test_a_term_that_is_tuned_away_does_not_score_the_same(controls_hold):
    view = grid_view("informin_cl", "table2", "mini")
    primary = answers(view)[0]
    (comparison,) = primary.comparisons
    assert comparison.relation == Relation.TUNED_AWAY
    answer = family_sentence(primary)
    assert "tuned the reconstruction of InforMin-CL-BERT_base away" in answer
    assert "score the same" not in answer
    assert "the paper's 0.4 has 62.46" in remarks(primary.comparisons)
    (term,) = comparison.tuned_away
    assert "0 was not tried" in tuned_away_text(term)


def test_a_sweep_of_the_weight_itself_is_not_called_tuned_away():
    for answer in answers(grid_view("infocse", "table8", "mini")):
        for comparison in answer.comparisons:
            if comparison.relation == Relation.INACTIVE:
                assert not comparison.tuned_away


def test_docs_name_the_weights_that_are_not_tried_at_0():
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    (names,) = [part for part in text.split("\n\n") if "have no 0" in part]
    for method in valid_declarations(METHODS):
        for parameter, values in declaration(method).search.items():
            is_weight = all(isinstance(value, float) for value in values)
            if is_weight and 0 not in values and parameter not in SEARCHED_TOGETHER:
                assert f"`{parameter}`" in names, method
