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

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from csebench.base.processes import is_distributed, rank
from csebench.base.supervision import end_with_parent

BUCKET = 25 * 2**20  # bytes of gradients that are sent at a time, as in DistributedDataParallel


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
    """Return the weight of this process's mean in the mean over processes.

    Args:
        items: number of items in this process's mean. Other processes may have fewer or more.
    """
    if world_size() == 1:
        return 1.0
    count = torch.full((), float(items), device=device)
    return count / mean(count)


@contextmanager
def averaged_gradients(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Average gradients over the processes while the backward pass computes them.

    Gradients are sent in buckets of about BUCKET bytes. A bucket is sent when all its gradients are
    complete and all earlier buckets are sent. So every process sends the same buckets in the same
    order. A process may not use a weight, for example because its share has no masked token. Then
    the gradient of this weight counts as 0.

    A hook learns when a gradient is complete, even if the batch is computed in chunks.
    """
    if world_size() == 1:
        yield
        return
    weights: dict[nn.Parameter, None] = {}  # an ordered set, because modules may share weights
    for module in modules:
        for weight in module.parameters():
            if weight.requires_grad:
                weights[weight] = None
    waiting = buckets_of([*weights])
    complete: set[nn.Parameter] = set()
    transfers = []

    def note_complete(weight: nn.Parameter) -> None:
        complete.add(weight)
        while waiting and complete.issuperset(waiting[0]):
            transfers.append(send_average(waiting.pop(0)))

    hooks = [weight.register_post_accumulate_grad_hook(note_complete) for weight in weights]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    for bucket in waiting:
        transfers.append(send_average(bucket))
    for transfer in transfers:
        transfer.wait()


def buckets_of(weights: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Group weights into buckets of about BUCKET bytes, last weights first.

    The backward pass completes gradients in nearly this order.
    """
    buckets: list[list[nn.Parameter]] = [[]]
    for weight in reversed(weights):
        if sum(earlier.nbytes for earlier in buckets[-1]) >= BUCKET:
            buckets.append([])
        buckets[-1].append(weight)
    return buckets


def send_average(bucket: list[nn.Parameter]) -> Any:
    """Start to average the gradients of a bucket over the processes.

    The gradients become parts of one flat tensor. When the transfer is done, the averages are in
    it, and so in the gradients.

    Returns:
        The transfer, which the caller must wait for.
    """
    gradients = []
    for weight in bucket:
        gradient = torch.zeros_like(weight) if weight.grad is None else weight.grad
        gradients.append(gradient.flatten())
    flat = torch.cat(gradients)
    flat /= world_size()
    sizes = [weight.numel() for weight in bucket]
    for weight, part in zip(bucket, flat.split(sizes), strict=True):
        weight.grad = part.view_as(weight)
    return dist.all_reduce(flat, async_op=True)
