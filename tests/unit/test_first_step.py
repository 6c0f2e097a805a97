"""Code of a method or component that cannot train: refused at the first step, by the name of its file."""

import re
import sys

import pytest
import torch

from csebench import cli
from csebench.base.errors import BadInput, Untrainable
from methods.components.mlm import Component
from methods.simcse import Method

METHOD, COMPONENT = r"^methods/simcse\.py: loss\(views\) ", r"^methods/components/mlm\.py: term\(method, views\) "
LOSSES = {
    "of no tensor": (lambda loss: 1.0, r"gives 1\.0 without gradient, expected a scalar"),
    "of nothing": (lambda loss: None, "gives None without"),
    "per sentence": (lambda loss: loss.repeat(8), r"gives a tensor of shape \(8,\), expected a scalar"),
    "of whole numbers": (lambda loss: torch.tensor(5), r"gives a tensor of shape \(\) without gradient"),
}
TERMS = {
    "of no tensor": LOSSES["of no tensor"],
    "zeros per sentence": (lambda term: torch.zeros(8), r"gives a tensor of shape \(8,\) without gradient"),
}
NO_TERMS = {"zero": lambda term: 0, "zeros": lambda term: torch.zeros(())}
NO_GRADIENT = {
    "of a weight that is not trained": lambda loss: torch.ones((), requires_grad=True),
    "of zeros": lambda loss: 1 + 0 * loss,
}


@pytest.fixture
def patch(monkeypatch):
    """`patch(Method, "loss", change)` lets SimCSE return `change(its loss)`."""

    def made(owner, name, change):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: change(original(*args)))

    return made


@pytest.mark.parametrize(("change", "message"), LOSSES.values(), ids=LOSSES)
def test_a_loss_that_cannot_train_is_refused(change, message, patch, make_spec, train, tmp_path):
    patch(Method, "loss", change)
    with pytest.raises(BadInput, match=METHOD + message):
        train(make_spec("simcse"), tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize(("change", "message"), TERMS.values(), ids=TERMS)
def test_a_term_that_cannot_train_is_refused(change, message, patch, make_spec, train, tmp_path):
    patch(Component, "term", change)
    with pytest.raises(BadInput, match=COMPONENT + message):
        train(make_spec("simcse", components={"mlm": {}}), tmp_path / "run")


@pytest.mark.parametrize("change", NO_GRADIENT.values(), ids=NO_GRADIENT)
def test_a_run_without_a_gradient_fails(change, patch, make_spec, train, tmp_path):
    """It may be due to the settings of a trial, which then fails for good."""
    patch(Method, "loss", change)
    with pytest.raises(Untrainable, match=r"^methods/simcse\.py: the gradient of loss.* is zero"):
        train(make_spec("simcse"), tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()


def test_a_loss_of_zero_may_have_no_gradient(make_spec, train, tmp_path):
    """Without negatives at so low a temperature InfoNCE is 0 (miCSE Table 4 at scale mini)."""
    report = train(make_spec("simcse", params={"negatives": "zeroed", "temperature": 0.005}), tmp_path / "run")
    assert [point["loss"] for point in report["curve"]] == [0.0] * len(report["curve"])


@pytest.mark.parametrize("change", NO_TERMS.values(), ids=NO_TERMS)
def test_a_component_may_add_nothing(change, patch, make_spec, train, tmp_path):
    patch(Component, "term", change)
    train(make_spec("simcse", components={"mlm": {"weight": 0.0}}), tmp_path / "run")


def test_later_steps_are_not_checked(patch, make_spec, train, tmp_path):
    """A loss that is zero where a margin holds has no gradient, and is no mistake."""
    calls = []
    patch(Method, "loss", lambda loss: loss * (not calls.append(None) and len(calls) < 3))
    train(make_spec("simcse"), tmp_path / "run")


def test_a_method_that_ends_the_process(patch, make_spec, corpus, smoke_data, tmp_path, capsys):
    """With exit code 0 it would pass for a finished run."""
    patch(Method, "loss", lambda _: sys.exit(0))
    arguments = ["train", make_spec("simcse").model_dump_json(), "--corpus", corpus, "--data", smoke_data]
    assert cli.main([str(argument) for argument in [*arguments, "--out", tmp_path / "run"]]) == 1
    assert re.search(r"test_first_step\.py: line \d+: ends the process", capsys.readouterr().err)
    assert not (tmp_path / "run" / "train.json").exists()
