"""This process among others: its rank, its threads, the signals it gets, the programs it runs.

Other modules have the locks between processes (base/locks.py), GPUs (base/gpus.py), the process
around a whole command (base/supervision.py), the forks that run jobs (base/job_server.py), and the
exchange of tensors (train/parallel.py).
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

from csebench.base.errors import Stopped

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PRESSED_TWICE = 2  # two Ctrl-C within so many seconds count as one


def is_distributed() -> bool:
    """Whether torchrun (or accelerate) started this process."""
    return "WORLD_SIZE" in os.environ


def rank() -> int:
    """Return the number of this process, from 0. A single process has number 0."""
    return int(os.environ.get("RANK", 0)) if is_distributed() else 0


def is_main_process() -> bool:
    """Whether this process writes files and log lines: only the process of rank 0 does."""
    return rank() == 0


def use_threads(count: int) -> None:
    """Set the number of CPU threads of torch, and of the BLAS of numpy and scipy.

    Results depend on this number in their last bits.
    """
    import scipy.linalg  # noqa: F401  # loads its BLAS, because the limit needs loaded libraries
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(count)
    threadpool_limits(count, user_api="blas")


@contextlib.contextmanager
def stop_signals(
    react: Callable[[signal.Signals], None] | None = None,
) -> Iterator[list[signal.Signals]]:
    """Collect the signals that ask this process to end, instead of ending it.

    These are SIGTERM (which clusters send some seconds before they kill), SIGINT (Ctrl-C), and
    SIGHUP (a closed terminal). A signal that the process ignores, such as SIGHUP after `nohup`,
    stays ignored.

    Args:
        react: called with each signal.

    Returns:
        A list, which grows with every signal. It stays empty outside the main thread, because only
        the main thread gets signals.
    """
    received: list[signal.Signals] = []

    def note(number: int, _) -> None:
        signal_number = signal.Signals(number)
        received.append(signal_number)
        if react is not None:
            react(signal_number)

    with contextlib.ExitStack() as stack:
        for number in STOP_SIGNALS:
            stack.enter_context(handled(number, note))
        yield received


def run_program(command: list[str], task: str, **options) -> subprocess.CompletedProcess[str]:
    """Run a program and wait for its end, even if a signal asks this process to end.

    The program gets a process group of its own. At the first signal, the program and all processes
    that it started get one SIGINT, so that they write their checkpoints. A later Ctrl-C kills them.
    The program inherits the locks of this process, so they are held while the program runs, even if
    this process is killed.

    Args:
        task: name of the work in messages.
        options: passed to `subprocess.Popen`.

    Raises:
        Stopped: a signal came, and the program has ended.
    """
    group = ProgramGroup(task)
    with contextlib.ExitStack() as stack:
        received = stack.enter_context(stop_signals(group.stop))
        stack.enter_context(not_inheriting_ignored_sigint())
        stack.enter_context(handled(signal.SIGTSTP, group.suspend))
        stack.enter_context(handled(signal.SIGQUIT, group.quit))
        program = subprocess.Popen(
            command,
            text=True,
            process_group=0,
            stdin=subprocess.DEVNULL,  # a group in the background may not read from the terminal
            close_fds=False,  # so that the program inherits the locks
            **options,
        )
        group.number = program.pid
        if received:  # a signal came before there was a program to stop
            group.stop(received[0])
        stdout, stderr = program.communicate()
    if received:
        reason = f"{task}: stopped by {received[0].name}; the same command goes on from there."
        raise Stopped(reason, interrupted=received[0] == signal.SIGINT)
    return subprocess.CompletedProcess(command, program.returncode, stdout, stderr)


class ProgramGroup:
    """The process group of a program. Its methods react to the signals that this process gets."""

    def __init__(self, task: str):
        self.task = task
        self.number: int | None = None  # set when the program runs
        self.asked: float | None = None  # time at which it was asked to end

    def stop(self, received: signal.Signals) -> None:
        """Ask the group to end at the first signal. Kill it at a later Ctrl-C.

        A Ctrl-C that is pressed twice in a row counts once.
        """
        if self.number is None:
            return
        if self.asked is None:
            self.asked = time.monotonic()
            line = (
                f"{self.task}: {received.name}: stopping after a checkpoint. A later Ctrl-C"
                " ends it at once."
            )
            with contextlib.suppress(OSError):  # the terminal was closed
                # not by `print`, which may be at work at the moment of the signal
                os.write(2, f"csebench: {line}\n".encode())
            # Always SIGINT. At SIGHUP, Snakemake ends without telling its jobs. At SIGTERM, it
            # waits for itself for ever if the signal comes while it holds its scheduler's lock.
            self.send(signal.SIGINT)
            return
        if received == signal.SIGINT and time.monotonic() - self.asked > PRESSED_TWICE:
            self.send(signal.SIGKILL)

    def suspend(self, *_) -> None:
        """Suspend the group and this process, as Ctrl-Z does, until this process continues."""
        self.send(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        self.send(signal.SIGCONT)

    def quit(self, *_) -> None:
        """Kill the group, and end this process, as Ctrl-\\ does."""
        self.send(signal.SIGKILL)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGQUIT)

    def send(self, signal_number: signal.Signals) -> None:
        """Send a signal to all processes of the group, if there are any."""
        if self.number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.number, signal_number)


@contextlib.contextmanager
def not_inheriting_ignored_sigint() -> Iterator[None]:
    """Let programs that are started in the block react to SIGINT, even if this process ignores it.

    A process that a script starts with `&` ignores SIGINT, and its programs would inherit that. In
    the block, this process has a handler that does nothing, so it still does not react.
    """
    if not is_main_thread() or not is_ignored(signal.SIGINT):
        yield
        return
    # a new program inherits that a signal is ignored, but not a handler
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def handled(number: signal.Signals, handler: Callable) -> Iterator[None]:
    """Let a function handle a signal in the block, unless this process ignores the signal.

    Nothing changes outside the main thread, because only the main thread gets signals.
    """
    if not is_main_thread() or is_ignored(number):
        yield
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def is_main_thread() -> bool:
    """Whether this is the thread that gets signals."""
    return threading.current_thread() is threading.main_thread()


def is_ignored(number: signal.Signals) -> bool:
    """Whether this process ignores a signal."""
    return signal.getsignal(number) == signal.SIG_IGN
