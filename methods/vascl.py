"""VaSCL: a vector, moved to where it is hardest to tell from neighbours, is a second positive.

Idea: text has no general augmentation. So a virtual one is made in the space of vectors. A second
positive of a sentence is its own vector, moved by a fixed distance to where it is hardest to tell
from its neighbours in the batch. The head must still tell the moved vector from them.

    loss = NT-Xent(z1, z2) + NT-Xent(sg z1, z*), whose only negatives are the neighbours' rows
    z*_i = head(e_i + r g_i/|g_i|)
    g_i = gradient by d_i of -log exp c_ii / (exp c_ii + Σ_k exp c_ik),   k among the K neighbours
    c_ij = cos(head(e_i + r d_i), z1_j)/τ,   d_i random, |d_i| = 1

sg: without gradient. The second term takes e without gradient, too, so it trains the head alone.

Source: official code: amazon-science/sentence-representations VaSCL/training.py:109-125,
learners/contrastive_utils.py, learners/vat_utils.py:33-74, models/Transformers.py:7-53, main.py.
Inputs: a batch of N sentences; e (N, D) their mean-pooled vectors; z1, z2 (N, 128) = head(e) of the
two dropout views.
Relations: mirror_bert's loss on two dropout views, + a term that trains the head.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train import parallel
from csebench.train.losses import cos_sim, dot_score, upcast_fp32
from csebench.train.method import Method as Base
from csebench.train.method import Views
from methods.mirror_bert import nt_xent

DECLARATION = {
    "name": "vascl",
    "version": 2,
    "title": "VaSCL",
    "paper": "Zhang et al. 2022 (Findings of ACL)",
    "citation": (
        """@inproceedings{zhang2022virtual, title={Virtual Augmentation Supported Contrastive Learning of Sentence
Representations}, author={Zhang, Dejiao and Xiao, Wei and Zhu, Henghui and Ma, Xiaofei and Arnold, Andrew},
booktitle={Findings of ACL}, year={2022}}"""
    ),
    "refuses": {
        "tokens": "its sentence vectors have 128 dimensions, and those of tokens have more"
    },
    "trains": "encoder, head",
    "colours": {"": "#7F7FD5"},
    "params": {
        "steps": (4885, "main.py: 5 epochs of 10^6 sentences at batch 1024"),
        "batch_size": (1024, "run_vascl.sh"),
        "learning_rate": (5e-6, "run_vascl.sh, for RoBERTa base; constant"),
        "clip": (1e9, "training.py:122-124 clips nothing"),
        "max_length": (32, "main.py:61"),
        "evaluate_every": (500, "run_vascl.sh: logging_step; main.py:52 has 100"),
        "pooler": ("avg", "models/Transformers.py:41-45"),
        "temperature": (0.05, "main.py:73"),
        "head_rate": (
            100.0,
            (
                "README and run_vascl.sh of commits a42917e to b6d8116 (2022-03-15), and"
                " main.py:65: lr_scale, times the encoder's learning rate; the last commit of that"
                " day, 8061463, has 100,000, which makes the head's rate 0.5"
            ),
        ),
        "neighbours": (16, "main.py:74: topk"),
        "radius": (15.0, "main.py:75: eps, how far a vector is moved"),
    },
    "search": {"radius": (5.0, 15.0, 45.0)},
    "below": [("neighbours", "batch_size"), (0, "head_rate")],
    "variants": {
        "default": (
            "released, repaired",
            (
                "the README's command of the first commit (a42917e) without two faults: a comment"
                " behind a backslash, with which it does not start, and a limit of 100 steps"
            ),
        ),
    },
    "deviations": [
        "the settings and the loss are the code's; the paper was not at hand",
        (
            "as in the code, the term of moved vectors has no gradient to the encoder"
            " (training.py:117; vat_utils.py:52): it trains the head, which is not used at test"
        ),
        (
            "the README drops repeated sentences of the corpus; here they stay, and 4,885 steps"
            " count them"
        ),
        (
            "the last script has the same comment. Without it, it makes 106 steps, as if for a trial"
            " run (max_iter 100; every later epoch makes one more, training.py:101-104). Here are the"
            " 5 epochs that it also states. The authors' own command in commit a42917e has 10,000"
            " steps of 256 sentences"
        ),
        "precision as the scale says, fp32 or bf16; the code trains in fp32",
        (
            "the code's Adam has an epsilon of 1e-8 for the head; here it is 1e-8 divided by"
            " `head_rate`"
        ),
        (
            "on several GPUs, the code finds neighbours within a GPU's share and uses their indices"
            " on the whole batch; here neighbours are found in the whole batch"
        ),
        (
            "the code fails on a batch of `neighbours` sentences or fewer; here all other sentences"
            " of such a batch are neighbours"
        ),
    ],
}


class Method(Base):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        hidden = FastLinear(encoder.size, encoder.size, self.p.head_rate)
        output = FastLinear(encoder.size, 128, self.p.head_rate)
        self.head = nn.Sequential(hidden, nn.ReLU(), output)

    def loss(self, views: Views) -> Tensor:
        vectors = views.view1.pooled.detach()  # (N, D)
        anchors = views.z1.detach()  # (N, 128)
        near = nearest(vectors, self.p.neighbours)

        # Find in which direction each vector is hardest to tell from its neighbours.
        share = len(views.view1.ids)  # tokens are this process's, and vectors are all processes'
        start = random_directions(vectors, share).requires_grad_()
        trial = self.project(vectors + self.p.radius * start)
        neighbour_loss = neighbour_contrast(trial, anchors, near, self.p.temperature)
        (gradient,) = torch.autograd.grad(neighbour_loss, start)
        direction = unit(gradient)

        moved = self.project(vectors + self.p.radius * direction)
        moved_loss = neighbour_nt_xent(anchors, moved, near, self.p.temperature)
        return nt_xent(views.z1, views.z2, self.p.temperature, views.queue) + moved_loss

    def learning_rate_factor(self, step: int) -> float:
        return 1.0


class FastLinear(nn.Linear):
    """A linear layer without bias that learns `rate` times as fast as other layers.

    Its weights are stored divided by the rate. A step of Adam is about as long as the learning
    rate, if the gradient is much larger than Adam's epsilon. So the weights that are applied move
    by `rate` times the learning rate. In full, with Adam's averages m of the gradient and v of its
    square by the applied weights, they move by

        rate · learning rate · m / (√v + epsilon/rate)

    This holds without weight decay, which is not multiplied by `rate`.
    """

    def __init__(self, inputs: int, outputs: int, rate: float):
        super().__init__(inputs, outputs, bias=False)
        self.rate = rate
        nn.init.normal_(self.weight, std=0.02 / rate)

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.rate * self.weight)


# ---------------------------------------------------------------- the losses
# Shapes: N sentences, H = 128 outputs of the head.


def nearest(vectors: Tensor, count: int) -> Tensor:
    """Mark the `count` neighbours of each sentence that have the largest dot products.

    The last batch of an epoch may have fewer other sentences. Then all of them are marked.

    Args:
        vectors: (N, D).

    Returns:
        (N, N) bool. No sentence is its own neighbour.
    """
    scores = dot_score(vectors, vectors).fill_diagonal_(float("-inf"))
    neighbours = scores.topk(min(count, len(scores) - 1)).indices  # (N, count)
    return torch.zeros_like(scores, dtype=torch.bool).scatter(1, neighbours, True)


def neighbour_contrast(moved: Tensor, anchors: Tensor, near: Tensor, temperature: float) -> Tensor:
    """Compute InfoNCE of moved vectors, whose negatives are their neighbours, mean over rows.

    Args:
        moved, anchors: (N, H).
        near: (N, N) bool.
    """
    logits = cos_sim(moved, anchors) / temperature
    own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    logits = logits.masked_fill(~(near | own), float("-inf"))
    return cross_entropy(logits, torch.arange(len(logits), device=logits.device))


def neighbour_nt_xent(anchors: Tensor, moved: Tensor, near: Tensor, temperature: float) -> Tensor:
    """Compute InfoNCE in both directions, with neighbours and moved neighbours as negatives.

    Args:
        anchors, moved: (N, H), the two vectors of each sentence.
        near: (N, N) bool.
    """
    both = torch.cat([anchors, moved])  # (2N, H)
    logits = cos_sim(both, both) / temperature
    positive = torch.eye(len(both), dtype=torch.bool, device=both.device).roll(len(anchors), dims=0)
    logits = logits.masked_fill(~(near.repeat(2, 2) | positive), float("-inf"))
    return cross_entropy(logits, torch.arange(len(both), device=both.device).roll(len(anchors)))


def random_directions(like: Tensor, share: int) -> Tensor:
    """Draw a unit vector for each sentence, (N, D), the same in all processes.

    Coordinates are uniform between -1/2 and 1/2 before the vector gets its length.

    Args:
        like: (N, D) vectors that have the device.
        share: number of sentences of this process.
    """
    dtype = upcast_fp32(like).dtype
    drawn = torch.rand(share, like.shape[1], dtype=dtype, device=like.device) - 0.5
    return unit(parallel.gather(drawn))


def unit(x: Tensor) -> Tensor:
    """Give each row length 1, (N, D) -> (N, D), or a little less if it is tiny, as in the code."""
    return x / (x.norm(dim=-1, keepdim=True) + 1e-8)
