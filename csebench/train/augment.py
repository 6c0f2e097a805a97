"""Edits of the tokens of a sentence.

The edits are PCL's (EMNLP 2022; pcl/train.py:494-628), and ESimCSE's repetition. Each maps the ids
between [CLS] and [SEP], (T,), to other ids. Random edits draw from torch's global generator.
"""

import torch


def copy(ids):
    """Change nothing."""
    return ids


def shuffle(ids):
    """Put the tokens in a random order."""
    return ids[torch.randperm(len(ids))]


def reverse(ids):
    """Put the tokens in the reverse order."""
    return ids.flip(0)


def delete(ids, rate=0.2):
    """Leave out a share of the tokens, at random positions."""
    remaining = torch.randperm(len(ids))[round(rate * len(ids)) :]
    return ids[remaining.sort().values]


def insert_copies(ids, rate=0.2, most=None):
    """Insert copies of random tokens, each at a random position.

    Args:
        rate: number of copies, as a share of the tokens.
        most: limit on the tokens of the result. None: no limit.
    """
    count = round(rate * len(ids))
    if most is not None:
        count = min(count, most - len(ids))
    for _ in range(count):
        source = int(torch.randint(len(ids), ()))
        target = int(torch.randint(len(ids) + 1, ()))
        ids = torch.cat([ids[:target], ids[source][None], ids[target:]])
    return ids


def double(ids, rate=0.32, form="paper"):
    """Double some tokens in place: ESimCSE's repetition (esimcse/train.py:498-530).

    The number of tokens to double is drawn uniformly, from 0 up to a limit. The limit depends on n,
    the length of the sentence with [CLS] and [SEP].

    Args:
        form: with `paper`, the number is at most max(2, rate·n). With `code`, it is less than
            min(10, rate·n), so short sentences stay as they are.
    """
    n = len(ids) + 2
    if form == "paper":
        limit = max(2, int(rate * n))
    else:
        limit = max(0, min(10, int(rate * n)) - 1)
    order = torch.randperm(len(ids))
    count = int(torch.randint(limit + 1, ()))
    times = torch.ones(len(ids), dtype=torch.long)
    times[order[:count]] = 2
    return ids.repeat_interleave(times)


EDITS = {edit.__name__: edit for edit in (copy, shuffle, reverse, delete, insert_copies, double)}
