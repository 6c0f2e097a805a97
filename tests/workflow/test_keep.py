"""A scale that keeps only scores: its models are deleted on the way, and trained again for a missing score only."""

import pytest
from project import Project

pytestmark = pytest.mark.slow

PAPER = """
name: tiny
label: Tiny
title: A paper of one row
reference: "Nobody 2026"
tables:
  "2":
    title: one row
    columns: [{label: "1%", size: "1%", task: Avg.}]
    rows:
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["67.94±1.16"]}
  "3":
    title: the same runs, retrieval
    evaluator: "beir:smoke"
    columns: [{label: smoke, size: "1%", task: smoke}]
    rows:
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["24.92"]}
"""


def test_models_are_deleted_when_all_scores_are_published(tmp_path):
    project = Project(tmp_path / "csebench", PAPER)
    for path in (project.folder / "methods").glob("[!_]*.py"):
        if path.stem != "simcse":
            path.unlink()
    for name in ("mini", "paper", "short"):
        (project.folder / "config" / f"{name}.yaml").unlink()
    smoke = project.folder / "config" / "smoke.yaml"
    smoke.write_text(smoke.read_text().partition("methods:")[0].replace("keep: model", "keep: scores"))
    first = project.snakemake("results/table2.md")
    assert first.returncode == 0, first.stderr
    runs = project.folder / "runs"
    models = sorted(path.parent.name for path in runs.glob("simcse-*/model"))
    assert len(models) == 2  # Table 3 shows other scores of them
    done = project.snakemake("all")
    assert done.returncode == 0 and "train" not in project.started(done), done.stderr
    assert not list(runs.glob("*/model")) and len(list(runs.glob("*/pruned.json"))) == 2
    page = project.read("table2.md")
    assert "Nothing to be done" in (again := project.snakemake("all")).stdout + again.stderr
    next((project.folder / "results" / "scores").glob(f"{models[0]}.sts.json")).unlink()
    again = project.snakemake("all")
    assert again.returncode == 0 and project.jobs(again, "train") == 1, again.stderr
    assert not list(runs.glob("*/model")) and project.read("table2.md") == page
