"""InfoCSE's auxiliary network: masked language modelling that has to read the sentence vector.

Idea: the lower layers of the checkpoint, frozen, encode the masked sentence. The vector of the
unmasked sentence replaces their [CLS], and two more layers restore the masked tokens. What the
states of the lower layers lack must be in the vector, so the encoder learns to put it there.

    term = λ · cross-entropy over the masked tokens of head([h ; detach(M>0)])

Source: Eq. 5-7; official code: caskcsg/sentemb InfoCSE/infocse/models_cls_mlm.py:161-198, 260-269,
337-347.
Inputs: sentence vectors of both views (2N, D), before the head; the tokenised rows (2N, T), masked
independently.
Relations: like mlm, but another network restores the tokens. Like rtd, another network needs the
sentence vector; both can be combined (InfoCSE Table 12).
"""

import torch
from torch import Tensor

from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.method import Component as Base
from csebench.train.method import Method, Views, concat_views
from csebench.train.mlm import mask_batch, masked_lm_loss

DECLARATION = {
    "name": "auxiliary_mlm",
    "version": 2,
    "title": "Auxiliary masked language modelling",
    "kind": "component",
    "asks": ["tokens"],
    "paper": "Wu et al. 2022 (Findings of EMNLP), sec. 3",
    "citation": "see methods/infocse.py",
    "trains": "auxiliary layers, masked-LM head",
    "params": {
        "weight": (
            1e-5,
            "Table 8 and both scripts; sec. 4.2 says 0.005, which Table 8 contradicts (80.48)",
        ),
        "probability": (0.4, "Table 7, base script; 0.3 in the large script"),
        "layers": (2, "sec. 3.1; n_head_layers"),
        "detach": (True, "Eq. 7; False is Table 6"),
        "upper": (
            "pretrained",
            "sec. 3.1, or BERT's last layers (sec. 5.1); new: what both scripts get, unnoticed",
        ),
        "lower_dropout": (0.0, "base script: --mlm_eval; the large script leaves it on (0.1)"),
    },
    "search": {"weight": (1e-5, 1e-4, 1e-3)},
    "choices": {"upper": ["pretrained", "new"]},
    "below": [("probability", 1), ("lower_dropout", 1)],
    "deviations": [
        (
            "if condenser pre-trained the encoder, the upper layers and the masked-LM head are"
            " condenser's; otherwise the layers are copies of the encoder's last ones, and the head"
            " is that of its checkpoint"
        ),
        (
            "the lower layers are the first half of the checkpoint (6 of 12; the large script takes"
            " 6 of 24)"
        ),
        "without gradient detach, the lower layers are trained, too",
        (
            "with an averaging pooler the sentence vector is that average; the official code is"
            " right for [CLS] only"
        ),
        (
            "our choice, if it is combined with ct: the sentence vectors of both encoders go to the"
            " auxiliary network, and its lower layers are those of encoder 1"
        ),
    ],
}


class Component(Base):
    def __init__(self, method: Method, params: Hyperparameters):
        super().__init__(method, params)
        encoder = method.encoder
        self.tokenizer = encoder.tokenizer
        self.head = encoder.lm_head()
        self.lower = encoder.copy(encoder.num_layers // 2)
        if self.p.detach:
            self.lower.requires_grad_(False)
        self.lower.set_dropout(self.p.lower_dropout)
        self.upper = encoder.new_layers(self.p.layers)
        if self.p.upper == "pretrained":
            self.upper.layers.load_state_dict(encoder.stack[-self.p.layers :].state_dict())
            encoder.load_module("upper", self.upper)

    def term(self, method: Method, views: Views) -> Tensor:
        batch = concat_views(views, self.tokenizer.pad_token_id)
        ids, labels = mask_batch(self.tokenizer, batch["input_ids"], self.p.probability)
        with torch.set_grad_enabled(not self.p.detach):
            states = self.lower({**batch, "input_ids": ids}, "avg").output.last_hidden_state
        # the sentence vector replaces [CLS]
        vectors = torch.cat([view.pooled for view in views]).to(states.dtype)
        states = torch.cat([vectors.unsqueeze(1), states[:, 1:]], dim=1)
        restored = self.upper(states, batch["attention_mask"])
        return self.p.weight * masked_lm_loss(self.head, restored, labels)
