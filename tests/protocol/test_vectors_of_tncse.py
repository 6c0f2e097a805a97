"""TNCSE, a method of the folder successors/, against the values and gradients of its official code.
vector_cases.py says which files have them."""

import sys
from types import SimpleNamespace

import pytest
import torch
from tiny_encoders import load_local, save_tiny
from transformers import AutoModel
from vector_cases import Case, cases

from csebench.base.errors import BadInput
from csebench.plan.catalog import registry

SENTENCES = ["a man walks along the river", "the city"]


@pytest.fixture
def tncse(successors):
    """The module of the method, while its folder has joined the project."""
    return sys.modules[registry.load("tncse").__module__]


def settings(**changed):
    values = {
        "pooler": "cls_before_pooler",
        "max_length": 64,
        "dropout": 0.0,
        "temperature": 0.05,
        "second": "self",
    }
    return SimpleNamespace(**values | changed)


@cases("tncse")
def test_tncse_and_its_gradients(name, precision, tncse):
    case = Case(name, precision)
    inputs = {key: case.tensor(f"in_{key}", grad=True) for key in ("z1", "z2", "p1", "p2")}

    loss = tncse.tncse_loss(**inputs, temperature=case.settings["temp"])

    case.check("loss", loss)
    case.check_gradients(loss, **inputs)


def test_both_encoders_read_two_views_of_each_sentence(tncse, tiny_bert):
    encoder = load_local(tiny_bert)
    method = tncse.Method(encoder, settings()).eval()

    view1, view2 = method.views(SENTENCES)

    expected = encoder.tokenize([*SENTENCES, *SENTENCES])["input_ids"]
    for view in (view1, view2):
        assert torch.equal(view.ids, expected)
        assert view.blocks == 2


def test_the_norms_are_those_of_the_pooler_layer_of_the_checkpoint(tncse, tiny_bert, monkeypatch):
    method = tncse.Method(load_local(tiny_bert), settings()).eval()
    given = {}

    def note(z1, z2, p1, p2, temperature):
        given.update(p1=p1, p2=p2)
        return z1.sum()

    monkeypatch.setattr(tncse, "tncse_loss", note)
    views = method.views(SENTENCES)
    method.loss(views)

    with torch.no_grad():
        output = AutoModel.from_pretrained(tiny_bert).eval()(**views.view1.batch)
    for pooled in given.values():
        torch.testing.assert_close(pooled.cpu(), output.pooler_output, atol=1e-5, rtol=1e-4)


def test_the_loss_trains_both_encoders_and_their_pooler_layers(tncse, tiny_bert):
    method = tncse.Method(load_local(tiny_bert), settings()).eval()
    with torch.no_grad():  # equal vectors would have no gradient of their distance
        method.second.model.embeddings.word_embeddings.weight.mul_(1.1)

    method.loss(method.views(SENTENCES)).backward()

    modules = [method.encoder, method.second, method.pooler1, method.pooler2]
    for module in modules:
        assert any(weight.grad is not None and weight.grad.any() for weight in module.parameters())


def test_the_second_encoder_must_be_pinned(tncse, tiny_bert):
    with pytest.raises(BadInput, match=r"tncse\.second: some/model: the revision 'main'"):
        tncse.load_second("some/model", load_local(tiny_bert), 0.1)


def test_the_second_encoder_must_have_the_vocabulary_of_the_first(
    tncse, tiny_bert, tmp_path, monkeypatch
):
    encoder = load_local(tiny_bert)
    other = load_local(save_tiny("bert", tmp_path / "other"))
    monkeypatch.setattr(tncse.Encoder, "load", lambda *_: other)
    with pytest.raises(BadInput, match=r"tncse\.second: some/model@0+: it has another vocabulary"):
        tncse.load_second(f"some/model@{40 * '0'}", encoder, 0.1)


@pytest.mark.parametrize("model_type", ["distilbert", "albert"])
def test_an_architecture_without_a_pooler_layer_like_berts_is_refused(model_type, tncse, tmp_path):
    encoder = load_local(save_tiny(model_type, tmp_path / model_type))
    message = f"^tncse: encoder .*: {model_type} has no pooler layer like BERT's.*; use an encoder"
    with pytest.raises(BadInput, match=message):
        tncse.Method(encoder, settings())
