"""Replicates of scores over test items: ranks against scipy, variances against formulas, units,
what is published."""

import json

import numpy as np
import pytest
import scipy.stats

from csebench.plan.schema.declarations import ItemScore
from csebench.score import replicates
from csebench.score.score_types import Sample, Score, sentence_ids


@pytest.mark.parametrize(("ties", "dtype"), [(10**6, float), (5, float), (30, np.float32)])
def test_weighted_spearman_is_scipys_of_repeated_items(ties, dtype):
    rng = np.random.default_rng(1)
    gold, values, weights = (
        rng.integers(0, 11, 40) / 2,
        rng.integers(0, ties, 40),
        rng.integers(0, 3, (20, 40)),
    )
    values = values.astype(dtype) / 7
    for correlation, times in zip(
        replicates.weighted_spearman(values, gold, 1.0 * weights), weights, strict=True
    ):
        expected = scipy.stats.spearmanr(np.repeat(values, times), np.repeat(gold, times)).statistic
        assert correlation == pytest.approx(expected, abs=1e-12)


def spearman_sample(seed, noise, sentences=None):
    gold = np.random.default_rng(99).integers(0, 26, 400) / 5
    return Sample(gold + np.random.default_rng(seed).normal(0, noise, 400), gold, sentences)


def changes_of(sample, draws=1024):
    units = replicates.membership([sample])
    return replicates.changes(sample, units @ replicates.draw_signs(draws, units.shape[1]))


def test_variance_of_a_difference_is_the_bootstraps():
    """Of two models on the same items, which are resampled anew here, by repetition."""
    a, b, rng, drawn = (
        spearman_sample(1, 0.5),
        spearman_sample(2, 1.5),
        np.random.default_rng(3),
        [],
    )
    for _ in range(1000):
        rows = rng.integers(0, 400, 400)
        drawn.append(
            np.subtract(
                *(scipy.stats.spearmanr(s.values[rows], s.gold[rows]).statistic for s in (a, b))
            )
        )
    assert np.std(changes_of(a) - changes_of(b)) == pytest.approx(np.std(drawn), rel=0.06)


def test_variance_of_a_mean_is_that_of_sums_over_clusters():
    rng = np.random.default_rng(0)
    cluster, values = rng.integers(0, 60, 200), rng.random(200)
    expected = np.square(np.bincount(cluster, values)).sum() / 200**2
    assert changes_of(Sample(values, None, cluster[:, None])).var() == pytest.approx(expected)


def test_copies_of_every_item_leave_the_error_as_it_is():
    once = spearman_sample(0, 1.0, np.arange(800).reshape(400, 2))
    often = Sample(*(np.repeat(part, 5, axis=0) for part in once))
    assert changes_of(often).std() == pytest.approx(changes_of(once).std(), rel=0.02)


def units_of(*sentences):
    samples = [Sample(np.zeros(len(ids)), None, np.array(ids)) for ids in sentences]
    return [sorted(row.nonzero()[0].tolist()) for row in replicates.membership(samples).toarray()]


def apart(first, count):
    """Pairs of sentences that nothing else has."""
    return [[first + 2 * i, first + 2 * i + 1] for i in range(count)]


def test_items_that_share_a_sentence_are_one_unit():
    """Also through a third item, and in another test set."""
    one, two, three, *rest = units_of([[1, 2], [2, 3], *apart(100, 38)], [[3, 4], *apart(200, 39)])
    assert one == two == rest[37] and len(one) == 1
    assert three != one and len({unit for units in (one, three, *rest) for unit in units}) == 78


def test_a_huge_cluster_is_resampled_by_sentence():
    """Five of twenty items: each belongs to its two sentences, an item of equal sentences to
    one."""
    chain = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 4]]
    units = units_of([*chain, *apart(100, 15)])
    assert [len(of_item) for of_item in units] == [2, 2, 2, 2, 1] + [1] * 15
    assert len(set(units[0]) & set(units[1])) == 1 and not set(units[0]) & set(units[2])


def test_ids_ignore_case_punctuation_and_spaces():
    ids = sentence_ids(["A man, running.", "?!"], ["a man running", "…"])
    assert ids[0, 0] == ids[0, 1] and ids[1, 0] != ids[1, 1] and ids.dtype == np.int64


@pytest.mark.parametrize("units", [127, 1000])
def test_signs_are_balanced_and_of_different_units_uncorrelated(units):
    """Exactly, up to one unit less than draws; then on average over the pairs that share a row."""
    signs = replicates.draw_signs(128, units)
    assert set(np.unique(signs)) == {-1.0, 1.0} and not signs.sum(1).any()
    products = (signs @ signs.T / 128)[np.triu_indices(units, 1)]
    assert set(products) <= {-1.0, 0.0, 1.0} and abs(products.mean()) < 1e-3
    assert np.abs(products).mean() == (0 if units == 127 else pytest.approx(1 / 127, rel=0.2))


RULE = ItemScore(
    values="{task}", score="spearman", gold="gold/{task}", sentences="sentences/{task}"
)


def published(seed=0, gold_shift=0.0):
    sample = spearman_sample(seed, noise=1.0, sentences=np.arange(800).reshape(400, 2))
    items = {
        "STS12": sample.values,
        "gold/STS12": sample.gold + gold_shift,
        "sentences/STS12": sample.sentences,
    }
    rows = [Score("STS12", "all", "spearman", 0.5), Score("Avg.", "all", "spearman", 0.5)]
    return sample, replicates.make_replicates(rows, items, RULE)


def test_what_is_published_is_what_was_computed():
    """In a few kilobytes, whatever the number of items."""
    sample, encoded = published()
    text = json.dumps({"replicates": encoded})
    assert list(encoded["scores"]) == ["STS12"] and len(text) < 2200
    read = replicates.read_replicates(json.loads(text), "STS12", "spearman")
    exact = changes_of(sample, replicates.DRAWS)
    assert np.abs(read.clustered - exact).max() < 1e-4 * exact.std()


def test_runs_of_the_same_items_are_paired_and_others_are_not():
    assert (
        published(1)[1]["items"]
        == published(2)[1]["items"]
        != published(1, gold_shift=1.0)[1]["items"]
    )


def test_without_a_rule_there_are_none():
    assert replicates.make_replicates([Score("STS-B", "all", "alignment", 0.1)], {}, None) is None
    assert replicates.read_replicates({}, "STS12", "spearman") is None
