"""A run has the same bits in every environment, and however many runs are made at a time
(docs/determinism.md)."""

import json
import os
import subprocess
import sys

import pytest
from tiny_runs import weights

from csebench.base.project import ROOT
from csebench.plan import targets

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PLAIN = {"PYTHONHASHSEED": "0", "LC_ALL": "C.utf8", **dict.fromkeys(THREADS, "1")}
CHANGED = {
    "PYTHONHASHSEED": "7",
    "LC_ALL": "C",
    "HF_HUB_OFFLINE": "1",
    **dict.fromkeys(THREADS, "2"),
}


def work(runs, folder, settings):
    """Trains and scores runs of scale smoke in a new folder, one after the other; returns their
    bits."""
    folder.mkdir()
    script = (
        f"from csebench import cli\nfor run in {runs}: assert cli.main(['work', run,"
        " '--evaluators', 'sts']) == 0"
    )
    environment = {**os.environ, **settings, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {run: bits(folder / "runs" / run) for run in runs}


def bits(run):
    """Weights, the hash of per-item values, and scores."""
    (path,) = (run / "scores").glob("sts-*.json")
    scored = json.loads(path.read_text())
    return [weights(run), scored["items_sha256"], [row["value"] for row in scored["scores"]]]


@pytest.mark.slow
def test_neither_the_environment_nor_the_number_of_runs_at_a_time_changes_a_bit(made, tmp_path):
    """A run that was made beside another, again alone; one that fits a map by numpy, again in
    another environment."""
    planned, runs = targets.runs("smoke"), made.folder / "runs"
    trained = next(
        run for run in planned if run.startswith("simcse-") and (runs / run / "train.json").exists()
    )
    fitted = next(run for run, spec in planned.items() if spec.method == "whitening")
    before = {trained: bits(runs / trained), **work([fitted], tmp_path / "plain", PLAIN)}
    assert work([trained, fitted], tmp_path / "changed", CHANGED) == before
