"""Models that embed sentences: an encoder with the pooler of its test, or a sentence-transformers model as it is."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from accelerate.utils import find_executable_batch_size
from safetensors.numpy import load_file, save_file

from csebench.base.errors import BadInput
from csebench.base.files import read_text
from csebench.base.hub import fetch_model
from csebench.base.models import check_foreign, check_vocabulary, unreadable
from csebench.base.processes import device_type
from csebench.base.terminal import bar, on_terminal
from csebench.model.embedder import Embedder
from csebench.model.encoder import Encoder
from csebench.model.layers import to_device
from csebench.model.pooling import pool
from csebench.model.weights import check_weights
from csebench.plan.declarations import EncoderRef, Evaluation

BATCH_TOKENS = 128 * 512  # of a batch: attention scores of BERT-base take 1.6 GB in fp32 at length 512


def check_length(wanted: int, max_seq_length: int, name: str, setting: str = "--max-length") -> None:
    """Raises BadInput where the model cannot read so many tokens: a run id or protocol would name a wrong length."""
    if wanted > max_seq_length:
        raise BadInput(f"{setting} {wanted}: {name} reads {max_seq_length} tokens at most.")


def split(lengths: list[int], batch_size: int) -> list[slice]:
    """Batches of rows sorted by length: of `batch_size` rows, or fewer, as many as have BATCH_TOKENS with padding."""
    ends, start = [0], 0
    for row, length in enumerate(lengths):
        if row - start == batch_size or (row > start and (row + 1 - start) * length > BATCH_TOKENS):
            ends.append(start := row)
    return [slice(*pair) for pair in pairwise([*ends, len(lengths)])]


class SentenceEncoder(Embedder):
    """An encoder with the pooler of its test; embeds in batches of similar length."""

    def __init__(self, encoder: Encoder, pooler: str, transform=None, evaluation: Evaluation = Evaluation()):
        self.encoder, self.pooler, self.transform, self.evaluation = encoder, pooler, transform, evaluation
        check_length(evaluation.max_length or 0, encoder.max_seq_length, "this encoder")

    def vectors(self, sentences: list[str]) -> np.ndarray:
        return self.prepare(sentences)()

    def prepare(self, sentences: list[str]) -> Callable[[], np.ndarray]:
        ids = self.token_ids(sentences)

        def embed() -> np.ndarray:
            vectors = self.on_device(ids).cpu().numpy()
            return vectors if self.transform is None else self.transform(vectors)

        return embed

    def token_ids(self, sentences: list[str]) -> list[list[int]]:
        return self.encoder.in_template(self.encoder.ids(sentences, self.evaluation.max_length), self.pooler)

    @torch.inference_mode()
    def on_device(self, ids: list[list[int]]) -> torch.Tensor:
        """(sentences, D) float32 where the encoder is, before a fitted map; the host does not wait for them."""
        encoder, training, settings = self.encoder, self.encoder.training, self.evaluation
        encoder.eval()
        order = np.argsort([len(i) for i in ids], kind="stable")
        batches = split([len(ids[i]) for i in order], settings.batch_size)
        with torch.autocast(encoder.device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            parts = [self.pooled([ids[i] for i in order[batch]]) for batch in bar(batches, "embedding", "batch")]
        encoder.train(training)
        return torch.cat(parts)[to_device(torch.from_numpy(np.argsort(order)), encoder.device)]

    def pooled(self, rows: list[list[int]]) -> torch.Tensor:
        """(rows, D) float32 of rows of token ids; by halves where the memory of the device is too small."""
        try:
            return pool(self.pooler, self.encoder(self.encoder.pad(rows), self.pooler)).float()
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                raise
        torch.cuda.empty_cache()
        return torch.cat([self.pooled(rows[: len(rows) // 2]), self.pooled(rows[len(rows) // 2 :])])


class SentenceTransformerEmbedder(Embedder):
    """A sentence-transformers folder or hub id with all its modules, as its own library encodes."""

    def __init__(self, ref: EncoderRef, evaluation: Evaluation):
        self.evaluation = evaluation
        self.model = open_whole(fetch_model(ref, "model"))
        if evaluation.max_length is not None:
            check_length(evaluation.max_length, self.model.tokenizer.model_max_length, ref.name)
            self.model.max_seq_length = evaluation.max_length

    def vectors(self, sentences):
        settings, shown = self.evaluation, on_terminal()
        encode = find_executable_batch_size(  # fewer rows where the memory of the device is too small
            lambda rows: self.model.encode(sentences, batch_size=rows, show_progress_bar=shown), settings.batch_size
        )
        with torch.autocast(self.model.device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            return encode()


def open_whole(folder: Path):
    """A sentence-transformers folder, whose library would not notice a missing layer or tokenizer. Raises BadInput
    where it cannot be read, asks for code, or its transformer is not whole."""
    from sentence_transformers import SentenceTransformer

    what = f"model {folder}"
    check_foreign(folder, ("**/*config.json", "**/modules.json"))
    try:
        model = SentenceTransformer(str(folder), device=device_type(), trust_remote_code=False)
        model.encode(["a"], show_progress_bar=False)  # modules that do not fit fail here
        first = folder / json.loads(read_text(folder / "modules.json"))[0]["path"]
        transformer = getattr(model[0], "auto_model", None)
        if transformer is None:  # word vectors
            return model
        told = {"output_loading_info": True, "ignore_mismatched_sizes": True}
        loading = type(transformer).from_pretrained(first, trust_remote_code=False, **told)[1]
    except Exception as e:  # of its library or those below it, by what is damaged
        raise unreadable(what, e) from None
    check_vocabulary(model.tokenizer, transformer.config, what)
    check_weights(transformer, loading, what, may_be_new=("pooler",))
    return model


class Affine:
    """A fitted map after pooling: (x - shift) @ matrix."""

    def __init__(self, shift: np.ndarray, matrix: np.ndarray):
        self.shift, self.matrix = shift, matrix

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return (vectors - self.shift) @ self.matrix

    def save(self, folder: Path) -> None:
        save_file({"shift": self.shift, "matrix": np.ascontiguousarray(self.matrix)}, folder / "transform.safetensors")

    @classmethod
    def load(cls, folder: Path) -> "Affine | None":
        path = folder / "transform.safetensors"
        return cls(**load_file(path)) if path.exists() else None
