"""PromCSE, supervised: prefixes that are trained on triplets, with a hinge on the hardest negative.

Idea: as promcse. In the softmax over all negatives, the hardest one is one of many. So a hinge also
asks that the positive is closer than the hardest negative, by a margin.

    loss = InfoNCE(z1, z2, z3) + λ · mean over i of max(0, m + hardest_i - cos(z1_i, z2_i))
    hardest_i = max of cos(z1_i, z2_j) over j ≠ i, and of cos(z1_i, z3_j) over all j

Source: official code: YJiangcm/PromCSE promcse/models.py:240-279, run_sup_example.sh.
Inputs: N triplets; z1, z2, z3 (N, D) = pooler of anchor, positive and hard negative in one pass.
Relations: it is to promcse what simcse_sup is to simcse, with a further term. Without the prefix and
the hinge it is simcse_sup.
"""

import torch
from torch import Tensor
from torch.nn.functional import relu

from csebench.train.losses import cos_sim, info_nce, off_diagonal
from csebench.train.method import Views
from methods.promcse import Method as PromCSE

DECLARATION = {
    "name": "promcse_sup",
    "version": 1,
    "extends": "promcse",
    "title": "PromCSE (supervised)",
    "paper": "Jiang et al. 2022 (Findings of EMNLP)",
    "citation": "see methods/promcse.py",
    "needs": "triplets; an encoder laid out like BERT",
    "refuses": {
        "attention": "its tokens also attend to a prefix, so attention maps are not over tokens alone"
    },
    "trains": "prefix, pooler of the encoder",
    "kind": "supervised",
    "colours": {"": "#A3B18A"},
    "params": {
        "steps": (10770, "README table: 10 epochs of 275,601 triplets at batch 256"),
        "batch_size": (256, "README table, BERT base"),
        "learning_rate": (1e-2, "README table, BERT base"),
        "max_length": (32, "run_sup_example.sh"),
        "evaluate_every": (125, "run_sup_example.sh"),
        "pooler": ("cls", "run_sup_example.sh: the MLP is kept at test"),
        "temperature": (0.05, "run_sup_example.sh"),
        "hard_weight": (0.0, "train.py: hard_negative_weight, a logarithm; the script sets none"),
        "prefix": (12, "README table, BERT base: prompt length, P"),
        "hinge": (10.0, "run_sup_example.sh: eh_loss_weight, λ; of RoBERTa large"),
        "margin": (0.2, "run_sup_example.sh: eh_loss_margin, m; of RoBERTa large"),
    },
    "keeps": ["learning_rate"],  # a prefix needs a rate a thousand times an encoder's
    "search": {"learning_rate": (3e-3, 1e-2, 3e-2), "hinge": (1.0, 10.0, 30.0)},
    "weights": ["hinge"],
    "below": [(0, "prefix")],
    "variants": {
        "default": ("as released", "with the hinge, as run_sup_example.sh"),
        "contrast": (
            "as released",
            "without the hinge: `do_eh_loss` is an option of the code, and off unless a script sets it",
            {"hinge": 0.0},
        ),
    },
    "deviations": [
        (
            "the paper was not at hand: settings and loss are those of the public code. README and"
            " script do not say whether the row of BERT base has the hinge, nor its margin and"
            " weight, which are here the script's for RoBERTa large"
        ),
        "the MLP is the encoder's pooler, newly initialised, so that it is exported with it",
    ],
}


class Method(PromCSE):
    def views(self, triplets: list[tuple[str, str, str]]) -> Views:
        return self.triplet_views(triplets)

    def loss(self, views: Views) -> Tensor:
        assert views.hard is not None
        contrast = info_nce(
            views.z1,
            views.z2,
            self.p.temperature,
            views.queue,
            hard=views.hard.z,
            hard_weight=self.p.hard_weight,
        )
        return contrast + self.p.hinge * energy_hinge(
            views.z1, views.z2, views.hard.z, self.p.margin
        )


def energy_hinge(z1: Tensor, z2: Tensor, hard: Tensor, margin: float) -> Tensor:
    """Compute by how much positives fail to be closer than the hardest negative, by a margin.

    Args:
        z1, z2, hard: (N, D) anchors, positives and hard negatives.
        margin: of cosines.

    Returns:
        The mean over anchors.
    """
    cosines = cos_sim(z1, z2)  # (N, N)
    negatives = torch.cat([off_diagonal(cosines), cos_sim(z1, hard)], dim=1)  # (N, 2N - 1)
    hardest = negatives.max(dim=1).values  # (N,)
    return relu(margin + hardest - cosines.diagonal()).mean()
