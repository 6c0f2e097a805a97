"""In-domain retrieval on STS-B (InfoCSE Table 11): find the paraphrase of a sentence among the
sentences of the test set.

Idea: the paraphrase of a sentence is nearer to it than other sentences of the same domain.
Score: Recall at 1, 5 and 10. Queries are the first sentences of the 97 pairs graded 5. The answer
is the pair's second sentence. Candidates are all 2,758 sentences. 31 queries occur in the corpus a
second time, and neither paper nor code says whether this copy can be retrieved. If only the query's
own place were left out, Recall@1 could not exceed 68.0, below every printed value. So sentences
equal to the query are no candidates. The variant `naive` is the other reading.
Paper: Wu et al. 2022, InfoCSE, sec. 5.4 and Table 11. Official code: none.
Items: `rank` (queries,) of the answer; wrong sentences of the same cosine come before it (a copy of
the query is not wrong). `recall@1`, `recall@5`, `recall@10` (queries,) bool, whose means are the
scores.
Relations: `beir` searches corpora with judgements; `sts` correlates the same cosines with gold
scores.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.sts import Pairs, read_sts
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
    """Score a model.

    Args:
        copies: what happens to copies of the query in the corpus: all are `removed`, or all are
            `kept` except the query itself.

    Returns:
        Rows of Recall at 1, 5 and 10; items (module docstring).
    """
    (pairs,) = read_sts(data_root, "STS-B", "test")
    answered = np.flatnonzero(pairs.gold == 5)
    if len(answered) == 0:
        raise BadInput(
            f"{data_root}: STS-B test: no pair is graded 5, so there is nothing to look for."
        )

    # the corpus: every distinct sentence, with the number of its copies
    copies_of = Counter([*pairs.left, *pairs.right])
    position = {sentence: i for i, sentence in enumerate(copies_of)}
    queries = [position[pairs.left[i]] for i in answered]
    answers = [position[pairs.right[i]] for i in answered]

    # cosines (queries, sentences), in float32, so that equal vectors tie
    truth = truth_of_sentences(pairs, answered)
    texts = [pairs.left[i] for i in answered]
    documents = unit(model.embed_documents(list(copies_of), list(truth.values())))
    query_vectors = unit(model.embed_queries(texts, [truth[text] for text in texts]))
    cosines = (query_vectors @ documents.T).astype(np.float32)

    # how often a sentence is a candidate for a query
    each = range(len(answered))
    times = np.tile(np.array(list(copies_of.values())), (len(answered), 1))
    if copies == "removed":
        times[each, queries] = 0
    else:
        times[each, queries] -= 1

    # the rank of the answer: a wrong sentence that ties with it comes first
    is_wrong = wrong_sentences(queries, answers, len(copies_of))
    of_answer = cosines[each, answers][:, None]
    is_ahead = (cosines > of_answer) | ((cosines == of_answer) & is_wrong)
    rank = 1 + (times * is_ahead).sum(1)
    hits = {f"recall@{k}": rank <= k for k in CUTOFFS}
    rows = [Score("STS-B", "all", metric, float(hit.mean())) for metric, hit in hits.items()]
    return rows, {"rank": rank, **hits}


def truth_of_sentences(pairs: Pairs, answered: np.ndarray) -> dict[str, dict[str, float]]:
    """State for each sentence which pairs it is in. The oracle finds its answers by them.

    A sentence that is in none of the `answered` pairs stands for itself.
    """
    truth: dict[str, dict[str, float]] = {}
    for sentence in [*pairs.left, *pairs.right]:
        truth[sentence] = {sentence: 0.0}
    for i in answered:
        truth[pairs.left[i]][f"pair {i}"] = 1.0
        truth[pairs.right[i]][f"pair {i}"] = 1.0
    for sentence, weights in truth.items():
        is_in_no_pair = len(weights) == 1
        weights[sentence] = float(is_in_no_pair)
    return truth


def wrong_sentences(queries: list[int], answers: list[int], sentences: int) -> np.ndarray:
    """Find the wrong sentences for each query: neither the query nor one of its answers.

    A query may occur several times, with several answers.

    Returns:
        (queries, sentences) bool.
    """
    answers_of: dict[int, list[int]] = {}
    for query, answer in zip(queries, answers, strict=True):
        answers_of.setdefault(query, []).append(answer)
    is_wrong = np.ones((len(queries), sentences), dtype=bool)
    for row, query in enumerate(queries):
        is_wrong[row, [query, *answers_of[query]]] = False
    return is_wrong
