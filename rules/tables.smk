# Pages. The strict one wants every score; the partial one shows what there is and schedules nothing.


localrules:
    table,
    partial_table,


rule table:
    input:
        scores=page_scores,
        text=page_text,
    output:
        "results/{page}.md",
    log:
        "results/.logs/{page}.log",
    conda:
        "../envs/csebench.yaml"
    shell:
        "python -m csebench render {wildcards.page} --out {output} > {log} 2>&1"


rule partial_table:
    input:
        scores=page_scores_there_are,
        text=page_text,
    output:
        "results/partial/{page}.md",
    log:
        "results/.logs/partial/{page}.log",
    conda:
        "../envs/csebench.yaml"
    shell:
        "python -m csebench render {wildcards.page} --out {output} > {log} 2>&1"
