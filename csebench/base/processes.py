"""What processes share: the rank among those that torchrun started, the lock between processes, the
GPUs of this machine. The exchange of tensors: csebench/train/parallel.py.

A lock is `flock` on a file. It ends with the process, however that ends, and outlives `os.exec`, by
which torchrun replaces one. On NFS, Linux locks at the server, so it holds between hosts, unless
the folder is mounted with `nolock` or `local_lock`. A file system without locks is named in one
line, and the work goes on without a lock.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from csebench.base.errors import Stopped

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PRESSED_TWICE = 2  # seconds between two Ctrl-C that mean one


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
