"""Retrieval compared with beir's own search and metrics.

In-domain retrieval and geometry are worked out by hand.
"""

import json
import re
import shutil

import numpy as np
import pytest
from beir.datasets.data_loader import GenericDataLoader
from beir.retrieval.evaluation import EvaluateRetrieval
from beir.retrieval.search.dense import DenseRetrievalExactSearch
from controls import random_model
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

from csebench.base.errors import BadInput
from csebench.model import embedder
from csebench.model.embedder import Embedder
from csebench.plan.catalog.data_sources import sources
from csebench.plan.catalog.registry import evaluator_declaration, protocol
from csebench.plan.schema.declarations import Evaluation
from csebench.score import models
from csebench.score.evaluate import evaluate_model, evaluate_run, run_evaluator
from csebench.score.models import open_model
from csebench.score.replicates import make_replicates
from evaluators import beir as retrieval
from evaluators import geometry, stsb_retrieval


class Known(Embedder):
    """Gives every sentence a vector by hand, or zeros."""

    def __init__(self, vectors):
        self.by_hand = vectors

    def vectors(self, sentences):
        rows = [self.by_hand.get(sentence, [0.0] * 3) for sentence in sentences]
        return np.array(rows, dtype=np.float32)


@pytest.fixture
def random():
    return random_model(16)


class ModelForBeir:
    """Has the methods that beir calls."""

    def __init__(self, model):
        self.model = model

    def encode_queries(self, queries, **_):
        return self.model.embed(queries)

    def encode_corpus(self, documents, **_):
        texts = [f"{document['title']} {document['text']}".strip() for document in documents]
        return self.model.embed(texts)


@pytest.mark.parametrize(("similarity", "function"), [("cos", "cos_sim"), ("dot", "dot")])
def test_beir_itself_gives_the_same(similarity, function, random, smoke_data):
    """Compare with the package's loader, exact search and metrics, on data with identical ids and
    graded judgements."""
    folder = smoke_data / "beir" / "smoke"
    corpus, queries, qrels = GenericDataLoader(str(folder)).load("test")
    exact_search = DenseRetrievalExactSearch(ModelForBeir(random), corpus_chunk_size=20)
    package = EvaluateRetrieval(exact_search, score_function=function)
    ranking = package.retrieve(corpus, queries)
    ndcg, mean_precision, recall, _ = package.evaluate(qrels, ranking, [10, 100, 1000])

    rows, items = retrieval.evaluate(random, smoke_data, "smoke", similarity)
    our_ranking = retrieval.search(random, folder, list(corpus), queries, qrels, similarity)

    scores = {row.metric: round(row.value, 5) for row in rows}
    assert scores == {
        "ndcg@10": ndcg["NDCG@10"],
        "map": mean_precision["MAP@1000"],
        "recall@100": recall["Recall@100"],
    }
    assert 0 < scores["ndcg@10"] < 1
    assert len(items["queries"]) == len(queries)
    for query in queries:
        assert our_ranking[query] == pytest.approx(ranking[query], abs=1e-5)


def test_forums_weigh_the_same_and_one_forum_is_alone(random, smoke_data, tmp_path):
    forums = shutil.copytree(smoke_data / "beir/cqadupstack", tmp_path / "beir/mine")
    qrels = forums / "english/qrels/test.tsv"
    keep_first_judgement(qrels)  # so that the forums have unequally many queries
    corpus = forums / "android/corpus.jsonl"
    corpus.write_text(re.sub(r'"title": ".*?"', '"title": null', corpus.read_text(), count=1))

    rows, items = retrieval.evaluate(random, tmp_path, "mine", "cos")

    scores = {row.subset: row.value for row in rows if row.metric == "ndcg@10"}
    assert scores["all"] == pytest.approx((scores["android"] + scores["english"]) / 2)
    assert items["android/ndcg@10"].mean() == pytest.approx(scores["android"])

    shutil.rmtree(forums / "english")
    rows, items = retrieval.evaluate(random, tmp_path, "mine", "cos")
    assert [row.subset for row in rows] == ["all", "all", "all"]
    assert items["ndcg@10"].mean() == pytest.approx(scores["android"])


def keep_first_judgement(qrels):
    """Leave the header and one judgement in a file."""
    lines = qrels.read_text().splitlines(keepends=True)
    qrels.write_text("".join(lines[:2]))


def write_dataset(folder, documents, queries, judgements, header="query-id\tcorpus-id\tscore\n"):
    """Write a dataset in BEIR's form.

    Args:
        documents, queries: texts by id.
        judgements: (query, document, grade) each.
    """
    (folder / "qrels").mkdir(parents=True)
    write_texts(folder / "corpus.jsonl", documents)
    write_texts(folder / "queries.jsonl", queries)
    lines = [f"{query}\t{document}\t{grade}\n" for query, document, grade in judgements]
    (folder / "qrels" / "test.tsv").write_text(header + "".join(lines))


def write_texts(path, texts):
    lines = [json.dumps({"_id": id_, "text": text}) for id_, text in texts.items()]
    path.write_text("\n".join(lines) + "\n")


TEXTS = {"1": "apple", "2": "banana", "3": "cherry", "4": "date"}
CLEAR = {"apple": [1, 0.1, 0], "banana": [0, 1, 0.1], "cherry": [0.1, 0, 1], "date": [-1, 0, 0]}
OWN_TEXT = [("1", "1", 1), ("2", "2", 1), ("3", "3", 1)]  # a query is answered by its own text


def scores_of(data_root):
    """Score vectors under which each text is nearest to itself on the dataset `mine`."""
    rows, _ = retrieval.evaluate(Known(CLEAR), data_root, "mine", "cos")
    return rows


@pytest.mark.parametrize("similarity", ["cos", "dot"])
def test_queries_and_documents_may_be_numbered_alike(similarity, tmp_path):
    """A document that has the id of the query is found if it is judged for the query. Otherwise it
    is left out, as in beir."""
    folder = tmp_path / "beir/mine"
    write_dataset(folder, TEXTS, TEXTS, OWN_TEXT)
    only_first_judged = {query: {"1": 0} for query in TEXTS}

    rows, _ = retrieval.evaluate(Known(CLEAR), tmp_path, "mine", similarity)
    rankings = retrieval.search(
        Known(CLEAR), folder, list(TEXTS), TEXTS, only_first_judged, similarity
    )

    scores = {row.metric: row.value for row in rows}
    assert scores == {"ndcg@10": 1.0, "map": 1.0, "recall@100": 1.0}
    finds_own_id = {query: query in ranking for query, ranking in rankings.items()}
    assert finds_own_id == {"1": True, "2": False, "3": False, "4": False}


def test_judged_documents_that_the_corpus_lacks_are_counted(tmp_path):
    lacking = [("1", "gone", 1), ("2", "lost", 2), ("2", "lost", 1)]
    write_dataset(tmp_path / "beir/mine", TEXTS, TEXTS, OWN_TEXT + lacking)

    rows, items = run_evaluator("beir:mine", Known(CLEAR), tmp_path)

    assert 0 < rows[0].value < 1
    scores = {row.metric: row.value for row in rows}
    assert scores[retrieval.MISSING] == 2
    assert make_replicates(rows, items, evaluator_declaration("beir").items)


def test_judged_documents_that_a_forum_lacks_are_counted(tmp_path):
    forums = tmp_path / "beir/forums"
    write_dataset(forums / "a", TEXTS, TEXTS, OWN_TEXT)
    write_dataset(forums / "b", TEXTS, TEXTS, [*OWN_TEXT, ("1", "gone", 1)])

    rows, _ = run_evaluator("beir:forums", Known(CLEAR), tmp_path)

    missing = {row.subset: row.value for row in rows if row.metric == retrieval.MISSING}
    assert missing == {"all": 1, "b": 1}


@pytest.mark.parametrize(
    ("copy", "names"),
    [
        ("copy", ["mine"]),
        ("old/copy", ["mine"]),
        (".ipynb_checkpoints", ["mine"]),
        ("a/copy", ["mine/a", "mine/b"]),
    ],
)
def test_a_copy_in_the_folder_is_no_forum(copy, names, tmp_path):
    for name in names:
        write_dataset(tmp_path / "beir" / name, TEXTS, TEXTS, OWN_TEXT)
    alone = scores_of(tmp_path)

    write_dataset(tmp_path / "beir/mine" / copy, TEXTS, TEXTS, [("1", "2", 1)])

    assert scores_of(tmp_path) == alone


MARK = b"\xef\xbb\xbf"  # a byte-order mark


def test_marks_and_line_ends_of_other_systems_change_nothing(random, smoke_data, tmp_path):
    """A byte-order mark stands before each file, and between files of texts that were joined.
    Judgements may have blank lines."""
    folder = shutil.copytree(smoke_data / "beir/smoke", tmp_path / "beir/mine")
    join_as_windows(folder / "corpus.jsonl")
    join_as_windows(folder / "queries.jsonl")
    qrels = folder / "qrels/test.tsv"
    qrels.write_bytes(MARK + b"\r\n".join(qrels.read_bytes().splitlines()) + b"\r\n\r\n")

    changed, _ = retrieval.evaluate(random, tmp_path, "mine", "cos")

    plain, _ = retrieval.evaluate(random, smoke_data, "smoke", "cos")
    assert [row.value for row in changed] == [row.value for row in plain]


def join_as_windows(path):
    """Rewrite a file as if its first line and the others were two files of Windows."""
    first, *rest = path.read_bytes().splitlines()
    path.write_bytes(MARK + first + b"\r\n" + MARK + b"\r\n".join(rest) + b"\r\n")


@pytest.mark.parametrize(
    "header", ["qid\tdid\trel\n", "query_id\trelevant_doc_id\tlabel\n", "a b c\n", "#\n"]
)
def test_a_header_may_have_other_names(header, tmp_path):
    write_dataset(tmp_path / "beir/mine", TEXTS, TEXTS, OWN_TEXT, header)
    assert scores_of(tmp_path)[0].value == 1


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/test.tsv"])
def test_a_forum_without_one_of_its_files_is_refused(name, tmp_path):
    forums = tmp_path / "beir/mine"
    write_dataset(forums / "a", TEXTS, TEXTS, OWN_TEXT)
    write_dataset(forums / "b", TEXTS, TEXTS, OWN_TEXT)
    (forums / "b" / name).unlink()
    with pytest.raises(BadInput, match=f"beir/mine/b/{name}: no such file"):
        run_evaluator("beir:mine", Known(CLEAR), tmp_path)


def test_shards_change_nothing_and_a_killed_search_goes_on(
    random, smoke_data, monkeypatch, tmp_path
):
    queries = 16
    documents = 48

    def search(seed, similarity="cos"):
        model = random_model(16, seed)
        model.cache_dir = tmp_path
        rows, _ = retrieval.evaluate(model, smoke_data, "smoke", similarity)
        return rows, model.embedded

    whole, _ = retrieval.evaluate(random, smoke_data, "smoke", "cos")
    monkeypatch.setattr(embedder, "SHARD", 10)

    # shards are made, and then read
    assert search(1) == (whole, queries + documents)
    assert len(list((tmp_path / "smoke").glob("*.npy"))) == 5
    assert search(1) == (whole, queries)

    # as if killed before the fourth shard was whole
    (fourth,) = (tmp_path / "smoke").glob("00003-*.npy")
    fourth.unlink()
    assert search(1) == (whole, queries + 10)

    by_dot, _ = search(1, "dot")
    assert by_dot != whole

    # another model trusts none of the shards
    of_another, embedded = search(2)
    assert of_another != whole
    assert embedded == queries + documents


# ---------------------------------------------------------------- STS-B as retrieval, geometry


def write_stsb(folder, pairs, split="test"):
    """Write a split of STS-B.

    Args:
        pairs: (left, right, gold score) each.

    Returns:
        The folder, which is now a data root.
    """
    file = folder / f"downstream/STS/STSBenchmark/sts-{split}.csv"
    file.parent.mkdir(parents=True)
    lines = []
    for index, (left, right, gold) in enumerate(pairs):
        lines.append(f"g\tf\ty\t{index}\t{gold}\t{left}\t{right}\n")
    file.write_text("".join(lines))
    (folder / "counts.yaml").write_text(json.dumps({"STS-B": {split: len(pairs)}}))
    return folder


@pytest.mark.parametrize(("copies", "ranks"), [("removed", [3, 2, 1, 1]), ("kept", [5, 2, 2, 2])])
def test_rank_of_the_answer(copies, ranks, tmp_path):
    """A nearer sentence counts as often as it occurs. `near` occurs twice, and so do other copies
    of the query, unless they are removed. Sentences that float32 cannot tell apart tie. A tie
    counts against the answer, unless both sentences answer the query.
    """
    pairs = [
        ("s", "answer", 5.0),
        ("s", "near", 3.0),
        ("s", "near", 1.0),
        ("t", "t2", 5.0),
        ("almost", "x", 1.0),
        ("u", "u1", 5.0),
        ("u", "u2", 5.0),
    ]
    model = Known(
        {
            "s": [1, 0, 0],
            "near": [1, 0.01, 0],
            "answer": [1, 1, 0],
            "t": [0, 0, 1],
            "almost": [0, 1e-5, 1],
            "t2": [0, 2e-5, 1],
            "u": [0, -1, 0],
            "u1": [0.1, -1, 0],
            "u2": [-0.1, -1, 0],
        }
    )

    rows, items = stsb_retrieval.evaluate(model, write_stsb(tmp_path, pairs), copies)

    assert items["rank"].tolist() == ranks
    assert [row.value for row in rows] == [np.mean(items["rank"] == 1), 1.0, 1.0]


NO_GOOD_PAIR = [("a", "b", 4.0), ("a", "c", 3.0)]


def test_no_pair_graded_five(tmp_path):
    data = write_stsb(tmp_path, NO_GOOD_PAIR)
    with pytest.raises(BadInput, match="no pair is graded 5"):
        stsb_retrieval.evaluate(Known({}), data, "removed")


def test_no_pair_graded_above_four(tmp_path):
    data = write_stsb(tmp_path, NO_GOOD_PAIR, "dev")
    with pytest.raises(BadInput, match="no pair is graded above 4"):
        geometry.evaluate(Known({}), data)


def test_geometry_by_hand(tmp_path):
    """Three directions are orthogonal. The pair above 4 is at right angles, with the squared
    distance 2. All cosines are 0."""
    data = write_stsb(tmp_path, [("a", "b", 5.0), ("a", "c", 4.0)], "dev")
    model = Known({"a": [2, 0, 0], "b": [0, 1, 0], "c": [0, 0, 3]})

    rows, items = geometry.evaluate(model, data)

    expected = {
        "alignment": 2,
        "uniformity": -4,
        "mean_cosine": 0,
        "top_share": 0.5,
        "effective_rank": 2,
    }
    assert {row.metric: row.value for row in rows} == pytest.approx(expected, abs=1e-12)
    assert items["spectrum"] == pytest.approx([0.5, 0.5, 0], abs=1e-12)
    assert items["cosines"] == pytest.approx([0])


# ---------------------------------------------------------------- models, protocols, names


TOGETHER = ["sts", "transfer:fasttest", "stsb_retrieval", "geometry"]


def test_a_sentence_is_embedded_once_for_all_evaluators(
    random, finished, smoke_data, tmp_path, monkeypatch
):
    """A command and a run embed the same sentences. A run opens its model once."""
    for evaluator in TOGETHER:
        run_evaluator(evaluator, random, smoke_data)
    run = shutil.copytree(finished("random"), tmp_path / "run")

    # by a command
    result = evaluate_model(str(run / "model"), TOGETHER, smoke_data, tmp_path / "all.json")
    embedded = embedded_by_evaluator(result)
    assert sum(embedded.values()) == len(random.known)
    assert embedded["stsb_retrieval"] == 0  # the sentences of STS-B test belong to sts, too

    # by a run
    opened = count_openings(monkeypatch)
    score_files = evaluate_run(run, TOGETHER, smoke_data, Evaluation())
    assert len(opened) == 1
    rows = []
    embedded_for_run = {}
    for evaluator in TOGETHER:
        content = json.loads(score_files[evaluator].read_text())
        rows += content["scores"]
        embedded_for_run |= embedded_by_evaluator(content)
    assert embedded_for_run == embedded
    assert rows == result["scores"]

    # by a run that lacks one of its scores
    score_files["geometry"].unlink()
    others = [score_files[evaluator] for evaluator in TOGETHER if evaluator != "geometry"]
    times = [file.stat().st_mtime_ns for file in others]
    assert evaluate_run(run, TOGETHER, smoke_data, Evaluation()) == score_files
    assert len(opened) == 2
    assert score_files["geometry"].exists()
    assert [file.stat().st_mtime_ns for file in others] == times


def embedded_by_evaluator(content):
    """Return how many sentences a score JSON says were embedded for each evaluator."""
    return {name: timing["sentences_embedded"] for name, timing in content["timings"].items()}


def count_openings(monkeypatch):
    """Note from now on which models are opened.

    Returns:
        A list that gets an entry for each.
    """
    opened = []

    def noting(*args, **kwargs):
        opened.append(args)
        return open_model(*args, **kwargs)

    monkeypatch.setattr(models, "open_model", noting)
    return opened


def test_a_sentence_transformers_folder_with_modules_of_its_own(tiny_bert, smoke_data, tmp_path):
    """After the pooling is a layer that csebench does not know. The library encodes, up to the
    length that it states."""
    folder = str(tmp_path / "st")
    parts = [
        modules.Transformer(str(tiny_bert), max_seq_length=8),
        modules.Pooling(32),
        modules.Dense(32, 5),
    ]
    SentenceTransformer(modules=parts, device="cpu").save(folder)
    texts = ["a short sentence", "a sentence of many more words than the eight that it reads " * 2]

    vectors = open_model(folder).embed(texts)
    result = evaluate_model(folder, ["geometry"], smoke_data, tmp_path / "out.json")

    expected = SentenceTransformer(folder, device="cpu").encode(texts)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert result["evaluations"][0]["pooler"] is None


def test_max_length_is_part_of_the_protocol(tiny_bert, smoke_data, tmp_path):
    out = tmp_path / "x.json"

    def first_score(max_length):
        evaluation = Evaluation(max_length=max_length)
        result = evaluate_model(str(tiny_bert), ["beir:smoke"], smoke_data, out, "avg", evaluation)
        return result["scores"][0]

    short = first_score(6)
    full = first_score(None)
    assert short["protocol"] == "beir-avg-cos-6-fp32"
    assert full["protocol"] == "beir-avg-cos-full-fp32"
    assert short["value"] != full["value"]


def test_max_length_beyond_the_encoder(tiny_bert):
    with pytest.raises(BadInput, match="--max-length 512: this encoder reads 128 tokens at most"):
        open_model(str(tiny_bert), "avg", Evaluation(max_length=512))


@pytest.mark.parametrize(
    "text", ["beir:../x", "beir:a.b", "beir:", "clusters:imbd", "mteb:Banking77"]
)
def test_a_name_that_is_no_name(text):
    with pytest.raises(BadInput):
        protocol(text)


def test_every_dataset_of_the_paper_can_be_fetched_and_evaluated():
    fetched = {name.removeprefix("beir:") for name in sources() if name.startswith("beir:")}
    assert fetched == set(evaluator_declaration("beir").tasks)
    assert len(fetched) == 14
