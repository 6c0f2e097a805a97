"""Released checkpoints from look-up to page, offline: a small model in the hub's cache takes the place of one."""

import re
import shutil

import pytest
from project import new_project

from csebench import ROOT

pytestmark = pytest.mark.slow

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PAPER = """
name: tiny
label: Tiny
title: A paper
reference: "Nobody 2026"
tables:
  "1":
    title: nothing that runs
    columns: [{label: Avg., task: Avg.}]
    rows:
      - {label: BERT, missing: cited only, source: copied, values: ["56.70"]}
"""
CHECKPOINTS = """
checkpoints:
  - method: simcse
    encoder: bert-base
    hub: somebody/tiny
    pooler: cls_before_pooler
    stated: {Avg.: 76.25}
    where: README
  - {method: promptbert, encoder: bert-base, hub: somebody/prompt, where: README, note: "a template"}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = new_project(tmp_path_factory.mktemp("project") / "csebench", PAPER)
    (project.folder / "evidence" / "checkpoints.yaml").write_text(CHECKPOINTS)
    scale = project.folder / "config" / "paper.yaml"
    scale.write_text(scale.read_text().replace("keep: scores", "keep: model"))
    cache = tmp_path_factory.mktemp("hub")
    model = cache / "models--somebody--tiny"
    (model / "refs").mkdir(parents=True)
    (model / "refs" / "main").write_text(COMMIT)
    shutil.copytree(ROOT / "encoders" / "bert-mini-wiki", model / "snapshots" / COMMIT)
    project.env |= {"HF_HUB_CACHE": str(cache), "CSEBENCH_DATA": "data/smoke"}
    return project


def test_without_commits_the_page_is_refused(project):
    done = project.snakemake("results/paper/checkpoints.md")
    assert done.returncode == 2
    assert "evidence/checkpoints.lock.yaml: no commit of 1 released checkpoints" in done.stderr
    assert "csebench lock-checkpoints" in done.stderr


def test_commits_are_looked_up_once_and_their_files_scored(project):
    for count in (1, 0):
        done = project.run("lock-checkpoints", module="csebench")
        assert f"{count} checkpoints looked up" in done.stdout, done.stderr
    done = project.snakemake("results/paper/checkpoints.md")
    assert done.returncode == 0, done.stdout + done.stderr
    text = project.read("paper/checkpoints.md")
    assert "**Nothing on this page is a training run.**" in text
    assert f"[somebody/tiny](https://huggingface.co/somebody/tiny) | `{COMMIT[:10]}`" in text
    assert re.search(r"\| 76\.25 +\| \d+\.\d\d +\| -\d+\.\d\d +\| protocol or file differs \|", text)
    assert "somebody/prompt: no pooler of this project gives its vectors: a template." in text
    (run,) = (project.folder / "runs").glob("released-*")
    again = project.run("evaluate", "--model", f"{run}/model", "--out", f"{run}/again.json", module="csebench")
    average = re.search(r"sts +Avg\. +printed +spearman +(\d+\.\d\d) +%", again.stdout)[1]
    assert average in text


def test_its_runs_are_no_part_of_all(project):
    assert project.run("lock-checkpoints", module="csebench").returncode == 0
    listed = project.run("plan", "all", "--scale", "paper", "--runs", module="csebench").stdout
    assert "released-" not in listed
    assert "released-" in project.run("plan", "checkpoints", "--scale", "paper", "--runs", module="csebench").stdout
