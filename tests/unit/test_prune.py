"""Which models are deleted once their scores are published, and what of a run stays."""

import os
import threading

import pytest
from score_files import edit_score_file, write_score_file

from csebench.base.files import write_json
from csebench.base.locks import take
from csebench.base.runs import delete_model, has_model, is_done
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.registry import protocol
from csebench.score import prune
from csebench.score.score_file import settings
from csebench.study import workflow


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """`finished(run id)`: makes the folder of a finished run of scale smoke, in a project that is
    otherwise empty, and returns the id."""
    monkeypatch.chdir(tmp_path)

    def finish(run_id):
        folder = catalog.RUNS / run_id
        write_json(folder / "spec.json", targets.run(run_id, "smoke").model_dump())
        for name in ("model/training.json", "train.json"):
            write_json(folder / name, {"model_sha256": "0" * 64})
        for name in ("model/csebench.json", "model/model.safetensors", "train.log"):
            write_json(folder / name, {})
        return run_id

    return finish


def publish(run_id):
    """Publish every score that pages show of a run."""
    scale = catalog.scale("smoke")
    for evaluator in targets.evaluators(run_id, "smoke"):
        evaluation = settings(protocol(evaluator), scale.evaluation) | {"model_sha256": "0" * 64}
        row = {
            "evaluator": evaluation["evaluator"],
            "task": "x",
            "subset": "all",
            "metric": "spearman",
            "value": 0.5,
        }
        path = targets.score_path(run_id, evaluator, "smoke")
        write_score_file(path, {"evaluations": [evaluation], "scores": [row]})


def run_of(method):
    """The id of a method's first run."""
    return next(run_id for run_id, spec in targets.runs("smoke").items() if spec.method == method)


def test_a_model_is_deleted_once_all_its_scores_are_published(finished):
    run_id = finished(run_of("simcse"))
    folder = catalog.RUNS / run_id
    assert prune.reason_to_keep(run_id, "smoke").startswith("no score of ")
    prune.prune(run_id, "smoke")
    assert has_model(folder)

    publish(run_id)
    prune.prune(run_id, "smoke")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["pruned.json", "spec.json", "train.json", "train.log"]
    assert not is_done(folder)
    assert not has_model(folder)

    # Snakemake deletes the score of a job whose input vanishes at its end, and two jobs may score a
    # run at a time: train.json stays until the next workflow is planned, which trains the run again
    # for a score that is missing.
    trained = [folder / "train.json"]
    assert workflow.trained_run(run_id, "sts", "smoke", "smoke", is_dry_run=False) == trained
    assert not (folder / "train.json").exists()


def test_a_dry_run_deletes_nothing(finished):
    """A workflow may be running, whose jobs have train.json as their input."""
    run_id = finished(run_of("simcse"))
    publish(run_id)
    prune.prune(run_id, "smoke")
    (trained,) = workflow.trained_run(run_id, "sts", "smoke", "smoke", is_dry_run=True)
    assert trained.exists()


@pytest.mark.parametrize("changed", [{"batch_size": 7}, {"model_sha256": "1" * 64}, {}])
def test_a_score_of_other_settings_or_weights_or_older_than_the_model_does_not_count(
    changed, finished
):
    run_id = finished(run_of("simcse"))
    publish(run_id)
    path, *_ = sorted((catalog.results_folder("smoke") / "scores").iterdir())
    edit_score_file(path, lambda content: content["evaluations"][0].update(changed))
    if not changed:
        os.utime(path, (1, 1))
    assert prune.reason_to_keep(run_id, "smoke").startswith("no score of ")


def test_a_model_stays_until_who_works_on_the_run_is_done(finished):
    run_id = finished(run_of("simcse"))
    folder = catalog.RUNS / run_id
    publish(run_id)
    lock = take(catalog.RUNS / f".{run_id}.lock")

    pruning = threading.Thread(target=prune.prune, args=(run_id, "smoke"))
    pruning.start()
    pruning.join(0.3)
    assert pruning.is_alive()
    assert has_model(folder)

    os.close(lock)
    pruning.join(10)
    assert not has_model(folder)


def test_a_model_that_other_runs_start_from_stays(finished):
    first = next(spec.run_before for spec in targets.runs("smoke").values() if spec.run_before)
    publish(finished(first))

    deleted, kept = prune.prune_all([targets.page(catalog.SIDE_BY_SIDE, "smoke")])

    assert deleted == []
    assert kept == {first: "other runs start from it"}


def test_a_run_whose_deletion_was_killed_is_not_done(finished):
    run_id = finished(run_of("simcse"))
    folder = catalog.RUNS / run_id
    (folder / "model" / "training.json").unlink()  # what goes first
    assert not is_done(folder)
    for _ in range(2):
        delete_model(folder)
        assert not (folder / "model").exists()
