"""A Hugging Face encoder with its tokenizer: loading, tokenising, one forward pass, attention
maps on request."""

import copy
import inspect
import itertools
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import nn
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForTextEncoding,
    AutoTokenizer,
)
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils import logging

from csebench.base.errors import BadInput, first_line
from csebench.base.files import read_json
from csebench.base.gpus import device_type
from csebench.base.hub import fetch_model, local_folder
from csebench.base.models import (
    check_foreign,
    check_model,
    check_revision,
    check_vocabulary,
    unreadable_model,
)
from csebench.model.chunks import in_chunks
from csebench.model.families import AVERAGES, dropout_keys, family_of
from csebench.model.layers import (
    Layers,
    additive,
    at_position,
    bert_layer,
    fused_layer,
    to_device,
    use_cheap_dropout,
)
from csebench.model.pooling import ONE_POSITION, PROMPT_TEMPLATES, TWO_LAYERS, Encoded
from csebench.model.weights import check_weights
from csebench.plan.schema.declarations import EncoderRef
from csebench.plan.schema.spec import RUNS

logging.set_verbosity_error()  # else every load reports the masked-LM head that we do not want
logging.disable_progress_bar()

MODULES_FILE = "modules.safetensors"  # what a method exports beside its encoder
NO_MASK = "the tokenizer has no mask token; name one as mask_token in tokenizer_config.json."
BERTS = ("bert", "roberta")  # whose modules are laid out alike
# multiples of tokens, by kind of device, so that few shapes are compiled; else 1
PADDED_TO = {"cuda": 8}
POSITIONS = ("max_position_embeddings", "max_encoder_position_embeddings")  # the second is LED's
UNLIMITED = 10**9  # tokens: longer than any sentence
# they begin alike
TRIAL = ("a sentence", "a sentence that goes on, with more words than the other")
SAME = 1e-4  # relative difference of hidden states that is rounding


@dataclass(frozen=True)
class SpecialTokens:
    """How many special tokens a tokenizer puts around a sentence."""

    before: int
    behind: int


@dataclass(frozen=True)
class Traits:
    """What a trial of a model shows: what its hidden states can be used for.

    Attributes:
        left_to_right: a token does not see those behind it.
        hides_padding: padding behind a sentence does not change its states.
        all_layers: it gives the states of every layer.
        pooler: it has a pooler layer.
    """

    left_to_right: bool
    hides_padding: bool
    all_layers: bool
    pooler: bool


class Encoder(nn.Module):
    """A Hugging Face encoder with its tokenizer; eager attention, which is faster at short
    lengths and keeps maps."""

    def __init__(self, model, tokenizer, source: Any = None):
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.source = source  # the folder that it was loaded from
        pooler = getattr(model, "pooler", None) is not None
        self.traits = Traits(
            left_to_right=False, hides_padding=True, all_layers=True, pooler=pooler
        )
        use_cheap_dropout(model)
        self.attention_layers: set[int] = set()  # whose attention maps `forward` returns
        self.compiled_layer: Callable | None = None  # of `bert_layer`, for training
        self.dropout: float | None = None  # as set last; None: as the model has it
        # sentences that are in memory at a time, in training; None: the batch
        self.chunk_size: int | None = None
        # token ids by sentence, where sentences are seen again
        self.known_ids: dict[str, np.ndarray] | None = None

    @classmethod
    def load(
        cls,
        ref: EncoderRef,
        dropout: float | None = None,
        with_pooler: bool = False,
        new_pooler: bool = False,
    ) -> "Encoder":
        """Load from a folder, or from the hub at a pinned revision; fp32, on the GPU if there is
        one.

        Args:
            dropout: probability to train with; None: as the checkpoint has it.
            with_pooler: load the pooler layer, if it has one.
            new_pooler: a pooler that the checkpoint lacks is new, to be trained.

        Raises:
            BadInput: there is none, it cannot be read, it is not whole, or csebench cannot use its
            architecture.
            RunFailed: the hub cannot be reached, or there is a GPU without CUDA.
        """
        source = fetch_model(ref)
        if local_folder(ref) is not None:  # files of the hub are checked when they are fetched
            check_model(source)
            check_revision(source, ref.revision)
        what = f"encoder {ref.name}"
        check_foreign(source)
        check_full_precision(source)
        config = read_config(source, what)
        changes: dict[str, Any] = {}
        if dropout is not None:
            changes = dict.fromkeys(dropout_keys(config.model_type, what), dropout)
        family = family_of(config.model_type)
        loader = AutoModel
        kind: Any = MODEL_MAPPING[type(config)]
        if isinstance(kind, tuple):  # of an architecture with several, AutoModel takes the first
            kind = kind[0]
        with_pooler = with_pooler and "cls" in family.poolers
        if family.encoder_only:
            loader = AutoModelForTextEncoding
        elif "add_pooling_layer" in inspect.signature(kind).parameters:
            changes["add_pooling_layer"] = with_pooler
        try:
            tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            model, loading = loader.from_pretrained(
                source,
                trust_remote_code=False,
                attn_implementation="eager",
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                **changes,
            )
        except Exception as e:  # of transformers, tokenizers or safetensors, by what is damaged
            raise unreadable_model(what, e) from None
        if not family.dropout:
            name_padding(tokenizer)
            model.config.use_cache = False  # a decoder would keep keys and values for a next token
        check_vocabulary(tokenizer, config, what)
        check_weights(model, loading, what, () if with_pooler and not new_pooler else ("pooler",))
        encoder = cls(model, tokenizer, source)
        encoder.check_tokenizer(what)
        if not encoder.stack:
            encoder.traits = encoder.try_out(what)
        return encoder.to(device_type())

    @property
    def size(self) -> int:
        return self.model.config.hidden_size

    @property
    def num_layers(self) -> int:
        return self.model.config.num_hidden_layers

    @cached_property
    def max_seq_length(self) -> int:
        """Tokens of a sentence that are read: as many as model and tokenizer allow."""
        positions = position_limit(self.model)
        return min(positions or UNLIMITED, self.tokenizer.model_max_length)

    @cached_property
    def special_tokens(self) -> SpecialTokens:
        """How many special tokens stand around a sentence."""
        special = self.tokenizer(TRIAL[0], return_special_tokens_mask=True)["special_tokens_mask"]
        before = len(list(itertools.takewhile(bool, special)))
        behind = len(list(itertools.takewhile(bool, special[before:][::-1])))
        return SpecialTokens(before, behind)

    @cached_property
    def keeps_end(self) -> bool:
        """Whether a long sentence keeps its end, and not its beginning."""
        return self.tokenizer.truncation_side == "left"

    def check_tokenizer(self, what: str) -> None:
        """Refuse a tokenizer that leaves no room for a word."""
        stated = self.tokenizer.model_max_length
        if not isinstance(stated, int) and stated != float("inf"):
            raise BadInput(
                f"{what}: tokenizer_config.json: model_max_length: {stated!r} is no whole number;"
                " correct it."
            )
        special = self.special_tokens
        if self.max_seq_length <= special.before + special.behind:
            raise BadInput(
                f"{what}: tokenizer_config.json: model_max_length: {stated} tokens"
                " leave no room for a word; correct it."
            )

    def try_out(self, what: str) -> Traits:
        """Embed two texts, alone and together, to find out what the hidden states can be used for.

        Raises:
            BadInput: there is no hidden state for every token of a text.
        """
        short, long = self.ids(list(TRIAL))
        if not short:
            raise self.unusable(what, f"its tokenizer finds no token in {TRIAL[0]!r}")
        together = self.pad([short, long])
        modes = {module: module.training for module in self.modules()}
        self.eval()
        try:
            alone = self.hidden_states(self.pad([short]))
            other = self.hidden_states(self.pad([long]))
            both = self.hidden_states(together)
            layers = self.hidden_states(together, every=True).get("hidden_states") or ()
        # of the model's own code, which expects pictures, sound or a second text
        except Exception as e:
            raise self.unusable(what, first_line(e)) from None
        finally:
            for module, training in modes.items():
                module.training = training
        if both.last_hidden_state.shape[:2] != together["input_ids"].shape:
            raise self.unusable(what, "it has another number of states than of tokens")
        states, padded = alone.last_hidden_state[0], both.last_hidden_state[0, : len(short)]
        first, first_of_longer = states[:1], other.last_hidden_state[0, :1]
        same_shape = all(layer.shape == both.last_hidden_state.shape for layer in layers)
        return Traits(
            left_to_right=are_same(first, first_of_longer),
            hides_padding=are_same(states, padded),
            all_layers=same_shape and len(layers) == self.num_layers + 1,
            pooler=both.get("pooler_output") is not None,
        )

    @torch.no_grad()
    def hidden_states(self, batch: dict[str, torch.Tensor], every: bool = False) -> Any:
        """The output of the model as it is for a padded batch."""
        batch = {key: value.to(self.device) for key, value in batch.items()}
        return self.model(**batch, output_hidden_states=every)

    def unusable(self, what: str, reason: str) -> BadInput:
        kind = self.model.config.model_type
        return BadInput(
            f"{what}: {kind} gives no hidden state for every token of a text ({reason}); use"
            " another."
        )

    def why_not(self, pooler: str) -> str | None:
        """The reason why sentence vectors cannot be made with a pooler; None if they can."""
        traits, special = self.traits, self.special_tokens
        reads_first = pooler in ("cls", "cls_before_pooler")
        if pooler not in family_of(self.model.config.model_type).poolers:
            return "this architecture has no such vector (docs/encoders.md)"
        if pooler == "cls" and not traits.pooler:
            return "the model has no pooler layer"
        if reads_first and special.before == 0:
            return "its tokenizer puts no special token before a sentence"
        if reads_first and traits.left_to_right:
            return (
                "the model reads from left to right, so the first token knows nothing of the"
                " sentence"
            )
        if pooler in TWO_LAYERS and not traits.all_layers:
            return "the model does not give the states of every layer"
        return None

    def check_pooler(self, pooler: str, what: str) -> None:
        """Raises BadInput where sentence vectors cannot be made with a pooler."""
        reason = self.why_not(pooler)
        if reason is not None:
            possible = ", ".join(other for other in AVERAGES if self.why_not(other) is None)
            kind = self.model.config.model_type
            raise BadInput(f"{what} ({kind}): pooler {pooler}: {reason}. Use another: {possible}.")

    def check_trainable(self, pooler: str, what: str) -> None:
        """Raises BadInput where the methods cannot train this encoder with a pooler."""
        config, special = self.model.config, self.special_tokens
        dropout_keys(config.model_type, what)
        if getattr(config, "is_decoder", False):
            raise BadInput(
                f"{what}: config.json: is_decoder is true: it reads from left to right, and methods"
                " train encoders that read both ways; set it to false or use another."
            )
        if special != SpecialTokens(1, 1):
            raise BadInput(
                f"{what}: its tokenizer puts {special.before} special tokens before a sentence and"
                f" {special.behind} behind it, but methods need one on each side; restore the"
                " post-processor of tokenizer.json."
            )
        self.check_pooler(pooler, what)
        if pooler == "cls" and not has_bert_pooler(self.model):
            raise BadInput(
                f"{what}: pooler cls: the pooler layer of {config.model_type} is not BERT's, and is"
                " not trained; use another pooler."
            )

    @property
    def device(self):
        return self.model.device

    def copy(self, layers: int | None = None) -> "Encoder":
        """A second encoder with the same weights (CT's second, MoCo's momentum encoder), or its
        lowest layers only."""
        model = copy.deepcopy(self.model)
        if layers is not None:
            self.check_layers()
            model.encoder.layer = model.encoder.layer[:layers]
            model.config.num_hidden_layers = layers
        copied = Encoder(model, self.tokenizer, self.source)
        copied.traits = self.traits
        return copied

    def new_layers(self, count: int) -> Layers:
        """New layers of this encoder's kind and size."""
        self.check_layers()
        return Layers(type(self.model.encoder.layer[0]), self.model.config, count)

    def masked_lm(self):
        """The checkpoint's masked language model, a second copy; of a checkpoint without one its
        head is new."""
        if self.tokenizer.mask_token is None:
            raise BadInput(f"{self.source}: {NO_MASK}")
        try:
            model = AutoModelForMaskedLM.from_pretrained(
                self.source, dtype=torch.float32, trust_remote_code=False
            )
        except ValueError:  # transformers has no such class of this architecture
            kind = self.model.config.model_type
            raise BadInput(
                f"{self.source}: {kind} has no masked language model, which the method needs."
            ) from None
        self.load_module("lm_head", head_of(model))
        return model.to(self.device)

    def lm_head(self, tied: bool = False) -> nn.Module:
        """The checkpoint's masked-LM head.

        Args:
            tied: its last layer has the word embeddings of this encoder as its weights, so that
                they are trained together, as in BertForMaskedLM; else a copy of them (SimCSE
                train.py:371-373).
        """
        masked_lm = self.masked_lm()
        if tied:
            masked_lm.get_output_embeddings().weight = self.model.get_input_embeddings().weight
        return head_of(masked_lm)

    def load_module(self, name: str, module: nn.Module) -> None:
        """Fill a module from what the run that made this encoder exported, if it is of such a
        run. Raises BadInput where that is of another shape."""
        file = self.source / MODULES_FILE
        if not file.exists():
            return
        stored = {
            k.removeprefix(f"{name}."): v
            for k, v in load_file(file).items()
            if k.startswith(f"{name}.")
        }
        try:
            module.load_state_dict({k: torch.from_numpy(v) for k, v in stored.items()})
        except RuntimeError as e:
            raise BadInput(
                f"{file}: {name}: has not the layers that this run asks for: {e}"
            ) from None

    def set_dropout(self, p: float) -> None:
        self.dropout = p
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = p
        attentions: list[Any] = list(self.model.modules())
        for attention in attentions:
            if isinstance(getattr(attention, "attention_dropout", None), float):
                attention.attention_dropout = p  # ModernBERT's, which is no module

    @property
    def stack(self) -> Any:
        """The layers of a BERT or RoBERTa.

        Empty for other kinds, whose layout is not known here, and for a BERT that reads from left
        to right. These are computed by their own `forward`.
        """
        config = self.model.config
        if config.model_type not in BERTS or getattr(config, "is_decoder", False):
            return nn.ModuleList()
        return self.model.encoder.layer

    def check_layers(self) -> None:
        """Raises BadInput where the layers are needed one by one, but their layout is not known."""
        if not self.stack:
            kind = self.model.config.model_type
            raise BadInput(
                f"encoder {self.source}: {kind}: its attention maps and layers are not known one by"
                " one, which only works with a BERT or RoBERTa; use one, or another method or"
                " evaluator."
            )

    def compile_layers(self) -> None:
        """Let torch.compile fuse the layers in training, but the last where it works on one
        position only. Layers have equal code, so one is compiled for all of them, and for all jobs:
        the compiler's cache is in runs/.
        """
        from torch._inductor.runtime.cache_dir_utils import cache_dir, default_cache_dir

        if self.stack:
            # which importing torch._dynamo has set
            if cache_dir() == os.path.abspath(default_cache_dir()):
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = str((RUNS / ".inductor").resolve())
            self.compiled_layer = fused_layer()

    def ids(self, sentences: list[str], max_length: int | None = None) -> list[list[int]]:
        """Token ids, cut at `max_length`, else at what the encoder can read."""
        longest, known = self.max_seq_length, self.known_ids
        limit = min(max_length or longest, longest)
        if known is None:
            return self.tokenizer(sentences, truncation=True, max_length=limit)["input_ids"]
        if new := list(dict.fromkeys(s for s in sentences if s not in known)):
            rows = self.tokenizer(new, truncation=True, max_length=longest)["input_ids"]
            small = np.uint16 if len(self.tokenizer) <= 2**16 else np.uint32
            known.update((s, np.array(row, small)) for s, row in zip(new, rows, strict=True))
        return [self.cut(known[s].tolist(), limit) for s in sentences]

    def cut(self, row: list[int], limit: int) -> list[int]:
        """Shorten a row of token ids as the tokenizer would."""
        if len(row) <= limit:
            return row
        before, words, behind = self.parts(row)
        return [*before, *self.shorten(words, limit - len(before) - len(behind)), *behind]

    def parts(self, row: list[int]) -> tuple[list[int], list[int], list[int]]:
        """The special tokens before the words of a row, the words, and the special tokens behind
        them."""
        start, end = self.special_tokens.before, len(row) - self.special_tokens.behind
        return row[:start], row[start:end], row[end:]

    def shorten(self, words: list[int], room: int) -> list[int]:
        """Keep as many words as there is room for, on the side that the tokenizer keeps."""
        left_out = max(0, len(words) - room)
        if self.keeps_end:
            return words[left_out:]
        return words[: len(words) - left_out]

    def in_template(self, rows: list[list[int]], pooler: str | None) -> list[list[int]]:
        """Sentences' ids in the template of a pooler that has one; the sentence gives way where
        both are too long."""
        if pooler not in PROMPT_TEMPLATES:
            return rows
        if self.tokenizer.mask_token is None:
            raise BadInput(f"--pooler {pooler}: {NO_MASK}")
        template = PROMPT_TEMPLATES[pooler].replace("[MASK]", self.tokenizer.mask_token)
        before, after = (
            self.tokenizer(t, add_special_tokens=False)["input_ids"] for t in template.split("[X]")
        )
        special = self.special_tokens
        room = self.max_seq_length - len(before) - len(after) - special.before - special.behind
        filled = []
        for row in rows:
            first, words, last = self.parts(row)
            filled.append([*first, *before, *self.shorten(words, room), *after, *last])
        return filled

    def pad(self, rows: list[list[int]], length: int | None = None) -> dict[str, torch.Tensor]:
        """Rows of token ids as a batch, padded to `length`, else to the longest, and up to
        PADDED_TO. It stays on the host, where masks and edits are drawn and positions are looked up
        without waiting for the device.
        """
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        longest, step = max(1, int(lengths.max())), PADDED_TO.get(self.device.type, 1)
        if not self.traits.hides_padding:
            step = 1
        length = length or max(longest, min(-(-longest // step) * step, self.max_seq_length))
        real = np.arange(length) < lengths[:, None]
        ids = np.full(real.shape, self.tokenizer.pad_token_id)
        ids[real] = np.fromiter(itertools.chain.from_iterable(rows), np.int64, lengths.sum())
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(real.astype(np.int64)),
        }

    def tokenize(
        self, sentences: list[str], max_length: int | None = None, pooler: str | None = None
    ):
        return self.pad(self.in_template(self.ids(sentences, max_length), pooler))

    def forward(
        self, batch, pooler: str | None = None, first: torch.Tensor | None = None
    ) -> Encoded:
        """One pass over a tokenised batch, which computes no more than `pooler` reads (None: every
        hidden state).

        Where that is the state at one position, the last layer of a BERT works on that position
        only behind its attention: `last_hidden_state` is (N, 1, D). In training, a batch of more
        than `chunk_size` sentences is computed in chunks.

        Args:
            first: (N, D) takes the place of what the embedding layer gives at position 0.
        """
        ids, mask = (to_device(batch[key], self.device) for key in ("input_ids", "attention_mask"))
        if self.attention_layers:
            self.check_layers()
        layers, run = sorted(self.attention_layers), partial(self._run, pooler, self.dropout)
        output, maps = in_chunks(run, self.chunk_size if self.training else None, ids, mask, first)
        return Encoded(
            output,
            ids,
            mask.bool(),
            self.tokenizer.mask_token_id,
            dict(zip(layers, maps, strict=True)),
        )

    @contextmanager
    def first_replaced(self, first: torch.Tensor | None) -> Iterator[None]:
        """Let the embedding layer give `first` (N, D) at position 0, if it is given."""

        if first is None:
            yield
            return
        vectors = first.unsqueeze(1)

        def replace(_, __, states):
            return torch.cat([vectors.to(states.dtype), states[:, 1:]], 1)

        with self.model.embeddings.register_forward_hook(replace):
            yield

    def _run(self, pooler: str | None, dropout: float | None, ids, mask, first) -> tuple:
        """The model's output for (N, T) ids, and its attention maps in the order of the layers
        asked for.

        Args:
            dropout: as `set_dropout` had it in the forward pass.
        """
        if dropout != self.dropout:  # computed again, after another view had set its own
            assert dropout is not None
            self.set_dropout(dropout)
        every = pooler is None or pooler in TWO_LAYERS
        if not self.stack:
            with self.first_replaced(first):
                return (
                    self.model(input_ids=ids, attention_mask=mask, output_hidden_states=every),
                    (),
                )
        with self.first_replaced(first):
            states = self.model.embeddings(input_ids=ids)
        encoded = Encoded(None, ids, mask.bool(), self.tokenizer.mask_token_id)
        run_layer = self.compiled_layer if self.compiled_layer and self.training else bert_layer
        hidden, maps, added = [states] if every else [], [], additive(mask)
        for number, layer in enumerate(self.stack):
            select = None
            if pooler in ONE_POSITION and layer is self.stack[-1]:
                run_layer, select = (
                    bert_layer,
                    partial(at_position, position=encoded.position(pooler)),
                )
            states, attention = run_layer(
                layer, states, added, number in self.attention_layers, select
            )
            hidden += [states] if every else []
            maps += [attention] if number in self.attention_layers else []
        pooled = None if self.model.pooler is None else self.model.pooler(states)
        output = BaseModelOutputWithPooling(states, pooled, tuple(hidden) if every else None)
        return output, tuple(maps)


def read_config(source: Any, what: str) -> Any:
    """The configuration of a model that `AutoModel` can load.

    Raises:
        BadInput: it cannot be read, or has no encoder.
    """
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    except Exception as e:  # of transformers, by what is damaged
        raise unreadable_model(what, e) from None
    if type(config) not in MODEL_MAPPING:
        raise BadInput(
            f"{what}: config.json: model_type {config.model_type} has no encoder in transformers."
        )
    return config


def check_full_precision(folder: Path, pattern: str = "config.json") -> None:
    """Raises BadInput for a quantised model: scores would name a precision that it does not
    have."""
    for file in sorted(folder.glob(pattern)):
        content = read_json(file)
        if isinstance(content, dict) and content.get("quantization_config") is not None:
            raise BadInput(
                f"{file}: quantization_config: the model is quantised; use its unquantised"
                " original."
            )


def name_padding(tokenizer: Any) -> None:
    """Name a padding token where the tokenizer of a decoder has none.

    Padding stands behind a sentence and is masked, so it does not matter which token it is.
    """
    if getattr(tokenizer, "pad_token", "") is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token


def position_limit(model: Any) -> int | None:
    """Tokens for which a model has positions; None if it has no such limit.

    The positions of RoBERTa and its kin start behind that of padding. XLNet states -1.
    """
    positions = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    stated = [getattr(model.config, key, None) or -1 for key in POSITIONS]
    limits = [limit for limit in stated if limit > 0]
    if not limits:
        return None
    if padding is None:
        return min(limits)
    return min(limits) - padding - 1


def are_same(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether hidden states are equal within rounding."""
    return bool((one - two).abs().max() <= SAME * one.abs().max())


def has_bert_pooler(model: Any) -> bool:
    """Whether the pooler layer is BERT's: a linear layer and tanh, which is how a run exports
    it."""
    pooler: Any = getattr(model, "pooler", None)
    return isinstance(getattr(pooler, "dense", None), nn.Linear) and isinstance(
        pooler.activation, nn.Tanh
    )


def head_of(masked_lm) -> nn.Module:
    """The masked-LM head of a BERT (`cls`), a RoBERTa (`lm_head`), or a DistilBERT, which has
    three modules for it. Raises BadInput for a model of another kind."""
    for name in ("cls", "lm_head"):
        if hasattr(masked_lm, name):
            return getattr(masked_lm, name)
    if hasattr(masked_lm, "vocab_projector"):
        # in the order of its forward
        names = ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector")
        return nn.Sequential(OrderedDict((name, getattr(masked_lm, name)) for name in names))
    raise BadInput(
        f"{type(masked_lm).__name__}: its masked-LM head is not known; use a BERT, RoBERTa or"
        " DistilBERT."
    )
