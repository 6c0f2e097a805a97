"""Scores of a run: made once, and made again when what decides them has changed."""

import shutil
import threading
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from test_foreign_code import save_sentence_transformer

from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import read_json, with_digest, write_json
from csebench.base.locks import take
from csebench.base.processes import use_threads
from csebench.model import embedder
from csebench.model.embedder import PROBE, Embedder
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.plan.schema.declarations import EncoderRef, Evaluation
from csebench.score import evaluate as module
from csebench.score import models
from csebench.score.evaluate import evaluate_run, has_data, publish_scores
from csebench.score.models import open_model
from csebench.score.score_types import Score
from csebench.train.method import Method


def scores(run, data, evaluation=Evaluation()):
    return evaluate_run(run, ["sts"], data, evaluation)["sts"]


def test_scores_are_kept_until_their_items_the_settings_or_the_data_change(
    finished, data, tmp_path
):
    run, path = tmp_path / "run", data / "downstream/STS/STS16-en-test/STS.input.headlines.txt"
    shutil.copytree(finished("oracle"), run)
    kept = scores(run, data)
    written = kept.stat().st_mtime_ns
    assert scores(run, data) == kept and kept.stat().st_mtime_ns == written
    items = kept.with_name(f"{kept.name}.items.npz")
    items.unlink()
    assert scores(run, data) == kept and items.exists()
    assert scores(run, data, Evaluation(batch_size=3)) != kept
    path.write_text("\n".join(path.read_text().splitlines()[::-1]) + "\n")
    assert scores(run, data) != kept


def test_scoring_uses_the_threads_of_the_run(make_spec, train, smoke_data, tmp_path):
    """One and two threads give different bits, and the environment of a job that only scores may
    ask for more."""
    before = torch.get_num_threads()
    train(make_spec("oracle").model_copy(update={"threads": before + 1}), tmp_path)
    use_threads(before)
    try:
        kept = evaluate_run(tmp_path, ["stsb_dev"], smoke_data, Evaluation())["stsb_dev"]
    finally:
        use_threads(before)
    made = read_json(kept)["provenance"]
    assert (made["threads"], made["blas_threads"]) == (before + 1, [before + 1])


def test_what_can_be_scored(smoke_data, tmp_path):
    """A training job leaves to another what has no data, so that a finished model is not thrown
    away."""
    with pytest.raises(BadInput, match="no finished model"):
        scores(tmp_path, smoke_data)
    assert has_data("sts", smoke_data) and not has_data("beir:scifact", smoke_data)


def test_a_retrained_run_is_scored_anew(
    finished, make_spec, train, smoke_data, tmp_path, monkeypatch
):
    """The trainer changed without a new version: the other weights have the run id of the old
    ones."""
    run = shutil.copytree(finished("simcse"), tmp_path / "run")
    publish_scores(run, "sts", smoke_data, Evaluation(), tmp_path / "before.json")
    shutil.rmtree(run / "model")
    (run / "train.json").unlink()
    monkeypatch.setattr(Method, "learning_rate_factor", lambda *_: 100.0)
    train(make_spec("simcse"), run)
    publish_scores(run, "sts", smoke_data, Evaluation(), tmp_path / "after.json")
    before, after = (read_json(tmp_path / f"{name}.json") for name in ("before", "after"))
    assert before["run"] == after["run"]
    assert [row["value"] for row in before["scores"]] != [row["value"] for row in after["scores"]]
    for content in (before, after):
        assert content["evaluations"][0]["model_sha256"] == content["training"]["model_sha256"]


def test_the_next_shard_and_no_more_is_prepared_while_one_is_embedded(monkeypatch):
    prepared = [threading.Event() for _ in range(3)]

    class Slow(Embedder):
        def prepare(self, sentences):
            prepared[int(sentences[0])].set()
            return super().prepare(sentences)

        def vectors(self, sentences):
            if sentences != [PROBE]:
                number = int(sentences[0])
                assert number == 2 or prepared[number + 1].wait(timeout=10)
                assert number != 0 or not prepared[2].is_set()
            return np.ones((1, 2), np.float32)

    monkeypatch.setattr(embedder, "SHARD", 1)
    assert len([*Slow().stream(["0", "1", "2"], "corpus")]) == 3


def test_what_does_not_fit_in_memory_is_embedded_by_halves(tiny_bert, sentences, monkeypatch):
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    wanted, run = SentenceEncoder(encoder, "avg").embed(sentences[:20]), Encoder._run

    def limited(self, pooler, dropout, ids, *rest):
        if len(ids) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, pooler, dropout, ids, *rest)

    monkeypatch.setattr(Encoder, "_run", limited)
    np.testing.assert_allclose(
        SentenceEncoder(encoder, "avg").embed(sentences[:20]), wanted, atol=1e-5
    )


def test_a_whole_model_that_does_not_fit_in_memory_embeds_smaller_batches(
    tiny_bert, tmp_path, sentences, monkeypatch
):
    model = open_model(str(save_sentence_transformer(tiny_bert, tmp_path / "whole")))
    wanted, encode, tried = model.vectors(sentences[:20]), model.model.encode, []

    def limited(texts, batch_size, **more):
        tried.append(batch_size)
        if batch_size > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return encode(texts, batch_size=batch_size, **more)

    monkeypatch.setattr(model.model, "encode", limited)
    np.testing.assert_allclose(model.vectors(sentences[:20]), wanted, atol=1e-5)
    assert tried[0] == Evaluation().batch_size and tried == sorted(tried, reverse=True)


ROW = Score("STS-B", "all", "spearman", 0.5)
NOT_FINITE, NO_RESULT = "is not a finite number", "evaluate gave .* it must"
FAILING = {  # an evaluator, and what the message says
    "a full disk": (
        Mock(side_effect=OSError(28, "No space left on device")),
        "OSError: .*No space left",
    ),
    "the end of the process": (Mock(side_effect=SystemExit(0)), "SystemExit"),
    "no rows": (Mock(return_value=([], {})), NO_RESULT),
    "rows that are no scores": (Mock(return_value=([("STS-B", 0.5)], {})), NO_RESULT),
    "a text as value": (Mock(return_value=([ROW._replace(value="0.5")], {})), NO_RESULT),
    "items without names": (Mock(return_value=([ROW], [])), NO_RESULT),
    "items that are no arrays": (Mock(return_value=([ROW], {"STS-B": [0.5]})), NO_RESULT),
    "items that are objects": (Mock(return_value=([ROW], {"STS-B": np.array([{}])})), NO_RESULT),
    "a score of NaN": (
        Mock(return_value=([ROW._replace(value=np.nan)], {})),
        f": STS-B, all, .* {NOT_FINITE}",
    ),
    "an item of NaN": (
        Mock(return_value=([ROW], {"STS-B": np.array([np.nan])})),
        f": STS-B: .* {NOT_FINITE}",
    ),
    "points for a fraction": (
        Mock(return_value=([ROW._replace(value=76.2)], {})),
        "76.2 is no spearman, which is",
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_failing_evaluator_is_named_and_costs_no_other_score(
    name, finished, smoke_data, tmp_path, monkeypatch
):
    (failing, message), load = FAILING[name], module.load
    monkeypatch.setattr(
        module, "load", lambda name, folder: failing if name == "sts" else load(name, folder)
    )
    with pytest.raises(RunFailed, match=rf"^[^\n]*\bsts\b[^\n]*{message}[^\n]*$"):
        module.evaluate_model(
            str(finished("random") / "model"),
            ["sts", "stsb_dev"],
            smoke_data,
            tmp_path / "out.json",
        )
    content = read_json(tmp_path / "out.json")
    assert {row["evaluator"] for row in content["scores"]} == {"stsb_dev"} and len(
        content["evaluations"]
    ) == 1


# ---------------------------------------------------------------- whose scores they are


FALSE = {
    "of other data": lambda made_by: made_by.update(data_sha256="0" * 64),
    "of other weights": lambda made_by: made_by.update(model_sha256="0" * 64),
    "of another pooler": lambda made_by: made_by.update(pooler="avg"),
    "of another precision": lambda made_by: made_by.update(precision="bf16"),
    "of another version": lambda made_by: made_by.update(version=made_by["version"] + 1),
    "without its data": lambda made_by: made_by.pop("data_sha256"),
}


@pytest.mark.parametrize("name", FALSE)
def test_kept_scores_that_are_not_what_their_name_stands_for_are_refused(
    name, finished, smoke_data, tmp_path
):
    run = shutil.copytree(finished("oracle"), tmp_path / "run")
    kept = scores(run, smoke_data)
    content = read_json(kept)
    FALSE[name](content["evaluations"][0])
    write_json(kept, with_digest(content))
    for use in (
        lambda: scores(run, smoke_data),
        lambda: publish_sts(run, smoke_data, tmp_path / "out.json"),
    ):
        with pytest.raises(BadInput, match="not what the file's name stands for"):
            use()
    assert not (tmp_path / "out.json").exists()


def test_scores_of_another_run_under_the_name_of_this_one_are_refused(
    finished, smoke_data, tmp_path
):
    run, other = (shutil.copytree(finished(name), tmp_path / name) for name in ("oracle", "random"))
    shutil.copy(scores(other, smoke_data), scores(run, smoke_data))
    with pytest.raises(BadInput, match=r"evaluations: model_sha256"):
        publish_sts(run, smoke_data, tmp_path / "out.json")


def publish_sts(run, data, out):
    publish_scores(run, "sts", data, Evaluation(), out)


@pytest.mark.parametrize("changes", ["the model", "the test data"])
@pytest.mark.parametrize("moment", ["run_evaluator", "open_model"])
def test_nothing_is_written_where_files_change_while_a_model_is_scored(
    moment, changes, finished, data, tmp_path, monkeypatch
):
    model = shutil.copytree(finished("oracle") / "model", tmp_path / "copy")
    (model / "training.json").unlink()  # whose hash would refuse the edit at once
    file = (
        model / "csebench.json"
        if changes == "the model"
        else data / "downstream/STS/STS16-en-test/STS.gs.headlines.txt"
    )
    place = models if moment == "open_model" else module
    original = getattr(place, moment)

    def with_an_edit(*args, **kwargs):
        made = original(*args, **kwargs)
        file.write_text(f"{file.read_text()}\n")
        return made

    monkeypatch.setattr(place, moment, with_an_edit)
    with pytest.raises(RunFailed, match=f"files of {changes} changed while the model was scored"):
        module.evaluate_model(str(model), ["sts"], data, tmp_path / "out.json")
    assert not list(tmp_path.glob("out*"))


def test_a_model_is_not_pruned_while_it_is_scored(finished, smoke_data, tmp_path, monkeypatch):
    """`csebench evaluate --model runs/ID/model`, while the workflow publishes the last score of
    the run."""
    run = shutil.copytree(finished("oracle"), tmp_path / "runs" / "oracle-1")
    was_locked = []
    monkeypatch.setattr(
        models,
        "open_model",
        lambda *_, **__: was_locked.append(take(tmp_path / "runs/.oracle-1.lock")),
    )
    with pytest.raises(AttributeError):  # there is no model to go on with
        module.evaluate_model(str(run / "model"), ["sts"], smoke_data, tmp_path / "out.json")
    assert was_locked == [None]
