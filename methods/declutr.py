"""DeCLUTR: spans of a document that lie close together are positives, and masked tokens are restored.

Idea: text that stands close together in a document is about the same. So anchors are spans of a
document, and their positives are spans that touch or overlap them. Anchors are long and positives
short on average. Masked tokens of the anchors are restored, so that the encoder stays a language
model.

    loss = NT-Xent(z, z+) + MLM(anchors)
    z = mean over the states of a masked anchor,   z+ = mean over P positives of the mean of states
    length of a span = S + (L - S) Beta(4, 2) for an anchor, and Beta(2, 4) for a positive
    S = `min_span`,   L = `max_span`

Source: official code: JohnGiorgi/DeCLUTR declutr/model.py:100-205, declutr/losses/
pytorch_metric_learning.py, declutr/common/contrastive_utils.py, declutr/dataset_reader.py,
training_config/declutr_base.jsonnet. The paper was not at hand.
Inputs: a batch of N documents, with A anchors each and P positives for each anchor; z, z+ (N·A, D).
Anchors of the same document are negatives of each other.
Relations: mirror_bert's loss on other positives, + a masked language model. The anchors of the
contrast are themselves masked. components/mlm masks copies instead.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Beta

from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.method import Method as Base
from csebench.train.method import View, Views
from csebench.train.mlm import mask_batch, masked_lm_loss
from methods.mirror_bert import nt_xent

SLOWEST = 1 / 32  # learning rate of the last step, as a share of the highest

DECLARATION = {
    "name": "declutr",
    "version": 1,
    "title": "DeCLUTR",
    "paper": "Giorgi et al. 2021 (ACL)",
    "citation": (
        """@inproceedings{giorgi2021declutr, title={{DeCLUTR}: Deep Contrastive Learning for Unsupervised Textual
Representations}, author={Giorgi, John and Nitski, Osvald and Wang, Bo and Bader, Gary}, booktitle={ACL}, year={2021}}"""
    ),
    "needs": "a masked-LM head; a corpus whose consecutive lines belong together",
    "refuses": {
        "attention": "its positive is the mean of several spans, so it has no attention map",
        "tokens": "its positive is the mean of several spans, so it has no row of tokens",
    },
    "trains": "encoder, masked-LM head",
    "colours": {"": "#2A9D8F"},
    "params": {
        "steps": (2500, "declutr_base.jsonnet: 1 epoch, here of 10,000 documents at batch 4"),
        "batch_size": (4, "declutr_base.jsonnet: documents, of each GPU"),
        "learning_rate": (5e-5, "declutr_base.jsonnet"),
        "warmup_steps": (250, "slanted_triangular of AllenNLP: 10 % of the steps"),
        "weight_decay": (0.1, "declutr_base.jsonnet"),
        "clip": (1.0, "declutr_base.jsonnet: grad_norm"),
        "max_length": (
            512,
            "declutr_base.jsonnet: tokenizer.max_length 510 of a span's text, + 2 special tokens",
        ),
        "evaluate_every": (125, "ours: the code has no development set"),
        "pooler": ("avg", "model.py:77-80"),
        "temperature": (0.05, "declutr_base.jsonnet"),
        "probability": (0.15, "masked_lm_utils.py:10"),
        "document_lines": (100, "ours: 2,100 words on average; 1 for a corpus of documents"),
        "anchors": (2, "declutr_base.jsonnet: num_anchors, of a document"),
        "positives": (2, "declutr_base.jsonnet: num_positives, of an anchor"),
        "max_span": (512, "declutr_base.jsonnet: max_span_len, in tokens"),
        "min_span": (32, "declutr_base.jsonnet: min_span_len, in tokens"),
    },
    "search": {"anchors": (1, 2), "positives": (1, 2, 4)},
    "below": [
        (0, "document_lines"),
        (0, "anchors"),
        (0, "positives"),
        (0, "min_span"),
        ("min_span", "max_span"),
        ("probability", 1),
    ],
    "deviations": [
        "the paper was not at hand; the loss and the settings are the code's",
        (
            "the code reads a document a line and has documents of 2,048 tokens or more; here a"
            " document is `document_lines` consecutive lines of the corpus, which may be the end of"
            " one article and the beginning of the next. scripts/preprocess_openwebtext.py"
            " lower-cases documents and counts their length in words by default; here case stays"
        ),
        (
            "the learning rate rises and falls, as slanted_triangular is meant to. With"
            " declutr_base.jsonnet alone, it is 5e-5/32 at every step: documents are read lazily, so"
            " AllenNLP 1.1 does not know the number of steps and takes every step for the last."
            " notebooks/training.ipynb states the number (batches_per_epoch)"
        ),
        (
            "the code refuses a document of fewer than 2A·max_span tokens. Here the spans of a"
            " document of n tokens have n/2A tokens at most, and a document of fewer than 2A tokens"
            " is its own anchor and positive"
        ),
        "spans are cut from the token ids; the code turns them into text and tokenises that again",
        (
            "AdamW with correction of the bias and epsilon 1e-8; the code has neither correction"
            " nor this epsilon (1e-6)"
        ),
        "precision as the scale says, fp32 or bf16, where the code trains in mixed fp16",
        (
            "one GPU's batch and its loss, as in the code. On several GPUs, its configuration"
            " divides the gradient of NT-Xent by their number (scale_fix: false)"
        ),
        "the last batch of an epoch may be smaller; the code drops it",
        "the best step on STS-B dev is kept; the code keeps the last one",
        (
            "our choice: edits of components, such as mlm's form in_place, reach the positives only,"
            " because the anchors are masked already"
        ),
    ],
}


@dataclass(kw_only=True)
class SpanViews(Views):
    """Masked anchors, the means of their positives, and what restores the masked tokens.

    `view1` has the N·A anchors. `view2` has N·A vectors, one for each anchor, but the tokens of all
    N·A·P positives.
    """

    states: Tensor  # (N·A, T, H) of the masked anchors of this process
    labels: Tensor  # (N·A, T) of their masked tokens


@dataclass(frozen=True)
class Spans:
    """Spans of one document."""

    anchors: list[slice]  # A
    positives: list[slice]  # A·P: those of the first anchor first


class Method(Base):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.lm_head = encoder.lm_head(tied=True)

    def views(self, sentences: list[str]) -> SpanViews:
        """Return the masked anchors of the documents, and the means of their positives.

        Args:
            sentences: the documents, N.
        """
        anchor_rows = []
        positive_rows = []
        for document in self.token_ids(sentences):
            spans = draw_spans(len(document), self.p)
            anchor_rows += [self.row(document[span]) for span in spans.anchors]
            positive_rows += [self.row(document[span]) for span in spans.positives]

        anchors = self.padded(anchor_rows)
        ids, labels = mask_batch(self.encoder.tokenizer, anchors["input_ids"], self.p.probability)
        masked = {**anchors, "input_ids": ids}
        encoded = self.encoder(masked)  # all states, because the head restores tokens
        positives = self.encode(self.padded(positive_rows))
        mean = positives.pooled.unflatten(0, (-1, self.p.positives)).mean(1)  # (N·A, D)
        return SpanViews(
            view1=self.as_view(encoded, masked),
            view2=View(mean, mean, positives.batch),
            states=encoded.output.last_hidden_state,
            labels=labels,
        )

    def loss(self, views: SpanViews) -> Tensor:
        contrast = nt_xent(views.z1, views.z2, self.p.temperature, views.queue)
        return contrast + masked_lm_loss(self.lm_head, views.states, views.labels)

    def learning_rate_factor(self, step: int) -> float:
        """Return AllenNLP's slanted triangle, whose last step has the factor SLOWEST.

        AllenNLP counts a step before it sets the step's learning rate (trainer.py:581, 614 of
        1.1.0). The first step has number 1.

        Args:
            step: counted from 0.
        """
        warmup = self.p.warmup_steps
        number = step + 1
        if number < warmup:
            share = number / warmup
        else:
            share = 1 - (number - warmup) / max(1, self.p.steps - warmup)
        return SLOWEST + (1 - SLOWEST) * share

    def token_ids(self, documents: list[str]) -> list[list[int]]:
        """Return the token ids of whole documents, without special tokens.

        As in the code, a blank stands before a document, so that RoBERTa's first token is that of
        a word within a text (dataset_reader.py:172-175).
        """
        texts = [f" {' '.join(document.split())}" for document in documents]
        return self.encoder.tokenizer(texts, add_special_tokens=False)["input_ids"]

    def row(self, token_ids: list[int]) -> list[int]:
        """Put special tokens around the token ids of a span, and cut it at `max_length`."""
        # the special tokens around an empty text
        before, _, after = self.encoder.parts(self.encoder.ids([""])[0])
        return self.encoder.cut([*before, *token_ids, *after], self.p.max_length)

    def padded(self, rows: list[list[int]]) -> dict[str, Tensor]:
        return self.encoder.pad(self.encoder.in_template(rows, self.p.pooler))


# ---------------------------------------------------------------- spans


def draw_spans(length: int, p: Hyperparameters) -> Spans:
    """Draw the spans of a document (contrastive_utils.py:10-141, without sampling_strategy).

    Args:
        length: number of tokens of the document.
        p: numbers of anchors and positives, and lengths of spans.
    """
    longest = min(p.max_span, length // (2 * p.anchors))
    if longest == 0:  # fewer than 2A tokens
        whole = slice(0, length)
        return Spans([whole] * p.anchors, [whole] * (p.anchors * p.positives))
    shortest = min(p.min_span, longest)

    starts = list(range(0, length - longest + 1, longest))
    spans = Spans([], [])
    for still_to_draw in range(p.anchors, 0, -1):
        anchor = draw_anchor(starts, still_to_draw, shortest, longest)
        spans.anchors.append(anchor)
        for _ in range(p.positives):
            spans.positives.append(draw_positive(anchor, length, shortest, longest))
    return spans


def draw_anchor(starts: list[int], still_to_draw: int, shortest: int, longest: int) -> slice:
    """Draw an anchor, and remove its start and the neighbouring ones from `starts`.

    Args:
        starts: where blocks of `longest` tokens begin. The anchor lies in one of them.
        still_to_draw: number of anchors that the document still gets, with this one.
    """
    length = draw_length(4, 2, shortest, longest)
    if len(starts) // still_to_draw < still_to_draw:
        # few blocks are left: take an outer one, which removes two instead of three
        ends = (0, len(starts) - 1)
        index = ends[draw_integer(0, 2)]
    else:
        index = draw_integer(0, len(starts))
    block = starts[index]
    start = draw_integer(block, block + longest - length + 1)
    del starts[max(0, index - 1) : index + 2]
    return slice(start, start + length)


def draw_positive(anchor: slice, document: int, shortest: int, longest: int) -> slice:
    """Draw a span that touches or overlaps an anchor, within a document of `document` tokens."""
    length = draw_length(2, 4, shortest, longest)
    first = max(0, anchor.start - length)
    last = min(anchor.stop, document - length)
    start = draw_integer(first, last + 1)
    return slice(start, start + length)


def draw_length(a: float, b: float, shortest: int, longest: int) -> int:
    """Draw the length of a span from a beta distribution over `shortest` to `longest`."""
    return int(draw_beta(a, b) * (longest - shortest) + shortest)


def draw_beta(a: float, b: float) -> float:
    return float(Beta(a, b).sample())


def draw_integer(low: int, high: int) -> int:
    """Draw from `low` to `high` - 1."""
    return int(torch.randint(low, high, ()))
