"""`csebench pretrain`: a vocabulary and a BERT from a text file."""

import json

import numpy as np
import pytest

from csebench import ROOT
from csebench.base.errors import BadInput

CORPUS = ROOT / "data" / "smoke" / "wiki" / "smoke.txt"
SMALL = {"tokens": 6000, "layers": 1, "hidden": 16, "heads": 2, "vocab_size": 300, "batch_tokens": 800}
SMALL |= {"max_length": 40, "snapshots": (2000,)}


def make(out, **changes):
    from csebench.train.pretrain import Settings, pretrain

    return pretrain(CORPUS, out, Settings(**SMALL | changes), threads=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("pretrain") / "small"
    return out, make(out)


def test_loads_as_an_encoder_and_learns(made):
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    out, report = made
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert model.config.hidden_dropout_prob == 0.1 and model.dtype == torch.float32
    logits = model(**tokenizer("a lighthouse stands on the rock", return_tensors="pt")).logits
    assert logits.shape[-1] == len(tokenizer) and torch.isfinite(logits).all()
    assert report["curve"][-1]["loss"] < report["curve"][0]["loss"]
    assert f"{report['curve'][-1]['loss']:.3f}" in (out / "README.md").read_text()
    assert report["curve"][-1]["tokens"] == pytest.approx(SMALL["tokens"], rel=0.1)
    assert not (out / ".checkpoint.json").exists()


def test_keeps_a_snapshot_on_the_way(made):
    from transformers import AutoModel, AutoTokenizer

    out, _ = made
    snapshot = out / "snapshots" / "2000"
    early, last = (AutoModel.from_pretrained(f).get_input_embeddings().weight for f in (snapshot, out))
    assert not (early == last).all() and early.shape == last.shape
    assert len(AutoTokenizer.from_pretrained(snapshot)) == len(early)


def test_killed_pretraining_ends_with_the_same_weights(made, tmp_path, monkeypatch):
    import csebench.train.pretrain as pretraining

    out, _ = made
    monkeypatch.setattr(pretraining, "CHECKPOINT_SECONDS", 0)
    evaluate, points = pretraining.MaskedLanguageModelling.evaluate, []

    def dies_late(self, state):
        points.append(state.step)
        if len(points) == 8:
            raise KeyboardInterrupt
        evaluate(self, state)

    monkeypatch.setattr("csebench.train.loop.LOG_EVERY", 1)
    monkeypatch.setattr(pretraining.MaskedLanguageModelling, "evaluate", dies_late)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "small")
    assert (tmp_path / "small/.checkpoint.json").exists()
    with pytest.raises(BadInput, match="another pre-training"):
        make(tmp_path / "small", learning_rate=1e-4)
    make(tmp_path / "small")
    assert (tmp_path / "small/model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()


def test_goes_on_from_an_encoder(made, tmp_path):
    """With its weights and vocabulary; tokens count from its beginning."""
    out, first = made
    report = make(tmp_path / "longer", start=out, tokens=8000, snapshots=(7000,), seed=43)
    tokens = first["curve"][-1]["tokens"]
    assert report["start"]["tokens"] == tokens and tokens < report["curve"][0]["tokens"]
    assert report["curve"][-1]["tokens"] == pytest.approx(8000, rel=0.05)
    assert report["curve"][0]["loss"] < first["curve"][0]["loss"]
    assert (tmp_path / "longer/tokenizer.json").read_bytes() == (out / "tokenizer.json").read_bytes()
    assert f"the first {tokens:,} as `small`" in (tmp_path / "longer/README.md").read_text()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"layers": 2}, "--layers 2: .* has 1"),
        ({}, "count from the beginn"),
        ({"snapshots": ()}, "count from the beginn"),
    ],
)
def test_an_encoder_to_go_on_from_that_does_not_fit_is_refused(wrong, message, made, tmp_path):
    with pytest.raises(BadInput, match=message):
        make(tmp_path / "longer", start=made[0], **wrong)
    assert not (tmp_path / "longer").exists()


def test_vocabulary_is_the_same_every_time():
    from csebench.train.pretrain import train_tokenizer

    sentences = CORPUS.read_text(encoding="utf-8").splitlines()
    first, second = (train_tokenizer(sentences, 600).get_vocab() for _ in range(2))
    assert first == second and len(first) == 600 and "##a" in first


def test_says_how_far_it_is(tmp_path, capsys):
    make(tmp_path / "small")
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("small  step")]
    assert lines[0].startswith("small  step 0/") and "loss" in lines[-1] and "(100 %)" in lines[-1]


def test_an_epoch_has_each_sentence_once_in_batches_of_few_shapes():
    from csebench.train.pretrain import batches

    lengths = np.random.default_rng(1).integers(3, 65, 20_000)
    epoch = batches(lengths, 2048, 8, np.random.default_rng(0))
    index = np.concatenate([rows for rows, _ in epoch])
    assert len(set(index.tolist())) == len(index) > 20_000 - 2048 // 64
    assert all(lengths[rows].max() <= length <= 64 for rows, length in epoch)
    assert len({(len(rows), length) for rows, length in epoch}) <= 64 // 8
    padded = sum(len(rows) * length for rows, length in epoch)
    assert lengths[index].sum() > 0.85 * padded


def test_token_ids_are_the_tokenizers(made):
    import torch
    from transformers import AutoTokenizer

    from csebench.train.pretrain import TokenIds

    tokenizer = AutoTokenizer.from_pretrained(made[0])
    sentences = CORPUS.read_text(encoding="utf-8").splitlines()[:50]
    rows = TokenIds.tokenise(sentences, tokenizer, 24)
    index = np.array([0, 17, 49])
    wanted = tokenizer([sentences[i] for i in index], truncation=True, max_length=24, padding="max_length")
    assert torch.equal(rows.batch(index, 24, tokenizer.pad_token_id), torch.tensor(wanted["input_ids"]))
    assert rows.ids.dtype == np.uint16


def test_a_word_is_masked_as_a_whole(made):
    """Every piece of a chosen word is predicted, at the rate asked for; special tokens never."""
    import torch
    from transformers import AutoTokenizer

    from csebench.train.pretrain import mask_words

    tokenizer = AutoTokenizer.from_pretrained(made[0])
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    continues = torch.tensor([piece.startswith("##") for piece in pieces])
    ids = tokenizer(CORPUS.read_text(encoding="utf-8").splitlines(), padding=True, return_tensors="pt")["input_ids"]
    torch.manual_seed(0)
    masked, labels = mask_words(tokenizer, ids, 0.2, continues)
    chosen, special = labels != -100, torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    inner = continues[ids]
    assert inner.any() and torch.equal(chosen[:, 1:][inner[:, 1:]], chosen[:, :-1][inner[:, 1:]])
    assert not chosen[special].any() and torch.equal(masked[~chosen], ids[~chosen])
    assert chosen[~special].float().mean() == pytest.approx(0.2, abs=0.02)
    assert (masked[chosen] == tokenizer.mask_token_id).float().mean() == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("wrong", [{"hidden": 17}, {"max_length": 300}, {"vocab_size": 70_000}])
def test_impossible_sizes_are_refused_before_anything_is_written(wrong, tmp_path):
    with pytest.raises(BadInput, match=f"--{next(iter(wrong)).replace('_', '-')}"):
        make(tmp_path / "small", **wrong)
    assert not (tmp_path / "small").exists()


def test_the_shipped_encoder_is_what_its_card_says():
    folder = ROOT / "encoders" / "bert-mini-wiki"
    report = json.loads((folder / "pretraining.json").read_text())
    card = (folder / "README.md").read_text()
    assert f"{report['curve'][-1]['tokens']:,}" in card and "CC BY-SA" in card
    assert sum(f.stat().st_size for f in folder.iterdir()) <= 12 * 10**6
