"""Published score JSONs: a file that is damaged, edited, or of another run is refused, and the
message names it."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from csebench.base import files
from csebench.base.errors import BadInput
from csebench.plan.schema.declarations import Evaluation
from csebench.score.evaluate import publish_scores
from csebench.score.replicates import read_replicates
from csebench.score.score_file import read_published


class Published(NamedTuple):
    """A run with its published scores."""

    path: Path  # of the score JSON
    run: Path  # folder of the run


@pytest.fixture(scope="module")
def published(finished, smoke_data, tmp_path_factory):
    """Publish the STS scores of an untrained encoder."""
    run = finished("bert")
    run_id = json.loads((run / "train.json").read_text())["run"]
    path = tmp_path_factory.mktemp("published") / f"{run_id}.sts.json"
    publish_scores(run, "sts", smoke_data, Evaluation(), path)
    return Published(path, run)


@pytest.fixture
def path(published, tmp_path):
    """Copy the published score JSON, to be edited."""
    return shutil.copy(published.path, tmp_path / published.path.name)


def edit(path, change, fits=True):
    """Edit a JSON file.

    Args:
        fits: whether its digest is made again.
    """
    content = json.loads(path.read_text())
    change(content)
    if fits:
        content = files.with_digest(content)
    path.write_text(json.dumps(content))


def refused(path, message):
    """Check that reading a score JSON fails with a message that says what to do."""
    with pytest.raises(BadInput, match=message) as error:
        read_published(path)
    assert str(error.value).startswith(str(path))
    assert "delete it" in str(error.value)


def find(content, task, subset):
    """Find a row of scores."""
    for row in content["scores"]:
        if (row["task"], row["subset"]) == (task, subset):
            return row
    raise AssertionError(f"no score of {task}, {subset}")


# What is edited. The functions are named for what the file then has.


def no_digest(content):
    content.pop("sha256")


def a_text_for_a_value(content):
    content["scores"][0]["value"] = "0.5"


def an_unknown_metric(content):
    content["scores"][0] |= {"metric": "x", "value": -0.1}


def a_row_twice(content):
    content["scores"].append(content["scores"][3])


def an_average_of_other_scores(content):
    """Raise the average by a printed digit."""
    find(content, "Avg.", "printed")["value"] += 1e-4


def a_task_that_is_gone(content):
    content["scores"].remove(find(content, "STS14", "all"))


def averages_that_are_a_mean(content):
    """Add a mean that the averages agree with, although they do not follow from the scores."""
    for subset in ("all", "printed"):
        find(content, "Avg.", subset)["value"] = 0.9
    content["scores"].append(find(content, "Avg.", "printed") | {"subset": "mean"})


def a_spec_of_another_run(content):
    content["spec"]["seed"] = 7


def a_training_of_another_run(content):
    content["training"]["run"] = "simcse-01"


def other_weights(content):
    content["evaluations"][0]["model_sha256"] = "0" * 64


def another_pooler(content):
    content["evaluations"][0]["pooler"] = "avg_top2"


def another_evaluator(content):
    content["evaluations"][0]["evaluator"] = "transfer"


def other_settings(content):
    content["evaluations"][0]["params"] = {"kfold": 5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (a_text_for_a_value, r"scores\.0\.value: .*number"),
        (an_unknown_metric, r"scores\.0\.value: -0\.1 is no x"),
        (a_row_twice, r"scores\.\d+: .* stands twice"),
        (an_average_of_other_scores, r"scores: Avg\., printed"),
        (a_task_that_is_gone, r"scores: Avg\., all"),
        (averages_that_are_a_mean, r"scores: Avg\., all"),
        (a_spec_of_another_run, "spec: is of run bert-"),
        (a_training_of_another_run, r"training\.run: is of run"),
        (other_weights, r"0\.model_sha256: other weights"),
        (another_pooler, r"0\.pooler: is avg_top2, but the run has"),
        (another_evaluator, "scores: of evaluator transfer"),
        (other_settings, "scores: of evaluator sts"),
    ],
)
def test_an_edit_is_refused_even_with_a_digest_that_fits(change, message, path):
    edit(path, change)
    refused(path, message)


def test_a_file_without_a_digest_is_refused(path):
    edit(path, no_digest, fits=False)
    refused(path, "sha256: Field required")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_value_that_pages_show_is_held_by_the_others(path, data):
    content = json.loads(path.read_text())
    shown = [row for row in content["scores"] if is_shown(row)]
    row = data.draw(st.sampled_from(shown))
    before = row["value"]
    number = st.floats(-1, 1) | st.floats(allow_nan=False, allow_infinity=False) | st.integers()
    row["value"] = data.draw(number.filter(lambda value: abs(value - before) > 1e-4))

    copy = path.parent / "copy" / path.name
    files.write_json(copy, files.with_digest(content))
    with pytest.raises(BadInput, match="scores"):
        read_published(copy)


def is_shown(row):
    """Tell whether pages show a row of scores, or an average is made of it."""
    return row["task"] == "Avg." or row["subset"] in ("all", "mean")


def test_an_older_evaluator_keeps_its_settings(path):
    def score_by_an_older_version(content):
        content["evaluations"][0] |= {"version": 0, "params": {"kfold": 5}}

    edit(path, score_by_an_older_version)
    assert read_published(path)


def test_replicates_without_a_version_are_of_the_first(path):
    def remove_the_version(content):
        content["replicates"].pop("version")

    stated = read_replicates(read_published(path), "STS12", "spearman")
    edit(path, remove_the_version)
    not_stated = read_replicates(read_published(path), "STS12", "spearman")
    assert not_stated.items == stated.items


def test_replicates_of_another_version_are_not_taken(path):
    def make_with_another_version(content):
        content["replicates"]["version"] = 2
        content["replicates"]["scores"]["STS12"]["spearman"]["clustered"]["values"] = ""

    edit(path, make_with_another_version)
    assert read_replicates(read_published(path), "STS12", "spearman") is None


def test_the_name_of_another_run(path):
    renamed = path.rename(path.with_name("simcse-0123456789.sts.json"))
    refused(renamed, "run: is of run bert-")


def test_the_name_of_another_evaluator(path):
    run = path.name.partition(".")[0]
    renamed = path.rename(path.with_name(f"{run}.stsb_dev.json"))
    refused(renamed, "scores: of evaluator sts, another than")


def test_another_data_set_of_one_evaluator(path):
    """Settings tell `beir:scifact` from `beir:nfcorpus`. The name of the evaluator does not."""

    def score_nfcorpus(content):
        content["evaluations"][0]["params"] = {"dataset": "nfcorpus", "similarity": "cos"}

    path.write_text(path.read_text().replace('"evaluator": "sts"', '"evaluator": "beir"'))
    edit(path, score_nfcorpus)
    renamed = path.rename(path.with_name(path.name.replace(".sts.", ".beir.scifact.")))
    refused(renamed, "scores: of evaluator beir, another than")


def change_scores(file):
    edit(file, an_average_of_other_scores)


def change_scores_and_not_the_digest(file):
    edit(file, an_average_of_other_scores, fits=False)


def change_the_run_and_not_the_digest(file):
    edit(file, name_another_run, fits=False)


def name_another_run(content):
    content["run"] = "x"


def cut_off_the_end(file):
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize(
    ("pattern", "damage", "message"),
    [
        ("scores/sts-*[0-9a-f].json", change_scores, r"scores: Avg\., printed"),
        ("scores/sts-*[0-9a-f].json", change_scores_and_not_the_digest, "edited since"),
        ("train.json", change_the_run_and_not_the_digest, "edited since .* Delete "),
        ("scores/*.npz", cut_off_the_end, "it was changed. Restore"),
    ],
)
def test_what_was_changed_in_a_run_is_not_published(
    pattern, damage, message, published, smoke_data, tmp_path
):
    run = shutil.copytree(published.run, tmp_path / "run")
    (file,) = run.glob(pattern)
    damage(file)
    with pytest.raises(BadInput, match=rf"{file}: .*{message}"):
        publish_scores(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
