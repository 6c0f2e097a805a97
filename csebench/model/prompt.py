"""Encoding with prompts for sentence-transformers.

sentence-transformers has no module that reads the state at [MASK] of a template, or attends to a
prefix. If an exported model needs either, its `modules.json` names the class `Prompt`
(csebench/model/export.py).
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
        instruction = prompt or ""
        texts = [instruction + text for text in inputs]
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
    def load(cls, path: str):  # with one parameter, the library passes a folder, and fetches it
        folder = Path(path)
        pooler = json.loads((folder / "csebench.json").read_text())["pooler"]
        ref = EncoderRef(name=str(folder), revision="local")
        return cls(Encoder.load(ref, with_pooler=pooler == "cls"), pooler)
