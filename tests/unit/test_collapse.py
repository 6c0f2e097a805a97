"""Collapsed vectors: the one check that all evaluators share finds them, and no others."""

import numpy as np
import pytest

from csebench.base.errors import RunFailed
from csebench.model import embedder
from csebench.model.embedder import Embedder, check_distinct

RNG = np.random.default_rng(7)
ONE = RNG.standard_normal(24)


def texts(count):
    return [f"sentence number {number}" for number in range(count)]


def some_equal(count, equal):
    """Draw `count` vectors, and make the last `equal` of them the same."""
    vectors = RNG.standard_normal((count, 24))
    vectors[count - equal :] = ONE
    return vectors


@pytest.mark.parametrize(
    ("count", "equal"), [(3, 3), (9, 9), (10, 5), (11, 6), (400, 200), (5000, 5000), (5000, 2600)]
)
def test_half_of_many_or_all_of_a_few_are_a_collapse(count, equal):
    compared = min(count, embedder.COMPARED)
    message = f"of the {compared} that were compared share theirs"
    with pytest.raises(RunFailed, match=message):
        check_distinct(texts(count), some_equal(count, equal))


@pytest.mark.parametrize(
    ("count", "equal"),
    [(1, 1), (2, 2), (3, 2), (9, 8), (10, 4), (400, 190), (5000, 2000), (5000, 0)],
)
def test_fewer_are_none(count, equal):
    check_distinct(texts(count), some_equal(count, equal))


@pytest.mark.parametrize("clusters", [2, 3, 20, 100])
def test_few_vectors_for_many_sentences_are_a_collapse(clusters):
    vectors = RNG.standard_normal((clusters, 24))[np.arange(900) % clusters]
    with pytest.raises(RunFailed, match="the same vector"):
        check_distinct(texts(900), vectors)


@pytest.mark.parametrize(("precision", "noise"), [("fp32", 1e-6), ("fp32", 1e-4), ("bf16", 3e-3)])
def test_rounding_is_no_difference_and_what_is_larger_is_one(precision, noise):
    rounded = ONE + noise * RNG.standard_normal((50, 24))
    with pytest.raises(RunFailed, match="the same vector"):
        check_distinct(texts(50), rounded.astype(np.float32), precision)
    different = ONE + 0.03 * RNG.standard_normal((50, 24))
    check_distinct(texts(50), different, precision)


def test_the_same_sentence_may_have_the_same_vector():
    """Also in other letters, as an uncased encoder reads it, and as often as it occurs."""
    same_sentence = ["A man", "a man", "A  MAN\n"] * 20
    check_distinct(same_sentence, np.ones((60, 24)))

    same_and_others = ["A man"] * 20 + texts(12)
    vectors = np.concatenate([np.ones((20, 24)), RNG.standard_normal((12, 24))])
    check_distinct(same_and_others, vectors)


def test_vectors_without_length_or_with_much_of_it():
    zeros = np.zeros((30, 24))
    almost_zeros = some_equal(30, 0) * 1e-30
    for vectors in (zeros, almost_zeros):
        with pytest.raises(RunFailed, match="the same vector"):
            check_distinct(texts(30), vectors)
    for length in (1e30, 1e-6):
        check_distinct(texts(30), some_equal(30, 0) * length)


class HalfBlind(Embedder):
    """An embedder that collapses on the sentences that contain a word."""

    def __init__(self, blind_to):
        self.blind_to = blind_to

    def vectors(self, sentences):
        rows = []
        for sentence in sentences:
            if self.blind_to in sentence:
                rows.append(ONE)
            else:
                rows.append(RNG.standard_normal(24))
        return np.stack(rows).astype(np.float32)


def equal_vectors(self, sentences):
    """Replace `HalfBlind.vectors` by one vector for all sentences."""
    return np.ones((len(sentences), 24), dtype=np.float32)


def test_a_later_call_and_a_kept_shard_are_refused_too(tmp_path, monkeypatch):
    """Vectors of a collapsed model give no score from memory or from disk either."""
    model = HalfBlind(blind_to="number")
    for _ in range(2):
        with pytest.raises(RunFailed, match="the same vector"):
            model.embed(texts(20))
    model.embed([f"other {number}" for number in range(20)])

    model.cache_dir = tmp_path
    monkeypatch.setattr(HalfBlind, "vectors", equal_vectors)
    for _ in range(2):
        with pytest.raises(RunFailed, match="the same vector"):
            list(model.stream(texts(20), "corpus"))
    assert len(list(tmp_path.glob("corpus/*.npy"))) == 1
