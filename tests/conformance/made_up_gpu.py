"""A step of every method, and the dev point, on a made-up GPU.

The tests check what the host waits for, and how much is launched: `pytest
tests/conformance/made_up_gpu.py -k NAME`. test_gpu_path.py runs this file in a process of its own,
because PyTorch counts devices at the first backward pass of a process.

The made-up GPU is a device of PyTorch's own for extensions. `Gpu` lets every operation on it go by
without data. It raises, or counts, if the host would wait for the device, or if a tensor of the
host would be mixed with one of the device.
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
DEVICE_OF = torch.ops.prim.device.default  # asks a tensor without data for its device
TO_COPY = ATEN._to_copy.default  # of its argument, to another device
COPY_INTO = ATEN.copy_.default  # its first argument, whose device stays
# operations whose result the host has to know, with a result that stands in for it
READS = {
    ATEN._local_scalar_dense.default: lambda x: 1e9,
    ATEN.unique_dim.default: lambda x, *_: (x, x, x),
}
# as PyTorch does for CUDA
AUTOCAST = {
    torch.bfloat16: ("linear", "matmul", "bmm", "scaled_dot_product_attention"),
    torch.float32: (
        "softmax.int",
        "log_softmax.int",
        "layer_norm",
        "cross_entropy_loss",
        "log",
        "exp",
    ),
}
NO_KERNELS = ("aten::empty", "aten::detach", "aten::_unsafe_view")


class Waits(Exception):
    """The host would wait for the device."""


class Gpu(TorchDispatchMode):
    """Does the operations of the host. Those of the device have shapes and types only.

    Attributes:
        setting_up: if True, the host may wait and copy as it likes.
        waits: operations that the host waited for. None: it may not wait for any.
        kernels: number of launched kernels.
        drawn: names of random operations on the device.
    """

    def __init__(self):
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.setting_up = False
        self.waits: list | None = None
        self.kernels = 0
        self.drawn: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is DEVICE_OF:  # answered first, because two thirds of all calls ask this
            return args[0].fake_device
        kwargs = kwargs or {}
        # autograd decomposes these operations; they arrive here if tensors have no autograd
        if func.namespace == "aten" and func._can_decompose():
            with self:
                return func.decompose(*args, **kwargs)

        tensors = tensors_of(args, kwargs)
        devices = devices_of(tensors, kwargs)
        if DEVICE not in devices:
            return func(*args, **kwargs)
        if is_random(func):
            self.drawn.add(str(func))
        if self.waits is not None and func in READS:
            self.waits.append(func)
            return READS[func](*args)
        if len(devices) == 2 and not self.setting_up:
            if self.waits is not None and is_copy_to_host(func, args):
                self.waits.append(func)
                return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
            if not is_copy_without_waiting(func, args, kwargs):
                raise Waits(f"{func} {shapes(args, kwargs)}: the host waits, or devices are mixed")

        if not func.is_view and not func.name().startswith(NO_KERNELS):
            self.kernels += 1
        return self.on_fakes(func, args, kwargs, tensors)

    def on_fakes(self, func, args, kwargs, tensors):
        """Do an operation without data. Tensors with data are replaced by such without."""
        if not all(isinstance(tensor, FakeTensor) for tensor in tensors):
            args, kwargs = tree_map_only(torch.Tensor, self.faked, (args, kwargs))
        with self.fake:
            return func(*args, **kwargs)

    def faked(self, tensor):
        if isinstance(tensor, FakeTensor):
            return tensor
        return self.fake.from_tensor(tensor)


def tensors_of(args, kwargs):
    return [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]


def shapes(args, kwargs):
    return [tuple(tensor.shape) for tensor in tensors_of(args, kwargs)]


def devices_of(tensors, kwargs):
    """Return the types of the devices that an operation on tensors reads or writes.

    A tensor of the host without dimensions does not count, because it is passed as a number.

    Args:
        tensors: all tensors of the operation, also those in kwargs.
        kwargs: keyword arguments of the operation; only `device` is read.
    """
    devices = set()
    for tensor in tensors:
        if tensor.dim() > 0 or tensor.device.type == DEVICE:
            devices.add(tensor.device.type)
    if kwargs.get("device") is not None:
        devices.add(kwargs["device"].type)
    return devices


def is_copy_to_host(func, args):
    """Whether an operation between two devices is a new copy on the host."""
    return func is TO_COPY and args[0].device.type == DEVICE


def is_copy_without_waiting(func, args, kwargs):
    """Whether an operation between two devices is a copy to the device that the host does not wait
    for."""
    if func is TO_COPY:
        is_to_device = args[0].device.type != DEVICE
    elif func is COPY_INTO:
        is_to_device = args[0].device.type == DEVICE
    else:
        return False
    non_blocking = kwargs.get("non_blocking") or True in args[2:]
    return is_to_device and bool(non_blocking)


def cast(name, dtype):
    """Make an operation that casts its arguments first, as autocast does.

    PyTorch leaves the autocast of extensions to them.
    """
    operation = getattr(ATEN, name.partition(".")[0])
    autocast = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def cast_floats(x):
        return x.to(dtype) if x.is_floating_point() else x

    def run(*args, **kwargs):
        with torch._C._ExcludeDispatchKeyGuard(autocast):
            return operation(*tree_map_only(torch.Tensor, cast_floats, args), **kwargs)

    return run


# The device with its autocast. What is registered ends with the libraries, so these are kept.
_setup_privateuseone_for_python_backend(DEVICE)
getattr(torch, DEVICE).get_amp_supported_dtype = lambda: [torch.bfloat16]
FALLBACK_LIBRARY = torch.library.Library("_", "IMPL")
FALLBACK_LIBRARY.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
ATEN_LIBRARY = torch.library.Library("aten", "IMPL")
for dtype, names in AUTOCAST.items():
    for name in names:
        ATEN_LIBRARY.impl(name, cast(name, dtype), "AutocastPrivateUse1")


@pytest.fixture
def gpu(monkeypatch):
    # as for tensors with data
    monkeypatch.setattr("transformers.masking_utils.is_tracing", lambda *_: False)
    # as for a GPU
    monkeypatch.setattr("torch.nn.utils.clip_grad._has_foreach_support", lambda *_: True)
    monkeypatch.setitem(PADDED_TO, DEVICE, PADDED_TO["cuda"])
    return Gpu()


def on_the_device(spec, gpu, chunk_size=None):
    """Return the modules and the optimiser of a run on the made-up device."""
    modules, _ = assembled(spec, chunk_size)
    gpu.setting_up = True
    with gpu:
        modules.to(DEVICE)
    gpu.setting_up = False
    for tensor in (*modules.parameters(), *modules.buffers()):
        assert tensor.device.type == DEVICE
    trained = [weight for weight in modules.parameters() if weight.requires_grad]
    return modules, trainer.make_optimizer(trained, modules["method"])


# kernels of a step of an encoder of 3 layers
KERNELS = {
    "simcse": 393,
    "micse": 693,
    "diffcse": 911,
    "infocse": 695,
    "msse": 1034,
    "simcse+ami": 519,
}
# AMI's form `code` has to know how many entries dropout left
WAITING = ("micse-released", "micse-code")
# parts of names of variants whose steps have only code that other runs have
WITHOUT_OWN_CODE = ("without", "msse_sup-", "-stated", "-notebook", "-vanilla", "dclr-code")
# they have every kind of forward pass
IN_CHUNKS = ("diffcse", "infocse", "msse", "simcse+ami")


def steps():
    """List the run, precision and chunk size of every step that is made."""
    whole = []
    for run in TRAINED:
        if run in WAITING or any(part in run for part in WITHOUT_OWN_CODE):
            continue
        precision = "bf16" if run in KERNELS else "fp32"
        whole.append((run, precision, None))
    return whole + [(run, "bf16", 10) for run in IN_CHUNKS]


def has_queue(spec):
    """Whether the first step of a run fills a queue that the next one reads."""
    names = list(spec.params)
    for params in spec.components.values():
        names += params
    return "queue" in names


@pytest.mark.parametrize(("run", "precision", "chunk_size"), steps())
def test_no_step_waits_for_the_device(run, precision, chunk_size, gpu, make_spec, sentences):
    """Nor does a step have more kernels than are recorded, without compilation. The launch of each
    one costs the host time."""
    spec = make_spec(**RUNS[run])
    modules, optimizer = on_the_device(spec, gpu, chunk_size)
    method = modules["method"]
    components = modules["components"]
    first, second, _ = batches(spec, sentences, method)

    with gpu:
        trainer.optimise(method, components, optimizer, first, precision)
    counts_kernels = chunk_size is None and run in KERNELS  # of a step that sets nothing up
    if not counts_kernels and not has_queue(spec):
        return
    kernels_of_first = gpu.kernels
    with gpu:
        trainer.optimise(method, components, optimizer, second, precision)

    if counts_kernels:
        assert gpu.kernels - kernels_of_first <= KERNELS[run]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_dev_point_waits_for_its_results_alone(precision, gpu, make_spec, smoke_data):
    """The results are cosines, alignment, which vectors are distinct, and uniformity. The vectors
    of several batches are waited for once."""
    modules, _ = on_the_device(make_spec("simcse"), gpu)
    encoder = modules["method"].encoder
    (dev,) = read_sts(smoke_data, "STS-B", "dev")
    model = SentenceEncoder(encoder, "avg", evaluation=Evaluation(batch_size=2))
    gpu.waits = []

    with gpu:
        trainer.dev_point(encoder, "cls_before_pooler", dev, precision)
        assert len(gpu.waits) == 4
        model.vectors(["a", "b", "c"])
    assert len(gpu.waits) == 5


@pytest.mark.parametrize("run", [run for run in TRAINED if run in KERNELS or "compensation" in run])
def test_nothing_is_drawn_on_the_device_where_the_host_draws(run, gpu, make_spec, sentences):
    """test_real_gpu.py compares steps in this way. Otherwise the masks of CPU and GPU would
    differ."""
    spec = make_spec(**RUNS[run])
    modules, optimizer = on_the_device(spec, gpu)
    method = modules["method"]
    components = modules["components"]
    gpu.setting_up = True  # the host reads what its draws depend on

    with sdpa_kernel(SDPBackend.MATH), gpu, HostRandom(DEVICE):
        for batch in batches(spec, sentences, method)[:2]:
            trainer.optimise(method, components, optimizer, batch, "fp32")

    assert not gpu.drawn
