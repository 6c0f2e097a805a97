"""Encoding with prompts for sentence-transformers.

The modules of sentence-transformers can neither read the state at [MASK] of a template, nor attend
to the prefix of an encoder. So the file `modules.json` of an exported folder with one of them names
the class `Prompt` (csebench/model/export.py).
"""

import json
from pathlib import Path

from sentence_transformers.sentence_transformer.modules import InputModule

from csebench.model.encoder import Encoder
from csebench.model.pooling import pool
from csebench.plan.schema.declarations import EncoderRef


class Prompt(InputModule):
    """A module that encodes sentences, in a template or behind a prefix, and pools them."""

    def __init__(self, encoder: Encoder, pooler: str):
        super().__init__()
        self.encoder = encoder
        self.pooler = pooler
        self.tokenizer = encoder.tokenizer

    def preprocess(self, inputs, prompt=None, **_):
        prefix = prompt or ""
        texts = [prefix + text for text in inputs]
        return self.encoder.tokenize(texts, pooler=self.pooler)

    def forward(self, features, **_):
        batch = {key: features[key] for key in ("input_ids", "attention_mask")}
        encoded = self.encoder(batch, self.pooler)
        return {**features, "sentence_embedding": pool(self.pooler, encoded)}

    def get_embedding_dimension(self) -> int:
        return self.encoder.size

    def save(self, output_path, *_, **__):
        raise NotImplementedError("to save this model, copy the folder that it was loaded from")

    @classmethod
    def load(cls, model_name_or_path, **_):
        folder = Path(model_name_or_path)
        pooler = json.loads((folder / "csebench.json").read_text())["pooler"]
        ref = EncoderRef(name=str(folder), revision="local")
        return cls(Encoder.load(ref, with_pooler=pooler == "cls"), pooler)
