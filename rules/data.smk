# Data: fetch official data once, if no data root is given, and translate corpora to another
# language and back. A fetched file with the wrong checksum is deleted.


localrules:
    fetch,


rule fetch:
    output:
        f"{catalog.FETCHED}/{{marker}}",  # written after all files of the source
    log:
        f"{catalog.FETCHED}/.logs/{{marker}}.log",
    wildcard_constraints:
        marker="|".join(
            re.escape(source.marker) for source in data_sources.sources().values()
        ),
    retries: 3
    conda:
        "../envs/train.yaml"
    params:
        source=lambda wildcards: data_sources.source_of(wildcards.marker),
    message:
        "fetch {params.source}"
    shell:
        "python -m csebench fetch {params.source:q} > {log:q} 2>&1"


rule back_translate:
    input:
        ancient(lambda wildcards: targets.back_translation(wildcards.key, SCALE)[0]),
    output:
        f"{catalog.POSITIVES}/{{key}}.txt",
    log:
        f"{catalog.POSITIVES}/{{key}}.log",
    conda:
        "../envs/train.yaml"
    threads: 2
    resources:
        gpu=GPU,
        mem_mb=8000,
        runtime=forecast.LONGEST_MINUTES,  # the next attempt continues the file
    params:
        translators=lambda wildcards: targets.back_translation(wildcards.key, SCALE)[1],
    message:
        "back-translate {input}"
    shell:
        "python -m csebench back-translate {input:q} --translators {params.translators:q} --out {output:q} > {log:q} 2>&1"
