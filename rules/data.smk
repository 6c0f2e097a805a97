# Official data, fetched once if no data root is given. A file with the wrong sha256 is deleted.


rule fetch_corpus:
    output:
        f"{catalog.FETCHED}/{{source}}/{{file}}_for_simcse.{{ending}}",
    log:
        f"{catalog.FETCHED}/{{source}}/{{file}}.{{ending}}.log",
    retries: 3
    localrule: True
    conda:
        "../envs/train.yaml"
    params:
        source="{source}",
        root=lambda _: catalog.FETCHED,
    message:
        "fetch {params.source}"
    shell:
        "python -m csebench fetch {params.source:q} --out {params.root:q} > {log:q} 2>&1"


use rule fetch_corpus as fetch_senteval with:
    output:
        f"{catalog.FETCHED}/downstream/STS/STSBenchmark/sts-dev.csv",
        f"{catalog.FETCHED}/downstream/STS/STSBenchmark/sts-test.csv",
        f"{catalog.FETCHED}/downstream/SICK/SICK_test_annotated.txt",
        f"{catalog.FETCHED}/downstream/TREC/train_5500.label",
        f"{catalog.FETCHED}/downstream/TREC/TREC_10.label",
    log:
        f"{catalog.FETCHED}/senteval.log",
    params:
        source="senteval",


use rule fetch_corpus as fetch_beir with:
    output:
        f"{catalog.FETCHED}/beir/{{dataset}}/source.json",
    log:
        f"{catalog.FETCHED}/beir/{{dataset}}.log",
    params:
        source="beir:{dataset}",


use rule fetch_corpus as fetch_imdb with:
    output:
        multiext(f"{catalog.FETCHED}/misc/imdb/", "train.tsv", "test.tsv"),
    log:
        f"{catalog.FETCHED}/misc/imdb.log",
    params:
        source="imdb",


use rule fetch_corpus as fetch_stackoverflow with:
    output:
        f"{catalog.FETCHED}/misc/stackoverflow/title_StackOverflow.txt",
        f"{catalog.FETCHED}/misc/stackoverflow/label_StackOverflow.txt",
    log:
        f"{catalog.FETCHED}/misc/stackoverflow.log",
    params:
        source="stackoverflow",


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
        runtime=cost.LONGEST_MINUTES,  # a further attempt continues the file of the one before
    params:
        translators=lambda wildcards: targets.back_translation(wildcards.key, SCALE)[1],
    message:
        "back-translate {input}"
    shell:
        "python -m csebench back-translate {input:q} --translators {params.translators:q} --out {output:q} > {log:q} 2>&1"
