"""Transfer tasks compared with what SentEval's code printed.

How files are read is worked out by hand.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from controls import random_model

from csebench.base.project import ROOT
from csebench.plan.catalog.registry import protocol
from evaluators import _probe, _senteval, transfer

SETTINGS = {"test": protocol("transfer").params, "fasttest": protocol("transfer:fasttest").params}


@pytest.mark.parametrize("setting", SETTINGS)
def test_senteval_to_the_digit(setting, smoke_data):
    """transfer.json has what the official code printed for the control `random` (seed 1, 64
    numbers) on data/smoke. Its `.cuda()` was taken out and `getargspec` replaced, and nothing else
    was touched."""
    official = json.loads((ROOT / "tests/protocol/transfer.json").read_text())[setting]
    model = random_model(64)

    rows, _ = transfer.evaluate(model, smoke_data, **SETTINGS[setting])

    scores = {(row.task, row.subset, row.metric): round(100 * row.value, 2) for row in rows}
    for task, printed in official.items():
        assert scores[task, "all", "accuracy"] == printed["acc"], task
        assert scores[task, "dev", "accuracy"] == printed["devacc"], task
    assert scores["MRPC", "all", "f1"] == official["MRPC"]["f1"]
    mean = np.mean([printed["acc"] for printed in official.values()])
    assert scores["Avg.", "printed", "accuracy"] == pytest.approx(mean, abs=6e-3)


def test_folds_fitted_at_once_are_as_fitted_one_by_one():
    """The folds have two lengths and stop at different looks at the validation rows. The last fold
    draws its own validation rows."""
    settings = SETTINGS["fasttest"]
    torch.manual_seed(7)
    x = torch.randn(150, 8)
    y = (x + torch.randn(150, 8))[:, :3].argmax(1)
    rows = torch.randperm(150).repeat(2).numpy()
    folds = []
    for start, end in [(0, 90), (30, 120), (60, 150), (90, 180), (120, 210), (0, 118)]:
        folds.append(_probe.Fold(rows[start:end], rows[end : end + 30]))
    folds.append(_probe.held_out(rows[:120]))
    decays = [[0.0, 1.0], [3.0, 0.1], [0.01, 0.0], [1.0, 0.3], [1e-5, 3.0], [0.1, 0.01], [0.0, 1.0]]
    random_state = torch.get_rng_state()

    weights, accuracy = _probe.fit(x, y, 3, folds, decays, settings)

    assert torch.equal(torch.get_rng_state(), random_state)  # the caller's random numbers
    assert accuracy.shape == (7, 2)
    for fold, decay in np.ndindex(accuracy.shape):
        own_decay = [[decays[fold][decay]]]
        alone, accuracy_alone = _probe.fit(x, y, 3, [folds[fold]], own_decay, settings)
        np.testing.assert_allclose(weights[fold, decay], alone[0, 0], atol=1e-5)
        assert accuracy[fold, decay] == accuracy_alone[0, 0]


def test_the_first_of_equal_regularisers_wins():
    """Means are compared as SentEval prints them, to two decimals of a percent."""
    assert _senteval.choose(np.array([[0.5, 0.50003, 0.4]])) == (0, 0.5)
    assert _senteval.choose(np.array([[0.5, 0.5002, 0.4], [0.5, 0.5, 0.9]])) == (2, 0.65)


def test_phrases_as_senteval_reads_them(tmp_path):
    """They are latin-1. Lines end where Python ends them: also at byte 0x85, carriage returns and
    form feeds."""
    file = tmp_path / "MR"
    file.write_bytes(b"a  good   film \n\nna M-CM-/ve .\ncaf\xe9\x85two\r\nthree\x0cfour\n")
    lines = ("a good film", "", "na M-CM-/ve .", "café", "two", "three", "four")
    assert transfer.phrases(file) == [(line, None) for line in lines]


def test_mrpc_as_senteval_reads_it(tmp_path):
    """It begins with a byte-order mark and a header. Quotes are text."""
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    row = '1\t7\t8\t" He said\tHe  spoke "\r\n'
    file = tmp_path / "MRPC"
    file.write_bytes((header + row).encode())
    assert transfer.mrpc(file) == [('" He said', 'He spoke "', 1)]


def test_counts_are_declared_and_those_of_the_published_files():
    """The declared count of a task is that of its last file, the test set."""
    declared = {task: list(transfer.COUNTS[task].values())[-1] for task in ("SST", "TREC", "MRPC")}
    assert transfer.DECLARATION["counts"] == declared

    root = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
    if (root / "downstream/MR").exists():
        for task in transfer.COUNTS:
            transfer.read(root, task)  # refuses other counts
