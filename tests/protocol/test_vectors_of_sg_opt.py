"""SG-OPT and IS-BERT against the values and gradients of their official code.

See vector_cases.py. The objective OPT2 of SG-BERT lacks a negative, which the repaired reading has.
"""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from vector_cases import Case, cases, kind

from csebench.model.pooling import mean_pool
from csebench.train.losses import info_nce
from csebench.train.method import View, Views
from methods import is_bert, sg_opt

OBJECTIVES = {"sg_opt": "sg_opt", "sg_opt_opt1": "opt1", "sg_opt_opt2": "opt2_code"}


def with_shifts(states, shifts):
    """Shift the token states of every layer, (L, N, T, D), (L, D) -> L times (N, T, D).

    The shifts are the only weights of the encoder that the official code was run with.
    """
    return [layer + shift for layer, shift in zip(states, shifts, strict=True)]


@cases(*OBJECTIVES)
def test_sg_opt_and_its_gradients(name, precision, monkeypatch):
    case = Case(name, precision)
    objective = OBJECTIVES[kind(name)]
    states = case.tensor("in_states")
    mask = case.tensor("in_mask").bool()
    now = nn.Parameter(case.tensor("in_now"))
    start = nn.Parameter(case.tensor("in_start"))
    head = sg_opt.make_head(case.settings["D"], case.settings["W"]).to(case.dtype)
    for weight, source in zip(head.parameters(), ("w1", "b1", "w2", "b2"), strict=True):
        weight.data = case.tensor(f"in_{source}")

    cls = with_shifts(states, now)[-1][:, 0]
    output = SimpleNamespace(hidden_states=with_shifts(states, start.detach()))
    layers = sg_opt.layer_means(SimpleNamespace(output=output, mask=mask))
    if objective != "sg_opt":
        monkeypatch.setattr(torch, "randint", lambda *_: case.tensor("in_drawn"))
        layers = sg_opt.one_for_each(layers)
    pooled = layers.flatten(0, 1)
    views = Views(View(head(cls), cls, {}), View(head(pooled), pooled, {}, blocks=len(layers)))
    settings = SimpleNamespace(objective=objective, **case.settings)
    method = SimpleNamespace(
        p=settings,
        encoder=SimpleNamespace(model=nn.ParameterList([now])),
        frozen=SimpleNamespace(model=nn.ParameterList([start])),
    )
    loss = sg_opt.Method.loss(method, views)

    case.check("loss", loss)
    w1, b1, w2, b2 = head.parameters()
    case.check_gradients(loss, now=now, w1=w1, b1=b1, w2=w2, b2=b2)


def test_repaired_opt2_compares_with_the_layers_of_all_other_sentences():
    """It is SimCSE's loss, between [CLS] and the layer that was drawn."""
    z1, z2 = torch.randn(2, 5, 6, dtype=torch.float64)
    repaired = sg_opt.guided_by_one(z1, z2, 0.3, "opt2")
    torch.testing.assert_close(repaired, info_nce(z1, z2, 0.3))


def test_each_sentence_draws_a_layer_of_its_own():
    layers = torch.arange(4)[:, None, None].expand(4, 200, 3)
    drawn = sg_opt.one_for_each(layers)
    assert drawn.shape == (1, 200, 3)
    assert drawn.unique().tolist() == [0, 1, 2, 3]


@cases("is_bert")
def test_is_bert_and_its_gradients(name, precision):
    case = Case(name, precision)
    states = case.tensor("in_states", grad=True)
    mask = case.tensor("in_mask").bool()
    convolutions = []
    weights = {}
    for width in is_bert.WIDTHS:
        weight = nn.Parameter(case.tensor(f"in_w{width}"))
        bias = nn.Parameter(case.tensor(f"in_b{width}"))
        channels, hidden_size, _ = weight.shape
        convolution = nn.Conv1d(hidden_size, channels, width, padding=width // 2)
        convolution.weight = weight
        convolution.bias = bias
        convolutions.append(convolution)
        weights |= {f"w{width}": weight, f"b{width}": bias}

    features = is_bert.n_grams(states, mask, convolutions)
    loss = is_bert.jensen_shannon(features, mean_pool(features, mask), mask)

    case.check("loss", loss)
    case.check_gradients(loss, states=states, **weights)


def test_n_grams_do_not_depend_on_padding():
    convolutions = [nn.Conv1d(6, 2, width, padding=width // 2) for width in is_bert.WIDTHS]
    states = torch.randn(3, 7, 6)
    mask = torch.arange(7) < torch.tensor([[7], [4], [2]])
    together = is_bert.n_grams(states, mask, convolutions)
    for row, length in enumerate(mask.sum(1).tolist()):
        alone = is_bert.n_grams(
            states[row : row + 1, :length], mask[row : row + 1, :length], convolutions
        )
        torch.testing.assert_close(together[row, :length], alone[0])


def test_a_discriminator_that_knows_nothing_has_no_loss():
    real = torch.arange(4) < torch.tensor([[4], [2], [3]])
    loss = is_bert.jensen_shannon(torch.zeros(3, 4, 5), torch.randn(3, 5), real)
    assert float(loss) == pytest.approx(0, abs=1e-6)
