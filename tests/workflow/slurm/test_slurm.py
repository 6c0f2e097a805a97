"""What a training asks SLURM for by the profile; and a table on a real SLURM of two nodes."""

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

HERE, STEPS, PAGE = Path(__file__).parent, 100, "results/msse/table3.md"  # of two runs
NEEDED = {
    "CSEBENCH_SLURM=1 is not set (it starts daemons and writes to /etc/slurm)": os.environ.get(
        "CSEBENCH_SLURM"
    ),
    "not root": os.geteuid() == 0,
    "no slurmctld, slurmd and munged (Debian: slurm-wlm, munge)": (
        shutil.which("slurmctld") and shutil.which("munged")
    ),
    "/etc/slurm/slurm.conf is there, a SLURM of its own": (
        not Path("/etc/slurm/slurm.conf").exists()
    ),
    "no plugin (pip install -e '.[slurm]')": importlib.util.find_spec(
        "snakemake_executor_plugin_slurm"
    ),
}
LACKING = "; ".join(why for why, there in NEEDED.items() if not there)
PARAMS = dict.fromkeys(
    ("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), ""
)
ASKED = [({}, {"--cpus-per-gpu=4", "--mem-per-cpu 4000"})]
# as docs/cluster.md says
ASKED += [({"gpu": 0, "mem_mb_per_cpu": 0}, {"--cpus-per-task=1", "--mem 16000"})]


class Resources(dict):
    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(("changed", "asked"), ASKED)
def test_processors_and_memory_of_a_training(changed, asked):
    """Without a SLURM: the plugin of Snakemake writes the command."""
    submit = pytest.importorskip(
        "snakemake_executor_plugin_slurm.submit_string", reason="pip install -e '.[slurm]'"
    )
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    resources = Resources({"mem_mb": 16000, **profile["set-resources"]["train"], **changed})
    command = submit.get_submit_command(SimpleNamespace(resources=resources, threads=1), PARAMS)
    assert all(f" {words} " in f"{command} " for words in asked), command


@pytest.fixture
def slurm(tmp_path):
    try:
        subprocess.run([HERE / "up", tmp_path / "slurm"], check=True)
        yield
    finally:
        subprocess.run([HERE / "down", tmp_path / "slurm"], check=True)


@pytest.fixture
def project(tmp_path):
    """A copy of the project whose runs are long enough to be killed, on a machine without a GPU."""
    project = copy_of_project(tmp_path / "csebench", "results")
    project.edit("config/smoke.yaml", "\n  steps: 6\n", f"\n  steps: {STEPS}\n")
    project.edit(
        "config/smoke.yaml", "\n  evaluate_every: 3\n", f"\n  evaluate_every: {STEPS // 2}\n"
    )
    project.edit("profiles/slurm/config.yaml", "\n    gpu: 1", "\n    gpu: 0")
    return project


def jobs() -> dict[str, str]:
    """Ids of the jobs that train, by run."""
    listed = subprocess.run(
        ["squeue", "-h", "-t", "R", "-o", "%i %k"], capture_output=True, text=True, check=True
    )
    return {
        run: job
        for job, run in re.findall(r"^(\d+) rule_train_wildcards_(\S+)$", listed.stdout, re.M)
    }


def wait_for(what, workflow, seconds=120):
    """The first true value of `what()`."""
    deadline = time.time() + seconds
    while not (found := what()):
        assert workflow.poll() is None and time.time() < deadline
        time.sleep(0.2)
    return found


@pytest.mark.slow
@pytest.mark.skipif(bool(LACKING), reason=LACKING)
def test_killed_jobs_go_on_and_the_table_is_complete(slurm, project):
    """One training job is cancelled, one preempted: both go on where they were."""
    command = [
        sys.executable,
        "-m",
        "snakemake",
        PAGE,
        "--workflow-profile",
        "profiles/slurm",
        "--printshellcmds",
    ]
    # no accounting
    command += [
        "--slurm-status-command",
        "squeue",
        "--slurm-init-seconds-before-status-checks",
        "2",
    ]
    log, runs = project.folder / "snakemake.log", project.folder / "runs"
    with log.open("w") as out:
        workflow = subprocess.Popen(
            command, cwd=project.folder, env=project.env, stdout=out, stderr=out
        )
    try:
        cancelled, preempted = wait_for(
            lambda: len(found := sorted(jobs().items())) == 2 and found, workflow
        )
        for (run, job), kill in ((cancelled, ["scancel"]), (preempted, ["scontrol", "requeue"])):
            progress = runs / run / "progress.json"
            wait_for(
                lambda path=progress: path.exists() and json.loads(path.read_text())["step"],
                workflow,
            )
            subprocess.run([*kill, job], check=True)
        assert workflow.wait(timeout=400) == 0, log.read_text()
    finally:
        workflow.kill()
    for run, _ in (cancelled, preempted):
        report = json.loads((runs / run / "train.json").read_text())
        assert 0 < report["resumed_at"] < STEPS == report["steps"]
    assert "- 2 of 2 runs scored" in (project.folder / PAGE).read_text()
    # the preempted one is SLURM's to start again
    assert log.read_text().count("Trying to restart job") == 1
