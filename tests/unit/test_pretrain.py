"""encoders/pretrain.py: a vocabulary and a BERT from a text file."""

import gzip
import json
import lzma
from unittest import mock

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer, Trainer

from csebench.base.errors import BadInput
from csebench.base.models import check_revision, model_sha256
from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import EncoderRef
from encoders import pretrain
from encoders.pretrain import main

SMALL = [
    "--batch-size=8",
    "--layers=1",
    "--hidden=16",
    "--heads=2",
    "--vocab-size=300",
    "--max-length=40",
]


@pytest.mark.slow
def test_makes_an_encoder_that_learns_and_loads_and_goes_on_where_it_was_stopped(
    tmp_path, corpus, capsys
):
    out = tmp_path / "small"
    arguments = [str(corpus), "--out", str(out), "--steps=12", *SMALL]
    evaluate = Trainer.evaluate

    def dies(self, *args, **kwargs):
        if self.state.global_step == 8:
            raise KeyboardInterrupt
        return evaluate(self, *args, **kwargs)

    with mock.patch.object(Trainer, "evaluate", dies), pytest.raises(KeyboardInterrupt):
        main(arguments)
    counted_steps = mock.patch.object(
        Trainer, "training_step", autospec=True, side_effect=Trainer.training_step
    )
    with counted_steps as steps:
        main(arguments)
    assert steps.call_count == 5

    encoder = AutoModel.from_pretrained(out)
    assert encoder.config.hidden_dropout_prob == 0.1
    assert encoder.dtype == torch.float32
    tokenizer = AutoTokenizer.from_pretrained(out)
    model = AutoModelForMaskedLM.from_pretrained(out)
    batch = tokenizer("a lighthouse stands on the rock", return_tensors="pt")
    logits = model(**batch).logits
    assert logits.shape[-1] == len(tokenizer) == 300
    assert torch.isfinite(logits).all()

    curve = json.loads((out / "pretraining.json").read_text())["curve"]
    first_loss = curve[0]["eval_loss"]
    last_loss = curve[-1]["eval_loss"]
    assert last_loss < first_loss
    assert f"{last_loss:.3f}" in (out / "README.md").read_text()
    assert not (out / "checkpoints").exists()
    assert capsys.readouterr().out.endswith(f"is {model_sha256(out)}\n")


def test_a_corpus_of_a_few_lines_is_refused(tmp_path, capsys):
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    with pytest.raises(SystemExit):
        main([str(tmp_path / "few.txt"), "--out", str(tmp_path / "small"), "--steps=12"])
    assert "2 lines; at least 20 are needed" in capsys.readouterr().err
    assert not (tmp_path / "small").exists()


def weights(folder):
    """The weights of an encoder by their names."""
    return AutoModelForMaskedLM.from_pretrained(folder).state_dict()


def assert_same_weights(first, second):
    expected = weights(first)
    actual = weights(second)
    assert expected.keys() == actual.keys()
    for name in expected:
        assert torch.equal(expected[name], actual[name]), name


@pytest.fixture(scope="module")
def plain(corpus, tmp_path_factory):
    """An encoder of four steps from the plain corpus."""
    out = tmp_path_factory.mktemp("plain") / "encoder"
    main([str(corpus), "--out", str(out), "--steps=4", *SMALL])
    return out


@pytest.mark.slow
def test_a_compressed_corpus_gives_the_same_encoder_as_the_plain_one(plain, corpus, tmp_path):
    compressed = tmp_path / "corpus.txt.xz"
    compressed.write_bytes(lzma.compress(corpus.read_bytes()))
    out = tmp_path / "encoder"
    main([str(compressed), "--out", str(out), "--steps=4", *SMALL])
    for name in ("model.safetensors", "tokenizer.json"):
        assert (out / name).read_bytes() == (plain / name).read_bytes()


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("xz", lzma.compress)])
def test_a_truncated_compressed_corpus_is_named_with_its_line(tmp_path, suffix, compress):
    file = tmp_path / f"corpus.txt.{suffix}"
    file.write_bytes(compress(b"a sentence\n" * 1000)[:-9])
    with pytest.raises(BadInput, match=rf"corpus\.txt\.{suffix}: line \d+: .* damaged"):
        main([str(file), "--out", str(tmp_path / "small"), "--steps=4"])
    assert not (tmp_path / "small").exists()


@pytest.mark.slow
def test_a_run_whose_minutes_are_over_goes_on_at_its_next_step(corpus, tmp_path, capsys):
    out = tmp_path / "encoder"
    arguments = [str(corpus), "--out", str(out), "--steps=4", *SMALL]
    main([*arguments, "--minutes=0"])
    assert "stopped after step 1 of 4" in capsys.readouterr().out
    assert AutoModelForMaskedLM.from_pretrained(out / "checkpoints" / "checkpoint-1")
    assert len(AutoTokenizer.from_pretrained(out / "checkpoints" / "checkpoint-1")) == 300

    counted_steps = mock.patch.object(
        Trainer, "training_step", autospec=True, side_effect=Trainer.training_step
    )
    with counted_steps as steps:
        main(arguments)
    assert steps.call_count == 3
    assert model_sha256(out) == capsys.readouterr().out.split()[-1]


@pytest.mark.slow
def test_weights_in_parts_are_the_same_model_under_one_revision(corpus, tmp_path):
    shape = ["--batch-size=8", "--layers=2", "--hidden=256", "--heads=2", "--vocab-size=300"]
    arguments = [str(corpus), "--steps=1", *shape, "--max-length=20"]
    main([*arguments, "--out", str(tmp_path / "whole")])
    main([*arguments, "--out", str(tmp_path / "parts"), "--parts=1"])
    files = list((tmp_path / "parts").glob("model-*.safetensors"))
    assert len(files) > 1
    assert all(file.stat().st_size < 2**20 for file in files)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")

    revision = model_sha256(tmp_path / "parts")
    encoder = Encoder.load(EncoderRef(name=str(tmp_path / "parts"), revision=revision))
    expected = AutoModel.from_pretrained(tmp_path / "whole").get_input_embeddings().weight
    assert torch.equal(encoder.model.get_input_embeddings().weight, expected)
    files[0].write_bytes(files[0].read_bytes()[:-1] + b"x")
    with pytest.raises(BadInput, match="another encoder was expected"):
        check_revision(tmp_path / "parts", revision)


def test_parts_smaller_than_one_matrix_are_refused(corpus, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(corpus), "--out", str(tmp_path / "small"), "--steps=4", "--parts=1"])
    assert "--parts 1: the largest matrix has 4.0 MiB" in capsys.readouterr().err


def test_only_a_gpu_groups_sentences_by_length_and_fuses_the_optimizer():
    assert pretrain.gpu_settings() == {}
    with mock.patch.object(torch.cuda, "is_available", return_value=True):
        settings = pretrain.gpu_settings()
    assert settings["optim"] == "adamw_torch_fused"
    assert settings["train_sampling_strategy"] == "group_by_length"
