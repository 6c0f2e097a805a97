"""Replicates of a run's scores over test items: what a comparison needs of the items, small enough
to publish.

Test sets are samples, so a score has an error that all models scored on them share. Every run is
scored on the same resamples of the items: the difference of two runs in each shows how far their
difference depends on the items. Neither gold scores nor items can be read from it.

What is resampled is a unit: items that share a sentence, directly or by other items, in any of an
evaluator's test sets (a cluster), as their errors are correlated. Where a cluster is more than
LARGEST of a test set, too few units would be left: there each sentence is a unit, and an item
belongs to all of its own. A resample has a sign s of +1 or -1 for each unit (a wild bootstrap; Wu
1986, Annals of Statistics 14) and gives an item the weight 1 + Σs / 2. Twice the change of the
score is the replicate: its variance is that of the cluster bootstrap, and with sentences as units
that of the jackknife, which counts an item twice and so errs to the safe side. Of a mean it is Σ s
· value / n.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from csebench.plan.schema.declarations import ItemScore
from csebench.score.score_types import Items, Sample, Score, sample

if TYPE_CHECKING:
    from scipy.sparse import csr_array

VERSION = 1  # increase it when a change of this file or of score_types.py changes a replicate
# 1.4 kB of a score; a standard error is exact up to 511 units, then off by 3 %
# (benchmarks/clusters.py)
DRAWS = 512
LARGEST_CLUSTER = 0.1  # of a test set, in one cluster


@dataclass(frozen=True)
class Replicates:
    """Changes of one score in resamples of its test items."""

    items: str  # digest of the evaluator's test items: replicates of equal ones are paired
    clustered: np.ndarray  # (DRAWS,)


def make_replicates(scores: list[Score], items: Items, rule: ItemScore | None) -> dict | None:
    """Replicates of every score of an evaluator that its items make by its rule, as JSON; None
    where there is none."""
    by_score = {(row.task, row.metric): sample(items, rule, row.task, row.metric) for row in scores}
    samples = {score: test_set for score, test_set in by_score.items() if test_set is not None}
    if not samples:
        return None
    # metrics of a task have the same items
    by_task = {task: test_set for (task, _), test_set in samples.items()}
    ends = np.cumsum([len(test_set.values) for test_set in by_task.values()])
    units = membership(list(by_task.values()))
    assert units.shape is not None  # for type checkers
    signs = draw_signs(DRAWS, units.shape[1])
    rows = {
        task: slice(end - len(by_task[task].values), end)
        for task, end in zip(by_task, ends, strict=True)
    }
    encoded: dict[str, dict] = {}
    for (task, metric), test_set in samples.items():
        encoded.setdefault(task, {})[metric] = {
            "clustered": encode(changes(test_set, units[rows[task]] @ signs))
        }
    return {"version": VERSION, "items": digest_of_items(by_task), "scores": encoded}


def read_replicates(content: dict, task: str, metric: str) -> Replicates | None:
    """Replicates in a score JSON; None where it has none of a score, or of another version, with
    which ours cannot be paired. Those that state no version are of the first."""
    if not has_replicates(content, task, metric):
        return None
    published = content["replicates"]
    return Replicates(published["items"], decode(published["scores"][task][metric]["clustered"]))


def has_replicates(content: dict, task: str, metric: str) -> bool:
    """Whether a score JSON has replicates of a score that ours can be paired with."""
    published = content.get("replicates")
    if published is None or published.get("version", 1) != VERSION:
        return False
    return metric in published["scores"].get(task, {})


def encode(changes: np.ndarray) -> dict:
    """Whole multiples of a unit, as base64 of 16-bit integers, little-endian."""
    unit = float(np.abs(changes).max()) / np.iinfo(np.int16).max or 1.0
    numbers = np.rint(changes / unit).astype("<i2")
    return {"unit": unit, "values": base64.b64encode(numbers.tobytes()).decode("ascii")}


def decode(encoded: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(encoded["values"]), "<i2") * encoded["unit"]


def digest_of_items(by_task: dict[str, Sample]) -> str:
    """A hash of what replicates of two runs must share: number and order of items, gold scores,
    sentences."""
    digest = hashlib.sha256()
    for task, test_set in by_task.items():
        digest.update(f"{task} {len(test_set.values)} ".encode())
        for array in (test_set.gold, test_set.sentences):
            digest.update(b"" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------- units


def membership(samples: list[Sample]) -> "csr_array":
    """(items, units) 1 where an item belongs to a unit; the items of all samples together."""
    from scipy.sparse import csr_array, eye_array

    sizes = [len(test_set.values) for test_set in samples]
    known = [test_set.sentences for test_set in samples if test_set.sentences is not None]
    if len(known) < len(samples):
        return csr_array(eye_array(sum(sizes)))  # every item is a unit
    ids = [sorted(set(of_item.tolist())) for sentences in known for of_item in sentences]
    pairs = [(row, sentence) for row, of_item in enumerate(ids) for sentence in of_item]
    item = np.array([row for row, _ in pairs])
    sentence = number_distinct([name for _, name in pairs])
    cluster = clusters(item, sentence)
    of_test_set = np.split(cluster, np.cumsum(sizes)[:-1])
    huge = {
        c
        for part in of_test_set
        for c in np.flatnonzero(np.bincount(part) > max(1, LARGEST_CLUSTER * len(part)))
    }
    by_sentence = np.isin(cluster[item], list(huge))
    whole = np.flatnonzero(~np.isin(cluster, list(huge)))
    item = np.concatenate([whole, item[by_sentence]])
    unit = number_distinct(
        [
            *(("cluster", c) for c in cluster[whole]),
            *(("sentence", s) for s in sentence[by_sentence]),
        ]
    )
    return csr_array((np.ones(len(item)), (item, unit)), (sum(sizes), unit.max() + 1))


def clusters(item: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """(items,) number of the connected component of each item, from (item, sentence) that belong
    together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    items, nodes = item.max() + 1, item.max() + sentence.max() + 2
    edges = coo_array((np.ones(len(item)), (item, items + sentence)), (nodes, nodes))
    return connected_components(edges, directed=False)[1][:items]


def number_distinct(values: list) -> np.ndarray:
    """Whole numbers in the order of first appearance, the same for equal values."""
    known: dict = {}
    return np.array([known.setdefault(value, len(known)) for value in values])


def draw_signs(draws: int, units: int) -> np.ndarray:
    """(units, draws) of +1 and -1, the same in every run: orthogonal rows of a Hadamard matrix, so
    that the variance of a mean over up to `draws` - 1 units is exact (balanced repeated
    replication; McCarthy 1969). More units share rows, with signs from raw random bits, which no
    release of numpy changes. `draws` is a power of two.
    """
    from scipy.linalg import hadamard

    bits = np.random.PCG64(0).random_raw(-(-units // 64)).astype("<u8").view(np.uint8)
    flips = 2.0 * np.unpackbits(bits)[:units, None] - 1
    return flips * hadamard(draws)[1 + np.arange(units) % (draws - 1)]


# ---------------------------------------------------------------- scores of resamples


def changes(test_set: Sample, signs: np.ndarray) -> np.ndarray:
    """(draws,) replicates of a score, by signs (items, draws): sums over the units of each item."""
    if test_set.gold is None:
        return test_set.values.astype(np.float64) @ signs / len(test_set.values)
    weights = 1 + signs.T / 2
    resampled = weighted_spearman(test_set.values, test_set.gold, weights)
    return 2 * (
        resampled
        - weighted_spearman(test_set.values, test_set.gold, np.ones((1, len(test_set.gold))))
    )


def weighted_spearman(values: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(draws,) Spearman's correlation where items occur `weights` (draws, items) times, ties by
    their middle."""
    x, y = (centred_ranks(side, weights) for side in (values, gold))
    xy, xx, yy = (np.einsum("bi,bi,bi->b", weights, *sides) for sides in ((x, y), (x, x), (y, y)))
    return xy / np.sqrt(xx * yy)


def centred_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(draws, items) ranks among items that occur `weights` times, less their mean."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)
    group = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(group, axis=1) - group / 2
    ranks = np.empty_like(weights)
    ranks[:, order] = np.repeat(middle, np.diff(np.append(starts, len(values))), axis=1)
    return ranks - weights.sum(1, keepdims=True) / 2
