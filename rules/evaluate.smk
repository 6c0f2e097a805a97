# Scores: one JSON file per run and evaluator. This rule requests no GPU, because the training job
# has usually computed the scores, and they are only copied. If scores must be computed, the job
# waits for a free GPU (csebench/base/gpus.py), or uses the CPU if the cluster assigned none.


rule evaluate:
    input:
        run=lambda wildcards: jobs.trained_run(
            wildcards.run,
            evaluator_of(wildcards),
            scale_of(wildcards),
            SCALE,
            workflow.dryrun,
        ),
        data=ancient(of_evaluation(jobs.evaluator_data)),
    output:
        "results/{folder}scores/{run}.{evaluator}.json",
    log:
        "runs/{run}/{folder}{evaluator}.log",
    conda:
        "../envs/evaluate.yaml"
    threads: threads_of
    resources:
        mem_mb=16000,
        runtime=lambda _, attempt: forecast.job_minutes(0, attempt),
    params:
        scale=scale_of,
        evaluator=evaluator_of,
        identity=of_evaluation(jobs.settings_identity),
        # a hash of the user's data files: if one is changed in place, its scores are made again
        data=of_evaluation(data_sources.given_data),
    message:
        "score {wildcards.run} by {params.evaluator}"
    shell:
        "python -m csebench publish {wildcards.run:q} {params.evaluator:q} --scale {params.scale:q} > {log:q} 2>&1"
