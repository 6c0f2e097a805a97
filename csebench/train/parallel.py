"""Data parallel inside a run: processes that torchrun or `accelerate launch` started, each with its
share of a batch.

A process encodes its share; vectors are gathered, so that every process has the loss of the whole
batch, all of whose sentences are negatives, as in the official code (SimCSE models.py:171-192).
Terms over tokens or attention are means over the share, which are averaged. Gradients come out as
those of one process with the whole batch; the official ones are smaller by the number of processes,
which only clipping and AdamW's epsilon notice. Batch normalisation in a head is over the share, in
a projector behind the gathered vectors (SCD) over the batch. Only nearly those of the whole batch:
replaced-token detection, and the noise of MSSE's released layer-wise term. One process gets back
what it gave.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn

from csebench.base.processes import is_distributed, rank
from csebench.base.supervision import end_with_parent

BUCKET = 25 * 2**20  # bytes of gradients that are sent at a time, as in DistributedDataParallel


def start_processes() -> None:
    """Joins the processes, by NCCL or gloo. They end with torchrun, which holds the lock of the
    run."""
    if is_distributed():
        end_with_parent()
        from accelerate import PartialState

        PartialState(cpu=not torch.cuda.is_available())


def stop() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def world_size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def shard(batch: list, group: int = 1) -> list:
    """This process's part of a batch: equal parts of whole groups of sentences; what is left
    over is left out."""
    size = len(batch) // (world_size() * group) * group if world_size() > 1 else len(batch)
    return batch[rank() * size : (rank() + 1) * size]


class Gathered(torch.autograd.Function):
    """The same rows in every process. All have the same loss of them, so a process has the gradient
    of its own rows without asking the others: that of one loss, as often as there are processes,
    for gradients are averaged.
    """

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(world_size())]
        dist.all_gather(parts, x.contiguous())
        ctx.rows = len(x)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        return world_size() * gradient[rank() * ctx.rows : (rank() + 1) * ctx.rows]


def gather(x: torch.Tensor, blocks: int = 1) -> torch.Tensor:
    """(blocks * n, …) of every process -> (blocks * N, …): the rows of all, each block in the
    order of the batch."""
    if world_size() == 1:
        return x
    rows = Gathered.apply(x).unflatten(0, (world_size(), blocks, -1))
    return rows.transpose(0, 1).flatten(0, 2)


def mean(x: torch.Tensor) -> torch.Tensor:
    """Over the processes, without gradient."""
    if world_size() == 1:
        return x
    total = x.detach().clone()
    dist.all_reduce(total)
    return total / world_size()


def any_rank(flag: bool, device) -> bool:
    """Whether it is true in any process. Waits for the device."""
    return bool(mean(torch.full((), float(flag), device=device)) > 0)


def mean_weight(items: int, device) -> torch.Tensor | float:
    """The weight of a mean over this process's items in the mean over processes, which may have
    fewer or more."""
    if world_size() == 1:
        return 1.0
    count = torch.full((), float(items), device=device)
    return count / mean(count)


def buckets_of(weights: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Group weights into buckets of BUCKET bytes, nearly in the order of the backward pass."""
    buckets: list[list[nn.Parameter]] = [[]]
    for weight in reversed(weights):
        if sum(w.nbytes for w in buckets[-1]) >= BUCKET:
            buckets.append([])
        buckets[-1].append(weight)
    return buckets


@contextmanager
def averaged_gradients(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Average the gradients of a backward pass over the processes, in buckets of BUCKET bytes,
    while the pass goes on.

    A bucket is sent when all its gradients are there, the buckets before it too, so that every
    process sends the same ones in the same order. Weights that a process did not use, as where its
    share has no masked token, have the gradient 0 there. A weight's gradient is complete when it
    appears, in chunks, too.
    """
    if world_size() == 1:
        yield
        return
    weights = dict.fromkeys(w for module in modules for w in module.parameters() if w.requires_grad)
    buckets = buckets_of([*weights])
    there, sent = set(), []

    def send(bucket: list[nn.Parameter]) -> None:
        flat = torch.cat(
            [(torch.zeros_like(w) if w.grad is None else w.grad).flatten() for w in bucket]
        )
        flat /= world_size()
        for weight, part in zip(bucket, flat.split([w.numel() for w in bucket]), strict=True):
            weight.grad = part.view_as(weight)
        sent.append(dist.all_reduce(flat, async_op=True))

    def note(weight: nn.Parameter) -> None:
        there.add(weight)
        while buckets and there.issuperset(buckets[0]):
            send(buckets.pop(0))

    hooks = [weight.register_post_accumulate_grad_hook(note) for weight in weights]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    for bucket in buckets:
        send(bucket)
    for work in sent:
        work.wait()
