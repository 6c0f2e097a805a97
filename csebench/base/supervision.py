"""The process around a whole command, which notices a command that did not finish.

A method or an evaluator is code of others. If it ends the process (`os._exit(0)`, `exec`), nothing
inside the process can notice. Exit code 0 would then stand for a run that nobody finished. So a
command works in a child process, and announces its end to the parent.

base/processes.py starts other programs, and base/job_server.py runs the jobs of a workflow in forks
of one process. This module imports nothing of the project, so that a command forks before it loads
anything.
"""

import atexit
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

# SIGCHLD says that a child ended; the others are passed on.
AWAITED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
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

    If a signal kills the child, this process dies by the same signal, so that callers see what they
    would see without the child.

    Returns:
        1 instead of 0 if the child has not announced its end.
    """
    if "WORLD_SIZE" in os.environ:  # the parent is torchrun, which holds the lock of the run
        end_with_parent()
    return exit_like(watch(work))


def watch(work: Callable[[], int], is_wanted: Callable[[], bool] = lambda: True) -> int:
    """Do the work of a command in a child process, and wait for its end.

    Signals are passed on to the child, except Ctrl-C in a terminal, which reaches the child by
    itself. If this process is killed, the child gets SIGTERM.

    Args:
        is_wanted: asked every second. If nobody wants the work any more, the child gets SIGTERM.

    Returns:
        The exit code of the child, but 1 instead of 0 if the child has not announced its end. If a
        signal killed the child, the negative number of the signal.
    """
    read_end, write_end = os.pipe()  # for the announcement
    with signals_held():
        child = os.fork()
        if child == 0:
            os.close(read_end)
            end_with_parent()
            _work_and_exit(work, write_end)
        os.close(write_end)
        code = wait_and_pass_on(child, partial(_exit_code_of, child), is_wanted)
    if code == 0 and not _is_announced(read_end):
        print(NOT_FINISHED, file=sys.stderr)
        return 1
    return code


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Keep signals pending in the block, so that `wait_and_pass_on` takes them. May be nested."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_and_pass_on(
    process: int,
    find_code: Callable[[], int | None],
    is_wanted: Callable[[], bool] = lambda: True,
    interval: float = 1,
) -> int:
    """Wait for the end of a process, and pass on the signals that this process gets.

    Call it in a block of `signals_held`.

    Args:
        find_code: gives the exit code of the process, or None while it works.
        is_wanted: see `watch`.
        interval: seconds after which `find_code` and `is_wanted` are asked at the latest.
    """
    was_wanted = True
    while True:
        code = find_code()
        if code is not None:
            return code
        if was_wanted and not is_wanted():
            was_wanted = False
            _send(signal.SIGTERM, process)
        received = signal.sigtimedwait(AWAITED, interval)
        if received is None or received.si_signo == signal.SIGCHLD:
            continue
        # The terminal sends Ctrl-C to both processes. The kernel is then the sender, which a
        # positive code shows. A closed terminal tells only the first process.
        is_ctrl_c = received.si_signo == signal.SIGINT and received.si_code > 0
        if not is_ctrl_c:
            _send(received.si_signo, process)


def exit_like(code: int) -> int:
    """Return an exit code, or die by the signal that killed the child if the code is negative."""
    if code >= 0:
        return code
    number = -code
    with contextlib.suppress(OSError):  # SIGKILL can have no handler
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number  # never reached: the signal ends this process


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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
    code = work()
    sys.stdout.flush()
    with contextlib.suppress(OSError):  # the terminal was closed
        sys.stderr.flush()
    announce_end()
    atexit._run_exitfuncs()  # deletes temporary folders, for example
    # At a normal exit, Python would take torch and transformers apart, which takes a second. The
    # system frees everything anyway.
    os._exit(code)


def _send(number: int, process: int) -> None:
    """Send a signal to a process, if it has not ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _exit_code_of(child: int) -> int | None:
    """Return the exit code of a child, negative if a signal killed it, or None if it works."""
    ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        return None
    return os.waitstatus_to_exitcode(status)


def _is_announced(pipe: int) -> bool:
    """Whether the child announced its end."""
    # Do not wait for the end of the pipe. A process that the command left running may hold it open.
    os.set_blocking(pipe, False)
    try:
        return os.read(pipe, len(ANNOUNCEMENT)) == ANNOUNCEMENT
    except BlockingIOError:
        return False
