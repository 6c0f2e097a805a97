"""A run has the same bits in every environment, and however many runs are made at a time (docs/determinism.md)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from csebench.base.files import sha256
from csebench.base.models import MODEL, REPORT
from csebench.base.project import ROOT
from csebench.plan import targets

pytestmark = pytest.mark.slow
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
SETTINGS = {"PYTHONHASHSEED": "0", "LC_ALL": "C.utf8", **dict.fromkeys(THREADS, "1")}


def work(runs: list[str], folder: Path, **settings) -> dict:
    """Trains and scores runs of scale smoke in a folder, one after the other; returns their bits."""
    script = f"from csebench import cli\nfor run in {runs}: assert cli.main(['work', run, '--evaluators', 'sts']) == 0"
    environment = {**os.environ, **SETTINGS, **settings, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {run: bits(folder / "runs" / run) for run in runs}


def bits(run: Path) -> list:
    """Hashes of the files of a run's model and of its per-item values, and its scores."""
    (path,) = (run / "scores").glob("sts-*.json")
    scored = json.loads(path.read_text())
    files = {str(path.relative_to(run)): path for path in sorted((run / "model").rglob("*")) if path.is_file()}
    del files[f"{MODEL}/{REPORT}"]  # has times
    model = {name: sha256(path) for name, path in files.items()}
    return [model, scored["items_sha256"], [row["value"] for row in scored["scores"]]]


def test_neither_the_environment_nor_the_number_of_runs_at_a_time_changes_a_bit(made, tmp_path):
    """Two runs that were made at the same time, again one after the other; one that fits a map by numpy."""
    planned = targets.runs("smoke")
    trained = sorted({path.parent.name for path in made.folder.glob("runs/simcse-*/train.json")} & {*planned})[:2]
    together = {run: bits(made.folder / "runs" / run) for run in trained}
    fitted = next(run for run, spec in planned.items() if spec.method == "whitening")
    changed = {"PYTHONHASHSEED": "7", "LC_ALL": "C", "HF_HUB_OFFLINE": "1", **dict.fromkeys(THREADS, "2")}
    for folder in ("plain", "changed"):
        (tmp_path / folder).mkdir()
    after = work([*trained, fitted], tmp_path / "changed", **changed)
    assert len(together) == 2 and together.items() <= after.items()
    assert work([fitted], tmp_path / "plain") == {fitted: after[fitted]}
