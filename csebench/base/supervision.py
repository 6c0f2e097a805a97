"""A command in a child process, whose end only the command itself can announce. Imports nothing of
the project, so that a command forks before it loads anything.

A method or an evaluator is code of others. Where it ends the process (`os._exit(0)`, `exec`),
nothing inside the process can notice. Exit code 0 would then stand for a run that nobody
finished."""

import atexit
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ANNOUNCEMENT = b"done"
NOT_FINISHED = (
    "csebench: the command ended without finishing: code of a method, component or evaluator ended"
    " the process (os._exit, exec); raise an error instead."
)


@dataclass(frozen=True)
class Watched:
    """The process that a supervisor waits for, and the pipe by which it announces its end."""

    process: int
    pipe: int


_watched: Watched | None = None


def supervised(work: Callable[[], int]) -> int:
    """Do the work of a command in a child process, and return its exit code: 1 for a 0 that it has
    not announced.

    Signals are passed on, but for Ctrl-C in a terminal, which reaches the child by itself. A child
    that a signal killed is answered by the same death, so that callers see what they would see
    without the child. Where this process is killed, the child gets SIGTERM.
    """
    if "WORLD_SIZE" in os.environ:  # torchrun, which holds the lock of the run
        end_with_parent()
    announced, announcing = os.pipe()
    received: set[int] = {signal.SIGCHLD, *PASSED_ON}
    signal.pthread_sigmask(signal.SIG_BLOCK, received)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, received)
        os.close(announced)
        end_with_parent()
        _work_and_exit(work, announcing)
    os.close(announcing)
    code = _wait(child, received)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, received)
    if code < 0:
        _die_by(-code)
    if code == 0 and not _is_announced(announced):
        print(NOT_FINISHED, file=sys.stderr)
        return 1
    return code


def announce_end() -> None:
    """Tell the supervisor that exit code 0 means done from now on: the command is done, or
    becomes a program that can be trusted. Does nothing where nobody watches, nor in a process
    that the watched one forked."""
    if _watched is not None and _watched.process == os.getpid():
        os.write(_watched.pipe, ANNOUNCEMENT)


def end_with_parent() -> None:
    """Get SIGTERM when the parent process ends, however it ends; only on Linux."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), signal.SIGTERM)


def _work_and_exit(work: Callable[[], int], pipe: int) -> NoReturn:
    """Do the work in the child, announce its end, and exit."""
    global _watched
    _watched = Watched(os.getpid(), pipe)
    code = work()
    sys.stdout.flush()
    with contextlib.suppress(OSError):  # of a terminal that was closed
        sys.stderr.flush()
    announce_end()
    atexit._run_exitfuncs()  # as temporary folders are deleted
    # the system frees what a job holds; for Python to take torch and transformers apart takes a
    # second
    os._exit(code)


def _wait(child: int, signals: Iterable[int]) -> int:
    """Wait for the end of the child, passing signals on; its exit code, negative after a signal."""
    while True:
        received = signal.sigwaitinfo(signals)
        if received.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            continue
        # Ctrl-C comes from the kernel, and reaches the child, too; a closed terminal tells the
        # first process only
        is_ctrl_c = received.si_signo == signal.SIGINT and received.si_code > 0
        if not is_ctrl_c:
            os.kill(child, received.si_signo)


def _is_announced(pipe: int) -> bool:
    """Whether the child announced its end."""
    # a process that the command left behind may keep the other end open
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, len(ANNOUNCEMENT)) == ANNOUNCEMENT
    except BlockingIOError:
        return False


def _die_by(number: int) -> None:
    """End this process by a signal."""
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
