"""Models that embed sentences.

`SentenceEncoder` embeds with an encoder and a pooler. `SentenceTransformerEmbedder` embeds with the
sentence-transformers library. Models of this library are also opened and checked here. So are the
fitted maps that follow pooling. The base class of all models is in csebench/model/embedder.py.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import find_executable_batch_size
from safetensors.numpy import save_file

from csebench.base.errors import BadInput, first_line
from csebench.base.files import read_json, read_text
from csebench.base.gpus import device_type
from csebench.base.hub import fetch_model
from csebench.base.models import check_foreign, check_vocabulary, unreadable_model
from csebench.base.terminal import bar, on_terminal
from csebench.model.bf16 import in_precision
from csebench.model.corpus_ranks import CorpusRanks
from csebench.model.embedder import Embedder
from csebench.model.encoder import TRIAL, Encoder, check_full_precision, position_limit
from csebench.model.layers import to_device
from csebench.model.pooling import TEXT_TEMPLATES, pool
from csebench.model.weights import check_weights
from csebench.plan.schema.declarations import EncoderRef, Evaluation

# the kind of model of sentence-transformers that embeds a sentence in one dense vector
DENSE = "SentenceTransformer"
GIVES = {  # what the other kinds give
    "SparseEncoder": "a sparse vector over its vocabulary",
    "CrossEncoder": "a score of a pair",
    "MultiVectorEncoder": "a vector of every token",
    "ColBERT": "a vector of every token",
}
# attributes of a module that limit how many tokens of a query and of a document are read
LENGTHS_BY_ROLE = ("query_length", "document_length")
LOOSE = 1e-3  # a difference above this share of the largest entry is more than rounding
MAP_FILE = "transform.safetensors"  # of a model folder: the fitted map
# Tokens of a batch, at most: attention scores of BERT-base take 1.6 GB in fp32 at length 512.
BATCH_TOKENS = 128 * 512


class SentenceEncoder(Embedder):
    """An encoder with a pooler. It embeds in batches of sentences of similar length.

    Args:
        transform: the fitted map that follows pooling, or None.
        added: encoders whose pooled vectors are added to those of `encoder`. They read the same
            token ids (`check_summable`).
    """

    def __init__(
        self,
        encoder: Encoder,
        pooler: str,
        transform=None,
        evaluation: Evaluation = Evaluation(),
        added: Sequence[Encoder] = (),
    ):
        self.encoder = encoder
        self.added = added
        self.pooler = pooler
        self.transform = transform
        self.evaluation = evaluation
        check_length(evaluation.max_length or 0, encoder.max_seq_length, "this encoder")

    def vectors(self, sentences: list[str]) -> np.ndarray:
        compute = self.prepare(sentences)
        return compute()

    def prepare(self, sentences: list[str]) -> Callable[[], np.ndarray]:
        """Tokenise now, and return a function that computes the vectors."""
        ids = self.token_ids(sentences)

        def embed() -> np.ndarray:
            vectors = self.on_device(ids).cpu().numpy()
            if self.transform is None:
                return vectors
            return self.transform(vectors)

        return embed

    def token_ids(self, sentences: list[str]) -> list[list[int]]:
        """Return the token ids of sentences, in the template of the pooler if it has one."""
        max_length = self.evaluation.max_length
        if self.pooler in TEXT_TEMPLATES:
            return self.encoder.ids_in_text(sentences, self.pooler, max_length)
        return self.encoder.in_template(self.encoder.ids(sentences, max_length), self.pooler)

    @torch.inference_mode()
    def on_device(self, ids: list[list[int]]) -> torch.Tensor:
        """Embed rows of token ids, without the fitted map.

        Returns:
            (sentences, D) float32 on the device of the encoder, which may still be computing them.
        """
        encoder = self.encoder
        device = encoder.device
        order = np.argsort([len(row) for row in ids], kind="stable")  # shortest first
        sorted_ids = [ids[index] for index in order]
        lengths = [len(row) for row in sorted_ids]
        batches = split(lengths, self.evaluation.batch_size, encoder.traits.hides_padding)

        parts = []
        precision = in_precision(device, self.evaluation.precision)
        with without_dropout([encoder, *self.added]), precision:
            for batch in bar(batches, "embedding", "batch"):
                parts.append(self.pooled(sorted_ids[batch]))

        position_of = torch.from_numpy(np.argsort(order))  # of each sentence in the sorted order
        return torch.cat(parts)[to_device(position_of, device)]

    def pooled(self, rows: list[list[int]]) -> torch.Tensor:
        """Embed a batch of rows of token ids, (rows, D) float32.

        If the memory of the device is too small, the batch is computed in halves.
        """
        try:
            batch = self.encoder.pad(rows)
            return sum_of_vectors(self.encoder, self.added, batch, self.pooler).float()
        except torch.OutOfMemoryError:
            if len(rows) == 1:
                raise
        # outside the handler: its traceback keeps the tensors of the batch
        torch.cuda.empty_cache()
        middle = len(rows) // 2
        return torch.cat([self.pooled(rows[:middle]), self.pooled(rows[middle:])])


def sum_of_vectors(
    encoder: Encoder, added: Iterable[torch.nn.Module], batch: dict[str, torch.Tensor], pooler: str
) -> torch.Tensor:
    """Encode a batch by every encoder, pool, and sum the vectors, (N, D).

    A sum is float32. The vectors of one encoder keep their type.

    Args:
        added: further encoders.
    """
    vectors = pool(pooler, encoder(batch, pooler))
    for other in added:
        vectors = vectors.float() + pool(pooler, other(batch, pooler)).float()
    return vectors


@contextmanager
def without_dropout(encoders: Sequence[Encoder]) -> Iterator[None]:
    """Let encoders evaluate. Afterwards, those that were in training are in training again."""
    was_training = [encoder.training for encoder in encoders]
    try:
        for encoder in encoders:
            encoder.eval()
        yield
    finally:  # an encoder that stayed in evaluation would train without dropout
        for encoder, training in zip(encoders, was_training, strict=True):
            encoder.train(training)


def split(lengths: list[int], batch_size: int, padded: bool = True) -> list[slice]:
    """Split rows into batches of at most `batch_size` rows and BATCH_TOKENS tokens.

    Args:
        lengths: lengths of the rows, in ascending order.
        padded: whether rows of different lengths may share a batch. They may if padding does not
            change vectors.
    """
    starts = [0]
    for row, length in enumerate(lengths):
        start = starts[-1]
        if row == start:
            continue
        is_full = row - start == batch_size or (row + 1 - start) * length > BATCH_TOKENS
        is_longer = length != lengths[start] and not padded
        if is_full or is_longer:
            starts.append(row)
    return [slice(start, end) for start, end in pairwise([*starts, len(lengths)])]


def check_length(
    length: int, max_seq_length: int, name: str, setting: str = "--max-length"
) -> None:
    """Refuse a length that the model cannot read.

    Otherwise a run id or protocol would state a length that is not the real one.

    Args:
        length: the length that the setting asks for.
        name: name of the model, for the message.

    Raises:
        BadInput: the model reads fewer tokens.
    """
    if length > max_seq_length:
        raise BadInput(
            f"{setting} {length}: {name} reads {max_seq_length} tokens at most;"
            " use a smaller length."
        )


# ---------------------------------------------------------------- fitted maps


class Affine:
    """A fitted map that follows pooling: (x - shift) @ matrix."""

    def __init__(self, shift: np.ndarray, matrix: np.ndarray):
        self.shift = shift
        self.matrix = matrix

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return (vectors - self.shift) @ self.matrix

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file of the map holds, by name of the argument."""
        return {"shift": self.shift, "matrix": np.ascontiguousarray(self.matrix)}


class MethodMap:
    """A fitted map that follows pooling, and that the method itself computes.

    Args:
        fitted: what the method fitted, arrays by name.
        apply: the method's function of vectors (N, D) and the arrays.
    """

    def __init__(
        self,
        fitted: dict[str, np.ndarray],
        apply: Callable[[np.ndarray, dict[str, np.ndarray]], np.ndarray],
    ):
        self.fitted = fitted
        self.apply = apply

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return self.apply(vectors, self.fitted)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file of the map holds, by name."""
        return self.fitted


FittedMap = Affine | CorpusRanks | MethodMap
AFFINE_KEYS = {"shift", "matrix"}  # in the file of an Affine
RANKS_KEYS = {"corpus", "cosine_share"}  # in the file of a CorpusRanks
OWN_KEYS = (AFFINE_KEYS, RANKS_KEYS)  # by which a file is told from that of a MethodMap


def save_map(folder: Path, fitted: FittedMap) -> None:
    """Write the map of a model folder."""
    save_file(fitted.arrays(), folder / MAP_FILE)


# ---------------------------------------------------------------- sentence-transformers


class SentenceTransformerEmbedder(Embedder):
    """A model of sentence-transformers, from a folder or the hub, embedded by its own library.

    The method `encode` of the model embeds sentences, and puts the default prompt before them.
    `encode_query` and `encode_document` embed the queries and documents of a search.
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
        """Embed texts, in smaller batches if the memory of the device is too small.

        Args:
            encode: the method of the model for texts of one role.

        Returns:
            (texts, D) float32.

        Raises:
            BadInput: the Router of the model has no route for texts of this role.
        """
        shows_bar = on_terminal()

        def encode_in_batches(batch_size: int) -> np.ndarray:
            return encode(texts, batch_size=batch_size, show_progress_bar=shows_bar)

        encode_all = find_executable_batch_size(encode_in_batches, self.evaluation.batch_size)
        with in_precision(self.model.device, self.evaluation.precision):
            try:
                vectors = encode_all()
            except ValueError as error:
                if "route" not in str(error):
                    raise
                raise BadInput(
                    f"model: its Router cannot embed these texts: {first_line(error)}."
                ) from None
        return vectors.astype(np.float32, copy=False)


def open_whole(folder: Path):
    """Open a sentence-transformers folder in fp32, and make checks that its library does not make.

    Raises:
        BadInput: the model cannot be read, asks for code, gives no single dense vector, lacks
            weights of its transformer, or gives vectors that depend on the other sentences of a
            batch.
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
        model.float()  # `dtype` concerns the transformer; other modules may be in half precision
        limit_lengths(model)
        try_out(model, what)
        for module in transformers_of(model):
            check_vocabulary(module.tokenizer, module.auto_model.config, what)
            check_whole(module.auto_model, folder, what)
    except BadInput:
        raise
    except Exception as error:  # several libraries read the files, each with its own errors
        raise unreadable_model(what, error) from None
    return model


def check_single_vector(folder: Path) -> None:
    """Refuse a model that does not give a sentence one dense vector.

    sentence-transformers would load only the encoder of such a model, and pool by the mean.

    Raises:
        BadInput: `config_sentence_transformers.json` states another kind.
    """
    file = folder / "config_sentence_transformers.json"
    if not file.exists():
        return
    content = read_json(file)
    kind = None
    if isinstance(content, dict):
        kind = content.get("model_type", DENSE)
    if kind != DENSE:
        gives = GIVES.get(str(kind), "other vectors")
        raise BadInput(
            f"{file}: model_type: {kind!r} gives {gives}, but csebench scores one dense vector of a"
            f" sentence ({DENSE}). Use another model; --pooler takes its encoder alone."
        )


def limit_lengths(model: Any) -> None:
    """Let no transformer of the model read more tokens than it has positions for.

    sentence-transformers takes the number of positions as the limit. But RoBERTa and MPNet lose two
    positions before the first token.
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


def try_out(model: Any, what: str) -> None:
    """Embed a text alone and in a batch. Modules that do not fit together fail here.

    Raises:
        BadInput: a text gets no vector, or its vector changes if a longer text is in the batch.
    """
    short, long = TRIAL
    try:
        outputs = model.encode([short], output_value=None, show_progress_bar=False)[0]
    except ValueError as error:
        if "route" not in str(error):
            raise
        raise BadInput(
            f"{what}: router_config.json: its Router has no route for a sentence that is neither"
            f" query nor document ({first_line(error)}); name one as default_route."
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
            f"{what}: padding changes its vectors, so that they depend on the other sentences of a"
            " batch. Look for padding_side in tokenizer_config.json, or give --pooler, with which"
            " its encoder is used alone."
        )


def check_whole(transformer: Any, folder: Path, what: str) -> None:
    """Refuse a transformer if a sentence-transformers folder lacks some of its weights.

    A Router has several transformers, each in its own folder. A transformer does not say which
    folder is its own, so every folder of its architecture is checked.
    """
    modules = json.loads(read_text(folder / "modules.json"))
    first = folder / modules[0]["path"]
    candidates = [first, *sorted(path for path in first.glob("*/") if path.is_dir())]
    for candidate in candidates:
        file = candidate / "config.json"
        if not file.exists():
            continue
        if read_json(file).get("model_type") != transformer.config.model_type:
            continue
        _, loading = type(transformer).from_pretrained(
            candidate,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
        check_weights(transformer, loading, what, may_be_new=("pooler",))


def shorten_inputs(model: Any, max_length: int, name: str) -> None:
    """Let a model read no more tokens than --max-length.

    Raises:
        BadInput: the model reads fewer anyway, or has no transformer, so that it has no limit.
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


def transformers_of(model: Any) -> list[Any]:
    """List the modules of a model that tokenise texts and embed tokens with a transformer."""
    modules = []
    for module in model.modules():
        has_transformer = getattr(module, "auto_model", None) is not None
        if has_transformer and module.tokenizer is not None:
            modules.append(module)
    return modules


def prompts_of(model: Any) -> dict[str, str]:
    """Return the prompts of a model by role, as sentence-transformers chooses them.

    The dictionary is empty if no role has a prompt.
    """
    by_role = {
        "sentence": model.prompts.get(model.default_prompt_name, ""),
        "query": model.prompts.get("query", ""),
        "document": first_of(model.prompts, ("document", "passage", "corpus")),
    }
    if not any(by_role.values()):
        return {}
    return by_role


def first_of(prompts: dict[str, str], names: tuple[str, ...]) -> str:
    """Return the prompt of the first name that has one, or an empty text."""
    for name in names:
        if name in prompts:
            return prompts[name]
    return ""


def routes_by_role(model: Any) -> bool:
    """Whether queries and documents have their own modules, or their own limits of length."""
    from sentence_transformers.base.modules import Router

    for module in model.modules():
        if isinstance(module, Router):
            return True
        if any(getattr(module, name, None) is not None for name in LENGTHS_BY_ROLE):
            return True
    return False
