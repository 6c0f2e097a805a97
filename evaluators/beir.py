"""BEIR: zero-shot retrieval, exact search, nDCG@10, MAP and Recall@100 by pytrec_eval.

Idea: the documents that answer a query are nearest to it, in a corpus that the model was not
trained on.
Score: means over queries. The score of cqadupstack is the mean of its forums. The model embeds the
title of a document, a blank and its text. The 1000 best documents of a query count. The document
with the query's own id does not count, unless the judgements name it for that query. Judged
documents that the corpus lacks cannot be found. They lower the scores, as in beir, and a row of
their own counts them. The papers publish no setting (InfoCSE Table 3), so pooler, similarity,
length and precision are in the protocol's name, and docs/evaluators.md has published values to
calibrate them on.
Paper: Thakur et al. 2021 (NeurIPS); InfoCSE Table 3. Official code: beir-cellar/beir,
exact_search.py, evaluation.py. Its search holds a corpus in memory. Ours reads it in shards
(csebench/model/embedder.py: stream) and gives the same scores (tests/protocol/test_retrieval.py).
Items: `METRIC` (queries,) of every query, with their `queries` (queries,) ids, in the order of the
ids; for several forums `FORUM/METRIC` and `FORUM/queries`. The means over queries are the scores.
Each forum weighs the same.
Relations: `stsb_retrieval` searches STS-B's sentences; `mteb:QuoraRetrieval` is a corpus of BEIR in
MTEB's reading.
"""

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from beir.retrieval.evaluation import pytrec_eval

from csebench.base.errors import BadInput, shortened
from csebench.base.files import DataRoot, matches, parse_json, read_text, unreadable_file
from csebench.model.embedder import Embedder
from csebench.plan.schema.declarations import Precision
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
    "units": {"judged but not in the corpus": "documents"},
    "items": {"values": "**/{metric}", "score": "mean"},
    "source": "Thakur et al. 2021 (NeurIPS); beir 2.2 exact_search.py, evaluation.py",
    "deviations": [
        "any folder below beir/ can be named, known to BEIR or not",
        (
            "beir drops the document of the query's own id also where the judgements name it; here"
            " it is kept then, as a folder of one's own may number queries and documents alike"
        ),
    ],
}
RETRIEVED = 1000
LARGEST_GRADE = 2**15  # of a judgement
QUERIES = 1024  # queries that are scored against a shard at a time
METRICS = {"ndcg@10": "ndcg_cut_10", "map": "map_cut_1000", "recall@100": "recall_100"}
MISSING = "judged but not in the corpus"  # metric: a number of documents

Queries = dict[str, str]  # text by id
Qrels = dict[str, dict[str, int]]  # grades of documents, by query and document


@dataclass(frozen=True)
class Forum:
    """A corpus with the queries that are judged on it."""

    folder: Path  # of the corpus
    ids: list[str]  # of the documents, in the order of the corpus
    queries: Queries
    qrels: Qrels

    def missing(self) -> int:
        """Count the judgements of documents that the corpus does not have."""
        known = set(self.ids)
        count = 0
        for grades in self.qrels.values():
            count += sum(document not in known for document in grades)
        return count


def evaluate(
    model: Embedder,
    data_root: Path,
    dataset: str,
    similarity: str,
    precision: Precision | None = None,
) -> tuple[list[Score], Items]:
    """Score a model on one dataset.

    Args:
        dataset: folder below `beir/`, with corpus.jsonl, queries.jsonl and qrels/test.tsv, or with
            folders of these three (forums).
        similarity: `cos` or `dot`.
        precision: precision in which texts are embedded. None: the precision of the evaluation.

    Returns:
        Rows of subset `all`, each a mean over queries. If there are several forums, each forum has
        rows of its own. Items (module docstring).
    """
    forums = read(data_root, dataset)
    with embedding_in(model, precision or model.evaluation.precision):
        by_forum = {name: values_of(model, forum, similarity) for name, forum in forums.items()}

    # the whole dataset: each forum weighs the same
    rows: list[Score] = []
    for metric in METRICS:
        means = [float(np.mean(values[metric])) for values in by_forum.values()]
        rows.append(Score(dataset, "all", metric, float(np.mean(means))))
    missing = {name: forum.missing() for name, forum in forums.items()}
    if any(missing.values()):
        rows.append(Score(dataset, "all", MISSING, float(sum(missing.values()))))
    if len(by_forum) == 1:
        (items,) = by_forum.values()
        return rows, items

    # every forum
    items: Items = {}
    for name, values in by_forum.items():
        for metric in METRICS:
            rows.append(Score(dataset, name, metric, float(np.mean(values[metric]))))
        for item, array in values.items():
            items[f"{name}/{item}"] = array
    for name, count in missing.items():
        if count:
            rows.append(Score(dataset, name, MISSING, float(count)))
    return rows, items


@contextmanager
def embedding_in(model: Embedder, precision: Precision) -> Iterator[None]:
    """Make a model embed in another precision as long as the context is open.

    Vectors that the model remembers in its own precision are not used in the context.
    """
    evaluation = model.evaluation
    known = model.known
    if precision != evaluation.precision:
        model.evaluation = evaluation.model_copy(update={"precision": precision})
        model.known = {}
    try:
        yield
    finally:
        model.evaluation = evaluation
        model.known = known


def values_of(model: Embedder, forum: Forum, similarity: str) -> Items:
    """Compute the metrics of every query of one corpus."""
    ranking = search(model, forum.folder, forum.ids, forum.queries, forum.qrels, similarity)
    results = pytrec_eval.RelevanceEvaluator(forum.qrels, set(METRICS.values())).evaluate(ranking)
    judged = sorted(results)
    items = {"queries": np.array(judged)}
    for metric, name in METRICS.items():
        items[metric] = np.array([results[query][name] for query in judged])
    return items


def search(
    model: Embedder, folder: Path, ids: list[str], queries: Queries, qrels: Qrels, similarity: str
) -> dict[str, dict[str, float]]:
    """Find the best documents of every query.

    Returns:
        {query: {document: score}}, best first.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def comparable(vectors: np.ndarray) -> torch.Tensor:
        rows = torch.from_numpy(np.asarray(vectors, dtype=np.float32)).to(device)
        return torch.nn.functional.normalize(rows) if similarity == "cos" else rows

    relevant = [relevant_documents(qrels[query]) for query in queries]
    query_vectors = comparable(model.embed_queries(list(queries.values()), relevant))
    # the best documents so far, as scores and places in the corpus
    scores = torch.full((len(queries), 0), -torch.inf, device=device)
    numbers = torch.zeros((len(queries), 0), dtype=torch.long, device=device)
    searched = 0
    texts = (text for _, text in documents(folder / "corpus.jsonl"))
    for shard in model.stream(texts, folder.name, iter(ids)):
        shard_vectors = comparable(shard)
        shard_numbers = torch.arange(searched, searched + len(shard_vectors), device=device)
        best_scores: list[torch.Tensor] = []
        best_numbers: list[torch.Tensor] = []
        for start in range(0, len(query_vectors), QUERIES):
            rows = slice(start, start + QUERIES)
            candidates = torch.cat([scores[rows], query_vectors[rows] @ shard_vectors.T], dim=1)
            candidate_numbers = torch.cat(
                [numbers[rows], shard_numbers.expand(len(candidates), -1)], dim=1
            )
            # one document more than is kept, because the query's own is removed later
            kept, index = candidates.topk(min(RETRIEVED + 1, candidates.shape[1]), dim=1)
            best_scores.append(kept)
            best_numbers.append(candidate_numbers.gather(1, index))
        scores = torch.cat(best_scores)
        numbers = torch.cat(best_numbers)
        searched += len(shard_vectors)

    ranking = {}
    for query, query_scores, places in zip(queries, scores.tolist(), numbers.tolist(), strict=True):
        hits = {ids[place]: score for place, score in zip(places, query_scores, strict=True)}
        if query not in qrels[query]:
            hits.pop(query, None)
        ranking[query] = dict(islice(hits.items(), RETRIEVED))
    return ranking


def relevant_documents(grades: dict[str, int]) -> dict[str, float]:
    """Weigh the documents that answer a query. The oracle finds its answers by these weights."""
    relevant = {document: float(grade) for document, grade in grades.items() if grade > 0}
    return relevant or {"none": 1.0}


# ---------------------------------------------------------------- reading


def read(data_root: Path | DataRoot, dataset: str) -> dict[str, Forum]:
    """Read a dataset, or each of its forums.

    Only the corpora in the highest folders are forums. A corpus in a folder below them is a copy.
    The texts of a corpus are too large for memory. They are checked now, and read again for the
    search.

    Returns:
        The forums by the names of their folders below the folder of the dataset.

    Raises:
        BadInput: a file is missing or malformed.
    """
    top = f"beir/{dataset}"
    folders: list[Path] = []
    for name in matches(data_root, f"{top}/**/corpus.jsonl"):
        folder = Path(name).parent.relative_to(top)
        is_hidden = any(part.startswith(".") for part in folder.parts)
        if not is_hidden:
            folders.append(folder)
    if not folders:
        raise BadInput(f"{data_root}: {top}: has no corpus.jsonl.")
    depth = min(len(folder.parts) for folder in folders)
    highest = [folder for folder in folders if len(folder.parts) == depth]
    return {str(folder): read_forum(data_root, top / folder) for folder in highest}


def read_forum(data_root: Path | DataRoot, name: Path) -> Forum:
    """Read the three files of a folder below the data root.

    Raises:
        BadInput: a file is missing or malformed.
    """
    corpus = data_root / str(name / "corpus.jsonl")
    questions = data_root / str(name / "queries.jsonl")
    ids = distinct_ids(corpus)
    distinct_ids(questions)  # refuses an id that occurs twice
    texts = {id_: text for id_, _, text in entries(questions)}
    qrels = judgements(data_root / str(name / "qrels/test.tsv"), texts, ids)
    return Forum(corpus.parent, ids, {query: texts[query] for query in qrels}, qrels)


COLUMNS = ("query-id", "corpus-id", "score")
FORM = "expected a header, then query, document and grade between tabs"
# Patterns of names that leave no doubt what a column holds.
MEANINGS = {
    "query-id": re.compile(r"q(uery|uestion|id|s?$)|topic", re.IGNORECASE),
    "corpus-id": re.compile(r"corpus|doc|passage|[dp]id", re.IGNORECASE),
    "score": re.compile(r"score|grade|rel|label|judg", re.IGNORECASE),
}
GRADE = re.compile(r"\s*[+-]?[0-9]+\s*")


def judgements(path: Path, queries: Collection[str], documents: Collection[str]) -> Qrels:
    """Read `qrels/test.tsv` as beir does: a header, then query, document and grade.

    If a pair of query and document occurs twice, the last grade counts.

    Raises:
        BadInput: the file does not have this form, judges an unknown query, judges no known
            document, or has an id that differs from a known one only in characters that do not
            show.
    """
    rows = judgement_rows(path)
    _, header = next(rows, (1, []))
    check_header(path, header)
    known_queries = Ids("query", "queries.jsonl", queries)
    known_documents = Ids("document", "corpus.jsonl", documents)
    qrels: Qrels = {}
    for line, fields in rows:
        where = f"{path}: line {line}"
        query, document, grade = judgement_of(fields, where)
        known_queries.check_spelling(query, where)
        known_documents.check_spelling(document, where)
        if query not in known_queries.ids:
            is_swapped = query in known_documents.ids and document in known_queries.ids
            hint = " Query and document are swapped." if is_swapped else ""
            raise BadInput(f"{where}: judges a query {query!r} that queries.jsonl has not.{hint}")
        qrels.setdefault(query, {})[document] = grade
    check_judgements(path, qrels, known_documents.ids)
    return qrels


def judgement_of(fields: list[str], where: str) -> tuple[str, str, int]:
    """Read query, document and grade from the fields of a row."""
    if len(fields) != len(COLUMNS):
        is_trec = fields[1:2] in (["0"], ["Q0"])
        hint = " Delete the second column, which is TREC's." if is_trec else ""
        raise BadInput(f"{where}: {len(fields)} fields; {FORM}.{hint}")
    query, document, grade = fields
    if not GRADE.fullmatch(grade):
        raise BadInput(
            f"{where}: the grade {shortened(repr(grade), 60)} is no whole number; {FORM}."
        )
    if abs(int(grade)) > LARGEST_GRADE:
        raise BadInput(
            f"{where}: the grade {grade} is out of range, -{LARGEST_GRADE} to {LARGEST_GRADE}."
        )
    return query, document, int(grade)


def check_judgements(path: Path, qrels: Qrels, documents: Collection[str]) -> None:
    """Check that there is something to find, because no score would mean anything otherwise.

    Raises:
        BadInput: there is no judgement, or none of a relevant document, or none of a document in
            the corpus.
    """
    if not qrels:
        raise BadInput(f"{path}: holds no judgement; {FORM}.")
    has_relevant = False
    has_known = False
    for grades in qrels.values():
        has_relevant = has_relevant or any(grade > 0 for grade in grades.values())
        has_known = has_known or any(document in documents for document in grades)
    if not has_relevant:
        raise BadInput(f"{path}: judges no document as relevant: every grade is 0 or less.")
    if not has_known:
        raise BadInput(
            f"{path}: corpus.jsonl has none of the documents that it judges; are they of another"
            " corpus?"
        )


def judgement_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every row that is not blank, with the number of its line."""
    text = read_text(path).removeprefix("\ufeff")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    line = 1
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as e:  # a quote that is not closed
        raise BadInput(f"{path}: line {line}: {FORM}: {e}.") from None


def check_header(path: Path, header: list[str]) -> None:
    """Refuse a first line that is a judgement, or that names the columns in another order."""
    if not header:
        raise BadInput(f"{path}: is empty; {FORM}.")
    if GRADE.fullmatch(header[-1]):
        names = ", ".join(COLUMNS)
        raise BadInput(
            f"{path}: line 1: is a judgement, no header; put a line with {names} above it, between"
            " tabs."
        )
    if len(header) != len(COLUMNS):
        return  # only rows must have three fields, which is checked next
    for name, column in zip(header, COLUMNS, strict=True):
        others = [other for other in COLUMNS if other != column]
        names_other = any(MEANINGS[other].match(name.strip()) for other in others)
        if names_other and not MEANINGS[column].search(name):
            order = ", ".join(header)
            raise BadInput(
                f"{path}: line 1: the columns are {order}; {FORM}. Put them into this order."
            )


class Ids:
    """The ids of queries or documents, which can also be looked up by how they look."""

    def __init__(self, kind: str, file: str, ids: Collection[str]):
        self.kind = kind
        self.file = file
        self.ids = set(ids)
        self.by_look = {visible(id_): id_ for id_ in ids}

    def check_spelling(self, id_: str, where: str) -> None:
        """Refuse an id that the file does not have, if it looks like one that the file has."""
        if id_ in self.ids or visible(id_) not in self.by_look:
            return
        meant = self.by_look[visible(id_)]
        raise BadInput(
            f"{where}: the {self.kind} {id_!r} is {meant!r} in {self.file}, except for characters"
            " that do not show; write both the same way."
        )


def visible(text: str) -> str:
    """Remove blanks around a text, and marks that take no space, such as a byte-order mark."""
    return "".join(character for character in text if character.isprintable()).strip()


def distinct_ids(path: Path) -> list[str]:
    """Read the ids of a corpus, or of queries, in the order of their lines.

    Raises:
        BadInput: a line is malformed, or an id occurs twice.
    """
    line_of: dict[str, int] = {}
    for number, (id_, _) in enumerate(documents(path), 1):
        if id_ in line_of:
            raise BadInput(
                f"{path}: line {number}: `_id` {id_!r} is that of line {line_of[id_]}, too; keep"
                " one."
            )
        line_of[id_] = number
    return list(line_of)


def documents(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (id, title and text) of every line of a corpus, with a blank between title and text.

    Raises:
        BadInput: a line is malformed (`entries`).
    """
    for id_, title, text in entries(path):
        yield id_, f"{title} {text}".strip()


def entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (id, title, text) of every line of a corpus, or of queries.

    A missing title is given as an empty text.

    Raises:
        BadInput: the file is missing or empty, or a line is not a JSON object with an `_id`, a
            text, and perhaps a title.
    """
    number = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                # a file may be several that were joined, each with its byte-order mark
                yield entry(line.removeprefix(codecs.BOM_UTF8), f"{path}: line {number}")
    except OSError as e:
        raise unreadable_file(path, e) from None
    if number == 0:
        raise BadInput(f"{path}: is empty.")


def entry(line: bytes, where: str) -> tuple[str, str, str]:
    """Read (id, title, text) of one line."""
    try:
        content = parse_json(line, where)
        id_, title, text = content["_id"], content.get("title") or "", content["text"]
    except (KeyError, TypeError, AttributeError):
        raise BadInput(f"{where}: not a JSON object with `_id` and `text`.") from None
    for key, value in (("_id", id_), ("title", title), ("text", text)):
        if not isinstance(value, str):
            raise BadInput(f"{where}: `{key}` is {shortened(repr(value))}, not a text.")
    return id_, title, text
