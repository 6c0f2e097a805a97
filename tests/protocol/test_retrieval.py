"""Retrieval against beir's own search and metrics; in-domain retrieval and geometry worked out by hand."""

import json
import shutil

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
from csebench.plan.declarations import Evaluation
from csebench.plan.registry import evaluator_declaration, load, protocol
from csebench.plan.where_data_is import sources
from csebench.score import models
from csebench.score.evaluate import evaluate, evaluate_run, run_evaluator
from csebench.score.models import open_model
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


# ---------------------------------------------------------------- BEIR


@pytest.mark.parametrize(("similarity", "function"), [("cos", "cos_sim"), ("dot", "dot")])
def test_beir_itself_gives_the_same(similarity, function, random, smoke_data):
    """Loader, exact search and metrics of the package, identical ids and graded judgements included."""

    class Model:
        def encode_queries(self, queries, **_):
            return random.embed(queries)

        def encode_corpus(self, corpus, **_):
            return random.embed([f"{d['title']} {d['text']}".strip() for d in corpus])

    folder = smoke_data / "beir" / "smoke"
    corpus, queries, qrels = GenericDataLoader(str(folder)).load("test")
    search = EvaluateRetrieval(DenseRetrievalExactSearch(Model(), corpus_chunk_size=20), score_function=function)
    ranking = search.retrieve(corpus, queries)
    ndcg, mean_precision, recall, _ = search.evaluate(qrels, ranking, [10, 100, 1000])
    rows, items = retrieval.evaluate(random, smoke_data, "smoke", similarity)
    ours = {r.metric: round(r.value, 5) for r in rows}
    assert ours == {"ndcg@10": ndcg["NDCG@10"], "map": mean_precision["MAP@1000"], "recall@100": recall["Recall@100"]}
    assert 0 < ours["ndcg@10"] < 1 and len(items["queries"]) == len(queries)
    own = retrieval.search(random, folder, [*corpus], queries, qrels, similarity)
    assert all(own[q] == pytest.approx(ranking[q], abs=1e-5) for q in queries)


def test_a_title_comes_first(tmp_path):
    file = tmp_path / "corpus.jsonl"
    file.write_text('{"_id": "1", "title": "T", "text": "x"}\n{"_id": "2", "title": null, "text": ""}\n')
    assert list(retrieval.documents(file)) == [("1", "T x"), ("2", "")]


def test_forums_weigh_the_same_and_one_forum_is_alone(random, smoke_data, tmp_path):
    forums = shutil.copytree(smoke_data / "beir/cqadupstack", tmp_path / "beir/mine")
    qrels = forums / "english/qrels/test.tsv"
    qrels.write_text("".join(qrels.read_text().splitlines(keepends=True)[:2]))
    rows, items = retrieval.evaluate(random, tmp_path, "mine", "cos")
    by_subset = {r.subset: r.value for r in rows if r.metric == "ndcg@10"}
    assert (len(items["android/queries"]), len(items["english/queries"])) == (4, 1)
    assert by_subset["all"] == pytest.approx((by_subset["android"] + by_subset["english"]) / 2)
    assert items["android/ndcg@10"].mean() == pytest.approx(by_subset["android"])
    shutil.rmtree(forums / "english")
    rows, items = retrieval.evaluate(random, tmp_path, "mine", "cos")
    assert [r.subset for r in rows] == ["all"] * 3 and items["ndcg@10"].mean() == pytest.approx(by_subset["android"])


def test_shards_change_nothing_and_a_killed_search_goes_on(random, smoke_data, monkeypatch, tmp_path):
    def search(seed, similarity="cos"):
        model = load("random")({"dimensions": 16}, seed)
        model.cache_dir = tmp_path
        return retrieval.evaluate(model, smoke_data, "smoke", similarity)[0], model.embedded

    whole, _ = retrieval.evaluate(random, smoke_data, "smoke", "cos")
    monkeypatch.setattr(embedder, "SHARD", 10)
    assert search(1) == (whole, 16 + 48)  # queries and documents
    assert len(list((tmp_path / "smoke").glob("*.npy"))) == 5
    assert search(1) == (whole, 16)
    next((tmp_path / "smoke").glob("00003-*.npy")).unlink()  # as if killed before the fourth shard was whole
    assert search(1) == (whole, 16 + 10)
    assert search(1, "dot")[0] != whole
    scores, embedded = search(2)
    assert scores != whole and embedded == 16 + 48  # another model trusts none of the shards


# ---------------------------------------------------------------- STS-B


def stsb(folder, rows, split="test"):
    file = folder / f"downstream/STS/STSBenchmark/sts-{split}.csv"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"g\tf\ty\t{i}\t{gold}\t{a}\t{b}\n" for i, (a, b, gold) in enumerate(rows)))
    counts = {"STS-B": {split: len(rows)}}
    (folder / "counts.yaml").write_text(json.dumps(counts))
    return folder


@pytest.mark.parametrize(("copies", "rank"), [("removed", 1), ("kept", 3)])
def test_copies_of_the_query_are_no_candidates(copies, rank, tmp_path):
    """`s` occurs thrice. Its own place left out, two copies rank before the answer; copies removed, none does."""
    data = stsb(tmp_path, [("s", "answer", 5.0), ("s", "other", 2.0), ("s", "third", 1.0)])
    model = Known({"s": [1, 0, 0], "answer": [0.9, 0.1, 0], "other": [0, 1, 0], "third": [0, 0, 1]})
    _, items = stsb_retrieval.evaluate(model, data, copies)
    assert (items["rank"].tolist(), items["recall@1"].tolist()) == ([rank], [rank == 1])


def test_recall_counts_what_is_nearer_as_often_as_it_occurs_and_ties_what_float32_cannot_part(tmp_path):
    rows = [("s", "answer", 5.0), ("near", "near", 3.0), ("t", "t2", 5.0), ("almost", "x", 1.0)]
    model = {"s": [1, 0, 0], "near": [1, 0.01, 0], "answer": [1, 1, 0], "t": [0, 0, 1], "t2": [0, 2e-5, 1]}
    rows, items = stsb_retrieval.evaluate(Known(model | {"almost": [0, 1e-5, 1]}), stsb(tmp_path, rows), "removed")
    assert items["rank"].tolist() == [3, 1]
    assert [r.value for r in rows] == [0.5, 1.0, 1.0]


def test_no_pair_graded_five_or_above_four(tmp_path):
    with pytest.raises(BadInput, match="no pair is graded 5"):
        stsb_retrieval.evaluate(Known({}), stsb(tmp_path / "1", [("a", "b", 4.0), ("a", "c", 3.0)]), "removed")
    with pytest.raises(BadInput, match="no pair is graded above 4"):
        geometry.evaluate(Known({}), stsb(tmp_path / "2", [("a", "b", 4.0), ("a", "c", 3.0)], "dev"))


def test_geometry_by_hand(tmp_path):
    """Three orthogonal directions, the pair above 4 at right angles: squared distance 2, all cosines 0."""
    data = stsb(tmp_path, [("a", "b", 5.0), ("a", "c", 4.0)], "dev")
    rows, items = geometry.evaluate(Known({"a": [2, 0, 0], "b": [0, 1, 0], "c": [0, 0, 3]}), data)
    found = {r.metric: r.value for r in rows}
    assert found["alignment"] == pytest.approx(2)
    assert found["uniformity"] == pytest.approx(-4)
    assert found["mean_cosine"] == pytest.approx(0, abs=1e-12)
    assert items["spectrum"] == pytest.approx([0.5, 0.5, 0], abs=1e-12)
    assert (found["top_share"], found["effective_rank"]) == pytest.approx((0.5, 2))
    assert items["cosines"] == pytest.approx([0])


# ---------------------------------------------------------------- one embedding for all


TOGETHER = ["sts", "transfer:fasttest", "stsb_retrieval", "geometry"]


def asked_for(evaluators, data_root):
    """Distinct sentences that evaluators embed."""
    model = load("random")({"dimensions": 16}, 1)
    for evaluator in evaluators:
        run_evaluator(evaluator, model, data_root)
    return len(model.known)


def test_a_sentence_is_embedded_once_for_all_evaluators(finished, smoke_data, tmp_path, monkeypatch):
    """Whether they are asked for by a command or by a run, which opens its model once."""
    run = shutil.copytree(finished("random"), tmp_path / "run")
    result = evaluate(str(run / "model"), TOGETHER, smoke_data, tmp_path / "all.json")
    embedded = {e: result["timings"][e]["sentences_embedded"] for e in TOGETHER}
    assert sum(embedded.values()) == asked_for(TOGETHER, smoke_data)
    assert embedded["stsb_retrieval"] == 0  # the sentences of STS-B test belong to sts, too
    opened = []
    monkeypatch.setattr(models, "open_model", lambda *a, **k: opened.append(a) or open_model(*a, **k))
    kept = evaluate_run(run, TOGETHER, smoke_data, Evaluation())
    alone = {e: json.loads(path.read_text()) for e, path in kept.items()}
    assert {e: one["timings"][e]["sentences_embedded"] for e, one in alone.items()} == embedded
    assert result["scores"] == [row for one in alone.values() for row in one["scores"]]
    kept["geometry"].unlink()
    assert evaluate_run(run, TOGETHER, smoke_data, Evaluation()) == kept and len(opened) == 2
    made = json.loads(kept["geometry"].read_text())
    assert made["timings"]["geometry"]["sentences_embedded"] == asked_for(["geometry"], smoke_data)


def test_a_sentence_transformers_folder_with_modules_of_its_own(tiny_bert, smoke_data, tmp_path):
    """Behind the pooling is a layer that we do not know: the library encodes, up to the length that it states."""
    word = modules.Transformer(str(tiny_bert), max_seq_length=8)
    size = word.get_embedding_dimension()
    parts = [word, modules.Pooling(size), modules.Dense(size, 5)]
    SentenceTransformer(modules=parts, device="cpu").save(str(tmp_path / "st"))
    some = ["a short sentence", "a sentence of many more words than the eight that it reads " * 2]
    wanted = SentenceTransformer(str(tmp_path / "st"), device="cpu").encode(some)
    np.testing.assert_allclose(open_model(str(tmp_path / "st")).embed(some), wanted, atol=1e-6)
    result = evaluate(str(tmp_path / "st"), ["geometry"], smoke_data, tmp_path / "out.json")
    assert wanted.shape == (2, 5) and result["evaluations"][0]["pooler"] is None


def test_max_length_is_part_of_the_protocol(tiny_bert, smoke_data, tmp_path):
    def scored(length):
        evaluation = Evaluation(max_length=length)
        scores = evaluate(str(tiny_bert), ["beir:smoke"], smoke_data, tmp_path / "x.json", "avg", evaluation)["scores"]
        return scores[0]["protocol"], scores[0]["value"]

    six, full = scored(6), scored(None)
    assert (six[0], full[0]) == ("beir-avg-cos-6-fp32", "beir-avg-cos-full-fp32") and six[1] != full[1]
    with pytest.raises(BadInput, match="--max-length 512: this encoder reads 128 tokens at most"):
        scored(512)


@pytest.mark.parametrize("text", ["beir:../x", "beir:a.b", "beir:", "clusters:imbd", "mteb:Banking77"])
def test_a_name_that_is_no_name(text):
    with pytest.raises(BadInput):
        protocol(text)


def test_every_dataset_of_the_paper_can_be_fetched_and_evaluated():
    fetched = {name.removeprefix("beir:") for name in sources() if name.startswith("beir:")}
    assert fetched == set(evaluator_declaration("beir").tasks) and len(fetched) == 14
