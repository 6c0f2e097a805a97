"""Encoders: loading (hub, folder), pooling, embedding of many sentences, export for Hugging Face and ST."""

from __future__ import annotations

import copy
import inspect
import itertools
import json
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from huggingface_hub import hf_hub_download
from safetensors.numpy import load_file, save_file
from torch import nn
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer
from transformers.utils import logging

from csebench import ROOT
from csebench.data import sha256
from csebench.embed import Embedder, EmbeddingFile
from csebench.errors import BadInput
from csebench.provenance import write_json
from csebench.registry import load
from csebench.schema import POOLERS, TEMPLATES, EncoderRef, Evaluation

logging.set_verbosity_error()  # else every load reports the masked-LM head that we do not want
logging.disable_progress_bar()


TWO_LAYERS = {"avg_top2": (-2, -1), "avg_first_last_2021": (0, -1), "avg_first_last_2022": (1, -1)}  # pooler: states
TANH = "torch.nn.modules.activation.Tanh"
ST = "sentence_transformers.models"  # where its modules have been found since version 1
ONE_POSITION = ("cls_before_pooler", *TEMPLATES)  # poolers that read one state of the last layer
MODULES = "modules.safetensors"  # what a method exports beside its encoder
BERTS = ("bert", "roberta")  # whose modules are laid out alike


def mean_pool(states, mask):
    """(N, T, D), (N, T) -> (N, D): mean over real tokens."""
    mask = mask.to(states.dtype).unsqueeze(-1)
    return (states * mask).sum(1) / mask.sum(1)


def pool(pooler: str, encoded: Encoded):
    """Sentence vectors (N, D) of a forward pass, by SimCSE's names (evaluation.py, models.py:60-98).

    `cls` is the encoder's own pooler output, `cls_before_pooler` the state at position 0. `avg_first_last`
    differs silently between forks: until 2022-01-14 "first" was the embedding output (`_2021`, the reading of
    the published 56.70), since then the first layer (`_2022`). `mask` and `mask_bare` are the state at the last
    [MASK], that of the template (MSSE).
    """
    output, mask = encoded.output, encoded.mask
    if pooler in TWO_LAYERS:
        one, two = (output.hidden_states[i] for i in TWO_LAYERS[pooler])
        return mean_pool((one + two) / 2, mask)
    if pooler in ONE_POSITION:
        states = output.last_hidden_state
        return at_position(states, encoded.position(pooler) if states.shape[1] > 1 else None)[:, 0]
    match pooler:
        case "cls":
            return output.pooler_output
        case "avg":
            return mean_pool(output.last_hidden_state, mask)
    raise BadInput(f"unknown pooler {pooler!r}")


class Dropout(nn.Dropout):
    """Dropout whose mask on CPU is cut from 64-bit random words: a seventh of the cost of a draw per entry.

    p is met to 2^-16. A step of SimCSE spends a sixth of its time in masks otherwise (benchmarks/train_step.py).
    """

    def forward(self, x):
        if not self.training or self.p == 0 or x.device.type != "cpu":
            return super().forward(x)
        words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        dropped = round(self.p * 2**16)  # of the values of 16 bits
        kept = words.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - 2**15
        return x * kept.to(x.dtype) * (1 / (1 - dropped / 2**16))


def to_device(tensor: torch.Tensor, device) -> torch.Tensor:
    """A tensor of the host on a device, without waiting for what the device is at: through pinned memory."""
    if tensor.device.type == "cpu" and torch.device(device).type == "cuda":
        tensor = pinned(tensor)
    return tensor.to(device, non_blocking=True)


def pinned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.pin_memory()


def at_position(states, position=None):
    """(N, T, D), (N,) -> (N, 1, D): each row's state at its position, the first where none is given."""
    if position is None:
        return states[:, :1]
    return states.gather(1, position.view(-1, 1, 1).expand(-1, 1, states.shape[-1]))


def initialise(linear: nn.Linear, std: float = 0.02) -> None:
    """As BERT does: normal weights, no bias."""
    nn.init.normal_(linear.weight, std=std)
    nn.init.zeros_(linear.bias)


def use_cheap_dropout(model) -> None:
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))


def additive(mask, dtype=torch.float32):
    """(N, T) -> (N, 1, 1, T): what is added to attention scores. Hugging Face's own asks the device whether there is
    padding at all, and waits for the answer."""
    return (1 - mask[:, None, None].to(dtype)) * torch.finfo(dtype).min


class Layers(nn.Module):
    """New transformer layers of an encoder's own kind and size, with its initialisation."""

    def __init__(self, encoder: Encoder, count: int):
        super().__init__()
        config = encoder.model.config
        self.layers = nn.ModuleList(type(encoder.model.encoder.layer[0])(config) for _ in range(count))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                initialise(module, config.initializer_range)
        use_cheap_dropout(self)

    def forward(self, states, mask):
        """(N, T, D), (N, T) -> (N, T, D)"""
        hidden = additive(to_device(mask, states.device), states.dtype)
        for layer in self.layers:
            states = layer(states, hidden)
        return states


class Head(nn.Module):
    """SimCSE's MLP over [CLS]: one layer and tanh, newly initialised (models.py:18-34), used in training only."""

    def __init__(self, size):
        super().__init__()
        self.dense = nn.Linear(size, size)
        initialise(self.dense)

    def forward(self, x):
        return torch.tanh(self.dense(x))


class Projector(nn.Module):
    """DiffCSE's two linear layers with batch normalisation (models.py: ProjectionMLP), used in training only."""

    def __init__(self, size):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(size, 2 * size, bias=False),
            nn.BatchNorm1d(2 * size),
            nn.ReLU(),
            nn.Linear(2 * size, size, bias=False),
            nn.BatchNorm1d(size, affine=False),
        )

    def forward(self, x):
        return self.net(x)


@dataclass
class Encoded:
    """One forward pass."""

    output: object  # of the Hugging Face model
    ids: torch.Tensor  # (N, T)
    mask: torch.Tensor  # (N, T) bool, True at real tokens
    mask_id: int  # of the token [MASK]
    attention: list = field(default_factory=list)  # (N, H, T, T) of the layers asked for, after attention dropout

    def position(self, pooler: str) -> torch.Tensor | None:
        """(N,) the last [MASK] of each row, that of the template, for a pooler that reads there; else None."""
        if pooler not in TEMPLATES:
            return None
        return (torch.arange(self.ids.shape[1], device=self.ids.device) * (self.ids == self.mask_id)).argmax(1)


class Encoder(nn.Module):
    """A Hugging Face encoder with its tokenizer; eager attention, which is faster at short lengths and keeps maps."""

    def __init__(self, model, tokenizer, source=None):
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.source = source  # where `from_pretrained` found it
        use_cheap_dropout(model)
        self.kept = ()  # layers whose attention maps `forward` returns
        self.compiled = False
        self.tokens = None  # csebench.tokens.Tokens, where sentences come again

    @classmethod
    def load(cls, ref: EncoderRef, dropout: float | None = None, with_pooler: bool = False) -> Encoder:
        """From a folder (the project's or any) or the hub at a pinned revision; fp32, on the GPU if there is one.

        Raises:
            BadInput: neither can be had.
        """
        folder = next((p for p in (ROOT / ref.name, Path(ref.name)) if (p / "config.json").exists()), None)
        if folder and len(ref.revision) == 64 and (found := sha256(folder / "model.safetensors")) != ref.revision:
            raise BadInput(
                f"{folder}/model.safetensors: sha256 is {found[:12]}…, expected {ref.revision[:12]}…: another encoder;"
                " name it under its own sha256 in config/."
            )
        source = {"pretrained_model_name_or_path": folder or ref.name, "revision": None if folder else ref.revision}
        changes = {} if dropout is None else dict(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
        try:
            tokenizer = AutoTokenizer.from_pretrained(**source)
            kind = MODEL_MAPPING[type(AutoConfig.from_pretrained(**source))]
            if "add_pooling_layer" in inspect.signature(kind).parameters:
                changes["add_pooling_layer"] = with_pooler
            model = AutoModel.from_pretrained(**source, attn_implementation="eager", dtype=torch.float32, **changes)
        except OSError as e:
            raise BadInput(f"encoder {ref.name}: neither a model folder nor to be had from the hub: {e}") from None
        return cls(model, tokenizer, source).to("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def size(self) -> int:
        return self.model.config.hidden_size

    @property
    def layers(self) -> int:
        return self.model.config.num_hidden_layers

    @property
    def longest(self) -> int:
        """Tokens that the encoder can read; the positions of RoBERTa and its kin start behind that of padding."""
        positions = getattr(getattr(self.model, "embeddings", None), "position_embeddings", None)
        padding = getattr(positions, "padding_idx", None)
        return self.model.config.max_position_embeddings - (0 if padding is None else padding + 1)

    @property
    def device(self):
        return self.model.device

    def twin(self, layers: int | None = None) -> Encoder:
        """A second encoder with the same weights (CT's second, MoCo's momentum encoder), or its lowest layers only."""
        model = copy.deepcopy(self.model)
        if layers is not None:
            model.encoder.layer = model.encoder.layer[:layers]
            model.config.num_hidden_layers = layers
        return Encoder(model, self.tokenizer, self.source)

    def masked_lm(self):
        """The checkpoint's masked language model, a second copy; of a checkpoint without one its head is new."""
        model = AutoModelForMaskedLM.from_pretrained(**self.source, dtype=torch.float32)
        self.load_module("lm_head", head_of(model))
        return model.to(self.device)

    def lm_head(self) -> nn.Module:
        """The checkpoint's masked-LM head, not tied to the embeddings (SimCSE train.py:371-373)."""
        return copy.deepcopy(head_of(self.masked_lm()))

    def load_module(self, name: str, module: nn.Module) -> None:
        """Fill a module from what the run that made this encoder exported, if it is of such a run.

        Raises:
            BadInput: it exported one of another shape.
        """
        file = Path(self.source["pretrained_model_name_or_path"]) / MODULES
        if not file.exists():
            return
        stored = {k.removeprefix(f"{name}."): v for k, v in load_file(file).items() if k.startswith(f"{name}.")}
        try:
            module.load_state_dict({k: torch.from_numpy(v) for k, v in stored.items()})
        except RuntimeError as e:
            raise BadInput(f"{file}: {name}: has not the layers that this run asks for: {e}") from None

    def set_dropout(self, p: float) -> None:
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = p

    def keep_attention(self, layers) -> None:
        """Keep the attention maps of these layers, and of no other, in what `forward` returns."""
        self.kept = tuple(sorted(layers))

    @property
    def stack(self):
        """The layers of a BERT; of another kind none that anything here could look into."""
        return self.model.encoder.layer if self.model.config.model_type in BERTS else ()

    def compile_layers(self) -> None:
        """Let torch.compile fuse the layers that nothing looks into: not those whose attention is kept, and not the
        last, which may work on one position only. Layers are alike, so one is compiled for all of them."""
        if not (shutil.which("cc") or shutil.which("gcc")):
            print("no C compiler, which torch.compile needs: layers run as they are, slower", file=sys.stderr)
            return
        torch._dynamo.config.recompile_limit = 64  # lengths, last batches, with and without gradient
        for number, layer in enumerate(self.stack[:-1]):
            if number not in self.kept:
                layer.compile()
                self.compiled = True

    def ids(self, sentences: list[str], max_length: int | None = None) -> list[list[int]]:
        """Token ids, cut at `max_length`, else at what the encoder can read."""
        limit = min(max_length or self.longest, self.longest)
        if self.tokens is None:
            return self.tokenizer(sentences, truncation=True, max_length=limit)["input_ids"]
        return [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in self.tokens.rows(sentences)]

    def in_template(self, rows: list[list[int]], pooler: str | None) -> list[list[int]]:
        """Sentences' ids in the template of a pooler that has one; the sentence gives way where both are too long."""
        if pooler not in TEMPLATES:
            return rows
        template = TEMPLATES[pooler].replace("[MASK]", self.tokenizer.mask_token)
        before, after = (self.tokenizer(t, add_special_tokens=False)["input_ids"] for t in template.split("[X]"))
        room = self.longest - len(before) - len(after) - 2
        return [[row[0], *before, *row[1:-1][:room], *after, row[-1]] for row in rows]

    def pad(self, rows: list[list[int]], length: int | None = None) -> dict[str, torch.Tensor]:
        """Rows of token ids as a batch, padded to `length`, else to the longest; on a GPU to the next multiple of 8,
        so that few shapes are compiled.

        The batch stays on the host, where masks and edits are drawn and positions are looked up without waiting for
        the device; `forward` takes it there.
        """
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        if length is None:
            step = 8 if self.device.type == "cuda" else 1
            length = max(lengths.max(), min(-(-lengths.max() // step) * step, self.longest))
        real = np.arange(length) < lengths[:, None]
        ids = np.full(real.shape, self.tokenizer.pad_token_id)
        ids[real] = np.fromiter(itertools.chain.from_iterable(rows), np.int64, lengths.sum())
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(real.astype(np.int64))}

    def tokenize(self, sentences: list[str], max_length: int | None = None, pooler: str | None = None):
        return self.pad(self.in_template(self.ids(sentences, max_length), pooler))

    def forward(self, batch, pooler: str | None = None) -> Encoded:
        """One pass over a tokenised batch, which computes no more than `pooler` reads (None: every hidden state).

        Where that is the state at one position, the last layer of a BERT works on that position only behind its
        attention: `last_hidden_state` is (N, 1, D).
        """
        inputs = {k: to_device(v, self.device) for k, v in batch.items() if k != "labels"}
        encoded = Encoded(None, inputs["input_ids"], inputs["attention_mask"].bool(), self.tokenizer.mask_token_id)
        maps, hooks = {}, []
        for i in self.kept:
            keep = lambda _, __, out, i=i: maps.__setitem__(i, out[1])  # noqa: E731
            hooks.append(self.stack[i].attention.self.register_forward_hook(keep))
        if pooler in ONE_POSITION and self.stack:
            at = encoded.position(pooler)
            one = lambda _, states: tuple(at_position(s, at) for s in states)  # noqa: E731
            hooks.append(self.stack[-1].attention.output.register_forward_pre_hook(one))
        if self.stack:
            inputs["attention_mask"] = additive(encoded.mask)
        try:
            encoded.output = self.model(**inputs, output_hidden_states=pooler is None or pooler in TWO_LAYERS)
        finally:
            for hook in hooks:
                hook.remove()
        encoded.attention = [maps[i] for i in self.kept]
        return encoded


def head_of(masked_lm) -> nn.Module:
    return masked_lm.cls if hasattr(masked_lm, "cls") else masked_lm.lm_head


def check_length(wanted: int, longest: int, name: str) -> None:
    """Raises BadInput: the protocol would name a length that nothing was read at."""
    if wanted > longest:
        raise BadInput(f"--max-length {wanted}: {name} reads {longest} tokens at most.")


class SentenceEncoder(Embedder):
    """An encoder with the pooler of its test; embeds in batches of like length."""

    def __init__(self, encoder: Encoder, pooler: str, transform=None, evaluation: Evaluation = Evaluation()):
        self.encoder, self.pooler, self.transform, self.evaluation = encoder, pooler, transform, evaluation
        check_length(evaluation.max_length or 0, encoder.longest, "this encoder")

    def vectors(self, sentences: list[str]) -> np.ndarray:
        if self.encoder.compiled:  # for the shapes of training
            with torch.compiler.set_stance("force_eager"):
                return self._vectors(sentences)
        return self._vectors(sentences)

    @torch.inference_mode()
    def _vectors(self, sentences: list[str]) -> np.ndarray:
        encoder, training = self.encoder, self.encoder.training
        encoder.eval()
        settings = self.evaluation
        ids = encoder.in_template(encoder.ids(sentences, settings.max_length), self.pooler)
        order = np.argsort([len(i) for i in ids], kind="stable")
        vectors = np.empty((len(sentences), encoder.size), dtype=np.float32)
        with torch.autocast(encoder.device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            for start in range(0, len(order), settings.batch_size):
                index = order[start : start + settings.batch_size]
                out = encoder(encoder.pad([ids[i] for i in index]), self.pooler)
                vectors[index] = pool(self.pooler, out).float().cpu().numpy()
        encoder.train(training)
        return vectors if self.transform is None else self.transform(vectors)


class WholeTransformer(Embedder):
    """A sentence-transformers folder or hub id with all its modules, as its own library encodes."""

    def __init__(self, ref: EncoderRef, evaluation: Evaluation):
        from sentence_transformers import SentenceTransformer

        revision = None if Path(ref.name).exists() else ref.revision
        self.model, self.evaluation = SentenceTransformer(ref.name, revision=revision), evaluation
        if evaluation.max_length is not None:
            check_length(evaluation.max_length, self.model.tokenizer.model_max_length, ref.name)
            self.model.max_seq_length = evaluation.max_length

    def vectors(self, sentences):
        settings = self.evaluation
        with torch.autocast(self.model.device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            return self.model.encode(sentences, batch_size=settings.batch_size, show_progress_bar=False)


class Affine:
    """A fitted map after pooling: (x - shift) @ matrix."""

    def __init__(self, shift: np.ndarray, matrix: np.ndarray):
        self.shift, self.matrix = shift, matrix

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        return (vectors - self.shift) @ self.matrix

    def save(self, folder: Path) -> None:
        save_file({"shift": self.shift, "matrix": np.ascontiguousarray(self.matrix)}, folder / "transform.safetensors")

    @classmethod
    def load(cls, folder: Path) -> Affine | None:
        path = folder / "transform.safetensors"
        return cls(**load_file(path)) if path.exists() else None


# ---------------------------------------------------------------- folders


def pooler_of(folder: Path) -> str | None:
    """The pooler that a folder of ours states."""
    own = folder / "csebench.json"
    return json.loads(own.read_text()).get("pooler") if own.exists() else None


def has_modules(ref: EncoderRef) -> bool:
    """Whether sentence-transformers says how its sentences are pooled; a hub that cannot be reached says nothing."""
    if Path(ref.name).exists():
        return (Path(ref.name) / "modules.json").exists()
    try:
        return bool(hf_hub_download(ref.name, "modules.json", revision=ref.revision))
    except (OSError, ValueError):
        return False


def open_model(name: str, pooler: str | None = None, evaluation: Evaluation = Evaluation()):
    """A model ready for the evaluators: a run's folder, a control, any Hugging Face or sentence-transformers encoder.

    Args:
        name: folder, hub id (`ID@COMMIT` pins its revision), or .npz file of embeddings.
        pooler: needed where the folder does not state one; one of sentence-transformers is used with all its modules
            unless a pooler is given.

    Raises:
        BadInput: there is no such model, or nobody says how to pool it.
    """
    folder = Path(name)
    if folder.suffix == ".npz":
        return EmbeddingFile(folder)
    own = folder / "csebench.json"
    facts = json.loads(own.read_text()) if own.exists() else {}
    if "control" in facts:
        return load(facts["control"])(facts["params"], facts["seed"])
    pooler = pooler or pooler_of(folder)
    ref = EncoderRef.parse(name)
    if pooler is None and has_modules(ref):
        return WholeTransformer(ref, evaluation)
    if pooler is None:
        raise BadInput(f"{name}: does not say how to pool; give --pooler ({', '.join(POOLERS)}).")
    encoder = Encoder.load(ref, with_pooler=pooler == "cls")
    return SentenceEncoder(encoder, pooler, Affine.load(folder), evaluation)


def save_modules(folder: Path, modules: dict[str, nn.Module]) -> None:
    state = {f"{name}.{k}": v for name, module in modules.items() for k, v in module.state_dict().items()}
    save_file({k: v.detach().cpu().numpy() for k, v in state.items()}, folder / MODULES)


def save_encoder(folder: Path, encoder: Encoder, pooler: str, transform=None) -> None:
    """What AutoModel, AutoTokenizer and SentenceTransformer load, with equal vectors.

    A fitted transform stays out of sentence-transformers' reach. A prompt is pooled by a module of ours, so
    `SentenceTransformer(…, trust_remote_code=True)` then needs csebench installed.
    """
    encoder.model.config.output_hidden_states = pooler in TWO_LAYERS  # sentence-transformers reads it
    encoder.model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    if transform is not None:
        transform.save(folder)
        return
    if pooler in TEMPLATES:
        write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "csebench.prompt.Prompt"}])
        return
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": encoder.longest, "do_lower_case": False})
    modules = [("", "Transformer")]
    if pooler in TWO_LAYERS:
        modules.append(("1_WeightedLayerPooling", "WeightedLayerPooling"))
        weights = np.zeros(encoder.layers + 1, dtype=np.float32)  # of the embeddings and every layer
        weights[list(TWO_LAYERS[pooler])] = 1
        config = {"word_embedding_dimension": encoder.size, "num_hidden_layers": encoder.layers, "layer_start": 0}
        write_json(folder / modules[-1][0] / "config.json", config)
        save_file({"layer_weights": weights}, folder / modules[-1][0] / "model.safetensors")
    modules.append((f"{len(modules)}_Pooling", "Pooling"))
    cls = pooler in ("cls", "cls_before_pooler")
    config = {"pooling_mode_cls_token": cls, "pooling_mode_mean_tokens": not cls}
    write_json(folder / modules[-1][0] / "config.json", {"word_embedding_dimension": encoder.size, **config})
    if pooler == "cls":
        modules.append(("2_Dense", "Dense"))
        config = {"in_features": encoder.size, "out_features": encoder.size, "bias": True}
        write_json(folder / modules[-1][0] / "config.json", config | {"activation_function": TANH})
        dense = encoder.model.pooler.dense.state_dict()
        save_file({f"linear.{k}": v.cpu().numpy() for k, v in dense.items()}, folder / "2_Dense/model.safetensors")
    listed = [{"idx": i, "name": str(i), "path": p, "type": f"{ST}.{kind}"} for i, (p, kind) in enumerate(modules)]
    write_json(folder / "modules.json", listed)
