"""Verdicts, paired tests and Holm's correction against scipy and cases worked out by hand."""

from math import inf, sqrt

import numpy as np
import pytest
import scipy.stats
from pydantic import TypeAdapter

from csebench.plan.schema.paper import PublishedValue
from csebench.report.numbers import stats
from csebench.report.numbers.estimates import Estimate
from csebench.report.words.verdicts import why_value_not_tested

printed = TypeAdapter(PublishedValue).validate_python


def seeds(mean, std, n):
    """Make n values with exactly this mean and standard deviation."""
    values = np.linspace(-1, 1, n)
    return mean + std * values / values.std(ddof=1)


def half_width(verdict):
    return (verdict.high - verdict.low) / 2


@pytest.mark.parametrize("n", [3, 10])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("text", "half_unit"), [("78.0", 0.05), ("78.00", 0.005)])
@pytest.mark.parametrize(
    ("level", "inside", "above", "below"),
    [
        (0.95, stats.AGREES, stats.CLOSE, stats.CLOSE),
        (0.99, stats.CLOSE, stats.HIGHER, stats.LOWER),
    ],
)
def test_verdict_changes_at_the_interval(level, inside, above, below, text, half_unit, side, n):
    """The interval is t(n-1) · std · √(1 + 1/n), and half a printed unit."""
    edge = scipy.stats.t.ppf((1 + level) / 2, n - 1) * 0.15 * sqrt(1 + 1 / n) + half_unit
    just_inside = seeds(78 + side * (edge - 1e-6), 0.15, n)
    assert stats.verdict(just_inside, printed(text)).name == inside

    outside = above
    if side < 0:
        outside = below
    just_outside = seeds(78 + side * (edge + 1e-6), 0.15, n)
    assert stats.verdict(just_outside, printed(text)).name == outside


@pytest.mark.parametrize(("off", "name"), [(-1e-6, stats.AGREES), (1e-6, stats.INCONCLUSIVE)])
@pytest.mark.parametrize("factor", [1, 100])
@pytest.mark.parametrize("distance", [0.0, 0.9])
def test_an_interval_of_a_point_or_more_is_inconclusive(off, name, factor, distance):
    """Also where the means agree. A point is 0.01 of a score, whatever unit is printed."""
    error_of_one = scipy.stats.t.ppf(0.975, 4) * sqrt(1 + 1 / 5)
    point = factor / 100
    std = point * (1 + off) / error_of_one
    value = printed(f"{0.78 * factor:.10f}")  # so many digits that rounding does not matter
    runs = seeds(0.78 * factor + distance * point, std, 5)
    verdict = stats.verdict(runs, value, point=point)
    assert verdict.name == name
    assert verdict.distance == pytest.approx(distance * point)


def test_an_interval_of_exactly_one_point_to_each_side_is_inconclusive():
    """Without randomness the interval is one printed unit to each side, here a point."""
    assert stats.verdict([78.0], printed("78"), deterministic=True).name == stats.INCONCLUSIVE


def test_two_seeds_are_too_few():
    verdict = stats.verdict([78.0, 78.0], printed("78.00"))
    assert verdict.name == stats.TOO_FEW
    assert verdict.low is None
    assert why_value_not_tested(verdict, 2) == "2 seeds, at least 3 are needed"


@pytest.mark.parametrize(
    ("off", "expected"),
    [(0.005, stats.AGREES), (0.006, stats.HIGHER), (-0.006, stats.LOWER)],
)
def test_without_spread_only_rounding_is_left(off, expected):
    assert stats.verdict([78 + off] * 3, printed("78.00")).name == expected


def test_a_printed_deviation_of_0_is_no_spread():
    verdict = stats.verdict([78.0] * 3, printed("78.00±0.00"), seeds=5)
    assert verdict.name == stats.AGREES


@pytest.mark.parametrize(("text", "unit"), [("78.0", 0.1), ("78.00", 0.01)])
@pytest.mark.parametrize(
    ("units", "expected"),
    [
        (-1, stats.AGREES),
        (1.001, stats.CLOSE),
        (-10, stats.CLOSE),
        (10.01, stats.HIGHER),
    ],
)
def test_a_row_without_randomness(units, expected, text, unit):
    """One run is enough. A value within one printed unit is reproduced, one within ten is close."""
    verdict = stats.verdict([78 + units * unit], printed(text), deterministic=True)
    assert verdict.name == expected
    assert half_width(verdict) == pytest.approx(unit)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (10, 5), (5, 2)])
@pytest.mark.parametrize(("own", "theirs"), [(0.3, 0.9), (0.9, 0.3), (0.5, 0.0)])
def test_a_published_deviation_makes_it_welchs_test(n, m, own, theirs):
    """The printed value has so many digits that rounding does not matter."""
    names = set()
    for off in np.sinh(np.linspace(-5, 5, 101)):
        published = printed(f"70.0000000±{theirs}")
        verdict = stats.verdict(seeds(70 + off, own, n), published, seeds=m, point=100)
        welch = scipy.stats.ttest_ind_from_stats(70 + off, own, n, 70, theirs, m, equal_var=False)
        assert verdict.name == verdict_of(welch.pvalue, off)
        names.add(verdict.name)
    assert len(names) == 4


def verdict_of(p, off):
    """Name the verdict on a difference with this p, if wide intervals agree as well."""
    if p >= 0.05:
        return stats.AGREES
    if p >= 0.01:
        return stats.CLOSE
    if off > 0:
        return stats.HIGHER
    return stats.LOWER


def test_a_published_mean_without_a_deviation():
    """The printed mean is over five seeds, and our spread stands for theirs."""
    verdict = stats.verdict(seeds(78, 0.5, 10), printed("78.00"), seeds=5)
    expected = scipy.stats.t.ppf(0.975, 9) * 0.5 * sqrt(1 / 5 + 1 / 10) + 0.005
    assert half_width(verdict) == pytest.approx(expected)


def test_the_deviation_of_one_run_says_nothing():
    values = seeds(78, 0.5, 10)
    without = stats.verdict(values, printed("78.00"), seeds=1)
    with_deviation = stats.verdict(values, printed("78.00±9.99"), seeds=1)
    assert half_width(without) == half_width(with_deviation)


def test_many_runs_have_an_interval_of_order_statistics():
    """From 39 runs on, the interval goes from the lowest to the highest, which holds 95 % of
    further runs, whatever their distribution. No normal interval makes a value outside it close."""
    values = np.append(np.linspace(77, 78, 49), 70)  # skewed: the normal interval reaches 80.1
    verdict = stats.verdict(values, printed("78.41"))
    assert (verdict.low, verdict.high) == pytest.approx((70 - 0.005, 78 + 0.005))
    assert verdict.name == stats.LOWER
    assert verdict.distance == pytest.approx(values.mean() - 78.41)
    assert stats.verdict(values, printed("77.99")).name == stats.INCONCLUSIVE
    assert stats.verdict(values, printed("69.00")).name == stats.HIGHER
    narrow = np.linspace(77, 78, 50)
    assert stats.verdict(narrow, printed("77.99")).name == stats.AGREES


def test_close_to_many_runs_is_within_order_statistics_too():
    """Of 199 runs, the lowest and the highest enclose 99 % of further runs, and the fifth from each
    end 95 %."""
    values = np.arange(199) / 100
    verdict = stats.verdict(values, printed("1.95"))
    assert (verdict.low, verdict.high) == pytest.approx((0.04 - 0.005, 1.94 + 0.005))
    assert verdict.name == stats.CLOSE
    assert stats.verdict(values, printed("1.98")).name == stats.CLOSE
    assert stats.verdict(values, printed("1.99")).name == stats.LOWER
    assert stats.verdict(values[:198], printed("1.97")).name == stats.LOWER


def test_fewer_than_39_runs_have_the_normal_interval():
    values = np.linspace(77, 78, 49)[:38]
    verdict = stats.verdict(values, printed("78.41"))
    assert verdict.high > values.max() + 0.01


def test_of_79_runs_the_interval_leaves_out_the_highest():
    verdict = stats.verdict(np.linspace(0, 1, 79), printed("0.9900"))
    assert verdict.high == pytest.approx(1 - 1 / 78 + 0.00005)


@pytest.mark.parametrize(
    ("runs", "rank"), [(39, 1), (78, 1), (79, 2), (118, 2), (119, 3), (158, 3), (159, 4)]
)
def test_the_interval_of_order_statistics_is_the_narrowest_that_holds_95_percent(runs, rank):
    """From the value of a rank to that of the same rank from above, a further run falls with the
    chance 1 - 2 · rank / (runs + 1)."""
    verdict = stats.verdict(np.arange(runs)[::-1], printed("10.0"))
    assert (verdict.low, verdict.high) == pytest.approx((rank - 1 - 0.05, runs - rank + 0.05))


@pytest.mark.parametrize(
    ("text", "name"),
    [("0.0", stats.INCONCLUSIVE), ("38.0", stats.INCONCLUSIVE), ("38.1", stats.LOWER)],
)
def test_a_value_on_the_edge_of_order_statistics_is_inside(text, name):
    """The lowest of 39 runs is 0.05 and the highest 37.95. Half a printed unit is added."""
    values = np.linspace(0.05, 37.95, 39)
    assert stats.verdict(values, printed(text)).name == name


def test_a_printed_mean_is_compared_with_the_mean_of_many_runs():
    """Order statistics bound a single run, not a mean of two."""
    values = np.linspace(77, 78, 50)
    of_means = stats.verdict_on(stats.summarise(values), printed("77.70"), seeds=2)
    assert stats.verdict(values, printed("77.70"), seeds=2) == of_means


def test_a_row_without_randomness_has_no_order_statistics():
    verdict = stats.verdict([78.0] * 50, printed("78.01"), deterministic=True)
    assert verdict.name == stats.AGREES


def test_a_mean_whose_deviation_is_not_known_is_not_comparable():
    verdict = stats.verdict_on(stats.Summary(78.0, None, 5), printed("78.00"))
    assert verdict.name == stats.NOT_COMPARABLE


def estimate(differences):
    """Estimate a difference from its values, one for each seed."""
    summary = stats.summarise(differences)
    return Estimate(summary.mean, summary.n, summary.std, None)


def test_paired_over_seeds_is_the_paired_t_test():
    a, b = np.random.default_rng(0).normal(78, 0.5, (2, 5))
    expected = scipy.stats.ttest_rel(a, b)
    ours = estimate(a - b)
    assert ours.p() == pytest.approx(expected.pvalue)
    assert ours.interval() == pytest.approx(expected.confidence_interval(0.95))
    assert ours.interval(0.1) == pytest.approx(expected.confidence_interval(0.9))


def test_differences_without_a_deviation():
    one_seed = estimate([0.3])
    assert one_seed.p() is None
    equal_rows = estimate([0.0, 0.0])
    assert equal_rows.p() == 1.0
    always_above = estimate([0.5, 0.5])
    assert always_above.p() == 0.0
    assert always_above.interval() == (0.5, 0.5)


def test_one_seed_is_tested_over_its_test_items():
    of_items = Estimate(0.4, 1, None, 0.2)
    assert of_items.p() == pytest.approx(2 * scipy.stats.norm.sf(2))


def test_more_seeds_add_no_error_that_is_not_known():
    assert Estimate(0.4, 1, None, 0.2).error(seeds=5) == (0.2, inf)


@pytest.mark.parametrize("gain", [0.005, -0.005])
def test_equivalence_is_shown_by_two_one_sided_tests(gain):
    """The further bound of the 90 % interval is within the limit, on whichever side it is."""
    difference = Estimate(gain, 5, 0.01, None)
    reach = 0.005 + scipy.stats.t.ppf(0.95, 4) * 0.01 / sqrt(5)
    assert difference.is_within(reach + 1e-9)
    assert not difference.is_within(reach - 1e-9)


def test_holm_by_hand():
    """0.005 · 4, 0.01 · 3, 0.03 · 2, and 0.04 · 1, which may not fall below the one before it."""
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.7, 0.6]) == [1.0, 1.0]
    assert stats.holm([0.01, 0.01]) == [0.02, 0.02]
    assert stats.holm([]) == []
