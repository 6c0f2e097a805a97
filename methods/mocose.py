"""MoCoSE: a query network with a predictor against a target network that follows it, and a queue.

Idea: two networks see a sentence, each under its own dropout. The first makes queries. The second,
its moving average, makes keys. Only the first has a predictor, so that the two cannot collapse. A
query should match the key of its sentence, and no key of the queue of earlier batches. The authors
find that longer queues are not better, and let the average move fast.

    loss = InfoNCE(q, k, queue)
    q = predictor(projection(dense([CLS])))
    k = projection'(dense'([CLS]')) of the moving average
    momentum at step t = 1 - (1 - m) · (cos(π·t/T) + 1)/2

Source: official code: xbdxwyh/mocose mocose.py:29-132, 308-364, 488-611, mocose_demo.ipynb; the
authors' slides in the same repository, pages 3 to 5.
Inputs: a batch of N sentences; q, k (N, D); queue (Q, D), the newest keys first.
Relations: simcse's loss with a queue. The moving average of components/moco gives negatives only.
Here it also gives the positives.
"""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.optim.swa_utils import get_ema_multi_avg_fn

from csebench.model.encoder import Encoder
from csebench.model.layers import Dropout, initialise
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import info_nce, upcast_fp32
from csebench.train.method import Method as Base
from csebench.train.method import View, Views

DECLARATION = {
    "name": "mocose",
    "version": 1,
    "title": "MoCoSE",
    "paper": "Cao et al. 2022 (Findings of ACL)",
    "citation": (
        """@inproceedings{cao2022mocose, title={Exploring the Impact of Negative Samples of Contrastive Learning:
A Case Study of Sentence Embedding}, author={Cao, Rui and Wang, Yihao and Liang, Yuxin and Gao, Ling and
Zheng, Jie and Ren, Jie and Wang, Zheng}, booktitle={Findings of ACL}, year={2022}}"""
    ),
    "refuses": {"queue": "it has a queue of its own"},
    "trains": "encoder, linear layer, projection, predictor, projection of the target",
    "colours": {"": "#F08A5D"},
    "params": {
        "steps": (15625, "slides: 1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "slides; 256 in the notebook"),
        "learning_rate": (3e-5, "slides, notebook"),
        "weight_decay": (1e-6, "slides, notebook"),
        "max_length": (32, "data/wiki1m.ipynb"),
        "dropout": (0.1, "notebook: BERT's, also in projection and predictor"),
        "evaluate_every": (100, "slides; 175 in the notebook"),
        "pooler": ("cls_before_pooler", "mocose_tools.py:168"),
        "temperature": (0.05, "mocose.py:117"),
        "queue": (512, "slides; 256 in the notebook"),
        "initial": (
            256,
            (
                "random unit vectors in the queue at the start: twice the notebook's K_start"
                " (mocose.py:311, 588-589)"
            ),
        ),
        "momentum": (
            0.85,
            "slides, page 5, at the start; 0.75 in the notebook's first run, 0.85 in its others",
        ),
        "momentum_end": (
            0.96,
            "T = 15000 steps (mocose.py:33), as a share of the run's: the momentum is 1 there",
        ),
    },
    "search": {"momentum": (0.75, 0.85, 0.95)},
    "below": [("momentum", 1), (0, "momentum_end"), (0, "queue"), (0, "initial")],
    "variants": {
        "default": (
            "as printed",
            (
                "the settings of the authors' slides, which name the printed 77.27: batch 64, queue"
                " 512, momentum 0.85"
            ),
        ),
        "notebook": (
            "as released",
            (
                "the first run of mocose_demo.ipynb: batch 256, queue 256, momentum 0.75, which"
                " hardly rises"
            ),
            {
                "batch_size": 256,
                "steps": 3888,  # 1 epoch of the 995,447 sentences that the notebook prints
                "evaluate_every": 175,
                "queue": 256,
                "momentum": 0.75,
                "momentum_end": 3.858,
            },
        ),
    },
    "deviations": [
        "the paper was not at hand; what the slides leave open is the code's",
        (
            "the best step is chosen on STS-B dev; the notebook takes the mean of the seven test"
            " sets (mocose_tools.py:168-174)"
        ),
        (
            "as in the code: keys are not detached. So the target's projection is both trained and"
            " averaged, and the embedding layer, which the networks share, is trained through both"
        ),
        (
            "the linear layer above [CLS] starts from new weights; the code's starts from BERT's"
            " pooler layer"
        ),
        (
            "no FGSM: the notebook moves word embeddings by 5e-9, a unit of their rounding in fp32."
            " With this, [CLS] of encoders/bert-mini-wiki moves by 2.0e-7 of its norm, and by 2.7e-7"
            " where sentences are encoded one by one"
        ),
        (
            "the queue never has more than 512 vectors; in the code, it has up to 896 in steps 5 to"
            " 7, before it is cut for the first time"
        ),
    ],
}


class Method(Base):
    queue: Tensor

    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        size = encoder.size
        dropout = self.p.dropout
        self.dense = nn.Linear(size, size)
        self.projection = nn.Sequential(nn.Linear(size, size), norm(size), Dropout(dropout))
        self.predictor = nn.Sequential(
            nn.Linear(size, size), norm(size), Dropout(dropout), nn.Linear(size, size), nn.Tanh()
        )
        for layer in (self.dense, *self.projection, *self.predictor):
            if isinstance(layer, nn.Linear):
                initialise(layer)

        self.target = encoder.copy().requires_grad_(False)
        share_weights(encoder.model.embeddings, self.target.model.embeddings)  # these are trained
        self.target.attention_layers = encoder.attention_layers  # what a component asks of both
        self.target_dense = copy.deepcopy(self.dense).requires_grad_(False)
        self.target_projection = copy.deepcopy(self.projection)  # trained, too

        # (Q, D), the newest keys first. It is saved by `get_extra_state`, because its length changes.
        queue = normalize(torch.randn(self.p.initial, size), dim=-1)
        self.register_buffer("queue", queue, persistent=False)
        self.step = 0  # steps done

    def project(self, pooled: Tensor) -> Tensor:
        """Make the queries, (N, D) -> (N, D)."""
        return self.predictor(self.projection(self.dense(pooled)))

    def views(self, sentences: list[str]) -> Views:
        """Encode the sentences by both networks: z1 are the queries, z2 the keys."""
        query = self.view(sentences)
        encoded = self.target(query.batch, self.reads())
        pooled = self.pool(encoded)
        keys = self.target_projection(self.target_dense(pooled))
        return Views(query, View(keys, pooled, query.batch, encoded.attention))

    def loss(self, views: Views) -> Tensor:
        loss = info_nce(views.z1, views.z2, self.p.temperature, self.queue)
        keys = upcast_fp32(views.z2).detach()
        self.queue = torch.cat([keys, self.queue])[: self.p.queue]
        return loss

    def after_step(self) -> None:
        """Let the target network follow the query network."""
        self.step += 1
        # the weights of the embedding layer are in both lists, and do not change here
        slow = parameters(self.target, self.target_dense, self.target_projection)
        fast = parameters(self.encoder, self.dense, self.projection)
        # the code counts from 1, and averages equal weights before the first step
        momentum = self.momentum(self.step + 1)
        move_towards = get_ema_multi_avg_fn(momentum)
        move_towards(slow, fast, None)  # the third argument is not read

    def momentum(self, step: int) -> float:
        """Return the share of its weights that the target network keeps at a step (mocose.py:43).

        It starts at `momentum` and rises along a cosine to 1 at the share `momentum_end` of the
        run's steps. Then it falls again, as in the code.
        """
        progress = step / (self.p.momentum_end * self.p.steps)
        return 1 - (1 - self.p.momentum) * (math.cos(math.pi * progress) + 1) / 2

    def get_extra_state(self) -> dict:
        return {"queue": self.queue, "step": self.step}

    def set_extra_state(self, state: dict) -> None:
        self.queue = state["queue"]
        self.step = state["step"]


def share_weights(source: nn.Module, target: nn.Module) -> None:
    """Give a copy of a module the weights of its original, so that both are trained together."""
    for original, copied in zip(source.modules(), target.modules(), strict=True):
        for name, weight in original.named_parameters(recurse=False):
            setattr(copied, name, weight)


def norm(size: int) -> nn.LayerNorm:
    """Make a LayerNorm as BERT's."""
    return nn.LayerNorm(size, eps=1e-12)


def parameters(*modules: nn.Module) -> list[Tensor]:
    """List the weights of modules."""
    weights = []
    for module in modules:
        weights += module.parameters()
    return weights
