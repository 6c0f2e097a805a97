"""Published score JSONs: what is damaged, edited, or of another run is refused, with the file
named."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from csebench.base import files
from csebench.base.errors import BadInput
from csebench.plan.schema.declarations import Evaluation
from csebench.score.evaluate import publish_scores
from csebench.score.replicates import read_replicates
from csebench.score.score_file import read_published


@pytest.fixture(scope="module")
def made(finished, smoke_data, tmp_path_factory):
    """A published score JSON of a run, and its run."""
    run, out = finished("bert"), tmp_path_factory.mktemp("published")
    path = out / f"{json.loads((run / 'train.json').read_text())['run']}.sts.json"
    publish_scores(run, "sts", smoke_data, Evaluation(), path)
    return path, run


@pytest.fixture
def path(made, tmp_path):
    return shutil.copy(made[0], tmp_path / made[0].name)


def edit(path, change, fits=True):
    """Edits a file, whose digest then `fits`."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(files.with_digest(content) if fits else content))


def refused(path, message):
    with pytest.raises(BadInput, match=message) as error:
        read_published(path)
    assert str(error.value).startswith(str(path)) and "delete it" in str(error.value)


def find(content, task, subset):
    return next(row for row in content["scores"] if (row["task"], row["subset"]) == (task, subset))


def replicates(content):
    return content["replicates"]["scores"]["STS12"]["spearman"]


def raise_average(content):
    """By a printed digit."""
    find(content, "Avg.", "printed")["value"] += 1e-4


def use_means_as_averages(content):
    """The printed one's is right, which is no reason not to look at the others."""
    for subset in ("all", "printed"):
        find(content, "Avg.", subset)["value"] = 0.9
    content["scores"].append(find(content, "Avg.", "printed") | {"subset": "mean"})


EDITS = {  # what is edited, so that the digest fits, and what the message names
    "no digest": (lambda c: c.pop("sha256"), "sha256: Field required"),
    "a text for a value": (
        lambda c: c["scores"][0].update(value="0.5"),
        r"scores\.0\.value: .*number",
    ),
    "an unknown metric": (
        lambda c: c["scores"][0].update(metric="x", value=-0.1),
        r"scores\.0\.value: -0\.1 is no x",
    ),
    "a row twice": (lambda c: c["scores"].append(c["scores"][3]), r"scores\.\d+: .* stands twice"),
    "an average of other scores": (raise_average, r"scores: Avg\., printed"),
    "a task that is gone": (
        lambda c: c["scores"].remove(find(c, "STS14", "all")),
        r"scores: Avg\., all",
    ),
    "averages that are a mean": (use_means_as_averages, r"scores: Avg\., all"),
    "a spec of another run": (lambda c: c["spec"].update(seed=7), "spec: is of run bert-"),
    "a training of another run": (
        lambda c: c["training"].update(run="simcse-01"),
        r"training\.run: is of run",
    ),
    "other weights": (
        lambda c: c["evaluations"][0].update(model_sha256="0" * 64),
        r"0\.model_sha256: other weights",
    ),
    "another pooler": (
        lambda c: c["evaluations"][0].update(pooler="avg_top2"),
        r"0\.pooler: is avg_top2, but the run has",
    ),
    "another evaluator": (
        lambda c: c["evaluations"][0].update(evaluator="transfer"),
        "scores: of evaluator transfer",
    ),
    "other settings": (
        lambda c: c["evaluations"][0].update(params={"kfold": 5}),
        "scores: of evaluator sts",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_refused_even_with_a_digest_that_fits(name, path):
    change, message = EDITS[name]
    edit(path, change, fits=name != "no digest")
    refused(path, message)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_value_that_pages_show_is_held_by_the_others(path, data):
    content = json.loads(path.read_text())
    shown = [r for r in content["scores"] if r["task"] == "Avg." or r["subset"] in ("all", "mean")]
    row = data.draw(st.sampled_from(shown))
    number = st.floats(-1, 1) | st.floats(allow_nan=False, allow_infinity=False) | st.integers()
    row["value"] = data.draw(number.filter(lambda value: abs(value - row["value"]) > 1e-4))
    copy = path.parent / "copy" / path.name
    files.write_json(copy, files.with_digest(content))
    with pytest.raises(BadInput, match="scores"):
        read_published(copy)


def test_an_older_evaluator_keeps_its_settings(path):
    edit(path, lambda content: content["evaluations"][0].update(version=0, params={"kfold": 5}))
    assert read_published(path)


def test_replicates_of_another_version_are_not_taken_and_the_first_stated_none(path):
    ours = read_replicates(read_published(path), "STS12", "spearman")
    edit(path, lambda content: content["replicates"].pop("version"))
    assert read_replicates(read_published(path), "STS12", "spearman").items == ours.items
    edit(path, lambda content: content["replicates"].update(version=2))
    edit(path, lambda content: replicates(content)["clustered"].update(values=""))
    assert read_replicates(read_published(path), "STS12", "spearman") is None


NAMES = {
    "simcse-0123456789.sts": "run: is of run bert-",
    "RUN.stsb_dev": "scores: of evaluator sts, another than",
}


@pytest.mark.parametrize("name", NAMES)
def test_another_run_or_evaluator_under_this_name(name, path):
    run = path.name.partition(".")[0]
    refused(path.rename(path.with_name(f"{name.replace('RUN', run)}.json")), NAMES[name])


def test_another_data_set_of_one_evaluator(path):
    """Settings tell `beir:scifact` from `beir:nfcorpus`, which the name of the evaluator does
    not."""
    path.write_text(path.read_text().replace('"evaluator": "sts"', '"evaluator": "beir"'))
    edit(
        path,
        lambda content: content["evaluations"][0].update(
            params={"dataset": "nfcorpus", "similarity": "cos"}
        ),
    )
    renamed = path.rename(path.with_name(path.name.replace(".sts.", ".beir.scifact.")))
    refused(renamed, "scores: of evaluator beir, another than")


KEPT = [  # a file of a run, how it is damaged, and what the message says
    (
        "scores/sts-*[0-9a-f].json",
        lambda file: edit(file, raise_average),
        r"scores: Avg\., printed",
    ),
    (
        "scores/sts-*[0-9a-f].json",
        lambda file: edit(file, raise_average, fits=False),
        "edited since",
    ),
    (
        "train.json",
        lambda file: edit(file, lambda c: c.update(run="x"), fits=False),
        "edited since .* Delete ",
    ),
    (
        "scores/*.npz",
        lambda file: file.write_bytes(file.read_bytes()[:-9]),
        "it was changed. Restore",
    ),
]


@pytest.mark.parametrize(("pattern", "damage", "message"), KEPT)
def test_what_was_changed_in_a_run_is_not_published(
    pattern, damage, message, made, smoke_data, tmp_path
):
    run = shutil.copytree(made[1], tmp_path / "run")
    (file,) = run.glob(pattern)
    damage(file)
    with pytest.raises(BadInput, match=rf"{file}: .*{message}"):
        publish_scores(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
