"""A batch computed in chunks of rows: memory for what a backward pass reads of one chunk, not of all.

The sentences of a batch meet only in the loss (Gao et al. 2021, RepL4NLP, "Scaling Deep Contrastive Learning Batch
Size under Memory Limited Setup"). A chunk is computed once for its outputs, whose loss and gradients are those of the
whole batch; in the backward pass it is computed again, under the same dropout masks, to pass its gradients on. The
price is a second forward pass. Gradients are those of one pass, within the rounding of a sum in another order. Only
the masks, drawn chunk by chunk, are others than in a run without chunks, as in a run of several processes.
"""

from collections.abc import Callable
from itertools import repeat
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint


def in_chunks(function: Callable, size: int | None, first: torch.Tensor, *rest: torch.Tensor | None) -> Any:
    """`function(first, *rest)`, each (N, …), one of `rest` perhaps None, by `size` rows at a time; in one pass where
    there are no more, or `size` is None. It works on each row independently, and returns tensors (N, …), or tuples or
    Hugging Face outputs of them. The backward pass calls it again: what else it reads must still be the same."""
    if size is None or len(first) <= size:
        return function(first, *rest)
    parts = zip(first.split(size), *(repeat(None) if x is None else x.split(size) for x in rest), strict=False)
    cached = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)  # else chunks share weights in bf16, and gradients are summed in bf16
    try:
        return _join([checkpoint(function, *part, use_reentrant=False) for part in parts])
    finally:
        torch.set_autocast_cache_enabled(cached)


def _join(parts: list):
    first = parts[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(parts)
    if isinstance(first, tuple):
        return tuple(_join(list(values)) for values in zip(*parts, strict=True))
    return type(first)(**{key: _join([part[key] for part in parts]) for key in first})
