# All steps from data to pages: `snakemake -j4 results/table2.md` trains, scores and renders what
# the page needs.
import gc

from snakemake.utils import min_version

min_version("9.0")
gc.set_threshold(1_000_000)  # planning frees few objects: do not look for them often


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/train.smk"
include: "rules/evaluate.smk"
include: "rules/tables.smk"


wildcard_constraints:
    run=r"\w+-[0-9a-f]{10}",
    evaluator=r"[\w.-]+",
    folder=r"(?!partial/)(\w+/)?",
    page=jobs.PAGE,
    row=jobs.ROW,
    figure=r"(?!partial/)(\w+/){1,2}figure\w+",
    key=r"[0-9a-f]+",


rule all:
    default_target: True
    input:
        jobs.inputs_of_all(SCALE),
    localrule: True
    message:
        "all pages of scale {SCALE} are there"


onerror:
    # read the logs of the jobs, because `--quiet all` leaves Snakemake's own log empty
    jobs.report_failures(
        path for job in workflow.scheduler.failed for path in job.log
    )


onsuccess:
    if workflow.is_main_process:  # jobs read this file, too
        jobs.report_success(workflow.dag_settings.targets, SCALE)
