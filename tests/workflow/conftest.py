"""One small project with all its pages, made once, for every test here that reads what a
workflow makes."""

import re

import pytest
from project import ONE_ROW, Project, new_project

from csebench.base.locks import locked

BERT = (
    '      - {label: BERT, run: {method: bert}, source: copied, from: "someone", values:'
    ' ["31.40"]}\n'
)
PAPER = ONE_ROW.replace("    rows:\n", f"    rows:\n{BERT}", 1)
PAPER += """
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
  - {quote: "far above BERT", section: "4", table: "2", row: SimCSE, versus: [BERT], columns: ["1%"], by: "36.5"}
"""  # noqa: E501


@pytest.fixture(scope="session")
def made(tmp_path_factory, worker_id):
    """All pages of PAPER, made by the first of pytest's workers that asks, to be copied; SimCSE
    has one variant."""
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "workflow_made"
    with locked(shared):
        if not shared.exists():
            folder = tmp_path_factory.mktemp("made") / "csebench"
            project = new_project(folder, PAPER, "bert simcse random", "smoke paper")
            text = (project.folder / "methods" / "simcse.py").read_text()
            variants = re.search(r'^        "mlm": \(.*?(?=^    \},)', text, re.M | re.S)[0]
            project.edit("methods/simcse.py", variants, "")
            # as the run ids of tests are those of the whole method
            project.run("--bless", "methods/simcse", module="csebench.plan.code_versions")
            project.make("all")
            project.folder.rename(shared)
    return Project(shared)


@pytest.fixture
def copy(made, tmp_path):
    """A copy of the made project."""
    return made.copy_to(tmp_path / "csebench")
