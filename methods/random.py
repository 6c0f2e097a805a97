"""Control: a random vector for every sentence. Its scores are near zero, or the evaluator is wrong.

Idea: no meaning at all.
Source: none.
Inputs: sentences.
Relations: the lower end of the scores, as oracle is the upper end.
"""

import hashlib

import numpy as np

from csebench.model.embedder import Embedder
from csebench.plan.schema.declarations import Hyperparameters

DECLARATION = {
    "name": "random",
    "version": 1,
    "title": "Control: random vectors",
    "kind": "control",
    "paper": "none",
    "citation": "none",
    "trains": "nothing",
    "params": {"dimensions": (64, "ours")},
}


def code(name: str, dimensions: int) -> np.ndarray:
    """Draw (dimensions,) normal numbers, always the same for a name."""
    key = hashlib.sha256(name.encode()).digest()[:8]
    return np.random.default_rng(int.from_bytes(key, "little")).standard_normal(dimensions)


class Method(Embedder):
    def __init__(self, params: Hyperparameters, seed: int):
        self.dimensions, self.seed = params.dimensions, seed

    def vectors(self, sentences: list[str]) -> np.ndarray:
        codes = [code(f"{self.seed}\n{sentence}", self.dimensions) for sentence in sentences]
        return np.stack(codes).astype(np.float32)
