"""encoders/pretrain.py: a vocabulary and a BERT from a text file."""

import json
import lzma
from unittest import mock

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer, Trainer

from csebench.base.models import model_sha256
from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import EncoderRef
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


@pytest.mark.slow
def test_a_compressed_corpus_gives_the_same_encoder(tmp_path, corpus):
    compressed = tmp_path / f"{corpus.name}.xz"
    compressed.write_bytes(lzma.compress(corpus.read_bytes()))
    for text, name in ((corpus, "plain"), (compressed, "compressed")):
        main([str(text), "--out", str(tmp_path / name), "--steps=2", *SMALL])

    for file in ("model.safetensors", "tokenizer.json"):
        same = (tmp_path / "plain" / file).read_bytes()
        assert (tmp_path / "compressed" / file).read_bytes() == same


@pytest.mark.slow
def test_it_stops_after_its_minutes_and_the_same_command_goes_on(tmp_path, corpus, capsys):
    out = tmp_path / "small"
    command = [str(corpus), "--out", str(out), "--steps=4", *SMALL]

    main([*command, "--minutes=1e-9"])
    assert "step 1 of 4 after 1e-09 minutes" in capsys.readouterr().out
    assert not (out / "model.safetensors").exists()

    main([*command, "--minutes=5"])
    curve = json.loads((out / "pretraining.json").read_text())["curve"]
    assert [point["step"] for point in curve] == [1, 2, 3, 4]


@pytest.mark.slow
def test_weights_in_parts_are_the_same_model(tmp_path, corpus):
    wide = ["--steps=1", *SMALL, "--hidden=256", "--vocab-size=2000"]
    main([str(corpus), "--out", str(tmp_path / "whole"), *wide])
    main([str(corpus), "--out", str(tmp_path / "parts"), *wide, "--parts=1"])

    files = list((tmp_path / "parts").glob("model-*.safetensors"))
    assert len(files) > 1
    assert all(file.stat().st_size <= 1.1e6 for file in files)
    weights = {}
    for name in ("whole", "parts"):
        encoder = Encoder.load(EncoderRef(name=str(tmp_path / name), revision="local"))
        weights[name] = encoder.model.state_dict()
    for name, weight in weights["whole"].items():
        assert torch.equal(weight, weights["parts"][name])


def test_a_damaged_corpus_is_refused_by_name(tmp_path, capsys):
    (tmp_path / "text.txt.xz").write_bytes(lzma.compress(b"a line\n" * 99)[:-9])
    with pytest.raises(SystemExit):
        main([str(tmp_path / "text.txt.xz"), "--out", str(tmp_path / "small"), "--steps=12"])
    assert "text.txt.xz: cannot be decompressed: " in capsys.readouterr().err


def test_a_corpus_of_a_few_lines_is_refused(tmp_path, capsys):
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    with pytest.raises(SystemExit):
        main([str(tmp_path / "few.txt"), "--out", str(tmp_path / "small"), "--steps=12"])
    assert "2 lines; at least 20 are needed" in capsys.readouterr().err
    assert not (tmp_path / "small").exists()
