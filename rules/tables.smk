# Pages. Normal pages need every score. Pages in partial/ use the scores that exist, and start no
# training. A page is made again if the content of a file that it was made from has changed
# (csebench/plan/page_records.py).


rule page:
    input:
        inputs("results/{page}.md"),
    output:
        page="results/{page}.md",
    log:
        "results/.logs/{page}.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    message:
        "write {output.page}"
    shell:
        "python -m csebench render {output.page:q} --out {output.page:q} > {log:q} 2>&1"


use rule page as partial_page with:
    input:
        inputs("results/partial/{page}.md"),
    output:
        page="results/partial/{page}.md",
    log:
        "results/.logs/partial/{page}.log",
    message:
        "write {output} from the scores that exist"


use rule page as evidence with:
    input:
        lambda _: jobs.inputs_of("results/evidence.md", None, workflow.dryrun),
    output:
        page="results/evidence.md",
        figures=multiext("results/evidence", ".svg", ".csv"),
        gains=multiext("results/printed_gains", ".svg", ".csv"),
    log:
        "results/.logs/evidence.log",


use rule page as figure with:
    input:
        inputs("results/{figure}.svg"),
    output:
        page=update("results/{figure}.svg"),  # kept if there is nothing to draw
        csv=update("results/{figure}.csv"),
    log:
        "results/.logs/{figure}.log",


# The scores of one row of a table, to train and score this row alone.
use rule page as row with:
    input:
        inputs("results/{row}.csv"),
    output:
        page="results/{row}.csv",
    log:
        "results/.logs/{row}.log",


rule csv:
    input:
        inputs("results/{folder}scores.csv"),
    output:
        multiext(
            "results/{folder}",
            "scores.csv",
            "cells.csv",
            "comparisons.csv",
            "claims.csv",
        ),
    log:
        "results/{folder}.logs/csv.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        verb="csv",
        scale=scale_of,
    message:
        "write {output}"
    shell:
        "python -m csebench {params.verb:q} --scale {params.scale:q} > {log:q} 2>&1"


use rule csv as html with:
    input:
        inputs("results/{folder}html"),
    output:
        directory("results/{folder}html"),
    log:
        "results/{folder}.logs/html.log",
    params:
        verb="html",
