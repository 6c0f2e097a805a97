# Shared by all rules: the environment of jobs, the scale, and helpers. The logic of rules is in csebench/study/workflow.py.
import os
import re
import sys
from pathlib import Path

from csebench.base import gpus, project
from csebench.plan import forecast, targets
from csebench.plan.catalog import data_sources, files as catalog
from csebench.study import workflow as jobs  # `workflow` is a name of Snakemake


envvars:
    "PATH",


# folders that join the project; those of --config are relative to where the workflow was started
if "project" in config and (
    workflow.is_main_process or project.VARIABLE not in os.environ
):
    for name in (names := str(config["project"]).split(os.pathsep)):
        if not Path(name).is_dir():
            raise WorkflowError(f"--config project: {name}: no such folder.")
    project.join(names)
if project.folders()[1:]:

    workdir: str(project.folders()[-1])


# jobs use the python that runs snakemake
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
# `exec` replaces the shell: else SIGTERM ends the shell first, and the job is killed while it writes its checkpoint.
shell.prefix("set -euo pipefail; exec ")
SCALE = config.get("scale", catalog.DEFAULT_SCALE)
GPU = int(bool(gpus.visible_gpus()))  # GPUs that a run requests

jobs.start(SCALE)

if workflow.is_main_process:  # not a job, which reads this file again
    if not workflow.dryrun:
        jobs.hold_folder()
    jobs.report_defects(SCALE)


def inputs(output):
    """Inputs of the rule of a page, by its path."""
    scale = SCALE if "scale" in config else None
    return lambda wildcards: jobs.inputs_of(
        output.format(**dict(wildcards.items())), scale, workflow.dryrun
    )


def scale_of(wildcards):
    return wildcards.folder.rstrip("/") or catalog.DEFAULT_SCALE


def evaluator_of(wildcards):
    return wildcards.evaluator.replace(".", ":")


def of_evaluation(function):
    """What a function of an evaluator and a scale gives for a job."""
    checked = jobs.refusing(function)
    return lambda wildcards: checked(evaluator_of(wildcards), scale_of(wildcards))


def threads_of(wildcards):
    return jobs.planned_run(wildcards.run, SCALE)[1].threads


def wanted_evaluators(wildcards):
    """What a run is scored by. A job of a cluster is another Snakemake, which learns the targets by its environment."""
    called_for = " ".join(sorted(workflow.dag_settings.targets))
    wanted = os.environ.setdefault("CSEBENCH_TARGETS", called_for)
    return jobs.wanted_evaluators(wildcards.run, SCALE, wanted.split())
