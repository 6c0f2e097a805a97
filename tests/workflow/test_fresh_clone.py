"""A fresh clone with the published study, without data and runs: pages are written anew with the committed bytes."""

import os
import shutil
import subprocess
import sys

import pytest

from csebench.base.project import ROOT
from csebench.plan import targets

pytestmark = pytest.mark.slow
PAGE = "results/mini/micse/table2.md"
WRITTEN = (PAGE, PAGE.replace(".md", ".items.json"))


@pytest.mark.parametrize("data", ["no data", "data of somebody else"])
def test_a_page_with_published_scores_is_the_committed_one(data, tmp_path):
    (page,) = targets.parse_target(PAGE, "mini")
    if not all((ROOT / targets.score_path(*key, "mini")).exists() for key in page.scores()):
        pytest.skip("the published study is of an older version of the code: its runs have other ids")
    folder, env = tmp_path / "csebench", {**os.environ, "PYTHONPATH": str(tmp_path / "csebench")}
    ignored = shutil.ignore_patterns(".git", ".venv", "runs", "html", ".logs", ".snakemake", "__pycache__")
    shutil.copytree(ROOT, folder, ignore=ignored, copy_function=shutil.copyfile)  # with times of now, as git does
    env.pop("CSEBENCH_DATA", None)
    if data != "no data":
        env["CSEBENCH_DATA"] = str(tmp_path)  # a folder without any of it
    command = [sys.executable, "-m", "snakemake", "-j2", "--forcerun", "compare", "page", "--", PAGE]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Finished jobid" in done.stdout + done.stderr
    for name in WRITTEN:
        assert (folder / name).read_bytes() == (ROOT / name).read_bytes(), name
