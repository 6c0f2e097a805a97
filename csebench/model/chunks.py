"""Compute a batch in chunks of rows, to save memory.

The backward pass needs tensors of the forward pass. Only those of one chunk are in memory at a
time. The idea is from Gao et al. 2021 (RepL4NLP, "Scaling Deep Contrastive Learning Batch Size
under Memory Limited Setup"): the sentences of a batch interact only in the loss.

1. The outputs of each chunk are computed, and only they are kept.
2. The loss of the whole batch is computed, and its gradients with respect to the outputs.
3. In the backward pass, each chunk is computed again under the same dropout masks, to pass its
   gradients on. The price is this second forward pass.

Under the same dropout masks, the gradients equal those of a single pass over all rows. They differ
only by rounding, because sums are taken in another order. But masks are drawn chunk by chunk, so a
run in chunks has other masks than a run without chunks. A run of several processes has other masks
for the same reason.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint


def in_chunks(
    function: Callable, size: int | None, first: torch.Tensor, *rest: torch.Tensor | None
) -> Any:
    """Compute `function(first, *rest)`, `size` rows at a time.

    Args:
        function: works on each row independently. It is called again in the backward pass. Until
            then, nothing that it reads may change.
        size: rows of a chunk. None computes all rows in one pass.
        first, rest: (N, …) each. Any of `rest` may be None.

    Returns:
        The result of the function for all rows: a tensor (N, …), or a tuple or Hugging Face output
        of such tensors.
    """
    if size is None or len(first) <= size:
        return function(first, *rest)
    chunks = [first.split(size)]
    for tensor in rest:
        if tensor is None:
            chunks.append((None,) * len(chunks[0]))
        else:
            chunks.append(tensor.split(size))

    # The cache of autocast holds bf16 copies of weights. If chunks shared a copy, their gradients
    # would be summed in bf16.
    was_enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        parts = []
        for arguments in zip(*chunks, strict=True):
            parts.append(checkpoint(function, *arguments, use_reentrant=False))
        return _join(parts)
    finally:
        torch.set_autocast_cache_enabled(was_enabled)


def _join(parts: list):
    """Join the results of the chunks."""
    first = parts[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(parts)
    if isinstance(first, tuple):
        return tuple(_join(list(values)) for values in zip(*parts, strict=True))
    joined = {}
    for key in first:
        joined[key] = _join([part[key] for part in parts])
    return type(first)(**joined)
