"""A fresh clone with the published study, without data and runs: pages are written anew with the committed bytes."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from csebench.base.project import ROOT
from csebench.plan import targets

pytestmark = pytest.mark.slow
PAGE = "results/mini/micse/table2.md"
WRITTEN = (PAGE, PAGE.replace(".md", ".items.json"))


@pytest.fixture
def clone(tmp_path):
    """Runs Snakemake in a copy of what is committed, with times of now, as git gives them."""
    if missing := [key for key in shown("all") if not (ROOT / targets.score_path(*key, "mini")).exists()]:
        pytest.skip(f"{len(missing)} published scores are of an older version of the code: runs have other ids")
    folder, env = tmp_path / "csebench", {**os.environ, "PYTHONPATH": str(tmp_path / "csebench")}
    ignored = shutil.ignore_patterns(".git", ".venv", "runs", "html", ".logs", ".snakemake", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=ignored, copy_function=shutil.copyfile)
    env.pop("CSEBENCH_DATA", None)

    def snakemake(*arguments, **more):
        command = [sys.executable, "-m", "snakemake", *arguments]
        done = subprocess.run(command, cwd=folder, env=env | more, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    snakemake.folder = folder
    return snakemake


def shown(target):
    return {key for page in targets.parse_target(target, "mini") for key in page.available()}


def test_nothing_is_trained_or_scored_for_what_is_published(clone):
    planned = clone("-n", "--config", "scale=mini", "--", "all")
    assert not re.search(r"^(train|evaluate) +\d+$", planned, re.M) and re.search(r"^page +\d+$", planned, re.M)


@pytest.mark.parametrize("data", ["no data", "data of somebody else"])
def test_a_page_with_published_scores_is_the_committed_one(data, clone):
    given = {} if data == "no data" else {"CSEBENCH_DATA": str(clone.folder.parent)}  # a folder without any of it
    assert "Finished jobid" in clone("-j2", "--forcerun", "compare", "page", "--", PAGE, **given)
    for name in WRITTEN:
        assert (clone.folder / name).read_bytes() == (ROOT / name).read_bytes(), name
