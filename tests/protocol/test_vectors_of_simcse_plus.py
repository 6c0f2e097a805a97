"""SimCSE++, a method of the folder successors/, against the values and gradients of its official
code. vector_cases.py says which files have them."""

import sys
from types import SimpleNamespace

import pytest
import torch
from tiny_encoders import load_local
from vector_cases import Case, cases, set_weights

from csebench.plan.catalog import registry
from csebench.train.losses import info_nce
from csebench.train.method import View, Views


@pytest.fixture
def simcse_plus(successors):
    """The module of the method, while its folder has joined the project."""
    return sys.modules[registry.load("simcse_plus").__module__]


def settings(**changed):
    values = {
        "pooler": "cls_before_pooler",
        "max_length": 32,
        "dropout": 0.1,
        "temperature": 0.05,
        "negatives": "off_dropout",
        "dimensions": 0.1,
        "dimension_temperature": 5.0,
    }
    return SimpleNamespace(**values | changed)


@cases("simcse_plus")
def test_simcse_plus_and_its_gradients(name, precision, simcse_plus):
    """The method itself gets the [CLS] states of both views, and of the one without dropout."""
    case = Case(name, precision)
    inputs = {key: case.tensor(f"in_{key}", grad=True) for key in ("h1", "h2", "h0", "W", "b")}
    h1, h2, h0, weight, bias = inputs.values()
    params = settings(
        temperature=case.settings["temp"],
        dimensions=case.settings["sw_weight"],
        dimension_temperature=case.settings["sw_temp"],
    )
    method = simcse_plus.Method(SimpleNamespace(size=h1.shape[1]), params)
    set_weights(method.head, weight, bias)

    view1, view2, view0 = (View(method.project(states), states, {}) for states in (h1, h2, h0))
    loss = method.loss(Views(view1, view2, hard=view0))

    case.check("loss", loss)
    case.check_gradients(loss, **inputs)


def test_only_the_negatives_are_without_dropout(simcse_plus, tiny_bert, sentences):
    encoder = load_local(tiny_bert)
    method = simcse_plus.Method(encoder, settings()).to(encoder.device).train()

    first = method.views(sentences[:4])
    second = method.views(sentences[:4])

    assert not torch.allclose(first.z1, first.z2)
    assert not torch.allclose(first.z1, second.z1)
    assert torch.equal(first.hard.z, second.hard.z)


def test_without_both_parts_it_is_simcse(simcse_plus):
    z1, z2 = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(0))
    params = settings(negatives="batch", dimensions=0.0)
    method = simcse_plus.Method(SimpleNamespace(size=8), params)

    loss = method.loss(Views(View(z1, z1, {}), View(z2, z2, {})))

    assert torch.equal(loss, info_nce(z1, z2, 0.05))
