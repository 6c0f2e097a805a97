"""Jobs that a server runs in its forks end as they would without it, and run the code of now."""

import signal
import subprocess
import sys
import time

import pytest
from project import one_row_project

from csebench.base.job_server import JOB_SERVER

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="jobs are watched on Linux only"),
]
LONGEST = 60  # seconds
STARTS_A_SERVER = """\
import time
from pathlib import Path
from csebench.base import job_server
job_server.start_server(Path("jobs.sock"))
time.sleep(3600)
"""
LOSS = "    def loss(self, views: Views) -> Tensor:\n"
WAITS = """\
        import os, time
        assert "CSEBENCH_JOB_SERVER" not in os.environ, "this is no fork of the server"
        print("training", flush=True)
        time.sleep(2)  # time for a signal
"""
FAILS = """\
        raise ValueError("edited after the server was started")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with a server, whose jobs are started by `start_job`."""
    project = one_row_project(tmp_path_factory.mktemp("jobs") / "project")
    snakemake = subprocess.Popen(
        [sys.executable, "-c", STARTS_A_SERVER], cwd=project.folder, env=project.env
    )
    socket = project.folder / "jobs.sock"
    wait_for(socket.exists)
    project.env[JOB_SERVER] = str(socket)
    yield project
    snakemake.kill()
    snakemake.wait()
    wait_for(lambda: not socket.exists())  # the server ends with the process that started it


@pytest.fixture
def edit_loss(project):
    """`edit_loss(lines)`: put lines at the beginning of SimCSE's loss, until the test ends."""
    path = project.folder / "methods" / "simcse.py"
    original = path.read_text()
    yield lambda lines: project.edit("methods/simcse.py", LOSS, LOSS + lines)
    path.write_text(original)


def wait_for(condition):
    end = time.monotonic() + LONGEST
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def planned_run(project):
    code = "from csebench.plan import targets; print(*targets.runs('smoke'))"
    printed = subprocess.check_output(
        [sys.executable, "-c", code], cwd=project.folder, env=project.env, text=True
    )
    return printed.split()[0]


def start_job(project, run, **env):
    """Start a training, as the rule `train` does."""
    command = [sys.executable, "-m", "csebench", "work", run, "--scale", "smoke", "--evaluators="]
    return subprocess.Popen(
        command,
        cwd=project.folder,
        env=project.env | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_job_prints_and_ends_as_without_a_server(project):
    unknown_run = "simcse-0123456789"
    job = start_job(project, unknown_run)
    alone = start_job(project, unknown_run, **{JOB_SERVER: "none"})
    assert job.communicate(timeout=LONGEST) == alone.communicate(timeout=LONGEST)
    assert job.returncode == alone.returncode == 2


def test_a_job_runs_the_code_of_now(project, edit_loss):
    job = start_job(project, planned_run(project))
    job.communicate(timeout=LONGEST)
    assert job.returncode == 0

    edit_loss(FAILS)
    job = start_job(project, planned_run(project))
    printed, _ = job.communicate(timeout=LONGEST)
    assert "edited after the server was started" in printed
    assert job.returncode == 1


@pytest.fixture
def training(project, edit_loss):
    """A job in the middle of its training."""
    edit_loss(WAITS)
    job = start_job(project, planned_run(project))
    for line in job.stdout or ():
        if line == "training\n":
            break
    yield job
    job.kill()
    job.communicate(timeout=LONGEST)


def test_a_signal_reaches_the_training(training):
    training.send_signal(signal.SIGTERM)
    printed, _ = training.communicate(timeout=LONGEST)
    assert "stopped by SIGTERM" in printed
    assert training.returncode == 1


def test_a_training_ends_with_its_job(training):
    """Otherwise it would go on unnoticed by whoever killed the job."""
    training.kill()
    assert "stopped by SIGTERM" in training.stdout.read()


def test_a_job_works_alone_if_its_server_has_ended(project):
    job = start_job(project, planned_run(project), **{JOB_SERVER: "ended.sock"})
    job.communicate(timeout=LONGEST)
    assert job.returncode == 0
