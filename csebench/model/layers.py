"""Modules that encoders and methods are built from.

These are the layer of a BERT, new transformer layers, a trained prefix, heads and projectors, and a
fast dropout. A whole model with its tokenizer is in csebench/model/encoder.py.
"""

import logging
from collections.abc import Callable

import torch
from torch import nn
from torch._functorch import config as functorch_config
from transformers.models.bert.modeling_bert import eager_attention_forward

from csebench.base.errors import first_line
from csebench.model.chunks import in_chunks

# ---------------------------------------------------------------- the layer of a BERT


def bert_layer(
    layer, states, mask, keeps: bool = False, select: Callable | None = None, prefix=None
):
    """Compute one layer of an encoder laid out like BERT, (N, T, D), (N, 1, 1, T) -> (N, T, D).

    The layer is an argument, so that one compiled graph serves all layers. The layer's own
    `forward` in transformers returns no attention map, and a hook that reads the map would break
    the graph.

    Args:
        mask: numbers to add to attention scores, see `additive`.
        keeps: return the attention map, too.
        select: after the attention, picks the states that the rest of the layer works on.
        prefix: (2, N, P, D) keys and values that the tokens also attend to. The mask is then
            (N, 1, 1, P + T), and no attention map is returned.

    Returns:
        The states, and the attention map (N, H, T, T) after dropout, or None.
    """
    self_attention = layer.attention.self
    attention = None
    if keeps:
        context, attention = fp32_attention(self_attention, states, mask)
    elif prefix is not None:
        context = prefixed_attention(self_attention, states, mask, prefix)
    else:
        context, _ = self_attention(states, mask)
    if select is not None:
        context = select(context)
        states = select(states)
    states = layer.feed_forward_chunk(layer.attention.output(context, states))
    return states, attention


def fp32_attention(module, states, mask):
    """Compute self-attention with scores in fp32, even under autocast.

    Methods take the logarithm of the attention map, which is a score up to a constant. bf16 would
    be too coarse for it: neighbouring bf16 numbers around 8 are 0.06 apart.

    Returns:
        The states (N, T, D), and the attention map (N, H, T, T).
    """
    # The projections are still computed under autocast.
    query = by_head(module, module.query(states)).float()
    key = by_head(module, module.key(states)).float()
    value = by_head(module, module.value(states)).float()
    with torch.autocast(states.device.type, enabled=False):
        context, attention = eager_attention_forward(
            module, query, key, value, mask, module.scaling, module.dropout.p
        )
    return context.flatten(2), attention


def prefixed_attention(module, states, mask, prefix):
    """Compute self-attention that also sees a prefix, (N, T, D) -> (N, T, D).

    Args:
        mask: (N, 1, 1, P + T).
        prefix: (2, N, P, D) keys and values, which stand before those of the tokens.
    """
    token_keys = module.key(states)
    token_values = module.value(states)
    first_keys, first_values = prefix.to(token_keys.dtype)  # bf16 under autocast
    query = by_head(module, module.query(states))
    key = by_head(module, torch.cat([first_keys, token_keys], dim=1))
    value = by_head(module, torch.cat([first_values, token_values], dim=1))
    context, _ = eager_attention_forward(
        module, query, key, value, mask, module.scaling, module.dropout.p
    )
    return context.flatten(2)


def by_head(module, projected):
    """Split the vectors of all heads of a self-attention, (N, T, D) -> (N, H, T, D/H)."""
    return projected.unflatten(-1, (-1, module.attention_head_size)).transpose(1, 2)


def additive(mask, dtype=torch.float32):
    """Turn a mask into numbers to add to attention scores, (N, T) -> (N, 1, 1, T).

    Hugging Face has a function for this, too. But it asks the GPU whether there is any padding, and
    waits for the answer.
    """
    return (1 - mask[:, None, None].to(dtype)) * torch.finfo(dtype).min


def at_position(states, position=None):
    """Select the state of each row at its position, (N, T, D), (N,) -> (N, 1, D).

    Without positions, select the first state of each row.
    """
    if position is None:
        return states[:, :1]
    return states.gather(1, position.view(-1, 1, 1).expand(-1, 1, states.shape[-1]))


def fused_layer() -> Callable:
    """Compile `bert_layer`, and allow recompiling it for all shapes of a run.

    Compilation fails without a C compiler or the headers of Python, for example. Then a line on
    stderr gives the reason, and layers run uncompiled.
    """
    # Shapes differ by length, in the last batch of an epoch, and with and without gradient.
    torch._dynamo.config.recompile_limit = 64
    torch._dynamo.config.suppress_errors = True
    # Compile the backward graph at once. Otherwise its errors would come later.
    functorch_config.force_non_lazy_backward_lowering = True
    logging.getLogger("torch._dynamo.convert_frame").addFilter(_give_up)
    return torch.compile(bert_layer)


def _give_up(record: logging.LogRecord) -> bool:
    """Replace the traceback of a failed compilation by its reason, and compile no more.

    This is a filter of a logger. It returns True, so that every record is logged.
    """
    if record.exc_info and record.exc_info[1]:
        error = record.exc_info[1]
        torch._dynamo.config.disable = True
        reason = first_line(getattr(error, "inner_exception", error))
        record.msg = f"torch.compile failed, layers run as they are, slower: {reason}"
        record.exc_info = None
    return True


# ---------------------------------------------------------------- new modules


class Layers(nn.Module):
    """New transformer layers of the same kind and size as an encoder's, initialised like them.

    Args:
        kind: class of a layer of the encoder's Hugging Face model.
        config: configuration of this model.
        count: number of layers.
    """

    def __init__(self, kind: type[nn.Module], config, count: int):
        super().__init__()
        self.layers = nn.ModuleList(kind(config) for _ in range(count))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                initialise(module, config.initializer_range)
        use_cheap_dropout(self)
        # in training, how many sentences are computed at a time; None: the whole batch
        self.chunk_size: int | None = None

    def forward(self, states, mask):
        """Compute all layers, (N, T, D), (N, T) -> (N, T, D)."""
        score_mask = additive(to_device(mask, states.device), states.dtype)  # (N, 1, 1, T)
        chunk_size = self.chunk_size if self.training else None
        return in_chunks(self._run, chunk_size, states, score_mask)

    def _run(self, states, score_mask):
        for layer in self.layers:
            states = layer(states, score_mask)
        return states


class Prefix(nn.Module):
    """Trained keys and values that stand before those of a sentence's tokens, in every layer.

    This is prefix tuning (P-tuning v2), as in PromCSE models.py:21-45, 385-398.

    Args:
        layers: number of layers of the encoder.
        length: P, how many keys and values a layer gets.
        size: D, their width.
        std: deviation of the normal distribution that they start from.
        dropout: probability to drop an entry in training, drawn for each sentence.
    """

    def __init__(self, layers: int, length: int, size: int, std: float, dropout: float):
        super().__init__()
        self.length = length
        self.vectors = nn.Parameter(torch.empty(layers, 2, length, size))  # keys, then values
        self.dropout = Dropout(dropout)
        nn.init.normal_(self.vectors, std=std)

    def forward(self, rows: int) -> torch.Tensor:
        """Repeat the prefix for each sentence of a batch, (layers, 2, rows, P, D)."""
        repeated = self.vectors.unsqueeze(2).expand(-1, -1, rows, -1, -1)
        return self.dropout(repeated)


class Head(nn.Module):
    """SimCSE's MLP over [CLS], used in training only: one new layer and tanh (models.py:18-34)."""

    def __init__(self, size):
        super().__init__()
        self.dense = nn.Linear(size, size)
        initialise(self.dense)

    def forward(self, x):
        return torch.tanh(self.dense(x))


class Projector(nn.Sequential):
    """DiffCSE's projector, used in training only: two layers with batch normalisation.

    Official code: models.py, ProjectionMLP.
    """

    def __init__(self, size):
        super().__init__(
            nn.Linear(size, 2 * size, bias=False),
            nn.BatchNorm1d(2 * size),
            nn.ReLU(),
            nn.Linear(2 * size, size, bias=False),
            nn.BatchNorm1d(size, affine=False),
        )


def initialise(linear: nn.Linear, std: float = 0.02) -> None:
    """Give a layer new weights as BERT does: normal weights, and biases of 0."""
    nn.init.normal_(linear.weight, std=std)
    nn.init.zeros_(linear.bias)


# ---------------------------------------------------------------- dropout


def use_cheap_dropout(model) -> None:
    """Replace the dropout modules of a model by `Dropout`."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))


class Dropout(nn.Dropout):
    """Dropout that, on the CPU, cuts 64-bit random words into the random numbers of its mask.

    One draw per entry would take a sixth of a step of SimCSE. This takes a seventh of that time. p
    is rounded to a multiple of 2^-16.
    """

    def forward(self, x):
        if not self.training or self.p == 0 or x.device.type != "cpu":
            return super().forward(x)
        count = -(-x.numel() // 4)  # rounded up: a word has four values of 16 bits
        words = torch.empty(count, dtype=torch.int64).random_(-(2**63), None)
        values = words.view(torch.int16)[: x.numel()].view(x.shape)
        dropped = round(self.p * 2**16)  # so many of the 2^16 values, the lowest, drop an entry
        keep = values >= dropped - 2**15  # the lowest value is -2^15
        scale = 1 / (1 - dropped / 2**16)
        return x * keep.to(x.dtype) * scale


# ---------------------------------------------------------------- devices


def to_device(tensor: torch.Tensor, device) -> torch.Tensor:
    """Copy a tensor of the host to a device, without waiting for the work queued there.

    Only a copy from pinned memory does not wait.
    """
    if tensor.device.type == "cpu" and torch.device(device).type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
