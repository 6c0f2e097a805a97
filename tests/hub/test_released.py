"""Released checkpoints, in the formats of their authors' files, scored by one command against the loopback hub."""

import json

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkpoints(sentences):
    import hub_models

    return hub_models.checkpoints(sentences)


@pytest.fixture
def project(project, checkpoints):
    project.hub.repositories += checkpoints
    return project


def evaluate(project, model, pooler="cls_before_pooler"):
    command = ["evaluate", "--model", model, "--pooler", pooler, "--evaluators", "stsb_dev", "--data", "data/smoke"]
    return project.run(*command, "--out", "scores.json")


def test_files_of_the_hub_are_scored(project, checkpoints):
    values = []
    for repository in checkpoints[:3]:
        done = evaluate(project, f"{repository.id}@{repository.commit}")
        assert done.returncode == 0, done.stderr
        written = json.loads((project.folder / "scores.json").read_text())
        assert written["evaluations"][0]["model_commit"] == repository.commit
        values.append(written["scores"][0]["value"])
    assert len({*values}) == 3


def test_the_pooler_of_the_file_is_used(project, checkpoints):
    values = {}
    for pooler in ("cls", "cls_before_pooler"):
        assert evaluate(project, checkpoints[0].id, pooler).returncode == 0
        values[pooler] = json.loads((project.folder / "scores.json").read_text())["scores"][0]["value"]
    assert values["cls"] != values["cls_before_pooler"]


def test_a_restricted_one_is_refused(project, checkpoints):
    project.hub.fail("gated", checkpoints[3].id)
    done = evaluate(project, checkpoints[3].id)
    assert done.returncode == 2 and "access is restricted" in done.stderr
