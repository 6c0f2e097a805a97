"""SimCSE++: negatives without dropout, and a contrast between the dimensions of the two views.

Idea: dropout makes the two views of a sentence. Between different sentences it is only noise, so
negatives are compared without it. And each dimension of a view should find itself among the
dimensions of the other view.

    loss = -cos(z1_i, z2_i)/τ + log(exp(cos(z1_i, z2_i)/τ) + Σ_{j≠i} exp(cos(n_i, n_j)/τ))
           + λ · dimension-wise term,   mean over i
    dimension-wise term = -C_dd/τ' + log Σ_e exp(C_de/τ'),   mean over d
    C = correlations of the dimensions of z1 with those of z2, over the batch

Source: official code: Jiahao004/SimCSE-plus-plus at its first commit, 899e49b (2022-09-21)
simcse/models_re_vicreg.py:221-263, train_re_vicreg.py:125-140, run_re_vicreg.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of two dropout views, n (N, D) of a view
without dropout.
Relations: simcse with other negatives + a term. scd's term reads the same correlations.
"""

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from csebench.train.losses import cos_sim, cross_correlation, info_nce, upcast_fp32
from csebench.train.method import ClsHeadMethod, Views

DECLARATION = {
    "name": "simcse_plus",
    "version": 1,
    "title": "SimCSE++",
    "paper": "Xu et al. 2023 (EMNLP)",
    "citation": (
        """@inproceedings{xu2023simcseplus, title={{SimCSE}++: Improving Contrastive Learning
for Sentence Embeddings from Two Perspectives}, author={Xu, Jiahao and Shao, Wei and Chen, Lihui and
Liu, Lemao}, booktitle={EMNLP}, year={2023}}"""
    ),
    "refuses": {"queue": "its negatives are compared with each other, without dropout"},
    "trains": "encoder, head",
    "colours": {"": "#00798C"},
    "params": {
        "steps": (15625, "run_re_vicreg.sh: 1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "run_re_vicreg.sh"),
        "learning_rate": (3e-5, "run_re_vicreg.sh"),
        "max_length": (32, "run_re_vicreg.sh"),
        "evaluate_every": (125, "run_re_vicreg.sh"),
        "pooler": ("cls_before_pooler", "run_re_vicreg.sh: mlp_only_train"),
        "dropout": (0.1, "BERT's; none in the view of the negatives"),
        "temperature": (0.05, "run_re_vicreg.sh"),
        "negatives": (
            "off_dropout",
            "README: `off-dropout SimCSE`; batch: SimCSE's, with dropout",
        ),
        "dimensions": (0.1, "train_re_vicreg.py: sw_weight"),
        "dimension_temperature": (5.0, "train_re_vicreg.py: sw_temp"),
    },
    "search": {"dimensions": (0.03, 0.1, 0.3)},
    "weights": ["dimensions"],
    "choices": {"negatives": ["off_dropout", "batch"]},
    "variants": {
        "default": (
            "as released",
            "the first commit, 899e49b, in which run_re_vicreg.sh trains with both parts",
        ),
        "newest": (
            "as released",
            (
                "the newest commit, 51d2db5, whose script trains SimCSE alone: it asks for"
                " no sampling strategy, and the dimension-wise term is a comment"
                " (models_re_vicreg.py:308-312, 438, 463)"
            ),
            {"negatives": "batch", "dimensions": 0.0},
        ),
        "off_dropout": {"dimensions": 0.0},
        "dimension_wise": {"negatives": "batch", "dimension_temperature": 10.0},
    },
    "deviations": [
        "the paper was not at hand; loss and settings are the code's",
        (
            "the variant off_dropout weighs the positive by 1, as run_re_vicreg.sh does; run_re.sh"
            " has 0.9"
        ),
        (
            "the variant dimension_wise has the temperature of the code, 10 (models_vicreg.py:225);"
            " its output folder names 5, and the help of train_re_vicreg.py 20"
        ),
        ("a sentence is left out of its own negatives; the code adds log 1e-45 to its logit"),
    ],
}


class Method(ClsHeadMethod):
    def views(self, sentences: list[str]) -> Views:
        self.encoder.set_dropout(self.p.dropout)
        views = super().views(sentences)
        if self.p.negatives == "off_dropout":
            self.encoder.set_dropout(0.0)
            views.hard = self.view(sentences)  # the vectors that are each other's negatives
        return views

    def loss(self, views: Views) -> Tensor:
        z1 = views.z1
        z2 = views.z2
        if views.hard is not None:
            loss = off_dropout_nce(z1, z2, views.hard.z, self.p.temperature)
        else:
            loss = info_nce(z1, z2, self.p.temperature)
        if self.p.dimensions:
            term = dimension_nce(z1, z2, self.p.dimension_temperature)
            loss = loss + self.p.dimensions * term
        return loss


def off_dropout_nce(z1: Tensor, z2: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """Compute InfoNCE with negatives that are compared without dropout (:225-255).

    Args:
        z1, z2: (N, D) vectors of the two views.
        negatives: (N, D) vectors of the same sentences without dropout.
    """
    positive = cosine_similarity(upcast_fp32(z1), upcast_fp32(z2)) / temperature  # (N,)
    negative = cos_sim(negatives, negatives) / temperature  # (N, N)
    is_self = torch.eye(len(z1), dtype=torch.bool, device=z1.device)
    negative = negative.masked_fill(is_self, -torch.inf)
    logits = torch.cat([positive[:, None], negative], dim=1)  # (N, 1 + N)
    return (torch.logsumexp(logits, dim=1) - positive).mean()


def dimension_nce(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """Compute the dimension-wise term: each dimension of z1 should find itself in z2 (:258-262).

    Args:
        z1, z2: (N, D) vectors of the two views.
    """
    correlations = cross_correlation(z1, z2, eps=1e-5)  # (D, D)
    targets = torch.arange(len(correlations), device=z1.device)  # (D,)
    return cross_entropy(correlations / temperature, targets)
