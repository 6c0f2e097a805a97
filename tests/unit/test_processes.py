"""One process at a time works on a run, and GPUs of a simulated nvidia-smi are assigned by lock files. The other
processes are forks, which start in no time."""

import contextlib
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
from csebench.base import files, processes
from csebench.base.errors import BadInput, RunFailed
from csebench.base.processes import acquire_gpus, device_type
from csebench.base.project import ROOT
from csebench.base.provenance import Stopwatch
from csebench.base.runs import DONE, REPORT, lock_run
from csebench.plan import catalog, targets
from csebench.plan.declarations import Evaluation
from csebench.score.evaluate import evaluate_run


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

TWO = ["GPU 0: NVIDIA H100 (UUID: GPU-one)", "GPU 1: NVIDIA H100 (UUID: GPU-two)"]
SLICED = [TWO[0], "  MIG 3g.40gb Device 0: (UUID: MIG-a)", "  MIG 3g.40gb Device 1: (UUID: MIG-b)", TWO[1]]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine(lines of nvidia-smi -L, lines of its memory)`; two GPUs to begin with, and lock files of its own."""
    program = tmp_path / "nvidia-smi"

    def make(listed, memory=()):
        lines = {"-L": listed, "*memory*": memory, "*driver*": ["570.1"]}
        cases = (f"{options})\ncat <<.\n{os.linesep.join([*printed, ''])}.\n;;" for options, printed in lines.items())
        program.write_text("\n".join(["#!/bin/sh", 'case "$*" in', *cases, "esac"]))
        program.chmod(0o755)
        return program

    make(TWO)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(processes, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(processes, "version", lambda package: "2.13.0")
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "WORLD_SIZE"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    yield make
    processes._release(0)


@contextlib.contextmanager
def with_gpus(*arguments):
    processes._held.clear()  # those of the process that this one is a fork of
    acquire_gpus(*arguments)
    yield


@pytest.fixture
def hold(start, machine):
    """Starts a process that holds GPUs."""
    return partial(start, with_gpus)


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


def test_scoring_waits_for_no_seeds_that_share_but_for_a_run_alone(hold, machine):
    machine(TWO[:1])
    seeds = [hold(1, 2), hold(1, 2)]
    scoring, next_score = hold(0, 0), hold(0, 0)
    assert {process.line() for process in (*seeds, scoring)} == {"GPU-one"}
    assert waits(next_score)
    for process in (*seeds, scoring):
        process.kill()
    assert next_score.line() == "GPU-one"
    alone = hold()
    assert waits(alone)
    next_score.kill()
    assert alone.line() == "GPU-one" and waits(hold(0, 0))


def test_publishing_waits_for_no_seeds_that_share(hold, machine, finished, smoke_data, monkeypatch, tmp_path):
    machine(TWO[:1])
    monkeypatch.setattr("csebench.model.encoder.device_type", lambda: "cpu")
    run = shutil.copytree(finished("bert"), tmp_path / "run")
    assert [hold(1, 2).line() for _ in range(2)] == ["GPU-one", "GPU-one"]
    assert evaluate_run(run, ["sts"], smoke_data, Evaluation())["sts"].exists()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-one"


def test_several_gpus_for_one_run_which_becomes_torchrun(hold):
    both = hold(2, work=become_another_program)
    assert both.line() == "GPU-one,GPU-two"
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


def test_a_gpu_with_too_little_free_memory_is_not_chosen(hold, machine):
    """Where another user is on it; a run that no GPU could ever hold waits for none."""
    machine(TWO, ["GPU-one, 9000, 80000", "GPU-two, 40000, 80000"])
    assert hold(1, 1, 50_000).line().startswith("waiting for 1 of 2 GPUs to be free, each with 50,000 MiB")
    assert hold(1, 1, 20_000).line() == "GPU-two"
    assert waits(hold(1, 1, 20_000))
    assert hold(1, 1, 90_000).line() == "GPU-one"


def test_a_run_needs_the_memory_that_its_other_seeds_needed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    cells = {}
    for spec in targets.runs("smoke").values():
        cells.setdefault(spec.cell_id, []).append(spec)
    (first, second, *_), (other, *_) = sorted(cells.values(), key=len, reverse=True)[:2]
    for spec, peak in ((second, 5000), (other, 9000)):
        files.write_json(tmp_path / "runs" / spec.run_id / DONE, {"provenance": {"peak_gpu_mb": peak}})
    assert planned.memory_of_other_seeds(first, "smoke") == 5000


VISIBLE = {
    None: ["GPU-one", "GPU-two"],
    "GPU-t": ["GPU-two"],
    "0,0,GPU-one": ["GPU-one"],
    "1, 0": ["GPU-two", "GPU-one"],
    "": [],
    "0,-1,1": ["GPU-one"],
}
OF_SLICES = {
    None: ["MIG-a", "MIG-b", "GPU-two"],
    "0": ["MIG-a", "MIG-b"],
    "MIG-b": ["MIG-b"],
    "1,MIG-a,MIG-c": ["GPU-two", "MIG-a"],
}


@pytest.mark.parametrize(
    ("listed", "allowed", "gpus"),
    [(listed, *case) for listed, cases in ((TWO, VISIBLE), (SLICED, OF_SLICES)) for case in cases.items()],
)
def test_the_gpus_that_cuda_would_show(listed, allowed, gpus, machine, monkeypatch):
    machine(listed)
    if allowed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert processes.visible_gpus() == gpus


def test_a_pytorch_without_cuda_sees_no_gpu(machine, monkeypatch):
    monkeypatch.setattr(processes, "version", lambda package: "2.13.0+cpu")
    assert processes.visible_gpus() == []


@pytest.mark.parametrize(
    ("count", "allowed", "listed"), [(3, None, TWO), (2, "0,9", TWO), (1, "", TWO), (1, "7", TWO), (2, None, SLICED)]
)
def test_a_promised_gpu_that_is_not_there_ends_the_run(count, allowed, listed, machine, monkeypatch):
    """In place of days on the CPU. A slice is none for several processes."""
    machine(listed)
    if allowed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    with pytest.raises(BadInput, match=f"requested: {count}, available"):
        acquire_gpus(count)


def test_a_job_without_its_gpu_says_so_and_writes_nothing(machine, monkeypatch, tmp_path, capsys):
    """As SLURM's: the profile asks for a GPU, and the job sees none."""
    run = next(iter(targets.runs("smoke")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert cli.main(["work", run, "--processes", "1"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1 and not (tmp_path / "runs" / run).exists()


@pytest.mark.parametrize(
    ("environment", "seen"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, ""),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, "-1"),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, "NoDevFiles"),
        ({"SLURM_JOB_ID": "7"}, ""),  # a job without an assigned GPU
        ({"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "1"}, "GPU-two"),
        ({"WORLD_SIZE": "2"}, None),  # torchrun has assigned them
    ],
)
def test_what_the_environment_assigns_or_hides(environment, seen, machine, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    acquire_gpus()
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == seen
    assert seen == "GPU-two" or device_type() == "cpu"


@pytest.mark.parametrize("named", ["7", "GPU-three", "0"])
def test_a_gpu_that_pytorch_cannot_use_ends_the_run(named, machine, monkeypatch):
    """One that is not there, or with a driver that is too old for PyTorch."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    acquire_gpus()
    with pytest.raises(RunFailed, match="cannot use the GPU"):
        device_type()


def test_the_option_device_leaves_gpus_alone(machine, monkeypatch):
    monkeypatch.setattr(planned, "publish", lambda *_: acquire_gpus())
    assert cli.main(["publish", "run", "sts", "--device", "cpu"]) == 0
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "" and not processes._held


def test_a_search_keeps_the_gpu_of_its_first_trial(hold, monkeypatch, tmp_path):
    """Its CUDA stays there: between two trials no other process gets it, and it takes no other."""
    monkeypatch.chdir(tmp_path)
    seen, scale = [], catalog.scale("smoke")
    first, second, *_ = targets.runs("smoke").values()
    monkeypatch.setattr(planned, "train_and_score", lambda *_: seen.append(os.environ["CUDA_VISIBLE_DEVICES"]))
    monkeypatch.setattr(planned, "read_report", lambda folder: {})
    other = hold()
    assert other.line() == "GPU-one"
    planned.trained(first, scale)
    assert waits(hold())
    other.kill()
    planned.trained(second, scale)
    assert seen == ["GPU-two", "GPU-two"]


@pytest.mark.parametrize("command", ["search", "run", "score"])
def test_who_waits_for_a_gpu_holds_no_run(command, hold, start, machine, finished, smoke_data, monkeypatch, tmp_path):
    """Else it and the process that has the GPU, and waits for the run, would wait for each other."""
    machine(TWO[:1])
    monkeypatch.chdir(tmp_path)
    run, spec = next(iter(targets.runs("smoke").items()))
    commands = {
        "search": partial(planned.trained, spec, catalog.scale("smoke")),
        "run": partial(planned.work, run, "smoke", None, 0, 1),
        "score": partial(evaluate_run, catalog.RUNS / run, ["sts"], smoke_data, Evaluation()),
    }
    if command == "score":
        shutil.copytree(finished("bert"), catalog.RUNS / run)
    hold().line()
    waiting = start(contextlib.nullcontext, work=commands[command])
    waiting.line()
    waiting.go_on()
    assert waits(waiting) and not is_locked(catalog.RUNS / run)


@pytest.mark.parametrize("has_driver", [True, False])
def test_no_gpu(has_driver, machine, tmp_path):
    program = machine(["No devices were found"], ["No devices were found"])
    if not has_driver:
        program.unlink()
    acquire_gpus()
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.parametrize("done", [True, False])
def test_a_finished_run_waits_for_no_gpu(done, machine, monkeypatch, tmp_path):
    run, seen, asked = next(iter(targets.runs("smoke"))), [], []
    if done:
        (tmp_path / "runs" / run / "model").mkdir(parents=True)
        (tmp_path / "runs" / run / "model" / REPORT).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planned, "train_and_score", lambda *_: seen.append(os.environ.get("CUDA_VISIBLE_DEVICES")))
    lock = processes._lock_gpus
    monkeypatch.setattr(processes, "_lock_gpus", lambda *given: asked.append(given[1:]) or lock(*given))
    assert cli.main(["work", run, "--runs-per-gpu", "4"]) == 0
    assert (seen, asked) == ([None], []) if done else (["GPU-one"], [(1, 4, 0)])


def test_provenance_has_the_driver(machine):
    assert Stopwatch().record()["driver"] == "570.1"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_of_locks_that_another_user_made_is_not_used(kind, machine, tmp_path):
    """In a temporary folder that everybody may write."""
    folder = tmp_path / f"csebench-{os.getuid()}"
    if kind == "folder":
        folder.mkdir()
    else:
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    os.chown(folder, 12345, 12345, follow_symlinks=False)
    with pytest.raises(BadInput, match="belongs to another user"):
        acquire_gpus()
    assert not list(tmp_path.rglob("*.lock"))
