"""The test data that scores are of, by the hashes in their JSON. Never imports torch.

A score JSON states two: `data_sha256` of all files that its evaluator read, and `replicates.items`
of the test items, where the evaluator declares them. Scores of different data are different
measurements: they are never averaged or compared.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

SHOWN_DIGITS = 12  # of a hash, on pages


@dataclass(frozen=True)
class EvaluationData:
    """The data that a score was computed on, by its hashes."""

    files: str = ""  # of names and contents of all files that were read; empty in old score files
    # of number, order, gold scores and sentences of the items; empty without replicates
    items: str = ""

    def is_same_as(self, other: "EvaluationData") -> bool:
        """Whether scores on both can be averaged and compared. Unknown items count as equal
        ones."""
        if self.files != other.files:
            return False
        return self.items == other.items or not (self.items and other.items)

    def text_beside(self, other: "EvaluationData") -> str:
        """Name the data by the hash in which it differs from other data: `data 94b655eb25db`."""
        if self.files != other.files:
            return f"data {self.files[:SHOWN_DIGITS] or 'of unknown hash'}"
        return f"items {self.items[:SHOWN_DIGITS]}"


@dataclass(frozen=True)
class Scored:
    """One score file that a table shows."""

    content: dict
    is_outdated: bool  # scored with an older code version or other settings

    @property
    def data(self) -> EvaluationData:
        """The test data that it states; without the items of older code, which may have hashed
        them otherwise."""
        files = self.content["evaluations"][0].get("data_sha256") or ""
        if self.is_outdated:
            return EvaluationData(files)
        replicates = self.content.get("replicates") or {}
        return EvaluationData(files, replicates.get("items") or "")

    @property
    def started(self) -> str:
        """When it was evaluated, so that the newest of several can be found."""
        return self.content.get("provenance", {}).get("started", "")


def data_of_most(scores: Iterable[Scored]) -> EvaluationData:
    """Choose the data of a table: that of most scores of an evaluator, and among its files the
    items of most.

    Scores of today's code count before outdated ones. Of equally many the newest decide, so that
    the same score files always give the same page.
    """
    by_files: dict[str, list[Scored]] = defaultdict(list)
    for score in scores:
        by_files[score.data.files].append(score)
    files = largest_group(by_files)
    by_items: dict[str, list[Scored]] = defaultdict(list)
    for score in by_files[files]:
        if items := score.data.items:
            by_items[items].append(score)
    return EvaluationData(files, largest_group(by_items) if by_items else "")


def largest_group(groups: dict[str, list[Scored]]) -> str:
    """The name of the group with most scores, as in `data_of_most`."""

    def rank(name: str) -> tuple[int, int, str, str]:
        scores = groups[name]
        current = sum(not score.is_outdated for score in scores)
        return current, len(scores), max(score.started for score in scores), name

    return max(groups, key=rank)
