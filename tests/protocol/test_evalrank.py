"""EvalRank on made-up vectors, worked out by hand."""

import numpy as np
import pytest
from controls import random_model

from csebench.model.embedder import Embedder
from evaluators.evalrank import evaluate

NAMED = {"query": [1, 0, 0], "near": [1, 0.5, 0], "answer": [1, 1, 0], "far": [0, 0, 1]}


class Given(Embedder):
    """Gives every sentence a vector by hand, in float64."""

    def __init__(self, vectors):
        self.by_hand = vectors

    def vectors(self, sentences):
        return np.array([self.by_hand[sentence] for sentence in sentences], dtype=float)


def with_opposites(vectors):
    """Add the opposite of every vector, so that the mean of all is 0."""
    opposites = {f"not {name}": [-x for x in vector] for name, vector in vectors.items()}
    return vectors | opposites


def write(root, pairs, background):
    """Write the two files of EvalRank, and return the data root."""
    folder = root / "misc/evalrank"
    folder.mkdir(parents=True)
    lines = [f"{left}\t{right}\n" for left, right in pairs]
    (folder / "pos_pair.txt").write_text("".join(lines))
    (folder / "background_sent.txt").write_text("".join(f"{text}\n" for text in background))
    return root


@pytest.mark.parametrize("shift", [0, 5])
def test_rank_counts_nearer_sentences_after_the_mean_is_subtracted(shift, tmp_path):
    """The query is no candidate, also if it is its own paraphrase."""
    vectors = {}
    for name, vector in with_opposites(NAMED).items():
        vectors[name] = [x + shift for x in vector]
    pairs = [("query", "near"), ("query", "answer"), ("far", "far")]
    data = write(tmp_path, pairs, vectors)

    rows, items = evaluate(Given(vectors), data, "with_tolerance")

    assert items["rank"].tolist() == [1, 2, 1]
    assert [row.metric for row in rows] == ["mrr", "hits@1", "hits@3"]
    assert [row.value for row in rows] == pytest.approx([2.5 / 3, 2 / 3, 1])


def test_rounding_decides_only_as_released(tmp_path):
    """A wrong sentence is nearer than the answer by less than float32 can show."""
    twin = [1, 1 - 1e-7, 0]
    vectors = with_opposites({"query": [1, 0, 0], "answer": [1, 1, 0], "twin": twin})
    data = write(tmp_path, [("query", "answer")], vectors)

    _, items = evaluate(Given(vectors), data, "with_tolerance")
    _, items_as_released = evaluate(Given(vectors), data, "as_released")

    assert items["rank"].tolist() == [1]
    assert items_as_released["rank"][0] > 1


def test_as_released_loses_a_rank_exactly_where_a_paraphrase_is_ahead_of_itself(tmp_path):
    """How often that is depends on the machine, so no number is expected here."""
    sentences = [f"sentence {number}" for number in range(200)]
    pairs = list(zip(sentences[:100], sentences[100:], strict=True))
    data = write(tmp_path, pairs, sentences)
    model = random_model(64)

    _, items = evaluate(model, data, "with_tolerance")
    _, items_as_released = evaluate(model, data, "as_released")

    lost = items_as_released["rank"] - items["rank"]
    assert (lost == items_as_released["ahead_of_itself"]).all()
