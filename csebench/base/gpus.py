"""The GPUs of this machine: which of them are visible, and which this process has locked.

A process locks its GPUs before it imports torch, so that csebench puts no two runs on one GPU,
unless they may share it. csebench/train uses the GPUs.
"""

import fcntl
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from csebench.base.errors import BadInput, RunFailed
from csebench.base.locks import take
from csebench.base.processes import is_distributed

POLL_SECONDS = 1
_held: list[int] = []  # open files of the locks of this process's GPUs


def device_type() -> str:
    """Return the type of the device to compute on: `cuda` or `cpu`.

    Raises:
        RunFailed: torch can use no GPU, although CUDA_VISIBLE_DEVICES names one. The user or
            `acquire_gpus` has set this variable.
    """
    import torch

    if torch.cuda.is_available():
        return "cuda"
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if gpus not in ("", "-1", "NoDevFiles"):  # NoDevFiles: SLURM assigned no GPU
        raise RunFailed(
            f"PyTorch {torch.__version__} cannot use the GPU {gpus} of CUDA_VISIBLE_DEVICES."
            " Compare `nvidia-smi -L`; `--device cpu` computes on the CPU."
        )
    return "cpu"


def acquire_gpus(count: int = 0, sharing: int = 1, needed_mb: int = 0) -> None:
    """Wait until GPUs are free, and lock them until this process ends.

    Their names are written to CUDA_VISIBLE_DEVICES. CUDA reads that variable once, so call this
    before torch is imported. Nothing happens in a process that already holds GPUs or that torchrun
    started. A SLURM job without an assigned GPU sees none.

    Args:
        count: number of GPUs. 0 means one, or the CPU if there is none.
        sharing: number of runs that may be on one GPU at a time. A run that shares never joins a
            run that does not share. 0 takes an extra place on a GPU that others share, which
            does not count towards that number.
        needed_mb: memory in MiB that must be free on a GPU. A GPU whose total memory is smaller is
            used as well, because it would never have so much free.

    Raises:
        BadInput: fewer GPUs are visible.
    """
    if is_distributed() or _held:
        return
    if "SLURM_JOB_ID" in os.environ:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    gpus = visible_gpus()
    if count > 1:  # NCCL cannot connect MIG slices
        gpus = [gpu for gpu in gpus if not gpu.startswith("MIG-")]
    if len(gpus) < count:
        allowed = os.environ.get("CUDA_VISIBLE_DEVICES", "not set")
        raise BadInput(
            f"GPUs requested: {count}, available: {len(gpus)} (PyTorch {version('torch')},"
            f" CUDA_VISIBLE_DEVICES: {allowed}). Compare `nvidia-smi -L`; ask for fewer, 0 for the"
            " CPU (in a SLURM profile, gpu: 0)."
        )
    if not gpus:
        return

    count = count or 1
    if _lock_gpus(gpus, count, sharing, needed_mb):
        return
    line = f"waiting for {count} of {len(gpus)} GPUs to be free"
    if needed_mb:
        line += f", each with {needed_mb:,} MiB of memory"
    print(line, file=sys.stderr, flush=True)
    while not _lock_gpus(gpus, count, sharing, needed_mb):
        time.sleep(POLL_SECONDS)


# ---------------------------------------------------------------- which GPUs there are


def visible_gpus() -> list[str]:
    """List the GPUs that this process may use, by their UUIDs.

    A GPU that is cut into MIG slices is listed as its slices. The list is empty if PyTorch is built
    without CUDA. In CUDA_VISIBLE_DEVICES, the first name that is no GPU ends the list, as in CUDA.
    A number there is read as nvidia-smi numbers GPUs, although CUDA may number GPUs of different
    models in another order.
    """
    if version("torch").endswith("+cpu"):
        return []
    devices = _devices_by_name()
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        names = [name for name in devices if name.isdigit()]
    else:
        names = [name.strip() for name in allowed.split(",")]
    visible: list[str] = []
    for name in names:
        full_name = _full_name(name, devices)
        if full_name is None:
            break
        for uuid in devices[full_name]:
            if uuid not in visible:  # a name may occur twice
                visible.append(uuid)
    return visible


@dataclass
class _ListedGpu:
    """A GPU in the output of `nvidia-smi -L`."""

    number: str
    uuid: str
    slices: list[str] = field(default_factory=list)  # UUIDs


def _devices_by_name() -> dict[str, list[str]]:
    """Find the UUIDs that each name in CUDA_VISIBLE_DEVICES stands for.

    A GPU has its number and its UUID as names, and a slice has its UUID. nvidia-smi prints a line
    `GPU 0: … (UUID: GPU-…)` for each GPU, and below it a line `MIG … (UUID: MIG-…)` for each slice.
    """
    gpus: list[_ListedGpu] = []
    for number, uuid in re.findall(r"^(?:GPU (\d+))?.*\(UUID: (.+)\)", nvidia_smi("-L"), re.M):
        if number:
            gpus.append(_ListedGpu(number, uuid))
        elif gpus:  # a slice of the GPU above
            gpus[-1].slices.append(uuid)

    devices: dict[str, list[str]] = {}
    for gpu in gpus:
        parts = gpu.slices or [gpu.uuid]
        devices[gpu.number] = parts
        devices[gpu.uuid] = parts
        for uuid in gpu.slices:
            devices[uuid] = [uuid]
    return devices


def _full_name(name: str, devices: dict[str, list[str]]) -> str | None:
    """Complete the name of a device, because CUDA also takes the beginning of a UUID.

    Returns:
        None if there is no such device.
    """
    is_uuid = name[3:4] == "-"  # `GPU-…` or `MIG-…`
    for known in devices:
        if known == name or (is_uuid and known.startswith(name)):
            return known
    return None


def nvidia_smi(*options: str) -> str:
    """Return what nvidia-smi prints. The text is empty if the program is not installed."""
    try:
        return subprocess.run(
            ["nvidia-smi", *options], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return ""


# ---------------------------------------------------------------- locks


@dataclass(frozen=True)
class _GpuMemory:
    """Memory of a GPU in MiB. It is unknown for slices, which nvidia-smi does not list."""

    free: int = 0
    total: int = 0


def _lock_gpus(gpus: list[str], count: int, sharing: int, needed_mb: int) -> bool:
    """Lock `count` GPUs, those with the most free memory first. Lock none if fewer are free."""
    folder = _lock_folder()
    listed = nvidia_smi(
        "--query-gpu=uuid,memory.free,memory.total", "--format=csv,noheader,nounits"
    )
    memory = dict.fromkeys(gpus, _GpuMemory())
    for gpu, free, total in re.findall(r"(\S+), (\d+), (\d+)", listed):
        memory[gpu] = _GpuMemory(int(free), int(total))

    locked_gpus = []
    for gpu in sorted(gpus, key=lambda gpu: memory[gpu].free, reverse=True):
        if len(locked_gpus) == count:
            break
        # waiting would not help if the GPU has less memory in all
        is_worth_waiting = memory[gpu].free < needed_mb <= memory[gpu].total
        if not is_worth_waiting and _lock_gpu(folder, gpu, sharing):
            locked_gpus.append(gpu)
    if len(locked_gpus) < count:
        _release(0)
        return False
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(locked_gpus)
    return True


def _lock_folder() -> Path:
    """Return the folder of this user in the temporary folder that holds the locks of GPUs."""
    folder = Path(tempfile.gettempdir()) / f"csebench-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid != os.getuid():
        raise BadInput(
            f"{folder}: belongs to another user; delete it, or set TMPDIR to another folder."
        )
    return folder


def _lock_gpu(folder: Path, gpu: str, sharing: int) -> bool:
    """Lock one GPU, if it is free.

    This takes two locks. The lock of the GPU is exclusive, or shared between the runs that share
    the GPU. The lock of a place on the GPU is always exclusive. The number of places limits the
    number of these runs.
    """
    kind = fcntl.LOCK_EX if sharing == 1 else fcntl.LOCK_SH
    places = [f"{gpu}.{number}" for number in range(sharing)]
    if not places:  # the extra place, for `sharing` 0
        places = [f"{gpu}.beside"]
    held_before = len(_held)
    if _lock(folder, gpu, kind):
        for place in places:
            if _lock(folder, place, fcntl.LOCK_EX):
                return True
    _release(held_before)
    return False


def _lock(folder: Path, name: str, kind: int) -> bool:
    """Take a lock and keep it, without waiting."""
    file = take(folder / f"{name}.lock", kind | fcntl.LOCK_NB)
    if file is None:
        return False
    _held.append(file)
    return True


def _release(keep: int) -> None:
    """Release the locks of this process, except the first `keep`."""
    while len(_held) > keep:
        os.close(_held.pop())
