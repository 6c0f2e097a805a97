"""Masked language modelling: the masking rule and the loss that all methods share.

Methods and components decide which views are masked, and what the loss is added to.
"""

import torch

from csebench.model.layers import to_device
from csebench.train import parallel
from csebench.train.losses import upcast_fp32


def mask_tokens(ids, maskable, mask_id, vocab_size, probability):
    """Mask a *copy* of `ids` as BERT does (Devlin et al. 2019, sec. 3.1; SimCSE train.py:498-530).

    Of the chosen tokens, 80 % become `[MASK]`, 10 % become a uniform random id, which may be the
    original or a special one, and 10 % stay.

    Args:
        ids: (rows, length) int64. They are not changed.
        maskable: (rows, length) bool, False at special tokens and padding.
        probability: the probability that a maskable token is chosen.

    Returns:
        The masked ids and the labels, (rows, length) each. Labels are the original ids of the
        chosen tokens, and -100 elsewhere.
    """
    # Draw in the order of the official collators, from torch's global generator.
    chosen = torch.bernoulli(torch.full(ids.shape, probability)).bool() & maskable.cpu()
    as_mask = torch.bernoulli(torch.full(ids.shape, 0.8)).bool() & chosen
    # half of the remaining 20 %
    as_random = torch.bernoulli(torch.full(ids.shape, 0.5)).bool() & chosen & ~as_mask
    random_ids = torch.randint(vocab_size, ids.shape)

    labels = ids.masked_fill(~chosen.to(ids.device), -100)
    masked = ids.masked_fill(as_mask.to(ids.device), mask_id)
    masked = torch.where(as_random.to(ids.device), random_ids.to(ids.device), masked)
    return masked, labels


def mask_batch(tokenizer, ids, probability):
    """Mask tokens as `mask_tokens` does, except special tokens, which include padding."""
    special_ids = torch.tensor(tokenizer.all_special_ids, device=ids.device)
    maskable = ~torch.isin(ids, special_ids)
    return mask_tokens(ids, maskable, tokenizer.mask_token_id, len(tokenizer), probability)


def masked_lm_loss(head, states, labels):
    """Compute the cross-entropy of the chosen tokens.

    Logits are computed for these tokens only, because they are as wide as the vocabulary.

    Args:
        head: maps (tokens, hidden) to (tokens, vocabulary) logits.
        states: (rows, length, hidden) last hidden states.
        labels: (rows, length), -100 at tokens that were not chosen. If they are on a GPU, the host
            waits for it.

    Returns:
        The mean over the chosen tokens of all processes, or 0 for a batch without any.
    """
    rows, positions = (labels != -100).nonzero(as_tuple=True)  # (tokens,) each
    # before any return, because all processes must make this call
    weight = parallel.mean_weight(len(rows), states.device)
    if len(rows) == 0:
        return states.sum() * 0.0  # a zero that has a gradient, as any other loss
    targets = to_device(labels[rows, positions], states.device)  # (tokens,)
    rows = to_device(rows, states.device)
    positions = to_device(positions, states.device)
    logits = upcast_fp32(head(states[rows, positions]))  # (tokens, vocabulary)
    return weight * torch.nn.functional.cross_entropy(logits, targets)
