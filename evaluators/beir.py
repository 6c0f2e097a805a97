"""BEIR: zero-shot retrieval, exact search, nDCG@10, MAP and Recall@100 by pytrec_eval.

Idea: the documents that answer a query are those nearest to it, on a corpus that the model was not
trained on.
Score: means over queries; cqadupstack is the mean of its forums. A document is its title, a blank
and its text. The 1000 best documents of a query count, but not the one of its own id, unless the
judgements name it for that query. Judged documents that the corpus lacks cannot be found: they
lower the scores, as in beir, and a row of their own counts them. The papers publish no setting
(InfoCSE Table 3), so pooler, similarity, length and precision are in the protocol's name, and
docs/evaluators.md has published values to calibrate them on.
Paper: Thakur et al. 2021 (NeurIPS); InfoCSE Table 3. Official code: beir-cellar/beir,
exact_search.py, evaluation.py. Its search holds a corpus in memory, ours reads it in shards
(csebench/model/embedder.py: stream) and gives the same scores (tests/protocol/test_retrieval.py).
Items: `METRIC` (queries,) of every query with their `queries` (queries,) ids, in the order of the
ids; of several forums `FORUM/METRIC` and `FORUM/queries`. The means over queries are the scores,
each forum weighing the same.
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
QUERIES = 1024  # scored against a shard at a time
METRICS = {"ndcg@10": "ndcg_cut_10", "map": "map_cut_1000", "recall@100": "recall_100"}


MISSING = "judged but not in the corpus"  # metric: how many documents
Queries = dict[str, str]  # text by id
Qrels = dict[str, dict[str, int]]  # grades of documents, by query and document


@dataclass(frozen=True)
class Forum:
    """A corpus with the queries that are judged on it."""

    folder: Path  # of the corpus
    ids: list[str]  # of the documents, in the order of the corpus
    queries: Queries
    qrels: Qrels

    @property
    def missing(self) -> int:
        """Number of judgements of documents that the corpus does not have."""
        known = set(self.ids)
        return sum(document not in known for grades in self.qrels.values() for document in grades)


def evaluate(
    model: Embedder,
    data_root: Path,
    dataset: str,
    similarity: str,
    precision: Precision | None = None,
) -> tuple[list[Score], Items]:
    """Scores of a model on one dataset.

    Args:
        dataset: folder below `beir/`: corpus.jsonl, queries.jsonl and qrels/test.tsv, or folders of
            such (forums).
        similarity: `cos` or `dot`.
        precision: in which texts are embedded; None: that of the evaluation.

    Returns:
        rows, the mean over queries, subset `all`, of several forums also each forum's; items
            (module docstring).
    """
    forums = read(data_root, dataset)
    with embedding_in(model, precision or model.evaluation.precision):
        by_forum = {name: values_of(model, forum, similarity) for name, forum in forums.items()}
    means = {
        name: {m: float(np.mean(items[m])) for m in METRICS} for name, items in by_forum.items()
    }
    rows = [
        Score(dataset, "all", m, float(np.mean([values[m] for values in means.values()])))
        for m in METRICS
    ]
    missing = {name: forum.missing for name, forum in forums.items() if forum.missing}
    if missing:
        rows.append(Score(dataset, "all", MISSING, float(sum(missing.values()))))
    if len(by_forum) == 1:
        return rows, next(iter(by_forum.values()))
    rows += [
        Score(dataset, name, m, value)
        for name, values in means.items()
        for m, value in values.items()
    ]
    rows += [Score(dataset, name, MISSING, float(count)) for name, count in missing.items()]
    return rows, {
        f"{name}/{item}": array for name, items in by_forum.items() for item, array in items.items()
    }


@contextmanager
def embedding_in(model: Embedder, precision: Precision) -> Iterator[None]:
    """Let a model embed in a precision; what it remembers of another is not used meanwhile."""
    before = model.evaluation, model.known
    if precision != model.evaluation.precision:
        model.evaluation, model.known = (
            model.evaluation.model_copy(update={"precision": precision}),
            {},
        )
    try:
        yield
    finally:
        model.evaluation, model.known = before


def values_of(model: Embedder, forum: Forum, similarity: str) -> Items:
    """Per-query values of one corpus."""
    ranking = search(model, forum.folder, forum.ids, forum.queries, forum.qrels, similarity)
    results = pytrec_eval.RelevanceEvaluator(forum.qrels, set(METRICS.values())).evaluate(ranking)
    judged = sorted(results)
    values = {
        metric: np.array([results[query][name] for query in judged])
        for metric, name in METRICS.items()
    }
    return {"queries": np.array(judged), **values}


def search(
    model: Embedder, folder: Path, ids: list[str], queries: Queries, qrels: Qrels, similarity: str
) -> dict[str, dict[str, float]]:
    """The best documents of every query with their scores, {query: {document: score}}."""
    device = "cuda" if torch.cuda.is_available() else "cpu"

    def comparable(vectors: np.ndarray) -> torch.Tensor:
        rows = torch.from_numpy(np.asarray(vectors, dtype=np.float32)).to(device)
        return torch.nn.functional.normalize(rows) if similarity == "cos" else rows

    relevant = [
        {d: float(g) for d, g in qrels[q].items() if g > 0} or {"none": 1.0} for q in queries
    ]
    query_vectors = comparable(model.embed_queries(list(queries.values()), relevant))
    # of the best documents so far
    scores = torch.full((len(queries), 0), -torch.inf, device=device)
    # their places in the corpus
    numbers = torch.zeros((len(queries), 0), dtype=torch.long, device=device)
    searched, texts = 0, (text for _, text in documents(folder / "corpus.jsonl"))
    for shard in model.stream(texts, folder.name, iter(ids)):
        shard_vectors, best = comparable(shard), []
        for start in range(0, len(query_vectors), QUERIES):
            rows = slice(start, start + QUERIES)
            merged = torch.cat([scores[rows], query_vectors[rows] @ shard_vectors.T], dim=1)
            kept, index = merged.topk(min(RETRIEVED + 1, merged.shape[1]), dim=1)
            new = torch.arange(searched, searched + len(shard_vectors), device=device).expand(
                len(merged), -1
            )
            best.append((kept, torch.cat([numbers[rows], new], dim=1).gather(1, index)))
        scores, numbers = (torch.cat(parts) for parts in zip(*best, strict=True))
        searched += len(shard_vectors)
    ranking = {}
    for query, query_scores, places in zip(queries, scores.tolist(), numbers.tolist(), strict=True):
        hits = {ids[place]: score for place, score in zip(places, query_scores, strict=True)}
        if query not in qrels[query]:
            hits.pop(query, None)
        ranking[query] = dict(islice(hits.items(), RETRIEVED))
    return ranking


# ---------------------------------------------------------------- reading


def read(data_root: Path | DataRoot, dataset: str) -> dict[str, Forum]:
    """Read a dataset, or each of its forums, by the names of their folders below the dataset's.

    The corpora that lie highest count: a copy inside the folder of a dataset, or of a forum, is no
    forum.

    Raises:
        BadInput: a file is missing or malformed. The texts of the corpus, too large for memory, are
            read again for the search.
    """
    top = f"beir/{dataset}"
    corpora = matches(data_root, f"{top}/**/corpus.jsonl")
    folders = [Path(name).parent.relative_to(top) for name in corpora]
    shown = [folder for folder in folders if not any(part.startswith(".") for part in folder.parts)]
    if not shown:
        raise BadInput(f"{data_root}: {top}: has no corpus.jsonl.")
    depth = min(len(folder.parts) for folder in shown)
    return {
        str(folder): read_forum(data_root, top / folder)
        for folder in shown
        if len(folder.parts) == depth
    }


def read_forum(data_root: Path | DataRoot, name: Path) -> Forum:
    """Read the three files of a folder below the data root. Raises BadInput as `read`."""
    corpus = data_root / str(name / "corpus.jsonl")
    questions = data_root / str(name / "queries.jsonl")
    ids = distinct_ids(corpus)
    distinct_ids(questions)
    texts = {id_: text for id_, _, text in entries(questions)}
    qrels = judgements(data_root / str(name / "qrels/test.tsv"), texts, ids)
    return Forum(corpus.parent, ids, {query: texts[query] for query in qrels}, qrels)


COLUMNS = ("query-id", "corpus-id", "score")
FORM = "expected a header, then query, document and grade between tabs"
# What a column of another name holds, where that is certain.
MEANINGS = {
    "query-id": re.compile(r"q(uery|uestion|id|s?$)|topic", re.IGNORECASE),
    "corpus-id": re.compile(r"corpus|doc|passage|[dp]id", re.IGNORECASE),
    "score": re.compile(r"score|grade|rel|label|judg", re.IGNORECASE),
}
GRADE = re.compile(r"\s*[+-]?[0-9]+\s*")


def judgements(path: Path, queries: Collection[str], documents: Collection[str]) -> Qrels:
    """Read `qrels/test.tsv` as beir does: a header, then query, document and grade; of equal pairs
    the last.

    Raises:
        BadInput: the file is not of this form, it judges a query that is not there, or none of the
            documents; an id is that of a query or document only without the blanks around it.
    """
    rows = judgement_rows(path)
    _, header = next(rows, (1, []))
    check_header(path, header)
    known = {"query": Ids("queries.jsonl", queries), "document": Ids("corpus.jsonl", documents)}
    qrels: Qrels = {}
    for line, fields in rows:
        where = f"{path}: line {line}"
        if len(fields) != len(COLUMNS):
            trec = (
                " Delete the second column, which is TREC's."
                if fields[1:2] in (["0"], ["Q0"])
                else ""
            )
            raise BadInput(f"{where}: {len(fields)} fields; {FORM}.{trec}")
        query, document, grade = fields
        if not GRADE.fullmatch(grade):
            raise BadInput(
                f"{where}: the grade {shortened(repr(grade), 60)} is no whole number; {FORM}."
            )
        if abs(int(grade)) > LARGEST_GRADE:
            raise BadInput(
                f"{where}: the grade {grade} is out of range, -{LARGEST_GRADE} to {LARGEST_GRADE}."
            )
        for kind, id_ in (("query", query), ("document", document)):
            if (meant := known[kind].almost(id_)) is not None:
                reason = (
                    f"the {kind} {id_!r} is {meant!r} in {known[kind].file}, but for characters"
                    " that do not show"
                )
                raise BadInput(f"{where}: {reason}; write both alike.")
        if query not in known["query"].ids:
            swapped = query in known["document"].ids and document in known["query"].ids
            hint = " Query and document are swapped." if swapped else ""
            raise BadInput(f"{where}: judges a query {query!r} that queries.jsonl has not.{hint}")
        qrels.setdefault(query, {})[document] = int(grade)
    check_judgements(path, qrels, known["document"].ids)
    return qrels


def check_judgements(path: Path, qrels: Qrels, documents: Collection[str]) -> None:
    """Raises BadInput where judgements can find nothing, and so give no score."""
    if not qrels:
        raise BadInput(f"{path}: holds no judgement; {FORM}.")
    if not any(grade > 0 for grades in qrels.values() for grade in grades.values()):
        raise BadInput(f"{path}: judges no document as relevant: every grade is 0 or less.")
    if not any(document in documents for grades in qrels.values() for document in grades):
        raise BadInput(
            f"{path}: corpus.jsonl has none of the documents that it judges; are they of another"
            " corpus?"
        )


def judgement_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give every row that is not blank with the number of its line."""
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
        return  # the rows decide
    for name, column in zip(header, COLUMNS, strict=True):
        others = [
            other for other in COLUMNS if other != column and MEANINGS[other].match(name.strip())
        ]
        if others and not MEANINGS[column].search(name):
            order = ", ".join(header)
            raise BadInput(
                f"{path}: line 1: the columns are {order}; {FORM}. Put them into this order."
            )


class Ids:
    """The ids of a file, also as they look."""

    def __init__(self, file: str, ids: Collection[str]):
        self.file, self.ids = file, set(ids)
        self.visible = {visible(id_): id_ for id_ in ids}

    def almost(self, id_: str) -> str | None:
        """An id that looks like one that the file does not have."""
        return None if id_ in self.ids else self.visible.get(visible(id_))


def visible(text: str) -> str:
    """A text without blanks around it, and without marks that take no space, such as a
    byte-order mark."""
    return "".join(character for character in text if character.isprintable()).strip()


def distinct_ids(path: Path) -> list[str]:
    """Ids of the lines of a corpus, or of queries, in their order.

    Raises:
        BadInput: as `documents` does, or an id occurs twice.
    """
    ids: dict[str, int] = {}
    for number, (id_, _) in enumerate(documents(path), 1):
        if (first := ids.setdefault(id_, number)) != number:
            raise BadInput(
                f"{path}: line {number}: `_id` {id_!r} is that of line {first}, too; keep one."
            )
    return list(ids)


def documents(path: Path) -> Iterator[tuple[str, str]]:
    """(id, text) of every line of a corpus, one at a time: the text is the title, a blank and the
    text.

    Raises:
        BadInput: as `entries`.
    """
    for id_, title, text in entries(path):
        yield id_, f"{title} {text}".strip()


def entries(path: Path) -> Iterator[tuple[str, str, str]]:
    """(id, title, text) of every line of a corpus, or of queries, one at a time; a title may be
    missing.

    Raises:
        BadInput: the file is missing or empty, or a line is not a JSON object with an `_id`, a
            text, and perhaps a title.
    """
    number = 0
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                # files may be joined
                yield entry(line.removeprefix(codecs.BOM_UTF8), f"{path}: line {number}")
    except OSError as e:
        raise unreadable_file(path, e) from None
    if number == 0:
        raise BadInput(f"{path}: is empty.")


def entry(line: bytes, where: str) -> tuple[str, str, str]:
    """(id, title, text) of one line; raises as `entries`."""
    try:
        content = parse_json(line, where)
        id_, title, text = content["_id"], content.get("title") or "", content["text"]
    except (KeyError, TypeError, AttributeError):
        raise BadInput(f"{where}: not a JSON object with `_id` and `text`.") from None
    for key, value in (("_id", id_), ("title", title), ("text", text)):
        if not isinstance(value, str):
            raise BadInput(f"{where}: `{key}` is {shortened(repr(value))}, not a text.")
    return id_, title, text
