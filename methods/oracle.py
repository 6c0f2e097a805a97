"""Control: vectors that know the answer. It gets the top score everywhere, or the evaluator is
wrong.

Idea: look the answer up.
Source: none.
Inputs: what an evaluator states as true of a sentence (`truth`), not its text. So a sentence gets
another vector wherever something else is true of it.
Relations: the upper end of the scores, as random is the lower end.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from csebench.model.embedder import Embedder, shards
from csebench.plan.schema.declarations import Hyperparameters
from methods.random import code

DECLARATION = {
    "name": "oracle",
    "version": 1,
    "title": "Control: gold scores",
    "kind": "control",
    "paper": "none",
    "citation": "none",
    "needs": "gold scores",
    "trains": "nothing",
}
DIMENSIONS = 1024


class Method(Embedder):
    """Vectors in which every class, or item, has a direction of its own.

    A sentence that stands for several of them has the sum of their directions.
    """

    def __init__(self, params: Hyperparameters, seed: int):
        pass

    def pairs(self, pairs) -> tuple[np.ndarray, np.ndarray]:
        """Make two vectors whose cosine is the gold score, as a share of its maximum, 5."""
        angle = np.arccos(np.clip(pairs.gold / 5, 0, 1))
        left = np.stack([np.ones_like(angle), np.zeros_like(angle)], axis=1)
        return left, np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def embed(self, sentences: list[str], truth: list | None = None) -> np.ndarray:
        if truth is None:
            raise NotImplementedError("the oracle embeds a sentence only if its truth is given")
        directions = {}

        def direction(name):
            if name not in directions:
                directions[name] = np.sign(code(name, DIMENSIONS))
            return directions[name]

        vectors = []
        for stands_for in truth:
            weights = stands_for if isinstance(stands_for, dict) else {stands_for: 1.0}
            vectors.append(sum(weight * direction(name) for name, weight in weights.items()))
        return np.stack(vectors)

    def stream(
        self, texts: Iterable[str], name: str, truth: Iterable | None = None
    ) -> Iterator[np.ndarray]:
        assert truth is not None
        for shard, known in zip(shards(texts), shards(truth), strict=True):
            yield self.embed(shard, known)
