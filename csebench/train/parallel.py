"""Data parallel inside a run: processes that torchrun or `accelerate launch` started, each with its share of a batch.

A process encodes its share; vectors are gathered, so that every process has the loss of the whole batch, all of whose
sentences are negatives, as in the official code (SimCSE models.py:171-192). Terms over tokens or attention are means
over the share, which are averaged. Gradients come out as those of one process with the whole batch; the official ones
are smaller by the number of processes, which only clipping and AdamW's epsilon notice. Batch normalisation in a head
is over the share, in a projector behind the gathered vectors (SCD) over the batch. Only nearly those of the whole
batch: replaced-token detection, and the noise of MSSE's released layer-wise term. One process gets back what it gave.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from csebench.base.processes import end_with_parent, is_distributed, rank


def start() -> None:
    """Joins the processes, by NCCL or gloo. They end with torchrun, which holds the lock of the run."""
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
    """This process's part of a batch: equal parts of whole groups of sentences; what is left over is left out."""
    size = len(batch) // (world_size() * group) * group if world_size() > 1 else len(batch)
    return batch[rank() * size : (rank() + 1) * size]


class Gathered(torch.autograd.Function):
    """The same rows in every process. All have the same loss of them, so a process has the gradient of its own rows
    without asking the others: that of one loss, as often as there are processes, for gradients are averaged."""

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
    """(blocks * n, …) of every process -> (blocks * N, …): the rows of all, each block in the order of the batch."""
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
    """The weight of a mean over this process's items in the mean over processes, which may have fewer or more."""
    if world_size() == 1:
        return 1.0
    count = torch.full((), float(items), device=device)
    return count / mean(count)


def average_gradients(parameters: list[torch.nn.Parameter]) -> None:
    if world_size() == 1:
        return
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    parts = mean(torch.cat([g.flatten() for g in gradients])).split([g.numel() for g in gradients])
    for p, part in zip(parameters, parts, strict=True):
        p.grad = part.view_as(p)
