"""MTEB's tasks through the real mteb: its scores, its result files, our data."""

import os
from collections import Counter
from pathlib import Path

import mteb
import numpy as np
import pytest
from controls import random_model
from datasets import Dataset, DatasetDict
from mteb.abstasks import abstask
from mteb.abstasks.retrieval import AbsTaskRetrieval

from csebench.base.errors import BadInput, RunFailed
from csebench.data import fetch
from csebench.plan.catalog.registry import load, typed_params
from csebench.score.evaluate import evaluate_model as evaluate_model
from evaluators.mteb import DECLARATION, evaluate, read
from evaluators.sts import evaluate as evaluate_sts

OFFLINE = list(DECLARATION["files"])
REAL = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
STSB = "misc/sts_raw/STSBenchmark/sts-test.csv"
SICK = "misc/sts_raw/SICK/SICK_trial.txt"
SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"


def random(seed=0):
    return random_model(64, seed)


def test_sts_of_a_year_is_that_of_sentevals_protocol_and_another_model_another_revision(
    smoke_data, tmp_path
):
    for model in (random(0), random(1)):
        model.artifacts_dir = tmp_path
        rows, cosines = evaluate_sts(model, smoke_data)
        scores = {(row.task, row.subset): row.value for row in rows}
        of_subsets = [values for name, values in cosines.items() if name.startswith("STS12/")]

        (main_row, *_), items = evaluate(model, smoke_data, "STS12")

        assert main_row.metric == "cosine_spearman"
        assert main_row.value == pytest.approx(scores["STS12", "all"], abs=1e-12)
        np.testing.assert_allclose(items["STS12/all"], np.concatenate(of_subsets), atol=1e-6)

    revisions = list((tmp_path / "mteb/results/csebench__encoder").iterdir())
    assert len(revisions) == 2


def test_mteb_tells_no_model_what_is_true_of_a_pair(smoke_data):
    with pytest.raises(BadInput, match="mteb: STS12: mteb passes no labels of pairs"):
        evaluate(load("oracle")(typed_params("oracle", {}), 0), smoke_data, "STS12")


def test_counterfactual_prints_english(smoke_data, capfd):
    """The main score is that of English. Nothing else is printed to the terminal."""
    task = "AmazonCounterfactualClassification"

    rows, items = evaluate(random(), smoke_data, task)

    values = {row.subset: row.value for row in rows if row.metric == "accuracy"}
    assert values.keys() == {"all", "en", "en-ext"}
    assert values["all"] == values["en"] != values["en-ext"]
    for subset in ("all", "en-ext"):
        assert items[f"{task}/{subset}"].mean() == pytest.approx(values[subset], abs=1e-6)
    assert capfd.readouterr() == ("", "")


def test_mteb_reads_the_result_file(tiny_bert, smoke_data, tmp_path):
    names = ["AmazonCounterfactualClassification", "STSBenchmark"]
    evaluators = [f"mteb:{name}" for name in names]
    out = tmp_path / "out.json"

    evaluated = evaluate_model(str(tiny_bert), evaluators, smoke_data, out, "avg")

    results_folder = out.with_name(f"{out.name}.files") / "mteb"
    (model,) = mteb.ResultCache(results_folder).load_results().model_results
    results = {result.task_name: result for result in model.task_results}
    assert set(results) == set(names)
    for name, result in results.items():
        assert result.dataset_revision == mteb.get_task(name).metadata.revision
        main_score = next(row["value"] for row in evaluated["scores"] if row["task"] == name)
        of_subset = {entry["hf_subset"]: entry["main_score"] for entry in result.scores["test"]}
        subset = "en" if "en" in of_subset else "default"
        assert of_subset[subset] == pytest.approx(main_score, abs=1e-6)


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """Work without a connection and with an empty cache.

    Returns:
        The folder of the cache.
    """
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    return tmp_path


def test_hub_out_of_reach(smoke_data, offline):
    for task in set(DECLARATION["tasks"]) - set(OFFLINE):
        with pytest.raises(RunFailed, match=f"^mteb: {task}: its data, mteb/.* HF_HOME"):
            evaluate(random(), smoke_data, task)


@pytest.mark.parametrize("is_cached", [True, False])
def test_another_revision_in_the_cache_is_not_read_without_a_connection(is_cached, offline):
    """The datasets library would read it."""
    task = fetch.mteb_task("QuoraRetrieval")
    repository, revision = fetch.task_source(task)
    cached = offline / repository.replace("/", "___") / "default/0.0.0"
    (cached / ("1" * 40)).mkdir(parents=True)
    if is_cached:
        (cached / revision).mkdir()
    with pytest.raises(RunFailed, match=r"1{40} would be read; delete its folder"):
        fetch.load_task(task)


TEXTS = ("wake me at six", "play a song", "good morning")


@pytest.fixture
def hub(monkeypatch):
    """Give mteb made-up data where it would ask the hub.

    A retrieval task gets three documents and three equal queries, each with one of the documents. A
    classification task gets three English texts with intents, and a German one.
    """
    monkeypatch.setattr(AbsTaskRetrieval, "load_data", load_retrieval)
    monkeypatch.setattr(abstask, "load_dataset", load_intents)
    monkeypatch.setattr("csebench.base.hub.listed", lambda *_: (Path(), {}))


def load_retrieval(self, **_):
    """Stand in for `load_data` of a retrieval task."""
    numbers = range(len(TEXTS))
    documents = [{"id": f"d{i}", "text": TEXTS[i]} for i in numbers]
    queries = [{"id": f"q{i}", "text": TEXTS[i]} for i in numbers]
    data = {
        "corpus": Dataset.from_list(documents),
        "queries": Dataset.from_list(queries),
        "relevant_docs": {f"q{i}": {f"d{i}": 1} for i in numbers},
        "top_ranked": None,
    }
    if self.metadata.type == "Reranking":
        data["top_ranked"] = {f"q{i}": ["d0", "d1", "d2"] for i in numbers}
    self.dataset = {"default": {"test": data}}
    self.data_loaded = True


def load_intents(path, **_):
    """Stand in for `datasets.load_dataset` of a classification task."""
    columns = {
        "lang": ["en", "en", "en", "de"],
        "text": [*TEXTS, "spiel ein lied"],
        "label": ["a", "b", "c", "b"],
    }
    splits = ("train", "validation", "test")
    return DatasetDict({split: Dataset.from_dict(columns) for split in splits})


@pytest.mark.parametrize(
    "task, metric", [("QuoraRetrieval", "ndcg_at_10"), ("AskUbuntuDupQuestions", "map_at_1000")]
)
def test_retrieval_of_equal_texts_embeds_a_corpus_once(task, metric, hub, smoke_data, tmp_path):
    """A second evaluation continues after the last shard, as one does after it was killed."""
    model = random()
    model.cache_dir = tmp_path / "shards"
    model.artifacts_dir = tmp_path / "files"
    for _ in range(2):
        assert evaluate(model, smoke_data, task) == ([(task, "all", metric, 1.0)], {})
        assert model.embedded == 6


def test_massive_is_english(hub, smoke_data):
    task = "MassiveIntentClassification"
    rows, items = evaluate(random(), smoke_data, task)
    assert rows == [(task, "all", "accuracy", 1.0), (task, "all", "f1", 1.0)]
    assert items[f"{task}/all"].tolist() == [1, 1, 1]


def test_published_data_are_as_many_as_mtebs(data):
    (data / "counts.yaml").unlink()
    message = "STSBenchmark default test: 32 examples, mteb has 1379: a file is cut short"
    with pytest.raises(BadInput, match=message):
        evaluate(random(), data, "STSBenchmark")


def test_texts_of_sts_are_those_of_the_hub(data):
    """Texts keep their case, blanks and quotes."""
    (data / SICK).write_text(f'{SICK_HEADER}\n1\t"one\ttwo\t3.5\tNEUTRAL\n')
    assert ('"one', "two", 3.5) in read(data, "SICK-R")["default", "test"]

    (data / STSB).write_text("a\tb\tc\td\t2.5\tOne \ttwo\n")
    assert read(data, "STSBenchmark") == {("default", "test"): [("One ", "two", 2.5)]}


def test_classes_of_banking_are_those_of_the_hub(data):
    """Classes are numbered in the order of their names, without regard to case."""
    banking = data / "misc/banking77"
    (banking / "categories.json").write_text('["b", "C", "a"]')
    (banking / "test.csv").write_text('text,category\none,b\ntwo,C\n"thr\nee",a\n')
    (banking / "train.csv").write_text("text,category\none,b\n")
    rows = read(data, "Banking77Classification")["default", "test"]
    assert rows == [("one", 1), ("two", 2), ("thr\nee", 0)]


@pytest.mark.skipif(
    not (REAL / "misc/sts_raw").is_dir(), reason=f"no data at {REAL} (set CSEBENCH_DATA)"
)
@pytest.mark.parametrize("task", OFFLINE)
def test_published_data_are_mtebs(task):
    """They have as many examples and letters as mteb counted on its hub, and the same classes in
    the same order."""
    facts = mteb.get_task(task).metadata.descriptive_stats
    for (subset, split), rows in read(REAL, task).items():
        counts = facts[split]
        if "hf_subset_descriptive_stats" in counts:
            counts = counts["hf_subset_descriptive_stats"][subset]
        assert len(rows) == counts["num_samples"]
        columns = list(zip(*rows, strict=True))
        if "text_statistics" in counts:
            texts, labels = columns
            assert letters(texts) == counts["text_statistics"]["total_text_length"]
            check_classes(labels, counts["label_statistics"]["labels"])
        else:
            left, right, _ = columns
            joined_blanks = 0
            if task == "STS14":
                joined_blanks = 1  # read_sts makes one blank of two
            expected = counts["text1_statistics"]["total_text_length"]
            assert letters(left) == expected - joined_blanks
            assert letters(right) == counts["text2_statistics"]["total_text_length"]


def letters(texts):
    return sum(len(text) for text in texts)


def check_classes(labels, statistics):
    """Compare how often each class occurs, and in which order the classes first occur."""
    expected = {int(label): entry["count"] for label, entry in statistics.items()}
    assert Counter(labels) == expected
    assert list(dict.fromkeys(labels)) == list(expected)
