"""No name that a user, or a file, gives reaches a shell as anything but a word."""

import pytest
from project import one_row_project

pytestmark = pytest.mark.slow

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
    "results/scores/simcse-0123456789.{}.json",
    "results/{}scores/simcse-0123456789.sts.json",
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
    return one_row_project(tmp_path_factory.mktemp("hostile") / "csebench")


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
    for setting in ("scale=$(touch${IFS}X)", "scale=smoke;touch${IFS}X"):
        done = project.run("-j1", "-n", "results/table2.md", "--config", setting)
        assert not list(project.folder.rglob("X")), setting
        assert "unknown scale" in done.stderr
    done = project.run("-j1", "results/table2.md", "--set-resources", "train:runs_per_gpu='$(touch X)'")
    assert not list(project.folder.rglob("X")), done.stderr
