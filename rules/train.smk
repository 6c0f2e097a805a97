# One job a run: it trains, and scores what the pages want while the encoder is in memory.
# Runs are content-addressed, so the inputs are `ancient`: a newer copy of the data is not other data.


rule train:
    input:
        ancient(lambda wildcards: jobs.run_data(wildcards.run, SCALE)),
    output:
        "runs/{run}/train.json",
    log:
        "runs/{run}/train.log",
    conda:
        "../envs/train.yaml"
    threads: lambda wildcards: jobs.threads(wildcards.run, SCALE)
    resources:
        gpu=GPU,
        runs_per_gpu=1,
        mem_mb=16000,  # BERT-large's optimiser and best weights, on a CPU too
        runtime=lambda wildcards, attempt: jobs.training_minutes(
            wildcards.run, SCALE, attempt
        ),
    params:
        scale=lambda wildcards: targets.scale_of_run(wildcards.run, SCALE),
    shell:
        "python -m csebench work {wildcards.run} --scale {params.scale} --processes {resources.gpu}"
        " --runs-per-gpu {resources.runs_per_gpu} > {log} 2>&1"
