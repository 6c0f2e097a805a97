"""One small project with all its pages, made once for all tests that read them."""

import re

import pytest
from project import Project, new_project

from csebench.base.locks import locked

PAPER = """
name: tiny
label: Tiny
title: A paper of two rows
reference: "Nobody 2026"
tables:
  "2":
    title: two rows
    columns: [{label: "1%", size: "1%", task: Avg.}]
    rows:
      - {label: BERT, run: {method: bert}, source: copied, from: "someone", values: ["31.40"]}
      - {label: SimCSE, run: {method: simcse}, source: measured, values: ["67.94±1.16"]}
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
      - label: SimCSE
        run: {method: simcse}
        source: measured
        values: ["74.96±0.65", "75.76±0.24"]
claims:
  - quote: "far above BERT"
    section: "4"
    table: "2"
    row: SimCSE
    versus: [BERT]
    columns: ["1%"]
    by: "36.5"
"""


@pytest.fixture(scope="session")
def made(tmp_path_factory, worker_id):
    """A project with all pages of PAPER, to be copied. The first of pytest's workers that asks for
    it makes it."""
    folder_of_worker = tmp_path_factory.getbasetemp()
    folder_of_all = folder_of_worker if worker_id == "master" else folder_of_worker.parent
    shared = folder_of_all / "workflow_made"
    with locked(shared):
        if not shared.exists():
            make_project(tmp_path_factory.mktemp("made") / "csebench").folder.rename(shared)
    return Project(shared)


def make_project(folder):
    """Make all pages of PAPER. To save time, SimCSE has one variant only."""
    project = new_project(folder, PAPER, "bert simcse random", "smoke paper")
    code = (folder / "methods" / "simcse.py").read_text()
    other_variants = re.search(r'^        "mlm": \(.*?(?=^    \},)', code, re.M | re.S)[0]
    project.edit("methods/simcse.py", other_variants, "")
    # the shorter file counts as settled, so that runs have the ids that the tests plan
    project.run("--bless", "methods/simcse", module="csebench.plan.code_versions")
    project.make("all")
    return project


@pytest.fixture
def copy(made, tmp_path):
    """A copy of the made project, which a test may change."""
    return made.copy_to(tmp_path / "csebench")
