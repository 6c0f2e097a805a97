"""Which of several processes this one is, as torchrun states it in the environment. What they exchange:
csebench/train/parallel.py."""

from __future__ import annotations

import os


def is_distributed() -> bool:
    """Whether torchrun (or accelerate) started this process."""
    return "WORLD_SIZE" in os.environ


def rank() -> int:
    """Number of this process, from 0; 0 where there is only one."""
    return int(os.environ.get("RANK", 0)) if is_distributed() else 0


def is_main_process() -> bool:
    """Whether this process writes files and log lines: one of several does."""
    return rank() == 0
