"""The flow of BERT-flow and its training against the official code, which is in TensorFlow 1.

See vector_cases.py. The official code ran unmodified under TensorFlow 2, in float64. Besides the
loss and its gradients, the cases have the weights after three steps of the official optimiser, and
those after Glow's start from a batch, which the official code never runs.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from vector_cases import Case, cases

from csebench.base.errors import BadInput
from csebench.plan.catalog.registry import typed_params
from methods import bert_flow


def flow_of(case):
    """Return the flow with the weights that the case starts with."""
    settings = case.settings
    flow = bert_flow.Glow(settings["D"], settings["levels"], settings["depth"], settings["width"])
    weights = {name: case.tensor(f"in_{name}") for name in flow.state_dict()}
    flow.load_state_dict(weights)
    return flow.to(case.dtype)


@cases("bert_flow")
def test_the_likelihood_and_its_gradients(name, precision):
    """The loss has the mean over the first sentences of the pairs, and that over the second."""
    case = Case(name, precision)
    flow = flow_of(case)
    a, b = case.tensor("in_batches")[0]
    a.requires_grad_(True)
    latent_a, log_det = flow(a)
    latent_b, _ = flow(b)
    of_a = bert_flow.bits_per_dimension(latent_a, log_det)
    loss = of_a.mean() + bert_flow.bits_per_dimension(latent_b, log_det).mean()

    case.check("za", latent_a)
    case.check("zb", latent_b)
    case.check("losses_a", of_a)
    case.check("loss", loss)
    case.check_gradients(loss, a=a, **dict(flow.named_parameters()))


@cases("bert_flow")
def test_the_weights_after_three_steps(name, precision):
    """A batch has both sides of the pairs."""
    case = Case(name, precision)
    # PyTorch adds 1e-6 to the norm before it clips. Adam magnifies the rounding of small gradients.
    case.tolerance = {torch.float64: 1e-6, torch.float32: 0.05}[case.dtype]
    flow = flow_of(case)
    batches = [pairs.flatten(0, 1) for pairs in case.tensor("in_batches")]
    bert_flow.maximise_likelihood(flow, batches, SimpleNamespace(**case.settings))
    for key, weight in flow.named_parameters():
        case.check(f"trained_{key}", weight)


@cases("bert_flow")
def test_the_start_from_a_batch(name, precision):
    case = Case(name, precision)
    flow = flow_of(case)
    flow.start_from_data(case.tensor("in_batches")[0, 0])
    for key, weight in flow.named_parameters():
        if "norm" in key:  # a mean of 0 has no relative gap
            expected = case.tensor(f"started_{key}")
            tolerance = {"rtol": case.tolerance, "atol": case.tolerance}
            torch.testing.assert_close(weight.data, expected, **tolerance)


def test_log_det_is_that_of_the_jacobian():
    flow = bert_flow.Glow(16, levels=3, depth=2, width=4).double()
    flow.initialise()
    for weight in flow.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    x = torch.randn(1, 16, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: flow(x)[0], x).reshape(16, 16)
    torch.testing.assert_close(jacobian.det().abs().log(), flow(x)[1])


# ---------------------------------------------------------------- the fit


def correlated(count, seed):
    """Draw embeddings (count, 16), float32, whose dimensions have other means and deviations."""
    noise = np.random.default_rng(seed).standard_normal((count, 16))
    return (noise * np.linspace(0.2, 2, 16) + np.linspace(-1, 3, 16)).astype(np.float32)


def fit(vectors, seed=0, **params):
    torch.manual_seed(seed)
    return bert_flow.Method.fit(vectors, typed_params("bert_flow", params))


@pytest.mark.parametrize("initial", ["random", "data"])
def test_a_seed_gives_the_same_bits(initial):
    vectors = correlated(300, seed=1)
    first = fit(vectors, initial=initial)
    again = fit(vectors, initial=initial)
    other = fit(vectors, seed=1, initial=initial)
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert any(not np.array_equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("initial", ["random", "data"])
def test_embeddings_that_were_not_fitted_become_standard_normal(initial):
    small = {"levels": 2, "depth": 1, "learning_rate": 1e-2}
    arrays = fit(correlated(4000, seed=1), initial=initial, epochs=6, **small)
    latent = bert_flow.Method.apply(correlated(1000, seed=2), arrays)
    assert abs(latent.mean(0)).max() < 0.3
    assert abs(latent.std(0) - 1).max() < 0.3


def test_fewer_sentences_than_a_batch_are_one_batch():
    """Weights move in one step by about ten times the learning rate at most."""
    arrays = fit(correlated(10, seed=1))
    moved = arrays["levels.0.0.coupling.last_bias"]
    assert 0 < abs(moved).max() <= 0.01


def test_dimensions_that_cannot_be_halved_are_refused():
    with pytest.raises(BadInput, match="12 dimensions cannot be halved 3 times"):
        fit(correlated(10, seed=1)[:, :12])
