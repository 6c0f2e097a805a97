"""Replicates of scores over test items: ranks against scipy, variances against formulas, the units
that are resampled, and what is published."""

import itertools
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
    gold = rng.integers(0, 11, 40) / 2
    values = rng.integers(0, ties, 40).astype(dtype) / 7
    repetitions = rng.integers(0, 3, (20, 40))

    correlations = replicates.weighted_spearman(values, gold, 1.0 * repetitions)
    for correlation, times in zip(correlations, repetitions, strict=True):
        expected = scipy.stats.spearmanr(np.repeat(values, times), np.repeat(gold, times)).statistic
        assert correlation == pytest.approx(expected, abs=1e-12)


def spearman_sample(seed, noise, sentences=None):
    """Draw 400 values around the same gold scores.

    Args:
        seed: of the noise.
        noise: its standard deviation.
    """
    gold = np.random.default_rng(99).integers(0, 26, 400) / 5
    values = gold + np.random.default_rng(seed).normal(0, noise, 400)
    return Sample(values, gold, sentences)


def changes_of(sample, draws=1024):
    """Compute the replicates of a score from its sample."""
    units = replicates.membership([sample])
    signs = replicates.draw_signs(draws, units.shape[1])
    return replicates.changes(sample, units @ signs)


def test_variance_of_a_difference_is_the_bootstraps():
    """Two models are scored on the same items. The expected value draws items with repetition."""
    exact = spearman_sample(1, 0.5)
    noisy = spearman_sample(2, 1.5)

    rng = np.random.default_rng(3)
    differences = []
    for _ in range(1000):
        rows = rng.integers(0, 400, 400)
        differences.append(spearman_of(exact, rows) - spearman_of(noisy, rows))
    changes = changes_of(exact) - changes_of(noisy)
    assert np.std(changes) == pytest.approx(np.std(differences), rel=0.06)


def spearman_of(sample, rows):
    """Score some rows of a sample."""
    return scipy.stats.spearmanr(sample.values[rows], sample.gold[rows]).statistic


def test_variance_of_a_mean_is_that_of_sums_over_clusters():
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 60, 200)
    values = rng.random(200)
    sums_over_clusters = np.bincount(cluster, values)
    expected = np.square(sums_over_clusters).sum() / 200**2

    changes = changes_of(Sample(values, gold=None, sentences=cluster[:, None]))
    assert changes.var() == pytest.approx(expected)


def test_copies_of_every_item_leave_the_error_as_it_is():
    once = spearman_sample(0, 1.0, np.arange(800).reshape(400, 2))
    five_times = Sample(*(np.repeat(array, 5, axis=0) for array in once))
    assert changes_of(five_times).std() == pytest.approx(changes_of(once).std(), rel=0.02)


def units_of(*test_sets):
    """List the units that each item belongs to, over all test sets.

    Args:
        test_sets: ids of the two sentences of each item.
    """
    samples = []
    for ids in test_sets:
        samples.append(Sample(np.zeros(len(ids)), None, np.array(ids)))
    rows = replicates.membership(samples).toarray()
    return [sorted(row.nonzero()[0].tolist()) for row in rows]


def apart(first, count):
    """Make items whose sentences occur in no other item."""
    return [[first + 2 * i, first + 2 * i + 1] for i in range(count)]


def test_items_that_share_a_sentence_are_one_unit():
    """Also through a third item, and in another test set."""
    chain = [[1, 2], [2, 3]]
    end_of_chain = [[3, 4]]
    units = units_of([*chain, *apart(100, 38)], [*end_of_chain, *apart(200, 39)])

    unit_of_chain = units[0]
    assert len(unit_of_chain) == 1
    assert units[1] == unit_of_chain
    assert units[40] == unit_of_chain, "the first item of the second test set"
    assert units[2] != unit_of_chain
    assert len(set(itertools.chain.from_iterable(units))) == 78


def test_a_huge_cluster_is_resampled_by_sentence():
    """Five of twenty items are a cluster. Each of them belongs to its two sentences, and an item
    of equal sentences to one."""
    chain = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 4]]
    units = units_of([*chain, *apart(100, 15)])

    units_by_item = [len(units_of_item) for units_of_item in units]
    assert units_by_item[:5] == [2, 2, 2, 2, 1]
    assert units_by_item[5:] == [1] * 15
    first, second, third, *_ = (set(units_of_item) for units_of_item in units)
    assert len(first & second) == 1
    assert not first & third


def test_ids_ignore_case_punctuation_and_spaces():
    ids = sentence_ids(["A man, running.", "?!"], ["a man running", "…"])
    assert ids.dtype == np.int64
    assert ids[0, 0] == ids[0, 1]
    assert ids[1, 0] != ids[1, 1], "the whole text counts if it has no letters"


@pytest.mark.parametrize(
    ("units", "mean_correlation"),
    [
        (127, 0),  # exactly uncorrelated, up to one unit less than draws
        (1000, pytest.approx(1 / 127, rel=0.2)),  # on average over the pairs that share a row
    ],
    ids=["127", "1000"],
)
def test_signs_are_balanced_and_of_different_units_uncorrelated(units, mean_correlation):
    signs = replicates.draw_signs(128, units)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert not signs.sum(1).any()

    every_pair = np.triu_indices(units, 1)
    correlations = (signs @ signs.T / 128)[every_pair]
    assert set(correlations) <= {-1.0, 0.0, 1.0}
    assert abs(correlations.mean()) < 1e-3
    assert np.abs(correlations).mean() == mean_correlation


RULE = ItemScore(
    values="{task}", score="spearman", gold="gold/{task}", sentences="sentences/{task}"
)


def sts12_sample(seed):
    """Draw a sample of items that share no sentence."""
    return spearman_sample(seed, noise=1.0, sentences=np.arange(800).reshape(400, 2))


def published(sample, gold_shift=0.0):
    """Make the JSON of replicates of STS12, whose items are those of the sample.

    Args:
        gold_shift: is added to the gold scores.
    """
    items = {
        "STS12": sample.values,
        "gold/STS12": sample.gold + gold_shift,
        "sentences/STS12": sample.sentences,
    }
    rows = [Score("STS12", "all", "spearman", 0.5), Score("Avg.", "all", "spearman", 0.5)]
    return replicates.make_replicates(rows, items, RULE)


def test_what_is_published_is_what_was_computed():
    """In a few kilobytes, however many items there are."""
    sample = sts12_sample(seed=0)
    encoded = published(sample)
    text = json.dumps({"replicates": encoded})
    assert list(encoded["scores"]) == ["STS12"]
    assert len(text) < 2200

    decoded = replicates.read_replicates(json.loads(text), "STS12", "spearman")
    computed = changes_of(sample, replicates.DRAWS)
    assert np.abs(decoded.clustered - computed).max() < 1e-4 * computed.std()


def test_runs_of_the_same_items_are_paired_and_others_are_not():
    items = published(sts12_sample(seed=1))["items"]
    assert published(sts12_sample(seed=2))["items"] == items
    assert published(sts12_sample(seed=1), gold_shift=1.0)["items"] != items


def test_without_a_rule_there_are_none():
    assert replicates.make_replicates([Score("STS-B", "all", "alignment", 0.1)], {}, None) is None
    assert replicates.read_replicates({}, "STS12", "spearman") is None
