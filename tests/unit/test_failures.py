"""A failed evaluator leaves its reason, and its own cell missing. Nothing else is missing."""

import json
from unittest.mock import Mock

import pytest

from csebench.base import caches
from csebench.base.errors import OutOfMemory, RunFailed, Untrainable
from csebench.base.files import write_json
from csebench.base.runs import PROGRESS
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.declarations import Evaluation
from csebench.report.pages.table import table_page
from csebench.score import evaluate, store
from csebench.study import work as jobs


@pytest.fixture
def run(tmp_path):
    """The folder of a finished run of a control, whose model is made without training."""
    facts = {"control": "random", "params": {"dimensions": 64}, "seed": 0, "run": "random"}
    write_json(tmp_path / "run" / "model" / "csebench.json", facts)
    for name in ("model/training.json", "train.json"):
        write_json(tmp_path / "run" / name, {"spec": {}, "provenance": {}})
    return tmp_path / "run"


def test_of_evaluators_one_fails_and_the_others_are_made(run, smoke_data, tmp_path, monkeypatch):
    """The job that publishes the failed score fails too."""
    original = evaluate.run_evaluator
    out = tmp_path / "out.json"

    def run_evaluator(evaluator, *arguments):
        if evaluator == "geometry":
            raise RunFailed("the hub cannot\nbe reached")
        return original(evaluator, *arguments)

    monkeypatch.setattr(evaluate, "run_evaluator", run_evaluator)
    kept = evaluate.evaluate_run(
        run, ["geometry", "stsb_dev"], smoke_data, Evaluation(), keep_going=True
    )
    assert list(kept) == ["stsb_dev"]
    assert kept["stsb_dev"].exists()
    assert store.failures(run) == {"geometry": "the hub cannot be reached"}

    with pytest.raises(RunFailed, match="cannot"):
        evaluate.publish_scores(run, "geometry", smoke_data, Evaluation(), out)
    assert not out.exists()


def test_a_later_score_takes_the_reason_away_and_vectors_of_other_settings(run, smoke_data):
    store.note_failure(run, "stsb_dev", RunFailed("no connection"))
    # Killed scorings left these.
    of_this = run / "scores" / ".stsb_dev-0123456789.shards"
    of_another = run / "scores" / ".beir.smoke-0123456789.shards"
    of_this.mkdir(parents=True)
    of_another.mkdir()

    evaluate.publish_scores(run, "stsb_dev", smoke_data, Evaluation(), run / "out.json")

    assert store.failures(run) == {}
    assert json.loads((run / "out.json").read_text())["scores"]
    assert not of_this.exists()
    assert of_another.exists()


def test_a_scoring_that_is_killed_at_its_end_leaves_no_vectors(run, smoke_data, monkeypatch):
    monkeypatch.setattr(evaluate, "write_json", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        evaluate.evaluate_run(run, ["beir:smoke"], smoke_data, Evaluation())
    assert not list((run / "scores").glob(".*.shards"))


def test_a_page_says_why_a_score_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caches.clear()
    (page,) = targets.parse_target("micse/table2", "smoke")
    run_id, evaluator = next(iter(page.scores()))
    folder = catalog.RUNS / run_id

    store.note_failure(folder, evaluator, RunFailed("the disk is full"))
    assert "the disk is full." in table_page(page).write("markdown")

    write_json(folder / PROGRESS, {"state": "failed", "message": "access is restricted"})
    store.failure_file(folder, evaluator).unlink()
    caches.clear()
    assert "training failed: access is restricted" in table_page(page).write("markdown")


@pytest.mark.parametrize(
    ("error", "is_repeated"),
    [
        (OutOfMemory("give --chunk-size 4"), False),
        (Untrainable("NaN"), False),
        (RunFailed("503"), True),
    ],
)
def test_a_retry_repeats_no_run_that_its_own_settings_ended(
    error, is_repeated, tmp_path, monkeypatch
):
    """A cluster retries jobs by itself. A run that somebody asks for again is tried again."""
    run_id = next(iter(targets.runs("smoke")))
    tries = []

    def fail(*job):
        tries.append(job)
        raise error

    def tries_of(attempt):
        """Count how often the run is tried in an attempt at it."""
        tries.clear()
        with pytest.raises(RunFailed, match=str(error)):
            jobs.work(run_id, "smoke", None, 0, 1, attempt=attempt)
        return len(tries)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jobs, "train_and_score", fail)
    (catalog.RUNS / run_id).mkdir(parents=True)
    assert tries_of(attempt=1) == 1
    assert tries_of(attempt=2) == int(is_repeated)
    assert tries_of(attempt=1) == 1
