"""On a real GPU, a step of every method and component gives the CPU's loss and gradients.

So do chunks, bf16 with compiled layers, a resumed run, and the point on STS-B dev. The other tests
use a GPU, too, if there is one.

`pytest tests/conformance/test_real_gpu.py`; without a GPU every test is skipped. Where the CPU's
numbers are expected, what is random on the device is drawn on the host (host_random.py). Matrix
products are in fp32, not TF32 (PyTorch's default).
"""

import copy
import subprocess
import sys

import pytest
import torch
from host_random import HostRandom
from test_chunks import assert_equal, losses_and_gradients, replayed_and_kept, turn_dropout_off
from test_conformance import (
    PLAIN,
    RUNS,
    TRAINED,
    assembled,
    batches,
    losses_of,
    runs,
    with_precision,
)
from torch.nn.attention import SDPBackend, sdpa_kernel

from csebench.base.project import ROOT
from csebench.model.encoder import PADDED_TO
from csebench.model.layers import Dropout
from csebench.train import trainer
from csebench.train.inputs import read_corpus_of, read_inputs

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="PyTorch finds no CUDA GPU on this machine"
)

DEVICE = "cuda"
LOSS = {"rtol": 1e-4, "atol": 1e-5}  # fp32 sums in another order
BF16 = {"rtol": 0.3, "atol": 0.02}  # as in test_conformance.py: test_bf16_moves_the_loss_little


@pytest.fixture(autouse=True)
def padded_as_on_gpu(monkeypatch):
    """Let the CPU pad as the GPU does, because masks have the shape of a batch."""
    monkeypatch.setitem(PADDED_TO, "cpu", PADDED_TO["cuda"])


@pytest.fixture
def on_cpu(monkeypatch):
    """Assemble the modules of a run as on a machine without a GPU: `on_cpu(spec)`."""

    def make(spec):
        with monkeypatch.context() as patch:
            patch.setattr(torch.cuda, "is_available", lambda: False)
            patch.setenv("CUDA_VISIBLE_DEVICES", "")
            modules, _ = assembled(spec)
        return modules

    return make


@runs(TRAINED)
def test_a_step_is_the_cpus(run, on_cpu, make_spec, sentences, monkeypatch):
    """A step gives the loss and gradients of the CPU. The second of two steps has a queue, if the
    method or a component has one."""
    monkeypatch.setattr(Dropout, "forward", torch.nn.Dropout.forward)  # not the CPU's cheaper masks
    spec = make_spec(**RUNS[run])
    cpu_modules = on_cpu(spec)
    gpu_modules = copy.deepcopy(cpu_modules).to(DEVICE)
    steps = batches(spec, sentences, cpu_modules["method"])[:2]

    with sdpa_kernel(SDPBackend.MATH), HostRandom(DEVICE):
        expected = losses_and_gradients(cpu_modules, steps)
        computed = losses_and_gradients(gpu_modules, steps)

    last_gradients = expected.gradients[-1]
    assert any(gradient.any() for gradient in last_gradients.values())
    assert_equal(computed, expected, **LOSS)


@runs(PLAIN)
def test_a_compiled_step_in_bf16_is_near_the_cpus(run, on_cpu, make_spec, sentences):
    """There is no dropout, because compiled kernels draw their own masks."""
    spec = make_spec(**RUNS[run])
    cpu_modules = on_cpu(spec)
    gpu_modules, _ = assembled(spec)
    turn_dropout_off(cpu_modules)
    turn_dropout_off(gpu_modules)
    steps = batches(spec, sentences, cpu_modules["method"])[:2]

    expected = losses_and_gradients(cpu_modules, steps)
    computed = losses_and_gradients(gpu_modules, steps, "bf16")

    torch.testing.assert_close(computed.losses, expected.losses, **BF16)


@runs(PLAIN)
def test_compiled_chunks_replay_their_masks(run, make_spec, sentences, monkeypatch):
    """The precision is bf16."""
    replayed, kept = replayed_and_kept(make_spec(**RUNS[run]), sentences, monkeypatch, "bf16")
    assert_equal(replayed, kept, rtol=1e-2, atol=1e-2, gradient=0.05)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_killed_run_goes_on_with_the_same_masks(precision, make_spec, train, tmp_path, kill_at):
    """The losses are equal up to rounding. Equal bits are promised for the CPU alone, because sums
    on a GPU have no fixed order."""
    spec = make_spec("simcse", params={"steps": 12, "evaluate_every": 3})
    spec = with_precision(spec, precision)
    whole = train(spec, tmp_path / "whole")

    kill_at(7)
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path / "killed", checkpoint_seconds=0)
    kill_at(None)
    resumed = train(spec, tmp_path / "killed")

    assert resumed["resumed_at"] == 6
    assert losses_of(resumed) == pytest.approx(losses_of(whole), rel=1e-2)


def test_the_point_on_the_dev_set_is_the_cpus(on_cpu, make_spec, corpus, smoke_data):
    spec = make_spec("simcse")
    pooler = spec.params["pooler"]
    dev = read_inputs(spec, read_corpus_of(spec, corpus), smoke_data).dev
    cpu_encoder = on_cpu(spec)["method"].encoder
    gpu_encoder = copy.deepcopy(cpu_encoder).to(DEVICE)

    expected = trainer.dev_point(cpu_encoder, pooler, dev, "fp32")
    computed = trainer.dev_point(gpu_encoder, pooler, dev, "fp32")

    assert computed == pytest.approx(expected, abs=1e-4)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="PyTorch finds fewer than two GPUs")
def test_two_processes_over_nccl():
    """They do what they do over gloo without GPUs: they train the model of one process, up to
    rounding, and resume a run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["tests/conformance/test_parallel.py", "-k", "run_of_two_processes"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
