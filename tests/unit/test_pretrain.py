"""`csebench pretrain`: a vocabulary and a BERT from a text file."""

import json
import shutil

import pytest

from csebench import ROOT
from csebench.base.errors import BadInput

CORPUS = ROOT / "data" / "smoke" / "wiki" / "smoke.txt"
SMALL = {"steps": 8, "layers": 1, "hidden": 16, "heads": 2, "vocab_size": 300, "batch_size": 16, "threads": 1}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    import csebench.pretrain as pretraining

    patch = pytest.MonkeyPatch()
    patch.setattr(pretraining, "CHECK_EVERY", 2)
    out = tmp_path_factory.mktemp("pretrain") / "small"
    report = pretraining.pretrain(CORPUS, out, name="small", **SMALL)
    yield pretraining, out, report
    patch.undo()


def test_loads_as_an_encoder_and_learns(made):
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    _, out, report = made
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert model.config.hidden_dropout_prob == 0.1 and model.dtype == torch.float32
    logits = model(**tokenizer("a lighthouse stands on the rock", return_tensors="pt")).logits
    assert logits.shape[-1] == len(tokenizer) and torch.isfinite(logits).all()
    assert report["curve"][-1]["loss"] < report["curve"][0]["loss"]
    assert f"{report['curve'][-1]['loss']:.3f}" in (out / "README.md").read_text()
    assert not (out / ".checkpoint.pt").exists()


def test_killed_pretraining_ends_with_the_same_weights(made, tmp_path, monkeypatch):
    pretraining, out, _ = made
    calls, held_out = [], pretraining.held_out

    def dies_at_the_third(*args):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return held_out(*args)

    monkeypatch.setattr(pretraining, "held_out", dies_at_the_third)
    (tmp_path / "small").mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):  # its training breaks ties at random
        shutil.copy(out / name, tmp_path / "small")
    with pytest.raises(KeyboardInterrupt):
        pretraining.pretrain(CORPUS, tmp_path / "small", name="small", **SMALL)
    with pytest.raises(BadInput, match="another pre-training"):
        pretraining.pretrain(CORPUS, tmp_path / "small", name="small", **SMALL | {"learning_rate": 1e-4})
    pretraining.pretrain(CORPUS, tmp_path / "small", name="small", **SMALL)
    assert (tmp_path / "small/model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


def test_the_shipped_encoder_is_what_its_card_says():
    folder = ROOT / "encoders" / "bert-mini-wiki"
    report = json.loads((folder / "pretraining.json").read_text())
    card = (folder / "README.md").read_text()
    assert f"{report['curve'][-1]['tokens']:,}" in card and "CC BY-SA" in card
    assert sum(f.stat().st_size for f in folder.iterdir()) <= 12 * 10**6
