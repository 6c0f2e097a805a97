"""BEIR: zero-shot retrieval, exact search, nDCG@10, MAP and Recall@100 by pytrec_eval.

Idea: the documents that answer a query are those nearest to it, on a corpus that the model was not trained on.
Score: means over queries; cqadupstack is the mean of its forums. A document is its title, a blank and its text; the
1000 best documents of a query count, but never the one of its own id. The papers publish no setting (InfoCSE Table 3),
so pooler, similarity, length and precision are in the protocol's name, and docs/evaluators.md has published values to
calibrate them on.
Paper: Thakur et al. 2021 (NeurIPS); InfoCSE Table 3. Official code: beir-cellar/beir, exact_search.py, evaluation.py.
Its search holds a corpus in memory, ours reads it in shards (csebench/model/embedder.py: stream) and gives the same
scores (tests/protocol/test_retrieval.py).
Items: `METRIC` (queries,) of every query with their `queries` (queries,) ids, in the order of the ids; of several
forums `FORUM/METRIC` and `FORUM/queries`. The means over queries are the scores, each forum weighing the same.
Relations: `stsb_retrieval` searches STS-B's sentences; `mteb:QuoraRetrieval` is a corpus of BEIR in MTEB's reading.
"""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from beir.datasets.data_loader import GenericDataLoader
from beir.retrieval.evaluation import pytrec_eval

from csebench.base.errors import BadInput, shortened
from csebench.base.files import parse_json
from csebench.model.embedder import Embedder
from csebench.plan.declarations import Precision
from csebench.score.score_types import Items, Score

DECLARATION = {
    "name": "beir",
    "version": 1,
    "title": "Zero-shot retrieval (BEIR)",
    "protocol": "beir-{pooler}-{similarity}-{max_length}-{precision}",
    "tasks": [
        "trec-covid",
        "nfcorpus",
        "nq",
        "fiqa",
        "arguana",
        "webis-touche2020",
        "quora",
        "cqadupstack",
        "dbpedia-entity",
        "scidocs",
        "climate-fever",
        "scifact",
        "hotpotqa",
        "fever",
    ],
    "takes": "dataset",
    "example": "smoke",
    "files": [
        "beir/{dataset}/**/corpus.jsonl",
        "beir/{dataset}/**/queries.jsonl",
        "beir/{dataset}/**/qrels/test.tsv",
    ],
    "params": {"similarity": "cos"},
    "variants": {"dot": {"similarity": "dot"}, "bf16": {"precision": "bf16"}},
    "best": {"ndcg@10": 1.0, "map": 1.0, "recall@100": 1.0},
    "chance": {"ndcg@10": (0.0, 0.35), "map": (0.0, 0.35)},
    "items": {"values": "**/{metric}", "score": "mean"},
    "source": "Thakur et al. 2021 (NeurIPS); beir 2.2 exact_search.py, evaluation.py",
    "deviations": ["any folder below beir/ can be named, known to BEIR or not"],
}
RETRIEVED = 1000
LARGEST_GRADE = 2**15  # of a judgement
QUERIES = 1024  # scored against a shard at a time
METRICS = {"ndcg@10": "ndcg_cut_10", "map": "map_cut_1000", "recall@100": "recall_100"}


Queries = dict[str, str]  # text by id
Qrels = dict[str, dict[str, int]]  # grades of documents, by query and document


def evaluate(
    model: Embedder, data_root: Path, dataset: str, similarity: str, precision: Precision | None = None
) -> tuple[list[Score], Items]:
    """Scores of a model on one dataset.

    Args:
        dataset: folder below `beir/`: corpus.jsonl, queries.jsonl and qrels/test.tsv, or folders of such (forums).
        similarity: `cos` or `dot`.
        precision: in which texts are embedded; None: that of the evaluation.

    Returns:
        rows, the mean over queries, subset `all`, of several forums also each forum's; items (module docstring).
    """
    root = data_root / f"beir/{dataset}"
    folders = {str(path.parent.relative_to(root)): path.parent for path in sorted(root.glob("**/corpus.jsonl"))}
    corpora = {name: read(folder) for name, folder in folders.items()}
    with embedding_in(model, precision or model.evaluation.precision):
        by_forum = {name: values_of(model, folder, *corpora[name], similarity) for name, folder in folders.items()}
    means = {name: {m: float(np.mean(items[m])) for m in METRICS} for name, items in by_forum.items()}
    rows = [Score(dataset, "all", m, float(np.mean([values[m] for values in means.values()]))) for m in METRICS]
    if len(by_forum) == 1:
        return rows, next(iter(by_forum.values()))
    rows += [Score(dataset, name, m, value) for name, values in means.items() for m, value in values.items()]
    return rows, {f"{name}/{item}": array for name, items in by_forum.items() for item, array in items.items()}


@contextmanager
def embedding_in(model: Embedder, precision: Precision) -> Iterator[None]:
    """Let a model embed in a precision; what it remembers of another is not used meanwhile."""
    before = model.evaluation, model.known
    if precision != model.evaluation.precision:
        model.evaluation, model.known = model.evaluation.model_copy(update={"precision": precision}), {}
    try:
        yield
    finally:
        model.evaluation, model.known = before


def values_of(model: Embedder, folder: Path, ids: list[str], queries: Queries, qrels: Qrels, similarity: str) -> Items:
    """Per-query values of one corpus."""
    ranking = search(model, folder, ids, queries, qrels, similarity)
    results = pytrec_eval.RelevanceEvaluator(qrels, set(METRICS.values())).evaluate(ranking)
    judged = sorted(results)
    values = {metric: np.array([results[query][name] for query in judged]) for metric, name in METRICS.items()}
    return {"queries": np.array(judged), **values}


def search(
    model: Embedder, folder: Path, ids: list[str], queries: Queries, qrels: Qrels, similarity: str
) -> dict[str, dict[str, float]]:
    """The best documents of every query with their scores, {query: {document: score}}."""
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def comparable(vectors: np.ndarray) -> torch.Tensor:
        rows = torch.from_numpy(np.asarray(vectors, dtype=np.float32)).to(device)
        return torch.nn.functional.normalize(rows) if similarity == "cos" else rows

    relevant = [{d: float(g) for d, g in qrels[q].items() if g > 0} or {"none": 1.0} for q in queries]
    query_vectors = comparable(model.embed_queries(list(queries.values()), relevant))
    scores = torch.full((len(queries), 0), -torch.inf, device=device)  # of the best documents so far
    numbers = torch.zeros((len(queries), 0), dtype=torch.long, device=device)  # their places in the corpus
    searched, texts = 0, (text for _, text in documents(folder / "corpus.jsonl"))
    for shard in model.stream(texts, folder.name, iter(ids)):
        shard_vectors, best = comparable(shard), []
        for start in range(0, len(query_vectors), QUERIES):
            rows = slice(start, start + QUERIES)
            merged = torch.cat([scores[rows], query_vectors[rows] @ shard_vectors.T], dim=1)
            kept, index = merged.topk(min(RETRIEVED + 1, merged.shape[1]), dim=1)
            new = torch.arange(searched, searched + len(shard_vectors), device=device).expand(len(merged), -1)
            best.append((kept, torch.cat([numbers[rows], new], dim=1).gather(1, index)))
        scores, numbers = (torch.cat(parts) for parts in zip(*best, strict=True))
        searched += len(shard_vectors)
    ranking = {}
    for query, query_scores, places in zip(queries, scores.tolist(), numbers.tolist(), strict=True):
        hits = [(ids[place], score) for place, score in zip(places, query_scores, strict=True) if ids[place] != query]
        ranking[query] = dict(hits[:RETRIEVED])
    return ranking


# ---------------------------------------------------------------- reading


def read(folder: Path) -> tuple[list[str], Queries, Qrels]:
    """Ids of the documents, in the order of the corpus, queries that have judgements, and the judgements.

    Raises:
        BadInput: a file is malformed. The texts of the corpus, too large for memory, are read again for the search.
    """
    distinct_ids(folder / "queries.jsonl")  # refuses a malformed line by its number, which beir does not
    ids = distinct_ids(folder / "corpus.jsonl")
    loader = GenericDataLoader(str(folder))
    loader.corpus = {"": {}}  # else it would read the corpus into memory
    try:
        _, queries, qrels = loader.load("test")
    except KeyError as e:
        raise BadInput(f"{folder}/qrels/test.tsv: judges a query {e} that queries.jsonl has not.") from None
    except (ValueError, IndexError, StopIteration, csv.Error) as e:
        where = f"{folder}/qrels/test.tsv"
        raise BadInput(f"{where}: expected a header, then query, document and grade between tabs: {e}.") from None
    if any(abs(grade) > LARGEST_GRADE for grades in qrels.values() for grade in grades.values()):
        raise BadInput(f"{folder}/qrels/test.tsv: a grade is out of range, -{LARGEST_GRADE} to {LARGEST_GRADE}.")
    return ids, queries, qrels


def distinct_ids(path: Path) -> list[str]:
    """Ids of the lines of a corpus, or of queries, in their order.

    Raises:
        BadInput: as `documents` does, or an id occurs twice.
    """
    ids: dict[str, int] = {}
    for number, (id_, _) in enumerate(documents(path), 1):
        if (first := ids.setdefault(id_, number)) != number:
            raise BadInput(f"{path}: line {number}: `_id` {id_!r} is that of line {first}, too; keep one.")
    return list(ids)


def documents(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of every line of a corpus, or of queries, one at a time.

    Raises:
        BadInput: a line is not a JSON object with an `_id`, a text, and perhaps a title, or the file is empty.
    """
    number = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                content = parse_json(line, f"{path}: line {number}")
                id_, title, text = content["_id"], content.get("title") or "", content["text"]
            except (KeyError, TypeError, AttributeError):
                raise BadInput(f"{path}: line {number}: not a JSON object with `_id` and `text`.") from None
            for key, value in (("_id", id_), ("title", title), ("text", text)):
                if not isinstance(value, str):
                    raise BadInput(f"{path}: line {number}: `{key}` is {shortened(repr(value))}, not a text.")
            yield id_, f"{title} {text}".strip()
    if number == 0:
        raise BadInput(f"{path}: is empty.")
