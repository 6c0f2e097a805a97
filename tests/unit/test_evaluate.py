"""Scores of a run: made once, and made again when what decides them has changed."""

import shutil
import threading
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from test_foreign_code import save_sentence_transformer

from csebench import cli
from csebench.base.errors import BadInput
from csebench.base.files import read_json, write_json
from csebench.base.processes import use_threads
from csebench.model import embedder
from csebench.model.embedder import Embedder
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import SentenceEncoder, split
from csebench.plan.declarations import EncoderRef, Evaluation
from csebench.score import evaluate as module
from csebench.score.evaluate import evaluate_run, has_data, publish
from csebench.score.models import open_model
from csebench.score.score_types import Score
from csebench.train.method import Method


def scores(run, data, evaluation=Evaluation()):
    return evaluate_run(run, ["sts"], data, evaluation)["sts"]


def test_scores_are_made_once_and_again_where_their_items_are_gone(finished, data, tmp_path):
    run = shutil.copytree(finished("oracle"), tmp_path / "run")
    kept = scores(run, data)
    written = kept.stat().st_mtime_ns
    assert scores(run, data) == kept and kept.stat().st_mtime_ns == written
    kept.with_suffix(".items.npz").unlink()
    assert scores(run, data) == kept and kept.with_suffix(".items.npz").exists()


def test_other_data_or_settings_are_another_evaluation(finished, data):
    run, path = finished("oracle"), data / "downstream/STS/STS16-en-test/STS.input.headlines.txt"
    kept = scores(run, data)
    assert scores(run, data, Evaluation(batch_size=3)) != kept
    first, second, *rest = path.read_text().splitlines()
    path.write_text("\n".join([second, first, *rest]) + "\n")
    assert scores(run, data) != kept


def test_scoring_uses_the_threads_of_the_run(make_spec, train, data, tmp_path):
    """One and two threads give different bits, and the environment of a job that only scores may ask for more."""
    before = torch.get_num_threads()
    run = tmp_path / "run"
    train(make_spec("oracle").model_copy(update={"threads": before + 1}), run)
    use_threads(before)
    try:
        kept = evaluate_run(run, ["stsb_dev"], data, Evaluation())["stsb_dev"]
    finally:
        use_threads(before)
    made = read_json(kept)["provenance"]
    assert (made["threads"], made["blas_threads"]) == (before + 1, [before + 1])


def test_a_run_without_a_model_and_a_data_root_without_the_files(finished, data, tmp_path):
    with pytest.raises(BadInput, match="no finished model"):
        scores(tmp_path, data)
    with pytest.raises(BadInput, match=r"sts-test\.csv: no such file"):
        scores(finished("oracle"), tmp_path)


def test_a_training_job_scores_by_what_has_its_data(data):
    """What has none is left to a job that waits for it, so that a finished model is not thrown away."""
    assert has_data("sts", data) and has_data("beir:smoke", data)
    assert not has_data("beir:scifact", data)


def test_scores_of_other_weights_are_not_published_for_a_retrained_run(
    make_spec, train, smoke_data, tmp_path, monkeypatch
):
    """The trainer changed without a new version: the run has the id that it had."""
    spec, run, published = make_spec("simcse"), tmp_path / "runs" / "simcse", []
    for rate in (1.0, 100.0):
        shutil.rmtree(run / "model", ignore_errors=True)
        (run / "train.json").unlink(missing_ok=True)
        monkeypatch.setattr(Method, "learning_rate_factor", lambda *_, rate=rate: rate)
        train(spec, run)
        publish(run, "sts", smoke_data, Evaluation(), tmp_path / "out.json")
        published.append(read_json(tmp_path / "out.json"))
    before, after = published
    assert before["run"] == after["run"] == before["training"]["run"] and before["spec"]["method"] == "simcse"
    assert before["training"]["model_sha256"] != after["training"]["model_sha256"]
    assert [row["value"] for row in before["scores"]] != [row["value"] for row in after["scores"]]
    for content in published:
        assert content["evaluations"][0]["model_sha256"] == content["training"]["model_sha256"]
        assert {row["evaluator"] for row in content["scores"]} == {"sts"}


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [
        ([512] * 300, [128, 128, 44]),
        ([8] * 300, [200, 100]),
        ([8] * 10 + [7000] * 10, [10, 9, 1]),
        ([10**6] * 2, [1, 1]),
    ],
)
def test_a_batch_has_no_more_tokens_than_fit(lengths, rows):
    assert [batch.stop - batch.start for batch in split(lengths, 200)] == rows


def test_the_next_shard_is_prepared_while_one_is_embedded(monkeypatch):
    """And no more than the next, as a corpus may be larger than memory."""
    prepared = [threading.Event() for _ in range(3)]

    class Slow(Embedder):
        def vectors(self, sentences):
            return np.zeros((len(sentences), 2), np.float32)

        def prepare(self, sentences):
            number = int(sentences[0])
            prepared[number].set()

            def embed():
                assert number == 2 or prepared[number + 1].wait(timeout=10)
                assert number != 0 or not prepared[2].is_set()
                return np.full((len(sentences), 2), number, np.float32)

            return embed

    monkeypatch.setattr(embedder, "SHARD", 1)
    assert [shard[0, 0] for shard in Slow().stream(["0", "1", "2"], "corpus")] == [0, 1, 2]


def test_what_does_not_fit_in_memory_is_embedded_by_halves(tiny_bert, sentences, monkeypatch):
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    wanted, run = SentenceEncoder(encoder, "avg").embed(sentences[:20]), Encoder._run

    def limited(self, pooler, dropout, ids, *rest):
        if len(ids) > 3:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, pooler, dropout, ids, *rest)

    monkeypatch.setattr(Encoder, "_run", limited)
    np.testing.assert_allclose(SentenceEncoder(encoder, "avg").embed(sentences[:20]), wanted, atol=1e-5)


def test_a_whole_model_that_does_not_fit_in_memory_embeds_smaller_batches(tiny_bert, tmp_path, sentences, monkeypatch):
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


# ---------------------------------------------------------------- evaluators that fail


ROW = Score("STS-B", "all", "spearman", 0.5)
FAILING = {
    "a full disk": Mock(side_effect=OSError(28, "No space left on device")),
    "the end of the process": Mock(side_effect=SystemExit(0)),
    "nothing": Mock(return_value=None),
    "no rows": Mock(return_value=([], {})),
    "rows alone": Mock(return_value=[ROW]),
    "rows that are no scores": Mock(return_value=([("STS-B", 0.5)], {})),
    "a text as value": Mock(return_value=([ROW._replace(value="0.5")], {})),
    "items without names": Mock(return_value=([ROW], [])),
    "items that are no arrays": Mock(return_value=([ROW], {"STS-B": [0.5]})),
    "items that are objects": Mock(return_value=([ROW], {"STS-B": np.array([{}])})),
}


@pytest.mark.parametrize("failing", FAILING.values(), ids=FAILING)
def test_an_evaluator_that_fails_is_named_and_costs_no_other_score(failing, tmp_path, smoke_data, monkeypatch, capsys):
    load = module.load
    monkeypatch.setattr(module, "load", lambda name, folder: failing if name == "sts" else load(name, folder))
    (tmp_path / "model").mkdir()
    write_json(tmp_path / "model" / "csebench.json", {"control": "random", "params": {"dimensions": 8}, "seed": 0})
    out, options = tmp_path / "out.json", ["--evaluators", "sts,stsb_dev", "--data", str(smoke_data)]
    assert cli.main(["evaluate", "--model", str(tmp_path / "model"), *options, "--out", str(out)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("csebench: sts: ") and err.count("\n") == 1
    assert {row["evaluator"] for row in read_json(out)["scores"]} == {"stsb_dev"}
    assert len(read_json(out)["evaluations"]) == 1
