"""Retrieval against beir's own search and metrics; in-domain retrieval and geometry worked out
by hand."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from beir.datasets.data_loader import GenericDataLoader
from beir.retrieval.evaluation import EvaluateRetrieval
from beir.retrieval.search.dense import DenseRetrievalExactSearch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules

from csebench.base.errors import BadInput
from csebench.model import embedder
from csebench.model.embedder import Embedder
from csebench.plan.catalog.data_sources import sources
from csebench.plan.catalog.registry import evaluator_declaration, load, protocol
from csebench.plan.schema.declarations import Evaluation
from csebench.score import models
from csebench.score.evaluate import evaluate_model, evaluate_run, run_evaluator
from csebench.score.models import open_model
from csebench.score.replicates import make_replicates
from evaluators import beir as retrieval
from evaluators import geometry, stsb_retrieval


class Known(Embedder):
    """Vectors given by hand."""

    def __init__(self, vectors):
        self.by_hand = vectors

    def vectors(self, sentences):
        return np.array([self.by_hand.get(s, [0.0] * 3) for s in sentences], dtype=np.float32)


@pytest.fixture
def random():
    return load("random")({"dimensions": 16}, 1)


@pytest.mark.parametrize(("similarity", "function"), [("cos", "cos_sim"), ("dot", "dot")])
def test_beir_itself_gives_the_same(similarity, function, random, smoke_data):
    """Loader, exact search and metrics of the package, identical ids and graded judgements
    included."""

    def embed(documents, **_):
        return random.embed([f"{d['title']} {d['text']}".strip() for d in documents])

    model = SimpleNamespace(
        encode_queries=lambda queries, **_: random.embed(queries), encode_corpus=embed
    )
    folder = smoke_data / "beir" / "smoke"
    corpus, queries, qrels = GenericDataLoader(str(folder)).load("test")
    search = EvaluateRetrieval(
        DenseRetrievalExactSearch(model, corpus_chunk_size=20), score_function=function
    )
    ranking = search.retrieve(corpus, queries)
    ndcg, mean_precision, recall, _ = search.evaluate(qrels, ranking, [10, 100, 1000])
    rows, items = retrieval.evaluate(random, smoke_data, "smoke", similarity)
    ours = {r.metric: round(r.value, 5) for r in rows}
    assert ours == {
        "ndcg@10": ndcg["NDCG@10"],
        "map": mean_precision["MAP@1000"],
        "recall@100": recall["Recall@100"],
    }
    assert 0 < ours["ndcg@10"] < 1 and len(items["queries"]) == len(queries)
    own = retrieval.search(random, folder, [*corpus], queries, qrels, similarity)
    assert all(own[q] == pytest.approx(ranking[q], abs=1e-5) for q in queries)


def test_forums_weigh_the_same_and_one_forum_is_alone(random, smoke_data, tmp_path):
    forums = shutil.copytree(smoke_data / "beir/cqadupstack", tmp_path / "beir/mine")
    qrels, corpus = forums / "english/qrels/test.tsv", forums / "android/corpus.jsonl"
    qrels.write_text("".join(qrels.read_text().splitlines(keepends=True)[:2]))  # of one query
    corpus.write_text(re.sub(r'"title": ".*?"', '"title": null', corpus.read_text(), count=1))
    rows, items = retrieval.evaluate(random, tmp_path, "mine", "cos")
    by_subset = {r.subset: r.value for r in rows if r.metric == "ndcg@10"}
    assert by_subset["all"] == pytest.approx((by_subset["android"] + by_subset["english"]) / 2)
    assert items["android/ndcg@10"].mean() == pytest.approx(by_subset["android"])
    shutil.rmtree(forums / "english")
    rows, items = retrieval.evaluate(random, tmp_path, "mine", "cos")
    assert [r.subset for r in rows] == ["all"] * 3 and items["ndcg@10"].mean() == pytest.approx(
        by_subset["android"]
    )


def beir_folder(folder, documents, queries, judged, header="query-id\tcorpus-id\tscore\n"):
    """A dataset of BEIR's form, from texts by id and (query, document, grade)."""
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": id_, "text": text}) for id_, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    rows = ["\t".join(map(str, row)) for row in judged]
    (folder / "qrels" / "test.tsv").write_text(header + "\n".join(rows) + "\n")
    return folder


TEXTS = {"1": "apple", "2": "banana", "3": "cherry", "4": "date"}
CLEAR = {"apple": [1, 0.1, 0], "banana": [0, 1, 0.1], "cherry": [0.1, 0, 1], "date": [-1, 0, 0]}
ALIKE = [(name, name, 1) for name in ("1", "2", "3")]


@pytest.mark.parametrize("similarity", ["cos", "dot"])
def test_queries_and_documents_may_be_numbered_alike(similarity, tmp_path):
    """A judged document of the query's own id is found; one that is not judged is left out, as
    in beir."""
    beir_folder(tmp_path / "beir/mine", TEXTS, TEXTS, ALIKE)
    rows, _ = retrieval.evaluate(Known(CLEAR), tmp_path, "mine", similarity)
    assert {r.metric: r.value for r in rows} == {"ndcg@10": 1.0, "map": 1.0, "recall@100": 1.0}
    folder = tmp_path / "beir/mine"
    found = retrieval.search(
        Known(CLEAR), folder, [*TEXTS], TEXTS, {q: {"1": 0} for q in TEXTS}, similarity
    )
    assert {query: query in ranking for query, ranking in found.items()} == {
        "1": True,
        "2": False,
        "3": False,
        "4": False,
    }


def test_judged_documents_that_the_corpus_lacks_are_counted(tmp_path):
    beir_folder(
        tmp_path / "beir/mine",
        TEXTS,
        TEXTS,
        [*ALIKE, ("1", "gone", 1), ("2", "lost", 2), ("2", "lost", 1)],
    )
    rows, items = run_evaluator("beir:mine", Known(CLEAR), tmp_path)
    assert make_replicates(rows, items, evaluator_declaration("beir").items)
    assert {r.metric: r.value for r in rows}[retrieval.MISSING] == 2 and 0 < rows[0].value < 1
    forums = tmp_path / "beir/forums"
    beir_folder(forums / "a", TEXTS, TEXTS, ALIKE)
    beir_folder(forums / "b", TEXTS, TEXTS, [*ALIKE, ("1", "gone", 1)])
    rows, _ = run_evaluator("beir:forums", Known(CLEAR), tmp_path)
    assert {r.subset: r.value for r in rows if r.metric == retrieval.MISSING} == {"all": 1, "b": 1}


@pytest.mark.parametrize("place", ["copy", "old/copy", ".ipynb_checkpoints", "a/copy"])
def test_a_copy_in_the_folder_is_no_forum(place, tmp_path):
    names = ("mine",) if not place.startswith("a/") else ("mine/a", "mine/b")
    for name in names:
        beir_folder(tmp_path / "beir" / name, TEXTS, TEXTS, ALIKE)
    alone = retrieval.evaluate(Known(CLEAR), tmp_path, "mine", "cos")[0]
    beir_folder(tmp_path / "beir/mine" / place, TEXTS, TEXTS, [("1", "2", 1)])
    assert retrieval.evaluate(Known(CLEAR), tmp_path, "mine", "cos")[0] == alone


def test_marks_and_line_ends_of_other_systems_change_nothing(random, smoke_data, tmp_path):
    """A byte-order mark before any file, and between files that were joined; blank lines of
    judgements."""
    folder = shutil.copytree(smoke_data / "beir/smoke", tmp_path / "beir/mine")
    for file in (folder / "corpus.jsonl", folder / "queries.jsonl", folder / "qrels/test.tsv"):
        first, *rest = file.read_bytes().splitlines()
        between = b"\xef\xbb\xbf" if file.suffix == ".jsonl" else b""
        end = b"\r\n\r\n" if file.suffix == ".tsv" else b"\r\n"
        file.write_bytes(b"\xef\xbb\xbf" + first + b"\r\n" + between + b"\r\n".join(rest) + end)
    wanted = [r.value for r in retrieval.evaluate(random, smoke_data, "smoke", "cos")[0]]
    assert [r.value for r in retrieval.evaluate(random, tmp_path, "mine", "cos")[0]] == wanted


@pytest.mark.parametrize(
    "header", ["qid\tdid\trel\n", "query_id\trelevant_doc_id\tlabel\n", "a b c\n", "#\n"]
)
def test_a_header_may_have_other_names(header, tmp_path):
    beir_folder(tmp_path / "beir/mine", TEXTS, TEXTS, ALIKE, header)
    assert retrieval.evaluate(Known(CLEAR), tmp_path, "mine", "cos")[0][0].value == 1


@pytest.mark.parametrize("name", ["queries.jsonl", "qrels/test.tsv"])
def test_a_forum_without_one_of_its_files_is_refused(name, tmp_path):
    beir_folder(tmp_path / "beir/mine/a", TEXTS, TEXTS, ALIKE)
    (beir_folder(tmp_path / "beir/mine/b", TEXTS, TEXTS, ALIKE) / name).unlink()
    with pytest.raises(BadInput, match=f"beir/mine/b/{name}: no such file"):
        run_evaluator("beir:mine", Known(CLEAR), tmp_path)


def test_shards_change_nothing_and_a_killed_search_goes_on(
    random, smoke_data, monkeypatch, tmp_path
):
    def search(seed, similarity="cos"):
        model = load("random")({"dimensions": 16}, seed)
        model.cache_dir = tmp_path
        return retrieval.evaluate(model, smoke_data, "smoke", similarity)[0], model.embedded

    whole, _ = retrieval.evaluate(random, smoke_data, "smoke", "cos")
    monkeypatch.setattr(embedder, "SHARD", 10)
    assert search(1) == (whole, 16 + 48)  # queries and documents
    assert len(list((tmp_path / "smoke").glob("*.npy"))) == 5
    assert search(1) == (whole, 16)
    # as if killed before the fourth shard was whole
    next((tmp_path / "smoke").glob("00003-*.npy")).unlink()
    assert search(1) == (whole, 16 + 10)
    assert search(1, "dot")[0] != whole
    scores, embedded = search(2)
    assert scores != whole and embedded == 16 + 48  # another model trusts none of the shards


def stsb(folder, rows, split="test"):
    file = folder / f"downstream/STS/STSBenchmark/sts-{split}.csv"
    file.parent.mkdir(parents=True)
    file.write_text(
        "".join(f"g\tf\ty\t{i}\t{gold}\t{a}\t{b}\n" for i, (a, b, gold) in enumerate(rows))
    )
    (folder / "counts.yaml").write_text(json.dumps({"STS-B": {split: len(rows)}}))
    return folder


@pytest.mark.parametrize(("copies", "ranks"), [("removed", [3, 2, 1, 1]), ("kept", [5, 2, 2, 2])])
def test_rank_of_the_answer(copies, ranks, tmp_path):
    """What is nearer counts as often as it occurs: `near` twice, other copies of the query twice
    unless removed. What float32 cannot tell apart ties, and a tie counts against the answer, unless
    both answer the query.
    """
    rows = [
        ("s", "answer", 5.0),
        ("s", "near", 3.0),
        ("s", "near", 1.0),
        ("t", "t2", 5.0),
        ("almost", "x", 1.0),
    ]
    rows += [("u", "u1", 5.0), ("u", "u2", 5.0)]
    vectors = {"s": [1, 0, 0], "near": [1, 0.01, 0], "answer": [1, 1, 0]}
    vectors |= {"t": [0, 0, 1], "almost": [0, 1e-5, 1], "t2": [0, 2e-5, 1]}
    vectors |= {"u": [0, -1, 0], "u1": [0.1, -1, 0], "u2": [-0.1, -1, 0]}
    rows, items = stsb_retrieval.evaluate(Known(vectors), stsb(tmp_path, rows), copies)
    assert items["rank"].tolist() == ranks
    assert [r.value for r in rows] == [np.mean(items["rank"] == 1), 1.0, 1.0]


def test_no_pair_graded_five_or_above_four(tmp_path):
    with pytest.raises(BadInput, match="no pair is graded 5"):
        stsb_retrieval.evaluate(
            Known({}), stsb(tmp_path / "1", [("a", "b", 4.0), ("a", "c", 3.0)]), "removed"
        )
    with pytest.raises(BadInput, match="no pair is graded above 4"):
        geometry.evaluate(
            Known({}), stsb(tmp_path / "2", [("a", "b", 4.0), ("a", "c", 3.0)], "dev")
        )


def test_geometry_by_hand(tmp_path):
    """Three orthogonal directions, the pair above 4 at right angles: squared distance 2, all
    cosines 0."""
    data = stsb(tmp_path, [("a", "b", 5.0), ("a", "c", 4.0)], "dev")
    rows, items = geometry.evaluate(Known({"a": [2, 0, 0], "b": [0, 1, 0], "c": [0, 0, 3]}), data)
    wanted = {
        "alignment": 2,
        "uniformity": -4,
        "mean_cosine": 0,
        "top_share": 0.5,
        "effective_rank": 2,
    }
    assert {r.metric: r.value for r in rows} == pytest.approx(wanted, abs=1e-12)
    assert items["spectrum"] == pytest.approx([0.5, 0.5, 0], abs=1e-12) and items[
        "cosines"
    ] == pytest.approx([0])


def test_a_sentence_is_embedded_once_for_all_evaluators(
    random, finished, smoke_data, tmp_path, monkeypatch
):
    """Whether they are asked for by a command or by a run, which opens its model once."""
    together = ["sts", "transfer:fasttest", "stsb_retrieval", "geometry"]
    for evaluator in together:
        run_evaluator(evaluator, random, smoke_data)
    run = shutil.copytree(finished("random"), tmp_path / "run")
    result = evaluate_model(str(run / "model"), together, smoke_data, tmp_path / "all.json")
    embedded = [result["timings"][e]["sentences_embedded"] for e in together]
    # the sentences of STS-B test belong to sts, too
    assert sum(embedded) == len(random.known) and embedded[2] == 0
    opened = []
    monkeypatch.setattr(
        models, "open_model", lambda *a, **k: opened.append(a) or open_model(*a, **k)
    )
    kept = evaluate_run(run, together, smoke_data, Evaluation())
    alone = [json.loads(kept[e].read_text()) for e in together]
    assert [
        one["timings"][e]["sentences_embedded"] for e, one in zip(together, alone, strict=True)
    ] == embedded
    assert result["scores"] == [row for one in alone for row in one["scores"]]
    kept["geometry"].unlink()
    others = [kept[e].stat().st_mtime_ns for e in together[:3]]
    assert evaluate_run(run, together, smoke_data, Evaluation()) == kept and len(opened) == 2
    assert kept["geometry"].exists() and others == [
        kept[e].stat().st_mtime_ns for e in together[:3]
    ]


def test_a_sentence_transformers_folder_with_modules_of_its_own(tiny_bert, smoke_data, tmp_path):
    """Behind the pooling is a layer that we do not know: the library encodes, up to the length
    that it states."""
    parts = [
        modules.Transformer(str(tiny_bert), max_seq_length=8),
        modules.Pooling(32),
        modules.Dense(32, 5),
    ]
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "st"))
    some = ["a short sentence", "a sentence of many more words than the eight that it reads " * 2]
    wanted = SentenceTransformer(str(tmp_path / "st"), device="cpu").encode(some)
    np.testing.assert_allclose(open_model(str(tmp_path / "st")).embed(some), wanted, atol=1e-6)
    result = evaluate_model(str(tmp_path / "st"), ["geometry"], smoke_data, tmp_path / "out.json")
    assert result["evaluations"][0]["pooler"] is None


def test_max_length_is_part_of_the_protocol(tiny_bert, smoke_data, tmp_path):
    scores = {}
    for length in (6, None):
        arguments = (
            ["beir:smoke"],
            smoke_data,
            tmp_path / "x.json",
            "avg",
            Evaluation(max_length=length),
        )
        first = evaluate_model(str(tiny_bert), *arguments)["scores"][0]
        scores[first["protocol"]] = first["value"]
    assert {*scores} == {"beir-avg-cos-6-fp32", "beir-avg-cos-full-fp32"} and len(
        {*scores.values()}
    ) == 2
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
    assert fetched == set(evaluator_declaration("beir").tasks) and len(fetched) == 14
