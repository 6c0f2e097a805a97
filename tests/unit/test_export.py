"""Scores in the formats of other tools. Each export is read by the tool that it is made for."""

import json
from typing import Any

import mteb
import pytest
import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData, parse_eval_result_entries
from mteb._hf_integration.eval_result_model import HFEvalResults
from score_files import edit_score_file

from csebench import cli
from csebench.base.files import with_digest, write_json
from csebench.base.models import FACTS, model_sha256
from csebench.base.project import REPOSITORY, ROOT

SCORES = ROOT / "results" / "mini" / "scores"
RUN = "msse-78b6db175a"
OTHER_SEED = "msse-b7c399ba6a"
AMAZON = "AmazonCounterfactualClassification"
BANKING = "Banking77Classification"


def score_file(task=AMAZON, run=RUN):
    return SCORES / f"{run}.mteb.{task}.json"


def export(what, *paths, out):
    return cli.main(["export", what, *map(str, paths), "--out", str(out)])


def rows(path):
    """Return the values of a score JSON by subset and metric."""
    content = json.loads(path.read_text())
    return {(row["subset"], row["metric"]): row["value"] for row in content["scores"]}


def copied(path, folder, edit=lambda content: None):
    """Copy a score JSON, change its content, and make its digest fit again."""
    copy = folder / path.name
    copy.write_bytes(path.read_bytes())
    edit_score_file(copy, edit)
    return copy


def as_evaluated(folder, *paths):
    """Write a score JSON as `csebench evaluate` does, with the scores of several published ones."""
    contents = [json.loads(path.read_text()) for path in paths]
    keys = ("schema", "model", "run", "provenance")
    evaluated = {key: contents[0][key] for key in keys}
    evaluated["evaluations"] = [content["evaluations"][0] for content in contents]
    evaluated["scores"] = [row for content in contents for row in content["scores"]]
    path = folder / "scores.json"
    write_json(path, with_digest(evaluated))
    return path


# ---------------------------------------------------------------- results of mteb


def loaded(folder):
    """Read a folder of results with mteb, by the name of the model."""
    results = mteb.ResultCache(folder).load_results().model_results
    return {result.model_name: result for result in results}


def test_mteb_reads_the_values_of_the_score_files(tmp_path):
    assert export("mteb", score_file(AMAZON), score_file(BANKING), out=tmp_path) == 0

    (result,) = loaded(tmp_path).values()
    tasks = {task.task_name: task for task in result.task_results}
    assert set(tasks) == {AMAZON, BANKING}
    for name, task in tasks.items():
        values = rows(score_file(name))
        assert task.dataset_revision == mteb.get_task(name).metadata.revision
        for entry in task.scores["test"]:
            subset = "all" if name == BANKING else entry["hf_subset"]
            accuracy = pytest.approx(values[subset, "accuracy"], abs=1e-6)
            assert entry["main_score"] == entry["accuracy"] == accuracy
            assert entry["f1"] == pytest.approx(values[subset, "f1"], abs=1e-6)
    assert {entry["hf_subset"] for entry in tasks[AMAZON].scores["test"]} == {"en", "en-ext"}


def test_every_seed_is_a_model_of_its_own_at_the_hash_of_its_weights(tmp_path):
    paths = [score_file(run=RUN), score_file(run=OTHER_SEED)]
    export("mteb", *paths, out=tmp_path)
    results = loaded(tmp_path)
    for path, run in zip(paths, (RUN, OTHER_SEED), strict=True):
        (evaluation,) = json.loads(path.read_text())["evaluations"]
        assert results[f"csebench/{run}"].model_revision == evaluation["model_sha256"]


def test_a_model_of_the_hub_keeps_its_id_and_commit(tmp_path):
    def score_hub_model(content):
        content["model"] = "org/model@" + "1" * 40
        del content["evaluations"][0]["model_sha256"]
        content["evaluations"][0]["model_commit"] = "1" * 40

    path = as_evaluated(tmp_path, score_file())
    edit_score_file(path, score_hub_model)
    export("mteb", path, out=tmp_path / "out")
    assert loaded(tmp_path / "out")["org/model"].model_revision == "1" * 40


def test_run_settings_state_the_packages_that_scored(tmp_path):
    def change_torch(content):
        content["provenance"]["packages"]["torch"] = "9.9"

    export("mteb", copied(score_file(), tmp_path, change_torch), out=tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("run_settings.jsonl")
    settings = json.loads(file.read_text())
    assert (settings["task"], settings["splits"]) == (AMAZON, ["test"])
    assert settings["version"]["torch"] == "9.9"


def test_a_score_of_sentevals_protocol_is_no_result_of_mteb(tmp_path, capsys):
    path = SCORES / "ct-02927d590a.sts.json"
    assert export("mteb", score_file(), path, out=tmp_path / "out") == 2
    assert f"{path}: scored by sts: mteb did not compute it" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_scores_of_other_evaluators_in_a_file_are_left_out_with_a_sentence(tmp_path, capsys):
    path = as_evaluated(tmp_path, score_file(), SCORES / f"{RUN}.neighbours.json")
    assert export("mteb", path, out=tmp_path / "out") == 0
    assert f"{path}: neighbours is left out" in capsys.readouterr().err
    (result,) = loaded(tmp_path / "out").values()
    assert [task.task_name for task in result.task_results] == [AMAZON]


def keep_subset_all(content):
    content["scores"] = [row for row in content["scores"] if row["subset"] == "all"]


def leave_out_accuracy(content):
    content["scores"] = [row for row in content["scores"] if row["metric"] != "accuracy"]


def score_with_old_mteb(content):
    content["provenance"]["packages"]["mteb"] = "2.0.0"


def score_with_edited_code(content):
    content["evaluations"][0]["code"] = "0123456789"


def score_toy_data(content):
    sha256 = "4d7752a25cb260f6486d16bfd6e7d7655ccbed724a562ec46c4b1f0b795782d9"
    content["evaluations"][0]["data_sha256"] = sha256


def leave_out_data(content):
    del content["evaluations"][0]["data_sha256"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (keep_subset_all, "has the subsets en-ext, en, but the file has all"),
        (leave_out_accuracy, "no accuracy, which is mteb's main score"),
        (score_with_old_mteb, "install mteb==2.0.0"),
        (score_with_edited_code, "scored by other code than version 1"),
        (score_toy_data, "scored on the toy data"),
        (leave_out_data, "evaluations.0.data_sha256: "),
    ],
)
def test_a_score_that_mteb_would_not_give_is_refused(edit, message, tmp_path, capsys):
    path = copied(score_file(), tmp_path, edit)
    assert export("mteb", path, out=tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"csebench: {path}: ")
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", ["mteb", "model-index"])
def test_an_edited_file_is_refused(what, tmp_path, capsys):
    path = tmp_path / score_file().name
    path.write_text(score_file().read_text().replace("0.6898507", "0.7898507"))
    assert export(what, path, out=tmp_path / "out") == 2
    assert f"{path}: edited since it was written" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_two_scores_of_a_task_are_refused(tmp_path, capsys):
    assert export("mteb", score_file(), score_file(), out=tmp_path / "out") == 2
    assert f"both have {AMAZON} of csebench/{RUN}" in capsys.readouterr().err


def test_results_in_the_folder_are_not_replaced(tmp_path, capsys):
    assert export("mteb", score_file(), out=tmp_path) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json*")}
    assert export("mteb", score_file(BANKING), out=tmp_path) == 2
    assert "exists; choose another --out" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json*")} == before


def test_an_export_of_scores_needs_a_score_json(tmp_path, capsys):
    assert export("mteb", out=tmp_path / "out") == 2
    assert "export mteb: give the score JSONs" in capsys.readouterr().err


# ---------------------------------------------------------------- model cards

STS = SCORES / f"{RUN}.sts.json"


def metadata(path) -> Any:
    """Read the front matter of a card with the library of the hub."""
    return ModelCard.load(path).data


def results_on_card(path):
    """Read the results of a card by data set and metric."""
    results = metadata(path).eval_results
    return {(result.dataset_name, result.metric_type): result for result in results}


def test_the_hub_reads_the_values_of_the_score_files_from_the_card(tmp_path):
    card = tmp_path / "README.md"
    assert export("model-index", STS, score_file(BANKING), out=card) == 0

    results = results_on_card(card)
    for path in (STS, score_file(BANKING)):
        content = json.loads(path.read_text())
        for row in content["scores"]:
            if row["subset"] == "all":
                assert results.pop((row["task"], row["metric"])).metric_value == row["value"]
    assert results == {}


def test_a_result_states_its_data_its_seed_and_its_run(tmp_path):
    card = tmp_path / "README.md"
    export("model-index", STS, out=card)

    content = json.loads(STS.read_text())
    result = results_on_card(card)["STS12", "spearman"]
    assert metadata(card).model_name == RUN
    assert result.task_name == "Semantic textual similarity"
    assert result.dataset_revision == content["evaluations"][0]["data_sha256"]
    assert (result.metric_args["seed"], result.metric_args["seeds"]) == (50, 1)
    assert result.metric_args["protocol"] == "simcse-senteval-all"
    assert result.source_name == f"csebench run {RUN}"
    assert result.source_url == f"{REPOSITORY}/blob/main/results/mini/scores/{STS.name}"


def test_a_card_keeps_its_text_and_what_others_wrote(tmp_path):
    other = EvalResult("sts", "mteb/sts12-sts", "STS12", "cosine_spearman", 0.5)
    data = ModelCardData(license="mit", model_name="mine", eval_results=[other])
    card = tmp_path / "README.md"
    card.write_text(f"---\n{data.to_yaml()}\n---\n# Mine\n")

    export("model-index", STS, out=card)
    export("model-index", STS, out=card)

    read = metadata(card)
    assert (read.license, read.model_name) == ("mit", "mine")
    assert ModelCard.load(card).text == "# Mine\n"
    assert results_on_card(card)["STS12", "cosine_spearman"] == other
    tasks = [result.dataset_name for result in read.eval_results]
    assert tasks.count("STS12") == 2


def test_the_card_beside_a_model_gets_the_scores_of_this_model_only(tmp_path, capsys):
    model = tmp_path / "model"
    write_json(model / FACTS, {"run": RUN})
    card = model / "README.md"
    card.write_text(f"# {RUN}\n")

    assert export("model-index", STS, out=card) == 2
    assert "is not the one that was scored" in capsys.readouterr().err
    assert card.read_text() == f"# {RUN}\n"

    def score_this_model(content):
        content["evaluations"][0]["model_sha256"] = model_sha256(model)
        content["training"]["model_sha256"] = model_sha256(model)

    before = model_sha256(model)
    assert export("model-index", copied(STS, tmp_path, score_this_model), out=card) == 0
    assert model_sha256(model) == before
    assert ModelCard.load(card).text.strip() == f"# {RUN}"


def test_scores_of_two_models_are_no_card(tmp_path, capsys):
    other = SCORES / f"{OTHER_SEED}.sts.json"
    assert export("model-index", STS, other, out=tmp_path / "README.md") == 2
    assert "Export each model by itself" in capsys.readouterr().err
    assert not (tmp_path / "README.md").exists()


def test_a_card_with_broken_front_matter_is_kept(tmp_path, capsys):
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: [mit\n---\n# Mine\n")
    assert export("model-index", STS, out=card) == 2
    assert "its front matter is not that of a model card" in capsys.readouterr().err
    assert card.read_text() == "---\nlicense: [mit\n---\n# Mine\n"


# ---------------------------------------------------------------- results of a repository


def read_eval_results(folder, task):
    """Read the results of a task with the library of the hub, by the id of the task."""
    content = yaml.safe_load((folder / ".eval_results" / f"{task}.yaml").read_text())
    return {entry.task_id: entry for entry in parse_eval_result_entries(content)}


def test_the_hub_reads_the_values_of_the_score_file_from_the_results(tmp_path):
    assert export("eval-results", score_file(BANKING), out=tmp_path) == 0

    results = read_eval_results(tmp_path, BANKING)
    assert set(results) == {BANKING, f"{BANKING}_default_test"}
    accuracy = rows(score_file(BANKING))["all", "accuracy"]
    for result in results.values():
        assert result.value == pytest.approx(100 * accuracy, abs=1e-5)
        assert result.dataset_id == "mteb/banking77"
        assert result.dataset_revision == mteb.get_task(BANKING).metadata.revision


def test_results_are_those_that_mteb_itself_would_push(tmp_path):
    """mteb has its own model of the format, which refuses unknown keys."""
    paths = [score_file(AMAZON), score_file(BANKING)]
    export("eval-results", *paths, out=tmp_path / "upload")
    export("mteb", *paths, out=tmp_path / "mteb")
    (model,) = loaded(tmp_path / "mteb").values()
    for task in model.task_results:
        file = tmp_path / "upload" / ".eval_results" / f"{task.task_name}.yaml"
        ours = HFEvalResults.model_validate(yaml.safe_load(file.read_text()))
        theirs = task._to_hf_benchmark_result()
        assert [result.dataset for result in ours.root] == [
            result.dataset for result in theirs.root
        ]
        values = [result.value for result in theirs.root]
        assert [result.value for result in ours.root] == pytest.approx(values, abs=1e-4)


def test_a_result_of_a_repository_says_how_the_model_was_scored(tmp_path):
    export("eval-results", score_file(BANKING), out=tmp_path)
    result = read_eval_results(tmp_path, BANKING)[BANKING]
    content = json.loads(score_file(BANKING).read_text())
    version = content["provenance"]["packages"]["mteb"]
    used = "pooler avg_first_last_2021, precision bf16, seed 50"
    assert result.notes == f"mteb {version}, {used}"
    assert content["provenance"]["started"].startswith(result.date)
    assert result.source_name == f"csebench run {RUN}"
    assert result.source_url.endswith(f"results/mini/scores/{score_file(BANKING).name}")


def test_results_of_an_upload_are_not_replaced(tmp_path, capsys):
    export("eval-results", score_file(BANKING), out=tmp_path)
    file = tmp_path / ".eval_results" / f"{BANKING}.yaml"
    before = file.read_bytes()
    assert export("eval-results", score_file(AMAZON), score_file(BANKING), out=tmp_path) == 2
    assert f"{file}: exists" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_the_folder_of_a_model_gets_results_of_this_model_only(tmp_path, capsys):
    model = tmp_path / "model"
    write_json(model / FACTS, {"run": RUN})
    assert export("eval-results", score_file(BANKING), out=model) == 2
    assert "is not the one that was scored" in capsys.readouterr().err

    def score_this_model(content):
        content["evaluations"][0]["model_sha256"] = model_sha256(model)
        content["training"]["model_sha256"] = model_sha256(model)

    before = model_sha256(model)
    path = copied(score_file(BANKING), tmp_path, score_this_model)
    assert export("eval-results", path, out=model) == 0
    assert read_eval_results(model, BANKING)
    assert model_sha256(model) == before


def test_scores_of_two_models_are_no_repository(tmp_path, capsys):
    paths = [score_file(run=RUN), score_file(run=OTHER_SEED)]
    assert export("eval-results", *paths, out=tmp_path / "out") == 2
    assert "Export each model by itself" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
