"""Verdicts, paired tests, Holm's correction and groups of ties against scipy and cases worked out by hand."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
import scipy.stats
from pydantic import TypeAdapter

from csebench.plan.papers import PublishedValue
from csebench.report import stats

printed = TypeAdapter(PublishedValue).validate_python


def seeds(mean, std, n):
    """n values of exactly that mean and standard deviation."""
    values = np.linspace(-1, 1, n)
    return mean + std * values / values.std(ddof=1)


# ---------------------------------------------------------------- verdicts


@pytest.mark.parametrize(("n", "half_width"), [(3, 2.48), (5, 1.52), (10, 1.19)])
def test_half_width_of_one_published_run(n, half_width):
    """t(.975, n-1) · 0.5 · √(1 + 1/n), and half a printed unit."""
    found = stats.verdict(seeds(78, 0.5, n), printed("78.00")).half_width
    assert found - 0.005 == pytest.approx(half_width, abs=0.005)
    assert found - 0.005 == pytest.approx(scipy.stats.t.ppf(0.975, n - 1) * 0.5 * sqrt(1 + 1 / n))


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("text", "half_unit"), [("78.0", 0.05), ("78.00", 0.005)])
@pytest.mark.parametrize(
    ("level", "inside", "outside"), [(0.95, stats.REPRODUCED, stats.CLOSE), (0.99, stats.CLOSE, None)]
)
def test_verdict_changes_at_the_interval(level, inside, outside, text, half_unit, side):
    off = scipy.stats.t.ppf((1 + level) / 2, 4) * 0.3 * sqrt(1 + 1 / 5) + half_unit
    for change, expected in ((-1e-6, inside), (1e-6, outside or (stats.HIGHER if side > 0 else stats.LOWER))):
        assert stats.verdict(seeds(78 + side * (off + change), 0.3, 5), printed(text)).name == expected


@pytest.mark.parametrize("n", [1, 2])
def test_two_seeds_are_too_few(n):
    found = stats.verdict([78.0] * n, printed("78.00"))
    assert (found.name, found.half_width) == (stats.TOO_FEW, None) and f"{n} of" in found.reason


def test_without_spread_only_rounding_is_left():
    for off, expected in ((0.005, stats.REPRODUCED), (0.006, stats.HIGHER), (-0.006, stats.LOWER)):
        assert stats.verdict([78 + off] * 3, printed("78.00")).name == expected
    assert stats.verdict([78.0] * 3, printed("78.00±0.00"), seeds=5).name == stats.REPRODUCED


@pytest.mark.parametrize(("text", "unit"), [("78.0", 0.1), ("78.00", 0.01)])
def test_a_row_without_randomness(text, unit):
    """One printed unit, and ten; one run is enough."""
    for units, expected in (
        (1, stats.REPRODUCED),
        (-1, stats.REPRODUCED),
        (1.001, stats.CLOSE),
        (-10, stats.CLOSE),
        (10.01, stats.HIGHER),
        (-10.01, stats.LOWER),
    ):
        found = stats.verdict([78 + units * unit], printed(text), deterministic=True)
        assert (found.name, found.half_width) == (expected, unit)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (10, 5), (5, 2)])
@pytest.mark.parametrize(("own", "theirs"), [(0.3, 0.9), (0.9, 0.3), (0.5, 0.0)])
def test_a_published_deviation_makes_it_welchs_test(n, m, own, theirs):
    """Digits enough that rounding has no say."""
    names = set()
    for off in np.sinh(np.linspace(-5, 5, 101)):
        found = stats.verdict(seeds(70 + off, own, n), printed(f"70.0000000±{theirs}"), seeds=m)
        p = scipy.stats.ttest_ind_from_stats(70 + off, own, n, 70, theirs, m, equal_var=False).pvalue
        expected = stats.REPRODUCED if p >= 0.05 else stats.CLOSE if p >= 0.01 else None
        assert found.name == (expected or (stats.HIGHER if off > 0 else stats.LOWER))
        names.add(found.name)
    assert len(names) == 4


def test_a_published_mean_without_a_deviation():
    """Of five seeds: our spread stands for theirs. A deviation of one run says nothing."""
    found = stats.verdict(seeds(78, 0.5, 10), printed("78.00"), seeds=5)
    assert found.half_width == pytest.approx(scipy.stats.t.ppf(0.975, 9) * 0.5 * sqrt(1 / 5 + 1 / 10) + 0.005)
    one = [stats.verdict(seeds(78, 0.5, 10), printed(text), seeds=1).half_width for text in ("78.00", "78.00±9.99")]
    assert one[0] == one[1]


# ---------------------------------------------------------------- two rows


def test_paired_over_seeds_is_the_paired_t_test():
    a, b = np.random.default_rng(0).normal(78, 0.5, (2, 5))
    found, expected = stats.paired_difference(a - b), scipy.stats.ttest_rel(a, b)
    assert found.p == pytest.approx(expected.pvalue) and found.mean == pytest.approx((a - b).mean())
    assert (found.seeds, found.item_variance) == (5, None)


def test_one_seed_over_right_and_wrong_items_is_mcnemars_test():
    """15 items that only one row has right, 5 that only the other: χ² = 10² / 20, without continuity correction."""
    d = np.array([1] * 15 + [-1] * 5 + [0] * 80)
    found = stats.paired_difference([d.mean()], np.square(d).mean() / len(d))
    assert found.p == pytest.approx(scipy.stats.chi2.sf(5, 1))


def test_variances_of_seeds_and_items_add_up():
    d = seeds(0.4, 0.6, 4)  # a variance of 0.36 / 4 = 0.09 on three degrees of freedom
    found = stats.paired_difference(d, 0.07)
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(0.4 / 0.4, 3 * (0.16 / 0.09) ** 2))
    assert found.p > stats.paired_difference(d).p


def test_paired_at_its_edges():
    assert stats.paired_difference([0.3]).p is None
    assert (stats.paired_difference([0.0, 0.0]).p, stats.paired_difference([0.5, 0.5]).p) == (1.0, 0.0)
    assert (stats.paired_difference([0.0], 0.0).p, stats.paired_difference([0.5], 0.0).p) == (1.0, 0.0)


# ---------------------------------------------------------------- many rows


def test_holm_by_hand():
    """0.005 · 4, 0.01 · 3, 0.03 · 2, and 0.04 · 1, which may not fall below the one before it."""
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.7, 0.6]) == [1.0, 1.0] and stats.holm([]) == []


def test_holm_keeps_the_order_and_lowers_nothing():
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = np.round(rng.random(9) ** 3, 2)  # some are equal
        adjusted = np.array(stats.holm(list(p)))
        assert (adjusted >= p).all() and (adjusted <= np.minimum(1, len(p) * p)).all()
        assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()
        assert all(len(set(adjusted[p == value])) == 1 for value in p)


@pytest.mark.parametrize(
    ("differ", "letters"),
    [
        ([], "a a a"),
        (["xz"], "a ab b"),
        (["xy", "xz", "yz"], "a b c"),
        (["xy", "xz"], "a b b"),
        (["xy"], "a b ab"),  # a pair that is further apart may tie, where its variance is larger
    ],
)
def test_tie_groups_by_hand(differ, letters):
    found = stats.tie_groups(["x", "y", "z"], {frozenset(pair) for pair in differ})
    assert list(found.items()) == list(zip("xyz", letters.split(), strict=True))


def test_rows_share_a_letter_if_and_only_if_they_tie():
    rng, names = np.random.default_rng(1), list("abcdefg")
    for _ in range(30):
        differ = {frozenset(pair) for pair in combinations(names, 2) if rng.random() < 0.4}
        letters = stats.tie_groups(names, differ)
        for a, b in combinations(names, 2):
            assert bool(set(letters[a]) & set(letters[b])) == (frozenset((a, b)) not in differ)
