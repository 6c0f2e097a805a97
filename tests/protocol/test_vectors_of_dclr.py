"""DCLR and VaSCL against the values and gradients of their official code.

vector_cases.py says which files have them.
"""

import pytest
import torch
from torch import nn
from vector_cases import Case, GivenStates, cases

from csebench.model.encoder import Encoder
from csebench.plan.catalog.registry import load, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train.method import View, Views
from methods.dclr import (
    binary_contrast,
    contrast,
    draw_noise,
    non_uniformity,
    weighted_contrast,
)
from methods.vascl import FastLinear


@pytest.fixture
def encoder(tiny_bert):
    return Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))


@pytest.fixture
def dclr(make_spec, encoder):
    """Make the method with some parameters changed."""

    def make(**params):
        spec = make_spec("dclr", params=params)
        return load("dclr")(encoder, typed_params("dclr", spec.params))

    return make


@cases("dclr")
def test_dclr_has_the_official_loss(name, precision, dclr, monkeypatch):
    case = Case(name, precision)
    method = dclr(
        temperature=case.settings["temp"],
        threshold=case.settings["phi"],
        noise=case.settings["noise_times"],
        noise_steps=case.settings["pgd"],
    )
    method.teacher = GivenStates(case.tensor("in_teacher"))
    monkeypatch.setattr(torch, "randn", lambda *_, **__: case.tensor("in_noise"))
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)
    batch = {"input_ids": torch.zeros(len(z1), 1, dtype=torch.long)}

    loss = method.loss(Views(View(z1, z1, batch), View(z2, z2, batch)))

    case.check("out_loss", loss)
    case.check_gradients(loss, z1=z1, z2=z2)


@cases("vascl")
def test_vascl_has_the_official_loss(name, precision, make_spec, encoder, monkeypatch):
    case = Case(name, precision)
    params = {
        "temperature": case.settings["temperature"],
        "neighbours": case.settings["topk"],
        "radius": case.settings["eps"],
        "batch_size": case.settings["N"],
    }
    spec = make_spec("vascl", params=params)
    method = load("vascl")(encoder, typed_params("vascl", spec.params))
    w1, w2 = case.tensor("in_w1", grad=True), case.tensor("in_w2", grad=True)
    monkeypatch.setattr(method, "project", lambda vectors: (vectors @ w1.T).relu() @ w2.T)
    monkeypatch.setattr(torch, "rand", lambda *_, **__: case.tensor("in_noise"))
    e1, e2 = case.tensor("in_e1", grad=True), case.tensor("in_e2", grad=True)
    batch = {"input_ids": torch.zeros(len(e1), 1, dtype=torch.long)}

    view1 = View(method.project(e1), e1, batch)
    view2 = View(method.project(e2), e2, batch)
    loss = method.loss(Views(view1, view2))

    case.check("out_loss", loss)
    case.check_gradients(loss, e1=e1, e2=e2, w1=w1, w2=w2)


# ---------------------------------------------------------------- false negatives and noise

LOGITS = torch.tensor([[3.0, 2.0, 1.0], [0.0, 3.0, 1.0]])  # two sentences and one noise vector
ALIKE = torch.tensor([[True, True], [False, True]])


def test_a_false_negative_counts_as_a_logit_of_zero():
    zeroed = LOGITS.clone()
    zeroed[0, 1] = 0.0
    expected = binary_contrast(zeroed, torch.zeros(2, 2, dtype=torch.bool))
    assert torch.equal(binary_contrast(LOGITS, ALIKE), expected)


def test_in_the_paper_a_false_negative_is_not_in_the_denominator():
    first = 1.0 - 3.0  # noise alone is left
    second = torch.tensor([0.0, 1.0]).logsumexp(0) - 3.0
    expected = (first + second) / 2
    assert weighted_contrast(LOGITS, ALIKE).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("form", ["binary", "weighted"])
def test_noise_moves_by_the_length_of_a_step_to_where_the_loss_is_larger(form, dclr):
    torch.manual_seed(0)
    z1 = torch.randn(8, 6)
    noise = draw_noise(5, z1)

    moved = dclr(form=form, noise_steps=1, noise_step_size=0.01).move(noise, z1, z1)

    assert (moved - noise).norm(dim=1) == pytest.approx(torch.full((5,), 0.01), rel=1e-3)
    before = non_uniformity(contrast(z1, z1, noise, 0.05))
    assert non_uniformity(contrast(z1, z1, moved, 0.05)) > before
    assert not moved.requires_grad


# ---------------------------------------------------------------- what the encoders read


def test_padding_is_attended_to_only_as_in_the_code(dclr):
    sentences = ["one", "a sentence of several words"]
    assert not dclr().tokenize(sentences)["attention_mask"].all()
    assert dclr(mask_padding=False).tokenize(sentences)["attention_mask"].all()


# ---------------------------------------------------------------- the head of VaSCL


def test_a_fast_layer_learns_at_its_own_rate_under_adam():
    """Both layers give the same output before a step. After it, one has moved 100 times as far."""
    torch.manual_seed(0)
    fast = FastLinear(6, 4, rate=100.0)
    plain = nn.Linear(6, 4, bias=False)
    plain.weight.data = (100.0 * fast.weight).detach()
    before = plain.weight.detach().clone()
    x = torch.randn(8, 6)
    assert torch.allclose(fast(x), plain(x))

    for layer in (fast, plain):
        optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4, weight_decay=0.0)
        layer(x).square().sum().backward()
        optimizer.step()

    moved = 100.0 * fast.weight - before
    assert torch.allclose(moved, 100.0 * (plain.weight - before), rtol=1e-2)
