"""Power against simulations, how many seeds a difference needs, and `csebench power` of tables
and of claims."""

import json
from math import inf, sqrt

import numpy as np
import pytest
import scipy.stats

from csebench.cli import main
from csebench.report.numbers.estimates import Estimate
from csebench.report.numbers.power import noncentrality, seeds_needed, smallest_difference
from csebench.report.numbers.stats import quantile


def varying(std, item_variance=0.0):
    """Make a difference with a deviation over seeds and a variance over test items."""
    return Estimate(0.0, 1, std, sqrt(item_variance) or None)


# The difference of two rows on BERT-base. The deviation of one is known from 50 published seeds.
SIMCSE = varying(0.84 * sqrt(2))


@pytest.mark.parametrize(("seeds", "level"), [(3, 0.05), (5, 0.01), (13, 0.05)])
def test_the_smallest_difference_is_found_in_four_of_five_simulations(seeds, level):
    rng = np.random.default_rng(seeds)
    difference = smallest_difference(SIMCSE, seeds, level)
    first, second = rng.normal(0, 0.84, (2, 40_000, seeds))

    p_values = scipy.stats.ttest_rel(first + difference, second, axis=1).pvalue
    rejected = p_values < level
    assert rejected.mean() == pytest.approx(0.8, abs=0.01)


def test_test_items_add_to_the_error_of_seeds():
    """Simulate means over seeds with an item error of known size. Their statistic has
    Satterthwaite's degrees of freedom."""
    seeds = 5
    design = varying(0.8, item_variance=0.3**2)
    difference = smallest_difference(design, seeds)
    _, df = design.error(seeds)

    rng = np.random.default_rng(5)
    of_seeds = difference + rng.normal(0, 0.8, (40_000, seeds))
    measured = of_seeds.mean(axis=1) + rng.normal(0, 0.3, 40_000)
    error = np.sqrt(of_seeds.var(axis=1, ddof=1) / seeds + 0.3**2)
    rejected = abs(measured) / error > quantile(0.95, df)
    assert rejected.mean() == pytest.approx(0.8, abs=0.02)


def test_one_seed_shows_nothing_but_by_its_test_items():
    assert smallest_difference(varying(0.84), 1) == inf
    with_items = varying(0.84, item_variance=0.04)
    assert smallest_difference(with_items, 1) == pytest.approx(2.8 * 0.2, rel=0.01)
    assert noncentrality(inf) == pytest.approx(noncentrality(1e5), rel=1e-3)


@pytest.mark.parametrize("difference", [0.5, 5.0])
@pytest.mark.parametrize("design", [SIMCSE, varying(0.84, item_variance=0.02)])
def test_one_seed_less_than_needed_is_too_few(design, difference):
    seeds = seeds_needed(difference, design)
    assert smallest_difference(design, seeds) <= difference
    assert seeds == 2 or smallest_difference(design, seeds - 1) > difference


def test_no_number_of_seeds_overcomes_the_error_of_test_items():
    assert seeds_needed(0.5, varying(0.1, item_variance=0.2**2)) == inf
    assert seeds_needed(0.0, SIMCSE) == inf
    assert 2 < seeds_needed(0.6, varying(0.4, item_variance=0.2**2)) < inf


def power(capsys, *arguments):
    """Read the rows that `csebench power` prints."""
    assert main(["power", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def infocse_against_simcse(capsys, *options):
    """Read the comparison of InfoCSE with SimCSE in InfoCSE's Table 2, at scale paper."""
    rows = power(capsys, "infocse/table2", "--scale", "paper", *options)
    for row in rows:
        if (row["row"], row["against"]) == ("InfoCSE-BERTbase", "SimCSE-BERTbase"):
            return row
    raise AssertionError("the comparison is missing")


def test_a_table_needs_the_seeds_of_its_printed_deviations(capsys):
    """Nothing is scored at scale paper. Twice the difference needs fewer seeds."""
    printed = infocse_against_simcse(capsys)
    assert (printed["difference"], printed["sd"]) == ("2.60", "1.19")
    assert printed["seeds needed"] == "4"

    larger = infocse_against_simcse(capsys, "--difference", "5")
    assert (larger["difference"], larger["sd"]) == ("5.00", "1.19")
    assert larger["seeds needed"] == "3"


def test_claims_need_the_seeds_that_are_reported(capsys):
    """miCSE against SimCSE: 3 seeds show the few-shot gain, and the gain on all data takes 23 or
    more."""
    seeds = {}
    for row in power(capsys, "claims"):
        if row["paper"] == "micse" and row["against"].startswith("SimCSE"):
            seeds[row["column"], row["printed"]] = [row["seeds, 0.00"], row["seeds, 0.18"]]
    assert seeds["0.1%", "+5.91"][0] == "3"
    assert seeds["100%", "+0.73"] == ["23", "42"]


def test_a_baseline_that_two_rows_share_does_not_vary_in_their_difference(capsys):
    """AMI+SimCSE against MoCo+SimCSE in differences to SimCSE: the printed deviations are 0.49 and
    1.61. That of SimCSE cancels."""
    rows = power(capsys, "claims")
    (row,) = [
        row
        for row in rows
        if (row["paper"], row["column"]) == ("micse", "Δ 0.1%") and row["against"] == "MoCo+SimCSE"
    ]
    assert float(row["sd"]) == pytest.approx(sqrt(0.49**2 + 1.61**2), abs=0.01)
    assert row["seeds, 0.18"] == "4"


def test_a_claim_about_gains_names_the_rows_that_are_subtracted(capsys):
    rows = {row["row"] for row in power(capsys, "claims")}
    assert "AMI+SimCSE − SimCSE (Gao et al., 2021)" in rows
