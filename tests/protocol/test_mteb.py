"""MTEB's tasks through the real mteb: its scores, its result files, our data."""

import os
from collections import Counter
from pathlib import Path

import mteb
import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks import abstask
from mteb.abstasks.retrieval import AbsTaskRetrieval

from csebench.base.errors import BadInput, RunFailed
from csebench.data import fetch
from csebench.plan.catalog.registry import load
from csebench.score.evaluate import evaluate_model as evaluate_model
from evaluators.mteb import DECLARATION, evaluate, read
from evaluators.sts import evaluate as evaluate_sts

OFFLINE = list(DECLARATION["files"])
REAL = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
STSB, SICK = "misc/sts_raw/STSBenchmark/sts-test.csv", "misc/sts_raw/SICK/SICK_trial.txt"
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"


def random(seed=0):
    return load("random")({"dimensions": 64}, seed)


def test_sts_of_a_year_is_that_of_sentevals_protocol_and_another_model_another_revision(
    smoke_data, tmp_path
):
    for model in (random(0), random(1)):
        model.artifacts_dir = tmp_path
        rows, cosines = evaluate_sts(model, smoke_data)
        (wanted,) = [row.value for row in rows if (row.task, row.subset) == ("STS12", "all")]
        (row, *_), items = evaluate(model, smoke_data, "STS12")
        assert (row.metric, row.value) == ("cosine_spearman", pytest.approx(wanted, abs=1e-12))
        wanted = np.concatenate(
            [values for name, values in cosines.items() if name.startswith("STS12/")]
        )
        np.testing.assert_allclose(items["STS12/all"], wanted, atol=1e-6)
    assert len(list((tmp_path / "mteb/results/csebench__encoder").iterdir())) == 2


def test_mteb_tells_no_model_what_is_true_of_a_pair(smoke_data):
    with pytest.raises(BadInput, match="mteb: STS12: mteb passes no labels of pairs"):
        evaluate(load("oracle")({}, 0), smoke_data, "STS12")


def test_counterfactual_prints_english(smoke_data, capfd):
    """And nothing else to the terminal."""
    task = "AmazonCounterfactualClassification"
    rows, items = evaluate(random(), smoke_data, task)
    values = {row.subset: row.value for row in rows if row.metric == "accuracy"}
    assert values["all"] == values["en"] != values["en-ext"] and len(values) == 3
    for subset in ("all", "en-ext"):
        assert items[f"{task}/{subset}"].mean() == pytest.approx(values[subset], abs=1e-6)
    assert capfd.readouterr() == ("", "")


def test_mteb_reads_the_result_file(tiny_bert, smoke_data, tmp_path):
    names, out = ["AmazonCounterfactualClassification", "STSBenchmark"], tmp_path / "out.json"
    evaluated = evaluate_model(
        str(tiny_bert), [f"mteb:{name}" for name in names], smoke_data, out, "avg"
    )
    (model,) = (
        mteb.ResultCache(out.with_name(f"{out.name}.files") / "mteb").load_results().model_results
    )
    results = {result.task_name: result for result in model.task_results}
    assert {*results} == {*names}
    for name, result in results.items():
        assert result.dataset_revision == mteb.get_task(name).metadata.revision
        scores = {subset["hf_subset"]: subset["main_score"] for subset in result.scores["test"]}
        ours = next(row["value"] for row in evaluated["scores"] if row["task"] == name)
        assert scores["en" if "en" in scores else "default"] == pytest.approx(ours, abs=1e-6)


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
    """Hands mteb data where it would ask the hub: three documents, of which each query has one;
    intents."""
    texts = ("wake me at six", "play a song", "good morning")

    def load_retrieval(self, **_):
        documents, queries = (
            [{"id": f"{kind}{i}", "text": t} for i, t in enumerate(texts)] for kind in "dq"
        )
        data = {"corpus": Dataset.from_list(documents), "queries": Dataset.from_list(queries)}
        data |= {"relevant_docs": {f"q{i}": {f"d{i}": 1} for i in range(3)}, "top_ranked": None}
        if self.metadata.type == "Reranking":
            data["top_ranked"] = {f"q{i}": ["d0", "d1", "d2"] for i in range(3)}
        self.dataset, self.data_loaded = {"default": {"test": data}}, True

    def load_dataset(path, **_):
        columns = {
            "lang": ["en", "en", "en", "de"],
            "text": [*texts, "spiel ein lied"],
            "label": [*"abcb"],
        }
        return DatasetDict(
            {split: Dataset.from_dict(columns) for split in ("train", "validation", "test")}
        )

    monkeypatch.setattr(AbsTaskRetrieval, "load_data", load_retrieval)
    monkeypatch.setattr(abstask, "load_dataset", load_dataset)
    monkeypatch.setattr("csebench.base.hub.listed", lambda *_: (Path(), {}))


@pytest.mark.parametrize(
    "task, metric", [("QuoraRetrieval", "ndcg_at_10"), ("AskUbuntuDupQuestions", "map_at_1000")]
)
def test_retrieval_of_equal_texts_embeds_a_corpus_once(task, metric, hub, smoke_data, tmp_path):
    model = random()
    model.cache_dir, model.artifacts_dir = tmp_path / "shards", tmp_path / "files"
    for embedded in (6, 6):  # a killed run goes on behind the last shard
        assert evaluate(model, smoke_data, task) == ([(task, "all", metric, 1.0)], {})
        assert model.embedded == embedded


def test_massive_is_english(hub, smoke_data):
    rows, items = evaluate(random(), smoke_data, "MassiveIntentClassification")
    assert [(r.subset, r.metric, r.value) for r in rows] == [
        ("all", "accuracy", 1.0),
        ("all", "f1", 1.0),
    ]
    assert items["MassiveIntentClassification/all"].tolist() == [1, 1, 1]


def test_published_data_are_as_many_as_mtebs(data):
    (data / "counts.yaml").unlink()
    with pytest.raises(
        BadInput, match="STSBenchmark default test: 32 examples, mteb has 1379: a file is cut short"
    ):
        evaluate(random(), data, "STSBenchmark")


def test_rows_are_those_of_the_hub(data):
    """Texts as they are, with case, blanks and quotes; classes by the order of their names,
    whatever their case."""
    (data / SICK).write_text(f'{SICK_HEADER}\n1\t"one\ttwo\t3.5\tNEUTRAL\n')
    assert ('"one', "two", 3.5) in read(data, "SICK-R")["default", "test"]
    (data / STSB).write_text("a\tb\tc\td\t2.5\tOne \ttwo\n")
    assert read(data, "STSBenchmark") == {("default", "test"): [("One ", "two", 2.5)]}
    (data / "misc/banking77/categories.json").write_text('["b", "C", "a"]')
    (data / "misc/banking77/test.csv").write_text('text,category\none,b\ntwo,C\n"thr\nee",a\n')
    (data / "misc/banking77/train.csv").write_text("text,category\none,b\n")
    assert read(data, "Banking77Classification")["default", "test"] == [
        ("one", 1),
        ("two", 2),
        ("thr\nee", 0),
    ]


@pytest.mark.skipif(
    not (REAL / "misc/sts_raw").is_dir(), reason=f"no data at {REAL} (set CSEBENCH_DATA)"
)
@pytest.mark.parametrize("task", OFFLINE)
def test_published_data_are_mtebs(task):
    """As many examples, and letters, as mteb counted on its hub, and the same classes in the
    same order."""
    facts = mteb.get_task(task).metadata.descriptive_stats
    for (subset, split), rows in read(REAL, task).items():
        counts = facts[split].get("hf_subset_descriptive_stats", {subset: facts[split]})[subset]
        assert len(rows) == counts["num_samples"]
        columns = list(zip(*rows, strict=True))
        kinds = (
            ("text1_statistics", "text2_statistics")
            if "text1_statistics" in counts
            else ("text_statistics",)
        )
        for column, kind in zip(columns, kinds, strict=False):
            blanks = int((task, kind) == ("STS14", "text1_statistics"))  # read_sts makes one of two
            assert sum(map(len, column)) == counts[kind]["total_text_length"] - blanks
        if "text_statistics" in counts:
            labels = {
                int(label): count["count"]
                for label, count in counts["label_statistics"]["labels"].items()
            }
            assert list(dict.fromkeys(columns[1])) == list(labels) and Counter(columns[1]) == labels
