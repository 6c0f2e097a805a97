"""Scores in the formats of other tools. Each export is read by the tool that it is made for."""

import json

import mteb
import pytest
from score_files import edit_score_file

from csebench import cli
from csebench.base.files import with_digest, write_json
from csebench.base.project import ROOT

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
        (keep_subset_all, "has the subsets en-ext, en, but the file has none"),
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


@pytest.mark.parametrize("what", ["mteb"])
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
