"""Random numbers of a device drawn on the host, so that a device draws what the CPU draws."""

from contextlib import ExitStack

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only


def is_random(func):
    return torch.Tag.nondeterministic_seeded in func.tags


class HostRandom(TorchDispatchMode):
    """Every random operation on `device` is made on the host, in the form that the CPU gives it: dropout, which CUDA
    fuses, is a mask and a product, also inside of attention, whose fused kernels draw by themselves."""

    def __init__(self, device: str):
        super().__init__()
        self.device = device
        self.moved = set()  # names of the operations
        self.unfused = ExitStack()

    def __enter__(self):
        self.unfused.enter_context(sdpa_kernel(SDPBackend.MATH))
        return super().__enter__()

    def __exit__(self, *error):
        self.unfused.close()
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        devices = {x.device.type for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        wanted = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else None
        if not is_random(func) or self.device not in (*devices, wanted):
            return func(*args, **kwargs)
        self.moved.add(str(func))
        if func is torch.ops.aten.native_dropout.default:
            x, p, _ = args
            keep = self.to_device(torch.empty_like(x, device="cpu").bernoulli_(1 - p))
            return x * (keep / (1 - p)), keep.bool()
        if func._schema.is_mutable:  # of what it overwrites, the shape alone counts
            x, *rest = args
            return x.copy_(func(torch.empty_like(x, device="cpu"), *rest, **kwargs), non_blocking=True)
        on_host = tree_map_only(torch.Tensor, lambda t: t.cpu(), (args, kwargs))
        made = func(*on_host[0], **on_host[1] | ({"device": torch.device("cpu")} if wanted else {}))
        return tree_map_only(torch.Tensor, self.to_device, made)

    def to_device(self, x):
        return x.to(self.device, non_blocking=True)
