"""What processes share: the rank among those that torchrun started, the lock between processes, the
GPUs of this machine. The exchange of tensors: csebench/train/parallel.py.

A lock is `flock` on a file. It ends with the process, however that ends, and outlives `os.exec`, by
which torchrun replaces one. On NFS, Linux locks at the server, so it holds between hosts, unless
the folder is mounted with `nolock` or `local_lock`. A file system without locks is named in one
line, and the work goes on without a lock.
"""

import contextlib
import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any

from csebench.base.errors import BadInput, RunFailed, Stopped

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # from a file system without locks
POLL_SECONDS = 1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PRESSED_TWICE = 2  # seconds between two Ctrl-C that mean one
_held: list[int] = []  # open files of the locks of this process's GPUs


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
    """Use so many CPU threads, in torch and in the BLAS of numpy and scipy: another number gives
    other bits."""
    import scipy.linalg  # noqa: F401  # loads its BLAS, of which the limit holds
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(count)
    threadpool_limits(count, user_api="blas")


@contextlib.contextmanager
def stop_signals(
    react: Callable[[signal.Signals], None] | None = None,
) -> Iterator[list[signal.Signals]]:
    """The signals received so far, which do not end the process: SIGTERM, which clusters send some
    seconds before they kill, SIGINT (Ctrl-C), and SIGHUP (a closed terminal). A signal that the
    process ignores stays ignored, as SIGHUP by `nohup`. Only the main thread gets signals; in
    another one there are none.

    Args:
        react: called with each signal.
    """
    received: list[signal.Signals] = []

    def note(number: int, _) -> None:
        received.append(signal.Signals(number))
        if react is not None:
            react(received[-1])

    with contextlib.ExitStack() as stack:
        for number in STOP_SIGNALS:
            stack.enter_context(handled(number, note))
        yield received


def run_program(command: list[str], task: str, **options) -> subprocess.CompletedProcess[str]:
    """Run a program and wait for its end, also where a signal asks this process for its own.

    The program is in a process group of its own. At the first signal it gets SIGINT once, with all
    that it started, and writes its checkpoints. A later Ctrl-C kills it. It inherits the locks of
    this process: they are held while it runs, even where this process is killed.

    Args:
        task: what messages call the work.
        options: of `subprocess.Popen`.

    Raises:
        Stopped: a signal came, and the program has ended.
    """
    group = ProgramGroup(task)
    own_group: dict[str, Any] = {
        "process_group": 0,
        "stdin": subprocess.DEVNULL,
        "close_fds": False,
    }
    job_control = {signal.SIGTSTP: group.suspend, signal.SIGQUIT: group.quit}
    with contextlib.ExitStack() as stack:
        received = stack.enter_context(stop_signals(group.stop))
        stack.enter_context(not_inheriting_ignored_sigint())
        for number, react in job_control.items():
            stack.enter_context(handled(number, react))
        program = subprocess.Popen(command, text=True, **own_group, **options)
        group.number = program.pid
        if received:  # before there was a program
            group.stop(received[0])
        stdout, stderr = program.communicate()
    if received:
        reason = f"{task}: stopped by {received[0].name}; the same command goes on from there."
        raise Stopped(reason, interrupted=received[0] == signal.SIGINT)
    return subprocess.CompletedProcess(command, program.returncode, stdout, stderr)


class ProgramGroup:
    """The process group of a program, as the signals to the process that waits for it reach it."""

    def __init__(self, task: str):
        self.task = task
        self.number: int | None = None  # once the program runs
        self.asked: float | None = None  # when it was asked for its end

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal to all of the group, if there is still one."""
        if self.number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.number, signal_number)

    def stop(self, received: signal.Signals) -> None:
        """Ask for the end; kill at a later Ctrl-C, but not at one that is pressed twice."""
        if self.number is None:
            return
        if self.asked is None:
            self.asked = time.monotonic()
            line = (
                f"{self.task}: {received.name}: stopping behind a checkpoint. Ctrl-C later ends it"
                " at once."
            )
            with contextlib.suppress(OSError):  # of a terminal that was closed
                # `print` may be at work where the signal came
                os.write(2, f"csebench: {line}\n".encode())
            # Never the others: at SIGHUP Snakemake ends without telling its jobs, and at SIGTERM it
            # waits for itself for ever where the signal finds it with its scheduler's lock.
            self.send(signal.SIGINT)
        elif received == signal.SIGINT and time.monotonic() - self.asked > PRESSED_TWICE:
            self.send(signal.SIGKILL)

    def suspend(self, *_) -> None:
        """Stop the group and this process, as Ctrl-Z does, until this process is to go on."""
        self.send(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        self.send(signal.SIGCONT)

    def quit(self, *_) -> None:
        """Kill the group, and end this process, as Ctrl-\\ does."""
        self.send(signal.SIGKILL)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGQUIT)


@contextlib.contextmanager
def not_inheriting_ignored_sigint() -> Iterator[None]:
    """Let programs that are started meanwhile react to SIGINT, also where this process ignores it,
    as what a script starts with `&` does. This process goes on without reacting."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) != signal.SIG_IGN
    ):
        yield
        return
    # A new program inherits what is ignored, but no handler.
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def handled(number: signal.Signals, handler: Callable) -> Iterator[None]:
    """Have a function handle a signal, in the main thread, unless the signal is ignored."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(number) == signal.SIG_IGN
    ):
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Be the only process that works on a file or folder; waits, with one line on stderr, while
    another does. The lock is a hidden file beside it, which stays once there is something to
    lock."""
    lock = path.with_name(f".{path.name}.lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    if (file := take(lock)) is None:
        print(
            f"{path.name}: another process works on it; waiting for its end.",
            file=sys.stderr,
            flush=True,
        )
        file = take(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if not path.exists():
            lock.unlink(missing_ok=True)
        if file is not None:
            os.close(file)


def take(lock: Path, kind: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> int | None:
    """The open file of a lock, which is held until it is closed; None where another process
    holds it."""
    file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only what is open for writing
    try:
        fcntl.flock(file, kind)
    except BlockingIOError:
        os.close(file)
        return None
    except OSError as e:
        if e.errno not in NO_LOCKS:
            raise
        line = (
            f"{lock.parent}: this file system has no locks ({e.strerror}); let no other process"
            " work here."
        )
        print(line, file=sys.stderr, flush=True)
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file), lock.stat()):
            os.set_inheritable(file, True)
            return file
    os.close(file)  # deleted meanwhile, by a process that made nothing
    return take(lock, kind)


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
