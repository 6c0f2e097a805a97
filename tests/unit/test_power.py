"""Power against simulations, how many seeds a difference needs, and `csebench power` of tables
and of claims."""

import json
from math import inf, sqrt

import numpy as np
import pytest
import scipy.stats
from made_up import clear, made_up, table
from score_files import write_scores

from csebench.cli import main
from csebench.plan.schema.paper import Claim
from csebench.report.numbers.cells import grid_view
from csebench.report.numbers.estimates import Estimate
from csebench.report.numbers.power import (
    ClaimPower,
    by_seeds_needed,
    claim_powers,
    noncentrality,
    seeds_by_item_error,
    seeds_needed,
    smallest_difference,
    table_power,
)
from csebench.report.numbers.stats import quantile
from csebench.report.words.power import claim_rows


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


# ---------------------------------------------------------------- of a table and of claims


FEW = [{"label": "10%", "task": "Avg.", "size": "10%"}]
ROWS = {
    "A": ("simcse", ["74.00±0.20"]),
    "B": ("ct", ["70.00±1.00"]),
    "C": ("mirror_bert", ["73.30±0.20"]),
    "D": ("pcl", ["72.00"]),
    "Not run": (None, ["60.00±0.20"]),
    "BERT": ("bert", [None]),
}
PAIRS = [["A", "B"], ["C", "A"], ["A", "D"], ["A", "Not run"], ["A", "BERT"]]
ALL_PAIRS = {"question": "?", "rows": PAIRS}


def claim_on(versus, row="A", **settings):
    stated = {"quote": f"{row} {versus} {settings}", "section": "1", "table": "1", "row": row}
    return stated | {"versus": versus, "columns": ["10%"]} | settings


@pytest.fixture
def made_up_paper(tmp_path, monkeypatch):
    """Make a paper of one table at the papers' own scale, with claims."""

    def make(*claims, **settings):
        content = table(ROWS, FEW, **{"seeds": 5, "compare": [ALL_PAIRS], **settings})
        paper = {"name": "m", "tables": {"1": content}, "claims": list(claims)}
        made_up(tmp_path, monkeypatch, paper, name="paper", differs="", seeds_by_size={})

    yield make
    monkeypatch.undo()
    clear()


def powers_of_table(difference=None):
    """Powers of the comparisons of the table, by the labels of both rows."""
    view = grid_view("m", "table1", "paper")
    powers = table_power(view, difference)
    return {(power.row, power.against): power for power in powers}


def test_rows_that_cannot_be_run_have_no_power(made_up_paper):
    made_up_paper()
    pairs = [("A", "B"), ("C", "A"), ("A", "D"), ("A", "BERT")]
    assert list(powers_of_table()) == pairs


def test_without_scores_a_difference_varies_as_printed(made_up_paper):
    """The printed deviations are of single runs, and one of them is not printed."""
    made_up_paper()
    powers = powers_of_table()
    assert powers["A", "B"].design.seed_sd == pytest.approx(sqrt(0.2**2 + 1.0**2))
    assert not powers["A", "B"].is_scored
    assert powers["A", "D"].design is None


def test_a_printed_deviation_is_taken_in_points(made_up_paper):
    made_up_paper(factor=10)
    power = powers_of_table()["A", "B"]
    assert power.design.seed_sd == pytest.approx(10 * sqrt(0.2**2 + 1.0**2))
    assert power.difference == pytest.approx(40.0)


def test_scores_say_how_a_difference_varies(made_up_paper):
    made_up_paper()
    values = {"A": (0.70, 0.71, 0.72), "B": (0.60, 0.63, 0.62)}
    for cells in grid_view("m", "table1", "paper").rows:
        plan = cells[0].plan
        for spec, value in zip(plan.specs, values.get(plan.row.label, ()), strict=False):
            write_scores(spec, "sts", "paper", [("Avg.", "spearman", value)])
    clear()
    power = powers_of_table()["A", "B"]
    assert power.is_scored
    assert power.design.seed_sd == pytest.approx(np.std([10, 8, 10], ddof=1))


def test_the_printed_difference_is_to_be_detected_in_either_direction(made_up_paper):
    made_up_paper()
    powers = powers_of_table()
    assert powers["A", "B"].difference == pytest.approx(4.0)
    assert powers["C", "A"].difference == pytest.approx(0.7)
    assert powers["A", "BERT"].difference is None, "none is printed"
    assert powers_of_table(2.5)["A", "B"].difference == 2.5


def test_a_comparison_has_the_seeds_of_the_row_with_most_runs(made_up_paper):
    made_up_paper()
    assert powers_of_table()["A", "BERT"].seeds == 3


def test_more_item_error_never_needs_fewer_seeds():
    """Although it raises the degrees of freedom."""
    needs = seeds_by_item_error(2.0, varying(0.9))
    assert list(needs) == sorted(needs)
    assert needs[0] == seeds_needed(2.0, varying(0.9))
    assert needs[2] >= seeds_needed(2.0, varying(0.9, item_variance=0.18**2))


def test_seeds_are_counted_for_four_item_errors():
    """None, and half, one and one and a half times 0.18 points."""
    errors = (0.0, 0.09, 0.18, 0.27)
    needs = [seeds_needed(0.8, varying(0.9, item_variance=error**2)) for error in errors]
    assert needs == sorted(set(needs)), "all different"
    assert list(seeds_by_item_error(0.8, varying(0.9))) == needs


def test_a_claim_counts_by_the_difference_that_needs_most_seeds(made_up_paper):
    """A is 0.7 above C and 4 above B, whose seeds vary more."""
    made_up_paper(claim_on(["B", "C"]))
    (power,) = claim_powers()
    assert power.versus == "C"
    assert power.difference == pytest.approx(0.7)
    assert power.seed_sd == pytest.approx(0.2 * sqrt(2))
    assert power.needs == seeds_by_item_error(power.difference, varying(power.seed_sd))


def test_seeds_are_compared_without_an_error_over_items_first():
    """The deviation over seeds of C is larger, and the difference to D is smaller."""
    claim = Claim(**claim_on(["C", "D"]))
    more = ClaimPower("p", claim, "C", "x", 0.73, 1.19, (23, 26, 42, inf))
    fewer = ClaimPower("p", claim, "D", "x", 0.55, 0.52, (10, 11, 45, inf))
    assert max((fewer, more), key=by_seeds_needed) == more


def test_a_comparison_that_two_claims_of_a_sentence_rest_on_has_one_row(made_up_paper):
    made_up_paper(claim_on(["B"], quote="q"), claim_on(["B", "BERT"], quote="q"))
    assert len(claim_powers()) == 2
    assert len(claim_rows(with_unknown=True)) == 1


def test_a_claim_about_the_largest_difference_counts_by_it(made_up_paper):
    made_up_paper(claim_on(["B", "C"], up_to="4.00"))
    assert [power.versus for power in claim_powers()] == ["B"]


def test_a_difference_whose_seeds_nobody_published_counts_first(made_up_paper):
    made_up_paper(claim_on(["C", "D"]))
    (power,) = claim_powers()
    assert (power.versus, power.seed_sd, power.needs) == ("D", None, ())


def test_of_several_such_differences_the_smallest_counts():
    claim = Claim(**claim_on(["C", "D"]))
    unknown = [ClaimPower("p", claim, "C", "x", points, None) for points in (2.0, 0.7)]
    assert max(unknown, key=by_seeds_needed).difference == 0.7


@pytest.mark.parametrize(
    "claim",
    [
        claim_on(["A"], row="B"),  # the printed difference goes the other way
        claim_on(["BERT"]),  # nothing is printed
        claim_on(["B"], relation="comparable"),
        claim_on(["B"], statistic="std"),
    ],
)
def test_a_claim_without_a_printed_difference_of_values_is_left_out(claim, made_up_paper):
    made_up_paper(claim)
    assert claim_powers() == []


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
            seeds[row["column"], row["printed"]] = [row["seeds at 0.00"], row["seeds at 0.18"]]
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
    assert float(row["deviation"]) == pytest.approx(sqrt(0.49**2 + 1.61**2), abs=0.01)
    assert row["seeds at 0.18"] == "4"


def test_a_claim_about_gains_names_the_rows_that_are_subtracted(capsys):
    rows = {row["row"] for row in power(capsys, "claims")}
    assert "AMI+SimCSE − SimCSE (Gao et al., 2021)" in rows
