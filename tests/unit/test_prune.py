"""Which models are deleted once their scores are published, and what of a run stays."""

import json
import os

import pytest
from score_files import edit_score_file, write_score_file

from csebench import workflow
from csebench.base.runs import delete_model, has_model, is_done, size
from csebench.plan import catalog, targets
from csebench.plan.registry import protocol
from csebench.score import prune
from csebench.score.score_file import settings


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """Makes the folder of a finished run of scale smoke, in a project that is otherwise empty; returns its id."""
    monkeypatch.chdir(tmp_path)

    def finish(run_id):
        model = catalog.RUNS / run_id / "model"
        model.mkdir(parents=True)
        for path in (*(model / name for name in ("csebench.json", "model.safetensors")), model.parent / "train.log"):
            path.write_text("{}")
        for path in (model / "training.json", model.parent / "train.json"):
            path.write_text(json.dumps({"model_sha256": "0" * 64}))
        (model.parent / "spec.json").write_text(json.dumps(targets.run(run_id, "smoke").model_dump()))
        return run_id

    return finish


def publish(run_id):
    """Every score that pages show of a run."""
    for evaluator in targets.evaluators("smoke")[run_id]:
        path = targets.score_path(run_id, evaluator, "smoke")
        path.parent.mkdir(parents=True, exist_ok=True)
        made = settings(protocol(evaluator), catalog.scale("smoke").evaluation)
        row = {"evaluator": made["evaluator"], "task": "x", "subset": "all", "metric": "spearman", "value": 0.5}
        write_score_file(path, {"evaluations": [made | {"model_sha256": "0" * 64}], "scores": [row]})


def run_of(method):
    return next(run_id for run_id, spec in targets.runs("smoke").items() if spec.method == method)


def test_a_model_is_deleted_once_all_its_scores_are_published(finished):
    run_id = finished(run_of("simcse"))
    assert prune.reason_to_keep(run_id, "smoke").startswith("no score of ")
    assert prune.prune(run_id, "smoke") == 0
    publish(run_id)
    assert prune.prune(run_id, "smoke") > 0
    folder = catalog.RUNS / run_id
    assert sorted(path.name for path in folder.iterdir()) == ["pruned.json", "spec.json", "train.json", "train.log"]
    assert not is_done(folder, targets.run(run_id, "smoke")) and not has_model(folder)


def test_train_json_stays_until_the_next_workflow_is_planned(finished):
    """Snakemake deletes the score of a job whose input vanishes while it looks at the job's end: two jobs may score a
    run at a time, and the one that publishes its last score deletes the model."""
    run_id = finished(run_of("simcse"))
    publish(run_id)
    prune.prune(run_id, "smoke")
    done = catalog.RUNS / run_id / "train.json"
    assert done.exists()
    assert workflow.trained_run(run_id, "sts", "smoke", "smoke") == [done]
    assert not done.exists()  # so that a score that is missing by now trains the run again


@pytest.mark.parametrize("changed", [{"batch_size": 7}, {"model_sha256": "1" * 64}, {}])
def test_a_score_of_other_settings_or_weights_or_older_than_the_model_does_not_count(changed, finished):
    run_id = finished(run_of("simcse"))
    publish(run_id)
    (path, *_) = sorted((catalog.results_folder("smoke") / "scores").iterdir())
    edit_score_file(path, lambda content: content["evaluations"][0].update(changed))
    if not changed:
        os.utime(path, (1, 1))
    assert prune.reason_to_keep(run_id, "smoke").startswith("no score of ")


def test_a_model_that_other_runs_start_from_stays(finished):
    first = next(
        spec.encoder.revision
        for spec in targets.runs("smoke").values()
        if spec.encoder.name.startswith(f"{catalog.RUNS}/")
    )
    publish(finished(first))
    assert prune.prune_all([targets.page(catalog.SIDE_BY_SIDE, "smoke")]) == ({}, {first: "other runs start from it"})


def test_a_run_whose_deletion_was_killed_is_not_done(finished):
    run_id = finished(run_of("simcse"))
    folder = catalog.RUNS / run_id
    expected = size(folder / "model")
    (folder / "model" / "training.json").unlink()  # what goes first
    assert not is_done(folder, targets.run(run_id, "smoke"))
    assert delete_model(folder) < expected and not (folder / "model").exists()
    assert delete_model(folder) == 0
