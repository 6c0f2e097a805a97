"""A step of every method, and of pre-training, on a made-up GPU. `pytest tests/conformance/made_up_gpu.py -k NAME`.

tests/slow/test_gpu_path.py runs this file in a process of its own: PyTorch counts devices at the first backward
pass of a process.

`Gpu` lets every operation on a device of PyTorch's own for extensions go by without data, and raises where the host
would wait for it or a tensor of the host would be mixed with one of the device.
"""

from contextlib import nullcontext

import pytest
import torch
from host_random import HostRandom, is_random
from test_conformance import RUNS, TRAINED, assembled, batches, runs
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from csebench.train import trainer

DEVICE = "madeup"
COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class Waits(Exception):
    pass


class Gpu(TorchDispatchMode):
    """Operations of the host are done; those of the device have shapes and types only."""

    def __init__(self):
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.setting_up = False  # then waiting is fine
        self.drawn = set()  # random operations on the device

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        places = {x.device.type for x in tensors if x.dim() or x.device.type == DEVICE}
        if kwargs.get("device") is not None:
            places.add(kwargs["device"].type)
        if DEVICE not in places:
            return func(*args, **kwargs)
        if is_random(func):
            self.drawn.add(str(func))
        if len(places) == 2 and not self.setting_up:
            to_device = func in COPIES and (args[0].device.type == DEVICE) == (func is COPIES[1])
            if not (to_device and (kwargs.get("non_blocking") or True in args[2:])):
                raise Waits(f"{func} {[tuple(x.shape) for x in tensors]}: the host waits, or devices are mixed")
        args, kwargs = tree_map_only(torch.Tensor, self.faked, (args, kwargs))
        with self.fake:
            return func(*args, **kwargs)

    def faked(self, tensor):
        return tensor if isinstance(tensor, FakeTensor) else self.fake.from_tensor(tensor)


@pytest.fixture
def gpu(monkeypatch):
    if not hasattr(torch, DEVICE):
        _setup_privateuseone_for_python_backend(DEVICE)
        getattr(torch, DEVICE).get_amp_supported_dtype = lambda: [torch.bfloat16]
    monkeypatch.setattr("transformers.masking_utils.is_tracing", lambda *_: False)  # as of tensors with data
    return Gpu()


def on_the_device(spec, gpu):
    """A run's method, components and optimiser on the made-up device."""
    state, _ = assembled(spec)
    gpu.setting_up = True
    with gpu:
        state.to(DEVICE)
    gpu.setting_up = False
    assert {t.device.type for t in (*state.parameters(), *state.buffers())} == {DEVICE}
    return state, trainer.make_optimizer([w for w in state.parameters() if w.requires_grad], state["method"])


def waits(spec) -> bool:
    """AMI's form `code` has to know how many entries dropout left."""
    return "ami" in spec.components and spec.components["ami"].params["form"] == "code"


@runs(TRAINED)
def test_no_step_waits_for_the_device(run, gpu, make_spec, sentences):
    spec = make_spec(**RUNS[run])
    state, optimizer = on_the_device(spec, gpu)
    method, components = state["method"], state["components"]
    seen = pytest.raises((Waits, DataDependentOutputException, DynamicOutputShapeException))
    with seen if waits(spec) else nullcontext(), gpu:
        for batch in batches(spec, sentences, method)[:2]:  # the second with a queue
            trainer.optimise(method, components, optimizer, batch, "fp32")


@runs(TRAINED)
def test_nothing_is_drawn_on_the_device_where_the_host_draws(run, gpu, make_spec, sentences):
    """As test_real_gpu.py compares steps: else masks of CPU and GPU would differ."""
    spec = make_spec(**RUNS[run])
    if waits(spec):
        pytest.skip("its step reads what a made-up device does not have")
    state, optimizer = on_the_device(spec, gpu)
    gpu.setting_up = True  # what a draw depends on is read
    with gpu, HostRandom(DEVICE) as host:
        for batch in batches(spec, sentences, state["method"])[:2]:
            trainer.optimise(state["method"], state["components"], optimizer, batch, "fp32")
    assert not gpu.drawn
    assert host.moved or not spec.params["dropout"]
