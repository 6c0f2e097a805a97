"""Make sentence vectors from the states of a forward pass, by SimCSE's poolers.

csebench/model/families.py states which poolers an architecture has.
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from csebench.base.errors import BadInput
from csebench.model.families import LAST_TOKEN
from csebench.model.layers import at_position

# MSSE args.py:15, and its config
PROMPT_TEMPLATES = {"mask": '"[X]" means [MASK].', "mask_bare": "[X] means [MASK]"}
# texts that poolers of the last token put a sentence into (PromptEOL: Jiang et al. 2023, "Scaling
# Sentence Embeddings with Large Language Models")
TEXT_TEMPLATES = {"last_eol": 'This sentence : "[X]" means in one word:"'}
# poolers that average two hidden states, with the indices of both among all hidden states
TWO_LAYERS = {"avg_top2": (-2, -1), "avg_first_last_2021": (0, -1), "avg_first_last_2022": (1, -1)}
# poolers that read one state of the last layer
ONE_POSITION = ("cls_before_pooler", *PROMPT_TEMPLATES)


@dataclass
class Encoded:
    """The result of one forward pass."""

    output: Any  # the output of the Hugging Face model
    ids: torch.Tensor  # (N, T)
    mask: torch.Tensor  # (N, T) bool, True at real tokens
    mask_id: int  # id of the token [MASK]
    # attention maps by layer, (N, H, T, T), after attention dropout
    attention: dict[int, torch.Tensor] = field(default_factory=dict)
    # (N, T, D) from the last layer, if the encoder has a feature layer and the pooler reads it
    features: torch.Tensor | None = None

    def position(self, pooler: str) -> torch.Tensor | None:
        """Return the position of the [MASK] that a pooler reads in each row, (N,).

        A sentence may contain a [MASK] of its own. The template's comes after it.

        Returns:
            The last [MASK] of each row, or None for a pooler without a template.
        """
        if pooler not in PROMPT_TEMPLATES:
            return None
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)  # (T,)
        is_mask = self.ids == self.mask_id  # (N, T)
        return (positions * is_mask).argmax(1)


def pool(pooler: str, encoded: Encoded):
    """Make the sentence vectors (N, D) from a forward pass.

    Poolers have SimCSE's names (evaluation.py, models.py:60-98):

    - `cls` is the output of the encoder's own pooler layer.
    - `cls_before_pooler` is the state at position 0.
    - `avg` is the mean over the last layer, or over the features that the encoder makes of it.
    - `avg_top2` and `avg_first_last` are means over two layers. `avg_first_last` differs silently
      between forks of SimCSE. Until 2022-01-14, "first" was the embedding output. This is `_2021`,
      the reading that gives the published 56.70. Since then it is the first layer, `_2022`.
    - `mask` and `mask_bare` are the state at the [MASK] of a template (MSSE).
    - `last` is the state at the last token of a decoder. `last_eol` is the same in a template that
      asks for one word (PromptEOL).
    """
    output = encoded.output
    mask = encoded.mask
    if pooler in TWO_LAYERS:
        lower, upper = TWO_LAYERS[pooler]
        mean = (output.hidden_states[lower] + output.hidden_states[upper]) / 2  # (N, T, D)
        return mean_pool(mean, mask)
    if pooler in ONE_POSITION:
        states = output.last_hidden_state  # (N, T, D)
        position = None
        if states.shape[1] > 1:  # else the encoder has computed only the state that is read
            position = encoded.position(pooler)
        return at_position(states, position)[:, 0]
    if pooler in LAST_TOKEN:
        last = mask.sum(1) - 1  # (N,)
        states = at_position(output.last_hidden_state, last.clamp(min=0))[:, 0]
        return states * mask.any(1, keepdim=True)  # 0 for a text without tokens
    if pooler == "cls":
        return output.pooler_output
    if pooler == "avg" and encoded.features is not None:
        return mean_pool(encoded.features, mask)
    if pooler == "avg":
        return mean_pool(output.last_hidden_state, mask)
    raise BadInput(f"unknown pooler {pooler!r}")


def mean_pool(states, mask):
    """Average the states of real tokens, (N, T, D), (N, T) -> (N, D).

    A text without tokens has the vector 0, as in sentence-transformers.
    """
    mask = mask.to(states.dtype).unsqueeze(-1)  # (N, T, 1)
    return (states * mask).sum(1) / mask.sum(1).clamp(min=1)
