"""Code of a method or component that cannot train: refused at the first step, by the name of its file."""

import os
import sys

import pytest
import torch

from csebench.base.errors import BadInput, Untrainable, no_exit
from csebench.plan import registry

METHOD, COMPONENT = r"^methods/simcse\.py: ", r"^methods/components/mlm\.py: "

LOSSES = {
    "of no tensor": (lambda loss, views: 1.0, r"loss\(views\) gives 1\.0 without gradient, expected a scalar"),
    "of nothing": (lambda loss, views: None, "gives None without"),
    "per sentence": (lambda loss, views: loss * views.z1.sum(1), r"gives a tensor of shape \(8,\), expected a scalar"),
    "of one element": (lambda loss, views: loss[None], r"a tensor of shape \(1,\), expected a scalar"),
    "of whole numbers": (lambda loss, views: loss.detach().long(), r"a tensor of shape \(\) without gradient"),
    "detached": (lambda loss, views: loss.detach(), r"a tensor of shape \(\) without gradient"),
}
NO_GRADIENT = {
    "of a weight that is not trained": lambda loss, views: torch.ones((), requires_grad=True),
    "of zeros": lambda loss, views: 1 + 0 * loss,
}
TERMS = {
    "a number": (lambda term: 0.5, r"term\(method, views\) gives 0\.5 without gradient"),
    "detached": (lambda term: term.detach(), r"a tensor of shape \(\) without gradient"),
    "per sentence": (lambda term: term.repeat(8), r"gives a tensor of shape \(8,\), expected a scalar"),
    "zeros per sentence": (lambda term: torch.zeros(8), r"gives a tensor of shape \(8,\) without gradient"),
    "a text": (lambda term: "0", "gives '0' without"),
}
NO_TERMS = {"zero": lambda term: 0.0, "whole zero": lambda term: 0, "zeros": lambda term: torch.zeros(())}


@pytest.fixture
def with_loss(monkeypatch):
    """Lets SimCSE return `change(its loss, views)`."""
    from methods.simcse import Method

    original = Method.loss

    def patch(change):
        monkeypatch.setattr(Method, "loss", lambda self, views: change(original(self, views), views))

    return patch


@pytest.fixture
def with_term(monkeypatch):
    """Lets the component of masked LM return `change(its term)`."""
    from methods.components.mlm import Component

    original = Component.term

    def patch(change):
        monkeypatch.setattr(Component, "term", lambda *args: change(original(*args)))

    return patch


@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_that_cannot_train_is_refused(kind, with_loss, make_spec, train, tmp_path):
    change, message = LOSSES[kind]
    with_loss(change)
    with pytest.raises(BadInput, match=METHOD + ".*" + message):
        train(make_spec("simcse"), tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.parametrize("kind", NO_GRADIENT)
def test_a_run_without_a_gradient_fails(kind, with_loss, make_spec, train, tmp_path):
    """It may be due to the settings of a trial, which then fails for good."""
    with_loss(NO_GRADIENT[kind])
    with pytest.raises(Untrainable, match=METHOD + "the gradient of loss.* is zero"):
        train(make_spec("simcse"), tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()


def test_a_loss_of_zero_may_have_no_gradient(make_spec, train, tmp_path):
    """Without negatives at so low a temperature InfoNCE is 0 (miCSE Table 4 at scale mini)."""
    report = train(make_spec("simcse", params={"negatives": "zeroed", "temperature": 0.005}), tmp_path / "run")
    assert [point["loss"] for point in report["curve"]] == [0.0] * len(report["curve"])


@pytest.mark.parametrize("kind", TERMS)
def test_a_term_that_cannot_train_is_refused(kind, with_term, make_spec, train, tmp_path):
    change, message = TERMS[kind]
    with_term(change)
    with pytest.raises(BadInput, match=COMPONENT + ".*" + message):
        train(make_spec("simcse", components={"mlm": {}}), tmp_path / "run")


@pytest.mark.parametrize("kind", NO_TERMS)
def test_a_component_may_add_nothing(kind, with_term, make_spec, train, tmp_path):
    with_term(NO_TERMS[kind])
    train(make_spec("simcse", components={"mlm": {}}), tmp_path / "run")


def test_a_weight_of_zero_is_allowed(make_spec, train, tmp_path):
    train(make_spec("simcse", components={"mlm": {"weight": 0.0}}), tmp_path / "run")


def test_later_steps_are_not_checked(with_loss, make_spec, train, tmp_path):
    """A loss that is zero where a margin holds has no gradient, and is no mistake."""
    calls = []
    with_loss(lambda loss, views: loss * (not calls.append(None) and len(calls) < 3))
    train(make_spec("simcse"), tmp_path / "run")


ENDS = [(sys.exit, None), (sys.exit, 0), (sys.exit, 1), (os._exit, 0), (os._exit, 3)]


@pytest.mark.parametrize(("end", "code"), ENDS)
def test_a_method_that_ends_the_process(end, code, with_loss, make_spec, train, tmp_path):
    with_loss(lambda loss, views: getattr(sys if end is sys.exit else os, end.__name__)(code))
    with pytest.raises(BadInput, match=r"tests/unit/test_first_step\.py: line \d+: ends the process"):
        train(make_spec("simcse"), tmp_path / "run")


@pytest.mark.parametrize("code", [0, 3])
def test_a_method_whose_import_ends_the_process(code, monkeypatch):
    """Its run has no model, and must not pass for done."""
    monkeypatch.setattr(registry.importlib, "import_module", lambda name: os._exit(code))
    with pytest.raises(BadInput, match=r"test_first_step\.py: line \d+: ends the process"):
        registry.load("simcse")


def test_a_forked_process_ends_as_it_does_elsewhere():
    with no_exit():
        if (child := os.fork()) == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_the_message_of_the_command(with_loss, make_spec, corpus, smoke_data, tmp_path, capsys):
    from csebench import cli

    with_loss(lambda loss, views: loss.detach())
    spec = make_spec("simcse").model_dump_json()
    out = tmp_path / "run"
    arguments = ["train", spec, "--corpus", corpus, "--data", smoke_data, "--out", out]
    assert cli.main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr().err.splitlines()[-1]
    assert printed.startswith("csebench: methods/simcse.py: loss(views) gives a tensor of shape () without gradient")
