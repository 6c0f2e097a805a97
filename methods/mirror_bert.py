"""Mirror-BERT: a random span mask in addition to dropout, and InfoNCE in both directions.

Idea: few steps of contrastive learning on raw strings turn a language model into a sentence
encoder. The second view hides five characters of the string.

    loss = NT-Xent over the 2N vectors: every row is an anchor against the 2N-2 rows of other
    sentences

Source: Eq. 1; official code: cambridgeltl/mirror-bert src/contrastive_learning.py:31-63,
src/data_loader.py:15-25, mirror_scripts/mirror_sentence_bert.sh.
Inputs: N sentences; z1, z2 (N, D) pooled without a head.
Relations: simcse with another second view, both directions, τ 0.04 and no head.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from csebench.model.pooling import Encoded, mean_pool
from csebench.train.losses import cos_sim
from csebench.train.method import Method as Base
from csebench.train.method import Views

DECLARATION = {
    "name": "mirror_bert",
    "version": 2,
    "title": "Mirror-BERT",
    "paper": "Liu et al. 2021 (EMNLP), sec. 3",
    "citation": (
        """@inproceedings{liu2021mirror, title={Fast, Effective, and Self-Supervised: Transforming Masked
Language Models into Universal Lexical and Sentence Encoders},
author={Liu, Fangyu and Vuli{\\'c}, Ivan and Korhonen, Anna and
Collier, Nigel}, booktitle={EMNLP}, year={2021}}"""
    ),
    "colours": {"": "#6B8E23", "ami": "#B22222"},
    "params": {
        "steps": (
            50,
            (
                "mirror_sentence_bert.sh: 10k sentences, 1 epoch, batch 200, last partial batch"
                " dropped"
            ),
        ),
        "batch_size": (200, "mirror_sentence_bert.sh"),
        "learning_rate": (2e-5, "mirror_sentence_bert.sh; constant, no scheduler"),
        "weight_decay": (
            0.01,
            "train.py:42-63, default; on every weight (contrastive_learning.py:32-34)",
        ),
        "max_length": (50, "mirror_sentence_bert.sh"),
        "evaluate_every": (
            25,
            "ours: the official code keeps the last step; dev selection is this project's for all",
        ),
        "pooler": (
            "avg",
            "mirror_sentence_bert.sh: `mean`, here of real tokens; [CLS] is miCSE's second reading",
        ),
        "temperature": (0.04, "mirror_sentence_bert.sh"),
        "span": (5, "data_loader.py: characters masked in the second view"),
        "mean_over_padding": (
            False,
            "True: as the code's `mean`, which averages all 50 positions, padding included",
        ),
    },
    "keeps": ["pooler"],  # no head: the mean of what the last layer gives
    "variants": {
        "default": (
            "as printed",
            "the mean of a sentence's tokens; the best step on STS-B dev, as for all methods here",
        ),
        "code": (
            "as released",
            (
                "agg_mode `mean` averages all 50 positions in training, padding included, and the"
                " last step is kept"
            ),
            {"mean_over_padding": True, "selection": "last"},
        ),
    },
    "deviations": [
        (
            "trained on the scale's corpus; the public script uses 10k sentences of the STS-B"
            " training set"
        ),
        "no gradient clipping is stated; the trainer's 1.0 applies",
        (
            "miCSE says that it kept the authors' settings, which have 50 steps, and also that all"
            " sizes have the same number of steps; here, runs have 50 steps at scale paper, and the"
            " scale's own number at other scales"
        ),
        (
            "the variant `code` averages padding, too, in training only; the official code does so in its"
            " evaluation, too"
        ),
    ],
}


def mask_span(text: str, randint: Callable[[int], int], length: int = 5) -> str:
    """Replace a random window of `length` characters by " [MASK] "; leave short texts alone.

    If the text of the window occurs earlier in the sentence, the first occurrence is masked, as in
    the official code (data_loader.py:15-25).
    """
    if len(text) < 30 or len(text) <= length:
        return text
    start = randint(len(text) - length)
    first = text.index(text[start : start + length])
    return f"{text[:first]} [MASK] {text[first + length :]}"


def randint(high: int) -> int:
    return int(torch.randint(high, ()))


class Method(Base):
    decays_all = True

    def views(self, sentences: list[str]) -> Views:
        view1 = self.view(sentences)
        masked = [mask_span(sentence, randint, self.p.span) for sentence in sentences]
        return Views(view1, self.view(masked))

    def tokenize(self, sentences: list[str]) -> dict[str, Tensor]:
        ids = self.encoder.ids(sentences, self.p.max_length)
        ids = self.encoder.in_template(ids, self.p.pooler)
        length = None  # the longest row
        if self.averages_padding():
            length = self.p.max_length
        return self.encoder.pad(ids, length)

    def averages_padding(self) -> bool:
        return self.p.mean_over_padding and self.p.pooler == "avg"

    def pool(self, encoded: Encoded) -> Tensor:
        if self.averages_padding():
            return mean_pool(encoded.output.last_hidden_state, torch.ones_like(encoded.mask))
        return super().pool(encoded)

    def loss(self, views: Views) -> Tensor:
        return nt_xent(views.z1, views.z2, self.p.temperature, views.queue)

    def learning_rate_factor(self, step: int) -> float:
        return 1.0


def nt_xent(z1: Tensor, z2: Tensor, temperature: float, queue: Tensor | None = None) -> Tensor:
    """Compute InfoNCE in both directions.

    Each of the 2N rows is an anchor against the 2N-2 rows of other sentences. Mirror-BERT Eq. 1 as
    coded with pytorch-metric-learning's NTXent (contrastive_learning.py:31, 57-63).
    """
    z = torch.cat([z1, z2])
    n = len(z1)
    logits = cos_sim(z, z) / temperature
    itself = torch.eye(2 * n, dtype=torch.bool, device=z.device)
    logits = logits.masked_fill(itself, float("-inf"))
    if queue is not None:
        logits = torch.cat([logits, cos_sim(z, queue.detach()) / temperature], dim=1)
    return cross_entropy(logits, torch.arange(2 * n, device=z.device).roll(n))
