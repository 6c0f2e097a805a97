"""SG-OPT: [CLS] is guided by the layers of a frozen copy of the encoder.

Idea: the mean over the tokens of a layer says more about a sentence than [CLS] does. So the [CLS]
of the trained encoder must agree with the mean vector of every layer of the encoder as it was, and
no sentence has to be changed to get a second view.

    loss = mean over i, k of -log s(i, i, k) / (s(i, i, k) + Σ_{j≠i} Σ_l s(i, j, l))
           + λ ‖weights - weights before training‖²
    s(i, j, l) = exp(cos(c_i, h_jl)/τ),  c = head([CLS]),  h_jl = head(mean of layer l)

Source: official code: galsang/SG-BERT loss.py:136-331, training.py:31-132, modules.py:182-311. The
paper was not at hand.
Inputs: a batch of N sentences; z1 (N, D) = c; z2 (L·N, D) = h, one block of N rows for each of the
L hidden states, the embedding output included. The objectives opt1 and opt2 draw one layer for each
sentence: z2 (N, D).
Relations: simcse whose second view is a frozen copy. ct has two encoders, too, but trains both.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from csebench.model.encoder import Encoder
from csebench.model.layers import initialise, to_device
from csebench.model.pooling import Encoded, mean_pool
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import cos_sim, off_diagonal
from csebench.train.method import Method as Base
from csebench.train.method import View, Views

DECLARATION = {
    "name": "sg_opt",
    "version": 1,
    "title": "Self-guided contrastive learning",
    "paper": "Kim et al. 2021 (ACL)",
    "citation": (
        """@inproceedings{kim2021self, title={Self-Guided Contrastive Learning for {BERT} Sentence Representations},
author={Kim, Taeuk and Yoo, Kang Min and Lee, Sang-goo}, booktitle={ACL}, year={2021}}"""
    ),
    "refuses": {
        "queue": "its negatives are layers of a frozen copy, and a queue has vectors of [CLS]",
        "attention": "its second view is a frozen copy, which cannot change its attention",
        "tokens": "its second view has a vector for every layer of a sentence",
    },
    "trains": "encoder without its embeddings, head",
    "colours": {"": "#AD5D4E"},
    "params": {
        "steps": (
            1079,
            "training.py: 1 epoch of the 17,256 sentences of all splits of STS-B at batch 16",
        ),
        "batch_size": (16, "training.py:39"),
        "learning_rate": (5e-5, "training.py:38"),
        "warmup_steps": (108, "training.py:121: 10 % of the steps"),
        "weight_decay": (
            0.01,
            "modules.py:185, 221: of groups, so the 0 of training.py:46 has no effect",
        ),
        "max_length": (128, "modules.py:30: the default of Transformer"),
        "evaluate_every": (50, "training.py:36"),
        "pooler": ("cls_before_pooler", "training.py:34"),
        "temperature": (0.01, "training.py:40"),
        "objective": (
            "sg_opt",
            (
                "training.py:51; opt1, opt2: loss.py:86-133; opt2_code: opt2 without the first"
                " negative of each row"
            ),
        ),
        "regularisation": (0.1, "training.py:44: lamb"),
        "projector": (4096, "loss.py:247: width of both layers of the head"),
        "frozen_dropout": (
            True,
            "modules.py:250 turns on what loss.py:238 had turned off: dropout in the frozen copy",
        ),
    },
    "keeps": ["pooler"],  # the loss trains [CLS] to agree with means
    "choices": {"objective": ["sg_opt", "opt1", "opt2", "opt2_code"]},
    "search": {"regularisation": (0.01, 0.1, 1.0)},
    "weights": ["regularisation"],
    "variants": {
        "default": (
            "as released",
            "SG-OPT of the code: every layer is a positive, all layers of others are negatives",
        ),
        "opt1": (
            "as released",
            (
                "objective OPT1: the positive is a layer drawn for each sentence, and [CLS] of"
                " other sentences are negatives, too"
            ),
            {"objective": "opt1"},
        ),
        "opt2": (
            "released, repaired",
            (
                "objective OPT2: as OPT1, but the negatives are the drawn layers of all other"
                " sentences alone"
            ),
            {"objective": "opt2"},
        ),
        "opt2_code": (
            "as released",
            (
                "OPT2 of the code cuts off one column too many (loss.py:125): the first other"
                " sentence of the batch is no negative"
            ),
            {"objective": "opt2_code"},
        ),
        "stated": (
            "released, repaired",
            (
                "what the code states and does not do: no dropout in the frozen copy (loss.py:238)"
                " and no weight decay (training.py:46)"
            ),
            {"frozen_dropout": False, "weight_decay": 0.0},
        ),
    },
    "deviations": [
        (
            "the paper was not at hand: settings and losses are the code's, and its equations are"
            " not compared with the code"
        ),
        (
            "the printed rows may have been trained on the sentences of STS-B, as the code does,"
            " the test set included; here on the scale's corpus"
        ),
        (
            "AdamW with betas 0.9 and 0.999, where the code has 0.9 and 0.9; no early stopping,"
            " where the code stops after ten evaluations that are worse than the one before"
        ),
        (
            "the code's objective SG, NT-Xent in both directions, ends in an error of shapes"
            " (loss.py:81-82) and is left out"
        ),
        "the settings of BERT-large are not stated; those of BERT-base are taken",
    ],
}


class Method(Base):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.frozen = encoder.copy().requires_grad_(False)
        if not self.p.frozen_dropout:
            self.frozen.set_dropout(0.0)
        encoder.model.embeddings.requires_grad_(False)  # loss.py:243-245
        self.head = make_head(encoder.size, self.p.projector)

    def views(self, sentences: list[str]) -> Views:
        view1 = self.view(sentences)
        with torch.no_grad():
            layers = layer_means(self.frozen(view1.batch))  # (L, N, D)
        if self.p.objective != "sg_opt":
            layers = one_for_each(layers)  # (1, N, D)
        pooled = layers.flatten(0, 1)
        view2 = View(self.project(pooled), pooled, view1.batch, blocks=len(layers))
        return Views(view1, view2)

    def loss(self, views: Views) -> Tensor:
        if self.p.objective == "sg_opt":
            layers = views.z2.unflatten(0, (views.view2.blocks, -1))  # (L, N, D)
            contrast = self_guided(views.z1, layers, self.p.temperature)
        else:
            contrast = guided_by_one(views.z1, views.z2, self.p.temperature, self.p.objective)
        distance = squared_distance(self.encoder.model, self.frozen.model)
        return contrast + self.p.regularisation * distance


def make_head(size: int, width: int) -> nn.Sequential:
    """Make the head that both views pass, (…, size) -> (…, width) (loss.py:247-258)."""
    first = nn.Linear(size, width)
    second = nn.Linear(width, width)
    initialise(first)
    initialise(second)
    return nn.Sequential(first, nn.GELU(), second, nn.GELU())


def layer_means(encoded: Encoded) -> Tensor:
    """Average the real tokens of every hidden state: L times (N, T, D) -> (L, N, D)."""
    means = [mean_pool(states, encoded.mask) for states in encoded.output.hidden_states]
    return torch.stack(means)


def one_for_each(layers: Tensor) -> Tensor:
    """Draw a layer for each sentence, (L, N, D) -> (1, N, D)."""
    count, n, _ = layers.shape
    drawn = to_device(torch.randint(count, (n,)), layers.device)
    return layers[drawn, torch.arange(n, device=layers.device)].unsqueeze(0)


def self_guided(z1: Tensor, layers: Tensor, temperature: float) -> Tensor:
    """Compute the objective SG-OPT (loss.py:180-220).

    Each sentence i and layer k has one row: its positive is layer k of sentence i, its negatives
    are all layers of all other sentences. Other layers of sentence i are neither.

    Args:
        z1: (N, D) vectors of [CLS].
        layers: (L, N, D) vectors of the layers of the frozen copy.
    """
    count, n, _ = layers.shape
    logits = cos_sim(z1, layers.flatten(0, 1)) / temperature  # (N, L·N)
    logits = logits.unflatten(1, (count, n))  # (N, L, N)
    positives = logits.diagonal(dim1=0, dim2=2)  # (L, N)
    itself = torch.eye(n, dtype=torch.bool, device=z1.device).unsqueeze(1)  # (N, 1, N)
    negatives = logits.masked_fill(itself, float("-inf")).flatten(1).logsumexp(1)  # (N,)
    return (torch.logaddexp(positives, negatives) - positives).mean()


def guided_by_one(z1: Tensor, z2: Tensor, temperature: float, objective: str) -> Tensor:
    """Compute the objective OPT1 or OPT2, with one layer for each sentence (loss.py:86-133).

    Args:
        z1: (N, D) vectors of [CLS].
        z2: (N, D) vectors of a layer of the frozen copy.
        objective: `opt1` has the [CLS] and the layers of other sentences as negatives, `opt2` their
            layers. `opt2_code` lacks the first of these.
    """
    logits = cos_sim(z1, z2) / temperature  # (N, N)
    positives = logits.diagonal().unsqueeze(1)  # (N, 1)
    negatives = off_diagonal(logits)  # (N, N-1)
    if objective == "opt1":
        other_cls = off_diagonal(cos_sim(z1, z1) / temperature)
        negatives = torch.cat([other_cls, negatives], dim=1)  # (N, 2N-2)
    elif objective == "opt2_code":
        negatives = negatives[:, 1:]  # (N, N-2)
    rows = torch.cat([positives, negatives], dim=1)
    first = torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    return cross_entropy(rows, first)


def squared_distance(model: nn.Module, start: nn.Module) -> Tensor:
    """Sum the squared changes of all weights of a model (loss.py:277-281)."""
    weights = zip(model.parameters(), start.parameters(), strict=True)
    return torch.stack([(now - before).square().sum() for now, before in weights]).sum()
