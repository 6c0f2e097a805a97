"""The file that `csebench plan --seeds` writes, as the target `chosen` of the workflow."""

import re

import pytest
import yaml
from project import one_row_project

from csebench import workflow


@pytest.fixture
def project(tmp_path):
    return one_row_project(tmp_path / "csebench")


def chosen(project, *options) -> dict[str, list[str]]:
    done = project.run("plan", "tiny/table2", *options, module="csebench")
    assert done.returncode == 0 and "snakemake -j1 --configfile chosen.yaml -- chosen" in done.stdout, done.stderr
    return yaml.safe_load((project.folder / "chosen.yaml").read_text())["runs"]


def run_chosen(project, *options):
    return project.run("-j1", "--configfile", "chosen.yaml", *options, "--", "chosen")


@pytest.mark.slow
def test_one_seed_now_and_another_later(project):
    """Only what was chosen is trained and scored; the page is made from it, and the next choice is what is left."""
    first = chosen(project, "--seeds", "1")
    done = run_chosen(project)
    assert done.returncode == 0, done.stderr
    assert (project.jobs(done, "train"), project.jobs(done, "evaluate")) == (1, 1)
    assert [p.name.removesuffix(".sts.json") for p in (project.folder / "results/scores").glob("*.json")] == [*first]
    assert [p.name.partition("-")[0] for p in (project.folder / "runs").glob("*/scores/*.json")] == ["sts"]
    assert "[1 missing]" in project.read("partial/tiny/table2.md")
    second = chosen(project, "--seeds", "2")
    assert len(second) == 1 and first.keys() != second.keys()
    listed = run_chosen(project, "-n")
    trained = re.findall(r"train .+: ([\w-]+)$", listed.stdout, re.M)
    assert listed.returncode == 0 and trained == [*second], listed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("runs: {simcse-0123456789: [sts]}", "no table of scale smoke needs a run 'simcse-0123456789'"),
        ("runs: [simcse-0123456789]", "runs: must be run ids with their evaluators"),
    ],
)
def test_a_file_that_was_not_written_by_plan_is_refused(project, content, message):
    (project.folder / "chosen.yaml").write_text(content)
    done = run_chosen(project, "-n")
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_chosen_runs_are_trained_in_their_order():
    runs = {"simcse-2222222222": ["sts"], "simcse-1111111111": ["sts"]}
    first, second, other = (workflow.place(run, runs) for run in (*runs, "simcse-0000000000"))
    assert first > second > other == 0


def test_chosen_runs_are_scored_by_what_was_chosen():
    run = next(iter(workflow.targets.runs("smoke")))
    runs = {run: ["sts", "beir:smoke"]}
    assert workflow.wanted_evaluators(run, "smoke", ["chosen"], runs) == "beir:smoke,sts"
    assert workflow.wanted_evaluators(run, "smoke", ["results/index.md"], runs) != "beir:smoke,sts"
