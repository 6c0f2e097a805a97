"""A Hugging Face encoder with its tokenizer: loading, tokenising, one forward pass, attention maps on request."""

import copy
import inspect
import itertools
import os
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import nn
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.utils import logging

from csebench.base.errors import BadInput
from csebench.base.hub import fetch_model, local_folder
from csebench.base.models import check_foreign, check_model, check_revision, check_vocabulary, unreadable
from csebench.base.processes import device_type
from csebench.model.chunks import in_chunks
from csebench.model.layers import Layers, additive, at_position, bert_layer, fused_layer, to_device, use_cheap_dropout
from csebench.model.pooling import ONE_POSITION, TEMPLATES, TWO_LAYERS, Encoded
from csebench.model.weights import check_weights
from csebench.plan.declarations import EncoderRef
from csebench.plan.spec import RUNS

logging.set_verbosity_error()  # else every load reports the masked-LM head that we do not want
logging.disable_progress_bar()

MODULES = "modules.safetensors"  # what a method exports beside its encoder
NO_MASK = "the tokenizer has no mask token; name one as mask_token in tokenizer_config.json."
BERTS = ("bert", "roberta")  # whose modules are laid out alike
PADDED_TO = {"cuda": 8}  # multiples of tokens, by kind of device, so that few shapes are compiled; else 1


class Encoder(nn.Module):
    """A Hugging Face encoder with its tokenizer; eager attention, which is faster at short lengths and keeps maps."""

    def __init__(self, model, tokenizer, source: Any = None):
        super().__init__()
        self.model, self.tokenizer = model, tokenizer
        self.source = source  # the folder that it was loaded from
        use_cheap_dropout(model)
        self.attention_layers: set[int] = set()  # whose attention maps `forward` returns
        self.compiled_layer: Callable | None = None  # of `bert_layer`, for training
        self.dropout: float | None = None  # as set last; None: as the model has it
        self.chunk_size: int | None = None  # sentences that are in memory at a time, in training; None: the batch
        self.known_ids: dict[str, np.ndarray] | None = None  # token ids by sentence, where sentences are seen again

    @classmethod
    def load(
        cls, ref: EncoderRef, dropout: float | None = None, with_pooler: bool = False, new_pooler: bool = False
    ) -> "Encoder":
        """Load from a folder, or from the hub at a pinned revision; fp32, on the GPU if there is one.

        Args:
            new_pooler: a pooler that the checkpoint lacks is new, to be trained.

        Raises:
            BadInput: there is none, it cannot be read, or it is not whole; RunFailed: no hub, or a GPU without CUDA.
        """
        source = fetch_model(ref)
        if local_folder(ref) is not None:  # files of the hub are checked when they are fetched
            check_model(source)
            check_revision(source, ref.revision)
        what = f"encoder {ref.name}"
        check_foreign(source)
        dropouts = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        changes: dict[str, Any] = {} if dropout is None else dict.fromkeys(dropouts, dropout)
        try:
            tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            config = AutoConfig.from_pretrained(source, trust_remote_code=False)
            kind: Any = MODEL_MAPPING[type(config)]
            if "add_pooling_layer" in inspect.signature(kind).parameters:
                changes["add_pooling_layer"] = with_pooler
            model, loading = AutoModel.from_pretrained(
                source,
                trust_remote_code=False,
                attn_implementation="eager",
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                **changes,
            )
        except Exception as e:  # of transformers, tokenizers or safetensors, by what is damaged
            raise unreadable(what, e) from None
        check_vocabulary(tokenizer, config, what)
        check_weights(model, loading, what, () if with_pooler and not new_pooler else ("pooler",))
        return cls(model, tokenizer, source).to(device_type())

    @property
    def size(self) -> int:
        return self.model.config.hidden_size

    @property
    def num_layers(self) -> int:
        return self.model.config.num_hidden_layers

    @property
    def max_seq_length(self) -> int:
        """Tokens that the encoder can read; the positions of RoBERTa and its kin start behind that of padding."""
        positions = getattr(getattr(self.model, "embeddings", None), "position_embeddings", None)
        padding = getattr(positions, "padding_idx", None)
        return self.model.config.max_position_embeddings - (0 if padding is None else padding + 1)

    @property
    def device(self):
        return self.model.device

    def copy(self, layers: int | None = None) -> "Encoder":
        """A second encoder with the same weights (CT's second, MoCo's momentum encoder), or its lowest layers only."""
        model = copy.deepcopy(self.model)
        if layers is not None:
            model.encoder.layer = model.encoder.layer[:layers]
            model.config.num_hidden_layers = layers
        return Encoder(model, self.tokenizer, self.source)

    def new_layers(self, count: int) -> Layers:
        """New layers of this encoder's kind and size."""
        return Layers(type(self.model.encoder.layer[0]), self.model.config, count)

    def masked_lm(self):
        """The checkpoint's masked language model, a second copy; of a checkpoint without one its head is new."""
        if self.tokenizer.mask_token is None:
            raise BadInput(f"{self.source}: {NO_MASK}")
        model = AutoModelForMaskedLM.from_pretrained(self.source, dtype=torch.float32, trust_remote_code=False)
        self.load_module("lm_head", head_of(model))
        return model.to(self.device)

    def lm_head(self, tied: bool = False) -> nn.Module:
        """The checkpoint's masked-LM head.

        Args:
            tied: its last layer has the word embeddings of this encoder as its weights, so that they are trained
                together, as in BertForMaskedLM; else a copy of them (SimCSE train.py:371-373).
        """
        masked_lm = self.masked_lm()
        if tied:
            masked_lm.get_output_embeddings().weight = self.model.get_input_embeddings().weight
        return head_of(masked_lm)

    def load_module(self, name: str, module: nn.Module) -> None:
        """Fill a module from what the run that made this encoder exported, if it is of such a run. Raises BadInput
        where that is of another shape."""
        file = self.source / MODULES
        if not file.exists():
            return
        stored = {k.removeprefix(f"{name}."): v for k, v in load_file(file).items() if k.startswith(f"{name}.")}
        try:
            module.load_state_dict({k: torch.from_numpy(v) for k, v in stored.items()})
        except RuntimeError as e:
            raise BadInput(f"{file}: {name}: has not the layers that this run asks for: {e}") from None

    def set_dropout(self, p: float) -> None:
        self.dropout = p
        for module in self.model.modules():
            if isinstance(module, nn.Dropout):
                module.p = p

    @property
    def stack(self) -> Any:
        """The layers of a BERT or RoBERTa; empty for other kinds, whose layout is not known here."""
        return self.model.encoder.layer if self.model.config.model_type in BERTS else nn.ModuleList()

    def compile_layers(self) -> None:
        """Let torch.compile fuse the layers in training, but the last where it works on one position only. Layers have
        equal code, so one is compiled for all of them, and for all jobs: the compiler's cache is in runs/."""
        from torch._inductor.runtime.cache_dir_utils import cache_dir, default_cache_dir

        if self.stack:
            if cache_dir() == os.path.abspath(default_cache_dir()):  # which importing torch._dynamo has set
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
        rows = (known[s].tolist() for s in sentences)
        return [row if len(row) <= limit else [*row[: limit - 1], row[-1]] for row in rows]

    def in_template(self, rows: list[list[int]], pooler: str | None) -> list[list[int]]:
        """Sentences' ids in the template of a pooler that has one; the sentence gives way where both are too long."""
        if pooler not in TEMPLATES:
            return rows
        if self.tokenizer.mask_token is None:
            raise BadInput(f"--pooler {pooler}: {NO_MASK}")
        template = TEMPLATES[pooler].replace("[MASK]", self.tokenizer.mask_token)
        before, after = (self.tokenizer(t, add_special_tokens=False)["input_ids"] for t in template.split("[X]"))
        room = self.max_seq_length - len(before) - len(after) - 2
        return [[row[0], *before, *row[1:-1][:room], *after, row[-1]] for row in rows]

    def pad(self, rows: list[list[int]], length: int | None = None) -> dict[str, torch.Tensor]:
        """Rows of token ids as a batch, padded to `length`, else to the longest, and up to PADDED_TO. It stays on the
        host, where masks and edits are drawn and positions are looked up without waiting for the device."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        longest, step = int(lengths.max()), PADDED_TO.get(self.device.type, 1)
        length = length or max(longest, min(-(-longest // step) * step, self.max_seq_length))
        real = np.arange(length) < lengths[:, None]
        ids = np.full(real.shape, self.tokenizer.pad_token_id)
        ids[real] = np.fromiter(itertools.chain.from_iterable(rows), np.int64, lengths.sum())
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(real.astype(np.int64))}

    def tokenize(self, sentences: list[str], max_length: int | None = None, pooler: str | None = None):
        return self.pad(self.in_template(self.ids(sentences, max_length), pooler))

    def forward(self, batch, pooler: str | None = None, first: torch.Tensor | None = None) -> Encoded:
        """One pass over a tokenised batch, which computes no more than `pooler` reads (None: every hidden state).

        Where that is the state at one position, the last layer of a BERT works on that position only behind its
        attention: `last_hidden_state` is (N, 1, D). In training, a batch of more than `chunk_size` sentences is
        computed in chunks.

        Args:
            first: (N, D) takes the place of what the embedding layer gives at position 0.
        """
        ids, mask = (to_device(batch[key], self.device) for key in ("input_ids", "attention_mask"))
        layers, run = sorted(self.attention_layers), partial(self._run, pooler, self.dropout)
        output, maps = in_chunks(run, self.chunk_size if self.training else None, ids, mask, first)
        return Encoded(output, ids, mask.bool(), self.tokenizer.mask_token_id, dict(zip(layers, maps, strict=True)))

    def _run(self, pooler: str | None, dropout: float | None, ids, mask, first) -> tuple:
        """The model's output for (N, T) ids, and its attention maps in the order of the layers asked for.

        Args:
            dropout: as `set_dropout` had it in the forward pass.
        """
        if dropout != self.dropout:  # computed again, after another view had set its own
            assert dropout is not None
            self.set_dropout(dropout)
        every = pooler is None or pooler in TWO_LAYERS
        replace = lambda _, __, x: x if first is None else torch.cat([first.unsqueeze(1).to(x.dtype), x[:, 1:]], 1)  # noqa: E731
        with self.model.embeddings.register_forward_hook(replace):
            if not self.stack:
                return self.model(input_ids=ids, attention_mask=mask, output_hidden_states=every), ()
            states = self.model.embeddings(input_ids=ids)
        encoded = Encoded(None, ids, mask.bool(), self.tokenizer.mask_token_id)
        run_layer = self.compiled_layer if self.compiled_layer and self.training else bert_layer
        hidden, maps, added = [states] if every else [], [], additive(mask)
        for number, layer in enumerate(self.stack):
            select = None
            if pooler in ONE_POSITION and layer is self.stack[-1]:
                run_layer, select = bert_layer, partial(at_position, position=encoded.position(pooler))
            states, attention = run_layer(layer, states, added, number in self.attention_layers, select)
            hidden += [states] if every else []
            maps += [attention] if number in self.attention_layers else []
        pooled = None if self.model.pooler is None else self.model.pooler(states)
        output = BaseModelOutputWithPooling(states, pooled, tuple(hidden) if every else None)
        return output, tuple(maps)


def head_of(masked_lm) -> nn.Module:
    """The masked-LM head of a BERT (`cls`), a RoBERTa (`lm_head`), or a DistilBERT, which has three modules for it.
    Raises BadInput for a model of another kind."""
    for name in ("cls", "lm_head"):
        if hasattr(masked_lm, name):
            return getattr(masked_lm, name)
    if hasattr(masked_lm, "vocab_projector"):
        names = ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector")  # in the order of its forward
        return nn.Sequential(OrderedDict((name, getattr(masked_lm, name)) for name in names))
    raise BadInput(f"{type(masked_lm).__name__}: its masked-LM head is not known; use a BERT, RoBERTa or DistilBERT.")
