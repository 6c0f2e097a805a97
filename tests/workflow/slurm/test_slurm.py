"""A table on a real SLURM of two nodes: one training job is cancelled, one preempted, both go on where they were."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from project import copied

HERE, STEPS, PAGE = Path(__file__).parent, 100, "results/msse/table3.md"  # of two runs
LACKING = [
    why
    for why, there in {
        "CSEBENCH_SLURM=1 is not set (it starts daemons and writes to /etc/slurm)": os.environ.get("CSEBENCH_SLURM"),
        "not root": os.geteuid() == 0,
        "no slurmctld, slurmd and munged (Debian: slurm-wlm, munge)": all(
            map(shutil.which, ("slurmctld", "slurmd", "sbatch", "munged"))
        ),
        "/etc/slurm/slurm.conf is there, a SLURM of its own": not Path("/etc/slurm/slurm.conf").exists(),
        "no snakemake-executor-plugin-slurm (pip install -e '.[slurm]')": importlib.util.find_spec(
            "snakemake_executor_plugin_slurm"
        ),
    }.items()
    if not there
]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(LACKING), reason="; ".join(LACKING))]


@pytest.fixture
def slurm(tmp_path):
    try:
        subprocess.run([HERE / "up", tmp_path / "slurm"], check=True)
        yield
    finally:
        subprocess.run([HERE / "down", tmp_path / "slurm"], check=True)


@pytest.fixture
def project(tmp_path):
    """A copy of the project whose runs are long enough to be killed."""
    project = copied(tmp_path / "csebench", "results")
    smoke, profile = (project.folder / name for name in ("config/smoke.yaml", "profiles/slurm/config.yaml"))
    text = re.sub("^  steps: .*", f"  steps: {STEPS}", smoke.read_text(), flags=re.M)
    smoke.write_text(re.sub("^  evaluate_every: .*", f"  evaluate_every: {STEPS // 2}", text, flags=re.M))
    profile.write_text(re.sub("^    gpu: 1", "    gpu: 0", profile.read_text(), flags=re.M))  # a GPU that is not here
    return project.folder


def jobs() -> dict[str, str]:
    """Ids of the jobs that train, by run."""
    listed = subprocess.run(["squeue", "-h", "-t", "R", "-o", "%i %k"], capture_output=True, text=True, check=True)
    return {run: job for job, run in re.findall(r"^(\d+) rule_train_wildcards_(\S+)$", listed.stdout, re.M)}


def steps_of(folder) -> int:
    """That a run has made so far."""
    progress = folder / "progress.json"
    return json.loads(progress.read_text())["step"] if progress.exists() else 0


def wait_for(what, workflow, seconds=120):
    """The first true value of `what()`."""
    deadline = time.time() + seconds
    while not (found := what()):
        assert workflow.poll() is None and time.time() < deadline
        time.sleep(0.2)
    return found


def test_killed_jobs_go_on_and_the_table_is_complete(slurm, project):
    env = {**os.environ, "PYTHONPATH": str(project), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "snakemake", PAGE, "--workflow-profile", "profiles/slurm", "--printshellcmds"]
    command += ["--slurm-status-command", "squeue"]  # there is no accounting
    command += ["--slurm-init-seconds-before-status-checks", "2"]
    log = project / "snakemake.log"
    with log.open("w") as out:
        workflow = subprocess.Popen(command, cwd=project, env=env, stdout=out, stderr=out)
    try:
        cancelled, preempted = wait_for(lambda: len(found := sorted(jobs().items())) == 2 and found, workflow)
        for (run, job), kill in ((cancelled, ["scancel"]), (preempted, ["scontrol", "requeue"])):
            wait_for(lambda r=run: steps_of(project / "runs" / r), workflow)
            subprocess.run([*kill, job], check=True)
        assert workflow.wait(timeout=400) == 0, log.read_text()
    finally:
        workflow.kill()
    for run, _ in (cancelled, preempted):
        report = json.loads((project / "runs" / run / "train.json").read_text())
        assert 0 < report["resumed_at"] < STEPS == report["steps"]
    page = (project / PAGE).read_text()
    assert "- 2 of 2 runs scored" in page, page
    assert (
        len(re.findall("Trying to restart job", log.read_text())) == 1
    )  # the preempted one is SLURM's to start again
