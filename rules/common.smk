# Shared by all rules: the environment of jobs, the scale, and helpers. The logic of rules is in csebench/workflow.py.
import os
import sys
from pathlib import Path

from csebench import workflow as jobs  # `workflow` is a name of Snakemake
from csebench.base import gpus
from csebench.plan import catalog, forecast, targets, tuning
from csebench.plan.page_files import count_edits


envvars:
    "PATH",


# jobs use the python that runs snakemake
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
# `exec` replaces the shell: else SIGTERM ends the shell first, and the job is killed while it writes its checkpoint.
shell.prefix("set -euo pipefail; exec ")
SCALE = config.get("scale", catalog.DEFAULT_SCALE)
CHOSEN = config.get("runs") or {}  # from a file that `csebench plan --hours` wrote
GPU = int(bool(gpus.visible_gpus()))  # GPUs that a run requests

CHOSEN_SCORES = jobs.start(SCALE, CHOSEN)
run_title = jobs.RunTitle(SCALE)  # of messages

if workflow.is_main_process:  # not a job, which reads this file again
    jobs.report_unversioned_code()


def page(wildcards):
    """The page of a job, whose scale --config must not contradict."""
    path = wildcards.get("page") or wildcards.grid
    return jobs.page_of(path, SCALE if "scale" in config else None)


def scale_of(wildcards):
    return jobs.scale_of_folder(wildcards.folder)


def evaluator_of(wildcards):
    return wildcards.evaluator.replace(".", ":")


def wanted_evaluators(wildcards):
    """What a run is scored by. A job of a cluster is another Snakemake, which learns the targets by its environment."""
    called_for = " ".join(sorted(workflow.dag_settings.targets))
    wanted = os.environ.setdefault("CSEBENCH_TARGETS", called_for)
    return jobs.wanted_evaluators(wildcards.run, SCALE, wanted.split(), CHOSEN)


def edits_of(*outputs):
    """A parameter of rules that write pages, by their paths: one that was edited by hand is made again. A function of
    `output` would not do: Snakemake does not compare what follows from other parts of a rule.
    """
    return lambda wildcards: count_edits(
        *(Path(output.format(**dict(wildcards.items()))) for output in outputs)
    )
