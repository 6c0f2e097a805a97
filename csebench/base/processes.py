"""The rank of this process among those that torchrun started, read from the environment; its end with its parent; its
threads.

The exchange of tensors between processes is in csebench/train/parallel.py.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # of Linux's prctl


def is_distributed() -> bool:
    """Whether torchrun (or accelerate) started this process."""
    return "WORLD_SIZE" in os.environ


def rank() -> int:
    """Number of this process, from 0; 0 for a single process."""
    return int(os.environ.get("RANK", 0)) if is_distributed() else 0


def is_main_process() -> bool:
    """Whether this process writes files and log lines: only the process of rank 0 does."""
    return rank() == 0


def use_threads(count: int) -> None:
    """Compute with so many CPU threads, in torch and in the BLAS of numpy and scipy, whatever the environment says:
    another number gives other bits."""
    import scipy.linalg  # noqa: F401  # loads its BLAS, of which the limit holds
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(count)
    threadpool_limits(count, user_api="blas")


def end_with_parent() -> None:
    """Get SIGTERM when the parent process ends, however it ends; only on Linux."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), signal.SIGTERM)
