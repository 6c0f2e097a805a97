"""Condenser: pre-training of an encoder together with a head that reads its [CLS]. InfoCSE starts
from it.

Idea: two more layers restore masked tokens from the states of a middle layer and the [CLS] of the
last layer, so that the last layers have to put into [CLS] what the sentence says.

    loss = MLM(upper layers([last [CLS] ; middle states])) + MLM(last states)

Source: InfoCSE's Eq. 5-6; official code: luyug/Condenser modeling.py:55-93, data.py:68-121.
Inputs: a batch of N sentences, masked (N, T); one view.
Relations: it is no sentence encoder but a stage before infocse, whose components/auxiliary_mlm
takes the upper layers and the masked-LM head from it. All infocse runs of a scale share one run of
condenser.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from csebench.model.encoder import Encoder
from csebench.model.pooling import Encoded
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.method import Method as Base
from csebench.train.mlm import mask_batch, masked_lm_loss

DECLARATION = {
    "name": "condenser",
    "version": 2,
    "title": "Condenser pre-training",
    "kind": "token_level",
    "paper": (
        "Gao & Callan 2021 (EMNLP), sec. 3; Wu et al. 2022 (Findings of EMNLP), sec. 3.1 and 4.2"
    ),
    "citation": (
        """@inproceedings{gao2021condenser, title={{Condenser}: a Pre-training Architecture for Dense
Retrieval}, author={Gao, Luyu and Callan, Jamie}, booktitle={EMNLP}, year={2021}}"""
    ),
    "refuses": {
        "queue": "its loss restores tokens and compares no sentences",
        "attention": "it has one view of a sentence, and attention is compared between two",
        "tokens": "it has one, masked, view of a sentence, and its own loss over tokens",
    },
    "trains": "encoder, upper layers, masked-LM head",
    "colours": {"": "#6F8794"},
    "params": {
        "steps": (7813, "InfoCSE sec. 4.2: 8 epochs at batch 1024, here of 10^6 sentences"),
        "batch_size": (1024, "InfoCSE sec. 4.2"),
        "learning_rate": (1e-4, "InfoCSE sec. 4.2"),
        "warmup_steps": (781, "Condenser README: 10 % of the steps"),
        "weight_decay": (0.01, "Condenser README"),
        "max_length": (128, "Condenser README"),
        "evaluate_every": (7813, "ours: the dev curve decides nothing, the last step is kept"),
        "pooler": ("cls_before_pooler", "sec. 3"),
        "probability": (0.15, "arguments.py:66"),
        "layers": (2, "InfoCSE sec. 3.1"),
    },
    "below": [("probability", 1)],
    "deviations": [
        (
            "trained on the scale's corpus, a sentence a row; the papers take BookCorpus and"
            " Wikipedia in blocks of 128"
        ),
        "tokens are masked one by one, where the official code masks whole words",
        "the middle layer is that of half the depth (6 of 12)",
    ],
}


@dataclass
class Masked:
    """The one view of this method."""

    encoded: Encoded  # of the masked batch
    labels: torch.Tensor  # (N, T) of its masked tokens

    def gathered(self) -> Self:
        """Return the view as it is: a loss over tokens compares no sentences."""
        return self


class Method(Base):
    keeps_last = True

    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.upper = encoder.new_layers(self.p.layers)
        self.lm_head = encoder.lm_head(tied=True)

    def views(self, sentences: list[str]) -> Masked:
        batch = self.tokenize(sentences)
        ids, labels = mask_batch(self.encoder.tokenizer, batch["input_ids"], self.p.probability)
        return Masked(self.encoder({**batch, "input_ids": ids}), labels)

    def loss(self, masked: Masked) -> Tensor:
        states = masked.encoded.output.hidden_states
        # the upper layers read [CLS] of the last layer, and the other tokens of the middle layer
        middle = states[self.encoder.num_layers // 2]
        last = states[-1]
        upper_input = torch.cat([last[:, :1], middle[:, 1:]], dim=1)  # (N, T, D)
        upper_states = self.upper(upper_input, masked.encoded.mask)
        upper_loss = masked_lm_loss(self.lm_head, upper_states, masked.labels)
        last_loss = masked_lm_loss(self.lm_head, last, masked.labels)
        return upper_loss + last_loss

    def exported(self) -> dict[str, nn.Module]:
        return {"upper": self.upper, "lm_head": self.lm_head}
