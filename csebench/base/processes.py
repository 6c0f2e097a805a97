"""The rank of this process among those that torchrun started, read from the environment.

The exchange of tensors between processes is in csebench/train/parallel.py.
"""

from __future__ import annotations

import os


def is_distributed() -> bool:
    """Whether torchrun (or accelerate) started this process."""
    return "WORLD_SIZE" in os.environ


def rank() -> int:
    """Number of this process, from 0; 0 for a single process."""
    return int(os.environ.get("RANK", 0)) if is_distributed() else 0


def is_main_process() -> bool:
    """Whether this process writes files and log lines: only the process of rank 0 does."""
    return rank() == 0
