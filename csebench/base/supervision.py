"""The process around a whole command, which notices a command that did not finish.

A method or an evaluator is code of others. If it ends the process (`os._exit(0)`, `exec`), nothing
inside the process can notice. Exit code 0 would then stand for a run that nobody finished. So a
command works in a child process, and announces its end to the parent.

base/processes.py starts other programs. This module imports nothing of the project, so that a
command forks before it loads anything.
"""

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


_watched: Watched | None = None  # set in the child


def supervised(work: Callable[[], int]) -> int:
    """Do the work of a command in a child process, and return its exit code.

    Signals are passed on to the child, except Ctrl-C in a terminal, which reaches the child by
    itself. If a signal kills the child, this process dies by the same signal, so that callers see
    what they would see without the child. If this process is killed, the child gets SIGTERM.

    Returns:
        1 instead of 0 if the child has not announced its end.
    """
    if "WORLD_SIZE" in os.environ:  # the parent is torchrun, which holds the lock of the run
        end_with_parent()
    read_end, write_end = os.pipe()  # for the announcement
    awaited: set[int] = {signal.SIGCHLD, *PASSED_ON}
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # they stay pending until `_wait` takes them
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
        os.close(read_end)
        end_with_parent()
        _work_and_exit(work, write_end)
    os.close(write_end)
    code = _wait(child, awaited)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)
    if code < 0:
        _die_by(-code)
    if code == 0 and not _is_announced(read_end):
        print(NOT_FINISHED, file=sys.stderr)
        return 1
    return code


def announce_end() -> None:
    """Tell the supervisor that from now on exit code 0 means that the command is done.

    Call it when the command is done, or before `exec` replaces it by a program whose exit code can
    be trusted.
    Nothing happens without a supervisor, or in a fork of the watched process.
    """
    if _watched is not None and _watched.process == os.getpid():
        os.write(_watched.pipe, ANNOUNCEMENT)


def end_with_parent() -> None:
    """Let this process get SIGTERM when its parent ends, also if it is killed. Only on Linux."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:  # the parent ended before the call of prctl
        os.kill(os.getpid(), signal.SIGTERM)


def _work_and_exit(work: Callable[[], int], pipe: int) -> NoReturn:
    """Do the work in the child, announce its end, and exit."""
    global _watched
    _watched = Watched(os.getpid(), pipe)
    code = work()
    sys.stdout.flush()
    with contextlib.suppress(OSError):  # the terminal was closed
        sys.stderr.flush()
    announce_end()
    atexit._run_exitfuncs()  # deletes temporary folders, for example
    # At a normal exit, Python would take torch and transformers apart, which takes a second. The
    # system frees everything anyway.
    os._exit(code)


def _wait(child: int, signals: Iterable[int]) -> int:
    """Wait for the end of the child, and pass signals on.

    Returns:
        The exit code of the child. If a signal killed it, the negative number of the signal.
    """
    while True:
        received = signal.sigwaitinfo(signals)
        if received.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            continue
        # The terminal sends Ctrl-C to the child as well. The kernel is then the sender, which a
        # positive code shows. A closed terminal tells only this process.
        is_ctrl_c = received.si_signo == signal.SIGINT and received.si_code > 0
        if not is_ctrl_c:
            os.kill(child, received.si_signo)


def _is_announced(pipe: int) -> bool:
    """Whether the child announced its end."""
    # Do not wait for the end of the pipe. A process that the command left running may hold it open.
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, len(ANNOUNCEMENT)) == ANNOUNCEMENT
    except BlockingIOError:
        return False


def _die_by(number: int) -> None:
    """End this process by a signal."""
    with contextlib.suppress(OSError):  # SIGKILL can have no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
