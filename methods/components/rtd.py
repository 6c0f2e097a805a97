"""Conditional replaced-token detection (RTD), the term of DiffCSE.

Idea: a frozen generator fills masked tokens of the sentence. A discriminator sees the result and
the sentence vector of the original, and decides for every token whether it was replaced.

    term = λ · cross-entropy over all positions of replaced / not replaced

Source: Eq. 2; official code: voidism/DiffCSE diffcse/models.py:118-274, 329-380, bundled
modeling_bert.py:960-961.
Inputs: vectors of both views (2N, D), after the projector; the tokenised rows (2N, T), masked
independently.
Relations: like auxiliary_mlm, another network whose task needs the sentence vector.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from csebench.base.hub import EncoderRef
from csebench.model.chunks import in_chunks
from csebench.model.encoder import Encoder, head_of
from csebench.model.layers import additive, to_device
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import upcast_fp32
from csebench.train.method import Component as Base
from csebench.train.method import Method, Views, concat_views
from csebench.train.mlm import mask_batch
from csebench.train.teachers import load_with_vocabulary

DECLARATION = {
    "name": "rtd",
    "version": 2,
    "title": "Replaced-token detection",
    "kind": "component",
    "asks": ["tokens"],
    "paper": "Chuang et al. 2022 (NAACL), sec. 3.2",
    "citation": "see methods/diffcse.py",
    "needs": "a generator",
    "trains": "discriminator",
    "params": {
        "weight": (0.005, "run_diffcse.sh: lambda_weight, for STS; 0.05 for the transfer tasks"),
        "probability": (0.3, "run_diffcse.sh: masking_ratio"),
        "generator": (
            "distilbert/distilbert-base-uncased@12040accade4e8a0f71eabdb258fecc2e7e948be",
            "run_diffcse.sh; `self`: the run's own encoder as it was before training",
        ),
    },
    "search": {"weight": (0.005, 0.02, 0.05)},
    "below": [("probability", 1)],
    "deviations": [
        (
            "the generator takes the most likely token, as the code does; the paper's Eq. 2 says"
            " that it samples"
        ),
        (
            "as in the code, every position takes the generator's token, not the masked ones alone;"
            " padding counts as not replaced; and the generator's dropout is on"
        ),
    ],
}
# These get the mask of zeros and ones: DeBERTa reads the mask that `additive` makes inverted, and
# ModernBERT would lose its local layers. Others get that mask, which spares a wait for the GPU.
READ_PLAIN_MASKS = ("deberta", "deberta-v2", "modernbert")


class Component(Base):
    def __init__(self, method: Method, params: Hyperparameters):
        super().__init__(method, params)
        encoder = method.encoder
        encoder.check_embedding_size()
        self.tokenizer = encoder.tokenizer
        self.generator = self.masked_lm(encoder).requires_grad_(False)
        self.discriminator = encoder.copy()
        self.classify = nn.Linear(encoder.size, 2)

    def masked_lm(self, encoder: Encoder) -> PreTrainedModel:
        if self.p.generator == "self":
            return encoder.masked_lm()
        ref = EncoderRef.parse(self.p.generator)
        return load_with_vocabulary(ref, encoder, "rtd.generator").masked_lm()

    def most_likely(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Choose the generator's most likely tokens, (N, T).

        Logits are in fp32, also under autocast, because in bf16 many of them would be equal.
        """
        if self.generator.config.model_type not in READ_PLAIN_MASKS:
            mask = additive(mask)
        output = self.generator.base_model(input_ids=ids, attention_mask=mask)
        states = output.last_hidden_state
        with torch.autocast(states.device.type, enabled=False):
            return head_of(self.generator)(upcast_fp32(states)).argmax(-1)

    @torch.no_grad()
    def edit(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Edit rows by masking tokens and taking the generator's tokens, except at [CLS].

        Returns:
            (2N, T) ids, and (2N, T) 1 where an id differs from the original, else 0.
        """
        device = self.classify.weight.device
        masked, _ = mask_batch(self.tokenizer, batch["input_ids"], self.p.probability)
        ids = to_device(batch["input_ids"], device)
        mask = to_device(batch["attention_mask"], device)
        masked = to_device(masked, device)
        filled = in_chunks(self.most_likely, self.discriminator.chunk_size, masked, mask)
        filled[:, 0] = ids[:, 0]  # [CLS] is not replaced
        real = mask.bool()  # (2N, T)
        replaced = (filled != ids) & real
        return filled.masked_fill(~real, 0), replaced.long()

    def term(self, method: Method, views: Views) -> Tensor:
        batch = concat_views(views, self.tokenizer.pad_token_id)
        edited, replaced = self.edit(batch)
        vectors = torch.cat([views.z1, views.z2])
        encoded = self.discriminator({**batch, "input_ids": edited}, "avg", vectors)
        logits = upcast_fp32(self.classify(encoded.output.last_hidden_state))
        return self.p.weight * cross_entropy(logits.flatten(0, 1), replaced.flatten())
