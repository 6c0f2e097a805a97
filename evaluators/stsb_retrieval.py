"""In-domain retrieval on STS-B (InfoCSE Table 11): find the paraphrase of a sentence among those of the test set.

Queries are the first sentences of the 97 pairs graded 5, the answer is the pair's second sentence, candidates are all
2,758 sentences. Neither paper nor code says what becomes of the 31 queries of which the corpus holds another copy: if
only the query's own place were left out, Recall@1 could not exceed 68.0, below every printed value. So sentences
equal to the query are no candidates; `naive` is the other reading.
"""

from collections import Counter

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.sts import read_sts
from csebench.model.metrics import unit

DECLARATION = {
    "name": "stsb_retrieval",
    "version": 1,
    "title": "In-domain retrieval on STS-B",
    "protocol": "stsb-test-score5-{copies}",
    "tasks": ["STS-B"],
    "files": ["downstream/STS/STSBenchmark/sts-test.csv"],
    "params": {"copies": "removed"},
    "variants": {"naive": {"copies": "kept"}},
    "best": {"recall@1": 1.0, "recall@5": 1.0, "recall@10": 1.0},
    "chance": {"recall@1": (0.0, 0.5), "recall@5": (0.0, 0.8), "recall@10": (0.0, 0.9)},
    "source": "InfoCSE sec. 5.4, Table 11",
    "deviations": [
        "ours: copies of the query are no candidates; other sentences that occur several times count as often",
        "one of 86 queries occurs with several answers, of which one can be first: Recall@1 is 88.7 at most",
    ],
}
CUTOFFS = (1, 5, 10)


def evaluate(model, data_root, copies):
    """Scores of a model.

    Args:
        copies: of the query in the corpus: `removed`, or `kept` but its own place.

    Returns:
        (rows, items): Recall at 1, 5 and 10; items `rank` (queries,) of the answer, ties in its favour.
    """
    (pairs,) = read_sts(data_root, "STS-B", "test")
    asked = np.flatnonzero(pairs.gold == 5)
    if len(asked) == 0:
        raise BadInput(f"{data_root}: STS-B test: no pair is graded 5, so there is nothing to look for.")
    count = Counter([*pairs.left, *pairs.right])
    truth = {s: {s: 0.0} for s in count}
    for i in asked:
        truth[pairs.left[i]][f"pair {i}"] = truth[pairs.right[i]][f"pair {i}"] = 1.0
    for sentence, known in truth.items():
        known[sentence] = float(len(known) == 1)  # what is in no pair stands for itself
    vectors = unit(model.embed(list(count), list(truth.values())))
    place = {s: i for i, s in enumerate(count)}
    queries, answers = ([place[side[i]] for i in asked] for side in (pairs.left, pairs.right))
    cosines = vectors[queries] @ vectors.T
    often = np.tile(np.array(list(count.values())), (len(asked), 1))
    often[range(len(asked)), queries] = 0 if copies == "removed" else often[range(len(asked)), queries] - 1
    above = cosines > cosines[range(len(asked)), answers][:, None]
    rank = 1 + (often * above).sum(1)
    recall = {f"recall@{k}": float((rank <= k).mean()) for k in CUTOFFS}
    rows = [{"task": "STS-B", "subset": "all", "metric": metric, "value": value} for metric, value in recall.items()]
    return rows, {"rank": rank}
