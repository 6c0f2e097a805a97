"""SCD: views with different dropout rates are pushed apart as vectors, while their dimensions are
decorrelated.

Idea: without negatives, repelling the two views keeps the space from collapsing. The views stay in
agreement because their cross-correlation after a projector should be near the identity.

    loss = α · mean cos(h1_i, h2_i)/τ + β · (Σ (C_ii - 1)² + λ Σ C_ij²)
    C = cross-correlation of projector(h1) and projector(h2)

Source: official code: SAP-samples/acl2022-self-contrastive-decorrelation models.py:120-132,
257-274, README (BERT).
Inputs: a batch of N sentences; h1, h2 (N, D) = [CLS] of two passes with their own dropout, without
a head.
Relations: the only method that repels its views. Its second term is the one of Barlow Twins, and
msse's DCM is nearly the same.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import cross_correlation, upcast_fp32
from csebench.train.method import Method as Base
from csebench.train.method import Views

DECLARATION = {
    "name": "scd",
    "version": 1,
    "title": "Self-contrastive decorrelation",
    "paper": "Klein & Nabi 2022 (ACL), sec. 2 and 3",
    "citation": (
        """@inproceedings{klein2022scd, title={{SCD}: Self-Contrastive Decorrelation of Sentence Embeddings},
author={Klein, Tassilo and Nabi, Moin}, booktitle={ACL}, year={2022}}"""
    ),
    "refuses": {"queue": "its loss has no negatives"},
    "trains": "encoder, projector",
    "colours": {"": "#B8A900"},
    "params": {
        "steps": (5209, "README: 1 epoch of 10^6 sentences at batch 192"),
        "batch_size": (192, "README"),
        "learning_rate": (3e-5, "README"),
        "max_length": (32, "README"),
        "evaluate_every": (250, "README"),
        "pooler": ("cls_before_pooler", "train.py:106-107; README"),
        "dropout": (0.05, "README: of view 1, hidden and attention"),
        "second_dropout": (0.155, "README: of view 2"),
        "temperature": (0.05, "README"),
        "repulsion": (1.0, "README: task_alpha"),
        "decorrelation": (0.005225, "README: task_beta"),
        "off_diagonal": (0.012, "README: task_lambda"),
        "projector": (4096, "train.py:174-175: width of its three layers"),
    },
    "keeps": ["temperature", "dropout"],  # it scales the repulsion; it is the rate of view 1
    "search": {"repulsion": (0.3, 1.0, 3.0), "decorrelation": (0.001, 0.005225, 0.02)},
    "weights": ["repulsion", "decorrelation"],
    "below": [("second_dropout", 1)],
    "deviations": [
        "the best step is chosen on STS-B dev; the official command takes SICK-R dev",
        "the official code has two dropout rates in one pass of a patched BERT; here two passes",
        (
            "the balance of the two terms depends on batch and width: the off-diagonal sum is at"
            " least width²/N - width"
        ),
    ],
}


class Method(Base):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        width = self.p.projector
        self.projector = nn.Sequential(
            nn.Linear(encoder.size, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width, bias=False),
        )

    def views(self, sentences: list[str]) -> Views:
        views = []
        for dropout in (self.p.dropout, self.p.second_dropout):
            self.encoder.set_dropout(dropout)
            views.append(self.view(sentences))
        return Views(*views)

    def loss(self, views: Views) -> Tensor:
        cosines = cosine_similarity(upcast_fp32(views.z1), upcast_fp32(views.z2))
        repulsion = cosines.mean() / self.p.temperature
        decorrelation = barlow_twins(
            self.projector(views.z1), self.projector(views.z2), self.p.off_diagonal
        )
        return self.p.repulsion * repulsion + self.p.decorrelation * decorrelation


def barlow_twins(a: Tensor, b: Tensor, off_diagonal: float) -> Tensor:
    """Compute Σ (C_ii - 1)² + `off_diagonal` · Σ C_ij² over i ≠ j.

    Zbontar et al. 2021, Eq. 1; main.py:204-221. Columns are standardised as by a batch
    normalisation without affine map.
    """
    c = cross_correlation(a, b, eps=1e-5)
    on_diagonal = (c.diagonal() - 1).square().sum()
    rest = c - torch.diag(c.diagonal())
    return on_diagonal + off_diagonal * rest.square().sum()
