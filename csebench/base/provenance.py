"""Provenance in every score JSON: code, command, packages, hardware, time. None of it is part of
a run's identity."""

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
)
PACKAGES += (
    "scikit-learn",
    "beir",
    "pytrec-eval-terrier",
    "mteb",
    "sentence-transformers",
    "matplotlib",
    "spacy",
)
# what makes the same processor compute other bits (docs/determinism.md)
ARITHMETIC = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
ARITHMETIC += ("OPENBLAS_CORETYPE", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE")
# new files of other kinds change no result
CODE_PATTERNS = ("*.py", "*.yaml", "*.smk", "*.json", "Snakefile")
# set for hooks of git, perhaps another repository's
OF_HOOKS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


def run_git(*args: str) -> bytes | None:
    """What a git command prints about the project; None where it fails, as outside a checkout,
    which may belong to another user: whoever runs its Python need not fear its git
    configuration."""
    command = ["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", *args]
    environment = {name: value for name, value in os.environ.items() if name not in OF_HOOKS}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
    except OSError:  # it is not installed, or must not be run
        return None
    return done.stdout if done.returncode == 0 else None


@cache  # not `cached`: a process imports its code once, and later edits are not what it runs
def code_state() -> dict:
    """Commit, and sha256 of all changes since, with the names of new files of code; None for a
    clean tree."""
    commit = run_git("rev-parse", "HEAD")
    if commit is None and (ROOT / ".git").exists():
        print(
            f"{ROOT}: git cannot read the commit, so results will not record it.",
            file=sys.stderr,
            flush=True,
        )
    changes = run_git("diff", "--no-ext-diff", "HEAD", "--", ".", ":!results") or b""
    changes += (
        run_git("ls-files", "--others", "--exclude-standard", "--", *CODE_PATTERNS, ":!results")
        or b""
    )
    changes_sha256 = hashlib.sha256(changes).hexdigest() if changes else None
    return {
        "commit": commit.decode().strip() if commit else None,
        "dirty_diff_sha256": changes_sha256,
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
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
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
        from threadpoolctl import threadpool_info

        gpu = torch.cuda.is_available()
        return {
            **self.code,
            "argv": sys.argv,
            "python": platform.python_version(),
            "packages": {p: _version(p) for p in PACKAGES},
            "processor": processor(),
            "cores": os.cpu_count(),
            "gpu": torch.cuda.get_device_name() if gpu else None,
            "driver": (
                nvidia_smi("--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[0]
            ),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "fp32_matmul": torch.get_float32_matmul_precision(),  # highest: no TF32
            "threads": torch.get_num_threads(),
            "blas_threads": sorted(
                {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}
            ),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "environment": {name: os.environ[name] for name in ARITHMETIC if name in os.environ},
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 2),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "peak_gpu_mb": torch.cuda.max_memory_reserved() // 2**20 if gpu else None,
            **more,
        }
