"""Tuning from the search to the page, and to the runs of a table that uses what was chosen."""

import json

import pytest
from project import one_row_project

from csebench.base.files import with_digest, write_json

pytestmark = pytest.mark.slow


def test_a_search_its_page_and_a_scale_that_uses_it(tmp_path):
    project = one_row_project(tmp_path / "csebench")
    done = project.run("tune", "simcse", "--trials", "2", module="csebench")
    assert done.returncode == 0, done.stderr
    search = json.loads(project.read("tuning/simcse.json"))
    for trial in search["trials"]:
        report = json.loads((project.folder / "runs" / trial["run"] / "train.json").read_text())
        assert (report["best_dev"], report["model_sha256"]) == (trial["dev"], trial["model_sha256"])

    done = project.snakemake("results/methods.md")
    assert done.returncode == 0, done.stderr
    assert search["trials"][1]["run"] in project.read("methods.md")

    plan = ("plan", "table2", "--runs", "--json")
    before = project.run(*plan, module="csebench").stdout
    smoke = project.folder / "config" / "smoke.yaml"
    search["trials"][1]["dev"] = 1.0  # whichever was better: the one that is not as the scale has it
    search["chosen"] = search["trials"][1]["settings"]
    write_json(project.folder / "results" / "tuning" / "simcse.json", with_digest(search))
    assert project.run(*plan, module="csebench").stdout == before
    smoke.write_text(f"{smoke.read_text()}\ntuned: true\n")
    done = project.run(*plan, module="csebench")
    assert done.returncode == 0, done.stderr
    assert done.stdout != before
