"""The flow of BERT-flow and its training against the official code, which is in TensorFlow 1.

See vector_cases.py. The official code ran unmodified under TensorFlow 2, in float64. Besides the
loss and its gradients, the cases have the weights after three steps of the official optimiser, and
those after Glow's start from a batch, which the official code never runs.
"""

from types import SimpleNamespace

import torch
from vector_cases import Case, cases

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
    case.tolerance = max(case.tolerance, 1e-6)  # PyTorch adds 1e-6 to the norm before it clips
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
            torch.testing.assert_close(
                weight.data, expected, rtol=case.tolerance, atol=case.tolerance
            )


def test_log_det_is_that_of_the_jacobian():
    flow = bert_flow.Glow(16, levels=3, depth=2, width=4).double()
    flow.initialise()
    for weight in flow.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    x = torch.randn(1, 16, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda x: flow(x)[0], x).reshape(16, 16)
    torch.testing.assert_close(jacobian.det().abs().log(), flow(x)[1])
