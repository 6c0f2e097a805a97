"""Runs of several sources, pooled: known answers, borrowed deviations, verdicts, coverage."""

import numpy as np
import pytest
from scipy.stats import f_oneway

from csebench.plan.schema.paper import Published
from csebench.report.numbers import stats
from csebench.report.numbers.random_effects import (
    between_variance,
    cochran_q,
    pool_sources,
    within_variance,
)
from csebench.report.numbers.stats import Summary, summarise

# Three sources of two runs with the means 2, 6 and 10, and the variance 2 within each source.
BALANCED = [summarise(runs) for runs in ([1, 3], [5, 7], [9, 11])]

# Thirteen trials of the BCG vaccine against tuberculosis (Colditz et al. 1994). A row has cases and
# others among the vaccinated, and cases and others among the unvaccinated.
BCG = np.array(
    [
        [4, 119, 11, 128],
        [6, 300, 29, 274],
        [3, 228, 11, 209],
        [62, 13536, 248, 12619],
        [33, 5036, 47, 5761],
        [180, 1361, 372, 1079],
        [8, 2537, 10, 619],
        [505, 87886, 499, 87892],
        [29, 7470, 45, 7232],
        [17, 1699, 65, 1600],
        [186, 50448, 141, 27197],
        [5, 2493, 3, 2338],
        [27, 16886, 29, 17825],
    ]
)


def test_textbook_example_has_the_published_heterogeneity():
    """Log risk ratios: Q = 152.233, and tau² = 0.3286 by Hedges' estimator (package metafor)."""
    cases, others, control_cases, control_others = BCG.T
    vaccinated = cases + others
    controls = control_cases + control_others
    log_ratios = np.log(cases / vaccinated) - np.log(control_cases / controls)
    variances = 1 / cases - 1 / vaccinated + 1 / control_cases - 1 / controls
    assert cochran_q(log_ratios, variances) == pytest.approx(152.233, abs=5e-4)
    assert between_variance(log_ratios, variances) == pytest.approx(0.3286, abs=5e-5)


def test_balanced_sources_have_the_values_of_an_analysis_of_variance():
    """By hand. t(.975, 2) is 4.302653; the upper tail of F(2, 3) is (1 + 2F/3)^-1.5."""
    effects = pool_sources(BALANCED)
    assert effects.mean == 6
    assert (effects.within**2, effects.within_df) == (pytest.approx(2), 3)
    assert effects.tau**2 == pytest.approx(16 - 2 / 2)
    assert effects.error == pytest.approx(4 / 3**0.5)
    assert effects.q == pytest.approx(2 * 16)  # F is 16
    assert effects.p == pytest.approx((1 + 2 * 16 / 3) ** -1.5)
    assert effects.mean_range.high == pytest.approx(6 + 4.302653 * (16 / 3) ** 0.5)
    new_run = effects.new_source_range(stats.LEVEL)
    assert new_run.high == pytest.approx(6 + 4.302653 * (16 / 3 + 15 + 2) ** 0.5)
    assert new_run.low == pytest.approx(6 - 4.302653 * (16 / 3 + 15 + 2) ** 0.5)


def test_sources_of_unequal_size_are_tested_as_in_an_analysis_of_variance():
    runs = [[75.0, 75.4, 76.1, 74.2], [76.0, 77.1], [74.3, 74.9, 75.2]]
    effects = pool_sources([summarise(of_source) for of_source in runs])
    expected = f_oneway(*runs)
    assert effects.q / 2 == pytest.approx(expected.statistic)
    assert effects.p == pytest.approx(expected.pvalue)


def test_sources_with_equal_means_do_not_differ():
    effects = pool_sources([Summary(75.0, 0.8, 50), Summary(75.0, None, 1), Summary(75.0, 0.5, 3)])
    assert (effects.tau, effects.q, effects.p) == (0, 0, 1)
    assert effects.mean == 75


def test_a_source_far_away_raises_the_deviation_between_sources():
    near = [Summary(75.0, 0.8, 50), Summary(75.5, None, 1), Summary(74.8, None, 1)]
    far = [*near, Summary(79.0, None, 1)]
    assert pool_sources(near).tau == 0
    assert pool_sources(far).tau > 1
    assert pool_sources(far).p < 0.001


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_sources_are_not_pooled(count):
    assert pool_sources(BALANCED[:count]) is None


@pytest.mark.parametrize("std", [None, 0.0])
def test_sources_without_a_deviation_within_one_are_not_pooled(std):
    n = 1 if std is None else 2
    assert pool_sources([Summary(mean, std, n) for mean in (74.0, 75.0, 76.0)]) is None


def test_sources_share_one_deviation_by_their_degrees_of_freedom():
    sources = [Summary(75.0, 1.0, 11), Summary(76.0, 2.0, 6), Summary(77.0, None, 4)]
    assert within_variance(sources) == (pytest.approx((10 * 1 + 5 * 4) / 15), 15)


def test_a_mean_without_a_deviation_counts_like_the_runs_that_it_is_a_mean_of():
    """Its stated deviation would only change the one that all sources share."""
    others = [Summary(75.0, 0.8, 50), Summary(75.5, None, 1)]
    borrowing = pool_sources([*others, Summary(77.0, None, 4)])
    stating = pool_sources([*others, Summary(77.0, 0.8, 4)])
    assert borrowing.tau == pytest.approx(stating.tau)
    assert borrowing.q == pytest.approx(stating.q)
    assert (borrowing.within_df, stating.within_df) == (49, 52)


def test_a_source_with_many_runs_counts_no_more_than_others():
    sources = [Summary(75.0, 0.8, 500), Summary(76.0, None, 1), Summary(77.0, None, 1)]
    assert pool_sources(sources).mean == 76


def test_the_mean_of_several_runs_of_a_new_source_varies_less_than_one_run():
    """By hand, as for one run: the variance 2 within sources is divided by 4."""
    four_runs = pool_sources(BALANCED).new_source_range(stats.LEVEL, runs=4)
    assert four_runs.high == pytest.approx(6 + 4.302653 * (16 / 3 + 15 + 2 / 4) ** 0.5)


@pytest.mark.parametrize(
    ("printed", "name"),
    [(75.4, stats.AGREES), (75.8, stats.CLOSE), (79.0, stats.LOWER), (70.0, stats.HIGHER)],
)
def test_a_printed_value_is_judged_by_the_range_of_a_new_run(printed, name):
    """By hand: the range at 95 % is 75 ± 0.68, the one at 99 % is 75 ± 0.98."""
    effects = pool_sources([Summary(75.0, 0.3, 5)] * 10)
    verdict = effects.verdict(Published(value=printed, text=f"{printed:.2f}"), 1)
    assert verdict.name == name
    assert verdict.distance == pytest.approx(75 - printed)


def test_a_printed_value_in_a_wide_range_is_inconclusive():
    printed = Published(value=7.0, text="7.00")
    assert pool_sources(BALANCED).verdict(printed, 1).name == stats.INCONCLUSIVE


def test_half_a_printed_unit_is_added_for_rounding():
    effects = pool_sources(BALANCED)
    verdict = effects.verdict(Published(value=7.0, text="7.0"), 1)
    assert verdict.high == pytest.approx(effects.new_source_range(stats.LEVEL).high + 0.05)


@pytest.mark.parametrize("tau", [0.0, 1.0])
def test_ranges_over_five_sources_hold_what_they_should(tau):
    """95 % is intended; 1,000 draws are off by 0.7 % (more if sources do not differ)."""
    generator = np.random.default_rng(0)
    means_held = 0
    runs_held = 0
    for _ in range(1000):
        sources = []
        for size in (20, 3, 2, 1, 1):
            true_mean = generator.normal(75, tau)
            sources.append(summarise(generator.normal(true_mean, 1, size)))
        new_run = generator.normal(generator.normal(75, tau), 1)
        effects = pool_sources(sources)
        means_held += effects.mean_range.encloses(75)
        runs_held += effects.new_source_range(stats.LEVEL).encloses(new_run)
    assert 930 <= means_held <= 985
    assert 940 <= runs_held <= 1000
