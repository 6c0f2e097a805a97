"""encoders/pretrain.py: a vocabulary and a BERT from a text file."""

import json
from unittest import mock

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer, Trainer

from csebench.base.models import model_sha256
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
