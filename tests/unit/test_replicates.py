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


def test_a_replicate_of_a_mean_is_the_signed_mean_of_its_values():
    """Three items are a cluster and the fourth is one of its own."""
    values = np.array([1.0, 2.0, 3.0, 10.0])
    signs = np.array([[1, -1], [1, -1], [1, -1], [1, 1]])
    assert replicates.changes(Sample(values), signs).tolist() == [16 / 4, 4 / 4]


def test_a_replicate_of_a_correlation_is_twice_its_change():
    """An item with the sign +1 has the weight 1.5, three times that of an item with -1."""
    test_set = spearman_sample(1, 1.0)
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], (400, 2))
    expected = []
    for sign in signs.T:
        rows = np.repeat(np.arange(400), np.where(sign > 0, 3, 1))
        expected.append(2 * (spearman_of(test_set, rows) - spearman_of(test_set, slice(None))))
    assert replicates.changes(test_set, signs) == pytest.approx(expected)


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


def test_units_have_the_same_numbers_in_whatever_order_python_lists_a_set():
    """Else two runs would not have the same resamples. A set of 1 and 8 is listed with 8 first."""
    assert units_of([[8, 1], [1, 20]]) == [[0, 1], [0, 2]]


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


@pytest.mark.parametrize(("shared", "units_of_first"), [(2, 1), (3, 2)])
def test_a_cluster_is_huge_if_it_is_more_than_a_tenth_of_a_test_set(shared, units_of_first):
    sharing = [[0, 10 + number] for number in range(shared)]
    units = units_of([*sharing, *apart(100, 20 - shared)])
    assert len(units[0]) == units_of_first


def test_a_cluster_is_huge_if_it_is_so_in_one_test_set():
    """It is one of 40 items of the first, and three of 20 of the second."""
    sharing = [[0, 10 + number] for number in range(3)]
    units = units_of([[0, 10], *apart(100, 39)], [*sharing, *apart(200, 17)])
    assert [len(units[index]) for index in (0, 1, 40, 43)] == [2, 1, 2, 1]


def test_an_item_of_a_small_test_set_is_one_unit():
    units = units_of(apart(0, 5))
    assert [len(units_of_item) for units_of_item in units] == [1] * 5


def test_two_items_of_a_small_test_set_are_a_huge_cluster():
    units = units_of([[0, 10], [0, 11], *apart(100, 3)])
    assert [len(units_of_item) for units_of_item in units] == [2, 2, 1, 1, 1]


def test_items_without_sentences_are_units_of_their_own():
    with_sentences = Sample(np.zeros(2), None, np.array([[1, 2], [2, 3]]))
    without = Sample(np.zeros(3))
    assert replicates.membership([with_sentences, without]).toarray().tolist() == np.eye(5).tolist()


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


def test_signs_are_the_same_in_every_release():
    """Published replicates can only be paired with those of the same signs."""
    packed = np.packbits(replicates.draw_signs(8, 70) > 0).tobytes()
    assert packed.hex() == (
        "55cc66f0a5c396aacc660f5a3c69aa3399f05a3c6955cc66f0a53c96aa3366f0a5c36955cc99f0a5c396aa33990f"
        "a5c369553366f0a5c396aa33990f5a3c96aa3366f05a3c69"
    )


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


def test_each_task_has_the_replicates_of_its_own_items():
    """All tasks are resampled together, and only the first 400 items are those of STS12."""
    first = sts12_sample(seed=0)
    second = spearman_sample(1, noise=1.0, sentences=np.arange(1000, 1800).reshape(400, 2))
    items = {}
    for task, test_set in (("STS12", first), ("STS13", second)):
        items[task] = test_set.values
        items[f"gold/{task}"] = test_set.gold
        items[f"sentences/{task}"] = test_set.sentences
    rows = [Score(task, "all", "spearman", 0.5) for task in ("STS12", "STS13")]
    encoded = {"replicates": replicates.make_replicates(rows, items, RULE)}

    units = replicates.membership([first, second])
    signs = replicates.draw_signs(replicates.DRAWS, units.shape[1])
    for task, test_set, rows_of in (
        ("STS12", first, slice(400)),
        ("STS13", second, slice(400, None)),
    ):
        computed = replicates.changes(test_set, units[rows_of] @ signs)
        decoded = replicates.read_replicates(encoded, task, "spearman").clustered
        assert decoded == pytest.approx(computed, abs=1e-4 * computed.std())


def test_a_score_that_no_resample_changes_is_published():
    nothing = replicates.encode(np.zeros(8))
    assert replicates.decode(nothing).tolist() == [0.0] * 8


def test_the_largest_change_is_kept_exactly():
    changes = np.array([-0.5, 0.25, 0.1])
    assert replicates.decode(replicates.encode(changes)) == pytest.approx(changes, abs=0.5 / 2**15)


@pytest.mark.parametrize(
    ("version", "is_paired"), [(None, True), (1, True), (0, False), (2, False)]
)
def test_replicates_of_another_version_cannot_be_paired(version, is_paired):
    content = {"replicates": published(sts12_sample(seed=1))}
    del content["replicates"]["version"]
    if version is not None:
        content["replicates"]["version"] = version
    assert replicates.has_replicates(content, "STS12", "spearman") == is_paired


def test_a_score_without_replicates_has_none():
    content = {"replicates": published(sts12_sample(seed=1))}
    assert not replicates.has_replicates(content, "STS12", "pearson")
    assert not replicates.has_replicates(content, "STS13", "spearman")


def test_runs_of_the_same_items_are_paired_and_others_are_not():
    items = published(sts12_sample(seed=1))["items"]
    assert published(sts12_sample(seed=2))["items"] == items
    assert published(sts12_sample(seed=1), gold_shift=1.0)["items"] != items


def test_without_a_rule_there_are_none():
    assert replicates.make_replicates([Score("STS-B", "all", "alignment", 0.1)], {}, None) is None
    assert replicates.read_replicates({}, "STS12", "spearman") is None
