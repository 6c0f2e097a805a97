"""Modules that methods and encoders are built from: dropout, heads, projectors, new transformer
layers."""

import logging
from collections.abc import Callable

import torch
from torch import nn
from torch._functorch import config as functorch_config
from transformers.models.bert.modeling_bert import eager_attention_forward

from csebench.base.errors import first_line
from csebench.model.chunks import in_chunks


class Dropout(nn.Dropout):
    """Dropout whose mask on CPU is cut from 64-bit random words: a seventh of the cost of a draw
    per entry.

    p is met to 2^-16. A step of SimCSE spends a sixth of its time in masks otherwise.
    """

    def forward(self, x):
        if not self.training or self.p == 0 or x.device.type != "cpu":
            return super().forward(x)
        words = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        dropped = round(self.p * 2**16)  # of the values of 16 bits
        keep = words.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - 2**15
        return x * keep.to(x.dtype) * (1 / (1 - dropped / 2**16))


def to_device(tensor: torch.Tensor, device) -> torch.Tensor:
    """A tensor of the host on a device, through pinned memory: without waiting for work queued
    on the device."""
    if tensor.device.type == "cpu" and torch.device(device).type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def at_position(states, position=None):
    """(N, T, D), (N,) -> (N, 1, D): each row's state at its position, the first where none is
    given."""
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
    """(N, T) -> (N, 1, 1, T): what is added to attention scores. Hugging Face's own asks the
    device whether there is padding at all, and waits for the answer."""
    return (1 - mask[:, None, None].to(dtype)) * torch.finfo(dtype).min


def fused_layer() -> Callable:
    """`bert_layer` behind torch.compile, with room for the shapes of a run. Where compilation
    fails, as without a C compiler or Python's headers, a line on stderr gives the reason, and
    layers run as they are."""
    torch._dynamo.config.recompile_limit = 64  # lengths, last batches, with and without gradient
    torch._dynamo.config.suppress_errors = True
    # else errors of the backward graph come later
    functorch_config.force_non_lazy_backward_lowering = True
    logging.getLogger("torch._dynamo.convert_frame").addFilter(_give_up)
    return torch.compile(bert_layer)


def _give_up(record: logging.LogRecord) -> bool:
    """Puts the reason of a failed compilation in place of its traceback, and compiles no more."""
    if record.exc_info and (error := record.exc_info[1]):
        torch._dynamo.config.disable = True
        reason = first_line(getattr(error, "inner_exception", error))
        record.msg, record.exc_info = (
            f"torch.compile failed, layers run as they are, slower: {reason}",
            None,
        )
    return True


def bert_layer(layer, states, mask, keeps: bool = False, select: Callable | None = None):
    """One layer of a BERT or RoBERTa: (N, T, D), (N, 1, 1, T) -> (N, T, D) and, if it `keeps` it,
    the attention map (N, H, T, T) after dropout. A function of the layer, so that one compiled
    graph serves all layers; hooks into the layers of transformers, which return no map, break the
    graph.

    Args:
        select: of the states behind the attention, those that the rest of the layer works on.
    """
    inner = layer.attention.self
    context, attention = fp32_attention(inner, states, mask) if keeps else inner(states, mask)
    if select is not None:
        context, states = select(context), select(states)
    return layer.feed_forward_chunk(layer.attention.output(context, states)), (
        attention if keeps else None
    )


def fp32_attention(module, states, mask):
    """Self-attention with scores in fp32, under autocast, too: who reads the map takes its
    logarithm, and bf16 scores around 8 are 0.06 apart. (N, T, D), (N, 1, 1, T) -> (N, T, D), (N,
    H, T, T)"""
    query, key, value = [  # projected under autocast
        project(states).unflatten(-1, (-1, module.attention_head_size)).transpose(1, 2).float()
        for project in (module.query, module.key, module.value)
    ]
    with torch.autocast(states.device.type, enabled=False):
        context, attention = eager_attention_forward(
            module, query, key, value, mask, module.scaling, module.dropout.p
        )
    return context.flatten(2), attention


class Layers(nn.Module):
    """New transformer layers of an encoder's own kind and size, with its initialisation.

    Args:
        kind: class of a layer of the Hugging Face model.
        config: of that model.
    """

    def __init__(self, kind: type[nn.Module], config, count: int):
        super().__init__()
        self.layers = nn.ModuleList(kind(config) for _ in range(count))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                initialise(module, config.initializer_range)
        use_cheap_dropout(self)
        self.chunk_size: int | None = None  # as of an encoder

    def forward(self, states, mask):
        """(N, T, D), (N, T) -> (N, T, D)"""
        hidden = additive(to_device(mask, states.device), states.dtype)
        return in_chunks(self._run, self.chunk_size if self.training else None, states, hidden)

    def _run(self, states, hidden):
        for layer in self.layers:
            states = layer(states, hidden)
        return states


class Head(nn.Module):
    """SimCSE's MLP over [CLS]: one layer and tanh, newly initialised (models.py:18-34), used in
    training only."""

    def __init__(self, size):
        super().__init__()
        self.dense = nn.Linear(size, size)
        initialise(self.dense)

    def forward(self, x):
        return torch.tanh(self.dense(x))


class Projector(nn.Sequential):
    """DiffCSE's two linear layers with batch normalisation (models.py: ProjectionMLP), used in
    training only."""

    def __init__(self, size):
        super().__init__(
            nn.Linear(size, 2 * size, bias=False),
            nn.BatchNorm1d(2 * size),
            nn.ReLU(),
            nn.Linear(2 * size, size, bias=False),
            nn.BatchNorm1d(size, affine=False),
        )
