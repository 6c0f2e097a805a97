# What the rules share: the environment of jobs, and the scale. Rules compute with csebench/workflow.py.
import os
import sys
from pathlib import Path

from csebench import workflow as jobs  # `workflow` is a name of Snakemake
from csebench.base import gpus
from csebench.base.errors import BadInput
from csebench.plan import catalog, forecast, targets


envvars:
    "PATH",


# jobs use the python that runs snakemake
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
# A shell around a job would end at SIGTERM, and what waits for it would kill the job while it writes its checkpoint.
shell.prefix("set -euo pipefail; exec ")
SCALE = config.get("scale", catalog.DEFAULT_SCALE)
GPU = int(bool(gpus.visible_gpus()))  # GPUs that a run asks for

try:
    catalog.require_checkout()
    targets.runs(SCALE)
except BadInput as error:
    jobs.refuse(error)


def page(wildcards):
    """The page of a job, whose scale --config must not contradict."""
    path = wildcards.get("page") or wildcards.grid
    return jobs.page_of(path, SCALE if "scale" in config else None)


def scale_of(wildcards):
    return jobs.scale_of_folder(wildcards.folder)


def evaluator_of(wildcards):
    return wildcards.evaluator.replace(".", ":")
