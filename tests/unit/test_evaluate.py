"""Scores of a run: made once, and made again when what decides them has changed."""

import json
import shutil

import pytest

from csebench.base.errors import BadInput
from csebench.plan.schema import Evaluation
from csebench.score.evaluate import evaluate_run, publish


@pytest.fixture
def data(smoke_data, tmp_path):
    return shutil.copytree(smoke_data, tmp_path / "data")


def scores(run, data, evaluation=Evaluation()):
    return evaluate_run(run, ["sts"], data, evaluation)["sts"]


def test_scores_are_made_once(finished, data):
    run = finished("oracle")
    kept = scores(run, data)
    written = kept.stat().st_mtime_ns
    assert scores(run, data) == kept
    assert kept.stat().st_mtime_ns == written
    assert kept.with_suffix(".items.npz").exists()


@pytest.mark.parametrize("file", ["STS/STS12-en-test/STS.gs.MSRvid.txt", "STS/STS16-en-test/STS.input.headlines.txt"])
def test_other_data_is_another_evaluation(file, finished, data):
    """Any file that is read counts, not only those whose pairs are fewer."""
    run, path = finished("oracle"), data / "downstream" / file
    kept = scores(run, data)
    first, second, *rest = path.read_text().splitlines()
    path.write_text("\n".join([second, first, *rest]) + "\n")
    assert scores(run, data) != kept


def test_other_settings_are_another_evaluation(finished, data):
    run = finished("oracle")
    assert scores(run, data) != scores(run, data, Evaluation(batch_size=3))


def test_published_scores_say_how_they_were_made(finished, data, tmp_path):
    publish(finished("oracle"), "sts", data, Evaluation(), tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["spec"]["method"] == "oracle" and content["training"]["run"].startswith("oracle-")
    assert {s["evaluator"] for s in content["scores"]} == {"sts"}


def test_a_run_without_a_model(data, tmp_path):
    with pytest.raises(BadInput, match="no finished model"):
        scores(tmp_path, data)


def test_a_training_job_scores_by_what_has_its_data(data):
    """What has none is left to a job that waits for it, so that a finished model is not thrown away."""
    from csebench.score.evaluate import has_data

    assert has_data("sts", data) and has_data("beir:smoke", data)
    assert not has_data("beir:scifact", data)


def test_a_data_root_without_the_files(finished, tmp_path):
    with pytest.raises(BadInput, match=r"sts-test\.csv: no such file"):
        scores(finished("oracle"), tmp_path)
