"""Power against simulations, and what tables and `csebench power` say of it."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest
import scipy.stats

from csebench.base import caches
from csebench.cli import main
from csebench.report import planned_power, stats, table_power
from csebench.report.power import Design, power_of, seeds_needed, smallest_difference
from csebench.report.cells import grid_view

SIMCSE = Design(0.84, paired=False)  # BERT-base, over 50 seeds (evidence/hppRC-simple-simcse.yaml)


@pytest.mark.parametrize("seeds", [3, 5, 13])
@pytest.mark.parametrize("paired", [True, False])
def test_power_is_the_share_of_significant_tests_in_simulations(seeds, paired):
    rng = np.random.default_rng(seeds)
    first, second = rng.normal(0, 0.84, (2, 20000, seeds))
    test = scipy.stats.ttest_rel if paired else scipy.stats.ttest_ind
    rejected = np.mean(test(first + 1, second, axis=1).pvalue < 0.05)
    design = Design(0.84 * sqrt(2)) if paired else SIMCSE
    assert power_of(1.0, design, seeds) == pytest.approx(rejected, abs=0.015)


@pytest.mark.parametrize("design", [SIMCSE, Design(0.5), Design(0.1, item_variance=0.04), Design(0.0, 0.04)])
@pytest.mark.parametrize("level", [0.05, 0.05 / 144])
def test_the_smallest_difference_has_the_power_that_is_asked_for(design, level):
    difference = smallest_difference(design, 3, level)
    assert power_of(difference, design, 3, level) == pytest.approx(0.8, abs=1e-3)


def test_one_seed_and_test_items_limit_what_can_be_shown():
    assert smallest_difference(Design(0.84), 1) == inf
    assert smallest_difference(Design(0.84, item_variance=0.04), 1) == pytest.approx(2.8 * 0.2, rel=0.01)
    assert seeds_needed(0.5, Design(0.1, item_variance=0.2**2)) == inf
    assert seeds_needed(0.5, Design(None, item_variance=0.2**2)) is None


@pytest.mark.parametrize("difference", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("design", [SIMCSE, Design(0.84), Design(0.84, item_variance=0.02)])
def test_one_seed_less_than_needed_is_too_few(design, difference):
    seeds = seeds_needed(difference, design)
    assert smallest_difference(design, seeds) <= difference
    assert seeds == 2 or smallest_difference(design, seeds - 1) > difference


# ---------------------------------------------------------------- tables


def current(*grid):
    """A table whose published scores count as those of today's code, whichever made them."""
    view = grid_view(*grid)
    return replace(view, rows=[[replace(cell, stale=False) for cell in row] for row in view.rows])


@pytest.fixture(scope="module")
def view():
    return current("micse", "table2", "mini")


def test_power_is_that_of_the_test_that_the_table_shows(view):
    """The standard error behind a detectable difference is the one behind the pair's p."""
    errors = {(pair.column, pair.rows): pair.design.error(pair.seeds) for pair in table_power.pair_powers(view)}
    shown = [(column, pair) for column, tested in view.comparisons.items() for pair in tested["pairs"]]
    assert len(shown) == len(errors)
    for column, pair in shown:
        error, df = errors[column, frozenset((pair["a"], pair["b"]))]
        assert stats.two_sided(pair["mean"], (error**2, df)) == pytest.approx(pair["p"], rel=1e-6)


# ---------------------------------------------------------------- before any training


def plans_by_encoder(paper, name, scale="paper", **settings):
    return {plan.encoder: plan for plan in planned_power.plans(current(paper, name, scale), **settings)}


def test_a_plan_takes_the_spread_that_others_published():
    plans = plans_by_encoder("infocse", "table2")
    assert plans.keys() == {"bert-base", "bert-large"}
    assert (plans["bert-base"].seeds, round(plans["bert-base"].spread.std, 2)) == (5, 0.84)
    assert plans["bert-base"].spread.source == "50 seeds of unsup-SimCSE (hppRC-simple-simcse)"
    assert round(plans["bert-large"].spread.std, 2) == 1.74


def test_a_plan_prefers_deviations_that_the_table_prints():
    by_column = {plan.columns[0]: plan for plan in planned_power.plans(grid_view("micse", "table2", "paper"))}
    assert by_column["0.1%"].spread.source == "deviations that the table prints"
    assert by_column["100%"].spread.source.startswith("50 seeds")


def test_a_plan_at_another_scale_takes_scores_of_that_scale(monkeypatch):
    """Never those of another encoder, which evidence and papers have."""
    caches.clear()
    monkeypatch.setattr(planned_power, "grid_view", current)
    plan = plans_by_encoder("micse", "table3", "mini")["bert-base"]
    assert plan.spread.source == "scores of this table" and plan.paired.item_variance is not None
    view = current("msse", "table4", "mini")
    unscored = replace(view, rows=[[replace(cell, values={}) for cell in row] for row in view.rows])
    (plan,) = planned_power.plans(unscored)
    assert plan.spread.source.startswith("scores of ")
    (alone,) = planned_power.plans(unscored, other_tables=False)
    assert alone.spread is None
    caches.clear()


def test_the_verb_gives_the_power_of_a_difference(capsys):
    assert main(["power", "infocse/table2", "--difference", "1"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "bert-base" in line and "unpaired" in line)
    assert line.split()[-3:] == ["0.38", "46", "13"]
