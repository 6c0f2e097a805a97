"""`csebench push` sends the model of a run, with its card and scores, to a hub that runs here."""

import shutil
from pathlib import Path

import pytest
from hub_server import TOKEN, Repository
from huggingface_hub import ModelCard, snapshot_download
from made_up import SCALE, clear, made_up, unprinted_table
from score_files import edit_score_file, write_scores

from csebench.base import runs
from csebench.base.files import write_json, write_text
from csebench.base.models import CARD, FACTS, REPORT, WEIGHTS, model_sha256
from csebench.cli import main
from csebench.plan import targets
from csebench.plan.catalog.files import scale as read_scale
from csebench.sharing.push import SCORES_FOLDER  # imported before a fixture moves the project

REPOSITORY = "areader/simcse"
PAPER = {
    "name": "m",
    "tables": {"1": unprinted_table({"SimCSE": "simcse"}, [{"label": "Avg.", "task": "Avg."}])},
}


@pytest.fixture
def spec(hub, tmp_path, monkeypatch):
    """A finished run with scores, in the current folder. There is a token that may write."""
    made_up(tmp_path, monkeypatch, PAPER)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    constants = {
        "ENDPOINT": hub.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,
        "HF_TOKEN_PATH": str(tmp_path / "no-token"),
    }
    for name, value in constants.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (page,) = targets.parse_target("m", SCALE)
    spec = next(iter(page.runs().values()))
    finish_run(spec)
    score(spec)
    yield spec
    clear()


def model_folder(spec):
    return Path("runs") / spec.run_id / "model"


def finish_run(spec):
    """Write a model in the form of one that training has finished."""
    model = model_folder(spec)
    write_json(model / "config.json", {"model_type": "bert"})
    write_text(model / WEIGHTS, "weights")
    write_json(model / FACTS, {"run": spec.run_id, "pooler": "cls"})
    write_text(model / CARD, f"# {spec.run_id}\n")
    write_json(model / REPORT, {"spec": spec.model_dump(), "model_sha256": model_sha256(model)})
    runs.finish(model.parent)


def score(spec):
    """Write the scores of the run, as its scale asks for them."""
    evaluation = read_scale(SCALE).evaluation
    write_scores(spec, "sts", SCALE, [("Avg.", "spearman", 0.5)])

    def state_the_model(content):
        content["model"] = f"runs/{spec.run_id}/model"
        content["evaluations"][0] |= {
            **evaluation.model_dump(),
            "model_sha256": model_sha256(model_folder(spec)),
            "pooler": spec.params["pooler"],
            "protocol": "simcse-senteval-all",
        }

    edit_scores(spec, state_the_model)


def edit_scores(spec, edit):
    edit_score_file(targets.score_path(spec.run_id, "sts", SCALE), edit)
    clear()


def push(spec, *options):
    return main(["push", spec.run_id, "--scale", SCALE, "--to", REPOSITORY, *options])


def error_of(capsys):
    return " ".join(capsys.readouterr().err.split())


def test_without_yes_the_files_are_listed_and_nothing_is_sent(spec, hub, capsys):
    assert push(spec) == 0
    printed = capsys.readouterr().out
    assert f"{REPOSITORY} (private if it is new)" in printed
    for name in ("README.md", "model.safetensors", f"{SCORES_FOLDER}/{spec.run_id}.sts.json"):
        assert name in printed
    assert "Nothing is sent" in printed
    assert hub.requests == []


def test_a_pushed_model_is_downloaded_as_it_was(spec, hub, tmp_path, capsys):
    assert push(spec, "--yes") == 0
    repository = hub.find("models", REPOSITORY)
    assert (
        f"Sent: {hub.endpoint}/{REPOSITORY}/commit/{repository.commit}" in capsys.readouterr().out
    )

    copy = tmp_path / "copy"
    snapshot_download(REPOSITORY, local_dir=copy)
    (scores,) = (copy / SCORES_FOLDER).iterdir()
    published = targets.score_path(spec.run_id, "sts", SCALE)
    assert scores.read_bytes() == published.read_bytes()
    shutil.rmtree(copy / SCORES_FOLDER)
    assert model_sha256(copy) == model_sha256(model_folder(spec))


def test_the_card_of_a_pushed_model_has_its_scores(spec, hub):
    push(spec, "--yes")
    card = ModelCard(hub.find("models", REPOSITORY).files["README.md"].decode())
    values = {result.dataset_name: result.metric_value for result in card.data.eval_results}
    assert values["STS12"] == 0.5
    assert card.text.strip() == f"# {spec.run_id}"
    assert (model_folder(spec) / CARD).read_text() == f"# {spec.run_id}\n"


def test_a_new_repository_is_private_unless_public_is_asked_for(spec, hub):
    push(spec, "--yes")
    assert hub.find("models", REPOSITORY).is_private
    hub.repositories.remove(hub.find("models", REPOSITORY))
    push(spec, "--yes", "--public")
    assert not hub.find("models", REPOSITORY).is_private


def test_the_same_model_may_be_pushed_again_with_new_scores(spec, hub):
    push(spec, "--yes")
    edit_scores(spec, lambda content: content["provenance"].update(processor="another"))
    assert push(spec, "--yes") == 0
    sent = hub.find("models", REPOSITORY).files[f"{SCORES_FOLDER}/{spec.run_id}.sts.json"]
    assert b'"another"' in sent


@pytest.mark.parametrize(
    "files", [{"pytorch_model.bin": b"mine"}, {"config.json": b'{"model_type": "gpt2"}'}]
)
def test_a_repository_with_other_content_is_refused(spec, hub, files, capsys):
    before = dict(files)
    hub.repositories.append(Repository("models", REPOSITORY, "1" * 40, files))
    assert push(spec, "--yes") == 2
    assert f"{REPOSITORY}: holds something else ({next(iter(files))} is" in error_of(capsys)
    assert hub.find("models", REPOSITORY).files == before


def test_without_a_token_nothing_is_sent(spec, hub, monkeypatch, capsys):
    monkeypatch.delenv("HF_TOKEN")
    assert push(spec, "--yes") == 2
    assert "no token of the hub" in error_of(capsys)
    assert hub.requests == []


def test_a_token_that_may_not_write_is_refused(spec, hub, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", "hf_may_read")
    assert push(spec, "--yes") == 2
    assert "your token may not write there" in error_of(capsys)
    assert hub.find("models", REPOSITORY) is None


def test_a_hub_that_fails_is_said_and_the_same_command_ends_the_push(spec, hub, capsys):
    hub.repositories.append(Repository("models", REPOSITORY, "1" * 40, {}))
    hub.fail("busy", REPOSITORY, "list")
    assert push(spec, "--yes") == 1
    assert f"{REPOSITORY}: not sent" in error_of(capsys)
    hub.faults.clear()
    assert push(spec, "--yes") == 0


def leave_unfinished(spec):
    (Path("runs") / spec.run_id / runs.DONE).unlink()


def delete_model(spec):
    runs.delete_model(model_folder(spec).parent)


def change_weights(spec):
    write_text(model_folder(spec) / WEIGHTS, "other weights")


def train_again(spec):
    """Let another training of the same run end with other weights."""
    write_text(model_folder(spec) / "vocab.txt", "more")
    finish_run(spec)


def delete_scores(spec):
    targets.score_path(spec.run_id, "sts", SCALE).unlink()
    clear()


def score_with_older_version(spec):
    edit_scores(spec, lambda content: content["evaluations"][0].update(version=0))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (leave_unfinished, "is not finished; `csebench work"),
        (delete_model, "its model was deleted"),
        (change_weights, "files differ from those that training wrote"),
        (train_again, "is of other weights"),
        (delete_scores, "has no scores at scale"),
        (score_with_older_version, "an older version of sts made it"),
    ],
)
def test_a_run_without_model_or_fresh_scores_is_refused(spec, hub, spoil, message, capsys):
    spoil(spec)
    assert push(spec, "--yes") == 2
    assert message in error_of(capsys)
    assert hub.requests == []


@pytest.mark.parametrize("name", ["simcse", "a/b/c", "a b/c", "../x"])
def test_a_name_that_is_no_repository_is_refused(spec, name, capsys):
    assert main(["push", spec.run_id, "--scale", SCALE, "--to", name]) == 2
    assert f"--to {name}: " in error_of(capsys)
