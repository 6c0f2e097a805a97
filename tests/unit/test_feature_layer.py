"""A feature layer of an encoder, such as IS-BERT's CNN: it is scored, exported and loaded."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tiny_encoders import TEXTS, load_local, save_tiny

from csebench import api
from csebench.base.errors import BadInput
from csebench.base.models import FACTS
from csebench.model.encoder import MODULES_FILE
from csebench.model.export import save_encoder
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.score.models import open_model
from methods.is_bert import NGrams

CHANNELS = 5


@pytest.fixture
def layered(tmp_path):
    """Return an encoder with IS-BERT's CNN."""
    encoder = load_local(save_tiny("bert", tmp_path / "bert"))
    encoder.add_feature_layer(NGrams(encoder.size, CHANNELS))
    return encoder.eval()


@pytest.fixture
def model(layered, tmp_path):
    """The folder of a model with IS-BERT's CNN."""
    folder = tmp_path / "model"
    save_encoder(folder, layered, "avg", None, {})
    state_facts(folder, method="is_bert")
    return folder


def state_facts(folder, method, **params):
    content = {"pooler": "avg", "method": method, "params": {"channels": CHANNELS, **params}}
    (folder / FACTS).write_text(json.dumps(content))


@torch.no_grad()
def mean_of_n_grams(encoder, text):
    """Average the n-gram features of a text by products of matrices, one n-gram at a time."""
    batch = encoder.tokenize([text])
    states = encoder.model(**batch).last_hidden_state[0]  # (T, H)
    parts = []
    for convolution in encoder.feature_layer.convolutions:
        channels, size, width = convolution.weight.shape
        zeros = torch.zeros(width // 2, size)
        padded = torch.cat([zeros, states, zeros])
        matrix = convolution.weight.transpose(1, 2).reshape(channels, -1)
        features = []
        for start in range(len(states)):
            features.append(matrix @ padded[start : start + width].flatten() + convolution.bias)
        parts.append(torch.stack(features).mean(0))
    return torch.cat(parts).numpy()


def test_the_scored_vector_is_the_mean_of_the_n_gram_features(layered):
    vectors = SentenceEncoder(layered, "avg").embed(TEXTS)

    expected = [mean_of_n_grams(layered, text) for text in TEXTS]
    assert vectors.shape == (len(TEXTS), 3 * CHANNELS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_an_exported_model_gives_the_same_vectors_bit_for_bit(layered, model):
    expected = SentenceEncoder(layered, "avg").embed(TEXTS)

    assert np.array_equal(open_model(str(model)).embed(TEXTS), expected)


def test_sentence_transformers_reads_the_layer_where_csebench_is_installed(layered, model):
    loaded = SentenceTransformer(str(model), device="cpu", trust_remote_code=True)

    vectors = loaded.encode(TEXTS, show_progress_bar=False)

    assert loaded.get_embedding_dimension() == 3 * CHANNELS
    np.testing.assert_allclose(vectors, open_model(str(model)).embed(TEXTS), atol=1e-5)


def test_a_copy_has_the_layer(layered):
    expected = SentenceEncoder(layered, "avg").embed(TEXTS)

    assert np.array_equal(SentenceEncoder(layered.copy(), "avg").embed(TEXTS), expected)


def test_a_run_exports_the_layer_that_it_scored_on_dev(make_spec, train, tmp_path, smoke_data):
    report = train(make_spec("is_bert"), tmp_path / "run")

    scores = api.evaluate(tmp_path / "run" / "model", "stsb_dev", data=smoke_data)
    spearman = scores[scores["metric"] == "spearman"]["value"]
    assert spearman.tolist() == pytest.approx([report["best_dev"]], abs=1e-6)
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "AutoModel would leave out the feature layer" in card


# ---------------------------------------------------------------- what is refused


def test_a_model_with_a_layer_is_no_encoder_to_start_from(model):
    with pytest.raises(BadInput, match="a feature layer follows its encoder, but an encoder alone"):
        load_local(model)


def test_another_pooler_than_the_mean_is_refused(model):
    with pytest.raises(BadInput, match=r"pooler cls_before_pooler: its vectors are the mean"):
        open_model(str(model), pooler="cls_before_pooler")


@pytest.mark.parametrize("method", [None, "unheard_of"])
def test_a_layer_of_a_method_that_the_project_lacks_is_refused(model, method):
    state_facts(model, method)
    with pytest.raises(BadInput, match=r"this project does not have the method\. Add its file"):
        open_model(str(model))


def test_a_damaged_parameter_is_named(model):
    state_facts(model, "is_bert", channels="many")
    with pytest.raises(BadInput, match=r"csebench\.json: params: .*channels"):
        open_model(str(model))


def test_weights_that_do_not_fit_the_layer_are_refused(model):
    file = model / MODULES_FILE
    weights = load_file(file)
    name = next(iter(weights))
    save_file({**weights, name: weights[name][:1]}, file)
    with pytest.raises(BadInput, match=r"modules\.safetensors: feature_layer: its layers are not"):
        open_model(str(model))
