"""Contrastive Tension (CT): two encoders from one checkpoint must agree on equal sentences, and
must not agree on different ones.

Idea: the two encoders are the two views. A pair of equal sentences should have a large dot product.
Each of seven pairs of unrelated sentences should have a small one.

    loss = mean over pairs of BCE(e1·e2, 1 if both encoded the same sentence else 0)

Source: official code: FreddeFrallan/Contrastive-Tension
ContrastiveTension/ContrastiveTensionModel.py, ContrastiveTension/Training.py, ExampleTraining.py.
Inputs: 15 sentences for a group of 8 pairs (1 positive, 7 negatives); e1, e2 (pairs, D) by mean
pooling.
Relations: the only method whose views come from two encoders; it has no temperature and no
normalisation.
"""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from csebench.model.encoder import Encoder
from csebench.model.layers import to_device
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import dot_score, upcast_fp32
from csebench.train.method import Method as Base
from csebench.train.method import Views

NEGATIVES = 7  # for every positive (Training.py:18-39)
GROUP = 1 + 2 * NEGATIVES  # sentences of a group: one in its positive pair, two in each negative

DECLARATION = {
    "name": "ct",
    "version": 1,
    "title": "Contrastive Tension",
    "paper": "Carlsson et al. 2021 (ICLR), sec. 3",
    "citation": (
        """@inproceedings{carlsson2021ct, title={Semantic Re-tuning with Contrastive Tension}, author={
Carlsson, Fredrik and Gyllensten, Amaru Cuba and Gogoulou, Evangelia and
Hellqvist, Erik Ylip{\\"a}{\\"a} and Sahlgren, Magnus}, booktitle={ICLR}, year={2021}}"""
    ),
    "trains": "two encoders",
    "colours": {"": "#808080", "ami": "#8A5CD6"},
    "params": {
        "steps": (5000, "Training.py: 10 epochs of 500 batches"),
        "batch_size": (16, "Training.py: pairs, 2 of them positive"),
        "optimizer": ("rmsprop", "Training.py"),
        "learning_rate": (
            1e-5,
            (
                "Training.py:11-15; then 0.8, 0.6, 0.4 and 0.2 of it at 10, 20, 30 and 40 % of the"
                " steps"
            ),
        ),
        "dropout": (0.0, "Training.py:53-54: forward with training=False"),
        "max_length": (75, "ExampleTraining.py:19-23"),
        "evaluate_every": (
            500,
            "Training.py:87-99: both encoders on STS-B dev after each epoch, the better is saved",
        ),
        "pooler": ("avg", "ContrastiveTensionModel.py: mask-aware mean of the last layer"),
    },
    # groups of 8 pairs, RMSprop, none, mean vectors
    "keeps": ["batch_size", "learning_rate", "dropout", "pooler"],
    "search": {"learning_rate": (1e-6, 3e-6, 1e-5, 2e-5, 3e-5, 5e-5, 1e-4)},
    "deviations": [
        (
            "the settings are the code's; its README says that the released models were not trained"
            " with the paper's settings"
        ),
        "RMSprop with TensorFlow's defaults (rho 0.9, epsilon 1e-7) in PyTorch",
        "the trainer's gradient clipping at 1.0 applies",
        "miCSE does not say which pooling its CT rows have; the mean is CT's own",
        (
            "our choice: with the component moco, queue entries are further negatives of every vector of"
            " encoder 1"
        ),
    ],
}


class Method(Base):
    group = GROUP

    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.second = encoder.copy()

    def encoders(self) -> list[Encoder]:
        return [self.encoder, self.second]

    def sentences_per_step(self) -> int:
        return max(1, self.p.batch_size // (1 + NEGATIVES)) * GROUP

    def views(self, sentences: list[str]) -> Views:
        """Encode the left sentences of all pairs by encoder 1, and the right ones by encoder 2."""
        left: list[str] = []
        right: list[str] = []
        for start in range(0, len(sentences), GROUP):
            positive, *others = sentences[start : start + GROUP]
            half = len(others) // 2
            left += [positive, *others[:half]]
            right += [positive, *others[half : 2 * half]]
        views = Views(self.view(left, self.encoder), self.view(right, self.second))
        same = torch.tensor([a == b for a, b in zip(left, right, strict=True)])
        views.view1.same = same
        views.view2.same = same
        return views

    def loss(self, views: Views) -> Tensor:
        labels = views.view1.same
        assert labels is not None
        loss = contrastive_tension(views.z1, views.z2, to_device(labels, views.z1.device))
        if views.queue is not None:
            loss = loss + softplus(dot_score(views.z1, views.queue)).mean()
        return loss

    def learning_rate_factor(self, step: int) -> float:
        """Take off 0.2 at 10, 20, 30 and 40 % of the steps."""
        return max(0.2, 1 - 0.2 * (10 * step // self.p.steps))


def contrastive_tension(e1: Tensor, e2: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Compute binary cross-entropy on dot products, without temperature and normalisation.

    CT sec. 3; Model.py:41-56.

    Args:
        e1, e2: (B, D) pooled vectors of encoder 1 and encoder 2.
        labels: (B,) 1 if both encoded the same sentence, else 0.
        reduction: `mean` as in the official code, `sum` as in sentence-transformers.
    """
    logits = (upcast_fp32(e1) * upcast_fp32(e2)).sum(-1)
    return binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction=reduction)
