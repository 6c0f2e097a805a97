"""GPUs of a simulated nvidia-smi are assigned by lock files to processes that start as in the workflow."""

import os
import subprocess
import sys
import time

import pytest

from csebench import cli
from csebench import run as planned
from csebench.base import gpus
from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.runs import REPORT
from csebench.plan import targets

HOLD = """
import sys, time
from csebench.base import gpus
with gpus.acquire_gpus(int(sys.argv[1]), int(sys.argv[2])):
    import os
    print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def box(tmp_path, monkeypatch):
    """A machine with two GPUs, and lock files of its own."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho GPU-one\necho GPU-two\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(gpus, "POLL_SECONDS", 0.01)
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def hold():
    """Starts a process that holds GPUs until it is told to end."""
    started = []

    def start(count=1, sharing=1):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", HOLD, str(count), str(sharing)], cwd=ROOT, **pipes)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def held(process):
    return process.stdout.readline().strip()


def waits(process):
    return "waiting for" in process.stderr.readline()


def test_every_run_has_its_own_gpu(hold):
    first, second = hold(), hold()
    assert {held(first), held(second)} == {"GPU-one", "GPU-two"}
    third = hold()
    assert waits(third)
    second.kill()  # however it ends
    assert held(third)


def test_seeds_share_a_gpu_but_not_with_others(hold):
    assert held(hold()) == "GPU-one"
    assert [held(hold(sharing=2)) for _ in range(2)] == ["GPU-two"] * 2
    assert waits(hold(sharing=2)) and waits(hold())


def test_several_gpus_for_one_run(hold):
    both = hold(count=2)
    assert held(both) == "GPU-one,GPU-two"
    alone = hold()
    assert waits(alone)
    both.kill()
    assert held(alone) == "GPU-one"


def test_more_gpus_than_the_machine_has():
    with pytest.raises(BadInput, match="3 GPUs requested, 2 available"), gpus.acquire_gpus(3):
        pass


@pytest.mark.parametrize("visible", ["1", "GPU-two"])
def test_only_visible_gpus_are_used(visible, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with gpus.acquire_gpus():
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-two"
        with gpus.acquire_gpus():  # an evaluation inside of a run
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-two"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == visible


def test_what_torchrun_has_assigned_is_left_alone(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with gpus.acquire_gpus():
        assert "CUDA_VISIBLE_DEVICES" not in os.environ


@pytest.mark.parametrize(("assigned", "seen"), [("1", "GPU-two"), (None, "")])
def test_a_job_of_slurm_sees_what_it_was_assigned(assigned, seen, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    if assigned:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", assigned)
    with gpus.acquire_gpus():
        assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


def test_a_driver_without_gpus(tmp_path):
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho No devices were found\nexit 6\n")
    assert gpus.visible_gpus() == []


@pytest.mark.parametrize("done", [True, False])
def test_a_finished_run_waits_for_no_gpu(done, monkeypatch, tmp_path):
    run, seen, asked = next(iter(targets.runs("smoke"))), [], []
    if done:
        (tmp_path / "runs" / run / "model").mkdir(parents=True)
        (tmp_path / "runs" / run / "model" / REPORT).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(planned, "train_and_score", lambda *_: seen.append(os.environ.get("CUDA_VISIBLE_DEVICES")))
    monkeypatch.setattr(gpus, "_lock_gpus", lambda gpus, count, sharing: asked.append(sharing) or ["GPU-two"])
    assert cli.main(["work", run, "--runs-per-gpu", "4"]) == 0
    assert (seen, asked) == ([None], []) if done else (["GPU-two"], [4])


def test_no_gpu(monkeypatch, tmp_path):
    (tmp_path / "nvidia-smi").unlink()
    with gpus.acquire_gpus(4):
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert not list(tmp_path.rglob("*.lock"))


def test_locks_outlive_a_replaced_process(hold, tmp_path):
    """`csebench work --processes 2` becomes torchrun."""
    script = HOLD.split("    import os")[0] + "    import os; os.execvp('sleep', ['sleep', '30'])\n"
    process = subprocess.Popen([sys.executable, "-c", script, "2", "1"], cwd=ROOT)
    for _ in range(200):
        if len(list(tmp_path.rglob("*.lock"))) == 4:
            break
        time.sleep(0.05)
    time.sleep(0.2)
    alone = hold()
    assert waits(alone)
    process.kill()
    assert held(alone) == "GPU-one"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder away")
@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_folder_of_locks_that_another_user_made_is_not_used(kind, tmp_path):
    """In a temporary folder that everybody may write."""
    folder = tmp_path / f"csebench-{os.getuid()}"
    if kind == "folder":
        folder.mkdir()
    else:
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    os.chown(folder, 12345, 12345, follow_symlinks=False)
    with pytest.raises(BadInput, match="belongs to another user"), gpus.acquire_gpus():
        pass
    assert not list(tmp_path.rglob("*.lock"))
