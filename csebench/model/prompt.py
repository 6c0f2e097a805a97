"""Encoding with prompts, by several encoders, or with a feature layer, for sentence-transformers.

sentence-transformers has no module that reads the state at [MASK] of a template, attends to a
prefix, makes features without reading padding, or sums the vectors of several encoders. If an
exported model needs one of these, its `modules.json` names the class `Prompt`
(csebench/model/export.py).
"""

import json
from collections.abc import Sequence
from pathlib import Path

from sentence_transformers.sentence_transformer.modules import InputModule
from torch import nn

from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import sum_of_vectors
from csebench.plan.schema.declarations import EncoderRef


class Prompt(InputModule):
    """A module that encodes sentences, in a template or behind a prefix, and pools them.

    Args:
        added: further encoders, whose vectors are added.
    """

    def __init__(self, encoder: Encoder, pooler: str, added: Sequence[Encoder] = ()):
        super().__init__()
        self.encoder = encoder
        self.added = nn.ModuleList(added)
        self.pooler = pooler
        self.tokenizer = encoder.tokenizer

    def preprocess(self, inputs, prompt=None, **_):
        instruction = prompt or ""
        texts = [instruction + text for text in inputs]
        return self.encoder.tokenize(texts, pooler=self.pooler)

    def forward(self, features, **_):
        batch = {key: features[key] for key in ("input_ids", "attention_mask")}
        vectors = sum_of_vectors(self.encoder, self.added, batch, self.pooler)
        return {**features, "sentence_embedding": vectors}

    def get_embedding_dimension(self) -> int:
        return self.encoder.vector_size

    def save(self, output_path, *_, **__):
        raise NotImplementedError("to save this model, copy the folder that it was loaded from")

    @classmethod
    def load(cls, path: str):  # with one parameter, the library passes a folder, and fetches it
        folder = Path(path)
        pooler = json.loads((folder / "csebench.json").read_text())["pooler"]
        ref = EncoderRef(name=str(folder), revision="local")
        encoder, *added = Encoder.load_all(ref, with_pooler=pooler == "cls")
        return cls(encoder, pooler, added)
