# One job a run: it trains, and scores what the pages want while the encoder is in memory.
# Runs are content-addressed, so the inputs are `ancient`: a newer copy of the data is not other data.


rule train:
    input:
        ancient(run_data),
    output:
        "runs/{run}/train.json",
    log:
        "runs/{run}/train.log",
    conda:
        "../envs/train.yaml"
    threads: run_threads
    resources:
        gpu=GPU,
        runs_per_gpu=1,
        mem_mb=16000,  # BERT-large's optimiser and best weights, on a CPU too
        runtime=training_minutes,
    params:
        scale=scale_of_run,
    shell:
        "python -m csebench work {wildcards.run} --scale {params.scale} --processes {resources.gpu}"
        " --runs-per-gpu {resources.runs_per_gpu} > {log} 2>&1"
