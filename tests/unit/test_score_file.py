"""Published score JSONs: what is damaged, edited, or of another run is refused, with the file named."""

import base64
import contextlib
import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from csebench.base import files
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.plan import catalog
from csebench.plan.declarations import Evaluation
from csebench.score.evaluate import evaluate_run, publish
from csebench.score.replicates import read_replicates
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


def edit(path, change, with_digest=files.with_digest):
    """Edits a file, whose digest then fits unless another function is given."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(with_digest(content)))


def unchanged(content):
    return content


def refused(path, message):
    with pytest.raises(BadInput, match=message) as error:
        read_published(path)
    assert str(error.value).startswith(str(path)) and "delete it" in str(error.value)


def test_what_was_published_is_read(path):
    assert read_published(path)["scores"]


def test_published_scores_of_the_repository_are_read():
    paths = sorted((ROOT / catalog.results_folder("mini") / "scores").glob("*.json"))
    if not paths:
        pytest.skip("a checkout without results")
    assert all(read_published(path) for path in paths)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["scores"][0].update(value=0.99),
        lambda content: content["evaluations"][0].update(batch_size=1),
        lambda content: content["timings"].clear(),
        lambda content: content.update(sha256="0" * 64),
    ],
)
def test_an_edit_without_a_digest_that_fits(change, path):
    edit(path, change, unchanged)
    refused(path, "edited since it was written")


@pytest.mark.parametrize("key", ["sha256", "run", "spec", "scores", "evaluations"])
def test_a_missing_section(path, key):
    edit(path, lambda content: content.pop(key), unchanged)
    refused(path, f"{key}: Field required")


def test_a_value_that_json_has_not(path):
    edit(path, lambda content: content["scores"][0].update(value=float("nan")))
    refused(path, "not valid JSON: .* at line 1")


def find(content, task, subset):
    return next(row for row in content["scores"] if (row["task"], row["subset"]) == (task, subset))


def swap(one, two, key):
    one[key], two[key] = two[key], one[key]


def by_beir(content, name):
    content["evaluations"][0].update(evaluator="beir", params={"name": name})
    for row in content["scores"]:
        row["evaluator"] = "beir"


def changes(content, task="STS12", kind="clustered"):
    return content["replicates"]["scores"][task]["spearman"][kind]


def averages_with_a_mean(content):
    """Of the printed one, which is no reason not to look at the others."""
    for subset in ("all", "printed"):
        find(content, "Avg.", subset)["value"] = 0.9
    content["scores"].append(find(content, "Avg.", "printed") | {"subset": "mean"})


def shortened(encoded):
    encoded["values"] = base64.b64encode(base64.b64decode(encoded["values"])[:-2]).decode()


EDITS = {  # with a digest that fits, and what the message names
    "a text for a value": (lambda c: c["scores"][0].update(value="0.5"), r"scores\.0\.value: .*number"),
    "nothing for a value": (lambda c: c["scores"][0].update(value=None), r"scores\.0\.value: .*number"),
    "a truth for a value": (lambda c: c["scores"][0].update(value=True), r"scores\.0\.value: .*number"),
    "points for a fraction": (lambda c: c["scores"][0].update(value=76.2), r"scores\.0\.value: 76\.2 is no spearman"),
    "a value below the lowest": (lambda c: c["scores"][0].update(value=-1.1), r"scores\.0\.value: -1\.1 is no"),
    "an unknown metric": (lambda c: c["scores"][0].update(metric="x", value=-0.1), r"scores\.0\.value: -0\.1 is no x"),
    "a row twice": (lambda c: c["scores"].append(c["scores"][3]), r"scores\.\d+: .* stands twice"),
    "a row twice, differently": (lambda c: c["scores"].insert(0, c["scores"][3] | {"value": 0.1}), "stands twice"),
    "an average": (lambda c: find(c, "Avg.", "all").update(value=0.9), r"scores: Avg\., all, spearman: 0\.9"),
    "a printed average": (lambda c: find(c, "Avg.", "printed").update(value=0.9), r"scores: Avg\., printed"),
    "an average off by a printed digit": (
        lambda c: find(c, "Avg.", "printed").update(value=find(c, "Avg.", "printed")["value"] + 1e-4),
        r"scores: Avg\., printed",
    ),
    "a task": (lambda c: find(c, "STS14", "all").update(value=0.99), r"scores: Avg\., all, spearman"),
    "a mean of subsets": (lambda c: find(c, "STS14", "mean").update(value=0.9), "scores: STS14, mean, spearman: 0.9"),
    "a subset": (lambda c: find(c, "STS14", "images").update(value=0.99), "scores: STS14, mean, spearman"),
    "a task that is gone": (lambda c: c["scores"].remove(find(c, "STS14", "all")), r"scores: Avg\., all"),
    "a task under another name": (lambda c: find(c, "STS14", "all").update(task="STS17"), r"scores: Avg\., all"),
    "averages that are a mean": (lambda c: averages_with_a_mean(c), r"scores: Avg\., all"),
    "a spec of another run": (lambda c: c["spec"].update(seed=7), "spec: is of run bert-"),
    "a spec with more": (lambda c: c["spec"].update(more=1), r"spec\.more: unknown key"),
    "no run's spec": (lambda c: c.update(spec={}), r"spec\.method: Field required"),
    "another run": (lambda c: c.update(run="simcse-0123456789"), "run: is of run simcse-"),
    "a training of another run": (
        lambda c: c["training"].update(run="simcse-0123456789"),
        r"training\.run: is of run",
    ),
    "other weights than the training": (
        lambda c: c["evaluations"][0].update(model_sha256="0" * 64),
        r"evaluations\.0\.model_sha256: other weights",
    ),
    "a second evaluation": (lambda c: c["evaluations"].append(c["evaluations"][0]), "evaluations: .*at most 1"),
    "another evaluator": (lambda c: c["evaluations"][0].update(evaluator="transfer"), "scores: of evaluator transfer"),
    "a row of another evaluator": (lambda c: c["scores"][5].update(evaluator="mteb"), "scores: of evaluator sts"),
    "other settings": (lambda c: c["evaluations"][0].update(params={"kfold": 5}), "scores: of evaluator sts"),
    "a replicate less": (lambda c: shortened(changes(c)), r"replicates\.scores\.STS12\.spearman\.clustered\.values: "),
    "half a replicate": (lambda c: changes(c).update(values=changes(c)["values"][:-4]), "clustered.values: holds"),
    "no base64": (lambda c: changes(c, kind="naive").update(values="x"), "naive.values: holds 0 numbers"),
    "no ASCII": (lambda c: changes(c, kind="naive").update(values="é"), "naive.values: holds 0 numbers"),
    "swapped kinds": (
        lambda c: swap(changes(c), changes(c, kind="naive"), "values"),
        "clustered.values: holds 128 numbers, not 512",
    ),
    "a negative unit": (lambda c: changes(c).update(unit=-1e-6), "clustered.unit: .* greater than 0"),
    "a unit of zero": (lambda c: changes(c).update(unit=0.0), "clustered.unit: .* greater than 0"),
    "a unit that is too large": (lambda c: changes(c).update(unit=0.01), "clustered.unit: a change of 327.67"),
    "replicates of one kind": (lambda c: c["replicates"]["scores"]["STS12"]["spearman"].pop("naive"), "naive: Field"),
    "replicates of an unknown task": (
        lambda c: c["replicates"]["scores"].update(STS17=c["replicates"]["scores"]["STS12"]),
        r"replicates\.scores\.STS17\.spearman: is of no score",
    ),
    "replicates of an unknown metric": (
        lambda c: c["replicates"]["scores"]["STS12"].update(x=c["replicates"]["scores"]["STS13"]["spearman"]),
        r"replicates\.scores\.STS12\.x: is of no score",
    ),
    "no digest of items": (lambda c: c["replicates"].update(items="other"), r"replicates\.items: "),
    "no version of replicates": (lambda c: c["replicates"].update(version="new"), r"replicates\.version: "),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_with_a_digest_that_fits(name, path):
    change, message = EDITS[name]
    edit(path, change)
    refused(path, message)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_that_pages_show_is_held_by_the_others(path, data):
    """Whichever of them is set to any other number; and whatever it is, there is no traceback."""
    content = json.loads(path.read_text())
    shown = [r for r in content["scores"] if r["task"] == "Avg." or r["subset"] in ("all", "mean")]
    row = data.draw(st.sampled_from(shown))
    number = st.floats(-1, 1) | st.floats(allow_nan=False, allow_infinity=False) | st.integers()
    row["value"] = data.draw(number.filter(lambda value: abs(value - row["value"]) > 1e-4))
    copy = path.parent / "copy" / path.name
    files.write_json(copy, files.with_digest(content))
    with pytest.raises(BadInput, match="scores"):
        read_published(copy)


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("éa0.")
VALUES = LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(st.text("ab"), LEAVES, max_size=2)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_edit_is_refused_in_words_or_read(path, data):
    """At any place of the file, with a digest that fits."""
    content = json.loads(path.read_text())
    place, key = content, data.draw(st.sampled_from([k for k in content if k not in ("sha256", "provenance")]))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from([*place] if isinstance(place, dict) else range(len(place))))
    if data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = data.draw(
            LEAVES | st.lists(LEAVES, max_size=2) | st.dictionaries(st.text("ab"), LEAVES, max_size=2)
        )
    copy = path.parent / "copy" / path.name
    files.write_json(copy, files.with_digest(content))
    with contextlib.suppress(BadInput):
        read_published(copy)


def test_an_older_evaluator_keeps_its_settings(path):
    edit(path, lambda content: content["evaluations"][0].update(version=0, params={"kfold": 5}))
    assert read_published(path)


@pytest.mark.parametrize("version", [0, 2])
def test_replicates_of_other_versions_are_not_taken(version, path):
    edit(path, lambda content: content["replicates"].update(version=version))
    edit(path, lambda content: shortened(changes(content)))
    assert read_replicates(read_published(path), "STS12", "spearman") is None


def test_replicates_without_a_version_are_of_the_first(path):
    ours = read_replicates(read_published(path), "STS12", "spearman")
    edit(path, lambda content: content["replicates"].pop("version"))
    assert read_replicates(read_published(path), "STS12", "spearman").items == ours.items


def test_another_run_under_this_name(path):
    renamed = path.rename(path.with_name("simcse-0123456789.sts.json"))
    refused(renamed, "run: is of run bert-")


@pytest.mark.parametrize("key", ["transfer", "beir.scifact", "stsb_dev"])
def test_another_evaluator_under_this_name(path, key):
    renamed = path.rename(path.with_name(path.name.replace(".sts.", f".{key}.")))
    refused(renamed, "scores: of evaluator sts, another than")


def test_another_data_set_of_one_evaluator(path):
    """Settings tell `beir:scifact` from `beir:nfcorpus`, which the name of the evaluator does not."""
    edit(path, lambda content: by_beir(content, "nfcorpus"))
    renamed = path.rename(path.with_name(path.name.replace(".sts.", ".beir.scifact.")))
    refused(renamed, "scores: of evaluator beir, another than")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\udcff"])
def test_no_object_of_json(path, content):
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=path.name):
        read_published(path)


def test_kept_scores_that_cannot_be_are_not_published(made, smoke_data, tmp_path):
    run = shutil.copytree(made[1], tmp_path / "run")
    kept = evaluate_run(run, ["sts"], smoke_data, Evaluation())["sts"]
    edit(kept, lambda content: find(content, "Avg.", "printed").update(value=0.99))
    with pytest.raises(BadInput, match=rf"{kept.name}: scores: Avg\., printed"):
        publish(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()


def test_kept_scores_that_were_edited_are_not_published(made, smoke_data, tmp_path):
    run = shutil.copytree(made[1], tmp_path / "run")
    kept = evaluate_run(run, ["sts"], smoke_data, Evaluation())["sts"]
    edit(kept, lambda content: content["scores"][0].update(value=0.99), unchanged)
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
        edit(file, lambda content: content["provenance"].update(seconds=1.0), unchanged)
        with pytest.raises(BadInput, match=rf"{file}: edited since it was written.* Delete {run}, and the run is"):
            publish(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
        file.write_text(sound)
