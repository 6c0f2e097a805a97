"""The test data that a score was computed on, identified by the hashes in its JSON.

A score JSON states `data_sha256`, a hash of all files that its evaluator read. It may also state
`replicates.items`, a hash of the test items. Scores on different data are different measurements,
which are never averaged or compared. Never imports torch.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

SHOWN_DIGITS = 12  # digits of a hash that pages print


@dataclass(frozen=True)
class EvaluationData:
    """Test data, identified by two hashes."""

    files: str = ""  # hash of names and contents of all files; old score files do not state it
    # hash of the test items and their gold scores; empty if the score has no replicates
    items: str = ""

    def is_same_as(self, other: "EvaluationData") -> bool:
        """Whether scores on both can be averaged and compared. Unknown items count as equal."""
        if self.files != other.files:
            return False
        if not self.items or not other.items:
            return True
        return self.items == other.items

    def text_beside(self, other: "EvaluationData") -> str:
        """Name the data by a hash that differs from other data, such as `data 94b655eb25db`."""
        if self.files != other.files:
            return f"data {self.files[:SHOWN_DIGITS] or 'of unknown hash'}"
        return f"items {self.items[:SHOWN_DIGITS]}"


@dataclass(frozen=True)
class Scored:
    """A score file that a table shows."""

    content: dict
    is_outdated: bool  # scored with an older code version or other settings

    @property
    def data(self) -> EvaluationData:
        """The test data that the file states.

        Items of an outdated score are left out, because older code may have hashed them in another
        way.
        """
        files = self.content["evaluations"][0].get("data_sha256") or ""
        if self.is_outdated:
            return EvaluationData(files)
        replicates = self.content.get("replicates") or {}
        return EvaluationData(files, replicates.get("items") or "")

    @property
    def started(self) -> str:
        """The time when the evaluation started, as a text that sorts by time."""
        return self.content.get("provenance", {}).get("started", "")


def data_of_most(scores: Iterable[Scored]) -> EvaluationData:
    """Choose the data of a table from the scores of one evaluator.

    First choose the files that most scores were computed on. Then choose the items of most of the
    scores on these files.
    """
    by_files: dict[str, list[Scored]] = defaultdict(list)
    for score in scores:
        by_files[score.data.files].append(score)
    files = largest_group(by_files)
    by_items: dict[str, list[Scored]] = defaultdict(list)
    for score in by_files[files]:
        if score.data.items:
            by_items[score.data.items].append(score)
    if not by_items:
        return EvaluationData(files)
    return EvaluationData(files, largest_group(by_items))


def largest_group(groups: dict[str, list[Scored]]) -> str:
    """Name the group with the most current scores."""

    def most_current_then_most_then_newest(name: str) -> tuple[int, int, str, str]:
        """Compare scores of today's code first, then all scores, then the newest score.

        The name, a hash, breaks ties. So the same score files always give the same page.
        """
        scores = groups[name]
        current = sum(not score.is_outdated for score in scores)
        return current, len(scores), max(score.started for score in scores), name

    return max(groups, key=most_current_then_most_then_newest)
