"""Provenance of a result: code, command, packages, hardware and time, as they are written into every score JSON.

Nothing here is part of a run's identity (csebench/plan/spec.py).
"""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import subprocess
import sys
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from csebench import ROOT

PACKAGES = ("csebench", "torch", "transformers", "tokenizers", "numpy", "scipy", "pydantic", "safetensors")
PACKAGES += ("scikit-learn", "beir", "pytrec-eval-terrier", "mteb", "sentence-transformers", "matplotlib", "spacy")


def run_git(*args: str) -> str | None:
    """What a git command prints about the project; None where it fails, as outside a checkout."""
    done = subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@cache  # not `cached`: a process imports its code once, and later edits are not what it runs
def code_state() -> dict:
    """Commit, and sha256 of all changes since, new files included; None for a clean tree, or outside a checkout."""
    commit = run_git("rev-parse", "HEAD")
    diff = run_git("diff", "HEAD", "--", ".", ":!results") or ""
    for new in (run_git("ls-files", "--others", "--exclude-standard", "--", ".", ":!results") or "").splitlines():
        diff += f"{new} {hashlib.sha256((ROOT / new).read_bytes()).hexdigest()}\n"
    return {
        "commit": commit.strip() if commit else None,
        "dirty_diff_sha256": hashlib.sha256(diff.encode()).hexdigest() if diff else None,
    }


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def processor() -> str:
    """Name of the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


class Stopwatch:
    """Provenance of the work between construction and `record()`."""

    def __init__(self):
        self.started = time.time()
        self.code = code_state()

    def record(self, **more) -> dict:
        """Provenance as JSON values, with `more` added; times in seconds, memory in MiB."""
        import torch

        gpu = torch.cuda.is_available()
        return {
            **self.code,
            "argv": sys.argv,
            "python": platform.python_version(),
            "packages": {p: _version(p) for p in PACKAGES},
            "processor": processor(),
            "cores": os.cpu_count(),
            "gpu": torch.cuda.get_device_name() if gpu else None,
            "threads": torch.get_num_threads(),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 2),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "peak_gpu_mb": torch.cuda.max_memory_allocated() // 2**20 if gpu else None,
            **more,
        }
