"""Random numbers of a device drawn on the host, so that a device draws what the CPU draws."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only


def is_random(func):
    return torch.Tag.nondeterministic_seeded in func.tags


class HostRandom(TorchDispatchMode):
    """Every random operation on `device` is made on the host, in the form that the CPU gives it:
    dropout, which CUDA fuses, is a mask and a product. Fused attention draws by itself: use
    `sdpa_kernel(SDPBackend.MATH)`, too.
    """

    def __init__(self, device: str):
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        devices = {
            x.device.type for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)
        }
        wanted = torch.device(kwargs["device"]).type if kwargs.get("device") is not None else None
        if not is_random(func) or self.device not in (*devices, wanted):
            return func(*args, **kwargs)
        if func is torch.ops.aten.native_dropout.default:
            x, p, _ = args
            keep = self.to_device(torch.empty_like(x, device="cpu").bernoulli_(1 - p))
            return x * (keep / (1 - p)), keep.bool()
        if func._schema.is_mutable:  # of what it overwrites, the shape alone counts
            x, *rest = args
            return x.copy_(
                func(torch.empty_like(x, device="cpu"), *rest, **kwargs), non_blocking=True
            )
        on_host = tree_map_only(torch.Tensor, lambda t: t.cpu(), (args, kwargs))
        made = func(*on_host[0], **on_host[1] | ({"device": torch.device("cpu")} if wanted else {}))
        return tree_map_only(torch.Tensor, self.to_device, made)

    def to_device(self, x):
        return x.to(self.device, non_blocking=True)
