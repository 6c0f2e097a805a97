"""Edits of a sentence's tokens: PCL's set (EMNLP 2022; pcl/train.py:494-628), which ESimCSE's
repetition joins.

An edit maps the ids between [CLS] and [SEP], (T,), to other ids; it draws from torch's generator.
"""

import torch


def copy(ids):
    return ids


def shuffle(ids):
    return ids[torch.randperm(len(ids))]


def reverse(ids):
    return ids.flip(0)


def delete(ids, rate=0.2):
    """Leaves out a share of the tokens, at random positions."""
    remaining = torch.randperm(len(ids))[round(rate * len(ids)) :]
    return ids[remaining.sort().values]


def insert_copies(ids, rate=0.2, most=None):
    """Copies of random tokens, each put at a random position; at most until there are `most`
    tokens."""
    count = round(rate * len(ids))
    for _ in range(count if most is None else min(count, most - len(ids))):
        token, place = ids[int(torch.randint(len(ids), ()))], int(torch.randint(len(ids) + 1, ()))
        ids = torch.cat([ids[:place], token[None], ids[place:]])
    return ids


def double(ids, rate=0.32, form="paper"):
    """ESimCSE's repetition: some tokens doubled in place (esimcse/train.py:498-530).

    Of a sentence of n tokens with [CLS] and [SEP], up to max(2, rate·n) in form `paper`, fewer than
    min(10, rate·n) in form `code`, which leaves short sentences alone.
    """
    n = len(ids) + 2
    most = max(2, int(rate * n)) if form == "paper" else max(0, min(10, int(rate * n)) - 1)
    times = torch.ones(len(ids), dtype=torch.long)
    times[torch.randperm(len(ids))[: int(torch.randint(most + 1, ()))]] = 2
    return ids.repeat_interleave(times)


EDITS = {edit.__name__: edit for edit in (copy, shuffle, reverse, delete, insert_copies, double)}
