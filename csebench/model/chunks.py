"""Compute a batch in chunks of rows, to save memory.

Only one chunk's tensors for a backward pass are in memory at a time, not those of the whole batch.
Idea of Gao et al. 2021 (RepL4NLP, "Scaling Deep Contrastive Learning Batch Size under Memory
Limited Setup"): the sentences of a batch meet only in the loss.

1. Each chunk is computed for its outputs.
2. The loss of the whole batch is computed, and its gradients with respect to the outputs.
3. In the backward pass, each chunk is computed again under the same dropout masks, to pass its
   gradients on. The price is this second forward pass.

The gradients are equal to the ones of a single pass over all rows, within the rounding of a sum in
another order. Only the dropout masks differ: they are drawn chunk by chunk. So a run in chunks has
other masks than a run without chunks, just as a run of several processes has.
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
        function: works on each row independently. It is called again in the backward pass, so what
            it reads besides its arguments must still be the same then.
        size: None computes all rows in one pass.
        first, rest: (N, …) each. Any of `rest` may be None.

    Returns:
        What the function returns for all rows: tensors (N, …), or tuples or Hugging Face outputs
        of them.
    """
    if size is None or len(first) <= size:
        return function(first, *rest)
    chunks = [first.split(size)]
    for tensor in rest:
        if tensor is None:
            chunks.append((None,) * len(chunks[0]))
        else:
            chunks.append(tensor.split(size))

    # With the cache, chunks would share weights in bf16, and gradients would be summed in bf16.
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
    """Join what the function returned for each chunk."""
    first = parts[0]
    if isinstance(first, torch.Tensor):
        return torch.cat(parts)
    if isinstance(first, tuple):
        return tuple(_join(list(values)) for values in zip(*parts, strict=True))
    joined = {}
    for key in first:
        joined[key] = _join([part[key] for part in parts])
    return type(first)(**joined)
