"""Replicates of scores over test items: how a score changes when its test set is resampled.

Test sets are samples, so every score has an error. All models scored on a test set share it. So
every run is scored on the same resamples of the items, and the difference of two runs in each
resample shows how far their difference depends on the items. Replicates are small enough to
publish, and neither gold scores nor items can be read from them.

Units: items that share a sentence, directly or through other items, form a cluster, because their
errors are correlated. All test sets of an evaluator are clustered together. Clusters are
resampled. If a cluster is more than LARGEST_CLUSTER of a test set, too few units would be left.
Then each of its sentences is a unit, and an item belongs to the units of all its sentences.

Resamples: each unit has a sign s of +1 or -1 (a wild bootstrap; Wu 1986, Annals of Statistics 14),
and an item gets the weight 1 + Σs / 2. The replicate is twice the change of the score. If clusters
are the units, the variance of replicates is that of the cluster bootstrap. If sentences are the
units, it is that of the jackknife, which counts an item twice and so errs on the safe side. The
replicate of a mean is Σ s · value / n.
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
# 1.4 kB per score. A standard error is exact up to 511 units, and off by 3 % with more of them
# (benchmarks/clusters.py).
DRAWS = 512
LARGEST_CLUSTER = 0.1  # share of a test set


@dataclass(frozen=True)
class Replicates:
    """Changes of one score in resamples of its test items."""

    items: str  # digest of the evaluator's test items; replicates of equal items can be paired
    clustered: np.ndarray  # (DRAWS,)


def make_replicates(scores: list[Score], items: Items, rule: ItemScore | None) -> dict | None:
    """Make replicates of the scores of an evaluator that follow from its per-item values.

    Args:
        rule: how items make a score; None if the evaluator declares no rule.

    Returns:
        JSON with replicates by task and metric, or None if no score follows from items.
    """
    samples: dict[tuple[str, str], Sample] = {}
    for row in scores:
        test_set = sample(items, rule, row.task, row.metric)
        if test_set is not None:
            samples[row.task, row.metric] = test_set
    if not samples:
        return None

    # all metrics of a task have the same items, so the units follow from any of the metrics
    by_task = {task: test_set for (task, _), test_set in samples.items()}
    units = membership(list(by_task.values()))
    assert units.shape is not None  # for type checkers
    signs = draw_signs(DRAWS, units.shape[1])
    signs_of_items: dict[str, np.ndarray] = {}
    first = 0
    for task, test_set in by_task.items():
        end = first + len(test_set.values)
        signs_of_items[task] = units[first:end] @ signs
        first = end

    encoded: dict[str, dict] = {}
    for (task, metric), test_set in samples.items():
        clustered = encode(changes(test_set, signs_of_items[task]))
        encoded.setdefault(task, {})[metric] = {"clustered": clustered}
    return {"version": VERSION, "items": digest_of_items(by_task), "scores": encoded}


def read_replicates(content: dict, task: str, metric: str) -> Replicates | None:
    """Read the replicates of a score from a score JSON, or return None if none can be paired."""
    if not has_replicates(content, task, metric):
        return None
    published = content["replicates"]
    return Replicates(published["items"], decode(published["scores"][task][metric]["clustered"]))


def has_replicates(content: dict, task: str, metric: str) -> bool:
    """Whether a score JSON has replicates of a score that can be paired with others.

    Replicates of another version cannot be paired. Those that state no version are of version 1.
    """
    published = content.get("replicates")
    if published is None or published.get("version", 1) != VERSION:
        return False
    return metric in published["scores"].get(task, {})


def encode(changes: np.ndarray) -> dict:
    """Write numbers as whole multiples of a unit, as base64 of little-endian 16-bit integers."""
    unit = float(np.abs(changes).max()) / np.iinfo(np.int16).max or 1.0  # 1 if nothing changes
    numbers = np.rint(changes / unit).astype("<i2")
    return {"unit": unit, "values": base64.b64encode(numbers.tobytes()).decode("ascii")}


def decode(encoded: dict) -> np.ndarray:
    """Read what `encode` wrote."""
    return np.frombuffer(base64.b64decode(encoded["values"]), "<i2") * encoded["unit"]


def digest_of_items(by_task: dict[str, Sample]) -> str:
    """Hash the test items, which must be the same in two runs that are paired.

    The hash covers the number and order of items, their gold scores and their sentences.
    """
    digest = hashlib.sha256()
    for task, test_set in by_task.items():
        digest.update(f"{task} {len(test_set.values)} ".encode())
        for array in (test_set.gold, test_set.sentences):
            if array is not None:
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------- units


def membership(samples: list[Sample]) -> "csr_array":
    """Assign the items of all samples to units.

    Returns:
        (items, units) 1 if an item belongs to a unit.
    """
    from scipy.sparse import csr_array, eye_array

    sizes = [len(test_set.values) for test_set in samples]
    if any(test_set.sentences is None for test_set in samples):
        return csr_array(eye_array(sum(sizes)))  # every item is a unit
    item, sentence = sentences_of_items(samples)
    cluster = clusters(item, sentence)
    too_large = clusters_too_large(np.split(cluster, np.cumsum(sizes)[:-1]))

    # an item of a cluster that is small enough has one unit, the cluster
    whole = np.flatnonzero(~np.isin(cluster, too_large))
    labels = [("cluster", number) for number in cluster[whole]]
    # any other item has a unit for each of its sentences
    by_sentence = np.isin(cluster[item], too_large)
    labels += [("sentence", number) for number in sentence[by_sentence]]

    item = np.concatenate([whole, item[by_sentence]])
    unit = number_distinct(labels)
    return csr_array((np.ones(len(item)), (item, unit)), (sum(sizes), unit.max() + 1))


def sentences_of_items(samples: list[Sample]) -> tuple[np.ndarray, np.ndarray]:
    """List every pair of an item and one of its sentences, each pair once.

    Returns:
        (pairs,) numbers of items, counted over all samples, and (pairs,) numbers of sentences.
    """
    items: list[int] = []
    names: list[int] = []
    number = 0
    for test_set in samples:
        assert test_set.sentences is not None
        for sentences_of_item in test_set.sentences:
            for name in sorted(set(sentences_of_item.tolist())):
                items.append(number)
                names.append(name)
            number += 1
    return np.array(items), number_distinct(names)


def clusters(item: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """Number the clusters of items that share sentences, directly or through other items.

    Args:
        item, sentence: (pairs,) numbers that belong together.

    Returns:
        (items,) numbers of clusters.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # a graph whose nodes are the items, followed by the sentences
    items = item.max() + 1
    nodes = items + sentence.max() + 1
    edges = coo_array((np.ones(len(item)), (item, items + sentence)), (nodes, nodes))
    _, component = connected_components(edges, directed=False)
    return component[:items]


def clusters_too_large(cluster_by_test_set: list[np.ndarray]) -> list[int]:
    """List the clusters that are more than LARGEST_CLUSTER of any test set.

    Args:
        cluster_by_test_set: (items,) number of each item's cluster, for every test set.
    """
    too_large: set[int] = set()
    for cluster in cluster_by_test_set:
        largest = max(1, LARGEST_CLUSTER * len(cluster))
        too_large.update(np.flatnonzero(np.bincount(cluster) > largest).tolist())
    return list(too_large)


def number_distinct(values: list) -> np.ndarray:
    """Number distinct values in the order of their first appearance."""
    numbers: dict = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values])


def draw_signs(draws: int, units: int) -> np.ndarray:
    """Draw the sign of every unit in every resample, the same in every run.

    The signs are orthogonal rows of a Hadamard matrix, so that the variance of a mean over up to
    `draws` - 1 units is exact (balanced repeated replication; McCarthy 1969). If there are more
    units, several units have the same row. For each unit, a random bit says whether all signs of
    its row are flipped. The bits are the raw ones, because no release of numpy changes those.

    Args:
        draws: a power of two.

    Returns:
        (units, draws) of +1 and -1.
    """
    from scipy.linalg import hadamard

    words = -(-units // 64)  # of 64 bits, rounded up
    bits = np.random.PCG64(0).random_raw(words).astype("<u8").view(np.uint8)
    flips = 2.0 * np.unpackbits(bits)[:units, None] - 1
    row = 1 + np.arange(units) % (draws - 1)  # without the first, which is all ones
    return flips * hadamard(draws)[row]


# ---------------------------------------------------------------- scores of resamples


def changes(test_set: Sample, signs: np.ndarray) -> np.ndarray:
    """Compute the replicates of a score.

    Args:
        signs: (items, draws) sum of the signs of each item's units.

    Returns:
        (draws,) replicates.
    """
    if test_set.gold is None:  # the score is a mean
        return test_set.values.astype(np.float64) @ signs / len(test_set.values)
    weights = 1 + signs.T / 2
    unweighted = np.ones((1, len(test_set.gold)))
    resampled = weighted_spearman(test_set.values, test_set.gold, weights)
    return 2 * (resampled - weighted_spearman(test_set.values, test_set.gold, unweighted))


def weighted_spearman(values: np.ndarray, gold: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute Spearman's correlation as if items occurred several times.

    Args:
        weights: (draws, items) how often an item occurs in a resample.

    Returns:
        (draws,) correlations.
    """
    x = centred_ranks(values, weights)
    y = centred_ranks(gold, weights)
    xy = np.einsum("bi,bi,bi->b", weights, x, y)
    xx = np.einsum("bi,bi,bi->b", weights, x, x)
    yy = np.einsum("bi,bi,bi->b", weights, y, y)
    return xy / np.sqrt(xx * yy)


def centred_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rank items that occur `weights` times, and subtract the mean rank.

    Equal values get the middle of the ranks that they take up together.

    Returns:
        (draws, items) ranks.
    """
    order = np.argsort(values, kind="stable")
    # groups of equal values, in rising order: where they start, and their total weight
    starts = np.flatnonzero(np.diff(values[order], prepend=np.nan) != 0)
    group = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(group, axis=1) - group / 2
    sizes = np.diff(np.append(starts, len(values)))
    ranks = np.empty_like(weights)
    ranks[:, order] = np.repeat(middle, sizes, axis=1)
    return ranks - weights.sum(1, keepdims=True) / 2
