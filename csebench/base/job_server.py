"""Run the jobs of a workflow in forks of one process that has imported torch.

Importing torch and transformers takes longer than a training of scale smoke. So the Snakemake that
a user starts also starts a server. When a job such as `csebench work RUN` begins, it hands its
command line over to the server. The server imports torch once, and forks itself for each job. The
job then waits, passes its signals on, and ends as its fork ends.

The server imports only installed packages. A fork imports methods and the rest of csebench itself,
so it runs the files as they are when the job begins.

Without a server, a job does its work itself. There is none on a cluster, on a machine with a GPU,
whose driver may not be loaded before a fork, and if Snakemake makes environments for its jobs.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from csebench.base.supervision import (
    AWAITED,
    end_with_parent,
    exit_like,
    signals_held,
    wait_and_pass_on,
    watch,
)

JOB_SERVER = "CSEBENCH_JOB_SERVER"  # of the environment: the path of the server's socket
VERBS = ("work", "publish")  # `work` needs torch, and `publish` runs often
# Modules of other packages that the verbs import. What these import in turn is not listed.
PRELOADED = (
    "torch",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "scipy.linalg",
    "scipy.stats",
    "pydantic",
    "yaml",
)
STREAMS = (0, 1, 2)  # file descriptors of stdin, stdout and stderr
NUMBER = struct.Struct("q")  # a number in a message
WAITING_JOBS = 128  # at most, while the server imports torch
INTERVAL = 0.02  # seconds after which a job looks whether its fork has ended


# ---------------------------------------------------------------- in Snakemake


def start_server(path: Path) -> None:
    """Start a server, which ends when this process ends.

    Args:
        path: of its socket.
    """
    command = [sys.executable, "-m", "csebench.base.job_server", str(path), str(os.getpid())]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    os.environ[JOB_SERVER] = str(path.absolute())


# ---------------------------------------------------------------- in a job


def run_in_fork() -> int | None:
    """Run the command line of this process in a fork of the server.

    The fork gets the environment and the streams of this process.

    Returns:
        The exit code. None if no server took the command. The command has not begun then.
    """
    path = os.environ.get(JOB_SERVER)
    is_job = len(sys.argv) > 1 and sys.argv[1] in VERBS
    if path is None or not is_job:
        return None
    with socket.socket(socket.AF_UNIX) as connection, signals_held():
        try:
            connection.connect(path)
            send_job(connection)
            fork = receive_number(connection)
        except OSError:  # there is no server at this path
            return None
        if fork is None:  # the server ended
            return None
        if signal.SIGINT in signal.sigpending():  # Ctrl-C came before there was a fork
            os.kill(fork, signal.SIGINT)
        code = wait_and_pass_on(fork, lambda: sent_code(connection), interval=INTERVAL)
    return exit_like(code)


def send_job(connection: socket.socket) -> None:
    """Send this process's command, folder, environment and streams to the server."""
    job = {"command": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ)}
    content = json.dumps(job).encode()
    socket.send_fds(connection, [NUMBER.pack(len(content))], STREAMS)
    connection.sendall(content)


def sent_code(connection: socket.socket) -> int | None:
    """Return the exit code that a fork has sent, or None if it still works.

    Returns:
        -SIGKILL if the fork ended without sending a code, because only a kill ends it so.
    """
    try:
        code = receive_number(connection, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    if code is None:
        return -signal.SIGKILL
    return code


def receive_number(connection: socket.socket, flags: int = 0) -> int | None:
    """Receive a number, or None if the other side has ended."""
    content = connection.recv(NUMBER.size, flags)
    if len(content) < NUMBER.size:
        return None
    return NUMBER.unpack(content)[0]


# ---------------------------------------------------------------- in the server


def serve(path: Path, snakemake: int) -> NoReturn:
    """Wait for jobs, and fork for each, until the Snakemake that started the server ends.

    Args:
        path: of the socket.
        snakemake: id of the process that started the server.
    """
    end_with_parent()
    if os.getppid() != snakemake:  # it has ended already
        sys.exit()
    handlers_before = {number: signal.getsignal(number) for number in AWAITED}
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the jobs
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
    signal.signal(signal.SIGTERM, lambda *_: end_server(path))
    gc.set_threshold(1_000_000)  # imports make many objects and free none
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.umask(0o077)  # only this user may send jobs
        listener.bind(str(path))
        os.umask(before)
        listener.listen(WAITING_JOBS)
        while True:
            connection, _ = listener.accept()
            preload()
            with signals_held():
                if os.fork() == 0:
                    for number, handler in handlers_before.items():
                        signal.signal(number, handler)
                    listener.close()
                    run_job(connection)
            connection.close()


def end_server(path: Path) -> NoReturn:
    """Delete the socket, and end this process without taking torch apart."""
    path.unlink(missing_ok=True)
    os._exit(0)


def preload() -> None:
    """Import the packages that jobs need. If one is missing, the job says so."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            import_module(name)


def run_job(connection: socket.socket) -> NoReturn:
    """Run the job that a connection sends, in this fork, and send its exit code.

    Signals are held in the fork, so that `watch` takes all of them.
    """
    content, streams, _, _ = socket.recv_fds(connection, NUMBER.size, len(STREAMS))
    (length,) = NUMBER.unpack(content)
    job = json.loads(connection.recv(length, socket.MSG_WAITALL))
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    del os.environ[JOB_SERVER]  # what the job starts is no job
    use_streams(streams)
    sys.argv = job["command"]

    from csebench.cli import run_command

    # A Ctrl-C until now came before there was a child to end. The job sends it again.
    signal.sigtimedwait([signal.SIGINT], 0)
    connection.sendall(NUMBER.pack(os.getpid()))
    code = watch(lambda: run_command(None), is_wanted=lambda: is_open(connection))
    with contextlib.suppress(OSError):  # the job was killed
        connection.sendall(NUMBER.pack(code))
    os._exit(0)


def use_streams(files: list[int]) -> None:
    """Read and write the streams of a job: its stdin, stdout and stderr, as file descriptors."""
    for stream, file in zip(STREAMS, files, strict=True):
        os.dup2(file, stream)
        os.close(file)
    # Python's own objects know whether the former streams were terminals or files
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    sys.stdin = os.fdopen(0, encoding=encoding, errors=errors, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, errors=errors, closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding=encoding, errors="backslashreplace", closefd=False)


def is_open(connection: socket.socket) -> bool:
    """Whether the process at the other side of a connection still runs."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
