"""Compute products in bf16 fast, on a CPU that has no instructions for them.

On such a CPU, PyTorch multiplies numbers in bf16 one by one. A product takes five to eighty times
as long as in fp32. Here a product of numbers in bf16 is computed in fp32, and the result is rounded
to bf16. Processors with instructions for bf16 compute the same: they multiply in bf16 and sum in
fp32. Only the order of the sums differs, as it does between any two kinds of processor.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from csebench.base.cpu import cpu_fact
from csebench.plan.schema.declarations import Precision

# instructions of x86 and of ARM, as Linux names them
INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16", "svebf16"}

# products that a model computes; their first argument has the dtype of all
PRODUCTS = {
    torch.ops.aten.mm.default,
    torch.ops.aten.addmm.default,
    torch.ops.aten.bmm.default,
    torch.ops.aten.baddbmm.default,
    torch.ops.aten.linear.default,
}


def fast_products(device: torch.device, precision: Precision) -> AbstractContextManager:
    """Return the context in which products of this precision are fast on this device.

    Enter it before `torch.autocast`, and stay in it for the forward and the backward pass.
    """
    if precision == "bf16" and device.type == "cpu" and lacks_instructions():
        return ProductsInFp32()
    return nullcontext()


@contextmanager
def in_precision(device: torch.device, precision: Precision) -> Iterator[None]:
    """Compute in a precision in this context, which has no backward pass."""
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
    with fast_products(device, precision), autocast:
        yield


@cache
def lacks_instructions() -> bool:
    """Whether this CPU has no instructions for bf16. False if that is unknown."""
    instructions = cpu_fact("flags", "Features")  # the names on x86 and on ARM
    if instructions is None:
        return False
    return not INSTRUCTIONS & set(instructions.split())


class ProductsInFp32(TorchDispatchMode):
    """Compute matrix products of bf16 numbers in fp32, and round the results to bf16."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func not in PRODUCTS or args[0].dtype != torch.bfloat16:
            return func(*args, **(kwargs or {}))
        fp32_arguments = []
        for argument in args:
            if isinstance(argument, torch.Tensor):
                argument = argument.float()
            fp32_arguments.append(argument)
        return func(*fp32_arguments, **(kwargs or {})).bfloat16()
