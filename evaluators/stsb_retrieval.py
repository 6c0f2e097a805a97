"""In-domain retrieval on STS-B (InfoCSE Table 11): find the paraphrase of a sentence among those of
the test set.

Idea: the paraphrase of a sentence is nearer to it than other sentences of the same domain.
Score: Recall at 1, 5 and 10. Queries are the first sentences of the 97 pairs graded 5, the answer
is the pair's second sentence, candidates are all 2,758 sentences. Neither paper nor code says what
becomes of the 31 queries of which the corpus holds another copy: if only the query's own place were
left out, Recall@1 could not exceed 68.0, below every printed value. So sentences equal to the query
are no candidates; `naive` is the other reading.
Paper: Wu et al. 2022, InfoCSE, sec. 5.4 and Table 11. Official code: none.
Items: `rank` (queries,) of the answer, behind wrong sentences of the same cosine (a copy of the
query is not wrong); `recall@1`, `recall@5`, `recall@10` (queries,) bool, whose means are the
scores.
Relations: `beir` searches corpora with judgements; `sts` correlates the same cosines with gold
scores.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.sts import read_sts
from csebench.model.embedder import Embedder
from csebench.model.metrics import unit
from csebench.score.score_types import Items, Score

DECLARATION = {
    "name": "stsb_retrieval",
    "version": 2,
    "title": "In-domain retrieval on STS-B",
    "protocol": "stsb-test-score5-{copies}",
    "tasks": ["STS-B"],
    "counts": {"STS-B": 97},
    "files": ["downstream/STS/STSBenchmark/sts-test.csv"],
    "params": {"copies": "removed"},
    "variants": {"naive": {"copies": "kept"}},
    "best": {"recall@1": 1.0, "recall@5": 1.0, "recall@10": 1.0},
    "chance": {"recall@1": (0.0, 0.5), "recall@5": (0.0, 0.8), "recall@10": (0.0, 0.9)},
    "items": {"values": "{metric}", "score": "mean"},
    "source": "InfoCSE sec. 5.4, Table 11",
    "deviations": [
        (
            "ours: copies of the query are no candidates; other sentences that occur several times"
            " count as often"
        ),
        (
            "one of 86 queries occurs with several answers, of which one can be first: Recall@1 is"
            " 88.7 at most"
        ),
    ],
}
CUTOFFS = (1, 5, 10)


def evaluate(model: Embedder, data_root: Path, copies: str) -> tuple[list[Score], Items]:
    """Scores of a model.

    Args:
        copies: of the query in the corpus: `removed`, or `kept` except for its own place.

    Returns:
        rows of Recall at 1, 5 and 10; items (module docstring).
    """
    (pairs,) = read_sts(data_root, "STS-B", "test")
    answered = np.flatnonzero(pairs.gold == 5)
    if len(answered) == 0:
        raise BadInput(
            f"{data_root}: STS-B test: no pair is graded 5, so there is nothing to look for."
        )
    count = Counter([*pairs.left, *pairs.right])
    truth = {s: {s: 0.0} for s in count}
    for i in answered:
        truth[pairs.left[i]][f"pair {i}"] = truth[pairs.right[i]][f"pair {i}"] = 1.0
    for sentence, known in truth.items():
        known[sentence] = float(len(known) == 1)  # what is in no pair stands for itself
    documents = unit(model.embed_documents(list(count), list(truth.values())))
    position = {s: i for i, s in enumerate(count)}
    queries, answers = ([position[side[i]] for i in answered] for side in (pairs.left, pairs.right))
    each = range(len(answered))
    texts = [pairs.left[i] for i in answered]
    query_vectors = unit(model.embed_queries(texts, [truth[text] for text in texts]))
    # (queries, candidates); equal vectors tie
    cosines = (query_vectors @ documents.T).astype(np.float32)
    # how often each candidate counts
    times = np.tile(np.array(list(count.values())), (len(answered), 1))
    times[each, queries] = 0 if copies == "removed" else times[each, queries] - 1
    answers_of = {}  # a query may have several
    for query, answer in zip(queries, answers, strict=True):
        answers_of.setdefault(query, []).append(answer)
    is_wrong = np.ones(cosines.shape, dtype=bool)
    for row, query in enumerate(queries):
        is_wrong[row, [query, *answers_of[query]]] = False
    of_answer = cosines[each, answers][:, None]
    # what ties with a wrong one is not found
    ahead = (cosines > of_answer) | ((cosines == of_answer) & is_wrong)
    rank = 1 + (times * ahead).sum(1)
    hits = {f"recall@{k}": rank <= k for k in CUTOFFS}
    rows = [Score("STS-B", "all", metric, float(hit.mean())) for metric, hit in hits.items()]
    return rows, {"rank": rank, **hits}
