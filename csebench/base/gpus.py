"""The GPUs of this machine: which there are, and which of them this process holds."""

import fcntl
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path

from csebench.base.errors import BadInput, RunFailed
from csebench.base.locks import take
from csebench.base.processes import is_distributed

POLL_SECONDS = 1


_held: list[int] = []  # open files of the locks of this process's GPUs


def nvidia_smi(*options: str) -> str:
    """What nvidia-smi prints; nothing where there is no such program."""
    try:
        return subprocess.run(
            ["nvidia-smi", *options], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return ""


def device_type() -> str:
    """`cuda` or `cpu`. Raises RunFailed where torch can use no GPU and CUDA_VISIBLE_DEVICES
    names one, as it does in a process that has locked one; SLURM writes NoDevFiles where it
    assigned none."""
    import torch

    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not torch.cuda.is_available() and gpus not in ("", "-1", "NoDevFiles"):
        what_to_do = "Compare `nvidia-smi -L`; `--device cpu` computes on the CPU."
        raise RunFailed(
            f"PyTorch {torch.__version__} cannot use the GPU {gpus} of CUDA_VISIBLE_DEVICES."
            f" {what_to_do}"
        )
    return "cuda" if torch.cuda.is_available() else "cpu"


def visible_gpus() -> list[str]:
    """UUIDs of the GPUs that this process may use, or of the MIG slices that a GPU is cut into;
    none where PyTorch is built without CUDA. As in CUDA, CUDA_VISIBLE_DEVICES ends at the first
    name of no GPU; a number is that of nvidia-smi, which CUDA's own may differ from where cards
    differ."""
    named, of_gpu = {}, []  # UUIDs by number and UUID of a GPU, and by UUID of a slice
    for number, uuid in re.findall(r"^(?:GPU (\d+))?.*\(UUID: (.+)\)", nvidia_smi("-L"), re.M):
        if number:
            named[number] = named[uuid] = of_gpu = [uuid]
        else:
            of_gpu[:] = [*(other for other in of_gpu if other.startswith("MIG-")), uuid]
            named[uuid] = [uuid]
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = filter(str.isdigit, named) if allowed is None else map(str.strip, allowed.split(","))
    whole = (
        next((n for n in named if n == name or (name[3:4] == "-" and n.startswith(name))), "")
        for name in names
    )
    # CUDA takes shortened UUIDs, too
    known = [] if version("torch").endswith("+cpu") else takewhile(bool, whole)
    return list(dict.fromkeys(uuid for name in known for uuid in named[name]))


def acquire_gpus(count: int = 0, sharing: int = 1, needed_mb: int = 0) -> None:
    """Wait until GPUs are free, lock them until this process ends, and name them in
    CUDA_VISIBLE_DEVICES, which CUDA reads once: so before torch is imported. Does nothing in a
    process that has GPUs or that torchrun started. A SLURM job without an assigned GPU sees none.

    Args:
        count: GPUs; 0: one, or the CPU where there is none. Raises BadInput where fewer are
            visible.
        sharing: runs that may be on one GPU at a time; a run that shares never joins one that does
            not. 0: one more beside those that share, which it does not wait for.
        needed_mb: memory that a GPU must have free, if it has as much at all.
    """
    if is_distributed() or _held:
        return
    if "SLURM_JOB_ID" in os.environ:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    # NCCL connects no slices
    gpus = [gpu for gpu in visible_gpus() if count <= 1 or not gpu.startswith("MIG-")]
    if len(gpus) < count:
        seen = (
            f"PyTorch {version('torch')}, CUDA_VISIBLE_DEVICES:"
            f" {os.environ.get('CUDA_VISIBLE_DEVICES', 'not set')}"
        )
        what_to_do = (
            "Compare `nvidia-smi -L`; ask for fewer, 0 for the CPU (in a SLURM profile, gpu: 0)."
        )
        raise BadInput(f"GPUs requested: {count}, available: {len(gpus)} ({seen}). {what_to_do}")
    size = f", each with {needed_mb:,} MiB of memory" if needed_mb else ""
    line = f"waiting for {count or 1} of {len(gpus)} GPUs to be free{size}\n"
    while gpus and not _lock_gpus(gpus, count or 1, sharing, needed_mb):
        print(line, end="", file=sys.stderr, flush=True)
        line = ""
        time.sleep(POLL_SECONDS)


def _lock_gpus(gpus: list[str], count: int, sharing: int, needed_mb: int) -> bool:
    """Lock so many free GPUs, those with the most free memory, if there are so many. A GPU has one
    lock, exclusive or shared, and one per place for those that share it, all in a folder of this
    user in the temporary folder.
    """
    folder = Path(tempfile.gettempdir()) / f"csebench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise BadInput(
            f"{folder}: belongs to another user; delete it, or set TMPDIR to another folder."
        )

    def lock(name: str, kind: int) -> bool:
        file = take(folder / f"{name}.lock", kind | fcntl.LOCK_NB)
        _held.extend([] if file is None else [file])
        return file is not None

    # no slices
    listed = nvidia_smi(
        "--query-gpu=uuid,memory.free,memory.total", "--format=csv,noheader,nounits"
    )
    memory = dict.fromkeys(gpus, (0, 0))  # MiB free, and in all
    memory |= {
        gpu: (int(free), int(whole))
        for gpu, free, whole in re.findall(r"(\S+), (\d+), (\d+)", listed)
    }
    mine = []
    for gpu in sorted(gpus, key=lambda gpu: -memory[gpu][0]):
        held_before, fits = len(_held), not memory[gpu][0] < needed_mb <= memory[gpu][1]
        places = (f"{gpu}.{place}" for place in range(sharing) or ["beside"])
        kind = fcntl.LOCK_EX if sharing == 1 else fcntl.LOCK_SH
        if (
            fits
            and len(mine) < count
            and lock(gpu, kind)
            and any(lock(p, fcntl.LOCK_EX) for p in places)
        ):
            mine.append(gpu)
        else:
            _release(held_before)
    if len(mine) < count:
        _release(0)
        return False
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(mine)
    return True


def _release(keep: int) -> None:
    """Release the locks of this process but the first `keep`."""
    while len(_held) > keep:
        os.close(_held.pop())
