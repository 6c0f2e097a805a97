"""Masked language modelling: the one masking rule that every method shares."""

import torch

from csebench.model.layers import to_device
from csebench.train import parallel
from csebench.train.losses import upcast_fp32


def mask_tokens(ids, maskable, mask_id, vocab_size, probability):
    """Mask a *copy* of `ids` as BERT does (Devlin et al. 2019, sec. 3.1; SimCSE train.py:498-530).

    Args:
        ids: (rows, length) int64; left untouched.
        maskable: (rows, length) bool, False at special tokens and padding.
        probability: chance of a maskable token to be chosen.

    Returns:
        (masked ids, labels): of the chosen tokens 80 % become `[MASK]`, 10 % a uniform random id
        (the original and special ids included), 10 % stay; labels are -100 where nothing was
        chosen. Draws in the order of the official collators, from torch's global generator.
    """
    chosen = torch.bernoulli(torch.full(ids.shape, probability)).bool() & maskable.cpu()
    as_mask = torch.bernoulli(torch.full(ids.shape, 0.8)).bool() & chosen
    as_random = torch.bernoulli(torch.full(ids.shape, 0.5)).bool() & chosen & ~as_mask
    random_ids = torch.randint(vocab_size, ids.shape)
    chosen, as_mask, as_random, random_ids = (
        t.to(ids.device) for t in (chosen, as_mask, as_random, random_ids)
    )
    labels = ids.masked_fill(~chosen, -100)
    masked = ids.masked_fill(as_mask, mask_id)
    return torch.where(as_random, random_ids, masked), labels


def mask_batch(tokenizer, ids, probability):
    """`mask_tokens` of everything but the tokenizer's special tokens, padding among them."""
    maskable = ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids, device=ids.device))
    return mask_tokens(ids, maskable, tokenizer.mask_token_id, len(tokenizer), probability)


def masked_lm_loss(head, states, labels):
    """Cross-entropy over the chosen tokens only, so that the vocabulary-wide product is not paid
    elsewhere.

    Args:
        head: maps (tokens, hidden) to (tokens, vocabulary) logits.
        states: (rows, length, hidden) last hidden states.
        labels: (rows, length), -100 at tokens that were not chosen; best on the host: else the
            device is waited for.

    Returns:
        mean loss over chosen tokens, 0 for a batch without them.
    """
    rows, places = (labels != -100).nonzero(as_tuple=True)
    weight = parallel.mean_weight(len(rows), states.device)
    if len(rows) == 0:
        return states.sum() * 0.0
    chosen = to_device(labels[rows, places], states.device)
    logits = upcast_fp32(
        head(states[to_device(rows, states.device), to_device(places, states.device)])
    )
    return weight * torch.nn.functional.cross_entropy(logits, chosen)
