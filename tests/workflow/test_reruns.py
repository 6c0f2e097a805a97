"""What an edit makes again, as `snakemake -n` plans it: the pages that show it, and never a training."""

import os
import re
from pathlib import Path

import pytest
from project import new_project

pytestmark = pytest.mark.slow

PAPER = """
name: tiny
label: Tiny
title: A paper with an appendix
reference: "Nobody 2026"
tables:
  "2":
    title: one method
    columns: [{label: Avg., task: Avg.}]
    rows:
      - {label: SimCSE + AMI, run: {method: simcse, components: {ami: {}}}, source: measured, values: ["67.94"]}
  "A1":
    title: another, by another evaluator
    evaluator: transfer
    columns: [{label: Avg., task: Avg.}]
    rows:
      - {label: CT, run: {method: ct}, source: measured, values: ["80.00"]}
figures:
  "1":
    title: the other method
    kind: bars
    axis: Spearman
    columns: [{label: Avg., task: Avg.}]
    rows:
      - {label: CT, run: {method: ct}, source: measured, values: ["70.00"]}
"""
TABLE2 = {"results/table2.md", "results/tiny/table2.md"}
APPENDIX = {"results/tableA1.md", "results/tiny/tableA1.md"}
FIGURE = {"results/tiny/figure1.svg", "results/tiny/figure1.md"}
METHODS = {"results/methods.md"}
OVER_ALL = {"results/index.md", "results/claims.md", "results/audit.md"}
PAGES = TABLE2 | APPENDIX | FIGURE | METHODS | OVER_ALL


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A project whose outputs are there and up to date; nothing was run for them."""
    project = new_project(tmp_path_factory.mktemp("finished") / "csebench", PAPER, "ct simcse", "smoke")
    for line in project.run("--summary", "all").stdout.splitlines()[1:]:
        output = project.folder / line.split("\t")[0]
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text("{}") if output.suffix else output.mkdir()
    done = project.run("all", "--touch", "-j1")
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def project(finished, tmp_path):
    return finished.copy_to(tmp_path / "copy")


def planned(project) -> tuple[set[str], set[str]]:
    """Rules that `all` would run, and the pages that they write."""
    done = project.run("all", "-n")
    assert done.returncode == 0, done.stderr
    printed = done.stdout + done.stderr
    rules = set(re.findall(r"^(\w+) +\d+$", printed, re.M)) - {"all", "total"}
    written = re.findall(r"^Job \d+: (?:write|draw) (\S+)", printed, re.M)
    return rules, {*written} & PAGES


def append(path: Path, line: str) -> None:
    path.write_text(path.read_text() + f"\n{line}\n")


def scores_of(project, method: str) -> list[Path]:
    return sorted((project.folder / "results" / "scores").glob(f"{method}-*.sts.json"))


def write_old(paths: list[Path], content: str) -> None:
    """With a time that is older than that of any page, as `cp -p`, `rsync -a` and `tar -x` leave it."""
    for path in paths:
        path.write_text(content)
        os.utime(path, (0, 0))


def test_what_no_page_depends_on_makes_nothing_again(project):
    """The trainer: what it changes has a new version, and with it other runs. Newer copies of the same data; the same
    scores at another time."""
    for module in ("train/losses.py", "model/encoder.py", "run.py"):
        append(project.folder / "csebench" / module, "# a note")
    for path in (project.folder / "data" / "smoke").rglob("*.csv"):
        path.write_bytes(path.read_bytes())
    write_old(scores_of(project, "simcse"), "{}")
    assert planned(project) == (set(), set())


@pytest.mark.parametrize("file", ["methods/components/ami.py", "evaluators/transfer.py", "csebench/score/store.py"])
def test_edited_code_rebuilds_the_pages_and_trains_nothing(project, file):
    append(project.folder / file, "# a note")
    rules, pages = planned(project)
    assert pages == PAGES and not rules & {"train", "evaluate"}


def test_an_edited_setting_trains_again(project):
    smoke = project.folder / "config" / "smoke.yaml"
    smoke.write_text(smoke.read_text().replace("steps: 6", "steps: 7"))
    rules, pages = planned(project)
    assert {"train", "evaluate"} <= rules and pages == PAGES


def test_a_test_file_that_is_changed_in_place_is_scored_again(project):
    """Rather than the pages saying "Nothing to be done" over the scores of other data."""
    file = project.folder / "data" / "smoke" / "downstream" / "STS" / "STSBenchmark" / "sts-test.csv"
    first, second, *rest = file.read_text().splitlines()
    file.write_text("\n".join([second, first, *rest]) + "\n")
    rules, pages = planned(project)
    assert "evaluate" in rules and "train" not in rules
    assert pages >= TABLE2 | METHODS | OVER_ALL and not pages & APPENDIX


def test_other_values_with_an_old_time_rebuild_the_pages_that_show_them(project):
    write_old(scores_of(project, "ct"), '{"value": 1}')
    rules, pages = planned(project)
    assert pages == FIGURE | METHODS | OVER_ALL and not rules & {"train", "evaluate"}
    assert planned(project)[1] == pages  # until they are made


@pytest.mark.parametrize(
    ("missing", "target", "made"),
    [
        ("scores/ct-*.sts.json", "results/tiny/figure1.svg", {"evaluate", "figure"}),
        ("tableA1.md", "results/index.md", {"page"}),
    ],
)
def test_a_page_that_was_there_first_does_not_hide_what_is_missing(project, missing, target, made):
    """What is between a page and its scores, though no file is newer than the page."""
    for path in (project.folder / "results").glob(missing):
        path.unlink()
    done = project.run("-n", "--", target)
    assert set(re.findall(r"^(\w+) +\d+$", done.stdout + done.stderr, re.M)) - {"total"} == made, done.stderr
