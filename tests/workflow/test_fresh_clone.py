"""A fresh clone with the published study, without data and runs: pages are written anew with the committed bytes."""

import re
import shutil

import pytest
from project import Project

from csebench.base.project import ROOT
from csebench.plan import targets

pytestmark = pytest.mark.slow
PAGE = "results/mini/micse/table2.md"
WRITTEN = (PAGE, PAGE.replace(".md", ".svg"))


@pytest.fixture
def clone(tmp_path):
    """A copy of what is committed, with times of now, as git gives them."""
    if missing := [key for key in shown("all") if not (ROOT / targets.score_path(*key, "mini")).exists()]:
        pytest.skip(f"{len(missing)} published scores are of an older version of the code: runs have other ids")
    ignored = shutil.ignore_patterns(".git", ".venv", "runs", "html", ".logs", ".snakemake", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "csebench", ignore=ignored, copy_function=shutil.copyfile)
    return Project(tmp_path / "csebench")


def shown(target):
    return {key for page in targets.parse_target(target, "mini") for key in page.available()}


def test_nothing_is_trained_or_scored_for_what_is_published(clone):
    done = clone.run("-n", "--config", "scale=mini", "--", "all")
    rules = re.findall(r"^(\w+) +\d+$", done.stdout + done.stderr, re.M)
    assert done.returncode == 0 and not {"train", "evaluate"} & {*rules} and "page" in rules, done.stderr


@pytest.mark.parametrize("data", ["no data", "data of somebody else"])
def test_a_page_with_published_scores_is_the_committed_one(data, clone):
    if data == "data of somebody else":
        clone.env["CSEBENCH_DATA"] = str(clone.folder.parent)  # a folder without any of it
    done = clone.run("-j2", "--forcerun", "page", "--", PAGE)
    assert done.returncode == 0 and clone.started(done) >= {"page"}, done.stderr
    for name in WRITTEN:
        assert (clone.folder / name).read_bytes() == (ROOT / name).read_bytes(), name
