"""A Hugging Face encoder with its tokenizer.

`Encoder` loads a model and checks what the model can be used for. It makes batches of texts, and
computes one forward pass, with attention maps on request. From the result, the poolers in
csebench/model/pooling.py make sentence vectors. csebench/model/families.py lists the architectures.
"""

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
from safetensors import SafetensorError, safe_open
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

from csebench.base.errors import BadInput, first_line, validated
from csebench.base.files import read_json
from csebench.base.gpus import device_type
from csebench.base.hub import check_local_model, fetch_model
from csebench.base.models import (
    FACTS,
    added_folder,
    check_foreign,
    check_vocabulary,
    read_facts,
    unreadable_model,
)
from csebench.model.chunks import in_chunks
from csebench.model.families import (
    AVERAGES,
    BERT_LAYERS,
    LAST_TOKEN,
    dropout_keys,
    family_of,
)
from csebench.model.layers import (
    Layers,
    Prefix,
    additive,
    at_position,
    bert_layer,
    fused_layer,
    to_device,
    use_cheap_dropout,
)
from csebench.model.pooling import (
    ONE_POSITION,
    PROMPT_TEMPLATES,
    TEXT_TEMPLATES,
    TWO_LAYERS,
    Encoded,
)
from csebench.model.weights import check_weights
from csebench.plan.catalog.registry import METHODS, adapter_names, declaration, load
from csebench.plan.schema.declarations import EncoderRef
from csebench.plan.schema.spec import RUNS

logging.set_verbosity_error()  # else transformers reports the masked-LM head at every load
logging.disable_progress_bar()

MODULES_FILE = "modules.safetensors"  # further modules that a method exports
PREFIX_KEY = "prefix.vectors"  # there, the weights of a prefix
FEATURE_LAYER = "feature_layer"  # there, the name before the weights of a feature layer
OF_FEATURES = (None, "avg")  # poolers with which a forward pass computes features
NO_MASK = "the tokenizer has no mask token; name one as mask_token in tokenizer_config.json."
# Masked-LM heads. Each row names the modules of one head, first to last.
HEADS = (
    ("cls",),  # BERT
    ("lm_head",),  # RoBERTa
    ("predictions",),  # ALBERT
    ("head", "decoder"),  # ModernBERT
    ("generator_predictions", "generator_lm_head"),  # ELECTRA
    ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),  # DistilBERT
)
# Pad batches to a multiple of so many tokens, by type of device. A layer is compiled for each
# shape, so there should be few shapes. Other devices compile nothing, and pad to the longest row.
PADDED_TO = {"cuda": 8}
POSITIONS = ("max_position_embeddings", "max_encoder_position_embeddings")  # the second is LED's
UNLIMITED = 10**9  # tokens: longer than any sentence
# Two texts that begin with the same words.
TRIAL = ("a sentence", "a sentence that goes on, with more words than the other")
SAME = 1e-4  # a relative difference of hidden states up to this is rounding


@dataclass(frozen=True)
class SpecialTokens:
    """How many special tokens a tokenizer puts around a sentence."""

    before: int
    after: int


@dataclass(frozen=True)
class Traits:
    """What a model's hidden states can be used for."""

    left_to_right: bool  # a token does not see the tokens after it
    hides_padding: bool  # padding after a sentence does not change its states
    all_layers: bool  # the model gives the states of every layer
    pooler: bool  # the model has a pooler layer


class Encoder(nn.Module):
    """A Hugging Face encoder with its tokenizer.

    Attention is eager: this is faster at short lengths, and attention maps can be returned.

    Methods that take `what` use it in messages: it says which model a problem is about.
    """

    def __init__(self, model, tokenizer, source: Any = None):
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer
        self.source = source  # the folder that it was loaded from
        has_pooler = getattr(model, "pooler", None) is not None
        self.traits = Traits(
            left_to_right=False, hides_padding=True, all_layers=True, pooler=has_pooler
        )
        use_cheap_dropout(model)
        self.attention_layers: set[int] = set()  # layers whose attention maps `forward` returns
        self.compiled_layer: Callable | None = None  # `bert_layer`, compiled for training
        self.dropout: float | None = None  # the value last set; None: that of the checkpoint
        # in training, how many sentences are computed at a time; None: the whole batch
        self.chunk_size: int | None = None
        # token ids by sentence, so that training tokenises each sentence once; None: not kept
        self.known_ids: dict[str, np.ndarray] | None = None

    @classmethod
    def load(
        cls,
        ref: EncoderRef,
        dropout: float | None = None,
        with_pooler: bool = False,
        new_pooler: bool = False,
        as_part: bool = False,
    ) -> "Encoder":
        """Load an encoder in fp32, on the GPU if there is one.

        The encoder comes from a folder, or from the hub at a pinned revision.

        Args:
            dropout: probability to train with. None: the checkpoint's own.
            with_pooler: load the pooler layer, if the architecture has one.
            new_pooler: if the checkpoint lacks the pooler layer, make a new one, to be trained.
            as_part: load an encoder although its model has more parts. `load_all` sets this.

        Raises:
            BadInput: there is no such encoder, it cannot be read, weights are missing, csebench
                cannot use its architecture, or the model has more parts than one encoder.
            RunFailed: the hub cannot be reached, or PyTorch cannot use the GPU.
        """
        # Get the files, and check them.
        source = fetch_model(ref)
        what = f"encoder {ref.name}"
        check_local_model(ref)
        check_foreign(source)
        check_full_precision(source)
        if not as_part:
            refuse_more_parts(source, what)

        # Choose the class and the settings with which transformers loads them.
        config = read_config(source, what)
        changes: dict[str, Any] = {}
        if dropout is not None:
            changes = dict.fromkeys(dropout_keys(config.model_type, what), dropout)
        family = family_of(config.model_type)
        with_pooler = with_pooler and "cls" in family.poolers
        loader = AutoModel
        if family.encoder_only:
            loader = AutoModelForTextEncoding
        elif may_leave_out_pooler(config):
            changes["add_pooling_layer"] = with_pooler

        # Load the model and its tokenizer.
        try:
            tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            model, loading = loader.from_pretrained(
                source,
                trust_remote_code=False,
                attn_implementation="eager",
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # `check_weights` refuses them, by name
                **changes,
            )
        except Exception as error:  # several libraries read the files, each with its own errors
            raise unreadable_model(what, error) from None
        if not family.dropout:
            name_padding(tokenizer)
            model.config.use_cache = False  # a decoder would keep keys and values for a next token

        # Check that nothing is missing, and find out what the model can be used for.
        check_vocabulary(tokenizer, config, what)
        may_be_new = ("pooler",)  # the pooler layer is not used, or trained from new weights
        if with_pooler and not new_pooler:
            may_be_new = ()
        check_weights(model, loading, what, may_be_new)
        encoder = cls(model, tokenizer, source)
        encoder.load_prefix()
        encoder.check_tokenizer(what)
        if not encoder.stack:
            encoder.traits = encoder.try_out(what)
        return encoder.to(device_type())

    @classmethod
    def load_all(cls, ref: EncoderRef, with_pooler: bool = False) -> list["Encoder"]:
        """Load the encoders of a model. Most models have one; others sum the vectors of several.

        An encoder gets its feature layer, if it has one.

        Args:
            with_pooler: see `load`.

        Raises:
            BadInput: see `load`; or the vectors of the encoders cannot be added, or a feature layer
                cannot be made.
            RunFailed: see `load`.
        """
        first = cls.load(ref, with_pooler=with_pooler, as_part=True)
        facts = read_facts(first.source)
        encoders = [first]
        for number in range(2, facts["encoders"] + 1):
            folder = added_folder(first.source.resolve(), number)
            part = EncoderRef(name=str(folder), revision="local")
            added = cls.load(part, with_pooler=with_pooler, as_part=True)
            encoders.append(added)
        for encoder in encoders:
            encoder.load_feature_layer(facts)
        for added in encoders[1:]:
            check_summable(first, added, f"encoder {added.source}")
        return encoders

    # ---------------------------------------------------------------- properties

    @property
    def size(self) -> int:
        return self.model.config.hidden_size

    @property
    def embedding_size(self) -> int:
        """The width of the embedding layer. In an ALBERT or ELECTRA, it differs from `size`."""
        return self.model.get_input_embeddings().embedding_dim

    @property
    def feed_forward_size(self) -> int:
        """The width of the feed-forward part of a layer."""
        config = self.model.config
        if hasattr(config, "intermediate_size"):
            return config.intermediate_size
        return config.hidden_dim  # a DistilBERT's name for it

    @property
    def num_layers(self) -> int:
        return self.model.config.num_hidden_layers

    @property
    def device(self):
        return self.model.device

    @property
    def stack(self) -> Any:
        """The layers of an encoder that is laid out like BERT, which csebench computes one by one.

        The stack is empty for other architectures, and for a BERT that reads from left to right.
        Such models are computed by their own `forward`.
        """
        config = self.model.config
        if not family_of(config.model_type).bert_layers or getattr(config, "is_decoder", False):
            return nn.ModuleList()
        return self.model.encoder.layer

    @property
    def prefix(self) -> Prefix | None:
        """What every layer attends to before the tokens of a sentence, or None (`add_prefix`)."""
        return getattr(self.model, "prefix", None)

    @property
    def prefix_length(self) -> int:
        """The number of vectors that every layer attends to before the tokens, P. 0: no prefix."""
        if self.prefix is None:
            return 0
        return self.prefix.length

    @property
    def feature_layer(self) -> nn.Module | None:
        """What makes features from token states before pooling, or None (`add_feature_layer`)."""
        return getattr(self.model, FEATURE_LAYER, None)

    @property
    def vector_size(self) -> int:
        """The width of a sentence vector, which a feature layer may change."""
        if self.feature_layer is None:
            return self.size
        state = torch.zeros(1, 1, self.size, device=self.device)
        is_real = torch.ones(1, 1, dtype=torch.bool, device=self.device)
        with torch.no_grad():
            return self.feature_layer(state, is_real).shape[-1]

    @property
    def added_modules(self) -> dict[str, nn.Module]:
        """The modules of the model that its architecture does not have, by name."""
        modules = {}
        if self.prefix is not None:
            modules["prefix"] = self.prefix
        if self.feature_layer is not None:
            modules[FEATURE_LAYER] = self.feature_layer
        return modules

    @property
    def max_seq_length(self) -> int:
        """The most tokens that the encoder reads, limited by its model and its tokenizer."""
        positions = position_limit(self.model) or UNLIMITED
        return min(positions - self.prefix_length, self.tokenizer.model_max_length)

    @cached_property
    def special_tokens(self) -> SpecialTokens:
        """How many special tokens stand around a sentence."""
        tokens = self.tokenizer(TRIAL[0], return_special_tokens_mask=True)
        is_special = tokens["special_tokens_mask"]
        before = len(list(itertools.takewhile(bool, is_special)))
        from_end = reversed(is_special[before:])
        after = len(list(itertools.takewhile(bool, from_end)))
        return SpecialTokens(before, after)

    @cached_property
    def keeps_end(self) -> bool:
        """Whether a sentence that is too long loses its beginning instead of its end."""
        return self.tokenizer.truncation_side == "left"

    # ---------------------------------------------------------------- sentences to batches

    def tokenize(
        self, sentences: list[str], max_length: int | None = None, pooler: str | None = None
    ):
        """Make a padded batch of sentences, in the template of the pooler if it has one."""
        return self.pad(self.in_template(self.ids(sentences, max_length), pooler))

    def ids(self, sentences: list[str], max_length: int | None = None) -> list[list[int]]:
        """Return the token ids of sentences, cut at `max_length` and at `max_seq_length`.

        If `known_ids` is a dictionary, a sentence is tokenised only once. Its ids are kept there
        without the cut at `max_length`, because calls may differ in it.
        """
        longest = self.max_seq_length
        limit = min(max_length or longest, longest)
        known = self.known_ids
        if known is None:
            return self.tokenizer(sentences, truncation=True, max_length=limit)["input_ids"]
        new = list(dict.fromkeys(sentence for sentence in sentences if sentence not in known))
        if new:
            rows = self.tokenizer(new, truncation=True, max_length=longest)["input_ids"]
            small_type = np.uint16 if len(self.tokenizer) <= 2**16 else np.uint32
            for sentence, row in zip(new, rows, strict=True):
                known[sentence] = np.array(row, small_type)
        return [self.cut(known[sentence].tolist(), limit) for sentence in sentences]

    def cut(self, row: list[int], limit: int) -> list[int]:
        """Shorten a row of token ids to `limit`, as the tokenizer would."""
        if len(row) <= limit:
            return row
        before, words, after = self.parts(row)
        room = limit - len(before) - len(after)
        return [*before, *self.shorten(words, room), *after]

    def parts(self, row: list[int]) -> tuple[list[int], list[int], list[int]]:
        """Split a row into special tokens before the words, words, and special tokens after."""
        start = self.special_tokens.before
        end = len(row) - self.special_tokens.after
        return row[:start], row[start:end], row[end:]

    def shorten(self, words: list[int], room: int) -> list[int]:
        """Keep as many words as there is room for, on the side that the tokenizer keeps."""
        left_out = max(0, len(words) - room)
        if self.keeps_end:
            return words[left_out:]
        return words[: len(words) - left_out]

    def in_template(self, rows: list[list[int]], pooler: str | None) -> list[list[int]]:
        """Put rows of token ids into the template of a pooler, if it has one.

        If a sentence does not fit into the template, the sentence is shortened.
        """
        if pooler not in PROMPT_TEMPLATES:
            return rows
        if self.tokenizer.mask_token is None:
            raise BadInput(f"--pooler {pooler}: {NO_MASK}")
        template = PROMPT_TEMPLATES[pooler].replace("[MASK]", self.tokenizer.mask_token)
        text_before, text_after = template.split("[X]")
        before = self.tokenizer(text_before, add_special_tokens=False)["input_ids"]
        after = self.tokenizer(text_after, add_special_tokens=False)["input_ids"]
        special = self.special_tokens
        room = self.max_seq_length - len(before) - len(after) - special.before - special.after
        filled = []
        for row in rows:
            first, words, last = self.parts(row)
            filled.append([*first, *before, *self.shorten(words, room), *after, *last])
        return filled

    def ids_in_text(
        self, sentences: list[str], pooler: str, max_length: int | None = None
    ) -> list[list[int]]:
        """Put sentences into the text of a pooler, and return the token ids of the whole texts.

        A decoder may join the end of a sentence and what follows it in one token. So `max_length`
        limits the whole text, unlike in `in_template`. If a text is n tokens too long, its sentence
        loses its last n words, until the text fits.
        """
        template = TEXT_TEMPLATES[pooler]
        limit = min(max_length or self.max_seq_length, self.max_seq_length)
        texts = [template.replace("[X]", sentence) for sentence in sentences]
        rows = self.tokenizer(texts)["input_ids"]
        for index, sentence in enumerate(sentences):
            words = sentence.split()
            while len(rows[index]) > limit and words:
                too_many = len(rows[index]) - limit
                words = words[:-too_many]
                text = template.replace("[X]", " ".join(words))
                rows[index] = self.tokenizer(text)["input_ids"]
            if len(rows[index]) > limit:
                raise BadInput(f"pooler {pooler}: its template has more than {limit} tokens.")
        return rows

    def pad(self, rows: list[list[int]], length: int | None = None) -> dict[str, torch.Tensor]:
        """Pad rows of token ids to a batch.

        The batch stays on the host. So masks and edits can be drawn, and positions looked up,
        without waiting for the GPU.

        Args:
            length: number of tokens of every row. None: that of the longest row, rounded up to a
                multiple of PADDED_TO.
        """
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        if not length:
            longest = max(1, int(lengths.max()))
            step = 1
            if self.traits.hides_padding:
                step = PADDED_TO.get(self.device.type, 1)
            rounded_up = -(-longest // step) * step
            length = max(longest, min(rounded_up, self.max_seq_length))
        is_real = np.arange(length) < lengths[:, None]  # (N, T)
        ids = np.full(is_real.shape, self.tokenizer.pad_token_id)  # (N, T)
        ids[is_real] = np.fromiter(itertools.chain.from_iterable(rows), np.int64, lengths.sum())
        return {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(is_real.astype(np.int64)),
        }

    # ---------------------------------------------------------------- forward pass

    def forward(
        self,
        batch,
        pooler: str | None = None,
        first: torch.Tensor | None = None,
        scale: torch.Tensor | None = None,
        words: torch.Tensor | None = None,
    ) -> Encoded:
        """Encode a tokenised batch.

        Only what the pooler reads is computed. Some poolers read the state at one position. Then,
        after its attention, the last layer of the `stack` works on this position only, and
        `last_hidden_state` is (N, 1, D). In training, a batch of more than `chunk_size` sentences
        is computed in chunks.

        Args:
            pooler: None computes every hidden state.
            first: (N, D) vectors that replace the output of the embedding layer at position 0.
            scale: factors on the output of the embedding layer, (N, 1, D) by feature or (N, T, 1)
                by token. D is `embedding_size`.
            words: (N, T, D) word vectors that are read in place of `word_vectors(batch)`. Needs a
                `stack`. D is `embedding_size`.
        """
        ids = to_device(batch["input_ids"], self.device)
        mask = to_device(batch["attention_mask"], self.device)
        if scale is not None:
            scale = to_device(scale, self.device)
        if words is not None:
            self.check_layers()
        if self.attention_layers:
            self.check_layers()
            self.check_maps()
        layers = sorted(self.attention_layers)
        run = partial(self._run, pooler, self.dropout)
        chunk_size = self.chunk_size if self.training else None
        output, maps = in_chunks(run, chunk_size, ids, mask, first, scale, words)
        attention = dict(zip(layers, maps, strict=True))
        encoded = Encoded(output, ids, mask.bool(), self.tokenizer.mask_token_id, attention)
        if self.feature_layer is not None and pooler in OF_FEATURES:
            encoded.features = self.feature_layer(output.last_hidden_state, encoded.mask)
        return encoded

    def _run(
        self, pooler: str | None, dropout: float | None, ids, mask, first, scale, words
    ) -> tuple:
        """Encode the rows of one chunk, or of a whole batch.

        Args:
            dropout: the probability of dropout in the forward pass. The backward pass computes a
                chunk again, and by then another view may have called `set_dropout`.
            ids, mask: (N, T).
            first, scale, words: see `forward`.

        Returns:
            The output of the model, and the attention maps of `attention_layers`, lowest layer
            first.
        """
        if dropout != self.dropout:
            assert dropout is not None
            self.set_dropout(dropout)
        keeps_states = pooler is None or pooler in TWO_LAYERS
        if not self.stack:
            with self.embeddings_changed(first, scale):
                output = self.model(
                    input_ids=ids, attention_mask=mask, output_hidden_states=keeps_states
                )
            return output, ()

        states = self.embedded(ids, first, scale, words)  # (N, T, D)
        encoded = Encoded(None, ids, mask.bool(), self.tokenizer.mask_token_id)
        hidden = []
        if keeps_states:
            hidden.append(states)
        maps = []
        score_mask = additive(self.with_prefix_shown(mask))  # (N, 1, 1, P + T)
        prefixes = self.prefixes(len(ids))
        run_layer = bert_layer
        if self.compiled_layer is not None and self.training:
            run_layer = self.compiled_layer
        for number, layer in enumerate(self.stack):
            select = None
            if pooler in ONE_POSITION and layer is self.stack[-1]:
                run_layer = bert_layer
                select = partial(at_position, position=encoded.position(pooler))
            keeps_map = number in self.attention_layers
            states, attention = run_layer(
                layer, states, score_mask, keeps_map, select, prefixes[number]
            )
            if keeps_states:
                hidden.append(states)
            if keeps_map:
                maps.append(attention)

        pooled = None
        pooler_layer = getattr(self.model, "pooler", None)  # an ELECTRA has no such attribute
        if pooler_layer is not None:
            pooled = pooler_layer(states)
        all_states = tuple(hidden) if keeps_states else None
        return BaseModelOutputWithPooling(states, pooled, all_states), tuple(maps)

    def embedded(self, ids, first, scale, words) -> torch.Tensor:
        """Compute what the lowest layer of the `stack` reads, (N, T, D)."""
        with self.embeddings_changed(first, scale):
            # positions are counted from the start of the prefix
            states = self.model.embeddings(
                input_ids=ids, inputs_embeds=words, past_key_values_length=self.prefix_length
            )
        widen = getattr(self.model, "embeddings_project", None)  # of a small ELECTRA
        if widen is not None:
            states = widen(states)
        return states

    def with_prefix_shown(self, mask: torch.Tensor) -> torch.Tensor:
        """Extend the mask of a batch, so that all tokens see the prefix, (N, T) -> (N, P + T)."""
        if self.prefix is None:
            return mask
        return nn.functional.pad(mask, (self.prefix_length, 0), value=1)

    def prefixes(self, rows: int) -> list:
        """Return the prefix of each layer for a batch, (2, rows, P, D), or None for each layer."""
        if self.prefix is None:
            return [None] * len(self.stack)
        return list(self.prefix(rows))

    def word_vectors(self, batch) -> torch.Tensor:
        """Look up the vectors of the tokens of a batch, (N, T, D), to which positions are added."""
        return self.model.get_input_embeddings()(to_device(batch["input_ids"], self.device))

    @contextmanager
    def embeddings_changed(
        self, first: torch.Tensor | None, scale: torch.Tensor | None
    ) -> Iterator[None]:
        """Multiply the output of the embedding layer by `scale`, then put `first` at position 0.

        Either may be None. See `forward` for their shapes.
        """
        if first is None and scale is None:
            yield
            return

        def change(_, __, states):
            if scale is not None:
                states = states * scale.to(states.dtype)
            if first is not None:
                vectors = first.unsqueeze(1).to(states.dtype)  # (N, 1, D)
                states = torch.cat([vectors, states[:, 1:]], 1)
            return states

        with self.model.embeddings.register_forward_hook(change):
            yield

    def compile_layers(self) -> None:
        """Let torch.compile fuse the layers in training.

        All layers have the same code, so one compiled function serves all of them. The compiler's
        cache is in runs/, so that other runs find it. The last layer is not compiled if it works on
        one position only.
        """
        from torch._inductor.runtime.cache_dir_utils import cache_dir, default_cache_dir

        if self.stack:
            # Importing torch._dynamo has set the default folder. Any other folder is the user's.
            if cache_dir() == os.path.abspath(default_cache_dir()):
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = str((RUNS / ".inductor").resolve())
            self.compiled_layer = fused_layer()

    def set_dropout(self, p: float) -> None:
        """Set the probability of dropout in all layers."""
        self.dropout = p
        modules: list[Any] = list(self.model.modules())
        for module in modules:
            if isinstance(module, nn.Dropout):
                module.p = p
            elif isinstance(getattr(module, "attention_dropout", None), float):
                module.attention_dropout = p  # in ModernBERT this is a number, not a module

    # ---------------------------------------------------------------- copies and heads

    def copy(self, layers: int | None = None) -> "Encoder":
        """Make a second encoder with the same weights.

        Args:
            layers: keep only this many of the lowest layers. None keeps all.
        """
        model = copy.deepcopy(self.model)
        if layers is not None:
            self.check_layers()
            model.encoder.layer = model.encoder.layer[:layers]
            model.config.num_hidden_layers = layers
        copied = Encoder(model, self.tokenizer, self.source)
        copied.traits = self.traits
        return copied

    def add_prefix(self, length: int) -> None:
        """Let every layer attend to `length` trained vectors before the tokens of a sentence.

        The prefix is part of the model: it is copied, trained and exported with it. The position of
        the first token is then `length`, so the encoder reads that many tokens fewer.

        Raises:
            BadInput: the encoder is not laid out like BERT, has a prefix already, or has no
                positions left for words.
        """
        self.check_layers()
        if self.prefix is not None:
            raise BadInput(
                f"encoder {self.source}: it has a prefix already, from an earlier run; start from"
                " another encoder."
            )
        config = self.model.config
        prefix = Prefix(
            layers=self.num_layers,
            length=length,
            size=self.size,
            std=config.initializer_range,
            dropout=config.hidden_dropout_prob,
        )
        self.model.prefix = prefix.to(self.device)
        special = self.special_tokens
        if self.max_seq_length <= special.before + special.after:
            raise BadInput(
                f"encoder {self.source}: a prefix of {length} takes the positions of all words;"
                " use a shorter one."
            )

    def load_prefix(self) -> None:
        """Add the prefix that an earlier run exported, if it exported one.

        Raises:
            BadInput: the exported weights cannot be read, or do not fit the encoder.
        """
        shape = exported_shapes(self.source).get(PREFIX_KEY)
        if shape is None:
            return
        try:
            _, _, length, _ = shape
        except ValueError as error:
            file = self.source / MODULES_FILE
            raise unreadable_model(f"{file}: prefix", error) from None
        self.add_prefix(length)
        self.load_module("prefix", self.model.prefix)

    def add_feature_layer(self, layer: nn.Module) -> None:
        """Let a trained layer make features from the states of tokens. Their mean is pooled.

        The layer is part of the model: it is copied, trained and exported with it.

        Args:
            layer: maps states (N, T, H) and a mask (N, T), True at real tokens, to features
                (N, T, D). Padding must not change the features of real tokens.
        """
        self.model.add_module(FEATURE_LAYER, layer.to(self.device))

    def load_feature_layer(self, facts: dict) -> None:
        """Add the feature layer that an earlier run exported, if it exported one.

        Its method makes the layer, and the exported weights fill it.

        Args:
            facts: of the model, with the name of the method and its parameters.

        Raises:
            BadInput: the exported weights cannot be read or do not fit, the method has no such
                parameters, or the project does not have the method.
        """
        if not has_feature_layer(self.source):
            return
        method = facts["method"]
        if method is None or method not in adapter_names(METHODS):
            name = method or f"which {FACTS} does not state"
            raise BadInput(
                f"{self.source / MODULES_FILE}: the method that trained this feature layer ({name})"
                f" also makes it, but this project does not have the method. Add its file to"
                f" {METHODS}/."
            )
        declared = declaration(method)
        stated = {**declared.unstated, **facts["params"]}
        params = validated(declared.hyperparameters, stated, f"{self.source / FACTS}: params")
        layer = load(method).feature_layer(self.size, params)
        if layer is None:
            raise BadInput(
                f"{self.source / MODULES_FILE}: {method} makes no feature layer with the parameters"
                f" in {FACTS}; restore its file as it was when the model was trained."
            )
        self.add_feature_layer(layer)
        self.load_module(FEATURE_LAYER, self.model.get_submodule(FEATURE_LAYER))

    def new_layers(self, count: int) -> Layers:
        """Make new layers of this encoder's kind and size."""
        self.check_layers()
        return Layers(type(self.model.encoder.layer[0]), self.model.config, count)

    def masked_lm(self):
        """Load the masked language model of the checkpoint. It shares no weights with this encoder.

        If the checkpoint has no masked-LM head, the head is new.

        Raises:
            BadInput: the tokenizer has no mask token, or the architecture has no masked language
                model.
        """
        if self.tokenizer.mask_token is None:
            raise BadInput(f"{self.source}: {NO_MASK}")
        try:
            model = AutoModelForMaskedLM.from_pretrained(
                self.source, dtype=torch.float32, trust_remote_code=False
            )
        except ValueError:  # transformers has no such class for this architecture
            kind = self.model.config.model_type
            raise BadInput(
                f"{self.source}: {kind} has no masked language model, which the method needs."
            ) from None
        self.load_module("lm_head", head_of(model))
        return model.to(self.device)

    def lm_head(self, tied: bool = False) -> nn.Module:
        """Load the masked-LM head of the checkpoint.

        Args:
            tied: let the last layer of the head share the word embeddings of this encoder, so that
                both are trained together, as in BertForMaskedLM. Otherwise the last layer has a
                copy of the word embeddings (SimCSE train.py:371-373).
        """
        masked_lm = self.masked_lm()
        if tied:
            masked_lm.get_output_embeddings().weight = self.model.get_input_embeddings().weight
        return head_of(masked_lm)

    def load_module(self, name: str, module: nn.Module) -> None:
        """Fill a module with weights that an earlier run exported.

        A run may export further modules with its encoder. If this encoder comes without the module,
        the module stays as it is.

        Raises:
            BadInput: the exported weights do not fit the module.
        """
        file = self.source / MODULES_FILE
        if not file.exists():
            return
        prefix = f"{name}."
        weights = {}
        for key, value in load_file(file).items():
            if key.startswith(prefix):
                weights[key.removeprefix(prefix)] = torch.from_numpy(value)
        if not weights:
            return
        try:
            module.load_state_dict(weights)
        except RuntimeError as error:
            raise BadInput(
                f"{file}: {name}: its layers are not those that this run asks for: {error}"
            ) from None

    # ---------------------------------------------------------------- checks

    def check_tokenizer(self, what: str) -> None:
        """Refuse a tokenizer that leaves no room for a word."""
        stated = self.tokenizer.model_max_length
        if not isinstance(stated, int) and stated != float("inf"):
            raise BadInput(
                f"{what}: tokenizer_config.json: model_max_length: {stated!r} is not a whole"
                " number; correct it."
            )
        special = self.special_tokens
        if self.max_seq_length <= special.before + special.after:
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
        is_training = {module: module.training for module in self.modules()}
        self.eval()
        try:
            short_alone = self.hidden_states(self.pad([short]))
            long_alone = self.hidden_states(self.pad([long]))
            both = self.hidden_states(together)
            layers = self.hidden_states(together, all_layers=True).get("hidden_states") or ()
        # The model's own code fails if it expects pictures, sound or a second text.
        except Exception as error:
            raise self.unusable(what, first_line(error)) from None
        finally:
            for module, training in is_training.items():
                module.training = training

        both_states = both.last_hidden_state  # (2, T, D)
        if both_states.shape[:2] != together["input_ids"].shape:
            raise self.unusable(what, "it does not give one state for each token")
        short_states = short_alone.last_hidden_state[0]
        first_of_short = short_states[:1]
        first_of_long = long_alone.last_hidden_state[0, :1]
        same_shape = all(layer.shape == both_states.shape for layer in layers)
        return Traits(
            left_to_right=are_same(first_of_short, first_of_long),
            hides_padding=are_same(short_states, both_states[0, : len(short)]),
            all_layers=same_shape and len(layers) == self.num_layers + 1,
            pooler=both.get("pooler_output") is not None,
        )

    @torch.no_grad()
    def hidden_states(self, batch: dict[str, torch.Tensor], all_layers: bool = False) -> Any:
        """Compute the model's own output for a padded batch."""
        batch = {key: value.to(self.device) for key, value in batch.items()}
        return self.model(**batch, output_hidden_states=all_layers)

    def unusable(self, what: str, reason: str) -> BadInput:
        """Return the error for a model without a hidden state for every token."""
        kind = self.model.config.model_type
        return BadInput(
            f"{what}: {kind} gives no hidden state for every token of a text ({reason}); use"
            " another."
        )

    def check_trainable(self, pooler: str, what: str) -> None:
        """Check that methods can train this encoder with a pooler.

        Raises:
            BadInput: they cannot.
        """
        config = self.model.config
        special = self.special_tokens
        dropout_keys(config.model_type, what)  # refuses architectures that are not trained
        if getattr(config, "is_decoder", False):
            raise BadInput(
                f"{what}: config.json: is_decoder is true: it reads from left to right, and methods"
                " train encoders that read both ways; set it to false or use another."
            )
        if special != SpecialTokens(1, 1):
            raise BadInput(
                f"{what}: its tokenizer puts {special.before} special tokens before a sentence and"
                f" {special.after} after it, but methods need one on each side; restore the"
                " post-processor of tokenizer.json."
            )
        self.check_pooler(pooler, what)
        if pooler == "cls" and not has_bert_pooler(self.model):
            raise BadInput(
                f"{what}: pooler cls: the pooler layer of {config.model_type} is not BERT's, and is"
                " not trained; use another pooler."
            )

    def check_pooler(self, pooler: str, what: str) -> None:
        """Check that a pooler can make sentence vectors.

        Raises:
            BadInput: it cannot. The message names poolers that can.
        """
        reason = self.why_not(pooler)
        if reason is None:
            return
        possible = ", ".join(other for other in AVERAGES if self.why_not(other) is None)
        kind = self.model.config.model_type
        raise BadInput(f"{what} ({kind}): pooler {pooler}: {reason}. Use another: {possible}.")

    def why_not(self, pooler: str) -> str | None:
        """Return the reason why a pooler cannot make sentence vectors, or None if it can."""
        traits = self.traits
        if self.feature_layer is not None and pooler not in OF_FEATURES:
            return "its vectors are the mean of what a feature layer makes of all token states"
        if pooler not in family_of(self.model.config.model_type).poolers:
            return "this architecture has no such vector (docs/encoders.md)"
        if pooler == "cls" and not traits.pooler:
            return "the model has no pooler layer"
        reads_first = pooler in ("cls", "cls_before_pooler")
        if reads_first and self.special_tokens.before == 0:
            return "its tokenizer puts no special token before a sentence"
        if reads_first and traits.left_to_right:
            return (
                "the model reads from left to right, so the first token knows nothing of the"
                " sentence"
            )
        if pooler in LAST_TOKEN and not traits.left_to_right:
            return "the model reads both ways, so its last token has read no more than others"
        if pooler in TWO_LAYERS and not traits.all_layers:
            return "the model does not give the states of every layer"
        return None

    def check_layers(self) -> None:
        """Check that this encoder is laid out like BERT, so that csebench can reach each layer.

        Raises:
            BadInput: it is not.
        """
        if not self.stack:
            kind = self.model.config.model_type
            raise BadInput(
                f"encoder {self.source}: {kind}: csebench can reach attention maps, single layers,"
                f" prefixes and word vectors only in an encoder laid out like BERT ({BERT_LAYERS});"
                " use one, or another method or evaluator."
            )

    def check_embedding_size(self) -> None:
        """Check that a sentence vector can stand among the outputs of the embedding layer.

        Raises:
            BadInput: the embedding layer is narrower than a sentence vector.
        """
        if self.embedding_size != self.size:
            kind = self.model.config.model_type
            raise BadInput(
                f"encoder {self.source}: {kind}: its embedding layer has {self.embedding_size}"
                f" dimensions and a sentence vector {self.size}, which the method needs to be"
                " equal; use another encoder or method."
            )

    def check_maps(self) -> None:
        """Check that attention maps are over the tokens of a sentence alone.

        Raises:
            BadInput: the encoder has a prefix.
        """
        if self.prefix is not None:
            raise BadInput(
                f"encoder {self.source}: its tokens also attend to a prefix, so its attention maps"
                " are not over tokens alone; use another encoder, method or evaluator."
            )


def read_config(source: Any, what: str) -> Any:
    """Read the configuration of a model that `AutoModel` can load.

    Raises:
        BadInput: it cannot be read, or has no encoder.
    """
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
    except Exception as error:  # transformers has many errors for damaged files
        raise unreadable_model(what, error) from None
    if type(config) not in MODEL_MAPPING:
        raise BadInput(
            f"{what}: config.json: model_type {config.model_type} has no encoder in transformers."
        )
    return config


def refuse_more_parts(folder: Path, what: str) -> None:
    """Refuse a model that is more than one encoder, for callers that need exactly one."""
    count = read_facts(folder)["encoders"]
    if count > 1:
        raise BadInput(
            f"{what}: its vectors are the sum of {count} encoders, but one encoder is needed here;"
            " use another model."
        )
    if has_feature_layer(folder):
        raise BadInput(
            f"{what}: a feature layer follows its encoder, but an encoder alone is needed here; use"
            " another model."
        )


def has_feature_layer(folder: Path) -> bool:
    """Whether an earlier run exported a feature layer into the folder of a model."""
    return any(name.startswith(f"{FEATURE_LAYER}.") for name in exported_shapes(folder))


def exported_shapes(folder: Path) -> dict[str, list[int]]:
    """Read the shapes of the further modules' weights in the folder of a model, by name.

    Raises:
        BadInput: the file of these weights cannot be read.
    """
    file = folder / MODULES_FILE
    if not file.exists():
        return {}
    shapes = {}
    try:
        with safe_open(file, "numpy") as exported:
            names = list(exported.keys())
            for name in names:
                shapes[name] = exported.get_slice(name).get_shape()
    except SafetensorError as error:
        raise unreadable_model(str(file), error) from None
    return shapes


def check_summable(first: Encoder, added: Encoder, what: str) -> None:
    """Refuse an encoder whose vectors cannot be added to those of the first.

    The tokenizer of the first makes the token ids for both.

    Args:
        what: the added encoder, for the message.

    Raises:
        BadInput: it has another vocabulary, vectors of another size, or reads fewer tokens.
    """
    if added.tokenizer.get_vocab() != first.tokenizer.get_vocab():
        problem = "it has another vocabulary"
    elif added.vector_size != first.vector_size:
        problem = f"its vectors have {added.vector_size} dimensions, not {first.vector_size}"
    elif added.max_seq_length < first.max_seq_length:
        problem = f"it reads {added.max_seq_length} tokens at most, not {first.max_seq_length}"
    else:
        return
    raise BadInput(
        f"{what}: {problem}, so its vectors cannot be added to those of the first encoder; use"
        " another one."
    )


def check_full_precision(folder: Path, pattern: str = "config.json") -> None:
    """Refuse a quantised model: its scores would name a precision that it does not have.

    Args:
        pattern: glob of the configuration files to read.

    Raises:
        BadInput: a configuration states a quantisation.
    """
    for file in sorted(folder.glob(pattern)):
        content = read_json(file)
        if isinstance(content, dict) and content.get("quantization_config") is not None:
            raise BadInput(
                f"{file}: quantization_config: the model is quantised; use its unquantised"
                " original."
            )


def may_leave_out_pooler(config: Any) -> bool:
    """Whether the model of a configuration can be made without its pooler layer."""
    model_class: Any = MODEL_MAPPING[type(config)]
    if isinstance(model_class, tuple):
        model_class = model_class[0]  # AutoModel takes the first of several classes
    return "add_pooling_layer" in inspect.signature(model_class).parameters


def name_padding(tokenizer: Any) -> None:
    """Name a padding token if the tokenizer of a decoder has none.

    Padding stands after a sentence and is masked, so any token will do.
    """
    if getattr(tokenizer, "pad_token", "") is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token


def position_limit(model: Any) -> int | None:
    """Return the number of tokens that a model has positions for, or None if it has no limit.

    XLNet states -1, which means no limit.
    """
    stated = [getattr(model.config, key, None) or -1 for key in POSITIONS]
    limits = [limit for limit in stated if limit > 0]
    if not limits:
        return None
    positions = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(positions, "padding_idx", None)
    if padding is None:
        return min(limits)
    # RoBERTa and its relatives count positions from padding_idx + 1.
    return min(limits) - padding - 1


def are_same(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether hidden states are equal within rounding."""
    return bool((first - second).abs().max() <= SAME * first.abs().max())


def has_bert_pooler(model: Any) -> bool:
    """Whether the pooler layer is BERT's, linear with tanh: the only one that a run can export."""
    pooler: Any = getattr(model, "pooler", None)
    if not isinstance(getattr(pooler, "dense", None), nn.Linear):
        return False
    return isinstance(pooler.activation, nn.Tanh)


def head_of(masked_lm) -> nn.Module:
    """Return the masked-LM head of a model. If the head is several modules, they are joined.

    Raises:
        BadInput: the model has another head than those of HEADS.
    """
    for names in HEADS:
        if all(hasattr(masked_lm, name) for name in names):
            parts = OrderedDict((name, getattr(masked_lm, name)) for name in names)
            if len(parts) == 1:
                return parts[names[0]]
            return nn.Sequential(parts)
    raise BadInput(
        f"{type(masked_lm).__name__}: its masked-LM head is not known; use another encoder, such as"
        " a BERT."
    )
