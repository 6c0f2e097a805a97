"""Prompt pooling for sentence-transformers, whose own pooling cannot take the state at [MASK]."""

import json
from pathlib import Path

from sentence_transformers.sentence_transformer.modules import InputModule

from csebench.model.encoder import Encoder
from csebench.model.pooling import pool
from csebench.plan.schema.declarations import EncoderRef


class Prompt(InputModule):
    """Tokenises in the template, encodes and pools; `modules.json` of an exported folder names
    this class."""

    def __init__(self, encoder: Encoder, pooler: str):
        super().__init__()
        self.encoder, self.pooler, self.tokenizer = encoder, pooler, encoder.tokenizer

    def preprocess(self, inputs, prompt=None, **_):
        return self.encoder.tokenize([(prompt or "") + text for text in inputs], pooler=self.pooler)

    def forward(self, features, **_):
        batch = {k: features[k] for k in ("input_ids", "attention_mask")}
        return {
            **features,
            "sentence_embedding": pool(self.pooler, self.encoder(batch, self.pooler)),
        }

    def get_embedding_dimension(self) -> int:
        return self.encoder.size

    def save(self, output_path, *_, **__):
        raise NotImplementedError("copy the folder it was loaded from")

    @classmethod
    def load(cls, model_name_or_path, **_):
        folder = Path(model_name_or_path)
        pooler = json.loads((folder / "csebench.json").read_text())["pooler"]
        return cls(Encoder.load(EncoderRef(name=str(folder), revision="local")), pooler)
