"""Share the batches of a run among processes (data parallel).

torchrun or `accelerate launch` starts the processes. Each encodes its share of a batch. Vectors are
gathered, so every process computes the loss of the whole batch, in which all sentences of the batch
are negatives. This is what the official code does (SimCSE models.py:171-192). Terms over tokens or
attention are means over a share, and these means are averaged.

Gradients are the same as with one process and the whole batch. In the official code they are
smaller by the number of processes, which only clipping and AdamW's epsilon notice. Batch
normalisation in a head is over the share. In a projector of gathered vectors (SCD) it is over the
batch. Two results differ a little if processes share the batch: replaced-token detection, and the
noise of MSSE's released layer-wise term.

With one process, every function returns what it was given.
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
        end_with_parent()  # torchrun, which holds the lock of the run
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
    """Return this process's part of a batch.

    All parts are equal and consist of whole groups of sentences. The sentences that remain are left
    out.
    """
    if world_size() == 1:
        return batch
    groups = len(batch) // (world_size() * group)
    size = groups * group
    start = rank() * size
    return batch[start : start + size]


class Gathered(torch.autograd.Function):
    """The rows of all processes, in the order of the processes.

    Every process computes the same loss of them. So it has the gradient of its own rows without
    asking the others. It multiplies this gradient by the number of processes, because gradients are
    averaged later.
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
        blocks: how often `x` shows this process's n sentences. Each block of the result shows all N
            sentences, in the order of the batch.
    """
    if world_size() == 1:
        return x
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
    """Whether a flag is set in any process. Waits for the device."""
    return bool(mean(torch.full((), float(flag), device=device)) > 0)


def mean_weight(items: int, device) -> torch.Tensor | float:
    """Return the weight of this process's mean in the mean over processes.

    Args:
        items: how many items this process's mean is over. Other processes may have fewer or more.
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
    weights: dict[nn.Parameter, None] = {}  # a set in order: modules may share weights
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
