"""BEIR: zero-shot retrieval, exact search, nDCG@10, MAP and Recall@100 by pytrec_eval.

A document is its title, a blank and its text; the 1000 best documents of a query count, but never the one of its own
id; cqadupstack is the mean of its forums. The papers publish no setting (InfoCSE Table 3), so pooler, similarity,
length and precision are in the protocol's name, and data/beir.yaml has published values to calibrate them on.
Queries and judgements are read by `beir`; its search holds a corpus in memory, ours reads it in shards
(csebench/model/embedder.py: stream) and gives the same scores (tests/protocol/test_retrieval.py).
"""

import json

import numpy as np
import pytrec_eval
import torch
from beir.datasets.data_loader import GenericDataLoader

from csebench.base.errors import BadInput

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
    "variants": {"dot": {"similarity": "dot"}},
    "best": {"ndcg@10": 1.0, "map": 1.0, "recall@100": 1.0},
    "chance": {"ndcg@10": (0.0, 0.35), "map": (0.0, 0.35)},
    "source": "Thakur et al. 2021 (NeurIPS); beir 2.2 exact_search.py, evaluation.py",
    "deviations": ["any folder below beir/ can be named, known to BEIR or not"],
}
RETRIEVED = 1000
QUERIES = 1024  # scored against a shard at a time
METRICS = {"ndcg@10": "ndcg_cut_10", "map": "map_cut_1000", "recall@100": "recall_100"}


def evaluate(model, data_root, dataset, similarity):
    """Scores of a model on one dataset.

    Args:
        model: csebench.model.embedder.Embedder.
        dataset: folder below `beir/`: corpus.jsonl, queries.jsonl and qrels/test.tsv, or folders of such (forums).
        similarity: `cos` or `dot`.

    Returns:
        (rows, items): the mean over queries, subset `all`, of several forums also each one's own; items
        `{metric: (queries,) values}` with their `queries` (ids), in the order of the ids.
    """
    root = data_root / "beir" / dataset
    folders = sorted(path.parent for path in root.glob("**/corpus.jsonl"))
    found = {str(folder.relative_to(root)): one(model, folder, similarity) for folder in folders}
    means = {name: {m: float(np.mean(values[m])) for m in METRICS} for name, values in found.items()}
    rows = [row(dataset, "all", m, float(np.mean([own[m] for own in means.values()]))) for m in METRICS]
    if len(folders) == 1:
        return rows, next(iter(found.values()))
    rows += [row(dataset, name, m, value) for name, own in means.items() for m, value in own.items()]
    return rows, {f"{name}/{key}": values for name, own in found.items() for key, values in own.items()}


def row(task, subset, metric, value):
    return {"task": task, "subset": subset, "metric": metric, "value": value}


def one(model, folder, similarity):
    """Per-query values of one corpus."""
    queries, qrels = judged(folder)
    ranking = search(model, folder, queries, qrels, similarity)
    found = pytrec_eval.RelevanceEvaluator(qrels, set(METRICS.values())).evaluate(ranking)
    ids = sorted(found)
    return {"queries": np.array(ids)} | {m: np.array([found[q][own] for q in ids]) for m, own in METRICS.items()}


def search(model, folder, queries, qrels, similarity):
    """The best documents of every query with their scores, {query: {document: score}}."""
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def comparable(vectors):
        vectors = torch.from_numpy(np.asarray(vectors, dtype=np.float32)).to(device)
        return torch.nn.functional.normalize(vectors) if similarity == "cos" else vectors

    relevant = [{d: float(g) for d, g in qrels[q].items() if g > 0} or {"none": 1.0} for q in queries]
    wanted = comparable(model.embed(list(queries.values()), relevant))
    scores = torch.full((len(queries), 0), -torch.inf, device=device)
    places = torch.zeros((len(queries), 0), dtype=torch.long, device=device)
    ids, seen = [], 0

    def texts():
        for id_, text in documents(folder / "corpus.jsonl"):
            ids.append(id_)
            yield text

    for shard in model.stream(texts(), folder.name, (id_ for id_, _ in documents(folder / "corpus.jsonl"))):
        own, best = comparable(shard), []
        for start in range(0, len(wanted), QUERIES):
            rows = slice(start, start + QUERIES)
            new = torch.cat([scores[rows], wanted[rows] @ own.T], dim=1)
            kept, index = new.topk(min(RETRIEVED + 1, new.shape[1]), dim=1)
            counted = torch.arange(seen, seen + len(own), device=device).expand(len(new), -1)
            best.append((kept, torch.cat([places[rows], counted], dim=1).gather(1, index)))
        scores, places = (torch.cat(parts) for parts in zip(*best, strict=True))
        seen += len(own)
    ranking = {}
    for query, own, numbers in zip(queries, scores.tolist(), places.tolist(), strict=True):
        found = [(ids[n], score) for n, score in zip(numbers, own, strict=True) if ids[n] != query]
        ranking[query] = dict(found[:RETRIEVED])
    return ranking


# ---------------------------------------------------------------- reading


def documents(path):
    """(id, text) of every line of a corpus, or of queries, one at a time.

    Raises:
        BadInput: a line is not a JSON object with an `_id` and a text, or the file is empty.
    """
    number = 0
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                content = json.loads(line.decode("utf-8"))
                id_, text = content["_id"], f"{content.get('title') or ''} {content['text']}".strip()
            except (ValueError, KeyError, TypeError, AttributeError):
                raise BadInput(f"{path}: line {number}: not a JSON object with `_id` and `text`.") from None
            if not isinstance(id_, str):
                raise BadInput(f"{path}: line {number}: `_id` is {id_!r}, not a text.")
            yield id_, text
    if number == 0:
        raise BadInput(f"{path}: is empty.")


def judged(folder):
    """Queries that have judgements, {id: text}, and the judgements, {query: {document: grade}}."""
    for _ in documents(folder / "queries.jsonl"):  # names the line that is malformed
        pass
    loader = GenericDataLoader(str(folder))
    loader.corpus = {"": {}}  # else it would read the corpus into memory
    try:
        _, queries, qrels = loader.load("test")
    except KeyError as e:
        raise BadInput(f"{folder}/qrels/test.tsv: judges a query {e} that queries.jsonl has not.") from None
    except (ValueError, IndexError, StopIteration) as e:
        where = f"{folder}/qrels/test.tsv"
        raise BadInput(f"{where}: expected a header, then query, document and grade between tabs: {e}.") from None
    return queries, qrels
