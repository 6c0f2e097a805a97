"""A failed evaluator leaves its reason and its own cell missing, and nothing else."""

import json

import pytest

from csebench.base.errors import RunFailed
from csebench.plan.declarations import Evaluation
from csebench.run import in_order
from csebench.score import evaluate, store


@pytest.fixture
def run(tmp_path, trained):
    """The folder of a finished run, a copy."""
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    shutil.rmtree(folder / "scores", ignore_errors=True)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory, smoke_data):
    """A control, whose model is made without training."""
    from csebench.base.files import write_json

    folder = tmp_path_factory.mktemp("runs") / "random"
    facts = {"control": "random", "params": {"dimensions": 64}, "seed": 0, "run": "random"}
    write_json(folder / "model" / "csebench.json", facts)
    for name in ("model/training.json", "train.json"):
        write_json(folder / name, {"spec": {}, "provenance": {}})
    return folder


@pytest.fixture
def broken(monkeypatch):
    """`geometry` fails."""
    scored = evaluate.run_evaluator

    def run_evaluator(evaluator, *arguments):
        if evaluator == "geometry":
            raise RunFailed("the hub cannot\nbe reached")
        return scored(evaluator, *arguments)

    monkeypatch.setattr(evaluate, "run_evaluator", run_evaluator)


def test_the_others_are_made_and_the_reason_is_kept(run, broken, smoke_data):
    kept = evaluate.evaluate_run(run, ["geometry", "stsb_dev"], smoke_data, Evaluation(), keep_going=True)
    assert list(kept) == ["stsb_dev"] and kept["stsb_dev"].exists()
    assert store.failures(run) == {"geometry": "the hub cannot be reached"}


def test_the_job_that_publishes_it_fails(run, broken, smoke_data, tmp_path):
    with pytest.raises(RunFailed, match="cannot"):
        evaluate.publish(run, "geometry", smoke_data, Evaluation(), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_a_score_that_is_made_later_takes_the_reason_away(run, smoke_data):
    store.note_failure(run, "stsb_dev", RunFailed("no connection"))
    evaluate.publish(run, "stsb_dev", smoke_data, Evaluation(), run / "out.json")
    assert store.failures(run) == {} and json.loads((run / "out.json").read_text())["scores"]


def test_vectors_of_a_killed_scoring_with_other_settings_are_deleted(run, smoke_data):
    of_this, of_another = (run / "scores" / f".{key}-0123456789.shards" for key in ("stsb_dev", "beir.smoke"))
    for folder in (of_this, of_another):
        folder.mkdir(parents=True)
    evaluate.evaluate_run(run, ["stsb_dev"], smoke_data, Evaluation())
    assert not of_this.exists() and of_another.exists()


def test_a_scoring_that_is_killed_at_its_end_leaves_no_vectors(run, smoke_data, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate, "write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        evaluate.evaluate_run(run, ["beir:smoke"], smoke_data, Evaluation())
    assert not list((run / "scores").glob(".*.shards"))


def test_sts_comes_first_and_what_hubs_have_last(smoke_data):
    names = ["mteb:MassiveIntentClassification", "beir:scifact", "transfer", "sts", "geometry"]
    assert in_order(names, smoke_data) == [
        "sts",
        "geometry",
        "transfer",
        "beir:scifact",
        "mteb:MassiveIntentClassification",
    ]


def test_a_page_says_why_a_score_is_missing(tmp_path, monkeypatch):
    from csebench.report.markdown import render_page

    from csebench.base import caches
    from csebench.plan import targets

    monkeypatch.chdir(tmp_path)
    caches.clear()
    (page,) = targets.parse_target("micse/table2", "smoke")
    run_id, evaluator = next(iter(page.scores()))
    before = render_page(page)
    store.note_failure(targets_folder() / run_id, evaluator, RunFailed("the disk is full"))
    assert "Scores that are missing" not in before
    assert "the disk is full." in render_page(page)


def targets_folder():
    from csebench.plan.catalog import RUNS

    return RUNS
