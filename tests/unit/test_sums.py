"""A model whose vectors are the sum of several encoders: it is saved, loaded and hashed as a whole,
and refused where one encoder is needed."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tiny_encoders import TEXTS, load_local, save_tiny

from csebench import api
from csebench.base.errors import BadInput
from csebench.base.hub import model_files
from csebench.base.models import FACTS, added_folder, model_sha256
from csebench.model.export import save_encoder
from csebench.model.sentence_encoder import Affine, SentenceEncoder
from csebench.score.models import open_model
from methods.simcse import Method as SimCSE

POOLER = "avg"


def shift_weights(encoder):
    """Change the weights of an encoder, so that it gives other vectors."""
    with torch.no_grad():
        for weight in encoder.model.parameters():
            weight.add_(0.05 * torch.ones_like(weight).cumsum(-1).cos())


def state_facts(folder, encoders):
    content = {"pooler": POOLER, "encoders": encoders}
    (folder / FACTS).write_text(json.dumps(content))


@pytest.fixture
def first(tmp_path):
    return load_local(save_tiny("bert", tmp_path / "bert"))


@pytest.fixture
def second(first):
    encoder = first.copy()
    shift_weights(encoder)
    return encoder


@pytest.fixture
def model(first, second, tmp_path):
    """The folder of a model that sums two encoders."""
    folder = tmp_path / "sum"
    save_encoder(folder, first, POOLER, None, {}, [second])
    state_facts(folder, 2)
    return folder


def test_a_model_that_is_loaded_gives_the_sum_of_its_encoders_bit_for_bit(first, second, model):
    vectors = open_model(str(model)).embed(TEXTS)

    alone = [SentenceEncoder(encoder, POOLER).embed(TEXTS) for encoder in (first, second)]
    assert not np.allclose(*alone, atol=1e-2)
    assert np.array_equal(vectors, alone[0] + alone[1])


def test_sentence_transformers_reads_the_sum_where_csebench_is_installed(model):
    loaded = SentenceTransformer(str(model), device="cpu", trust_remote_code=True)

    vectors = loaded.encode(TEXTS, show_progress_bar=False)

    np.testing.assert_allclose(vectors, open_model(str(model)).embed(TEXTS), atol=1e-5)


def test_sentence_transformers_does_not_save_the_sum_again(model, tmp_path):
    loaded = SentenceTransformer(str(model), device="cpu", trust_remote_code=True)

    with pytest.raises(NotImplementedError, match="copy the folder that it was loaded from"):
        loaded.save(str(tmp_path / "saved"))


def test_the_folder_of_each_added_encoder_is_a_model_of_its_own(second, model):
    loaded = SentenceTransformer(str(added_folder(model, 2)), device="cpu")

    vectors = loaded.encode(TEXTS, show_progress_bar=False)

    expected = SentenceEncoder(second, POOLER).embed(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_the_hash_of_a_model_covers_the_weights_of_an_added_encoder(model):
    before = model_sha256(model)
    file = added_folder(model, 2) / "model.safetensors"
    weights = load_file(file)
    name = next(iter(weights))

    save_file({**weights, name: weights[name] + 1}, file, {"format": "pt"})

    assert model_sha256(model) != before


def test_a_map_is_applied_to_the_sum(first, second, model):
    size = first.size
    transform = Affine(np.ones(size, np.float32), 2 * np.eye(size, dtype=np.float32))

    mapped = SentenceEncoder(first, POOLER, transform, added=[second]).embed(TEXTS)

    vectors = open_model(str(model)).embed(TEXTS)
    np.testing.assert_allclose(mapped, 2 * (vectors - 1), atol=1e-5)


def test_embedding_leaves_every_encoder_in_training_that_was(first, second):
    first.eval()
    second.train()

    SentenceEncoder(first, POOLER, added=[second]).embed(TEXTS)

    assert (first.training, second.training) == (False, True)


def test_the_hub_is_asked_for_all_encoders(model):
    names = [str(path.relative_to(model)) for path in model.rglob("*") if path.is_file()]

    fetched = {name for name in model_files(names) if name.startswith("2_Encoder/")}

    assert {f"2_Encoder/{name}" for name in ("config.json", "model.safetensors")} <= fetched


# ---------------------------------------------------------------- what is refused


def test_a_sum_is_no_encoder_to_start_from(model):
    with pytest.raises(BadInput, match=r"sum: its vectors are the sum of 2 encoders, but one"):
        load_local(model)


def test_a_model_that_lacks_an_added_encoder_is_refused(model):
    state_facts(model, 3)
    with pytest.raises(BadInput, match="3_Encoder"):
        open_model(str(model))


def test_an_encoder_with_another_vocabulary_cannot_be_added(first, model, tmp_path):
    other = load_local(save_tiny("roberta", tmp_path / "roberta"))
    save_encoder(added_folder(model, 2), other, POOLER, None, {})

    with pytest.raises(BadInput, match="2_Encoder: it has another vocabulary, so its vectors"):
        open_model(str(model))


# ---------------------------------------------------------------- a run


@pytest.fixture
def with_second(monkeypatch):
    """SimCSE with a second encoder, whose vectors are added and which is not trained."""
    make = SimCSE.__init__

    def make_both(self, encoder, params):
        make(self, encoder, params)
        self.second = encoder.copy()
        shift_weights(self.second)

    monkeypatch.setattr(SimCSE, "__init__", make_both)
    monkeypatch.setattr(SimCSE, "added_encoders", lambda self: [self.second])


def test_a_run_exports_the_sum_that_it_scored_on_dev(
    with_second, make_spec, train, tmp_path, smoke_data
):
    report = train(make_spec("simcse"), tmp_path / "run")

    scores = api.evaluate(tmp_path / "run" / "model", "stsb_dev", data=smoke_data)
    spearman = scores[scores["metric"] == "spearman"]["value"]
    assert spearman.tolist() == pytest.approx([report["best_dev"]], abs=1e-6)


def test_the_card_says_that_a_model_sums_and_what_leaves_encoders_out(
    with_second, make_spec, train, tmp_path
):
    train(make_spec("simcse"), tmp_path / "run")

    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "Sentence vector: cls_before_pooler, summed over 2 encoders." in card
    assert "AutoModel would leave out all encoders but the first" in card
