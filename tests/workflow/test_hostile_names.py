"""No name that a user, or a file, gives reaches a shell as anything but a word."""

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
      - {label: BERT, run: {method: bert}, source: measured, values: ["31.40"]}
"""
COMMANDS = [
    "$(touch${IFS}X)",
    "`touch${IFS}X`",
    ";touch${IFS}X;",
    "&touch${IFS}X&",
    "|touch${IFS}X",
    "x'$(touch${IFS}X)'",
]
TARGETS = [
    "data/official/beir/{}/source.json",
    "data/official/{}/wiki1m_for_simcse.txt",
    "data/official/wiki/{}_for_simcse.txt",
    "data/official/wiki/wiki1m_for_simcse.{}",
    "data/back-translation/{}.txt",
    "runs/{}-0123456789/train.json",
    "results/scores/bert-0123456789.{}.json",
    "results/{}scores/bert-0123456789.sts.json",
    "results/{}/table2.md",
    "results/{}.md",
    "results/{}.svg",
    "results/{}.items.json",
    "results/{}/index.md",
    "results/{}/html",
    "results/partial/{}.md",
    "results/partial/{}/index.md",
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("hostile") / "csebench", PAPER)
    for path in (made.folder / "methods").glob("[!_]*.py"):
        if path.stem != "bert":
            path.unlink()
    for name in ("mini", "paper", "short"):
        (made.folder / "config" / f"{name}.yaml").unlink()
    smoke = made.folder / "config" / "smoke.yaml"
    smoke.write_text(smoke.read_text().partition("methods:")[0])
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_no_target_runs_a_command(project, command):
    done = project.run("-j1", "--keep-going", "--", *(target.format(command) for target in TARGETS))
    assert done.returncode != 0 and not list(project.folder.rglob("X"))


@pytest.mark.parametrize(
    "target", ["data/official/beir/$(touch${IFS}X)/source.json", "results/$(touch${IFS}X)/table2.md"]
)
def test_each_alone_is_refused_before_any_job(project, target):
    done = project.run("-j1", "--", target)
    assert done.returncode != 0 and not project.started(done) and not list(project.folder.rglob("X"))


def test_no_setting_runs_a_command(project):
    for setting in ("scale=$(touch${IFS}X)", "scale=smoke;touch${IFS}X", "runs=$(touch${IFS}X)"):
        done = project.run("-j1", "-n", "results/table2.md", "--config", setting)
        assert not list(project.folder.rglob("X")), setting
        assert ("unknown scale" in done.stderr) == setting.startswith("scale"), done.stderr
    done = project.run("-j1", "results/table2.md", "--set-resources", "train:runs_per_gpu='$(touch X)'")
    assert not list(project.folder.rglob("X")), done.stderr
