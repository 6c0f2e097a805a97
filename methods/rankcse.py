"""RankCSE without its teachers: both views of a sentence should rank the rest of the batch in the
same order.

Idea: a sentence should find its own second view, and both of its views should rank the rest of the
batch in the same order. The paper's third term, the distillation of two teachers' rankings, is left
out, as MSSE ran it.

    loss = InfoNCE(z1, z2) + β · JS(softmax cos(z1_i, z2_j)/τ, softmax cos(z2_i, z1_j)/τ)

Source: without teachers: MSSE Tables 1, 2, 7. No official code was found; community code:
perceptiveshawty/RankCSE rankcse/models.py:40-61, run_rankcse.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views.
Relations: simcse + a term.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

from csebench.train.losses import cos_sim
from csebench.train.method import Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "rankcse",
    "version": 1,
    "extends": "simcse",
    "title": "RankCSE without teachers",
    "paper": "Liu et al. 2023 (ACL), sec. 3.2",
    "citation": (
        """@inproceedings{liu2023rankcse, title={{RankCSE}: Unsupervised Sentence Representations Learning via
Learning to Rank}, author={Liu, Jiduan and Liu, Jiahao and Wang, Qifan and Wang, Jingang and Wu, Wei and
Xian, Yunsen and Zhao, Dongyan and Chen, Kai and Yan, Rui}, booktitle={ACL}, year={2023}}"""
    ),
    "trains": "encoder, head",
    "colours": {"": "#7E3F98"},
    "params": {
        "steps": (7813, "1 epoch of 10^6 sentences at batch 128"),
        "batch_size": (128, "run_rankcse.sh"),
        "learning_rate": (3e-5, "run_rankcse.sh"),
        "max_length": (32, "run_rankcse.sh"),
        "evaluate_every": (125, "run_rankcse.sh"),
        "pooler": ("cls_before_pooler", "run_rankcse.sh: mlp_only_train"),
        "temperature": (0.05, "run_rankcse.sh"),
        "negatives": ("batch", "Eq. 1"),
        "consistency": (1.0, "run_rankcse.sh: beta, which the code never multiplies by"),
        "form": ("js", "js: sec. 3.2; entropy: what the community code computes (models.py:60)"),
    },
    "search": {"consistency": (0.1, 1.0, 10.0)},
    "weights": ["consistency"],
    "choices": {"negatives": ["batch", "zeroed", "none"], "form": ["js", "entropy"]},
    "variants": {
        "default": (
            "as printed",
            "the Jensen-Shannon divergence of the two rankings (sec. 3.2), without the teachers",
        ),
        "code": (
            "as released",
            (
                "the community code, as there is no official one: its consistency term is an"
                " entropy (models.py:60)"
            ),
            {"form": "entropy"},
        ),
    },
    "deviations": [
        (
            "the two teachers (DiffCSE and SimCSE large) and the listwise term are left out, as"
            " MSSE says of its re-run; what MSSE put in their place, if anything, is not stated"
        ),
        "the settings are the community code's; the paper's were not at hand",
    ],
}


class Method(SimCSE):
    def loss(self, views: Views) -> Tensor:
        consistency = ranking_consistency(views.z1, views.z2, self.p.temperature, self.p.form)
        return super().loss(views) + self.p.consistency * consistency


def ranking_consistency(z1: Tensor, z2: Tensor, temperature: float, form: str = "js") -> Tensor:
    """Compare the two rankings that a batch gives.

    They are the softmax over j of cos(z1_i, z2_j) and of cos(z2_i, z1_j).

    Args:
        z1, z2: (N, D).
        form: `js` is the Jensen-Shannon divergence, mean over rows (sec. 3.2). `entropy` is what
            the public code computes, -½(H(p) + H(q)), because it clamps the logarithm of the mean
            at a positive number (perceptiveshawty/RankCSE models.py:60).
    """
    log_p = log_softmax(cos_sim(z1, z2) / temperature, dim=-1)  # (N, N)
    log_q = log_softmax(cos_sim(z2, z1) / temperature, dim=-1)  # (N, N)
    if form == "entropy":  # -H(p) and -H(q)
        of_p = (log_p.exp() * log_p).sum(-1).mean()
        of_q = (log_q.exp() * log_q).sum(-1).mean()
    else:  # KL(p ‖ m) and KL(q ‖ m), where m = (p + q)/2
        log_m = torch.logsumexp(torch.stack([log_p, log_q]), dim=0) - math.log(2)
        of_p = (log_p.exp() * (log_p - log_m)).sum(-1).mean()
        of_q = (log_q.exp() * (log_q - log_m)).sum(-1).mean()
    return 0.5 * (of_p + of_q)
