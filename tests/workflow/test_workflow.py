"""Snakemake end to end, on a copy of the project with one small table."""

import json
import re
import shutil

import pytest
from project import Project, new_project

from csebench.base.processes import locked

pytestmark = pytest.mark.slow

PAPER = """
name: tiny
label: Tiny
title: A paper of two rows
reference: "Nobody 2026"
tables:
  "2":
    title: two rows
    columns: [{label: "0.1%", size: "0.1%", task: Avg.}, {label: "1%", size: "1%", task: Avg.}]
    rows:
      - {label: BERT, run: {method: bert}, source: copied, from: "someone", values: ["31.40", "31.40"]}
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["67.94±1.16", null]}
      - {label: Other, missing: "no adapter yet", source: copied, from: "someone", values: ["1.00", "2.00"]}
  "3":
    title: the same runs, retrieval
    evaluator: "beir:smoke"
    columns: [{label: smoke, size: "1%", task: smoke}]
    rows:
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["24.92"]}
figures:
  "1":
    title: the rows as curves
    kind: curves
    axis: "Spearman x 100"
    seeds: 5
    columns: [{label: "1%", size: "1%", task: Avg.}, {label: "10%", size: "10%", task: Avg.}]
    rows:
      - {label: BERT, run: {method: bert}, source: rerun, values: ["31.40", "31.40"]}
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["74.96±0.65", "75.76±0.24"]}
claims:
  - {quote: "far above BERT", section: "4", table: "2", row: SimCSE, versus: [BERT], columns: ["0.1%"], by: "36.5"}
  - {quote: more, section: "4", figure: "1", row: SimCSE, versus: [SimCSE], columns: ["10%"], versus_column: "1%"}
"""
PAGES = ["table2.md", "table3.md", "methods.md", "tiny/table2.md", "tiny/table3.md"]
REPORTS = ["index.md", "claims.md", "audit.md"]
DRAWN = ["tiny/figure1.svg", "tiny/figure1.png", "tiny/figure1.csv"]


@pytest.fixture(scope="module")
def project(tmp_path_factory, worker_id):
    """All pages of PAPER, made by the first of pytest's workers that asks; each has its copy, which tests change."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "workflow_made"
    with locked(shared):
        if not shared.exists():
            make(tmp_path_factory.mktemp("made") / "csebench").folder.rename(shared)
    return Project(shared).copy_to(tmp_path_factory.mktemp("workflow") / "csebench")


def make(folder) -> Project:
    """The project with all pages of PAPER."""
    made = new_project(folder, PAPER, "bert simcse random", "smoke paper")
    done = made.snakemake("all")
    assert done.returncode == 0, done.stderr
    return made


def test_page_csv_and_scores(project):
    page = project.read("table2.md")
    assert re.search(r"\| SimCSE \| \d+\.\d\d ± \d+\.\d\d \|", page) and "| SimCSE | 67.94 ± 1.16 | – |" in page
    assert "| Other | 1.00 | 2.00 |" in page and "- Other: no adapter yet." in page
    assert re.search(r"\| SimCSE \| \d+\.\d\d ± \d+\.\d\d \|", project.read("table3.md"))
    scores = sorted((project.folder / "results" / "scores").glob("*.json"))
    assert len([p for p in scores if ".beir." in p.name]) == 2
    # the untrained encoder, a control and SimCSE by seed, whose two small sizes share their runs; one seed of 10 %,
    # and its four variants by seed
    assert len([p for p in scores if ".sts." in p.name]) == 1 + 2 + 2 + 1 + 4 * 2
    content = next(c for p in scores if (c := json.loads(p.read_text()))["spec"]["method"] == "simcse")
    provenance = content["provenance"]
    assert {"commit", "dirty_diff_sha256", "packages", "processor", "seconds", "peak_memory_mb"} <= set(provenance)
    assert content["training"]["provenance"]["data_sha256"]["corpus"] == content["spec"]["corpus"]["sha256"]
    csv = project.read("scores.csv").splitlines()
    assert len(csv) == 1 + sum(len(json.loads(p.read_text())["scores"]) for p in scores)
    assert "tiny,table2,2,SimCSE,0.1%,67.94,1.16," in project.read("cells.csv")


def test_everything_is_written_and_links_to_what_there_is(project):
    folder = project.folder / "results"
    for name in (*PAGES, *DRAWN, *REPORTS):
        assert (folder / name).stat().st_size > 0, name
        links = re.findall(r"\]\(([^)#]+)\)", project.read(name)) if name.endswith(".md") else []
        for link in links:
            assert link.startswith("http") or ((folder / name).parent / link).exists(), f"{name}: {link}"
    assert "[3 runs](tiny/table2.md)" in project.read("index.md")
    assert "[4 runs](tiny/figure1.md)" in project.read("index.md")
    assert "(claimed: +36.5)" in project.read("claims.md") and "## Tiny: 0" in project.read("audit.md")


@pytest.mark.parametrize("data", ["in the scale's folder", "given"])
def test_a_moved_checkout_plans_nothing_anew(data, project, tmp_path):
    """Nor where CSEBENCH_DATA has moved with it."""
    first, second = project.copy_to(tmp_path / "first"), tmp_path / "second"
    if data == "given":
        smoke = first.folder / "config" / "smoke.yaml"
        smoke.write_text(re.sub(r"(?m)^data_root: .*\n", "", smoke.read_text()))
        first.env["CSEBENCH_DATA"] = str(first.folder / "data" / "smoke")
        assert first.snakemake("results/table3.md").returncode == 0
    moved = Project(first.folder.rename(second))
    if data == "given":
        moved.env["CSEBENCH_DATA"] = str(second / "data" / "smoke")
    assert moved.is_done("all" if data == "in the scale's folder" else "results/table3.md")


WRITTEN = {"page", "figure", "csv", "all"}


def test_deleted_score_is_made_again_alone(project):
    """And what is written from it: Table 3 shows other scores of the run, and is left alone."""
    cell = next(line for line in project.read("cells.csv").splitlines() if line.startswith("tiny,figure1,2,SimCSE,1%"))
    score = project.folder / "results" / "scores" / f"{cell.split()[-1]}.sts.json"
    before, table3 = score.read_text(), (project.folder / "results" / "table3.md").stat().st_mtime_ns
    score.unlink()
    done = project.snakemake("all")
    assert done.returncode == 0 and project.started(done) == {"evaluate"} | WRITTEN
    assert project.jobs(done, "evaluate") == 1
    assert score.read_text() == before
    assert (project.folder / "results" / "table3.md").stat().st_mtime_ns == table3


def test_edited_label_renders_again_and_trains_nothing(project):
    paper = project.folder / "papers" / "tiny.yaml"
    paper.write_text(paper.read_text().replace("SimCSE", "SimCSE (renamed)"))
    done = project.snakemake("results/table2.md")
    assert done.returncode == 0 and project.started(done) == {"page"}
    assert "SimCSE (renamed)" in project.read("table2.md")
    done = project.snakemake("all")
    assert done.returncode == 0 and project.started(done) == WRITTEN | {"evidence"}
    for name in ("tiny/table3.md", "tiny/figure1.csv", "tiny/figure1.svg"):
        assert "SimCSE (renamed)" in project.read(name), name
    assert "+36.54 over BERT" in project.read("claims.md")


def test_partial_page_schedules_no_training(project):
    shutil.rmtree(project.folder / "results", ignore_errors=True)
    partial = [f"results/partial/{name}.md" for name in ("table2", "tiny/table3", "index", "claims", "audit")]
    done = project.snakemake(*partial)
    assert done.returncode == 0 and project.started(done) == {"partial_page"}
    assert "missing" in project.read("partial/table2.md")
    assert "[missing: 0 of 3 runs scored](tiny/table2.md)" in project.read("partial/index.md")
    assert "not testable" in project.read("partial/claims.md")
    assert project.snakemake("results/table2.md").returncode == 0  # the models are still there: scores only
    assert project.run("render", "table2", module="csebench").stdout.count("missing") == 0
    done = project.snakemake(*partial)
    assert done.returncode == 0 and project.started(done) == {"partial_page"}
    assert "[3 runs](tiny/table2.md)" in project.read("partial/index.md")
    assert "[missing: 0 of 2 runs scored](tiny/table3.md)" in project.read("partial/index.md")
    assert "missing" not in project.read("partial/table2.md")


def test_finished_model_survives_a_forced_rerun(project):
    model = next((project.folder / "runs").glob("simcse-*")) / "model" / "model.safetensors"
    before = model.stat().st_mtime_ns
    done = project.snakemake("results/table2.md", "--forceall")
    assert done.returncode == 0 and "train" in project.started(done)
    assert model.stat().st_mtime_ns == before


def test_the_steps_by_hand_in_readme(project):
    readme = (project.folder / "README.md").read_text().replace("\\\n", " ")
    commands = [line.split() for line in readme.splitlines() if line.startswith("    csebench ")]
    assert [words[1] for words in commands] == ["train", "evaluate"]
    for words in commands:
        done = project.run(*words[1:], module="csebench")
        assert done.returncode == 0, done.stderr
    assert "STS-B" in done.stdout and (project.folder / words[-1]).exists()


def test_a_dropped_file_is_a_method_in_a_table_and_a_faulty_one_harms_no_other(project):
    template = (project.folder / "methods" / "_template.py").read_text()
    (project.folder / "methods" / "dropped.py").write_text(template.replace('"template"', '"dropped"'))
    assert re.search(r"^dropped +two_views", project.run("methods", module="csebench").stdout, re.M)
    done = project.snakemake("results/methods.md")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\| Template +\| (\*\*)?\d+\.\d\d", project.read("methods.md"))

    loss = "return info_nce(views.z1, views.z2, self.p.temperature, views.queue)"
    faulty = template.replace('"template"', '"faulty"').replace(loss, "return views.z1.sum() * float('nan')")
    (project.folder / "methods" / "faulty.py").write_text(faulty)
    (project.folder / "methods" / "broken.py").write_text("DECLARATION = {'name': 'broken', 'version': 'one'}\n")
    shutil.rmtree(project.folder / "results")
    done = project.snakemake("all", "--keep-going", "--quiet", "all")  # which hides all that Snakemake prints
    assert done.returncode == 1 and re.search(r"faulty-(\w+): loss is nan at step 1.*\(runs/faulty-\1/", done.stderr)
    for name in (*PAGES, *DRAWN):
        assert (project.folder / "results" / name).exists() == (name != "methods.md"), name
    assert not (project.folder / "results" / "index.md").exists()
    listed = project.run("methods", module="csebench").stdout
    assert re.search(r"^broken +BROKEN +methods/broken.py: line 1: version", listed, re.M)
    assert project.snakemake("results/partial/methods.md", "results/partial/index.md").returncode == 0
    assert "missing" in project.read("partial/methods.md")
    assert "[3 runs](tiny/table2.md)" in project.read("partial/index.md")
