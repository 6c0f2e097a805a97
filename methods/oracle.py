"""Control: vectors whose cosine is the gold score. It scores 1 on STS, or the evaluator is wrong.

Idea: look the answer up. Paper: none. Inputs: graded pairs; a sentence gets another vector in every pair.
Relations: the upper end, as random is the lower. Deviations: none.
"""

import numpy as np

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


class Method:
    def __init__(self, params, seed):
        pass

    def pairs(self, pairs):
        angle = np.arccos(np.clip(pairs.gold / 5, 0, 1))
        left = np.stack([np.ones_like(angle), np.zeros_like(angle)], axis=1)
        return left, np.stack([np.cos(angle), np.sin(angle)], axis=1)
