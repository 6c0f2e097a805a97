"""On a real GPU: a step of every method and component gives the CPU's loss and gradients; so do
chunks, bf16 with compiled layers, a resumed run, and the point on STS-B dev. The other tests use a
GPU, too, where there is one.

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
from test_conformance import PLAIN, RUNS, TRAINED, assembled, batches, runs
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
BF16 = {"rtol": 0.3, "atol": 0.02}  # as of test_conformance.py: test_bf16_moves_the_loss_little


@pytest.fixture(autouse=True)
def padded_alike(monkeypatch):
    """Masks of dropout and of tokens have the shape of a batch, so the CPU pads as the GPU does."""
    monkeypatch.setitem(PADDED_TO, "cpu", PADDED_TO["cuda"])


@pytest.fixture
def on_cpu(monkeypatch):
    """`on_cpu(spec)`: a run's method and components as they are on a machine without a GPU."""

    def make(spec):
        with monkeypatch.context() as patch:
            patch.setattr(torch.cuda, "is_available", lambda: False)
            patch.setenv("CUDA_VISIBLE_DEVICES", "")
            return assembled(spec)[0]

    return make


@runs(TRAINED)
def test_a_step_is_the_cpus(run, on_cpu, make_spec, sentences, monkeypatch):
    """Of any method or component; the second of two steps has a queue where there is one."""
    monkeypatch.setattr(Dropout, "forward", torch.nn.Dropout.forward)  # not the CPU's cheaper masks
    spec = make_spec(**RUNS[run])
    state = on_cpu(spec)
    steps = batches(spec, sentences, state["method"])[:2]
    on_gpu = copy.deepcopy(state).to(DEVICE)
    with sdpa_kernel(SDPBackend.MATH), HostRandom(DEVICE):
        cpu, gpu = (losses_and_gradients(modules, steps) for modules in (state, on_gpu))
    assert any(gradient.any() for gradient in cpu[1][-1].values())
    assert_equal(gpu, cpu, **LOSS)


@runs(PLAIN)
def test_a_compiled_step_in_bf16_is_near_the_cpus(run, on_cpu, make_spec, sentences):
    """Without dropout, since compiled kernels draw their own masks."""
    spec = make_spec(**RUNS[run])
    state, (on_gpu, _) = on_cpu(spec), assembled(spec)
    steps = batches(spec, sentences, state["method"])[:2]
    for modules in (state, on_gpu):
        turn_dropout_off(modules)
    (cpu, _), (gpu, _) = (
        losses_and_gradients(state, steps),
        losses_and_gradients(on_gpu, steps, "bf16"),
    )
    torch.testing.assert_close(gpu, cpu, **BF16)


@runs(PLAIN)
def test_compiled_chunks_replay_their_masks(run, make_spec, sentences, monkeypatch):
    """In bf16."""
    replayed, kept = replayed_and_kept(make_spec(**RUNS[run]), sentences, monkeypatch, "bf16")
    assert_equal(replayed, kept, rtol=1e-2, atol=1e-2, gradient=0.05)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_killed_run_goes_on_with_the_same_masks(precision, make_spec, train, tmp_path, kill_at):
    """To rounding: bits are promised for the CPU alone, as sums on a GPU have no fixed order."""
    spec = make_spec("simcse", params={"steps": 12, "evaluate_every": 3}).model_copy(
        update={"precision": precision}
    )
    whole = train(spec, tmp_path / "whole")
    kill_at(7)
    with pytest.raises(KeyboardInterrupt):
        train(spec, tmp_path / "killed", checkpoint_seconds=0)
    kill_at(None)
    resumed = train(spec, tmp_path / "killed")
    assert resumed["resumed_at"] == 6
    losses = [[loss for _, loss in report["losses"]] for report in (resumed, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_the_point_on_the_dev_set_is_the_cpus(on_cpu, make_spec, corpus, smoke_data):
    spec = make_spec("simcse")
    encoder = on_cpu(spec)["method"].encoder
    dev = read_inputs(spec, read_corpus_of(spec, corpus), smoke_data).dev
    cpu = trainer.dev_point(encoder, spec.params["pooler"], dev, "fp32")
    gpu = trainer.dev_point(copy.deepcopy(encoder).to(DEVICE), spec.params["pooler"], dev, "fp32")
    assert gpu == pytest.approx(cpu, abs=1e-4)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="PyTorch finds fewer than two GPUs")
def test_two_processes_over_nccl():
    """What they do over gloo without GPUs: the model of one process, to rounding, and a resumed
    run."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/conformance/test_parallel.py",
    ]
    done = subprocess.run(
        [*command, "-k", "run_of_two_processes"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:]
