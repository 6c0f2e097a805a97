"""MTEB's tasks through the real mteb: its scores, its result files, our data."""

import os
from pathlib import Path

import mteb
import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks import abstask
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.results import TaskResult

from csebench.base.errors import BadInput, RunFailed
from csebench.data import fetch
from csebench.model.embedder import Embedder
from csebench.model.metrics import cosine, spearman
from csebench.plan.registry import load
from csebench.score.evaluate import evaluate as evaluate_model
from evaluators.mteb import DECLARATION, evaluate, read
from evaluators.sts import evaluate as evaluate_sts

OFFLINE = list(DECLARATION["files"])
REAL = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
STSB, SICK = "misc/sts_raw/STSBenchmark/sts-test.csv", "misc/sts_raw/SICK/SICK_trial.txt"


def random(seed=0):
    return load("random")({"dimensions": 64}, seed)


# ---------------------------------------------------------------- scores


def test_sts_is_spearman_of_the_cosines(smoke_data):
    model = random()
    (row, *_), items = evaluate(model, smoke_data, "STSBenchmark")
    text = (smoke_data / STSB).read_text(encoding="utf-8")
    _, _, _, _, gold, left, right, *_ = zip(*(line.split("\t")[:7] for line in text.splitlines()), strict=True)
    wanted = cosine(model.embed(list(left)), model.embed(list(right)))
    np.testing.assert_allclose(items["STSBenchmark/all"], wanted, atol=1e-6)
    assert row.value == pytest.approx(spearman(wanted, np.array(gold, dtype=float)), abs=1e-12)
    assert "The bank's finance director will step down in June after two years. " in right  # true-case, blank and all


def test_sts_of_a_single_year_is_that_of_sentevals_protocol(smoke_data):
    (wanted,) = [r.value for r in evaluate_sts(random(), smoke_data)[0] if (r.task, r.subset) == ("STS12", "all")]
    assert evaluate(random(), smoke_data, "STS12")[0][0].value == pytest.approx(wanted, abs=1e-12)


def test_mteb_tells_no_model_what_is_true_of_a_pair(smoke_data):
    with pytest.raises(BadInput, match="mteb: STS12: mteb tells no model"):
        evaluate(load("oracle")({}, 0), smoke_data, "STS12")


def test_counterfactual_prints_english(smoke_data, capfd):
    """And nothing else to the terminal."""
    rows, items = evaluate(random(), smoke_data, "AmazonCounterfactualClassification")
    values = {(row.subset, row.metric): row.value for row in rows}
    assert {subset for subset, _ in values} == {"all", "en", "en-ext"}
    for subset in ("all", "en-ext"):
        own = items[f"AmazonCounterfactualClassification/{subset}"]
        assert own.mean() == pytest.approx(values[subset, "accuracy"], abs=1e-6)
    assert values["all", "accuracy"] == values["en", "accuracy"] != values["en-ext", "accuracy"]
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- result files


def test_mteb_reads_the_result_file(tiny_bert, smoke_data, tmp_path):
    names, out = ["AmazonCounterfactualClassification", "STSBenchmark"], tmp_path / "out.json"
    evaluated = evaluate_model(str(tiny_bert), [f"mteb:{name}" for name in names], smoke_data, out, "avg")
    (folder,) = (out.with_suffix(".files") / "mteb/results/csebench__encoder").iterdir()
    for name in names:
        result = TaskResult.from_disk(folder / f"{name}.json")
        assert result.dataset_revision == mteb.get_task(name).metadata.revision
        scores = {own["hf_subset"]: own for own in result.scores["test"]}
        scores["all"] = scores["en" if name.startswith("Amazon") else "default"]
        rows = [row for row in evaluated["scores"] if row["task"] == name]
        for row in rows:
            assert scores[row["subset"]][row["metric"]] == pytest.approx(row["value"], abs=1e-6)
        assert scores["all"]["main_score"] == pytest.approx(rows[0]["value"], abs=1e-6)
    loaded = mteb.ResultCache(out.with_suffix(".files") / "mteb").load_results()
    assert {r.task_name for r in loaded.model_results[0].task_results} == {*names}


def test_another_model_is_another_revision(smoke_data, tmp_path):
    rows = []
    for model in (random(0), random(1)):
        model.artifacts_dir = tmp_path
        rows.append(evaluate(model, smoke_data, "STS12")[0])
    assert len(list((tmp_path / "mteb/results/csebench__encoder").iterdir())) == 2
    assert rows[0] != rows[1]


# ---------------------------------------------------------------- the hub


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """Without a connection, and with an empty cache, whose folder it returns."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    return tmp_path


def test_hub_out_of_reach(smoke_data, offline):
    for task in {*DECLARATION["tasks"]} - {*OFFLINE}:
        with pytest.raises(RunFailed, match=f"^mteb: {task}: its data, mteb/.* HF_HOME"):
            evaluate(random(), smoke_data, task)


def test_another_revision_in_the_cache_is_not_read_without_a_connection(offline):
    """As the datasets library would."""
    task = fetch.mteb_task("QuoraRetrieval")
    repository, revision = fetch.task_source(task)
    for commit in (revision, "1" * 40):
        (offline / f"{repository.replace('/', '___')}/default/0.0.0/{commit}").mkdir(parents=True)
    with pytest.raises(RunFailed, match=r"1{40} would be read; delete its folder"):
        fetch.load_task(task)


@pytest.fixture
def hub(monkeypatch):
    """Hands mteb data where it would ask the hub: three documents, of which each query has one; intents."""
    texts = ("wake me at six", "play a song", "good morning")

    def load_retrieval(self, **_):
        documents, queries = ([{"id": f"{kind}{i}", "text": t} for i, t in enumerate(texts)] for kind in "dq")
        data = {"corpus": Dataset.from_list(documents), "queries": Dataset.from_list(queries)}
        data |= {"relevant_docs": {f"q{i}": {f"d{i}": 1} for i in range(3)}, "top_ranked": None}
        if self.metadata.type == "Reranking":
            data["top_ranked"] = {f"q{i}": ["d0", "d1", "d2"] for i in range(3)}
        self.dataset, self.data_loaded = {"default": {"test": data}}, True

    def load_dataset(path, **_):
        columns = {"lang": ["en", "en", "en", "de"], "text": [*texts, "spiel ein lied"], "label": [*"abcb"]}
        return DatasetDict({split: Dataset.from_dict(columns) for split in ("train", "validation", "test")})

    monkeypatch.setattr(AbsTaskRetrieval, "load_data", load_retrieval)
    monkeypatch.setattr(abstask, "load_dataset", load_dataset)
    monkeypatch.setattr("csebench.base.hub.listed", lambda *_: (Path(), {}))


@pytest.mark.parametrize(
    ("task", "metric"), [("QuoraRetrieval", "ndcg_at_10"), ("AskUbuntuDupQuestions", "map_at_1000")]
)
def test_retrieval_of_equal_texts_embeds_a_corpus_once(task, metric, hub, smoke_data, tmp_path):
    model = random()
    model.cache_dir, model.artifacts_dir = tmp_path / "shards", tmp_path / "files"
    for embedded in (6, 6):  # a killed run goes on behind the last shard
        assert evaluate(model, smoke_data, task) == ([(task, "all", metric, 1.0)], {})
        assert model.embedded == embedded


def test_massive_is_english(hub, smoke_data):
    class Letters(Embedder):
        def vectors(self, sentences):
            return np.array([[s.count(c) for c in map(chr, range(97, 123))] for s in sentences], dtype=np.float32)

    rows, items = evaluate(Letters(), smoke_data, "MassiveIntentClassification")
    assert [(r.subset, r.metric, r.value) for r in rows] == [("all", "accuracy", 1.0), ("all", "f1", 1.0)]
    assert items["MassiveIntentClassification/all"].tolist() == [1, 1, 1]


# ---------------------------------------------------------------- data


def test_classes_have_the_hubs_numbers(data):
    """mteb/banking77 counts its classes in the order of their names, whatever their case."""
    (data / "misc/banking77/categories.json").write_text('["b", "C", "a"]')
    for split in ("train", "test"):
        (data / f"misc/banking77/{split}.csv").write_text('text,category\none,b\ntwo,C\n"thr\nee",a\n')
    rows = read(data, "Banking77Classification")["default", "test"]
    assert rows == [("one", 1), ("two", 2), ("thr\nee", 0)]


def test_published_data_are_as_many_as_mtebs(data):
    (data / "counts.yaml").unlink()
    with pytest.raises(BadInput, match="STSBenchmark default test: 32 examples, mteb has 1379: a file is cut short"):
        evaluate(random(), data, "STSBenchmark")


def test_sick_and_stsb_are_read_by_their_columns(data):
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    (data / SICK).write_text(f'{header}\n1\t"one\ttwo\t3.5\tNEUTRAL\n')  # a quote is text
    (data / STSB).write_text("a\tb\tc\td\t2.5\tone\ttwo\n")
    assert ('"one', "two", 3.5) in read(data, "SICK-R")["default", "test"]
    assert read(data, "STSBenchmark") == {("default", "test"): [("one", "two", 2.5)]}


@pytest.mark.skipif(not (REAL / "misc/sts_raw").is_dir(), reason=f"no data at {REAL} (set CSEBENCH_DATA)")
@pytest.mark.parametrize("task", OFFLINE)
def test_published_data_are_mtebs(task):
    """As many examples, and letters, as mteb counted on its hub, and the same classes in the same order."""
    facts = mteb.get_task(task).metadata.descriptive_stats
    for (subset, split), rows in read(REAL, task).items():
        own = facts[split].get("hf_subset_descriptive_stats", {subset: facts[split]})[subset]
        assert len(rows) == own["num_samples"]
        columns = list(zip(*rows, strict=True))
        kinds = ("text1_statistics", "text2_statistics") if "text1_statistics" in own else ("text_statistics",)
        for column, kind in zip(columns, kinds, strict=False):
            blanks = 1 if (task, kind) == ("STS14", "text1_statistics") else 0  # read_sts makes one of two
            assert sum(map(len, column)) == own[kind]["total_text_length"] - blanks
        if "text_statistics" in own:
            labels = {label: count["count"] for label, count in own["label_statistics"]["labels"].items()}
            assert list(dict.fromkeys(map(str, columns[1]))) == list(labels)
            assert all(columns[1].count(int(label)) == count for label, count in labels.items())
