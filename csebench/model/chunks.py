"""A batch computed in chunks of rows: memory for what a backward pass reads of one chunk, not of
all.

Idea of Gao et al. 2021 (RepL4NLP, "Scaling Deep Contrastive Learning Batch Size under Memory
Limited Setup"): the sentences of a batch meet only in the loss. A chunk is computed once for its
outputs; the loss is that of the whole batch, and so are the gradients with respect to the outputs;
in the backward pass each chunk is computed again, under the same dropout masks, to pass its
gradients on. The price is a second forward pass.

Gradients are those of one pass over all rows, within the rounding of a sum in another order. Only
the masks differ: they are drawn chunk by chunk, so a run in chunks has other masks than one
without, as a run of several processes has.
"""

from collections.abc import Callable
from itertools import repeat
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint


def in_chunks(
    function: Callable, size: int | None, first: torch.Tensor, *rest: torch.Tensor | None
) -> Any:
    """`function(first, *rest)` by `size` rows at a time; in one pass where there are no more, or
    `size` is None.

    Args:
        function: works on each row independently. Called again in the backward pass, so what it
            reads besides its arguments must still be the same then.
        first, rest: (N, …) each; one of `rest` may be None.

    Returns:
        what the function returns: tensors (N, …), or tuples or Hugging Face outputs of them.
    """
    if size is None or len(first) <= size:
        return function(first, *rest)
    parts = zip(
        first.split(size),
        *(repeat(None) if x is None else x.split(size) for x in rest),
        strict=False,
    )
    cached = torch.is_autocast_cache_enabled()
    # else chunks share weights in bf16, and gradients are summed in bf16
    torch.set_autocast_cache_enabled(False)
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
