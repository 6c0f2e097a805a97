"""Verdicts, paired tests and Holm's correction against scipy and cases worked out by hand."""

from math import sqrt

import numpy as np
import pytest
import scipy.stats
from pydantic import TypeAdapter

from csebench.plan.schema.paper import PublishedValue
from csebench.report.numbers import stats
from csebench.report.numbers.estimates import Estimate
from csebench.report.words.verdicts import not_tested_text

printed = TypeAdapter(PublishedValue).validate_python


def seeds(mean, std, n):
    """n values of exactly that mean and standard deviation."""
    values = np.linspace(-1, 1, n)
    return mean + std * values / values.std(ddof=1)


def half_width(verdict):
    return (verdict.high - verdict.low) / 2


@pytest.mark.parametrize("n", [3, 10])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("text", "half_unit"), [("78.0", 0.05), ("78.00", 0.005)])
@pytest.mark.parametrize(
    ("level", "inside", "outside"),
    [(0.95, stats.REPRODUCED, stats.CLOSE), (0.99, stats.CLOSE, None)],
)
def test_verdict_changes_at_the_interval(level, inside, outside, text, half_unit, side, n):
    """t(n-1) · std · √(1 + 1/n), and half a printed unit."""
    off = scipy.stats.t.ppf((1 + level) / 2, n - 1) * 0.3 * sqrt(1 + 1 / n) + half_unit
    for change, expected in (
        (-1e-6, inside),
        (1e-6, outside or (stats.HIGHER if side > 0 else stats.LOWER)),
    ):
        assert (
            stats.verdict(seeds(78 + side * (off + change), 0.3, n), printed(text)).name == expected
        )


def test_two_seeds_are_too_few():
    verdict = stats.verdict([78.0] * 2, printed("78.00"))
    assert (verdict.name, verdict.low) == (stats.TOO_FEW, None)
    assert not_tested_text(verdict, 2) == "not tested: 2 of at least 3 seeds"


def test_without_spread_only_rounding_is_left():
    for off, expected in ((0.005, stats.REPRODUCED), (0.006, stats.HIGHER), (-0.006, stats.LOWER)):
        assert stats.verdict([78 + off] * 3, printed("78.00")).name == expected
    assert stats.verdict([78.0] * 3, printed("78.00±0.00"), seeds=5).name == stats.REPRODUCED


@pytest.mark.parametrize(("text", "unit"), [("78.0", 0.1), ("78.00", 0.01)])
def test_a_row_without_randomness(text, unit):
    """One printed unit, and ten; one run is enough."""
    for units, expected in (
        (-1, stats.REPRODUCED),
        (1.001, stats.CLOSE),
        (-10, stats.CLOSE),
        (10.01, stats.HIGHER),
    ):
        verdict = stats.verdict([78 + units * unit], printed(text), deterministic=True)
        assert verdict.name == expected and half_width(verdict) == pytest.approx(unit)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (10, 5), (5, 2)])
@pytest.mark.parametrize(("own", "theirs"), [(0.3, 0.9), (0.9, 0.3), (0.5, 0.0)])
def test_a_published_deviation_makes_it_welchs_test(n, m, own, theirs):
    """Digits enough that rounding has no say."""
    names = set()
    for off in np.sinh(np.linspace(-5, 5, 101)):
        verdict = stats.verdict(seeds(70 + off, own, n), printed(f"70.0000000±{theirs}"), seeds=m)
        p = scipy.stats.ttest_ind_from_stats(
            70 + off, own, n, 70, theirs, m, equal_var=False
        ).pvalue
        expected = stats.REPRODUCED if p >= 0.05 else stats.CLOSE if p >= 0.01 else None
        assert verdict.name == (expected or (stats.HIGHER if off > 0 else stats.LOWER))
        names.add(verdict.name)
    assert len(names) == 4


def test_a_published_mean_without_a_deviation():
    """Of five seeds: our spread stands for theirs. A deviation of one run says nothing."""
    verdict = stats.verdict(seeds(78, 0.5, 10), printed("78.00"), seeds=5)
    assert half_width(verdict) == pytest.approx(
        scipy.stats.t.ppf(0.975, 9) * 0.5 * sqrt(1 / 5 + 1 / 10) + 0.005
    )
    one = [
        half_width(stats.verdict(seeds(78, 0.5, 10), printed(text), seeds=1))
        for text in ("78.00", "78.00±9.99")
    ]
    assert one[0] == one[1]


def test_many_runs_have_an_interval_of_order_statistics():
    """From the lowest to the highest of 39, which hold 95 % of further runs, whatever their
    distribution; the normal interval at 99 % still makes a value outside of it close."""
    values = np.append(np.linspace(77, 78, 49), 70)  # skewed: the normal interval reaches 80.1
    verdict = stats.verdict(values, printed("78.41"))
    assert (verdict.low, verdict.high) == pytest.approx(
        (70 - 0.005, 78 + 0.005)
    ) and verdict.name == stats.CLOSE
    assert stats.verdict(values, printed("77.99")).name == stats.REPRODUCED
    assert stats.verdict(values, printed("90.00")).name == stats.LOWER
    few = stats.verdict(values[:38], printed("78.41"))
    assert few.high > values[:38].max() + 0.01, "of fewer, the normal interval"
    assert stats.verdict(np.linspace(0, 1, 79), printed("0.9900")).high == pytest.approx(
        1 - 1 / 78 + 0.00005
    )


def estimate(differences):
    summary = stats.summarise(differences)
    return Estimate(summary.mean, summary.n, summary.std, None)


def test_paired_over_seeds_is_the_paired_t_test():
    a, b = np.random.default_rng(0).normal(78, 0.5, (2, 5))
    expected = scipy.stats.ttest_rel(a, b)
    assert estimate(a - b).p() == pytest.approx(expected.pvalue)
    assert estimate(a - b).interval() == pytest.approx(expected.confidence_interval())
    assert estimate(a - b).interval(0.1) == pytest.approx(expected.confidence_interval(0.9))
    assert (estimate([0.3]).p(), estimate([0.0, 0.0]).p(), estimate([0.5, 0.5]).p()) == (
        None,
        1.0,
        0.0,
    )
    assert estimate([0.5, 0.5]).interval() == (0.5, 0.5)


def test_holm_by_hand():
    """0.005 · 4, 0.01 · 3, 0.03 · 2, and 0.04 · 1, which may not fall below the one before it."""
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert (
        stats.holm([0.7, 0.6]) == [1.0, 1.0]
        and stats.holm([0.01, 0.01]) == [0.02, 0.02]
        and stats.holm([]) == []
    )
