"""MTEB's tasks through the real mteb: its scores, its result files, our data."""

import os
from pathlib import Path

import mteb
import numpy as np
import pytest
from beir.datasets.data_loader import GenericDataLoader
from datasets import Dataset, DatasetDict
from mteb.abstasks import abstask
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.results import TaskResult

from csebench.base.errors import BadInput, RunFailed
from csebench.data import fetch
from csebench.model.embedder import Embedder, EmbeddingFile
from csebench.model.metrics import cosine, spearman
from csebench.plan.registry import load, protocol
from csebench.score.evaluate import evaluate as evaluate_model
from csebench.score.evaluate import run_evaluator, sentences
from evaluators.mteb import DECLARATION, evaluate, read
from evaluators.sts import evaluate as evaluate_sts

OFFLINE = list(DECLARATION["files"])
REAL = Path(os.environ.get("CSEBENCH_DATA", "no data root"))


def random(seed=0):
    return load("random")({"dimensions": 64}, seed)


class Words(Embedder):
    """Counts of words in a few thousand bins: finds what shares words."""

    def vectors(self, sentences):
        vectors = np.zeros((len(sentences), 4096), dtype=np.float32)
        for vector, sentence in zip(vectors, sentences, strict=True):
            for word in sentence.lower().split():
                vector[sum(map(ord, word)) * len(word) % 4096] += 1
        return vectors


# ---------------------------------------------------------------- scores


def test_sts_is_spearman_of_the_cosines(smoke_data):
    model = random()
    rows, items = evaluate(model, smoke_data, "STSBenchmark")
    text = (smoke_data / "misc/sts_raw/STSBenchmark/sts-test.csv").read_text(encoding="utf-8")
    _, _, _, _, gold, left, right, *_ = zip(*(line.split("\t")[:7] for line in text.splitlines()), strict=True)
    wanted = cosine(model.embed(list(left)), model.embed(list(right)))
    np.testing.assert_allclose(items["STSBenchmark/all"], wanted, atol=1e-6)
    assert rows[0].metric == "cosine_spearman"
    assert rows[0].value == pytest.approx(spearman(wanted, np.array(gold, dtype=float)), abs=1e-12)
    assert "The bank's finance director will step down in June after two years. " in right  # true-case, blank and all


@pytest.mark.parametrize("task", ["STS12", "STS16"])
def test_sts_of_single_years_is_that_of_sentevals_protocol(task, smoke_data):
    (wanted,) = [r.value for r in evaluate_sts(random(), smoke_data)[0] if (r.task, r.subset) == (task, "all")]
    assert evaluate(random(), smoke_data, task)[0][0].value == pytest.approx(wanted, abs=1e-12)


def test_oracle_knows_every_class_and_of_no_pair(smoke_data):
    oracle = load("oracle")({}, 0)
    rows, items = evaluate(oracle, smoke_data, "AmazonCounterfactualClassification")
    assert {row.value for row in rows} == {1.0} and all((values == 1).all() for values in items.values())
    with pytest.raises(BadInput, match="mteb: STS12: mteb tells no model what is true of a pair"):
        evaluate(oracle, smoke_data, "STS12")


def test_counterfactual_prints_english(smoke_data, capfd):
    """And nothing else to the terminal."""
    rows, items = evaluate(random(), smoke_data, "AmazonCounterfactualClassification")
    values = {(row.subset, row.metric): row.value for row in rows}
    assert {subset for subset, _ in values} == {"all", "en", "en-ext"}
    assert (rows[0].subset, rows[0].metric) == ("all", "accuracy")
    for subset in ("all", "en-ext"):
        own = items[f"AmazonCounterfactualClassification/{subset}"]
        assert own.mean() == pytest.approx(values[subset, "accuracy"], abs=1e-6)
    assert values["all", "accuracy"] == values["en", "accuracy"] != values["en-ext", "accuracy"]
    assert capfd.readouterr() == ("", "")


def test_classes_have_the_hubs_numbers(data):
    """mteb/banking77 counts its classes in the order of their names, whatever their case."""
    (data / "misc/banking77/categories.json").write_text('["b", "A", "c"]')
    for split in ("train", "test"):
        (data / f"misc/banking77/{split}.csv").write_text('text,category\none,b\ntwo,A\n"thr\nee",c\n')
    rows = read(data, "Banking77Classification")["default", "test"]
    assert rows == [("one", 1), ("two", 0), ("thr\nee", 2)]


# ---------------------------------------------------------------- result files


def test_mteb_reads_the_result_file(finished, smoke_data, tmp_path):
    names = ["Banking77Classification", "AmazonCounterfactualClassification", "STSBenchmark"]
    model, out = finished("bert", params={"pooler": "avg"}) / "model", tmp_path / "out.json"
    found = evaluate_model(str(model), [f"mteb:{name}" for name in names], smoke_data, out)
    (folder,) = (out.with_suffix(".files") / "mteb/results/csebench__encoder").iterdir()
    for name in names:
        result = TaskResult.from_disk(folder / f"{name}.json")
        assert result.dataset_revision == mteb.get_task(name).metadata.revision
        rows = [r for r in found["scores"] if r["task"] == name]
        scores = {own["hf_subset"]: own for own in result.scores["test"]}
        scores["all"] = scores["en" if name.startswith("Amazon") else "default"]
        for row in rows:
            assert row["protocol"] == f"mteb-{name}"
            assert scores[row["subset"]][row["metric"]] == pytest.approx(row["value"], abs=1e-6)
        assert scores["all"]["main_score"] == pytest.approx(rows[0]["value"], abs=1e-6)
    loaded = mteb.ResultCache(out.with_suffix(".files") / "mteb").load_results()
    assert {r.task_name for r in loaded.model_results[0].task_results} == {*names}


def test_another_model_is_another_revision_and_a_file_of_vectors_is_a_model(smoke_data, tmp_path):
    """What `csebench sentences` lists is enough."""
    wanted, found = sentences(["mteb:STS12"], smoke_data), []
    for seed in (0, 1):
        model = random(seed)
        model.artifacts_dir = tmp_path
        found.append(evaluate(model, smoke_data, "STS12")[0])
    assert found[0] != found[1]
    assert len(list((tmp_path / "mteb/results/csebench__encoder").iterdir())) == 2
    np.savez(tmp_path / "own.npz", sentences=wanted, vectors=model.embed(wanted))
    rows, _ = run_evaluator("mteb:STS12", EmbeddingFile(tmp_path / "own.npz"), smoke_data)
    assert rows == found[1]


# ---------------------------------------------------------------- the hub


def test_hub_out_of_reach(smoke_data, monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    tasks = sorted({*DECLARATION["tasks"]} - {*OFFLINE})
    assert len(tasks) == 3
    for task in tasks:
        assert not protocol(f"mteb:{task}").files
        with pytest.raises(RunFailed, match=f"^mteb: {task}: its data, mteb/.* HF_HOME"):
            evaluate(random(), smoke_data, task)


def test_another_revision_in_the_cache_is_not_read_without_a_connection(smoke_data, monkeypatch, tmp_path):
    """As the datasets library would."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    task = fetch.mteb_task("QuoraRetrieval")
    repository, revision = fetch.task_source(task)
    for commit in (revision, "1" * 40):
        (tmp_path / f"{repository.replace('/', '___')}/default/0.0.0/{commit}").mkdir(parents=True)
    with pytest.raises(RunFailed, match=r"1{40} would be read; delete its folder"):
        fetch.load_task(task)


@pytest.fixture
def hub(monkeypatch, smoke_data):
    """Hands mteb the project's own data where it would ask the hub."""

    corpus, queries, judged = GenericDataLoader(str(smoke_data / "beir/smoke")).load("test")

    def load_retrieval(self, **_):
        documents = [{"id": name, **document} for name, document in corpus.items()]
        asked = [{"id": name, "text": text} for name, text in queries.items()]
        ranked = {name: [*corpus] for name in judged} if self.metadata.type == "Reranking" else None
        self.dataset = {
            "default": {
                "test": {
                    "corpus": Dataset.from_list(documents),
                    "queries": Dataset.from_list(asked),
                    "relevant_docs": judged,
                    "top_ranked": ranked,
                }
            }
        }
        self.data_loaded = True

    def load_dataset(path, **_):
        intents = [
            ("en", "wake me at six", "alarm"),
            ("en", "play a song", "music"),
            ("en", "good morning", "greeting"),
        ]
        intents.append(("de", "spiel ein lied", "music"))
        columns = dict(zip(("lang", "text", "label"), zip(*intents, strict=True), strict=True))
        return DatasetDict({split: Dataset.from_dict(columns) for split in ("train", "validation", "test")})

    monkeypatch.setattr(AbsTaskRetrieval, "load_data", load_retrieval)
    monkeypatch.setattr(abstask, "load_dataset", load_dataset)
    monkeypatch.setattr("csebench.base.hub.listed", lambda *_: (Path(), {}))


@pytest.mark.parametrize(
    ("task", "metric"), [("QuoraRetrieval", "ndcg_at_10"), ("AskUbuntuDupQuestions", "map_at_1000")]
)
def test_retrieval(task, metric, hub, smoke_data, tmp_path):
    model = Words()
    model.cache_dir, model.artifacts_dir = tmp_path / "shards", tmp_path / "files"
    rows, items = evaluate(model, smoke_data, task)
    assert rows == [(task, "all", metric, rows[0].value)]
    assert evaluate(random(), smoke_data, task)[0][0].value + 0.1 < rows[0].value <= 1
    assert items == {}
    assert list((tmp_path / "shards").rglob("*.npy"))  # a killed run goes on behind the last one
    embedded = model.embedded
    assert evaluate(model, smoke_data, task)[0] == rows
    assert model.embedded == embedded


def test_massive_is_english(hub, smoke_data):
    rows, items = evaluate(Words(), smoke_data, "MassiveIntentClassification")
    assert [(r.subset, r.metric, r.value) for r in rows] == [("all", "accuracy", 1.0), ("all", "f1", 1.0)]
    assert items["MassiveIntentClassification/all"].tolist() == [1, 1, 1]


# ---------------------------------------------------------------- what is refused


def test_unknown_task():
    with pytest.raises(BadInput, match=r"unknown task of mteb 'Banking77'.*Banking77Classification"):
        protocol("mteb:Banking77")


STSB, SICK = "misc/sts_raw/STSBenchmark/sts-test.csv", "misc/sts_raw/SICK/SICK_trial.txt"
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"


def test_published_data_are_as_many_as_mtebs(data):
    (data / "counts.yaml").unlink()
    with pytest.raises(BadInput, match="STSBenchmark default test: 32 examples, mteb has 1379: a file is cut short"):
        evaluate(random(), data, "STSBenchmark")


def test_sick_and_stsb_are_read_by_their_columns(data):
    (data / SICK).write_text(f"{SICK_HEADER}\n1\tone\ttwo\t3.5\tNEUTRAL\n")
    (data / STSB).write_text("a\tb\tc\td\t2.5\tone\ttwo\n")
    assert ("one", "two", 3.5) in read(data, "SICK-R")["default", "test"]
    assert read(data, "STSBenchmark") == {("default", "test"): [("one", "two", 2.5)]}


@pytest.mark.skipif(not (REAL / "misc/sts_raw").is_dir(), reason=f"no data at {REAL} (set CSEBENCH_DATA)")
@pytest.mark.parametrize("task", OFFLINE)
def test_published_data_are_mtebs(task):
    """As many examples, and letters, as mteb counted on its hub."""
    facts = mteb.get_task(task).metadata.descriptive_stats
    for (subset, split), rows in read(REAL, task).items():
        own = facts[split].get("hf_subset_descriptive_stats", {subset: facts[split]})[subset]
        assert len(rows) == own["num_samples"]
        columns = list(zip(*rows, strict=True))
        kinds = ("text1_statistics", "text2_statistics") if "text1_statistics" in own else ("text_statistics",)
        for column, kind in zip(columns[: len(kinds)], kinds, strict=True):
            blanks = 1 if (task, kind) == ("STS14", "text1_statistics") else 0  # read_sts makes one of two
            assert sum(map(len, column)) == own[kind]["total_text_length"] - blanks
            assert len({*column}) == own[kind]["unique_texts"]
        if "text_statistics" in own:
            labels = own["label_statistics"]["labels"]
            assert list(dict.fromkeys(map(str, columns[1]))) == list(labels)  # in the same order
            assert all(columns[1].count(int(label)) == count["count"] for label, count in labels.items())
