# Pages. The normal ones need every score; those in partial/ use the existing scores and start no training. A page is made
# again when the content of what it was made from has changed (csebench/plan/made_from.py).


localrules:
    compare,
    page,
    figure,
    evidence,
    tuning,
    csv,
    html,
    partial_page,


rule compare:
    input:
        inputs("results/{grid}.items.json"),
    output:
        update("results/{grid}.items.json"),  # not deleted first: what it knows of items may be known nowhere else
    log:
        "results/.logs/{grid}.items.log",
    conda:
        "../envs/report.yaml"
    message:
        "compare the rows of {wildcards.grid}"
    shell:
        "python -m csebench compare {wildcards.grid:q} > {log:q} 2>&1"


rule page:
    input:
        inputs("results/{page}.md"),
    output:
        listed("results/{page}.md", "{page}"),
    log:
        "results/.logs/{page}.log",
    conda:
        "../envs/report.yaml"
    message:
        "write {output}"
    shell:
        "python -m csebench render {wildcards.page:q} --out {output:q} > {log:q} 2>&1"


rule partial_page:
    input:
        inputs("results/partial/{page}.md"),
    output:
        "results/partial/{page}.md",
    log:
        "results/.logs/partial/{page}.log",
    conda:
        "../envs/report.yaml"
    message:
        "write {output} from the scores that exist"
    shell:
        "python -m csebench render {wildcards.page:q} --out {output:q} > {log:q} 2>&1"


rule figure:
    input:
        inputs("results/{grid}.svg"),
    output:
        listed("results/{grid}.svg", "{grid}"),
        "results/{grid}.png",
        "results/{grid}.csv",
    log:
        "results/.logs/{grid}.log",
    conda:
        "../envs/report.yaml"
    message:
        "draw {output[0]}"
    shell:
        "python -m csebench render {wildcards.grid:q} > {log:q} 2>&1"


rule evidence:
    input:
        lambda _: jobs.inputs_of("results/evidence.md"),
    output:
        page=listed("results/evidence.md", "evidence"),
        figures=multiext("results/evidence", ".svg", ".png", ".csv"),
        selection=multiext("results/evidence-selection", ".svg", ".png", ".csv"),
    log:
        "results/.logs/evidence.log",
    conda:
        "../envs/report.yaml"
    message:
        "write {output.page}"
    shell:
        "python -m csebench render evidence --out {output.page:q} > {log:q} 2>&1"


rule tuning:
    input:
        inputs("results/{folder}tuning.md"),
    output:
        page=listed("results/{folder}tuning.md", "tuning"),
        figures=multiext("results/{folder}tuning", ".svg", ".png", ".csv"),
    log:
        "results/{folder}.logs/tuning.log",
    conda:
        "../envs/report.yaml"
    params:
        scale=scale_of,
    message:
        "write {output.page}"
    shell:
        "python -m csebench render tuning --scale {params.scale:q} --out {output.page:q} > {log:q} 2>&1"


rule csv:
    input:
        inputs("results/{folder}scores.csv"),
    output:
        "results/{folder}scores.csv",
        "results/{folder}cells.csv",
    log:
        "results/{folder}.logs/csv.log",
    conda:
        "../envs/report.yaml"
    params:
        scale=scale_of,
    message:
        "write {output}"
    shell:
        "python -m csebench csv --scale {params.scale:q} > {log:q} 2>&1"


rule html:
    input:
        inputs("results/{folder}html"),
    output:
        directory("results/{folder}html"),
    log:
        "results/{folder}.logs/html.log",
    conda:
        "../envs/report.yaml"
    params:
        scale=scale_of,
    message:
        "write {output}"
    shell:
        "python -m csebench html --scale {params.scale:q} > {log:q} 2>&1"
