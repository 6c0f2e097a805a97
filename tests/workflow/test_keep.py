"""A scale that keeps only scores: its models are deleted on the way, and trained again for a missing score only."""

import pytest
from project import one_row_project

pytestmark = pytest.mark.slow
TABLES = ("results/table2.md", "results/table3.md")


def test_models_are_deleted_when_all_scores_are_published(tmp_path):
    project = one_row_project(tmp_path / "csebench")
    smoke = project.folder / "config" / "smoke.yaml"
    smoke.write_text(smoke.read_text().replace("keep: model", "keep: scores"))
    first = project.snakemake("results/table2.md")
    assert first.returncode == 0, first.stderr
    runs = project.folder / "runs"
    models = sorted(path.parent.name for path in runs.glob("simcse-*/model"))
    assert len(models) == 2  # Table 3 shows other scores of them
    done = project.snakemake(*TABLES)
    assert done.returncode == 0 and "train" not in project.started(done), done.stderr
    assert not list(runs.glob("*/model")) and len(list(runs.glob("*/pruned.json"))) == 2
    page = project.read("table2.md")
    assert "Nothing to be done" in (again := project.snakemake(*TABLES)).stdout + again.stderr
    missing = f"results/scores/{models[0]}.sts.json"
    (project.folder / missing).unlink()
    again = project.snakemake(missing, *TABLES)
    assert again.returncode == 0 and project.jobs(again, "train") == 1, again.stderr
    assert not list(runs.glob("*/model")) and project.read("table2.md") == page
