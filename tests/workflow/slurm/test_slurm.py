"""SLURM: what the profile asks it for, and a table on a real SLURM of two nodes."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from project import copy_of_project

from csebench.base.project import ROOT

HERE = Path(__file__).parent
STEPS = 100
PAGE = "results/msse/table8.md"  # of two runs


# ---------------------------------------------------------------- without a SLURM


class Resources(dict):
    """The resources of a job, as Snakemake gives them to the plugin."""

    __getattr__ = dict.__getitem__


PLUGIN_PARAMS = {
    "run_uuid": "",
    "slurm_logfile": "",
    "comment_str": "",
    "account": "",
    "partition": "",
    "workdir": "",
}


@pytest.mark.parametrize(
    ("changed", "options"),
    [
        ({}, ["--cpus-per-gpu=4", "--mem-per-cpu 4000"]),
        # as docs/cluster.md says
        ({"gpu": 0, "mem_mb_per_cpu": 0}, ["--cpus-per-task=1", "--mem 16000"]),
    ],
    ids=["gpu", "cpu"],
)
def test_processors_and_memory_of_a_training(changed, options):
    """Snakemake's plugin writes the command."""
    submit = pytest.importorskip(
        "snakemake_executor_plugin_slurm.submit_string", reason="pip install -e '.[slurm]'"
    )
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    resources = Resources({"mem_mb": 16000, **profile["set-resources"]["train"], **changed})
    job = SimpleNamespace(resources=resources, threads=1)

    command = submit.get_submit_command(job, PLUGIN_PARAMS)

    for option in options:
        assert f" {option} " in f"{command} ", command


# ---------------------------------------------------------------- on a real SLURM


def what_is_lacking() -> str:
    """Say why no SLURM can be started here; empty if one can."""
    lacking = []
    if not os.environ.get("CSEBENCH_SLURM"):
        lacking.append("CSEBENCH_SLURM=1 is not set (it starts daemons and writes to /etc/slurm)")
    if os.geteuid() != 0:
        lacking.append("not root")
    if not shutil.which("slurmctld") or not shutil.which("munged"):
        lacking.append("no slurmctld, slurmd and munged (Debian: slurm-wlm, munge)")
    if Path("/etc/slurm/slurm.conf").exists():
        lacking.append("/etc/slurm/slurm.conf is there, a SLURM of its own")
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        lacking.append("no plugin (pip install -e '.[slurm]')")
    return "; ".join(lacking)


LACKING = what_is_lacking()


@pytest.fixture
def slurm(tmp_path):
    """A SLURM of two nodes on this machine."""
    try:
        subprocess.run([HERE / "up", tmp_path / "slurm"], check=True)
        yield
    finally:
        subprocess.run([HERE / "down", tmp_path / "slurm"], check=True)


@pytest.fixture
def project(tmp_path):
    """A copy of the project whose runs are long enough to be killed, on a machine without a GPU."""
    project = copy_of_project(tmp_path / "csebench", "results")
    smoke = "config/smoke.yaml"
    project.edit(smoke, "\n  steps: 6\n", f"\n  steps: {STEPS}\n")
    project.edit(smoke, "\n  evaluate_every: 3\n", f"\n  evaluate_every: {STEPS // 2}\n")
    project.edit("profiles/slurm/config.yaml", "\n    gpu: 1", "\n    gpu: 0")
    return project


@pytest.mark.slow
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_killed_jobs_go_on_and_the_table_is_complete(slurm, project):
    """One training job is cancelled, one preempted. Both go on where they were."""
    log = project.folder / "snakemake.log"
    runs = project.folder / "runs"
    workflow = start_workflow(project, log)
    try:
        jobs = wait_for(both_jobs, workflow)
        cancelled, preempted = sorted(jobs)
        wait_for(lambda: has_trained_a_step(runs / cancelled), workflow)
        subprocess.run(["scancel", jobs[cancelled]], check=True)
        wait_for(lambda: has_trained_a_step(runs / preempted), workflow)
        subprocess.run(["scontrol", "requeue", jobs[preempted]], check=True)
        assert workflow.wait(timeout=400) == 0, log.read_text()
    finally:
        workflow.kill()

    for run_id in (cancelled, preempted):
        report = json.loads((runs / run_id / "train.json").read_text())
        assert report["steps"] == STEPS
        assert 0 < report["resumed_at"] < STEPS
    assert "- 2 of 2 runs scored" in (project.folder / PAGE).read_text()
    # Snakemake restarts the cancelled one only, because SLURM itself restarts the preempted one
    assert log.read_text().count("Trying to restart job") == 1


def start_workflow(project, log: Path) -> subprocess.Popen:
    """Start Snakemake with the profile for SLURM."""
    command = [sys.executable, "-m", "snakemake", PAGE]
    command += ["--workflow-profile", "profiles/slurm", "--printshellcmds"]
    # this SLURM keeps no accounts, which the plugin would ask
    command += ["--slurm-status-command", "squeue"]
    command += ["--slurm-init-seconds-before-status-checks", "2"]
    with log.open("w") as out:
        return subprocess.Popen(
            command, cwd=project.folder, env=project.env, stdout=out, stderr=out
        )


def both_jobs() -> dict[str, str] | None:
    """Return the ids of the two jobs that train, by the ids of their runs; None until both run."""
    command = ["squeue", "-h", "-t", "R", "-o", "%i %k"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    jobs = re.findall(r"^(\d+) rule_train_wildcards_(\S+)$", listed, re.M)
    if len(jobs) < 2:
        return None
    return {run_id: job for job, run_id in jobs}


def has_trained_a_step(run: Path) -> bool:
    """Whether the progress of a run says that it has made a step."""
    progress = run / "progress.json"
    return progress.exists() and bool(json.loads(progress.read_text())["step"])


def wait_for(condition, workflow, seconds=120):
    """Wait while the workflow runs, and return the first true value of `condition()`."""
    deadline = time.time() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert workflow.poll() is None
        assert time.time() < deadline
        time.sleep(0.2)
