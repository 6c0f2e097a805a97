"""Masked language modelling as a second loss: "w/ MLM" of SimCSE and InforMin-CL.

Idea: the encoder should not forget its tokens while its sentence vectors are trained. So the
checkpoint's own masked-LM head restores masked copies of both views.

    term = β · cross-entropy over the masked tokens of the 2N rows

Source: SimCSE's Table D.2; official code: princeton-nlp/SimCSE simcse/models.py:140-152, 215-219,
train.py:498-530; Bin199/InforMin-CL informin-cl/models.py, train.py:507-530.
Inputs: the tokenised rows of both views, (2N, T), masked independently.
Relations: an auxiliary task for any two-view method, like auxiliary_mlm (InfoCSE) and rtd
(DiffCSE). Here the encoder itself restores the tokens, from their own states.
"""

from torch import Tensor

from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.method import Component as Base
from csebench.train.method import Method, Views, concat_views
from csebench.train.mlm import mask_batch, masked_lm_loss

DECLARATION = {
    "name": "mlm",
    "version": 1,
    "title": "Masked language modelling",
    "kind": "component",
    "asks": ["tokens"],
    "paper": "Gao et al. 2021 (EMNLP), App. A and D; Chen et al. 2022 (COLING), sec. 4.1 and 4.3",
    "citation": "see methods/simcse.py and methods/informin_cl.py",
    "trains": "masked-LM head",
    "params": {
        "weight": (0.1, "train.py: mlm_weight; InforMin-CL Table 6: β"),
        "probability": (0.15, "train.py: mlm_probability"),
        "form": (
            "clean",
            "clean: masks on a copy; in_place: the contrastive views are the masked rows, too",
        ),
    },
    "search": {"weight": (0.03, 0.1, 0.3)},
    "choices": {"form": ["clean", "in_place"]},
    "below": [("probability", 1)],
    "deviations": [
        (
            "form in_place is what SimCSE's public code did before commit a0867f4 (2021-11-23) and"
            " InforMin-CL's does: mask_tokens wrote into the contrastive input; whether the printed"
            " numbers have it is not known"
        ),
        (
            "padding is never masked; the slow tokenizer of transformers 4.2.1, which the official"
            " codes use, lets it be"
        ),
        "the masked rows are a second pass through the encoder in both forms, as in both codes",
        "with ct, encoder 1 restores the tokens of both views",
    ],
}


class Component(Base):
    def __init__(self, method: Method, params: Hyperparameters):
        super().__init__(method, params)
        self.tokenizer = method.encoder.tokenizer
        self.head = method.encoder.lm_head()
        if self.p.form == "in_place":
            method.edits.append(self.mask)

    def mask(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        ids, labels = mask_batch(self.tokenizer, batch["input_ids"], self.p.probability)
        return {**batch, "input_ids": ids, "labels": labels}

    def term(self, method: Method, views: Views) -> Tensor:
        batch = concat_views(views, self.tokenizer.pad_token_id)
        if "labels" not in batch:  # with form in_place the views are masked already
            batch = self.mask(batch)
        states = method.encoder(batch, "avg").output.last_hidden_state
        return self.p.weight * masked_lm_loss(self.head, states, batch["labels"])
