"""Momentum contrast (MoCo): a slowly moving copy of the encoder fills a queue of further negatives.

Idea: an exponential moving average of the encoder encodes previous batches. Their vectors are
negatives in the denominator of the method's loss, together with those of the batch.

Source: miCSE's Eq. 2; no official code (its repository has no momentum encoder); nearest relative:
caskcsg/sentemb ESimCSE esimcse/models.py:123-192.
Inputs: the first view of the batch, tokenised (N, T). The component fills `queue` (Q, D).
Relations: micse = simcse + ami + moco. SimCSE, Mirror-BERT and CT use the queue in their own loss.
"""

import torch
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from csebench.plan.schema.declarations import Hyperparameters
from csebench.train import parallel
from csebench.train.method import Component as Base
from csebench.train.method import Method, Views

DECLARATION = {
    "name": "moco",
    "version": 1,
    "title": "Momentum contrast",
    "kind": "component",
    "paper": "He et al. 2020 (CVPR); Klein & Nabi 2023 (ACL), sec. 2.1 and 3.1",
    "citation": "see methods/micse.py",
    "asks": ["queue"],
    "trains": "nothing: a moving average",
    "params": {
        "queue": (384, "miCSE sec. 3.1"),
        "momentum": (0.995, "miCSE sec. 3.1: all but the MLP, which is the online network's"),
        "dropout": (0.3, "miCSE sec. 3.1, in the momentum encoder"),
    },
    "below": [(0, "queue"), ("momentum", 1), ("dropout", 1)],
    "deviations": [
        (
            "our choices, where the paper is silent: the first view queries the queue (as in ESimCSE), the"
            " queue is used before it is full, momentum vectors pass the shared MLP, dropout 0.3"
            " covers attention too, the batch is enqueued after the optimiser step and the moving"
            " average follows it"
        ),
        "the queue keeps the newest 384 entries; with a batch of 50, it holds part of its oldest batch",
        (
            "the momentum encoder starts from the pre-trained weights (ESimCSE's starts from random"
            " ones by accident)"
        ),
    ],
}


class Component(Base):
    def __init__(self, method: Method, params: Hyperparameters):
        super().__init__(method, params)
        self.momentum = method.encoder.copy().requires_grad_(False)
        self.momentum.set_dropout(self.p.dropout)

    @torch.no_grad()
    def after_step(self, method: Method, views: Views) -> None:
        self.momentum.train()  # its dropout is on
        encoded = self.momentum(views.view1.batch, method.p.pooler)
        keys = method.project(method.pool(encoded)).float()
        keys = parallel.gather(keys, views.view1.blocks)
        if self.queue is None:
            self.queue = keys
        else:
            self.queue = torch.cat([self.queue, keys])[-self.p.queue :]
        # only now follow the encoder: the keys come from the average before this step
        slow = list[Tensor](self.momentum.parameters())
        fast = list[Tensor](method.encoder.parameters())
        get_ema_multi_avg_fn(self.p.momentum)(slow, fast, None)

    def get_extra_state(self) -> Tensor | None:
        return self.queue

    def set_extra_state(self, queue: Tensor | None) -> None:
        self.queue = queue
