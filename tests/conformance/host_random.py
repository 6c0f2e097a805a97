"""Random numbers of a device drawn on the host, so that a device draws what the CPU draws."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only


def is_random(func):
    return torch.Tag.nondeterministic_seeded in func.tags


class HostRandom(TorchDispatchMode):
    """Draws the random numbers of every operation on a device on the host, as the CPU draws them.

    CUDA fuses dropout. Here, dropout is a mask and a product, as on the CPU. Fused attention draws
    its own numbers, so use `sdpa_kernel(SDPBackend.MATH)`, too.
    """

    def __init__(self, device: str):
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not is_random(func) or not self.is_on_device(args, kwargs):
            return func(*args, **kwargs)
        if func is torch.ops.aten.native_dropout.default:
            return self.dropout(*args)
        if func._schema.is_mutable:
            return self.overwrite(func, args, kwargs)
        return self.draw(func, args, kwargs)

    def is_on_device(self, args, kwargs):
        """Whether an argument is on the device, or the result has to be."""
        requested = kwargs.get("device")
        if requested is not None and torch.device(requested).type == self.device:
            return True
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        return any(tensor.device.type == self.device for tensor in tensors)

    def dropout(self, x, p, _):
        mask = self.to_device(torch.empty_like(x, device="cpu").bernoulli_(1 - p))
        return x * (mask / (1 - p)), mask.bool()

    def overwrite(self, func, args, kwargs):
        """Draw into a tensor of the host, and copy it over the tensor of the device."""
        x, *rest = args
        drawn = func(torch.empty_like(x, device="cpu"), *rest, **kwargs)
        return x.copy_(drawn, non_blocking=True)

    def draw(self, func, args, kwargs):
        """Do the operation on the host, and send the results to the device."""
        host_args, host_kwargs = tree_map_only(torch.Tensor, lambda x: x.cpu(), (args, kwargs))
        if host_kwargs.get("device") is not None:
            host_kwargs = host_kwargs | {"device": torch.device("cpu")}
        drawn = func(*host_args, **host_kwargs)
        return tree_map_only(torch.Tensor, self.to_device, drawn)

    def to_device(self, x):
        return x.to(self.device, non_blocking=True)
