"""The types that an evaluator returns: rows of scores, and per-item values.

The declaration of an evaluator says by which rule per-item values make a score; `sample` follows
that rule. Resampling of items is in csebench/score/replicates.py.
"""

import hashlib
import re
from typing import NamedTuple

import numpy as np

from csebench.plan.schema.declarations import ItemScore

# arrays by name: a value for each pair, sentence or query, and arrays that explain them
Items = dict[str, np.ndarray]


class Score(NamedTuple):
    """One number that an evaluator measured of a model."""

    task: str  # as in the papers' columns, or `Avg.`
    subset: str  # `all`, or the subset's name
    metric: str
    value: float  # unrounded; a fraction if papers print percent


class Sample(NamedTuple):
    """The test items that one score is computed from."""

    values: np.ndarray  # (items,)
    # (items,) that the values are correlated with; None: the score is the mean of the values
    gold: np.ndarray | None = None
    # (items, sentences of an item) ids; items that share a sentence are not independent
    sentences: np.ndarray | None = None


def sample(items: Items, rule: ItemScore | None, task: str, metric: str) -> Sample | None:
    """Collect the test items that a score is computed from.

    A score may be the mean over several arrays, such as the forums of a retrieval corpus. Each
    array counts the same, so its values are scaled by the inverse of its length.

    Returns:
        None if the evaluator declares no rule for the score, or its items are missing.
    """
    if rule is None or rule.metric not in (None, metric):
        return None
    values = matching(items, rule.values, task, metric)
    gold = matching_if_declared(items, rule.gold, task, metric)
    sentences = matching_if_declared(items, rule.sentences, task, metric)
    lengths = [len(array) for array in values]
    if not values:
        return None
    for arrays in (gold, sentences):
        if arrays is not None and [len(array) for array in arrays] != lengths:
            return None

    ids = None if sentences is None else np.concatenate(sentences)
    if gold is not None:
        return Sample(np.concatenate(values), np.concatenate(gold).astype(np.float64), ids)
    scaled = [array * sum(lengths) / (len(values) * len(array)) for array in values]
    return Sample(np.concatenate(scaled), None, ids)


def matching_if_declared(
    items: Items, pattern: str | None, task: str, metric: str
) -> list[np.ndarray] | None:
    """Select arrays by a pattern, or return None if the rule has no such pattern."""
    if pattern is None:
        return None
    return matching(items, pattern, task, metric)


def matching(items: Items, pattern: str, task: str, metric: str) -> list[np.ndarray]:
    """Select the arrays whose names match a pattern of `ItemScore`, in their order."""
    name = re.escape(pattern.format(task=task, metric=metric))
    name = name.replace(r"\*\*/", "(.+/)?").replace(r"\*", "[^/]+")
    return [array for item, array in items.items() if re.fullmatch(name, item)]


def sentence_ids(*sides: list[str]) -> np.ndarray:
    """Hash sentences without their case, punctuation and spaces.

    Args:
        sides: the sentences of all items; for pairs, the left ones and the right ones.

    Returns:
        (items, sides) 64-bit integers.
    """
    columns = []
    for side in sides:
        digests = b"".join(sentence_digest(text) for text in side)
        columns.append(np.frombuffer(digests, "<i8").astype(np.int64))
    return np.stack(columns, axis=1)


def sentence_digest(text: str) -> bytes:
    """Hash the letters and digits of a sentence to 8 bytes, or the whole text if it has none."""
    letters = re.sub(r"[\W_]+", "", text.lower()) or text
    return hashlib.blake2b(letters.encode(), digest_size=8).digest()
