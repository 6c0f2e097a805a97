"""Models that embed sentences: an encoder with the pooler of its test, or a
sentence-transformers model as it is."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import find_executable_batch_size
from safetensors.numpy import load_file, save_file

from csebench.base.errors import BadInput, first_line
from csebench.base.files import read_json, read_text
from csebench.base.gpus import device_type
from csebench.base.hub import fetch_model
from csebench.base.models import check_foreign, check_vocabulary, unreadable_model
from csebench.base.terminal import bar, on_terminal
from csebench.model.embedder import Embedder
from csebench.model.encoder import TRIAL, Encoder, check_full_precision, position_limit
from csebench.model.layers import to_device
from csebench.model.pooling import pool
from csebench.model.weights import check_weights
from csebench.plan.schema.declarations import EncoderRef, Evaluation

# the kind of sentence-transformers that embeds a sentence in one dense vector
DENSE = "SentenceTransformer"
GIVES = {
    "SparseEncoder": "a sparse vector over its vocabulary",
    "CrossEncoder": "a score of a pair",
    "MultiVectorEncoder": "a vector of every token",
    "ColBERT": "a vector of every token",
}
LENGTHS_BY_ROLE = ("query_length", "document_length")  # tokens that a transformer reads of a text
LOOSE = 1e-3  # of the largest entry: more than rounding in any batch
# of a batch: attention scores of BERT-base take 1.6 GB in fp32 at length 512
BATCH_TOKENS = 128 * 512


def check_length(
    wanted: int, max_seq_length: int, name: str, setting: str = "--max-length"
) -> None:
    """Raises BadInput where the model cannot read so many tokens: a run id or protocol would
    name a wrong length."""
    if wanted > max_seq_length:
        raise BadInput(f"{setting} {wanted}: {name} reads {max_seq_length} tokens at most.")


def split(lengths: list[int], batch_size: int, padded: bool = True) -> list[slice]:
    """Batches of rows sorted by length: of `batch_size` rows, or fewer, as many as have
    BATCH_TOKENS with padding.

    Args:
        padded: rows of other lengths may share a batch, because padding does not change their
        vectors.
    """
    ends, start = [0], 0
    for row, length in enumerate(lengths):
        if row == start:
            continue
        is_full = row - start == batch_size or (row + 1 - start) * length > BATCH_TOKENS
        is_longer = length != lengths[start] and not padded
        if is_full or is_longer:
            start = row
            ends.append(start)
    return [slice(*pair) for pair in pairwise([*ends, len(lengths)])]


class SentenceEncoder(Embedder):
    """An encoder with the pooler of its test; embeds in batches of similar length."""

    def __init__(
        self, encoder: Encoder, pooler: str, transform=None, evaluation: Evaluation = Evaluation()
    ):
        self.encoder, self.pooler, self.transform, self.evaluation = (
            encoder,
            pooler,
            transform,
            evaluation,
        )
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
        return self.encoder.in_template(
            self.encoder.ids(sentences, self.evaluation.max_length), self.pooler
        )

    @torch.inference_mode()
    def on_device(self, ids: list[list[int]]) -> torch.Tensor:
        """(sentences, D) float32 where the encoder is, before a fitted map; the host does not
        wait for them."""
        encoder, training, settings = self.encoder, self.encoder.training, self.evaluation
        encoder.eval()
        order = np.argsort([len(i) for i in ids], kind="stable")
        batches = split(
            [len(ids[i]) for i in order], settings.batch_size, encoder.traits.hides_padding
        )
        with torch.autocast(
            encoder.device.type, torch.bfloat16, enabled=settings.precision == "bf16"
        ):
            parts = [
                self.pooled([ids[i] for i in order[batch]])
                for batch in bar(batches, "embedding", "batch")
            ]
        encoder.train(training)
        return torch.cat(parts)[to_device(torch.from_numpy(np.argsort(order)), encoder.device)]

    def pooled(self, rows: list[list[int]]) -> torch.Tensor:
        """(rows, D) float32 of rows of token ids; by halves where the memory of the device is
        too small."""
        try:
            return pool(self.pooler, self.encoder(self.encoder.pad(rows), self.pooler)).float()
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                raise
        torch.cuda.empty_cache()
        return torch.cat([self.pooled(rows[: len(rows) // 2]), self.pooled(rows[len(rows) // 2 :])])


class SentenceTransformerEmbedder(Embedder):
    """A sentence-transformers folder or hub id with all its modules, as its own library encodes.

    Sentences go through its `encode`, which puts the default prompt before them, queries and
    documents of a search through `encode_query` and `encode_document`.
    """

    def __init__(self, ref: EncoderRef, evaluation: Evaluation):
        self.evaluation = evaluation
        self.model = open_whole(fetch_model(ref, "model"))
        self.prompts = prompts_of(self.model)
        self.has_roles = bool(self.prompts) or routes_by_role(self.model)
        if evaluation.max_length is not None:
            shorten_inputs(self.model, evaluation.max_length, ref.name)

    def vectors(self, sentences: list[str]) -> np.ndarray:
        return self.encoded(self.model.encode, sentences)

    def query_vectors(self, queries: list[str]) -> np.ndarray:
        return self.encoded(self.model.encode_query, queries)

    def document_vectors(self, documents: list[str]) -> np.ndarray:
        return self.encoded(self.model.encode_document, documents)

    def encoded(self, encode: Callable[..., np.ndarray], texts: list[str]) -> np.ndarray:
        """(texts, D) float32, in smaller batches where the memory of the device is too small.

        Raises:
            BadInput: its Router has no route for texts of this role.
        """
        settings, shown = self.evaluation, on_terminal()
        run = find_executable_batch_size(
            lambda rows: encode(texts, batch_size=rows, show_progress_bar=shown),
            settings.batch_size,
        )
        with torch.autocast(
            self.model.device.type, torch.bfloat16, enabled=settings.precision == "bf16"
        ):
            try:
                vectors = run()
            except ValueError as e:
                if "route" in str(e):
                    raise BadInput(
                        f"model: its Router cannot embed these texts: {first_line(e)}."
                    ) from None
                raise
        return vectors.astype(np.float32, copy=False)


def prompts_of(model: Any) -> dict[str, str]:
    """The prompts of a sentence-transformers model by role, as its library chooses them; empty
    without any."""
    by_role = {
        "sentence": model.prompts.get(model.default_prompt_name, ""),
        "query": model.prompts.get("query", ""),
        "document": first_of(model.prompts, ("document", "passage", "corpus")),
    }
    return by_role if any(by_role.values()) else {}


def first_of(prompts: dict[str, str], names: tuple[str, ...]) -> str:
    for name in names:
        if name in prompts:
            return prompts[name]
    return ""


def routes_by_role(model: Any) -> bool:
    """Whether other modules, or other lengths, are for queries than for documents."""
    from sentence_transformers.base.modules import Router

    for module in model.modules():
        if isinstance(module, Router):
            return True
        if any(getattr(module, name, None) is not None for name in LENGTHS_BY_ROLE):
            return True
    return False


def check_single_vector(folder: Path) -> None:
    """Refuse a model that gives no single dense vector of a sentence.

    sentence-transformers would take its encoder, and pool by the mean.

    Raises:
        BadInput: `config_sentence_transformers.json` states another kind.
    """
    file = folder / "config_sentence_transformers.json"
    if not file.exists():
        return
    content = read_json(file)
    kind = content.get("model_type", DENSE) if isinstance(content, dict) else None
    if kind != DENSE:
        gives = GIVES.get(str(kind), "other vectors")
        raise BadInput(
            f"{file}: model_type: {kind!r} gives {gives}, but csebench scores one dense vector of a"
            f" sentence ({DENSE}). Use another model; --pooler takes its encoder alone."
        )


def open_whole(folder: Path):
    """Open a sentence-transformers folder in fp32, and check what its library would not notice.

    Raises:
        BadInput: it cannot be read, asks for code, is of another kind, its transformer is not
            whole, or its vectors depend on the sentences beside them.
    """
    from sentence_transformers import SentenceTransformer

    what = f"model {folder}"
    check_foreign(folder, ("**/*config.json", "**/modules.json"))
    check_single_vector(folder)
    check_full_precision(folder, "**/config.json")
    try:
        model = SentenceTransformer(
            str(folder),
            device=device_type(),
            trust_remote_code=False,
            model_kwargs={"dtype": torch.float32},
        )
        model.float()  # modules beside the transformer, in half precision
        limit_lengths(model)
        try_out(model, what)
        for module in transformers_of(model):
            check_vocabulary(module.tokenizer, module.auto_model.config, what)
            check_whole(module.auto_model, folder, what)
    except BadInput:
        raise
    except Exception as e:  # of its library or those below it, by what is damaged
        raise unreadable_model(what, e) from None
    return model


def check_whole(transformer: Any, folder: Path, what: str) -> None:
    """Refuse a transformer of which a sentence-transformers folder lacks weights.

    A Router has several, each in a folder of its own. All of its architecture are looked at.
    """
    first = folder / json.loads(read_text(folder / "modules.json"))[0]["path"]
    candidates = [first, *sorted(path for path in first.glob("*/") if path.is_dir())]
    told = {"output_loading_info": True, "ignore_mismatched_sizes": True}
    for candidate in candidates:
        file = candidate / "config.json"
        if not file.exists() or read_json(file).get("model_type") != transformer.config.model_type:
            continue
        loading = type(transformer).from_pretrained(candidate, trust_remote_code=False, **told)[1]
        check_weights(transformer, loading, what, may_be_new=("pooler",))


def transformers_of(model: Any) -> list[Any]:
    """The modules of a sentence-transformers model that tokenise texts and embed tokens with a
    transformer."""
    modules = [
        module for module in model.modules() if getattr(module, "auto_model", None) is not None
    ]
    return [module for module in modules if module.tokenizer is not None]


def limit_lengths(model: Any) -> None:
    """Let no transformer of the model read more tokens than it has positions.

    The library takes the number of positions for RoBERTa and MPNet, two of which stand before the
    first token.
    """
    for module in transformers_of(model):
        limit = position_limit(module.auto_model)
        if limit is not None:
            limit_length(module, limit)


def limit_length(module: Any, limit: int) -> None:
    """Let a transformer read no more tokens than `limit`."""
    module.tokenizer.model_max_length = min(module.tokenizer.model_max_length, limit)
    for name in LENGTHS_BY_ROLE:
        stated = getattr(module, name, None)
        if stated is not None:
            setattr(module, name, min(stated, limit))


def shorten_inputs(model: Any, max_length: int, name: str) -> None:
    """Let a model read no more tokens than --max-length.

    Raises:
        BadInput: it reads fewer anyway, or has no transformer, and so no limit.
    """
    modules = transformers_of(model)
    if not modules:
        raise BadInput(
            f"--max-length {max_length}: {name} has no transformer, and reads whole texts; leave it"
            " out."
        )
    for module in modules:
        check_length(max_length, module.tokenizer.model_max_length, name)
        limit_length(module, max_length)


def try_out(model: Any, what: str) -> None:
    """Embed texts alone and together. Modules that do not fit together fail here.

    Raises:
        BadInput: a text gets no vector, or another one beside a longer text.
    """
    short, long = TRIAL
    try:
        outputs = model.encode([short], output_value=None, show_progress_bar=False)[0]
    except ValueError as e:
        if "route" not in str(e):
            raise
        raise BadInput(
            f"{what}: router_config.json: its Router has no route for a sentence that is neither"
            f" query nor document ({first_line(e)}); name one as default_route."
        ) from None
    if "sentence_embedding" not in outputs:
        raise BadInput(
            f"{what}: modules.json: no module pools: there is no vector of a sentence; use another"
            " model."
        )
    alone = model.encode([short], show_progress_bar=False)[0]
    together = model.encode([short, long], show_progress_bar=False)[0]
    if not np.allclose(alone, together, atol=LOOSE * np.abs(alone).max()):
        raise BadInput(
            f"{what}: padding changes its vectors, so that they depend on the sentences beside"
            " them. Look for padding_side in tokenizer_config.json, or give --pooler, with which"
            " its encoder is used alone."
        )


class Affine:
    """A fitted map after pooling: (x - shift) @ matrix."""

    def __init__(self, shift: np.ndarray, matrix: np.ndarray):
        self.shift, self.matrix = shift, matrix

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return (vectors - self.shift) @ self.matrix

    def save(self, folder: Path) -> None:
        save_file(
            {"shift": self.shift, "matrix": np.ascontiguousarray(self.matrix)},
            folder / "transform.safetensors",
        )

    @classmethod
    def load(cls, folder: Path) -> "Affine | None":
        path = folder / "transform.safetensors"
        return cls(**load_file(path)) if path.exists() else None
