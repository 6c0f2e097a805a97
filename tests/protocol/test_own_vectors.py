"""Losses and gradients against the project's own vectors (tests/protocol/make_vectors.py): they are always here."""

from pathlib import Path

import numpy as np
import pytest
import torch

from csebench.train import losses

VECTORS = np.load(Path(__file__).parent / "vectors.npz")


def tensor(name):
    return torch.from_numpy(VECTORS[name])


def check(name, function, at):
    """`function` at the input named `at`: its value, and its gradient."""
    x = tensor(at).requires_grad_()
    loss = function(x)
    loss.backward()
    assert loss.item() == pytest.approx(float(VECTORS[f"{name}_loss"]), rel=1e-9)
    wanted = VECTORS[f"{name}_gradient"]
    # relative to the largest entry: central differences are no better than that
    np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("name", "temperature", "queue", "in_batch_negatives"),
    [
        ("info_nce", 0.05, None, True),
        ("info_nce_queue", 0.05, "queue", True),
        ("info_nce_queue_only", 0.05, "queue", False),
        ("info_nce_diagonal", 0.5, None, False),
    ],
)
def test_info_nce(name, temperature, queue, in_batch_negatives):
    queue = None if queue is None else tensor(queue)
    check(name, lambda z1: losses.info_nce(z1, tensor("z2"), temperature, queue, in_batch_negatives), "z1")


def test_nt_xent():
    check("nt_xent", lambda z2: losses.nt_xent(tensor("z1"), z2, 0.04), "z2")


def test_contrastive_tension():
    check("ct_mean", lambda e1: losses.contrastive_tension(e1, tensor("e2"), tensor("labels")), "e1")
    check("ct_sum", lambda e2: losses.contrastive_tension(tensor("e1"), e2, tensor("labels"), "sum"), "e2")


def test_ami_of_the_paper():
    real = torch.arange(4) < tensor("lengths")[:, None]
    check("ami_paper", lambda a: losses.ami_paper(a, tensor("attention2"), real, samples=None), "attention1")


def test_ami_of_the_paper_does_not_depend_on_the_order_of_draws():
    """Drawing every entry once, in any order, is taking every entry once."""
    real = torch.ones(2, 4, dtype=torch.bool)
    full = [1e-3 + tensor(name) for name in ("attention1", "attention2")]
    shuffled = lambda valid, samples: torch.randperm(samples).expand(*valid.shape[:-1], samples)  # noqa: E731
    drawn = losses.ami_paper(*full, real, samples=32, sampler=shuffled)
    torch.testing.assert_close(drawn, losses.ami_paper(*full, real, samples=None), rtol=1e-9, atol=0)


def test_ami_of_the_code():
    at = tensor("positions")

    def sampler(valid, samples):
        assert valid.gather(-1, at).all() and samples == at.shape[-1]
        return at

    check("ami_code", lambda a: losses.ami_code(tensor("attention1"), a, at.shape[-1], sampler), "attention2")


def test_no_gradient_reaches_the_queue():
    for loss in (losses.info_nce, losses.nt_xent):
        queue, z1 = tensor("queue").requires_grad_(), tensor("z1").requires_grad_()
        loss(z1, tensor("z2"), 0.05, queue).backward()
        assert queue.grad is None and z1.grad is not None


def test_autocast_does_not_round_the_cosines():
    """bf16 has 8 bits: at temperature 0.02 a cosine rounded to them moves a logit by up to 0.1."""
    z1, z2, queue = (tensor(name).float() for name in ("z1", "z2", "queue"))
    for loss in (losses.info_nce, losses.nt_xent):
        found = []
        for enabled in (False, True):
            x = z1.clone().requires_grad_()
            with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
                value = loss(x, z2, 0.02, queue)
            value.backward()
            found.append((value.detach(), x.grad))
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)
