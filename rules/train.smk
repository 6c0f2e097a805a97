# Runs: one job trains a model. While the encoder is in memory, it also computes the scores that
# pages need. Inputs are `ancient`, so that a newer copy of the same data starts nothing. Other data
# has another hash, and run ids contain the hash.


rule train:
    input:
        ancient(lambda wildcards: jobs.run_data(wildcards.run, SCALE)),
    output:
        "runs/{run}/train.json",
    log:
        "runs/{run}/train.log",
    conda:
        "../envs/train.yaml"
    threads: threads_of
    resources:
        gpu=GPU,
        runs_per_gpu=1,
        chunk_size=0,  # sentences in memory at a time; 0: the whole batch
        tries=lambda wildcards, attempt: attempt,
        evaluators=wanted_evaluators,  # a resource, because a changed parameter would train again
        mem_mb=16000,  # for the optimiser state and best weights of BERT-large
        runtime=lambda wildcards, attempt: jobs.training_minutes(
            wildcards.run, SCALE, attempt
        ),
    params:
        scale=lambda wildcards: targets.scale_of_run(wildcards.run, SCALE),
    message:
        "train {wildcards.run}"
    shell:
        "python -m csebench work {wildcards.run:q} --scale {params.scale:q} --processes {resources.gpu:q}"
        " --runs-per-gpu {resources.runs_per_gpu:q} --chunk-size {resources.chunk_size:q} --attempt {resources.tries:q}"
        " --evaluators={resources.evaluators:q} > {log:q} 2>&1"
