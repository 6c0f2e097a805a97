"""Share the batches of a run among processes (data parallel).

torchrun or `accelerate launch` starts the processes. Each encodes its share of a batch. Then the
vectors of all processes are gathered. So every process computes the loss of the whole batch, in
which all sentences of the batch are negatives, as in the official code (SimCSE models.py:171-192).
Terms over tokens or attention are means over a share, and these means are averaged.

Gradients are the same as with one process and the whole batch. In the official code, gradients are
divided by the number of processes. This only matters to clipping and to AdamW's epsilon.

Some numbers depend on the number of processes. Batch normalisation in a head uses the statistics of
a share. In a projector of gathered vectors (SCD), it uses those of the batch. Replaced-token
detection and the noise of MSSE's released layer-wise term also differ a little.

With one process, nothing is sent.
"""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import nn

from csebench.base.processes import is_distributed, rank
from csebench.base.supervision import end_with_parent


def start_processes() -> None:
    """Join the processes of the run, by NCCL or gloo."""
    if is_distributed():
        end_with_parent()  # the parent is torchrun, which holds the lock of the run
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available())


def stop() -> None:
    """Leave the group of processes, if there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def world_size() -> int:
    """Return the number of processes that share the run."""
    if dist.is_initialized():
        return dist.get_world_size()
    return 1


def shard(batch: list, group: int = 1) -> list:
    """Return this process's share of a batch.

    All shares have the same size and consist of whole groups of sentences. Sentences that remain
    are left out.
    """
    if world_size() == 1:
        return batch
    groups = len(batch) // (world_size() * group)
    size = groups * group
    start = rank() * size
    return batch[start : start + size]


class Gathered(torch.autograd.Function):
    """Gather the rows of all processes, in the order of the processes.

    Every process computes the same loss from these rows. So it knows the gradient of its own rows
    without asking the others. It multiplies this gradient by the number of processes, because
    gradients are averaged later.
    """

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(world_size())]
        dist.all_gather(parts, x.contiguous())
        ctx.rows = len(x)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        start = rank() * ctx.rows
        return world_size() * gradient[start : start + ctx.rows]


def gather(x: torch.Tensor, blocks: int = 1) -> torch.Tensor:
    """Gather the rows of all processes, (blocks * n, …) of each -> (blocks * N, …).

    Args:
        blocks: how many times `x` repeats this process's n sentences. Each block of the result has
            all N sentences, in the order of the batch.
    """
    if world_size() == 1:
        return x
    # (processes, blocks, n, …), and then blocks first
    by_process = Gathered.apply(x).unflatten(0, (world_size(), blocks, -1))
    return by_process.transpose(0, 1).flatten(0, 2)


def mean(x: torch.Tensor) -> torch.Tensor:
    """Average a tensor over the processes, without gradient."""
    if world_size() == 1:
        return x
    total = x.detach().clone()
    dist.all_reduce(total)
    return total / world_size()


def any_rank(flag: bool, device) -> bool:
    """Whether a flag is set in any process. The call waits for the device and all processes."""
    return bool(mean(torch.full((), float(flag), device=device)) > 0)


def mean_weight(items: int, device) -> torch.Tensor | float:
    """Return the factor for this process's mean in the average over processes.

    Args:
        items: number of items in this process's mean. Other processes may have fewer or more.
    """
    if world_size() == 1:
        return 1.0
    count = torch.full((), float(items), device=device)
    return count / mean(count)


def average_gradients(modules: Iterable[nn.Module]) -> None:
    """Replace the gradients of modules by their average over the processes.

    They are sent as one tensor, so every process sends the same ones in the same order. A weight
    that a process did not use, for example because its share has no masked token, has the gradient
    0 there.
    """
    if world_size() == 1:
        return
    weights: dict[nn.Parameter, None] = {}  # an ordered set, because modules may share weights
    for module in modules:
        for weight in module.parameters():
            if weight.requires_grad:
                weights[weight] = None
    gradients = []
    for weight in weights:
        gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
        gradients.append(gradient.flatten())
    average = torch.cat(gradients)
    average /= world_size()
    dist.all_reduce(average)
    sizes = [weight.numel() for weight in weights]
    for weight, part in zip(weights, average.split(sizes), strict=True):
        weight.grad = part.view_as(weight)
