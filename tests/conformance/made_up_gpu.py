"""A step of every method, and the dev point, on a made-up GPU: what the host waits for, and how
much is launched. `pytest tests/conformance/made_up_gpu.py -k NAME`; test_gpu_path.py runs this file
in a process of its own, as PyTorch counts devices at the first backward pass of a process.

`Gpu` lets every operation on a device of PyTorch's own for extensions go by without data, and
raises, or counts, where the host would wait for it or a tensor of the host would be mixed with one
of the device.
"""

import pytest
import torch
from host_random import HostRandom, is_random
from test_conformance import RUNS, TRAINED, assembled, batches
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from csebench.data.sts import read_sts
from csebench.model.encoder import PADDED_TO
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.plan.schema.declarations import Evaluation
from csebench.train import trainer

DEVICE = "madeup"
ATEN = torch.ops.aten
COPIES = (ATEN._to_copy.default, ATEN.copy_.default)
READS = {
    ATEN._local_scalar_dense.default: lambda x: 1e9,
    ATEN.unique_dim.default: lambda x, *_: (x, x, x),
}
# as PyTorch does for CUDA
AUTOCAST = {torch.bfloat16: ("linear", "matmul", "bmm", "scaled_dot_product_attention")}
AUTOCAST |= {
    torch.float32: (
        "softmax.int",
        "log_softmax.int",
        "layer_norm",
        "cross_entropy_loss",
        "log",
        "exp",
    )
}
NO_KERNELS = ("prim::", "aten::empty", "aten::detach", "aten::_unsafe_view")


class Waits(Exception):
    pass


class Gpu(TorchDispatchMode):
    """Operations of the host are done; those of the device have shapes and types only."""

    def __init__(self):
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.setting_up = False  # then waiting is fine
        self.waits: list | None = None  # what the host waited for; None: nothing may be waited for
        self.kernels = 0  # launched
        self.drawn = set()  # random operations on the device

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        # of tensors without autograd, which has done so else
        if func.namespace == "aten" and func._can_decompose():
            with self:
                return func.decompose(*args, **kwargs)
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        places = {x.device.type for x in tensors if x.dim() or x.device.type == DEVICE}
        if kwargs.get("device") is not None:
            places.add(kwargs["device"].type)
        if DEVICE not in places:
            return func(*args, **kwargs)
        if self.waits is not None and func in READS:
            self.waits.append(func)
            return READS[func](*args)
        if is_random(func):
            self.drawn.add(str(func))
        if len(places) == 2 and not self.setting_up:
            to_device = func in COPIES and (args[0].device.type == DEVICE) == (func is COPIES[1])
            if self.waits is not None and func is COPIES[0] and not to_device:
                self.waits.append(func)
                return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
            if not (to_device and (kwargs.get("non_blocking") or True in args[2:])):
                raise Waits(
                    f"{func} {[tuple(x.shape) for x in tensors]}: the host waits, or devices are"
                    " mixed"
                )
        self.kernels += not (func.is_view or func.name().startswith(NO_KERNELS))
        args, kwargs = tree_map_only(torch.Tensor, self.faked, (args, kwargs))
        with self.fake:
            return func(*args, **kwargs)

    def faked(self, tensor):
        return tensor if isinstance(tensor, FakeTensor) else self.fake.from_tensor(tensor)


def cast(name, dtype):
    """An operation as autocast has it, which PyTorch leaves to the backend."""
    operation, key = getattr(ATEN, name.partition(".")[0]), torch._C.DispatchKey.AutocastPrivateUse1

    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            floats = lambda x: x.to(dtype) if x.is_floating_point() else x  # noqa: E731
            return operation(*tree_map_only(torch.Tensor, floats, args), **kwargs)

    return run


# The device with its autocast; what is registered ends with the libraries.
_setup_privateuseone_for_python_backend(DEVICE)
getattr(torch, DEVICE).get_amp_supported_dtype = lambda: [torch.bfloat16]
LIBRARIES = torch.library.Library("_", "IMPL"), torch.library.Library("aten", "IMPL")
LIBRARIES[0].fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
for dtype, names in AUTOCAST.items():
    for name in names:
        LIBRARIES[1].impl(name, cast(name, dtype), "AutocastPrivateUse1")


@pytest.fixture
def gpu(monkeypatch):
    # as of tensors with data
    monkeypatch.setattr("transformers.masking_utils.is_tracing", lambda *_: False)
    # as of a GPU
    monkeypatch.setattr("torch.nn.utils.clip_grad._has_foreach_support", lambda *_: True)
    monkeypatch.setitem(PADDED_TO, DEVICE, PADDED_TO["cuda"])
    return Gpu()


def on_the_device(spec, gpu, chunk_size=None):
    """A run's method, components and optimiser on the made-up device."""
    state, _ = assembled(spec, chunk_size)
    gpu.setting_up = True
    with gpu:
        state.to(DEVICE)
    gpu.setting_up = False
    assert {t.device.type for t in (*state.parameters(), *state.buffers())} == {DEVICE}
    return state, trainer.make_optimizer(
        [w for w in state.parameters() if w.requires_grad], state["method"]
    )


# of 3 layers
KERNELS = {
    "simcse": 393,
    "micse": 693,
    "diffcse": 911,
    "infocse": 695,
    "msse": 1034,
    "simcse+ami": 519,
}
# AMI's form `code` has to know how many entries dropout left
WAIT = ("micse-released", "micse-code")
LIKE = ("without", "msse_sup-")  # in their names: the code of others, which are here
STEPPED = [run for run in TRAINED if run not in WAIT and not any(part in run for part in LIKE)]
MODES = [(run, "bf16" if run in KERNELS else "fp32", None) for run in STEPPED]
# every kind of forward pass
MODES += [(run, "bf16", 10) for run in ("diffcse", "infocse", "msse", "simcse+ami")]


@pytest.mark.parametrize(("run", "precision", "chunk_size"), MODES)
def test_no_step_waits_for_the_device(run, precision, chunk_size, gpu, make_spec, sentences):
    """Nor has more kernels than now, uncompiled: each launch costs the host time."""
    spec = make_spec(**RUNS[run])
    state, optimizer = on_the_device(spec, gpu, chunk_size)
    with gpu:
        for batch in batches(spec, sentences, state["method"])[:2]:  # the second with a queue
            before = gpu.kernels
            trainer.optimise(state["method"], state["components"], optimizer, batch, precision)
    assert chunk_size or run not in KERNELS or gpu.kernels - before <= KERNELS[run]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_dev_point_waits_for_its_results_alone(precision, gpu, make_spec, smoke_data):
    """Cosines, alignment, which vectors are distinct, uniformity; what embeds more batches waits
    once for all."""
    encoder = on_the_device(make_spec("simcse"), gpu)[0]["method"].encoder
    gpu.waits, (dev,) = [], read_sts(smoke_data, "STS-B", "dev")
    with gpu:
        trainer.dev_point(encoder, "cls_before_pooler", dev, precision)
        assert len(gpu.waits) == 4
        SentenceEncoder(encoder, "avg", evaluation=Evaluation(batch_size=2)).vectors(
            ["a", "b", "c"]
        )
    assert len(gpu.waits) == 5


@pytest.mark.parametrize("run", [run for run in TRAINED if run in KERNELS or "compensation" in run])
def test_nothing_is_drawn_on_the_device_where_the_host_draws(run, gpu, make_spec, sentences):
    """As test_real_gpu.py compares steps: else masks of CPU and GPU would differ."""
    spec = make_spec(**RUNS[run])
    state, optimizer = on_the_device(spec, gpu)
    gpu.setting_up = True  # what a draw depends on is read
    with sdpa_kernel(SDPBackend.MATH), gpu, HostRandom(DEVICE):
        for batch in batches(spec, sentences, state["method"])[:2]:
            trainer.optimise(state["method"], state["components"], optimizer, batch, "fp32")
    assert not gpu.drawn
