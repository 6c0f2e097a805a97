# Pages. The strict one wants every score; the partial one shows what there is and schedules nothing.


localrules:
    table,
    partial_table,


rule table:
    input:
        scores=page_scores,
        papers=page_papers,
        code="csebench/render.py",
    output:
        "results/{page}.md",
    log:
        "results/.logs/{page}.log",
    shell:
        "python -m csebench render {wildcards.page} --out {output} > {log} 2>&1"


rule partial_table:
    input:
        scores=page_scores_there_are,
        papers=page_papers,
        code="csebench/render.py",
    output:
        "results/partial/{page}.md",
    log:
        "results/.logs/partial/{page}.log",
    shell:
        "python -m csebench render {wildcards.page} --out {output} > {log} 2>&1"
