"""Published score JSONs: what is damaged, edited, or of another run is refused, with the file named."""

import json
import shutil

import pytest

from csebench import ROOT
from csebench.base.errors import BadInput
from csebench.plan import catalog
from csebench.plan.schema import Evaluation
from csebench.score.evaluate import evaluate_run, publish
from csebench.score.score_file import read_published


@pytest.fixture(scope="module")
def made(finished, smoke_data, tmp_path_factory):
    """A published score JSON of a run, and its run."""
    run, out = finished("bert"), tmp_path_factory.mktemp("published")
    path = out / f"{json.loads((run / 'train.json').read_text())['run']}.sts.json"
    publish(run, "sts", smoke_data, Evaluation(), path)
    return path, run


@pytest.fixture
def path(made, tmp_path):
    return shutil.copy(made[0], tmp_path / made[0].name)


def edit(path, change, with_digest=True):
    """Edits a file; without its digest, it is one as older versions wrote it."""
    content = json.loads(path.read_text())
    change(content)
    if not with_digest:
        del content["sha256"]
    path.write_text(json.dumps(content))


def refused(path, message):
    with pytest.raises(BadInput, match=message) as error:
        read_published(path)
    assert str(error.value).startswith(str(path)) and "delete it" in str(error.value)


def test_what_was_published_is_read(path):
    assert read_published(path)["scores"]


def test_a_file_without_a_digest_is_read(path):
    edit(path, lambda content: None, with_digest=False)
    assert read_published(path)["scores"]


def test_published_scores_of_the_repository_are_read():
    paths = sorted((ROOT / catalog.results_folder("mini") / "scores").glob("*.json"))
    if not paths:
        pytest.skip("a checkout without results")
    assert all(read_published(path) for path in paths)


def test_an_edited_value(path):
    edit(path, lambda content: content["scores"][0].update(value=0.99))
    refused(path, "edited since it was written")


def test_an_edited_setting(path):
    edit(path, lambda content: content["evaluations"][0].update(batch_size=1))
    refused(path, "edited since it was written")


@pytest.mark.parametrize(("value", "text"), [("0.5", "number"), (None, "number"), (True, "number")])
def test_a_value_that_is_no_finite_number(path, value, text):
    edit(path, lambda content: content["scores"][0].update(value=value), with_digest=False)
    refused(path, rf"scores\.0\.value: .*{text}")


def test_a_value_that_json_has_not(path):
    edit(path, lambda content: content["scores"][0].update(value=float("nan")), with_digest=False)
    refused(path, "not valid JSON: NaN is not a number")


@pytest.mark.parametrize("key", ["run", "spec", "scores", "evaluations"])
def test_a_missing_section(path, key):
    edit(path, lambda content: content.pop(key), with_digest=False)
    refused(path, f"{key}: Field required")


def test_another_run_under_this_name(path):
    renamed = path.rename(path.with_name("simcse-0123456789.sts.json"))
    refused(renamed, "run: is of run bert-")


def test_a_spec_of_another_run(path):
    edit(path, lambda content: content["spec"].update(seed=7), with_digest=False)
    refused(path, "spec: is of run bert-")


@pytest.mark.parametrize("key", ["transfer", "beir.scifact"])
def test_another_evaluator_under_this_name(path, key):
    renamed = path.rename(path.with_name(path.name.replace(".sts.", f".{key}.")))
    refused(renamed, "scores of evaluator sts, another than")


def test_another_data_set_of_one_evaluator(path):
    """Settings tell `beir:scifact` from `beir:nfcorpus`, which the name of the evaluator does not."""
    edit(path, lambda content: by_beir(content, "nfcorpus"), with_digest=False)
    renamed = path.rename(path.with_name(path.name.replace(".sts.", ".beir.scifact.")))
    refused(renamed, "scores of evaluator beir, another than")


def by_beir(content, name):
    content["evaluations"][0].update(evaluator="beir", params={"name": name})
    for row in content["scores"]:
        row["evaluator"] = "beir"


def test_scores_of_other_weights_than_the_training(path):
    edit(path, lambda content: content["evaluations"][0].update(model_sha256="0" * 64), with_digest=False)
    refused(path, "scores of other weights")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\udcff"])
def test_no_object_of_json(path, content):
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=path.name):
        read_published(path)


def test_kept_scores_that_were_edited_are_not_published(made, smoke_data, tmp_path):
    run = shutil.copytree(made[1], tmp_path / "run")
    kept = evaluate_run(run, ["sts"], smoke_data, Evaluation())["sts"]
    edit(kept, lambda content: content["scores"][0].update(value=0.99))
    with pytest.raises(BadInput, match="edited since it was written"):
        publish(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


# ---------------------------------------------------------------- what stays with the run


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made[1], tmp_path / "run")


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda content: b"", lambda content: content + b"0"])
def test_per_item_values_that_were_changed_are_refused(damage, run, smoke_data, tmp_path):
    (file,) = (run / "scores").glob("sts-*.items.npz")
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(BadInput, match=rf"{file}: .* it was changed\. Restore it; or delete it"):
        publish(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_an_edited_report_of_a_run_is_refused(run, smoke_data, tmp_path):
    for file in (run / "train.json", run / "model" / "training.json"):
        sound = file.read_text()
        edit(file, lambda content: content["provenance"].update(seconds=1.0))
        with pytest.raises(BadInput, match=rf"{file}: edited since it was written.* Delete {run}, and the run is"):
            publish(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
        file.write_text(sound)
