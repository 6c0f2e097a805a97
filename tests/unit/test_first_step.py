"""Code of a method or component that cannot train is refused at the first step, by the name of its
file."""

import itertools
import re
import sys

import pytest
import torch

from csebench import cli
from csebench.base.errors import BadInput, Untrainable
from methods.components.mlm import Component
from methods.simcse import Method

METHOD = r"^methods/simcse\.py: loss\(views\) "
COMPONENT = r"^methods/components/mlm\.py: term\(method, views\) "
REFUSED = [  # what gives it, how it is changed, and the message
    (Method, lambda loss: 1.0, METHOD + r"gives 1\.0 without gradient, expected a scalar"),
    (Method, lambda loss: None, METHOD + "gives None without"),
    (
        Method,
        lambda loss: loss.repeat(8),
        METHOD + r"gives a tensor of shape \(8,\), expected a scalar",
    ),
    (
        Method,
        lambda loss: torch.tensor(5),
        METHOD + r"gives a tensor of shape \(\) without gradient",
    ),
    (Component, lambda term: 1.0, COMPONENT + r"gives 1\.0 without gradient"),
    (
        Component,
        lambda term: torch.zeros(8),
        COMPONENT + r"gives a tensor of shape \(8,\) without gradient",
    ),
]


@pytest.fixture
def patch(monkeypatch):
    """`patch(Method, change)` lets SimCSE return `change(its loss)`. `patch(Component, change)`
    does the same to the term of MLM."""

    def apply(owner, change):
        name = "loss" if owner is Method else "term"
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: change(original(*args)))

    return apply


@pytest.mark.parametrize(("owner", "change", "message"), REFUSED)
def test_a_loss_or_term_that_cannot_train_is_refused(
    owner, change, message, patch, make_spec, train, tmp_path
):
    patch(owner, change)
    with pytest.raises(BadInput, match=message):
        train(make_spec("simcse", components={"mlm": {}}), tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize(
    "loss", [lambda _: torch.ones((), requires_grad=True), lambda loss: 1 + 0 * loss]
)
def test_a_run_without_a_gradient_fails(loss, patch, make_spec, train, tmp_path):
    """It may be due to the settings of a trial, which then fails for good."""
    patch(Method, loss)
    with pytest.raises(Untrainable, match=r"^methods/simcse\.py: the gradient of loss.* is zero"):
        train(make_spec("simcse"), tmp_path / "run")


def test_a_loss_of_zero_may_have_no_gradient(make_spec, train, tmp_path):
    """Without negatives at so low a temperature InfoNCE is 0 (miCSE Table 4 at scale mini)."""
    spec = make_spec("simcse", params={"negatives": "zeroed", "temperature": 0.005})

    report = train(spec, tmp_path / "run")

    assert {point["loss"] for point in report["curve"]} == {0.0}


@pytest.mark.parametrize("zero", [0, torch.zeros(())], ids=["number", "tensor"])
def test_a_component_may_add_nothing_and_a_later_loss_be_constant(
    zero, patch, make_spec, train, tmp_path
):
    """A loss that is constant where a margin holds has no gradient. This is no mistake."""
    steps = itertools.count(1)

    def constant_from_the_third_step(loss):
        if next(steps) < 3:
            return loss
        return 1 + 0 * loss

    patch(Component, lambda term: zero)
    patch(Method, constant_from_the_third_step)

    train(make_spec("simcse", components={"mlm": {"weight": 0.0}}), tmp_path / "run")


def test_a_method_that_ends_the_process(patch, make_spec, corpus, smoke_data, tmp_path, capsys):
    """With exit code 0 it would pass for a finished run."""
    patch(Method, lambda _: sys.exit(0))
    spec = make_spec("simcse").model_dump_json()
    run = tmp_path / "run"
    files = ["--corpus", str(corpus), "--data", str(smoke_data), "--out", str(run)]

    assert cli.main(["train", spec, *files]) == 1

    message = capsys.readouterr().err
    assert re.search(r"test_first_step\.py: line \d+: ends the process", message)
    assert not (run / "train.json").exists()
