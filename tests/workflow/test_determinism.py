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

PLAIN = {
    "PYTHONHASHSEED": "0",
    "LC_ALL": "C.utf8",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
CHANGED = {
    "PYTHONHASHSEED": "7",
    "LC_ALL": "C",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "2",
    "MKL_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
}


@pytest.mark.slow
def test_neither_the_environment_nor_the_number_of_runs_at_a_time_changes_a_bit(made, tmp_path):
    """A run that was made at the same time as another is made again alone. A run that fits a map by
    numpy is made twice, in different environments."""
    planned = targets.runs("smoke")
    trained = trained_run(planned, made.folder / "runs")
    fitted = next(run_id for run_id, spec in planned.items() if spec.method == "whitening")

    before = train_and_score([fitted], tmp_path / "plain", PLAIN)
    before[trained] = bits(made.folder / "runs" / trained)
    after = train_and_score([trained, fitted], tmp_path / "changed", CHANGED)

    assert after == before


def trained_run(planned, runs):
    """Return the id of the first planned run of SimCSE that was trained."""
    for run_id in planned:
        if run_id.startswith("simcse-") and (runs / run_id / "train.json").exists():
            return run_id
    raise AssertionError("no run of SimCSE was trained")


def train_and_score(run_ids, folder, environment):
    """Make runs of scale smoke in a new folder, one by one, and return their bits by id."""
    folder.mkdir()
    script = f"""
from csebench import cli
for run_id in {run_ids}:
    assert cli.main(["work", run_id, "--evaluators", "sts"]) == 0
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return {run_id: bits(folder / "runs" / run_id) for run_id in run_ids}


def bits(run):
    """Read the weights of a run, the hash of its per-item values, and its scores."""
    (path,) = (run / "scores").glob("sts-*.json")
    content = json.loads(path.read_text())
    return {
        "weights": weights(run),
        "items": content["items_sha256"],
        "scores": [row["value"] for row in content["scores"]],
    }
