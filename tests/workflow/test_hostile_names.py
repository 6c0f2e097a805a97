"""No name that a user, or a file, gives reaches a shell as anything but a word (also: test_rules.py)."""

import pytest
from project import one_row_project

pytestmark = pytest.mark.slow

COMMAND = "$(touch${IFS}X)`touch${IFS}X`;touch${IFS}X;x'|touch${IFS}X&touch${IFS}X"
TARGETS = [
    "data/official/beir/{}/source.json",
    "data/official/wiki/wiki1m_for_simcse.{}",
    "data/back-translation/{}.txt",
    "runs/{}-0123456789/train.json",
    "results/scores/simcse-0123456789.{}.json",
    "results/{}/table2.md",
    "results/{}.items.json",
    "results/partial/{}.md",
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return one_row_project(tmp_path_factory.mktemp("hostile") / "csebench")


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_refused_before_any_job(project, target):
    done = project.run("-j1", "--", target.format(COMMAND))
    assert done.returncode != 0 and not project.started(done) and not list(project.folder.rglob("X"))


@pytest.mark.parametrize(
    "setting", ["--config=scale=smoke;touch${IFS}X", "--set-resources=train:runs_per_gpu='$(touch X)'"]
)
def test_no_setting_runs_a_command(project, setting):
    done = project.run("-j1", "results/table2.md", setting)
    assert done.returncode != 0 and not list(project.folder.rglob("X")), done.stderr
