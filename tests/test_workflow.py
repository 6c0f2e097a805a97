"""Snakemake end to end, on a copy of the project with one small table."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from csebench import ROOT

pytestmark = pytest.mark.slow

PAPER = """
name: tiny
title: A paper of two rows
reference: "Nobody 2026"
tables:
  "2":
    title: two rows
    columns: [{label: "0.1%", size: "0.1%", task: Avg.}, {label: "1%", size: "1%", task: Avg.}]
    rows:
      - {label: BERT, run: {method: bert}, source: copied, from: "someone", values: ["31.40", "31.40"]}
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["67.94±1.16", null]}
      - {label: Other, missing: "no adapter yet", source: copied, values: ["1.00", "2.00"]}
  "3":
    title: the same runs, retrieval
    evaluator: "beir:smoke"
    columns: [{label: smoke, size: "1%", task: smoke}]
    rows:
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["24.92"]}
"""


class Project:
    """A copy of the project, run as a user would: with its own code, methods and results."""

    def __init__(self, folder: Path):
        self.folder = folder
        ignored = shutil.ignore_patterns(".git", ".venv", "runs", "results", ".snakemake", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, folder, ignore=ignored)
        for paper in (folder / "papers").glob("*.yaml"):
            paper.unlink()
        (folder / "papers" / "tiny.yaml").write_text(PAPER)
        self.env = {**os.environ, "PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"}
        self.env.pop("CSEBENCH_DATA", None)

    def run(self, *command, module="snakemake", **more):
        command = [sys.executable, "-m", module, *command]
        return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, **more)

    def snakemake(self, *arguments):
        return self.run(*arguments, "-j2")

    def started(self, done) -> set[str]:
        """Rules that a call of Snakemake ran."""
        return set(re.findall(r"\(Rule: (\w+)\)", done.stdout + done.stderr))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("workflow") / "csebench")
    for path in (made.folder / "methods").glob("[!_]*.py"):
        if path.stem not in ("bert", "simcse", "random"):
            path.unlink()
    (made.folder / "config" / "mini.yaml").unlink()  # these scales name methods that are not there
    smoke = made.folder / "config" / "smoke.yaml"
    smoke.write_text(smoke.read_text().partition("methods:")[0])
    done = made.snakemake("all")
    assert done.returncode == 0, done.stderr
    return made


def test_page_csv_and_scores(project):
    page = (project.folder / "results" / "table2.md").read_text()
    assert re.search(r"\| SimCSE +\| (\*\*)?\d+\.\d\d ± \d+\.\d\d(\*\*)? \(67\.94 ± 1\.16\)", page)
    assert "| – (1.00)" in page and "- Other: no adapter yet." in page
    scores = sorted((project.folder / "results" / "scores").glob("*.json"))
    assert len([p for p in scores if ".beir." in p.name]) == 2
    assert re.search(
        r"\| SimCSE +\| \d+\.\d\d ± \d+\.\d\d \(24\.92\)", (project.folder / "results/table3.md").read_text()
    )
    assert (
        len([p for p in scores if ".sts." in p.name]) == 1 + 2 + 2
    )  # the untrained encoder, a control and SimCSE by seed: both sizes share their runs
    content = next(c for p in scores if (c := json.loads(p.read_text()))["spec"]["method"] == "simcse")
    provenance = content["provenance"]
    assert {"commit", "dirty_diff_sha256", "packages", "processor", "seconds", "peak_memory_mb"} <= set(provenance)
    assert content["training"]["provenance"]["data_sha256"]["corpus"] == content["spec"]["corpus"]["sha256"]
    csv = (project.folder / "results" / "scores.csv").read_text().splitlines()
    assert len(csv) == 1 + sum(len(json.loads(p.read_text())["scores"]) for p in scores)


def test_second_call_does_nothing(project):
    done = project.snakemake("all")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout + done.stderr


def test_deleted_score_is_made_again_alone(project):
    score = next((project.folder / "results" / "scores").glob("simcse*.json"))
    before = score.read_text()
    score.unlink()
    done = project.snakemake("all")
    assert done.returncode == 0 and project.started(done) == {"evaluate", "table", "all"}
    assert score.read_text() == before


def test_edited_label_renders_again_and_trains_nothing(project):
    paper = project.folder / "papers" / "tiny.yaml"
    paper.write_text(paper.read_text().replace("label: SimCSE", "label: SimCSE (renamed)"))
    done = project.snakemake("results/table2.md")
    assert done.returncode == 0 and project.started(done) == {"table"}
    assert "SimCSE (renamed)" in (project.folder / "results" / "table2.md").read_text()


def test_partial_page_schedules_no_training(project):
    shutil.rmtree(project.folder / "results", ignore_errors=True)
    done = project.snakemake("results/partial/table2.md")
    assert done.returncode == 0 and project.started(done) == {"partial_table"}
    assert "missing" in (project.folder / "results" / "partial" / "table2.md").read_text()
    assert project.snakemake("results/table2.md").returncode == 0  # the models are still there: scores only
    assert project.run("render", "table2", module="csebench").stdout.count("missing") == 0


def test_finished_model_survives_a_forced_rerun(project):
    model = next((project.folder / "runs").glob("simcse-*")) / "model" / "model.safetensors"
    before = model.stat().st_mtime_ns
    done = project.snakemake("results/table2.md", "--forceall")
    assert done.returncode == 0 and "train" in project.started(done)
    assert model.stat().st_mtime_ns == before


def test_killed_workflow_goes_on(project):
    """kill -9 of a training job: the next call finishes the table."""
    shutil.rmtree(project.folder / "runs")
    shutil.rmtree(project.folder / "results")
    command = [sys.executable, "-m", "snakemake", "-j1", "results/table2.md"]
    running = subprocess.Popen(
        command, cwd=project.folder, env=project.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.time() + 60
    while time.time() < deadline and not list((project.folder / "runs").glob("simcse-*/train.log")):
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert not (project.folder / "results" / "table2.md").exists()
    assert project.run("--unlock").returncode == 0
    done = project.snakemake("results/table2.md")
    assert done.returncode == 0, done.stderr
    assert "missing" not in (project.folder / "results" / "table2.md").read_text()


def test_the_steps_by_hand_in_readme(project):
    readme = (project.folder / "README.md").read_text().replace("\\\n", " ")
    commands = [line.split() for line in readme.splitlines() if line.startswith("    csebench ")]
    assert [words[1] for words in commands] == ["train", "evaluate", "evaluate"]
    for words in commands:
        done = project.run(*words[1:], module="csebench")
        assert done.returncode == 0, done.stderr
    assert "STS-B" in done.stdout and (project.folder / words[-1]).exists()


def test_a_dropped_file_is_a_method_in_a_table_and_a_faulty_one_harms_no_other(project):
    template = (project.folder / "methods" / "_template.py").read_text()
    (project.folder / "methods" / "dropped.py").write_text(template.replace('"template"', '"dropped"'))
    assert re.search(r"^dropped +trained", project.run("methods", module="csebench").stdout, re.M)
    done = project.snakemake("results/methods.md")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\| Template +\| (\*\*)?\d+\.\d\d", (project.folder / "results" / "methods.md").read_text())

    loss = "return info_nce(one.z, two.z, self.p.temperature, self.queue)"
    faulty = template.replace('"template"', '"faulty"').replace(loss, "return one.z.sum() * float('nan')")
    (project.folder / "methods" / "faulty.py").write_text(faulty)
    (project.folder / "methods" / "broken.py").write_text("DECLARATION = {'name': 'broken', 'version': 'one'}\n")
    (project.folder / "results" / "table2.md").unlink()
    done = project.snakemake("results/methods.md", "results/table2.md")
    output = done.stdout + done.stderr
    assert done.returncode == 1 and re.search(r"faulty-\w+: loss is nan at step 1", output)
    assert (project.folder / "results" / "table2.md").exists()
    listed = project.run("methods", module="csebench").stdout
    assert re.search(r"^broken +BROKEN +methods/broken.py: version", listed, re.M)
    assert project.snakemake("results/partial/methods.md").returncode == 0
    assert "missing" in (project.folder / "results" / "partial" / "methods.md").read_text()
