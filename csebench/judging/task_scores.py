"""The score of a model on one test set, as the judge takes it from files of any format.

A score may come with values of its test items. They are resampled as csebench resamples its own
(csebench/score/replicates.py), so that two scores on the same items can be compared over items.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from csebench.base.errors import BadInput, shortened
from csebench.score.replicates import DRAWS, Replicates, changes, draw_signs
from csebench.score.score_types import Sample

MOST_IDS = 3  # ids of items that a message lists


@dataclass(frozen=True)
class ItemValue:
    """The score of a model on one test item."""

    value: float  # a fraction; more is better
    content: str = ""  # hash of the item's content; empty if the file states none


@dataclass(frozen=True)
class TaskScore:
    """The score of one model on one test set."""

    value: float  # a fraction; more is better
    test_set: str  # names the test data; scores with other names are not compared
    replicates: Replicates | None = None  # None if the values of test items are not known
    item_count: int | None = None
    has_fractions: bool = False  # whether values of items are known, not all of which are 0 or 1
    contents: Mapping[str, str] = field(default_factory=dict)  # hashes of known items, by id


def score_of_items(task: str, items: Mapping[str, ItemValue]) -> TaskScore:
    """Average the values of test items, and resample the items.

    Args:
        items: at least one, by id. Their order does not matter.
    """
    ids = sorted(items)
    contents = {name: items[name].content for name in ids}
    digest = digest_of_contents(task, contents)
    values = np.array([items[name].value for name in ids])
    signs = draw_signs(DRAWS, len(ids))  # every item is a unit of its own
    return TaskScore(
        value=float(values.mean()),
        test_set=f"items {digest}",
        replicates=Replicates(digest, changes(Sample(values), signs)),
        item_count=len(ids),
        has_fractions=are_fractions(values),
        contents=contents,
    )


def are_fractions(values: np.ndarray) -> bool:
    """Whether any of the values of items is neither 0 nor 1."""
    return not np.isin(values, (0, 1)).all()


def digest_of_contents(task: str, contents: Mapping[str, str]) -> str:
    """Hash the ids of a task's test items, and what is known of their content."""
    digest = hashlib.sha256(task.encode())
    for name, content in contents.items():
        digest.update(f"\0{name}\0{content}".encode())
    return digest.hexdigest()[:16]


def checked_fraction(value: float, where: str) -> float:
    """Return a value that can be the fraction of a score.

    Raises:
        BadInput: it lies outside of -1 and 1, or is not finite.
    """
    if not math.isfinite(value) or abs(value) > 1:
        raise BadInput(
            f"{where}: {value:g} is not a fraction of a score (-1 to 1, more is better); divide"
            " percentages by 100."
        )
    return float(value)


# ---------------------------------------------------------------- same test items


def why_not_paired(first: TaskScore, second: TaskScore) -> str | None:
    """Explain why two scores are not on the same test items, or return None if they are."""
    if first.contents and second.contents:
        return difference_of_items(first.contents, second.contents)
    if first.test_set != second.test_set:
        return f"{first.test_set} against {second.test_set}"
    if first.replicates is None or second.replicates is None:
        return None
    if first.replicates.items != second.replicates.items:
        return f"test items {first.replicates.items} against {second.replicates.items}"
    return None


def difference_of_items(first: Mapping[str, str], second: Mapping[str, str]) -> str | None:
    """Explain how two sets of test items differ, or return None if they are the same."""
    only_first = first.keys() - second.keys()
    if only_first:
        return f"{len(only_first)} of {len(first)} items are only in the first: {ids(only_first)}"
    only_second = second.keys() - first.keys()
    if only_second:
        return (
            f"{len(only_second)} of {len(second)} items are only in the second: {ids(only_second)}"
        )
    if any(bool(first[name]) != bool(second[name]) for name in first):
        return "only one of them states hashes of its items; give hashes of both, or of none"
    changed = [name for name in first if first[name] != second[name]]
    if changed:
        return f"{len(changed)} of {len(first)} items have another content (hash): {ids(changed)}"
    return None


def ids(names: Iterable[str]) -> str:
    """List the first ids of some items: `7, 12, 31 and 4 more`."""
    ordered = sorted(names)
    text = ", ".join(shortened(name, 40) for name in ordered[:MOST_IDS])
    if len(ordered) > MOST_IDS:
        text += f" and {len(ordered) - MOST_IDS} more"
    return text
