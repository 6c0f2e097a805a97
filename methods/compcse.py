"""CompCSE: the positive of a sentence is composed of the vectors of its two halves.

Idea: a sentence should mean what its parts mean together. Each half is encoded by itself, and the
mean of the two vectors is the positive. Only the first dimensions are compared.

    z  = head([CLS](sentence))[:d0]
    z+ = head(½ ([CLS](left half) + [CLS](right half)))[:d0]
    loss = InfoNCE(z, z+)

Source: official code: perceptiveshawty/CompCSE compcse/models.py:84-111, 154-180, README.
Inputs: a batch of N sentences, N left halves and N right halves; z, z+ (N, d0).
Relations: simcse's loss on another positive.
"""

from torch import Tensor

from csebench.train.losses import info_nce
from csebench.train.method import View, Views
from methods.simcse import Method as SimCSE

DECLARATION = {
    "name": "compcse",
    "version": 1,
    "extends": "simcse",
    "title": "Composition-contrastive learning",
    "paper": "Chanchani & Huang 2023 (ACL)",
    "citation": (
        """@inproceedings{chanchani2023compcse, title={Composition-contrastive Learning for Sentence Embeddings},
author={Chanchani, Sachin J. and Huang, Ruihong}, booktitle={ACL}, year={2023}}"""
    ),
    "refuses": {
        "attention": "its second view is composed of two texts, so it has no attention map",
        "tokens": "its second view is composed of two texts, so it has no row of tokens",
    },
    "trains": "encoder, head",
    "colours": {"": "#F95D6A"},
    "params": {
        "steps": (15625, "1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "README"),
        "learning_rate": (3e-5, "README, BERT base"),
        "max_length": (32, "README; of a sentence, and of each half"),
        "evaluate_every": (125, "README"),
        "pooler": ("cls_before_pooler", "README: mlp_only_train"),
        "temperature": (0.05, "README"),
        "d0": (256, "README: the first dimensions of 768, which the loss compares"),
    },
    "search": {"d0": (64, 128, 256)},
    "below": [(0, "d0")],
    "variants": {
        "default": (
            "as released",
            (
                "the command of the README for BERT base, with halves of a sentence for the authors'"
                " partitions"
            ),
        )
    },
    "deviations": [
        "the paper was not at hand; the loss and the settings are the code's",
        (
            "a sentence is split in the middle of its words, as RST.py halves lists of clauses"
            " (sample_2deep); the authors' split is a file (partition_data_for_cse_v1.json) that was"
            " not at hand, and the README says that a discourse parser helped to make some of the"
            " data"
        ),
        "a sentence of one word is both of its halves",
        (
            "trained on the scale's corpus; the partitions need not cover all of its sentences, and"
            " their number is not stated"
        ),
        "`compose_fn` is avg, which the README names for BERT; cat_first_last is for RoBERTa",
        "an encoder with no more than d0 dimensions is compared in all of them",
    ],
}


class Method(SimCSE):
    def views(self, sentences: list[str]) -> Views:
        halves = [split(sentence) for sentence in sentences]
        lefts = [left for left, _ in halves]
        rights = [right for _, right in halves]
        return Views(self.view(sentences), self.compose(self.view(lefts + rights)))

    def compose(self, halves: View) -> View:
        """Join the vectors of N left halves and then N right halves, (2N, D), to N positives."""
        left, right = halves.pooled.chunk(2)
        pooled = 0.5 * (left + right)  # (N, D)
        # the batch has 2N halves, and components that read it are refused
        return View(self.project(pooled), pooled, halves.batch)

    def project(self, pooled: Tensor) -> Tensor:
        """Apply the head and keep the first dimensions, (N, D) -> (N, d0)."""
        return super().project(pooled)[:, : self.p.d0]

    def loss(self, views: Views) -> Tensor:
        return info_nce(views.z1, views.z2, self.p.temperature, views.queue)


def split(sentence: str) -> tuple[str, str]:
    """Split a sentence in the middle of its words. The right half has the word more, if any."""
    words = sentence.split()
    if len(words) < 2:
        return sentence, sentence
    middle = len(words) // 2
    return " ".join(words[:middle]), " ".join(words[middle:])
