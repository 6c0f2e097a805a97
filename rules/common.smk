# What all rules share: the folders of the project, the environment of jobs, the scale, and
# functions of wildcards. The functions only turn wildcards into arguments of
# csebench/study/workflow.py.
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


# Join the folders of `--config project=…`, which are relative to where the workflow was started.
# Jobs read this file again, in another folder. There, the environment has the joined folders,
# unless a cluster does not pass it on.
if "project" in config and (
    workflow.is_main_process or project.VARIABLE not in os.environ
):
    joined = str(config["project"]).split(os.pathsep)
    for name in joined:
        if not Path(name).is_dir():
            raise WorkflowError(f"--config project: {name}: no such folder.")
    project.join(joined)
if project.folders()[1:]:  # the last joined folder gets the results

    workdir: str(project.folders()[-1])


# Jobs use the python that runs snakemake.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
# `exec` replaces the shell by the job. Otherwise SIGTERM would end the shell first, and the job
# would be killed while it writes its checkpoint.
shell.prefix("set -euo pipefail; exec ")
SCALE = config.get("scale", catalog.DEFAULT_SCALE)
GPU = 1 if gpus.visible_gpus() else 0  # how many GPUs a run requests

jobs.start(SCALE)

if workflow.is_main_process:  # jobs read this file, too
    if not workflow.dryrun:
        jobs.hold_folder()
    jobs.report_defects(SCALE)
    environments = workflow.deployment_settings.deployment_method
    if workflow.local_exec and not (workflow.dryrun or environments or GPU):
        jobs.start_job_server()


def inputs(output):
    """Make the input function of a rule that writes the file `output`, a path with wildcards."""
    scale = SCALE if "scale" in config else None

    def inputs_of_page(wildcards):
        path = output.format(**dict(wildcards.items()))
        return jobs.inputs_of(path, scale, workflow.dryrun)

    return inputs_of_page


def scale_of(wildcards):
    return wildcards.folder.rstrip("/") or catalog.DEFAULT_SCALE


def evaluator_of(wildcards):
    return wildcards.evaluator.replace(".", ":")


def of_evaluation(function):
    """Turn a function of an evaluator and a scale into a function of wildcards."""
    checked = jobs.refusing(function)

    def value_of_job(wildcards):
        return checked(evaluator_of(wildcards), scale_of(wildcards))

    return value_of_job


def threads_of(wildcards):
    _, scale = jobs.planned_run(wildcards.run, SCALE)
    return scale.threads


def wanted_evaluators(wildcards):
    """List the evaluators that score a run after training.

    On a cluster, each job is a Snakemake of its own with one target. Its environment has the
    targets of the Snakemake that the user started.
    """
    targets_here = " ".join(sorted(workflow.dag_settings.targets))
    first_targets = os.environ.setdefault("CSEBENCH_TARGETS", targets_here)
    return jobs.wanted_evaluators(wildcards.run, SCALE, first_targets.split())
