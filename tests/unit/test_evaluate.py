"""Scores of a run are made once, and again when anything that decides them has changed."""

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
    """Score a run on STS, and return the path of its scores."""
    return evaluate_run(run, ["sts"], data, evaluation)["sts"]


def test_scores_are_kept_until_their_items_the_settings_or_the_data_change(
    finished, data, tmp_path
):
    run = shutil.copytree(finished("oracle"), tmp_path / "run")
    kept = scores(run, data)
    written = kept.stat().st_mtime_ns
    assert scores(run, data) == kept
    assert kept.stat().st_mtime_ns == written

    items = kept.with_name(f"{kept.name}.items.npz")
    items.unlink()
    assert scores(run, data) == kept
    assert items.exists()

    assert scores(run, data, Evaluation(batch_size=3)) != kept

    sentences = data / "downstream/STS/STS16-en-test/STS.input.headlines.txt"
    lines = sentences.read_text().splitlines()
    sentences.write_text("\n".join(reversed(lines)) + "\n")
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

    provenance = read_json(kept)["provenance"]
    assert provenance["threads"] == before + 1
    assert provenance["blas_threads"] == [before + 1]


def test_what_can_be_scored(smoke_data, tmp_path):
    """A training job leaves evaluators without data to another job, so that a finished model is not
    thrown away."""
    with pytest.raises(BadInput, match="no finished model"):
        scores(tmp_path, smoke_data)
    assert has_data("sts", smoke_data)
    assert not has_data("beir:scifact", smoke_data)


def test_a_retrained_run_is_scored_anew(
    finished, make_spec, train, smoke_data, tmp_path, monkeypatch
):
    """If the trainer changes without a new version, other weights get the run id of the old
    ones."""
    run = shutil.copytree(finished("simcse"), tmp_path / "run")
    publish_sts(run, smoke_data, tmp_path / "before.json")
    shutil.rmtree(run / "model")
    (run / "train.json").unlink()
    monkeypatch.setattr(Method, "learning_rate_factor", lambda *_: 100.0)
    train(make_spec("simcse"), run)
    publish_sts(run, smoke_data, tmp_path / "after.json")

    before = read_json(tmp_path / "before.json")
    after = read_json(tmp_path / "after.json")
    assert before["run"] == after["run"]
    values_before = [row["value"] for row in before["scores"]]
    values_after = [row["value"] for row in after["scores"]]
    assert values_before != values_after
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
                if number < 2:
                    assert prepared[number + 1].wait(timeout=10)
                if number == 0:
                    assert not prepared[2].is_set()
            return np.ones((1, 2), np.float32)

    monkeypatch.setattr(embedder, "SHARD", 1)
    shards = list(Slow().stream(["0", "1", "2"], "corpus"))
    assert len(shards) == 3


def test_what_does_not_fit_in_memory_is_embedded_by_halves(tiny_bert, sentences, monkeypatch):
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    expected = SentenceEncoder(encoder, "avg").embed(sentences[:20])
    run = Encoder._run

    def limited(self, pooler, dropout, ids, *rest):
        if len(ids) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, pooler, dropout, ids, *rest)

    monkeypatch.setattr(Encoder, "_run", limited)
    vectors = SentenceEncoder(encoder, "avg").embed(sentences[:20])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_an_encoder_trains_on_after_an_embedding_that_failed(tiny_bert, monkeypatch):
    """It would train without dropout if it stayed in evaluation."""
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local")).train()

    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr(SentenceEncoder, "pooled", fail)
    with pytest.raises(RuntimeError):
        SentenceEncoder(encoder, "avg").embed(["a sentence"])
    assert encoder.training


def test_a_whole_model_that_does_not_fit_in_memory_embeds_smaller_batches(
    tiny_bert, tmp_path, sentences, monkeypatch
):
    model = open_model(str(save_sentence_transformer(tiny_bert, tmp_path / "whole")))
    expected = model.vectors(sentences[:20])
    encode = model.model.encode
    sizes = []

    def limited(texts, batch_size, **more):
        sizes.append(batch_size)
        if batch_size > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return encode(texts, batch_size=batch_size, **more)

    monkeypatch.setattr(model.model, "encode", limited)
    np.testing.assert_allclose(model.vectors(sentences[:20]), expected, atol=1e-5)
    assert sizes[0] == Evaluation().batch_size
    assert sizes == sorted(sizes, reverse=True)


ROW = Score("STS-B", "all", "spearman", 0.5)
NOT_FINITE = "is not a finite number"
NO_RESULT = "evaluate gave .* it must"


def gives(rows, items):
    """Return an evaluator that gives these rows and items."""
    return Mock(return_value=(rows, items))


FULL_DISK = OSError(28, "No space left on device")
FAILING = {  # an evaluator, and what the message says
    "a full disk": (Mock(side_effect=FULL_DISK), "OSError: .*No space left"),
    "the end of the process": (Mock(side_effect=SystemExit(0)), "SystemExit"),
    "no rows": (gives([], {}), NO_RESULT),
    "rows that are no scores": (gives([("STS-B", 0.5)], {}), NO_RESULT),
    "a text as value": (gives([ROW._replace(value="0.5")], {}), NO_RESULT),
    "items without names": (gives([ROW], []), NO_RESULT),
    "items that are no arrays": (gives([ROW], {"STS-B": [0.5]}), NO_RESULT),
    "items that are objects": (gives([ROW], {"STS-B": np.array([{}])}), NO_RESULT),
    "a score of NaN": (
        gives([ROW._replace(value=np.nan)], {}),
        f": STS-B, all, .* {NOT_FINITE}",
    ),
    "an item of NaN": (
        gives([ROW], {"STS-B": np.array([np.nan])}),
        f": STS-B: .* {NOT_FINITE}",
    ),
    "points for a fraction": (
        gives([ROW._replace(value=76.2)], {}),
        "76.2 is no spearman, which is",
    ),
}


@pytest.mark.parametrize(("failing", "message"), FAILING.values(), ids=FAILING)
def test_a_failing_evaluator_is_named_and_costs_no_other_score(
    failing, message, finished, smoke_data, tmp_path, monkeypatch
):
    load = module.load
    out = tmp_path / "out.json"

    def load_failing_sts(name, folder):
        return failing if name == "sts" else load(name, folder)

    monkeypatch.setattr(module, "load", load_failing_sts)
    model = str(finished("random") / "model")
    with pytest.raises(RunFailed, match=rf"^[^\n]*\bsts\b[^\n]*{message}[^\n]*$"):
        module.evaluate_model(model, ["sts", "stsb_dev"], smoke_data, out)

    content = read_json(out)
    assert {row["evaluator"] for row in content["scores"]} == {"stsb_dev"}
    assert len(content["evaluations"]) == 1


# ---------------------------------------------------------------- whose scores they are


def raise_version(made_by):
    made_by["version"] += 1


FALSE = {  # changes of what a file says of how its scores were made
    "of other data": lambda made_by: made_by.update(data_sha256="0" * 64),
    "of other weights": lambda made_by: made_by.update(model_sha256="0" * 64),
    "of another pooler": lambda made_by: made_by.update(pooler="avg"),
    "of another precision": lambda made_by: made_by.update(precision="bf16"),
    "of another version": raise_version,
    "without its data": lambda made_by: made_by.pop("data_sha256"),
}


@pytest.mark.parametrize("change", FALSE.values(), ids=FALSE)
def test_kept_scores_that_are_not_what_their_name_stands_for_are_refused(
    change, finished, smoke_data, tmp_path
):
    run = shutil.copytree(finished("oracle"), tmp_path / "run")
    out = tmp_path / "out.json"
    kept = scores(run, smoke_data)
    content = read_json(kept)
    change(content["evaluations"][0])
    write_json(kept, with_digest(content))

    with pytest.raises(BadInput, match="not what the file's name stands for"):
        scores(run, smoke_data)
    with pytest.raises(BadInput, match="not what the file's name stands for"):
        publish_sts(run, smoke_data, out)
    assert not out.exists()


def test_scores_of_another_run_under_the_name_of_this_one_are_refused(
    finished, smoke_data, tmp_path
):
    run = shutil.copytree(finished("oracle"), tmp_path / "oracle")
    other = shutil.copytree(finished("random"), tmp_path / "random")
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
    if changes == "the model":
        file = model / "csebench.json"
    else:
        file = data / "downstream/STS/STS16-en-test/STS.gs.headlines.txt"
    owner = models if moment == "open_model" else module
    original = getattr(owner, moment)

    def with_an_edit(*args, **kwargs):
        result = original(*args, **kwargs)
        file.write_text(f"{file.read_text()}\n")
        return result

    monkeypatch.setattr(owner, moment, with_an_edit)
    with pytest.raises(RunFailed, match=f"files of {changes} changed while the model was scored"):
        module.evaluate_model(str(model), ["sts"], data, tmp_path / "out.json")
    assert not list(tmp_path.glob("out*"))


def test_a_model_is_not_pruned_while_it_is_scored(finished, smoke_data, tmp_path, monkeypatch):
    """The workflow may publish the last score of the run while `csebench evaluate --model
    runs/ID/model` reads it."""
    run = shutil.copytree(finished("oracle"), tmp_path / "runs" / "oracle-1")
    locks_taken = []

    def try_the_lock(*_, **__):
        locks_taken.append(take(tmp_path / "runs/.oracle-1.lock"))

    monkeypatch.setattr(models, "open_model", try_the_lock)
    with pytest.raises(AttributeError):  # there is no model to go on with
        module.evaluate_model(str(run / "model"), ["sts"], smoke_data, tmp_path / "out.json")
    assert locks_taken == [None]
