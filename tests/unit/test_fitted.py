"""A method that is fitted draws its sentences by seed: it has a run for every seed, and a spread."""

import shutil

import pytest
from score_files import scored_by, write_score_file

from csebench.base import caches
from csebench.base.project import ROOT
from csebench.plan import catalog, targets
from csebench.report.view import grid_view

SCALE = """
scale: paper
purpose: a test
data_root: data/smoke
corpus: smoke
dev: stsb-dev-smoke
sizes: {"1%": 96, "100%": 96}
seeds: [1, 2, 3]
encoders: {bert-base: {name: encoders/bert-mini-wiki, revision: "0"}}
"""
PAPER = """
name: tiny
title: T
reference: R
tables:
  "1":
    title: one row
    columns: [{label: Avg., task: Avg.}]
    rows:
      - {label: whitening, run: {method: whitening}, source: measured, values: ["66.00"]}
      - {label: untrained, run: {method: bert}, source: measured, values: ["66.00"]}
"""
VALUES = {1: 0.64, 2: 0.66, 3: 0.68}


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """The cells of a row of whitening and of one that is not fitted, whose runs are scored by seed."""
    for name, text in (("config/paper.yaml", SCALE), ("papers/tiny.yaml", PAPER)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "data").mkdir()
    shutil.copy(ROOT / "data" / "registry.yaml", tmp_path / "data")
    monkeypatch.setattr(catalog, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    caches.clear()
    for run, spec in targets.page("table1", "paper", "tiny").runs().items():
        row = {
            "evaluator": "sts",
            "task": "Avg.",
            "subset": "printed",
            "metric": "spearman",
            "value": VALUES.get(spec.seed, 0.66),
        }
        content = {"run": run, "spec": spec.model_dump(), "scores": [row]}
        path = targets.score_path(run, "sts", "paper")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_score_file(path, content | {"evaluations": [scored_by("sts")]})
    yield [cells[0] for cells in grid_view("tiny", "table1", "paper").rows]
    caches.clear()


def test_it_has_a_run_for_every_seed(rows):
    fitted, untrained = rows
    assert [spec.seed for spec in fitted.plan.specs] == [1, 2, 3]
    assert [spec.corpus.subset_seed for spec in fitted.plan.specs] == [1, 2, 3]
    assert len(untrained.plan.specs) == 1


def test_its_cell_shows_mean_and_spread(rows):
    assert [cell.text for cell in rows] == ["66.00 ± 2.00", "66.00"]


def test_its_verdict_takes_it_for_random(rows):
    """The interval of a row without randomness would be a printed unit, 0.01, wide."""
    widths = [cell.verdict.half_width for cell in rows]
    assert widths[0] > 2 and widths[1] == 0.01
