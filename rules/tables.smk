# Pages. The normal ones need every score; those in partial/ use the existing scores and start no training.


localrules:
    compare,
    table,
    figure,
    report_page,
    evidence,
    checkpoints,
    variance,
    tuning,
    csv,
    html,
    partial_table,
    partial_report,


rule compare:
    input:
        scores=lambda wildcards: jobs.scores_of_page(page(wildcards)),
        text=lambda wildcards: jobs.text_of_page(page(wildcards)),
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


rule table:
    input:
        scores=lambda wildcards: jobs.scores_of_page(page(wildcards)),
        compared=lambda wildcards: jobs.comparisons_of_page(page(wildcards)),
        text=lambda wildcards: jobs.text_of_page(page(wildcards)),
    output:
        report(
            "results/{page}.md",
            category=lambda wildcards: jobs.category(page(wildcards)),
            labels={"page": "{page}"},
            caption="../docs/report.rst",
        ),
    log:
        "results/.logs/{page}.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/{page}.md"),
    message:
        "write {output}"
    shell:
        "python -m csebench render {wildcards.page:q} --out {output:q} > {log:q} 2>&1"


rule figure:
    input:
        scores=lambda wildcards: jobs.scores_of_page(page(wildcards)),
        text=lambda wildcards: jobs.text_of_page(page(wildcards)),
    output:
        report(
            "results/{grid}.svg",
            category=lambda wildcards: jobs.category(page(wildcards)),
            labels={"page": "{grid}"},
            caption="../docs/report.rst",
        ),
        "results/{grid}.png",
        "results/{grid}.csv",
    log:
        "results/.logs/{grid}.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/{grid}.svg", "results/{grid}.png", "results/{grid}.csv"),
    message:
        "draw {output[0]}"
    shell:
        "python -m csebench render {wildcards.grid:q} > {log:q} 2>&1"


rule report_page:
    input:
        pages=lambda wildcards: [
            page.path for page in targets.pages(scale_of(wildcards))
        ],
        text=lambda _: jobs.text_of_all(),
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
        edits=edits_of("results/{folder}{name}.md"),
        scale=scale_of,
    message:
        "write {output}"
    shell:
        "python -m csebench render {wildcards.name:q} --scale {params.scale:q} --out {output:q} > {log:q} 2>&1"


rule evidence:
    input:
        jobs.text_of_evidence(),
    output:
        page=report(
            "results/evidence.md",
            category="all papers",
            labels={"page": "evidence"},
            caption="../docs/report.rst",
        ),
        figures=multiext("results/evidence", ".svg", ".png", ".csv"),
        selection=multiext("results/evidence-selection", ".svg", ".png", ".csv"),
    log:
        "results/.logs/evidence.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of(
            "results/evidence.md",
            *multiext("results/evidence", ".svg", ".png", ".csv"),
            *multiext("results/evidence-selection", ".svg", ".png", ".csv"),
        ),
    message:
        "write {output.page}"
    shell:
        "python -m csebench render evidence --out {output.page:q} > {log:q} 2>&1"


rule checkpoints:
    input:
        scores=lambda _: jobs.scores_of_checkpoints(),
        text=jobs.text_of_all(),
    output:
        report(
            "results/paper/checkpoints.md",
            category="all papers",
            labels={"page": "checkpoints"},
            caption="../docs/report.rst",
        ),
    log:
        "results/paper/.logs/checkpoints.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/paper/checkpoints.md"),
    message:
        "write {output}"
    shell:
        "python -m csebench render checkpoints --out {output:q} > {log:q} 2>&1"


rule variance:
    input:
        scores=lambda wildcards: jobs.scores_of_page(
            jobs.page_of(f"results/{wildcards.folder}variance.md")
        ),
        text=jobs.text_of_all(),
    output:
        report(
            "results/{folder}variance.md",
            category="all papers",
            labels={"page": "variance"},
            caption="../docs/report.rst",
        ),
    log:
        "results/{folder}.logs/variance.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/{folder}variance.md"),
        scale=scale_of,
    message:
        "write {output}"
    shell:
        "python -m csebench render variance --scale {params.scale:q} --out {output:q} > {log:q} 2>&1"


rule tuning:
    input:
        searches=lambda wildcards: tuning.search_files(scale_of(wildcards)),
        text=jobs.text_of_all(),
    output:
        page=report(
            "results/{folder}tuning.md",
            category="all papers",
            labels={"page": "tuning"},
            caption="../docs/report.rst",
        ),
        figures=multiext("results/{folder}tuning", ".svg", ".png", ".csv"),
    log:
        "results/{folder}.logs/tuning.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/{folder}tuning.md"),
        scale=scale_of,
    message:
        "write {output.page}"
    shell:
        "python -m csebench render tuning --scale {params.scale:q} --out {output.page:q} > {log:q} 2>&1"


rule csv:
    input:
        scores=lambda wildcards: jobs.scores_of_scale(scale_of(wildcards)),
        text=lambda _: jobs.text_of_all(),
    output:
        scores="results/{folder}scores.csv",
        cells="results/{folder}cells.csv",
    log:
        "results/{folder}.logs/csv.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/{folder}scores.csv", "results/{folder}cells.csv"),
        scale=scale_of,
    message:
        "write {output}"
    shell:
        "python -m csebench csv --scale {params.scale:q} > {log:q} 2>&1"


rule html:
    input:
        pages=lambda wildcards: [
            page.path for page in targets.pages(scale_of(wildcards))
        ],
        text=lambda _: jobs.text_of_all(),
    output:
        directory("results/{folder}html"),
    log:
        "results/{folder}.logs/html.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/{folder}html"),
        scale=scale_of,
    message:
        "write {output}"
    shell:
        "python -m csebench html --scale {params.scale:q} > {log:q} 2>&1"


rule partial_table:
    input:
        scores=lambda wildcards: jobs.existing(
            jobs.scores_of_page(page(wildcards)), CHOSEN_SCORES
        ),
        text=lambda wildcards: jobs.text_of_page(page(wildcards)),
    output:
        "results/partial/{page}.md",
    log:
        "results/.logs/partial/{page}.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/partial/{page}.md"),
    message:
        "write {output} from the scores that exist"
    shell:
        "python -m csebench render {wildcards.page:q} --out {output:q} > {log:q} 2>&1"


rule partial_report:
    input:
        scores=lambda wildcards: jobs.existing(
            jobs.scores_of_scale(scale_of(wildcards)), CHOSEN_SCORES
        ),
        text=lambda _: jobs.text_of_all(),
    output:
        "results/partial/{folder}{name}.md",
    log:
        "results/.logs/partial/{folder}{name}.log",
    conda:
        "../envs/report.yaml"
    params:
        edits=edits_of("results/partial/{folder}{name}.md"),
        scale=scale_of,
    message:
        "write {output} from the scores that exist"
    shell:
        "python -m csebench render {wildcards.name:q} --scale {params.scale:q} --out {output:q} > {log:q} 2>&1"
