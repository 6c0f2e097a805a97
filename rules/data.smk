# Official data, fetched once if no data root is given. A file with the wrong sha256 is deleted.


localrules:
    fetch_corpus,
    fetch_senteval,
    fetch_beir,
    fetch_imdb,
    fetch_stackoverflow,


rule fetch_corpus:
    output:
        f"{catalog.FETCHED}/{{source}}/{{file}}_for_simcse.{{ending}}",
    log:
        f"{catalog.FETCHED}/{{source}}/{{file}}.{{ending}}.log",
    retries: 3
    conda:
        "../envs/train.yaml"
    params:
        root=lambda _: catalog.FETCHED,
    message:
        "fetch {wildcards.source}"
    shell:
        "python -m csebench fetch {wildcards.source:q} --out {params.root:q} > {log:q} 2>&1"


rule fetch_senteval:
    output:
        f"{catalog.FETCHED}/downstream/STS/STSBenchmark/sts-dev.csv",
        f"{catalog.FETCHED}/downstream/STS/STSBenchmark/sts-test.csv",
        f"{catalog.FETCHED}/downstream/SICK/SICK_test_annotated.txt",
        f"{catalog.FETCHED}/downstream/TREC/train_5500.label",
        f"{catalog.FETCHED}/downstream/TREC/TREC_10.label",
    log:
        f"{catalog.FETCHED}/senteval.log",
    retries: 3
    conda:
        "../envs/train.yaml"
    params:
        root=lambda _: catalog.FETCHED,
    message:
        "fetch SentEval's data"
    shell:
        "python -m csebench fetch senteval --out {params.root:q} > {log:q} 2>&1"


rule fetch_beir:
    output:
        f"{catalog.FETCHED}/beir/{{dataset}}/source.json",
    log:
        f"{catalog.FETCHED}/beir/{{dataset}}.log",
    retries: 3
    conda:
        "../envs/train.yaml"
    params:
        root=lambda _: catalog.FETCHED,
    message:
        "fetch beir:{wildcards.dataset}"
    shell:
        "python -m csebench fetch beir:{wildcards.dataset:q} --out {params.root:q} > {log:q} 2>&1"


rule fetch_imdb:
    output:
        f"{catalog.FETCHED}/misc/imdb/train.tsv",
        f"{catalog.FETCHED}/misc/imdb/test.tsv",
    log:
        f"{catalog.FETCHED}/misc/imdb.log",
    retries: 3
    conda:
        "../envs/train.yaml"
    params:
        root=lambda _: catalog.FETCHED,
    message:
        "fetch IMDb"
    shell:
        "python -m csebench fetch imdb --out {params.root:q} > {log:q} 2>&1"


rule fetch_stackoverflow:
    output:
        f"{catalog.FETCHED}/misc/stackoverflow/title_StackOverflow.txt",
        f"{catalog.FETCHED}/misc/stackoverflow/label_StackOverflow.txt",
    log:
        f"{catalog.FETCHED}/misc/stackoverflow.log",
    retries: 3
    conda:
        "../envs/train.yaml"
    params:
        root=lambda _: catalog.FETCHED,
    message:
        "fetch StackOverflow titles"
    shell:
        "python -m csebench fetch stackoverflow --out {params.root:q} > {log:q} 2>&1"


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
        runtime=forecast.LONGEST_MINUTES,  # a further attempt continues the file of the one before
    params:
        translators=lambda wildcards: targets.back_translation(wildcards.key, SCALE)[1],
    message:
        "back-translate {input}"
    shell:
        "python -m csebench back-translate {input:q} --translators {params.translators:q} --out {output:q} > {log:q} 2>&1"
