"""Ranks of a corpus for sentence-transformers.

No module of sentence-transformers ranks a corpus. So the file `modules.json` of an exported folder
names the class `Ranks` (csebench/model/export.py).
"""

from pathlib import Path

import torch
from safetensors.numpy import load_file
from sentence_transformers.sentence_transformer.modules import Module

from csebench.model.corpus_ranks import CorpusRanks
from csebench.model.sentence_encoder import MAP_FILE


class Ranks(Module):
    """A module that adds to a vector how it ranks the corpus."""

    def __init__(self, ranks: CorpusRanks):
        super().__init__()
        self.ranks = ranks

    def forward(self, features, **_):
        vectors = features["sentence_embedding"]
        mapped = torch.from_numpy(self.ranks(vectors.float().cpu().numpy()))
        return {**features, "sentence_embedding": mapped.to(vectors.device)}

    def get_embedding_dimension(self) -> int:
        corpus_size, size = self.ranks.corpus.shape
        return size + corpus_size

    def save(self, output_path, *_, **__):
        raise NotImplementedError("to save this model, copy the folder that it was loaded from")

    @classmethod
    def load(cls, path: str):  # with one parameter, the library passes a folder, and fetches it
        return cls(CorpusRanks(**load_file(Path(path) / MAP_FILE)))
