"""EvalRank: find the paraphrase of a sentence among 25,000 sentences.

Idea: the paraphrase of a sentence is nearer to it than any other sentence.
Score: the rank of the paraphrase by cosine, as mean reciprocal rank (mrr) and as the share of ranks
up to 1 and up to 3 (hits@1, hits@3). The mean of all sentences is subtracted from every vector
first. A sentence is ahead of the paraphrase if its cosine is higher by more than a tolerance. The
variant `as_released` has none. The released code computes the cosine of a pair twice, by two
routines, and compares the results. They differ in their last bits, so a paraphrase can be ahead of
itself.
Paper: Wang et al. 2022 (ACL), Just Rank, sec. 4. Official code:
BinWang28/EvalRank-Embedding-Evaluation src/s_evaluation.py, src/s_data_loader.py.
Items: `rank` (queries,) of the paraphrase; `mrr`, `hits@1`, `hits@3` (queries,), whose means are
the scores; `sentences` (queries, 2) ids; `as_released` also `ahead_of_itself` (queries,) bool.
Relations: `stsb_retrieval` searches the sentences of STS-B's test set, `neighbours` captions.
"""

from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.corpus import read_lines
from csebench.model.embedder import Embedder
from csebench.model.metrics import unit
from csebench.score.score_types import Items, Score, sentence_ids

DECLARATION = {
    "name": "evalrank",
    "version": 1,
    "title": "EvalRank: rank of a paraphrase",
    "protocol": "evalrank-cosine-{comparison}",
    "tasks": ["EvalRank"],
    "files": ["misc/evalrank/pos_pair.txt", "misc/evalrank/background_sent.txt"],
    "params": {"comparison": "with_tolerance"},
    "variants": {"as_released": {"comparison": "as_released"}},
    "rounding": {
        "as_released": "two results for the cosine of one pair differ in their last bits",
    },
    "best": {"mrr": 1.0, "hits@1": 1.0, "hits@3": 1.0},
    "chance": {"mrr": (0.0, 0.3), "hits@1": (0.0, 0.2), "hits@3": (0.0, 0.3)},
    "items": {"values": "{metric}", "score": "mean", "sentences": "sentences"},
    "source": (
        "EvalRank-Embedding-Evaluation c6422dbf, src/s_evaluation.py (eval_for_ranking);"
        " Just Rank sec. 4"
    ),
    "deviations": [
        (
            "ours: a sentence is ahead of the paraphrase if its cosine is higher by more than 1e-6;"
            " `as_released` has no tolerance, so its scores depend on the machine: with the toy"
            " vectors of the repository, 1,785 of 6,989 paraphrases are ahead of themselves on one"
            " machine, and 1,856 on another"
        ),
        "a wrong sentence that ties with the paraphrase ranks below it, as in the released code",
        "other paraphrases of a sentence count as wrong sentences, as in the released code",
        "cosine only; the released code also has a Euclidean setting",
    ],
}
TOLERANCE = 1e-6  # a cosine of float32 vectors is rounded by about 1e-7
CHUNK = 500  # queries compared at a time
CUTOFFS = (1, 3)


def evaluate(model: Embedder, data_root: Path, comparison: str) -> tuple[list[Score], Items]:
    """Score a model.

    Args:
        comparison: how the cosine of the paraphrase is compared with those of other sentences:
            `with_tolerance` or `as_released`.

    Returns:
        Rows of mrr, hits@1 and hits@3; items (module docstring).
    """
    pairs = read_pairs(data_root / "misc/evalrank/pos_pair.txt")
    background = read_background(data_root / "misc/evalrank/background_sent.txt")
    left = [query for query, _ in pairs]
    right = [paraphrase for _, paraphrase in pairs]
    sentences = list(dict.fromkeys([*left, *right, *background]))
    row_of = {sentence: row for row, sentence in enumerate(sentences)}
    queries = np.array([row_of[sentence] for sentence in left])
    answers = np.array([row_of[sentence] for sentence in right])

    truth = connected_groups(queries, answers, len(sentences))
    vectors = model.embed(sentences, [f"group {group}" for group in truth])
    items: Items = {"sentences": sentence_ids(left, right)}
    if comparison == "as_released":
        ranks, ahead_of_itself = ranks_as_released(vectors, queries, answers)
        items["ahead_of_itself"] = ahead_of_itself
    else:
        ranks = ranks_with_tolerance(vectors, queries, answers)
    items["rank"] = ranks
    items["mrr"] = 1 / ranks
    for cutoff in CUTOFFS:
        items[f"hits@{cutoff}"] = ranks <= cutoff
    metrics = ["mrr", *(f"hits@{cutoff}" for cutoff in CUTOFFS)]
    rows = [Score("EvalRank", "all", name, float(items[name].mean())) for name in metrics]
    return rows, items


# ---------------------------------------------------------------- ranks


def ranks_with_tolerance(
    vectors: np.ndarray, queries: np.ndarray, answers: np.ndarray
) -> np.ndarray:
    """Rank the answer of each query, from 1. Sentences that tie with the answer rank below it.

    Args:
        vectors: (sentences, D).
        queries, answers: (Q,) row numbers.

    Returns:
        (Q,) ints.
    """
    vectors = vectors.astype(np.float64)
    directions = unit(vectors - vectors.mean(axis=0))
    ranks = np.empty(len(queries), dtype=np.int64)
    for start in range(0, len(queries), CHUNK):
        rows = queries[start : start + CHUNK]
        each = np.arange(len(rows))
        cosines = directions[rows] @ directions.T
        of_answer = cosines[each, answers[start : start + CHUNK]]
        is_ahead = cosines > of_answer[:, None] + TOLERANCE
        is_ahead[each, rows] = False  # a query is no answer to itself
        ranks[start : start + CHUNK] = 1 + is_ahead.sum(axis=1)
    return ranks


def ranks_as_released(
    vectors: np.ndarray, queries: np.ndarray, answers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rank the answer of each query as the released code does, in the precision of the vectors.

    The cosine of the answer comes from a product of two rows, the others from a product of all rows
    with one. The query itself counts as ahead and stands for the 1 of the best rank.

    Args:
        vectors: (sentences, D).
        queries, answers: (Q,) row numbers.

    Returns:
        (Q,) ranks, and (Q,) bool: whether the second product puts the answer ahead of the first.
    """
    from threadpoolctl import threadpool_limits

    centred = vectors - vectors.mean(axis=0, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1)[:, None]
    directions = centred / lengths.clip(1e-12)
    ranks = np.empty(len(queries), dtype=np.int64)
    ahead_of_itself = np.empty(len(queries), dtype=bool)
    with threadpool_limits(1, "blas"):  # the rounding depends on the number of threads
        for place, (query, answer) in enumerate(zip(queries, answers, strict=True)):
            column = directions[[query]].T  # two dimensions, which choose the routines
            of_answer = np.dot(directions[[answer]], column)[0, 0]
            cosines = np.dot(directions, column)[:, 0]
            ranks[place] = max(1, (cosines > of_answer).sum())
            ahead_of_itself[place] = cosines[answer] > of_answer
    return ranks, ahead_of_itself


def connected_groups(queries: np.ndarray, answers: np.ndarray, count: int) -> np.ndarray:
    """Number the groups of sentences that pairs connect. The oracle finds its answers by them.

    Args:
        queries, answers: (Q,) row numbers.
        count: number of sentences.

    Returns:
        (count,) ints.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    is_pair = coo_array((np.ones(len(queries)), (queries, answers)), shape=(count, count))
    return connected_components(is_pair, directed=False)[1]


# ---------------------------------------------------------------- data


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Read (sentence, paraphrase) of every line `SENTENCE TAB PARAPHRASE`.

    Raises:
        BadInput: a line has another form, or there is none.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        sentences = line.split("\t")
        if len(sentences) != 2 or not all(text.strip() for text in sentences):
            raise BadInput(
                f"{path}: line {number}: expected a sentence, a tab, its paraphrase (got"
                f" {line[:60]!r})."
            )
        left, right = sentences
        pairs.append((left.strip(), right.strip()))
    if not pairs:
        raise BadInput(f"{path}: holds no pair.")
    return pairs


def read_background(path: Path) -> list[str]:
    """Read the sentences that are searched in addition to those of the pairs.

    Raises:
        BadInput: there is none, or a line is blank.
    """
    sentences = [line.strip() for line in read_lines(path)]
    for number, sentence in enumerate(sentences, 1):
        if not sentence:
            raise BadInput(f"{path}: line {number}: is blank; expected a sentence.")
    if not sentences:
        raise BadInput(f"{path}: holds no sentence.")
    return sentences
