"""Released checkpoints: the lock file of their commits, the runs of their page, and its verdicts."""

import pytest

from csebench import ROOT
from csebench.base import caches
from csebench.base.errors import BadInput, RunFailed
from csebench.plan import catalog, checkpoints, evidence, targets
from csebench.plan.grids import plan_grid
from csebench.report import checkpoints_page
from csebench.report.view import grid_view

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LISTED = """
checkpoints:
  - {method: simcse, encoder: bert-base, hub: somebody/one, pooler: cls_before_pooler, stated: {Avg.: 76.25}, where: x}
  - {method: simcse, encoder: bert-large, hub: somebody/two, pooler: cls, where: x}
  - {method: promptbert, encoder: bert-base, hub: somebody/prompt, where: x, note: a template}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder evidence/ with the checkpoints LISTED; paths of scores are below it."""
    (tmp_path / "methods.yaml").write_bytes((ROOT / "evidence" / "methods.yaml").read_bytes())
    (tmp_path / "checkpoints.yaml").write_text(LISTED)
    monkeypatch.setattr(evidence, "folder", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    caches.clear()
    yield tmp_path
    caches.clear()


def look_up(commits, folder):
    """The ids that `lock` asks for, with the text of the file that it writes."""
    asked = []

    def commit(hub):
        asked.append(hub)
        if hub not in commits:
            raise BadInput("the hub has no such public model")
        return commits[hub]

    checkpoints.lock(commit, "2026-11-22")
    caches.clear()
    return asked, (folder / checkpoints.LOCK).read_text()


def test_the_lock_of_the_project_is_valid():
    assert all(len(entry.commit or "") in (0, 40) for entry in checkpoints.locked().values())


def test_commits_are_looked_up_once(folder):
    asked, first = look_up({"somebody/one": COMMIT}, folder)
    assert asked == ["somebody/one", "somebody/two"]  # what is not scored needs none
    assert (checkpoints.locked()["somebody/one"].commit, checkpoints.locked()["somebody/one"].date) == (
        COMMIT,
        "2026-11-22",
    )
    assert checkpoints.locked()["somebody/two"].unavailable
    assert look_up({"somebody/one": "f" * 40}, folder) == ([], first)


def test_without_a_connection_nothing_is_written(folder):
    def fail(hub):
        raise RunFailed("no connection")

    with pytest.raises(RunFailed):
        checkpoints.lock(fail, "2026-11-22")
    assert not (folder / checkpoints.LOCK).exists()
    with pytest.raises(BadInput, match=r"no commit of 2 released checkpoints.*csebench lock-checkpoints"):
        checkpoints.require_lock()


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            "somebody/on: {unavailable: gone, date: 2026-11-22}",
            r"line 2: unknown checkpoint .*Did you mean 'somebody/",
        ),
        ("somebody/one: {commit: main, date: 2026-11-22}", r"line 2: checkpoints.somebody/one.commit: .*'main'"),
        ("somebody/one: {date: 2026-11-22}", "needs either `commit`, or `unavailable`"),
    ],
)
def test_a_lock_that_does_not_fit_is_refused(folder, entry, words):
    (folder / checkpoints.LOCK).write_text(f"checkpoints:\n  {entry}\n")
    with pytest.raises(BadInput, match=words):
        checkpoints.locked()


def test_a_run_is_the_checkpoint_at_its_commit(folder):
    look_up({"somebody/one": COMMIT}, folder)
    one, two, prompt = plan_grid("checkpoints", "checkpoints", "paper")
    (spec,) = one[-1].specs
    assert (spec.method, spec.params, spec.corpus) == ("released", {"pooler": "cls_before_pooler"}, None)
    assert (spec.encoder.name, spec.encoder.revision) == ("somebody/one", COMMIT)
    assert two[-1].missing == "the hub has no such public model (2026-11-22)"
    assert "a template" in prompt[-1].missing


def test_its_page_changes_no_run_of_the_others(folder):
    before = [targets.runs(scale) for scale in catalog.scale_names()]
    look_up({"somebody/one": COMMIT}, folder)
    assert [targets.runs(scale) for scale in catalog.scale_names()] == before
    added = targets.all_runs("paper").keys() - targets.runs("paper").keys()
    assert [run.partition("-")[0] for run in added] == ["released"]
    assert targets.evaluators("paper")[added.pop()] == {"sts"}


def test_no_row_of_the_table_of_all_methods():
    rows = catalog.side_by_side().tables[catalog.SIDE_BY_SIDE].rows
    assert "released" not in [row.run.method for row in rows if row.run]


def test_the_page_is_of_scale_paper():
    assert targets.parse_target("results/paper/checkpoints.md", "smoke")[0].name == "checkpoints"
    with pytest.raises(BadInput, match="checkpoints exists at scale paper only"):
        targets.parse_target("checkpoints", "smoke")


@pytest.mark.parametrize(
    ("average", "verdict"),
    [
        (0.7625, checkpoints_page.AS_RELEASED),
        (0.7627, checkpoints_page.AS_RELEASED),
        (0.7623, checkpoints_page.AS_RELEASED),
        (0.7628, checkpoints_page.DIFFERS),
        (0.7511, checkpoints_page.DIFFERS),
    ],
)
def test_verdict_of_a_file(folder, average, verdict):
    look_up({"somebody/one": COMMIT}, folder)
    cell = grid_view("checkpoints", "checkpoints", "paper").rows[0][-1]
    cell.values[0] = 100 * average
    assert checkpoints_page.verdict(evidence.checkpoints()[0], cell) == verdict


def test_a_page_without_commits_names_the_command(folder):
    text = checkpoints_page.page()
    assert "0 of 3 checkpoints are scored" in text
    assert "checkpoints.lock.yaml is empty: no commit has been looked up yet. `csebench lock-checkpoints`" in text
    assert "somebody/one, somebody/two: its commit has not been looked up" in text
