"""What an evaluator returns: rows of scores, and per-item values with the rule by which they make a score."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from csebench.plan.schema import ItemScore

Items = dict[str, np.ndarray]  # by name: a value per pair, sentence or query, and what goes with them


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


def sample(items: Items, rule: ItemScore | None, task: str, metric: str) -> Sample | None:
    """The test items behind a score; None where the evaluator declares no rule for it, or its items are not there.

    In a mean of several arrays (the forums of a retrieval corpus) each weighs the same, whatever its length.
    """
    if rule is None or rule.metric not in (None, metric):
        return None
    arrays = matching(items, rule.values, task, metric)
    if not arrays:
        return None
    if rule.gold is None:
        total = sum(map(len, arrays))
        return Sample(np.concatenate([array * total / (len(arrays) * len(array)) for array in arrays]))
    gold = matching(items, rule.gold, task, metric)
    if [len(array) for array in arrays] != [len(array) for array in gold]:
        return None
    return Sample(np.concatenate(arrays), np.concatenate(gold).astype(np.float64))


def matching(items: Items, pattern: str, task: str, metric: str) -> list[np.ndarray]:
    """The arrays whose names match a pattern of `ItemScore`, in their order."""
    name = re.escape(pattern.format(task=task, metric=metric))
    name = name.replace(r"\*\*/", "(.+/)?").replace(r"\*", "[^/]+")
    return [array for item, array in items.items() if re.fullmatch(name, item)]
