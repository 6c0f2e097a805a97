"""Information compensation (ICM), a term of MSSE: a decoder has to restore the sentence from its
vector.

Idea: contrastive learning compresses. What a decoder needs to write the sentence again should stay
in the vector.

    term = γ · cross-entropy of the tokens of a decoder that reads the vector by cross-attention

Source: Eq. 9; official code: Hekang001/MSSE model.py:138-139, 279-296, args.py:18-26.
Inputs: vectors of the first view (N, D), after the head; the tokens of the first or second view.
Relations: like auxiliary_mlm and rtd, another network whose task needs the sentence vector. The
idea is TSDAE's.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from csebench.base.errors import BadInput
from csebench.model.chunks import in_chunks
from csebench.model.layers import to_device, use_cheap_dropout
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.method import Component as Base
from csebench.train.method import Method, Views
from csebench.train.mlm import masked_lm_loss

DECLARATION = {
    "name": "compensation",
    "version": 2,
    "title": "Information compensation",
    "kind": "component",
    "asks": ["tokens"],
    "paper": "MSSE, sec. 3.3",
    "citation": "see methods/msse.py",
    "trains": "decoder, masked-LM head",
    "params": {
        "weight": (0.2, "App. A: γ; 1 in model.py:309-316"),
        "layers": (1, "ours: the paper says `a decoder`; 16 in args.py"),
        "heads": (0, "ours: as many as the encoder has; 1 in args.py"),
        "causal": (True, "ours: q(s|h) written token by token; no mask in the code"),
        "target": ("original", "sec. 3.3: s; positive: the code restores s+"),
        "input_dropout": (0.0, "ours; 0.825 in args.py, on the embeddings that the decoder reads"),
    },
    "search": {"weight": (0.1, 0.2, 1.0)},
    "choices": {"target": ["original", "positive"]},
    "below": [("input_dropout", 1)],
    "deviations": [
        (
            "a token's loss is a mean over tokens; the paper's Eq. 9 is a sum over tokens and"
            " sentences"
        ),
        (
            "a causal decoder reads the embeddings of the tokens before; the code's reads those of"
            " all tokens, which it has to restore from what dropout leaves of them and from the"
            " vector"
        ),
        (
            "embeddings are read without gradient, and logits come from the checkpoint's masked-LM"
            " head, whose last layer stays tied to the word embeddings, as in the code"
        ),
        (
            "the decoder's layers are as wide as the encoder's (3072 for BERT base); the code's are"
            " 2048 wide"
        ),
        "padding and [MASK], that of a prompt, are no targets",
    ],
}


class Component(Base):
    def __init__(self, method: Method, params: Hyperparameters):
        super().__init__(method, params)
        encoder = method.encoder
        encoder.check_embedding_size()
        self.tokenizer = encoder.tokenizer
        self.head = encoder.lm_head(tied=True)
        heads = self.p.heads or encoder.model.config.num_attention_heads
        layer = nn.TransformerDecoderLayer(
            encoder.size, heads, encoder.feed_forward_size, 0.1, batch_first=True
        )
        self.decoder = nn.TransformerDecoder(layer, self.p.layers)
        use_cheap_dropout(self.decoder)

    def term(self, method: Method, views: Views) -> Tensor:
        target = views.view1
        if self.p.target == "positive":
            target = views.view2
        ids = target.batch["input_ids"]
        if len(ids) != len(views.z1):
            raise BadInput(
                "compensation.target: positive: the second view has several rows for a sentence;"
                " use original."
            )
        padding = target.batch["attention_mask"] == 0
        with torch.no_grad():
            embedded = method.encoder.model.embeddings(to_device(ids, views.z1.device))
        embedded = dropout(embedded, self.p.input_dropout, self.training)
        # -100 is no target: padding, and [MASK] of a prompt
        targets = ids.masked_fill(padding | (ids == self.tokenizer.mask_token_id), -100)
        look_ahead = None
        if self.p.causal:  # the decoder restores each token from the tokens before it
            embedded = embedded[:, :-1]
            padding = padding[:, :-1]
            targets = targets[:, 1:]
            length = embedded.shape[1]
            every = torch.ones(length, length, dtype=torch.bool, device=embedded.device)
            look_ahead = every.triu(1)
        padding = to_device(padding, embedded.device)
        memory = views.z1.unsqueeze(1).to(embedded.dtype)

        def decode(embedded, memory, padding):
            masks = {
                "tgt_mask": look_ahead,
                "tgt_is_causal": self.p.causal,
                "tgt_key_padding_mask": padding,
            }
            return self.decoder(embedded, memory, **masks)

        states = in_chunks(decode, method.encoder.chunk_size, embedded, memory, padding)
        return self.p.weight * masked_lm_loss(self.head, states, targets)
