"""Provenance in every report and score JSON: code, command, packages, hardware, time.

Provenance says how a number came about. It is not part of a run's identity, so nothing in this
module may change an id or a score.
"""

import hashlib
import os
import platform
import resource
import subprocess
import sys
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from csebench.base.cpu import cpu_fact
from csebench.base.gpus import nvidia_smi
from csebench.base.project import ROOT

PACKAGES = (
    "csebench",
    "torch",
    "transformers",
    "tokenizers",
    "numpy",
    "scipy",
    "pydantic",
    "safetensors",
    "scikit-learn",
    "beir",
    "pytrec-eval-terrier",
    "mteb",
    "sentence-transformers",
    "matplotlib",
    "spacy",
)
# environment variables that make the same processor compute other bits (docs/determinism.md)
ARITHMETIC = (
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "OPENBLAS_CORETYPE",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
)
# new files of these kinds count as changes; others cannot change a result
CODE_PATTERNS = ("*.py", "*.yaml", "*.smk", "*.json", "Snakefile")
# Git sets these variables when it runs a hook. They would lead git to the repository of the hook,
# which may be another one.
OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


class Stopwatch:
    """A recorder of provenance. The work takes place between its construction and `record()`."""

    def __init__(self):
        self.started = time.time()
        self.code = code_state()

    def record(self, **more) -> dict:
        """Return the provenance as JSON values, with `more` added.

        Times are in seconds, memory is in MiB.
        """
        import torch
        from threadpoolctl import threadpool_info

        gpu = None
        peak_gpu_mb = None
        if torch.cuda.is_available():
            gpu = torch.cuda.get_device_name()
            peak_gpu_mb = torch.cuda.max_memory_reserved() // 2**20
        drivers = nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader")
        blas_libraries = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
        return {
            **self.code,
            "argv": sys.argv,
            "python": platform.python_version(),
            "packages": {package: _version(package) for package in PACKAGES},
            "processor": processor(),
            "cores": os.cpu_count(),
            "gpu": gpu,
            "driver": drivers.partition("\n")[0],  # all GPUs of a machine have the same one
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "fp32_matmul": torch.get_float32_matmul_precision(),  # highest: no TF32
            "threads": torch.get_num_threads(),
            "blas_threads": sorted({lib["num_threads"] for lib in blas_libraries}),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "environment": {name: os.environ[name] for name in ARITHMETIC if name in os.environ},
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 2),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "peak_gpu_mb": peak_gpu_mb,
            **more,
        }


@cache  # not `cached`, which can be cleared: a process does not run edits made after its imports
def code_state() -> dict:
    """Return the commit, and the sha256 of all changes since then.

    The names of new files of code count as changes. The sha256 is None if there are no changes.
    Both are None outside a git checkout.
    """
    commit = run_git("rev-parse", "HEAD")
    if commit is None and (ROOT / ".git").exists():
        print(
            f"{ROOT}: git cannot read the commit, so results will not record it.",
            file=sys.stderr,
            flush=True,
        )
    edits = run_git("diff", "--no-ext-diff", "HEAD", "--", ".", ":!results")
    new_files = run_git(
        "ls-files", "--others", "--exclude-standard", "--", *CODE_PATTERNS, ":!results"
    )
    changes = (edits or b"") + (new_files or b"")
    state: dict[str, str | None] = {"commit": None, "dirty_diff_sha256": None}
    if commit:
        state["commit"] = commit.decode().strip()
    if changes:
        state["dirty_diff_sha256"] = hashlib.sha256(changes).hexdigest()
    return state


def run_git(*args: str) -> bytes | None:
    """Run a git command on the project.

    By default, git refuses a checkout of another user, because its git configuration can run code.
    Here this is allowed, because csebench already runs Python code of the checkout.

    Returns:
        The output of the command; None if it fails, for example outside a checkout.
    """
    command = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", *args]
    environment = {name: value for name, value in os.environ.items() if name not in OF_HOOKS}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
    except OSError:  # git is not installed, or may not be run
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def processor() -> str:
    """Return the name of the CPU."""
    return cpu_fact("model name") or platform.processor() or platform.machine()


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
