# Pages. The strict ones want every score; those in partial/ show what there is and schedule nothing.


localrules:
    compare,
    table,
    figure,
    report_page,
    html,
    partial_table,
    partial_report,


rule compare:
    input:
        scores=grid_scores,
        text=grid_text,
    output:
        "results/{grid}.items.json",
    log:
        "results/.logs/{grid}.items.log",
    conda:
        "../envs/report.yaml"
    shell:
        "python -m csebench compare {wildcards.grid} > {log} 2>&1"


rule table:
    input:
        scores=page_scores,
        compared=page_items,
        text=page_text,
    output:
        report(
            "results/{page}.md",
            category=category,
            labels={"page": "{page}"},
            caption="../docs/report.rst",
        ),
    log:
        "results/.logs/{page}.log",
    conda:
        "../envs/report.yaml"
    shell:
        "python -m csebench render {wildcards.page} --out {output} > {log} 2>&1"


rule figure:
    input:
        scores=grid_scores,
        text=grid_text,
    output:
        report(
            "results/{grid}.svg",
            category=category,
            labels={"page": "{grid}"},
            caption="../docs/report.rst",
        ),
        "results/{grid}.png",
        "results/{grid}.csv",
    log:
        "results/.logs/{grid}.log",
    conda:
        "../envs/report.yaml"
    shell:
        "python -m csebench render {wildcards.grid} > {log} 2>&1"


rule report_page:
    input:
        pages=every_page,
        text=every_text,
    output:
        report(
            "results/{folder}{name}.md",
            category="all papers",
            labels={"page": "{name}"},
            caption="../docs/report.rst",
        ),
    log:
        "results/{folder}.logs/{name}.log",
    conda:
        "../envs/report.yaml"
    params:
        scale=scale_of_folder,
    shell:
        "python -m csebench render {wildcards.name} --scale {params.scale} --out {output} > {log} 2>&1"


rule html:
    input:
        pages=every_page,
        text=every_text,
    output:
        directory("results/{folder}html"),
    log:
        "results/{folder}.logs/html.log",
    conda:
        "../envs/report.yaml"
    params:
        scale=scale_of_folder,
    shell:
        "python -m csebench html --scale {params.scale} > {log} 2>&1"


rule partial_table:
    input:
        scores=page_scores_there_are,
        text=page_text,
    output:
        "results/partial/{page}.md",
    log:
        "results/.logs/partial/{page}.log",
    conda:
        "../envs/report.yaml"
    shell:
        "python -m csebench render {wildcards.page} --out {output} > {log} 2>&1"


rule partial_report:
    input:
        scores=every_score_there_is,
        text=every_text,
    output:
        "results/partial/{folder}{name}.md",
    log:
        "results/.logs/partial/{folder}{name}.log",
    conda:
        "../envs/report.yaml"
    params:
        scale=scale_of_folder,
    shell:
        "python -m csebench render {wildcards.name} --scale {params.scale} --out {output} > {log} 2>&1"
