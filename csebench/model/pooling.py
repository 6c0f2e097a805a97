"""From the states of a forward pass to sentence vectors: SimCSE's poolers by name."""

from dataclasses import dataclass, field
from typing import Any

import torch

from csebench.base.errors import BadInput
from csebench.model.layers import at_position

# MSSE args.py:15, and its config
PROMPT_TEMPLATES = {"mask": '"[X]" means [MASK].', "mask_bare": "[X] means [MASK]"}
# pooler: states
TWO_LAYERS = {"avg_top2": (-2, -1), "avg_first_last_2021": (0, -1), "avg_first_last_2022": (1, -1)}
ONE_POSITION = (
    "cls_before_pooler",
    *PROMPT_TEMPLATES,
)  # poolers that read one state of the last layer


@dataclass
class Encoded:
    """One forward pass."""

    output: Any  # of the Hugging Face model
    ids: torch.Tensor  # (N, T)
    mask: torch.Tensor  # (N, T) bool, True at real tokens
    mask_id: int  # of the token [MASK]
    # by layer (N, H, T, T), after attention dropout
    attention: dict[int, torch.Tensor] = field(default_factory=dict)

    def position(self, pooler: str) -> torch.Tensor | None:
        """(N,) the last [MASK] of each row, that of the template, for a pooler that reads there;
        else None."""
        if pooler not in PROMPT_TEMPLATES:
            return None
        return (
            torch.arange(self.ids.shape[1], device=self.ids.device) * (self.ids == self.mask_id)
        ).argmax(1)


def mean_pool(states, mask):
    """(N, T, D), (N, T) -> (N, D): mean over real tokens; 0 for a text without any, as in
    sentence-transformers."""
    mask = mask.to(states.dtype).unsqueeze(-1)
    return (states * mask).sum(1) / mask.sum(1).clamp(min=1)


def pool(pooler: str, encoded: Encoded):
    """Sentence vectors (N, D) of a forward pass, by SimCSE's names (evaluation.py,
    models.py:60-98).

    `cls` is the encoder's own pooler output, `cls_before_pooler` the state at position 0.
    `avg_first_last` differs silently between forks: until 2022-01-14 "first" was the embedding
    output (`_2021`, the reading of the published 56.70), since then the first layer (`_2022`).
    `mask` and `mask_bare` are the state at the last [MASK], that of the template (MSSE).
    """
    output, mask = encoded.output, encoded.mask
    if pooler in TWO_LAYERS:
        one, two = (output.hidden_states[i] for i in TWO_LAYERS[pooler])
        return mean_pool((one + two) / 2, mask)
    if pooler in ONE_POSITION:
        states = output.last_hidden_state
        return at_position(states, encoded.position(pooler) if states.shape[1] > 1 else None)[:, 0]
    if pooler == "cls":
        return output.pooler_output
    if pooler == "avg":
        return mean_pool(output.last_hidden_state, mask)
    raise BadInput(f"unknown pooler {pooler!r}")
