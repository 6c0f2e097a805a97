"""Terms of which a search found no effect: how they are found, and what pages say of them."""

from dataclasses import replace

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
    devs = {0.4: 0.62, 0.1: 0.63, 4.0: 0.61, 0.001: 0.64}
    (found,) = weights_without_effect(search(devs, 0.001))
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


@pytest.mark.parametrize(
    ("name", "parameter", "is_weight"),
    [
        ("informin_cl", "reconstruction", True),
        ("simcse+ami", "ami.weight", True),
        ("simcse", "temperature", False),
        ("esimcse", "repetition", False),
        ("esimcse", "moco.momentum", False),
    ],
)
def test_a_weight_is_what_a_method_declares_or_weight_of_a_component(name, parameter, is_weight):
    found = list(weights_without_effect(search({1.0: 0.6, 0.0: 0.6}, 1.0, name, parameter)))
    assert bool(found) == is_weight


@pytest.mark.parametrize(("weakest", "is_tuned_away"), [(0.02, False), (0.004, True)])
def test_a_twentieth_of_a_weight_is_not_next_to_nothing(weakest, is_tuned_away):
    """The paper's weight is 0.4."""
    found = list(weights_without_effect(search({0.4: 0.6, weakest: 0.6}, 0.4)))
    assert bool(found) == is_tuned_away


def test_the_searches_of_the_study_that_left_a_term_without_effect():
    found = {weights.method for weights in searches_without_effect("mini")}
    assert {"informin_cl", "infocse", "ct+ami"} <= found
    assert not {"micse", "msse", "simcse", "ct", "scd", "iscse", "rankcse"} & found
    assert not searches_without_effect("paper")


def test_a_term_that_is_tuned_away_does_not_score_the_same(controls_hold):
    view = grid_view("informin_cl", "table2", "mini")
    primary = answers(view)[0]
    (comparison,) = primary.comparisons
    assert comparison.relation == Relation.TUNED_AWAY
    answer = family_sentence(primary)
    assert "found no effect of the reconstruction in InforMin-CL-BERT_base" in answer
    assert "is not tested" in answer
    assert "the same as" not in answer
    assert "the declared weight 0.4 scores 62.46" in remarks(primary.comparisons)
    (term,) = comparison.tuned_away
    assert "not 0)" in tuned_away_text(term)


def test_a_sweep_of_the_weight_itself_is_not_called_tuned_away():
    for answer in answers(grid_view("infocse", "table8", "mini")):
        for comparison in answer.comparisons:
            if comparison.relation == Relation.INACTIVE:
                assert not comparison.tuned_away


def test_a_term_that_one_comparison_explains_is_not_named_again(controls_hold):
    (comparison,) = answers(grid_view("informin_cl", "table2", "mini"))[0].comparisons
    text = remarks([replace(comparison, relation=Relation.NOT_SHOWN), comparison])
    assert text.count("reconstruction in InforMin-CL") == 1
    assert text == remarks([comparison])


def test_docs_name_the_weights_that_are_not_tried_at_0():
    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    (names,) = [part for part in text.split("\n\n") if "have no 0" in part]
    for method in valid_declarations(METHODS):
        for parameter, values in declaration(method).search.items():
            is_weight = all(isinstance(value, float | int) for value in values)
            if is_weight and 0 not in values and parameter not in SEARCHED_TOGETHER:
                assert f"`{parameter}`" in names, method
