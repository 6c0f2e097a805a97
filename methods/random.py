"""Control: a random vector for every sentence. Its scores are near zero, or the evaluator is wrong.

Idea: no meaning at all. Paper: none. Inputs: sentences. Relations: the lower end, as oracle is the upper.
Deviations: none.
"""

import hashlib

import numpy as np

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


class Method:
    def __init__(self, params, seed):
        self.dimensions, self.seed = params["dimensions"], seed

    def vector(self, sentence):
        key = hashlib.sha256(f"{self.seed}\n{sentence}".encode()).digest()[:8]
        return np.random.default_rng(int.from_bytes(key, "little")).standard_normal(self.dimensions)

    def embed(self, sentences):
        return np.stack([self.vector(s) for s in sentences]).astype(np.float32)

    def pairs(self, pairs):
        return self.embed(pairs.left), self.embed(pairs.right)
