"""IS-CSE: instance smoothing, which also compares a sentence with its neighbourhood.

Idea: a positive that is averaged with its nearest neighbours in a buffer of recent sentences is
smoother than a single instance, and so regularises the discrimination of instances.

    loss = InfoNCE(z1, z2) + α · InfoNCE(z1, z2*),   z2* = Σ_k softmax(ẑ2·v_k/β) v_k over ẑ2 and its
    K neighbours

Source: official code: dll-wu/IS-CSE simcse/models.py:88-93, 139-142, 252-271, 340-355,
run_unsup_bert_base.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views; buffer (1024,
D).
Relations: simcse + a term. Its buffer holds neighbours, where the queue of components/moco holds
negatives.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import dot_score, info_nce, upcast_fp32
from csebench.train.method import Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "iscse",
    "version": 2,
    "extends": "simcse",
    "title": "Instance-smoothed contrastive learning",
    "paper": "He et al. 2023 (AAAI), sec. 3",
    "citation": (
        """@inproceedings{he2023iscse, title={Instance Smoothed Contrastive Learning for Unsupervised Sentence
Embedding}, author={He, Hongliang and Zhang, Junlei and Lan, Zhenzhong and Zhang, Yue}, booktitle={AAAI},
year={2023}}"""
    ),
    "trains": "encoder, head",
    "colours": {"": "#C24D7F"},
    "params": {
        "steps": (15625, "1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "run_unsup_bert_base.sh"),
        "learning_rate": (3e-5, "run_unsup_bert_base.sh"),
        "max_length": (32, "run_unsup_bert_base.sh"),
        "evaluate_every": (125, "run_unsup_bert_base.sh"),
        "pooler": ("cls_before_pooler", "run_unsup_bert_base.sh: mlp_only_train"),
        "temperature": (0.05, "run_unsup_bert_base.sh"),
        "negatives": ("batch", "Eq. 1"),
        "smoothing": (0.1, "train.py:143-144: α, constant for BERT base"),
        "smoothing_start": (
            1.0,
            "share of α at step 0; large scripts: a tenth, 0.005 of 0.05, and a cosine to α",
        ),
        "buffer": (1024, "models.py:340"),
        "neighbours": (16, "models.py:88-93"),
        "smoothing_temperature": (2.0, "models.py:139-142"),
    },
    "search": {"smoothing": (0.05, 0.1, 0.2)},
    "weights": ["smoothing"],
    "choices": {"negatives": ["batch", "zeroed", "none"]},
    "variants": {"large": {"learning_rate": 1e-5, "smoothing": 0.05, "smoothing_start": 0.1}},
    "below": [("neighbours", "buffer")],
    "deviations": [
        (
            "the best match in the buffer is taken for the sentence's own copy and dropped, as in"
            " the code, though in a few-shot run an older copy of the sentence may be what remains"
        ),
        (
            "smoothing starts when the buffer is full, as in the code: a run that ends before is"
            " simcse"
        ),
        (
            "smoothing_start is a share of α, where the code takes a weight: a searched α then keeps"
            " the shape of the schedule, and the paper's α have the weights of the code"
        ),
    ],
}


class Method(SimCSE):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.buffer: Tensor | None = None  # (buffer, D)
        self.step = 0

    def smooth(self, z: Tensor, buffer: Tensor) -> Tensor:
        """Average each unit vector with its neighbours in the buffer: (N, D) -> (N, D).

        The gradient flows through z alone.
        """
        # the best match is left out below, because it is taken for the sentence's own copy
        _, nearest = dot_score(z, buffer).topk(self.p.neighbours + 1)
        group = torch.cat([z.unsqueeze(1), buffer[nearest[:, 1:]]], dim=1)
        scores = (group * z.unsqueeze(1)).sum(-1, keepdim=True)
        return (torch.softmax(scores / self.p.smoothing_temperature, dim=1) * group).sum(1)

    def loss(self, views: Views) -> Tensor:
        z = normalize(upcast_fp32(views.z2), dim=-1)
        recent = z.detach()
        if self.buffer is not None:
            recent = torch.cat([self.buffer, recent])
        self.buffer = recent[-self.p.buffer :]
        loss = super().loss(views)
        if len(self.buffer) == self.p.buffer:
            smoothed = self.smooth(z, self.buffer)
            loss = loss + self.weight() * info_nce(views.z1, smoothed, self.p.temperature)
        return loss

    def weight(self) -> float:
        """Return α at this step. It rises by a cosine over half the steps, then it is constant.

        It starts at the share `smoothing_start` of its final value.
        """
        end = self.p.smoothing
        start = self.p.smoothing_start * end
        return min(end, math.cos(math.pi * self.step / self.p.steps) * (start - end) + end)

    def after_step(self) -> None:
        self.step += 1

    def get_extra_state(self) -> dict:
        return {"buffer": self.buffer, "step": self.step}

    def set_extra_state(self, state: dict) -> None:
        self.buffer = state["buffer"]
        self.step = state["step"]
