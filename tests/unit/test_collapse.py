"""Which vectors are a collapse, and which are not: the one check that all evaluators share."""

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
    """`count` vectors, of which the last `equal` are one."""
    vectors = RNG.standard_normal((count, 24))
    vectors[count - equal :] = ONE
    return vectors


@pytest.mark.parametrize(
    ("count", "equal"), [(3, 3), (9, 9), (10, 5), (11, 6), (400, 200), (5000, 5000), (5000, 2600)]
)
def test_half_of_many_or_all_of_a_few_are_a_collapse(count, equal):
    with pytest.raises(
        RunFailed, match=f"of the {min(count, embedder.COMPARED)} that were compared share theirs"
    ):
        check_distinct(texts(count), some_equal(count, equal))


@pytest.mark.parametrize(
    ("count", "equal"),
    [(1, 1), (2, 2), (3, 2), (9, 8), (10, 4), (400, 190), (5000, 2000), (5000, 0)],
)
def test_fewer_are_none(count, equal):
    check_distinct(texts(count), some_equal(count, equal))


@pytest.mark.parametrize("clusters", [2, 3, 20, 100])
def test_few_vectors_for_many_sentences_are_a_collapse(clusters):
    with pytest.raises(RunFailed, match="the same vector"):
        check_distinct(texts(900), RNG.standard_normal((clusters, 24))[np.arange(900) % clusters])


@pytest.mark.parametrize(("precision", "noise"), [("fp32", 1e-6), ("fp32", 1e-4), ("bf16", 3e-3)])
def test_rounding_is_no_difference_and_what_is_larger_is_one(precision, noise):
    vectors = (ONE + noise * RNG.standard_normal((50, 24))).astype(np.float32)
    with pytest.raises(RunFailed, match="the same vector"):
        check_distinct(texts(50), vectors, precision)
    check_distinct(texts(50), ONE + 0.03 * RNG.standard_normal((50, 24)), precision)


def test_the_same_sentence_may_have_the_same_vector():
    """Also in other letters, as an uncased encoder reads it, and as often as it occurs."""
    check_distinct(["A man", "a man", "A  MAN\n"] * 20, np.ones((60, 24)))
    check_distinct(
        ["A man"] * 20 + texts(12),
        np.concatenate([np.ones((20, 24)), RNG.standard_normal((12, 24))]),
    )


def test_vectors_without_length_or_with_much_of_it():
    for vectors in (np.zeros((30, 24)), some_equal(30, 0) * 1e-30):
        with pytest.raises(RunFailed, match="the same vector"):
            check_distinct(texts(30), vectors)
    check_distinct(texts(30), some_equal(30, 0) * 1e30)
    check_distinct(texts(30), some_equal(30, 0) * 1e-6)


class HalfBlind(Embedder):
    """Collapses on sentences of a kind."""

    def __init__(self, blind):
        self.blind = blind

    def vectors(self, sentences):
        return np.stack(
            [ONE if self.blind in s else RNG.standard_normal(24) for s in sentences]
        ).astype(np.float32)


def test_a_later_call_and_a_kept_shard_are_refused_too(tmp_path, monkeypatch):
    """What was remembered or kept on disk of a collapsed model gives no score either."""
    model = HalfBlind("number")
    for _ in range(2):
        with pytest.raises(RunFailed, match="the same vector"):
            model.embed(texts(20))
    model.embed([f"other {number}" for number in range(20)])
    model.cache_dir = tmp_path
    monkeypatch.setattr(
        HalfBlind,
        "vectors",
        lambda self, sentences: np.ones((len(sentences), 24), dtype=np.float32),
    )
    for _ in range(2):
        with pytest.raises(RunFailed, match="the same vector"):
            list(model.stream(texts(20), "corpus"))
    assert len(list(tmp_path.glob("corpus/*.npy"))) == 1
