"""A fresh clone with the published study, without data and runs: pages are written anew with the committed bytes."""

import shutil

import pytest
from project import copied

from csebench.base.project import ROOT
from csebench.plan import targets

PAGE = "results/mini/micse/table2.md"


@pytest.mark.slow
def test_nothing_is_trained_or_scored_for_what_is_published(tmp_path):
    """Neither without data, nor with a folder that has none of it; files have times of now, as git gives them."""
    published = {key for page in targets.parse_target("all", "mini") for key in page.available()}
    if missing := [key for key in published if not (ROOT / targets.score_path(*key, "mini")).exists()]:
        pytest.skip(f"{len(missing)} published scores are of an older version of the code: runs have other ids")
    clone = copied(tmp_path / "csebench", copy_function=shutil.copyfile)
    rules = clone.planned("all", "--config", "scale=mini")
    assert not {"train", "evaluate"} & rules and "page" in rules
    clone.env["CSEBENCH_DATA"] = str(tmp_path)
    assert clone.started(clone.make("--forcerun", "page", "--", PAGE)) >= {"page"}
    for name in (PAGE, PAGE.replace(".md", ".svg")):
        assert (clone.folder / name).read_bytes() == (ROOT / name).read_bytes(), name
