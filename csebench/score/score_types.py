"""What an evaluator returns: rows of scores, and per-item values with the rule by which they
make a score."""

import hashlib
import re
from typing import NamedTuple

import numpy as np

from csebench.plan.schema.declarations import ItemScore

# by name: a value per pair, sentence or query, and what goes with them
Items = dict[str, np.ndarray]


class Score(NamedTuple):
    """One number of a model."""

    task: str  # as in the papers' columns, or `Avg.`
    subset: str  # `all`, or the subset's name
    metric: str
    value: float  # unrounded; what the papers print in percent is a fraction


class Sample(NamedTuple):
    """The test items behind one score."""

    values: np.ndarray  # (items,) whose mean is the score, or whose rank correlation with `gold`
    gold: np.ndarray | None = None  # (items,)
    # (items, sentences of an item) ids; items that share one are not independent
    sentences: np.ndarray | None = None


def sample(items: Items, rule: ItemScore | None, task: str, metric: str) -> Sample | None:
    """The test items behind a score; None where the evaluator declares no rule for it, or its items
    are not there. In a mean of several arrays (the forums of a retrieval corpus) each weighs the
    same, whatever its length.
    """
    if rule is None or rule.metric not in (None, metric):
        return None
    arrays = matching(items, rule.values, task, metric)
    lengths = [len(array) for array in arrays]
    gold = None if rule.gold is None else matching(items, rule.gold, task, metric)
    sentences = None if rule.sentences is None else matching(items, rule.sentences, task, metric)
    if not arrays or any(
        part is not None and [len(array) for array in part] != lengths for part in (gold, sentences)
    ):
        return None
    ids = None if sentences is None else np.concatenate(sentences)
    if gold is None:
        arrays = [array * sum(lengths) / (len(arrays) * len(array)) for array in arrays]
        return Sample(np.concatenate(arrays), None, ids)
    return Sample(np.concatenate(arrays), np.concatenate(gold).astype(np.float64), ids)


def matching(items: Items, pattern: str, task: str, metric: str) -> list[np.ndarray]:
    """The arrays whose names match a pattern of `ItemScore`, in their order."""
    name = re.escape(pattern.format(task=task, metric=metric))
    name = name.replace(r"\*\*/", "(.+/)?").replace(r"\*", "[^/]+")
    return [array for item, array in items.items() if re.fullmatch(name, item)]


def sentence_ids(*sides: list[str]) -> np.ndarray:
    """(items, sides) 64-bit hashes of sentences, whatever case, punctuation and spaces; of
    pairs: left and right."""
    letters = [[re.sub(r"[\W_]+", "", text.lower()) or text for text in side] for side in sides]
    digests = [
        b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in side)
        for side in letters
    ]
    return np.stack([np.frombuffer(side, "<i8").astype(np.int64) for side in digests], axis=1)
