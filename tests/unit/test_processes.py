"""One process at a time works on a run. Lock files assign the GPUs of a simulated nvidia-smi."""

import contextlib
import errno
import fcntl
import os
import select
import shutil
import signal
import sys
import time
from functools import partial

import pytest

from csebench import cli
from csebench.base import files, locks, supervision
from csebench.base import gpus as gpu_module
from csebench.base.errors import BadInput, RunFailed
from csebench.base.gpus import acquire_gpus, device_type
from csebench.base.provenance import Stopwatch
from csebench.base.runs import DONE, REPORT, lock_run
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.declarations import Evaluation
from csebench.score.evaluate import evaluate_run
from csebench.study import search
from csebench.study import work as planned


class Process:
    """A fork that begins its work when it is told to."""

    def __init__(self, work):
        printed, stderr = os.pipe()
        told, self.tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            sys.stderr = os.fdopen(stderr, "w")
            try:
                os.read(told, 1)
                work()
            finally:
                os._exit(0)
        os.close(stderr)
        os.close(told)
        self.printed = os.fdopen(printed, "rb", buffering=0)

    def begin(self):
        os.write(self.tell, b"x")

    def line(self):
        """Read the next line on its stderr; empty once it has ended."""
        readable, _, _ = select.select([self.printed], [], [], 60)
        assert readable, "it still waits"
        return self.printed.readline().decode().strip()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


@pytest.fixture
def start():
    """`start(work)`: a process that does some work once it is told to begin."""
    started = []

    def start(work):
        process = Process(work)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.printed.close()
        os.close(process.tell)


# ---------------------------------------------------------------- runs


def is_locked(folder):
    lock = folder.with_name(f".{folder.name}.lock")
    if not lock.exists():
        return False
    if (file := locks.take(lock)) is not None:
        os.close(file)
    return file is None


def test_the_second_worker_waits_and_takes_the_model_of_the_first(
    start, finished, make_spec, train, tmp_path
):
    out, made = tmp_path / "run", finished("simcse")
    second = start(partial(train, make_spec("simcse"), out))
    with lock_run(out):
        second.begin()
        assert second.line().startswith("run: another process works on it")
        shutil.copytree(made, out, dirs_exist_ok=True)
    assert second.line() == ""
    assert (out / DONE).read_bytes() == (made / DONE).read_bytes()


def test_without_locks_a_model_that_another_made_meanwhile_is_kept(
    finished, make_spec, train, tmp_path, monkeypatch, capsys
):
    """On a file system without locks, which is named."""
    from csebench.train import run

    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    def fit_slowly(spec, params, out, *args):
        fitted = fit(spec, params, out, *args)
        shutil.copytree(made, out, dirs_exist_ok=True)
        return fitted

    made, fit = finished("simcse"), run.fit
    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(run, "fit", fit_slowly)
    monkeypatch.setattr(run, "export", lambda *_: pytest.fail("exported"))
    train(make_spec("simcse"), tmp_path / "run")
    assert f"{tmp_path}: this file system has no locks" in capsys.readouterr().err


def test_an_inner_lock_of_the_same_process_leaves_the_outer_one(tmp_path):
    with lock_run(tmp_path):
        with lock_run(tmp_path):
            pass
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_process_of_torchrun_ends_with_it(start):
    """Else it would train on without the lock."""

    def be_torchrun():
        if os.fork() == 0:
            supervision.end_with_parent()
            print("started", file=sys.stderr, flush=True)
        time.sleep(60)

    torchrun = start(be_torchrun)
    torchrun.begin()
    assert torchrun.line() == "started"
    torchrun.kill()
    assert torchrun.line() == ""


# ---------------------------------------------------------------- GPUs

TWO = ["GPU 0: NVIDIA H100 (UUID: GPU-one)", "GPU 1: NVIDIA H100 (UUID: GPU-two)"]
SLICED = [
    TWO[0],
    "  MIG 3g.40gb Device 0: (UUID: MIG-a)",
    "  MIG 3g.40gb Device 1: (UUID: MIG-b)",
    TWO[1],
]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine(lines of nvidia-smi -L, lines of its memory)`; two GPUs to begin with, and lock
    files of its own."""
    program = tmp_path / "nvidia-smi"

    def make(listed, memory=()):
        script = ["#!/bin/sh", 'case "$*" in']
        outputs = {"-L": listed, "*memory*": memory, "*driver*": ["570.1"]}
        for options, lines in outputs.items():
            script += [f"{options})", "cat <<.", *lines, ".", ";;"]
        script.append("esac")
        program.write_text("\n".join(script))
        program.chmod(0o755)

    make(TWO)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(gpu_module, "version", lambda package: "2.13.0")
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "WORLD_SIZE"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    yield make
    gpu_module._release(0)


class Waits(Exception):
    """Raised where a process would wait."""


@pytest.fixture
def acquire(machine, monkeypatch):
    """`acquire(2, 1)`: the GPUs that acquire_gpus(2, 1) gives to one more process; None where it
    would wait."""
    locks = []

    def sleep(_):
        raise Waits

    def in_another_process(*request):
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        try:
            acquire_gpus(*request)
        except Waits:
            return None
        locks.extend(gpu_module._held)
        gpu_module._held.clear()
        return os.environ["CUDA_VISIBLE_DEVICES"]

    monkeypatch.setattr(time, "sleep", sleep)
    yield in_another_process
    for lock in locks:
        os.close(lock)


# Arguments of acquire_gpus: a run alone on its GPU, one of two seeds that share one, and scoring.
ALONE = (1, 1)
SEED = (1, 2)
SCORING = (0, 0)


@pytest.mark.parametrize(
    ("requests", "gpus"),
    [
        ([ALONE, ALONE, ALONE], ["GPU-one", "GPU-two", None]),
        ([(2,), ALONE], ["GPU-one,GPU-two", None]),
        ([ALONE, (2,), ALONE], ["GPU-one", None, "GPU-two"]),  # what is too much locks nothing
        ([SEED, SEED, SEED, ALONE, SEED], ["GPU-one", "GPU-one", "GPU-two", None, "GPU-two"]),
        (
            [SEED, SEED, SEED, SEED, SCORING, SCORING, SCORING],
            ["GPU-one", "GPU-one", "GPU-two", "GPU-two", "GPU-one", "GPU-two", None],
        ),
        ([SCORING, SCORING, ALONE], ["GPU-one", "GPU-two", None]),
        ([ALONE, ALONE, SCORING], ["GPU-one", "GPU-two", None]),
    ],
)
def test_which_gpu_a_process_gets(requests, gpus, acquire):
    """Seeds share one, two at a time. Scoring takes one more place. Runs alone share none."""
    assert [acquire(*request) for request in requests] == gpus


def test_a_gpu_with_too_little_free_memory_is_not_chosen(acquire, machine, capsys):
    """Another user may be on it. A run that no GPU could ever hold waits for none."""
    machine(TWO, ["GPU-one, 9000, 80000", "GPU-two, 40000, 80000"])
    assert acquire(1, 1, 50_000) is None
    assert "waiting for 1 of 2 GPUs to be free, each with 50,000 MiB" in capsys.readouterr().err

    assert acquire(1, 1, 20_000) == "GPU-two"
    assert acquire(1, 1, 20_000) is None
    assert acquire(1, 1, 90_000) == "GPU-one"


def test_gpus_and_the_lock_of_a_run_are_held_through_exec_until_the_process_ends(
    start, machine, tmp_path
):
    def become_torchrun():
        acquire_gpus(2)
        with lock_run(tmp_path / "run"):
            (tmp_path / "run").mkdir()
            os.execvp("sleep", ["sleep", "60"])

    torchrun, other = start(become_torchrun), start(acquire_gpus)
    torchrun.begin()
    assert torchrun.line() == ""  # as it is another program now
    other.begin()
    assert "waiting for" in other.line() and is_locked(tmp_path / "run")
    torchrun.kill()
    assert other.line() == "" and not is_locked(tmp_path / "run")


def test_a_process_takes_gpus_once(acquire):
    """Its CUDA stays there, even between two trials of a search."""
    acquire_gpus()
    acquire_gpus()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-one"


def test_a_run_needs_the_memory_that_its_other_seeds_needed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    cells = {}
    for spec in targets.runs("smoke").values():
        cells.setdefault(spec.cell_id, []).append(spec)
    largest_cell, second_largest, *_ = sorted(cells.values(), key=len, reverse=True)
    run, other_seed, *_ = largest_cell
    run_of_another_cell = second_largest[0]

    def note_peak(spec, megabytes):
        report = {"provenance": {"peak_gpu_mb": megabytes}}
        files.write_json(tmp_path / "runs" / spec.run_id / DONE, report)

    note_peak(other_seed, 5000)
    note_peak(run_of_another_cell, 9000)

    assert planned.memory_of_other_seeds(run, "smoke") == 5000


@pytest.mark.parametrize(
    ("listed", "allowed", "gpus"),
    [
        (TWO, None, "GPU-one GPU-two"),
        (TWO, "GPU-t", "GPU-two"),
        (TWO, "0,0,GPU-one", "GPU-one"),
        (TWO, "1, 0", "GPU-two GPU-one"),
        (TWO, "", ""),
        (TWO, "0,-1,1", "GPU-one"),
        (SLICED, None, "MIG-a MIG-b GPU-two"),
        (SLICED, "0", "MIG-a MIG-b"),
        (SLICED, "MIG-b", "MIG-b"),
        (SLICED, "1,MIG-a,MIG-c", "GPU-two MIG-a"),
    ],
)
def test_the_gpus_that_cuda_would_show(listed, allowed, gpus, machine, monkeypatch):
    machine(listed)
    if allowed is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    assert gpu_module.visible_gpus() == gpus.split()


@pytest.mark.parametrize("lacking", ["GPU", "driver", "CUDA"])
def test_no_gpu(lacking, machine, monkeypatch, tmp_path):
    if lacking == "GPU":
        machine(["No devices were found"], ["No devices were found"])
    elif lacking == "driver":
        (tmp_path / "nvidia-smi").unlink()
    else:
        monkeypatch.setattr(gpu_module, "version", lambda package: "2.13.0+cpu")

    acquire_gpus()

    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.parametrize(
    ("count", "allowed", "listed"), [(3, "0,1", TWO), (1, "", TWO), (2, "0", SLICED)]
)
def test_a_promised_gpu_that_is_not_there_ends_the_run(
    count, allowed, listed, machine, monkeypatch
):
    """Otherwise the run would take days on the CPU. A slice is no GPU for several processes."""
    machine(listed)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    with pytest.raises(BadInput, match=f"requested: {count}, available"):
        acquire_gpus(count)


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
    if seen != "GPU-two":
        assert device_type() == "cpu"


@pytest.mark.parametrize("named", ["7", "0"])
def test_a_gpu_that_pytorch_cannot_use_ends_the_run(named, machine, monkeypatch):
    """It may not be there, or its driver may be too old for PyTorch."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    acquire_gpus()
    with pytest.raises(RunFailed, match="cannot use the GPU"):
        device_type()


def test_the_option_device_leaves_gpus_alone(machine, monkeypatch):
    monkeypatch.setattr(planned, "publish_planned", lambda *_: acquire_gpus())

    assert cli.main(["publish", "run", "sts", "--device", "cpu"]) == 0

    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert not gpu_module._held


@pytest.mark.parametrize("command", ["train", "work", "tune", "evaluate"])
def test_who_waits_for_a_gpu_holds_no_run(command, finished, smoke_data, monkeypatch, tmp_path):
    """Else it and the process that has the GPU, and waits for the run, would wait for each
    other."""
    run, spec = next(iter(targets.runs("smoke").items()))
    folder, asked = catalog.RUNS / run, []
    commands = {
        "train": (partial(planned.train_spec, spec, folder, inputs=None), (), {}),
        "work": (partial(planned.work, run, "smoke", None, 1, 4), (1, 4, 0), {}),
        "tune": (partial(search.train_unless_done, spec, catalog.scale("smoke")), (), {}),
        "evaluate": (
            partial(evaluate_run, folder, ["sts"], smoke_data, Evaluation()),
            (),
            {"sharing": 0},
        ),
    }

    def wait(*arguments, **more):
        asked.append((arguments, more, is_locked(folder)))
        raise Waits

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planned, "acquire_gpus", wait)
    monkeypatch.setattr(search, "acquire_gpus", wait)
    monkeypatch.setattr("csebench.score.evaluate.acquire_gpus", wait)
    if command == "evaluate":
        shutil.copytree(finished("bert"), folder)
        # other tests may have scored the run, and then nothing would wait
        shutil.rmtree(folder / "scores", ignore_errors=True)
    call, *wanted = commands[command]
    with pytest.raises(Waits):
        call()
    assert asked == [(*wanted, False)]


def test_a_finished_run_waits_for_no_gpu(monkeypatch, tmp_path):
    run = next(iter(targets.runs("smoke")))
    files.write_json(tmp_path / "runs" / run / "model" / REPORT, {})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planned, "acquire_gpus", lambda *_: pytest.fail("it waits"))
    monkeypatch.setattr("csebench.base.runs.refuse_other_run", lambda *_: None)
    monkeypatch.setattr(planned, "train_and_score", lambda *_: None)
    planned.work(run, "smoke", None, 0, 1)


def test_provenance_has_the_driver(machine):
    assert Stopwatch().record()["driver"] == "570.1"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away")
@pytest.mark.parametrize("make", [os.mkdir, partial(os.symlink, ".")])
def test_a_folder_of_locks_that_another_user_made_is_not_used(make, machine, tmp_path):
    """Everybody may write to the temporary folder."""
    folder = tmp_path / f"csebench-{os.getuid()}"
    make(folder)
    os.chown(folder, 12345, 12345, follow_symlinks=False)
    with pytest.raises(BadInput, match="belongs to another user"):
        acquire_gpus()
    assert not list(tmp_path.rglob("*.lock"))
