"""On a real GPU: a step of every method and component, and of pre-training, gives the CPU's loss and gradients.

`pytest tests/conformance/test_real_gpu.py`; without a GPU every test is skipped. Random numbers that are drawn on the
device are drawn on the host here, the same for both. Matrix products are in fp32, not TF32 (PyTorch's default), and
layers are not compiled (tests/slow/test_gpu_path.py compares those).
"""

import copy

import pytest
import torch
from test_conformance import RUNS, TRAINED, assembled, batches, runs

from csebench.model.encoder import Encoder
from csebench.model.layers import Dropout
from csebench.train import trainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA GPU on this machine")

DEVICE = "cuda"
LOSS = {"rel": 1e-4, "abs": 1e-5}  # fp32 sums in another order
GRADIENT = 1e-3  # ‖gpu - cpu‖ / ‖cpu‖ over all parameters


def host_dropout(x, p=0.5, training=True, inplace=False):
    """Dropout whose mask is drawn on the host, so that it is the same for every device."""
    if not training or p == 0:
        return x
    return x * (torch.rand(x.shape) >= p).to(x.device) / (1 - p)


@pytest.fixture(autouse=True)
def same_on_both(monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "dropout", host_dropout)
    monkeypatch.setattr(Dropout, "forward", torch.nn.Dropout.forward)
    monkeypatch.setattr(Encoder, "compile_layers", lambda self: None)
    randn, multinomial = torch.randn, torch.multinomial
    monkeypatch.setattr(torch, "randn", lambda *size, device: randn(*size).to(device))
    monkeypatch.setattr(torch, "multinomial", lambda w, *a, **k: multinomial(w.cpu(), *a, **k).to(w.device))


def on_cpu(spec, monkeypatch):
    """A run's method and components as they are on a machine without a GPU."""
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        state, _ = assembled(spec)
    return state


def loss_and_gradients(state, steps):
    """Losses of the steps, and all gradients of the last as one vector on the CPU. Learns nothing: rate 0."""
    kept = []
    optimizer = torch.optim.SGD([w for w in state.parameters() if w.requires_grad], lr=0.0)
    parameters = optimizer.param_groups[0]["params"]

    def gradients(*_):
        kept[:] = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        kept[:] = [torch.cat([g.detach().flatten().cpu() for g in kept])]

    optimizer.register_step_pre_hook(gradients)
    losses = []
    for batch in steps:
        torch.manual_seed(1)  # masks, edits and augmentations are drawn on the host
        loss = trainer.optimise(state["method"], state["components"], optimizer, batch, "fp32")
        losses.append(loss.item())
    return losses, kept[0]


def assert_equal(cpu, gpu):
    (cpu_losses, cpu_gradients), (gpu_losses, gpu_gradients) = cpu, gpu
    assert gpu_losses == pytest.approx(cpu_losses, **LOSS)
    assert cpu_gradients.norm() > 0
    assert (gpu_gradients - cpu_gradients).norm() / cpu_gradients.norm() < GRADIENT


@runs(TRAINED)
def test_a_step_is_the_cpus(run, make_spec, sentences, monkeypatch):
    """Of any method or component; the second of two steps, which has a queue where there is one."""
    spec = make_spec(**RUNS[run])
    state = on_cpu(spec, monkeypatch)
    steps = batches(spec, sentences, state["method"])[:2]
    on_gpu = copy.deepcopy(state).to(DEVICE)
    assert_equal(loss_and_gradients(state, steps), loss_and_gradients(on_gpu, steps))
