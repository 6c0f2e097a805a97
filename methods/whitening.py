"""BERT-whitening: a linear map after pooling makes the covariance of the embeddings the identity.

Idea: x -> (x - μ) W with W Wᵀ the inverse covariance, so that cosine is taken in an orthonormal
basis.

Source: Algorithm 1; official code: bojone/BERT-whitening.
Inputs: embeddings (S, D) of the sentences that the map is fitted on.
Relations: bert plus a fitted map. The encoder is not trained.
"""

import numpy as np

from csebench.plan.schema.declarations import Hyperparameters

DECLARATION = {
    "name": "whitening",
    "version": 1,
    "title": "BERT-whitening",
    "kind": "fitted",
    "paper": "Su et al. 2021 (arXiv 2103.15316), sec. 3",
    "citation": (
        """@article{su2021whitening, title={Whitening Sentence Representations for Better Semantics and Faster
Retrieval}, author={Su, Jianlin and Cao, Jiarun and Liu, Weijie and Ou, Yangyiwen}, journal={arXiv:2103.15316},
year={2021}}"""
    ),
    "trains": "nothing: fitted",
    "colours": {"": "#8C564B"},
    "params": {
        "pooler": ("avg_first_last_2022", "first and last layer, sec. 4"),
        "fit_sentences": (100000, "ours: sentences of the corpus it is fitted on"),
    },
    "keeps": ["pooler"],  # which layers it averages
    "deviations": [
        "fitted on the scale's corpus; the published row is fitted on NLI sentences",
        "all dimensions are kept (the paper's 256-dimensional variant is another row)",
        (
            "directions with less than 1e-6 of the largest variance are dropped, so that few"
            " sentences suffice"
        ),
    ],
}


class Method:
    @staticmethod
    def fit(vectors: np.ndarray, params: Hyperparameters) -> tuple[np.ndarray, np.ndarray]:
        """Fit the map: (S, D) -> shift (D,) and matrix (D, D).

        The whitened vector is (x - shift) @ matrix.
        """
        shift = vectors.mean(0)
        u, variance, _ = np.linalg.svd(np.cov((vectors - shift).T))
        # a direction without variance is dropped: its scale is 0
        keep = variance > 1e-6 * variance[0]
        scale = np.where(keep, 1 / np.sqrt(np.where(keep, variance, 1)), 0)
        return shift.astype(np.float32), (u * scale).astype(np.float32)
