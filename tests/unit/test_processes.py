"""One process at a time works on a run, and GPUs of a simulated nvidia-smi are assigned by lock files. The other
processes are forks, which start in no time."""

import errno
import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
from functools import partial

import pytest

from csebench import cli
from csebench import run as planned
from csebench.base import processes
from csebench.base.errors import BadInput
from csebench.base.processes import acquire_gpus
from csebench.base.project import ROOT
from csebench.base.runs import REPORT, lock_run
from csebench.plan import targets


class Process:
    """A process in a block until it is told to go on: then it works, leaves the block and ends."""

    def __init__(self, block, work):
        said, say = os.pipe()
        go, self.go = os.pipe()
        if (pid := os.fork()) == 0:
            sys.stderr = os.fdopen(say, "w")
            try:
                with block():
                    print(os.environ.get("CUDA_VISIBLE_DEVICES"), file=sys.stderr, flush=True)
                    os.read(go, 1)
                    work()
            finally:
                os._exit(0)
        os.close(say)
        os.close(go)
        self.pid, self.said = pid, os.fdopen(said, "rb", buffering=0)

    def line(self):
        """The next line that it said: that it waits, or, in the block, its GPUs."""
        assert select.select([self.said], [], [], 60)[0], "it still waits"
        return self.said.readline().decode().strip()

    def go_on(self):
        os.write(self.go, b"x")

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


@pytest.fixture
def start():
    """Starts processes: `start(acquire_gpus, 2, work=print)`."""
    started = []

    def start(block, *arguments, work=lambda: None):
        started.append(Process(partial(block, *arguments), work))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.said.close()
        os.close(process.go)


def become_another_program():
    """As `csebench work --processes 2` becomes torchrun. What it said ends then."""
    os.execvp("sleep", ["sleep", "60"])


# ---------------------------------------------------------------- runs


def is_locked(folder):
    try:
        with open(folder.with_name(f".{folder.name}.lock")) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def test_the_second_worker_waits_and_takes_the_model_of_the_first(
    start, finished, make_spec, train, tmp_path, monkeypatch, capsys
):
    out, made, take = tmp_path / "run", finished("simcse"), processes.take
    first = start(lock_run, out, work=lambda: shutil.copytree(made, out, dirs_exist_ok=True))
    first.line()

    def take_and_say(lock, kind=processes.NOW):
        if kind == fcntl.LOCK_EX:  # it waits
            first.go_on()
        return take(lock, kind)

    monkeypatch.setattr(processes, "take", take_and_say)
    assert train(make_spec("simcse"), out) == train(make_spec("simcse"), made)
    assert "run: another process works on it" in capsys.readouterr().err


def test_a_model_that_another_made_meanwhile_is_kept(finished, make_spec, train, tmp_path, monkeypatch):
    """On a file system without locks: whoever exports second leaves the first one's model alone."""
    from csebench.train import run

    fit = run.fit

    def slow(spec, out, *args):
        fitted = fit(spec, out, *args)
        shutil.copytree(finished("simcse"), out, dirs_exist_ok=True)
        return fitted

    monkeypatch.setattr(run, "fit", slow)
    monkeypatch.setattr(run, "export", lambda *_: pytest.fail("exported"))
    train(make_spec("simcse"), tmp_path / "run")


@pytest.mark.parametrize("replaced", [False, True])
def test_the_lock_lasts_as_long_as_the_process(replaced, start, tmp_path):
    process = start(lock_run, tmp_path, work=become_another_program)
    process.line()
    if replaced:
        process.go_on()
        assert process.line() == ""
    assert is_locked(tmp_path)
    process.kill()
    assert not is_locked(tmp_path)


def test_an_inner_lock_of_the_same_process_leaves_the_outer_one(tmp_path):
    with lock_run(tmp_path):
        with lock_run(tmp_path):
            pass
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)


def test_processes_of_torchrun_take_no_lock(tmp_path, monkeypatch):
    """That of the process that became torchrun is theirs."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with lock_run(tmp_path):
        assert not is_locked(tmp_path)


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
def test_a_process_of_torchrun_ends_with_it():
    """Else it would train on without the lock."""
    child = "import time; from csebench.base.processes import end_with_parent as end; end(); print(1, flush=True);"
    parent = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]]); p.wait()"
    command = [sys.executable, "-c", parent, child + " time.sleep(60)"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGKILL)
    assert process.communicate(timeout=30) == ("", None)  # ends when the child does


# ---------------------------------------------------------------- GPUs


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """A machine with two GPUs, and lock files of its own."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho GPU-one\necho GPU-two\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(processes, "POLL_SECONDS", 0.01)
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "WORLD_SIZE"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    return program


@pytest.fixture
def hold(start, nvidia_smi):
    """Starts a process that holds GPUs."""
    return partial(start, acquire_gpus)


def waits(process):
    return "waiting for" in process.line()


def test_every_run_has_its_own_gpu(hold):
    first, second = hold(), hold()
    assert {first.line(), second.line()} == {"GPU-one", "GPU-two"}
    third = hold()
    assert waits(third)
    second.kill()  # however it ends
    assert third.line().startswith("GPU-")


def test_seeds_share_a_gpu_but_not_with_others(hold):
    shared = []
    for gpu in ("GPU-one", "GPU-one", "GPU-two"):
        shared.append(hold(1, 2))
        assert shared[-1].line() == gpu
    alone = hold()
    assert waits(alone)
    for process in shared[:2]:
        process.kill()
    assert alone.line() == "GPU-one" and hold(1, 2).line() == "GPU-two"


@pytest.mark.parametrize("replaced", [False, True])
def test_several_gpus_for_one_run(replaced, hold):
    both = hold(2, work=become_another_program)
    assert both.line() == "GPU-one,GPU-two"
    if replaced:
        both.go_on()
        assert both.line() == ""
    alone = hold()
    assert waits(alone)
    both.kill()
    assert alone.line() == "GPU-one"


def test_what_is_too_much_locks_nothing(hold):
    hold().line()
    assert waits(hold(2))
    assert hold().line() == "GPU-two"


def test_more_gpus_than_the_machine_has(nvidia_smi):
    with pytest.raises(BadInput, match="3 GPUs requested, 2 available"), acquire_gpus(3):
        pass


@pytest.mark.parametrize("visible", ["1", "GPU-two"])
def test_only_visible_gpus_are_used(visible, nvidia_smi, monkeypatch, capsys):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with acquire_gpus():
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-two"
        with acquire_gpus():  # an evaluation inside of a run
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-two"
    assert capsys.readouterr().err == ""  # it has waited for nothing


def test_a_process_keeps_the_gpu_that_it_got_first(hold):
    """Its torch has seen no other."""
    first = hold()
    first.line()
    with acquire_gpus():
        pass
    first.kill()
    with acquire_gpus():
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-two"


def test_what_torchrun_has_assigned_is_left_alone(nvidia_smi, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with acquire_gpus():
        assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.parametrize(("assigned", "seen"), [("1", "GPU-two"), (None, "")])
def test_a_job_of_slurm_sees_what_it_was_assigned(assigned, seen, nvidia_smi, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    if assigned:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", assigned)
    with acquire_gpus():
        assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


@pytest.mark.parametrize("has_driver", [True, False])
def test_no_gpu(has_driver, nvidia_smi, tmp_path):
    if has_driver:
        nvidia_smi.write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    else:
        nvidia_smi.unlink()
    with acquire_gpus(4):
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.parametrize("done", [True, False])
def test_a_finished_run_waits_for_no_gpu(done, nvidia_smi, monkeypatch, tmp_path):
    run, seen, asked = next(iter(targets.runs("smoke"))), [], []
    if done:
        (tmp_path / "runs" / run / "model").mkdir(parents=True)
        (tmp_path / "runs" / run / "model" / REPORT).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planned, "train_and_score", lambda *_: seen.append(os.environ.get("CUDA_VISIBLE_DEVICES")))
    monkeypatch.setattr(processes, "_lock_gpus", lambda gpus, count, sharing: asked.append(sharing) or ["GPU-two"])
    assert cli.main(["work", run, "--runs-per-gpu", "4"]) == 0
    assert (seen, asked) == ([None], []) if done else (["GPU-two"], [4])


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_of_locks_that_another_user_made_is_not_used(kind, nvidia_smi, tmp_path):
    """In a temporary folder that everybody may write."""
    folder = tmp_path / f"csebench-{os.getuid()}"
    if kind == "folder":
        folder.mkdir()
    else:
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    os.chown(folder, 12345, 12345, follow_symlinks=False)
    with pytest.raises(BadInput, match="belongs to another user"), acquire_gpus():
        pass
    assert not list(tmp_path.rglob("*.lock"))
