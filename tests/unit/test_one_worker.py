"""One process at a time works on a run: the lock of its folder, and what the second process does."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading

import pytest

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.runs import lock_run

HOLD = """
import os, shutil, sys
from pathlib import Path
from csebench.base.runs import lock_run
folder = Path(sys.argv[1])
with lock_run(folder):
    print("locked", flush=True)
    if sys.argv[2:] == ["exec"]:
        os.execvp("sleep", ["sleep", "60"])
    sys.stdin.read()
    if sys.argv[2:]:
        shutil.copytree(sys.argv[2], folder, dirs_exist_ok=True)
"""
WAITS = "another process works on it"


@pytest.fixture
def hold():
    """Starts a process that has locked a folder, until it is killed or its input ends."""
    started = []

    def start(folder, *arguments):
        command = [sys.executable, "-c", HOLD, str(folder), *map(str, arguments)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "locked\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def is_locked(folder):
    lock = folder.with_name(f".{folder.name}.lock")
    if not lock.exists():
        return False
    with open(lock) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_second_worker_waits_and_takes_the_model_of_the_first(hold, finished, make_spec, train, tmp_path, capsys):
    first = hold(tmp_path / "run", finished("simcse"))
    threading.Timer(1, first.stdin.close).start()
    report = train(make_spec("simcse"), tmp_path / "run")
    assert WAITS in capsys.readouterr().err
    assert first.wait() == 0
    assert report == train(make_spec("simcse"), finished("simcse"))


def test_a_model_that_another_made_meanwhile_is_kept(finished, make_spec, train, tmp_path, monkeypatch):
    """On a file system without locks: whoever exports second leaves the first one's model alone."""
    import shutil

    from csebench.train import run

    fit = run.fit

    def slow(spec, out, *args):
        fitted = fit(spec, out, *args)
        shutil.copytree(finished("simcse"), out, dirs_exist_ok=True)
        return fitted

    monkeypatch.setattr(run, "fit", slow)
    monkeypatch.setattr(run, "export", lambda *_: pytest.fail("exported"))
    train(make_spec("simcse"), tmp_path / "run")


@pytest.mark.parametrize("becomes", [[], ["exec"]])
def test_the_lock_lasts_as_long_as_the_process(becomes, hold, tmp_path):
    """Also where the process becomes another program: `csebench work --processes 2` becomes torchrun."""
    process = hold(tmp_path, *becomes)
    assert is_locked(tmp_path)
    process.kill()
    process.wait()
    assert not is_locked(tmp_path)


def test_an_inner_lock_of_the_same_process_leaves_the_outer_one(tmp_path):
    with lock_run(tmp_path):
        with lock_run(tmp_path):
            pass
        assert is_locked(tmp_path)


def test_processes_of_torchrun_take_no_lock(hold, tmp_path, monkeypatch):
    """That of the process that became torchrun is theirs."""
    hold(tmp_path)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with lock_run(tmp_path):
        pass


@pytest.mark.parametrize("existed", [True, False])
def test_a_folder_without_a_run_is_as_it_was(existed, tmp_path):
    folder = tmp_path / "run"
    if existed:
        folder.mkdir()
    with pytest.raises(BadInput), lock_run(folder):
        raise BadInput("refused")
    assert folder.exists() == existed and [*folder.glob("*")] == []
    assert existed or not any(tmp_path.iterdir())


def test_a_file_system_without_locks(tmp_path, monkeypatch, capsys):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with lock_run(tmp_path):
        pass
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path.parent}: this file system has no locks")


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_process_of_torchrun_ends_with_it(tmp_path):
    """Else it would train on without the lock."""
    child = "import time; from csebench.base.processes import end_with_parent as end; end(); print(1, flush=True);"
    parent = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]]); p.wait()"
    command = [sys.executable, "-c", parent, child + " time.sleep(60)"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGKILL)
    assert process.stdout.read() == ""  # ends when the child does
