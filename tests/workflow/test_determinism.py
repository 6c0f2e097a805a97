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


@pytest.fixture(scope="module")
def together(made):
    """Two runs, of two seeds, that were made at the same time."""
    runs = sorted(
        {path.parent.name for path in made.folder.glob("runs/simcse-*/train.json")} & {*targets.runs("smoke")}
    )
    return {run: bits(made.folder / "runs" / run) for run in runs[:2]}


@pytest.fixture(scope="module")
def expected(together, tmp_path_factory):
    """The same runs one after the other, and one that fits a map by numpy."""
    fitted = next(run for run, spec in targets.runs("smoke").items() if spec.method == "whitening")
    return work([*together, fitted], tmp_path_factory.mktemp("expected"))


def test_runs_that_are_made_at_the_same_time_have_the_bits_of_one_after_the_other(together, expected):
    assert len(together) == 2 and together.items() <= expected.items()


def test_the_environment_changes_no_bit(expected, tmp_path):
    environment = {"PYTHONHASHSEED": "7", "LC_ALL": "C", "HF_HUB_OFFLINE": "1", **dict.fromkeys(THREADS, "2")}
    trained, _, fitted = expected
    assert work([trained, fitted], tmp_path, **environment) == {run: expected[run] for run in (trained, fitted)}
