"""Transfer tasks against SentEval itself (what its code printed) and readings worked out by
hand."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from csebench.base.project import ROOT
from csebench.plan.catalog.registry import load, protocol
from evaluators import _probe, _senteval, transfer

SETTINGS = {"test": protocol("transfer").params, "fasttest": protocol("transfer:fasttest").params}


@pytest.mark.parametrize("setting", SETTINGS)
def test_senteval_to_the_digit(setting, smoke_data):
    """transfer.json: what the official code printed for the control `random` (seed 1, 64
    numbers) on data/smoke; its `.cuda()` taken out, `getargspec` replaced, nothing else touched."""
    official = json.loads((ROOT / "tests/protocol/transfer.json").read_text())[setting]
    rows, _ = transfer.evaluate(
        load("random")({"dimensions": 64}, 1), smoke_data, **SETTINGS[setting]
    )
    ours = {(r.task, r.subset, r.metric): round(100 * r.value, 2) for r in rows}
    for task, printed in official.items():
        assert ours[task, "all", "accuracy"] == printed["acc"], task
        assert ours[task, "dev", "accuracy"] == printed["devacc"], task
    assert ours["MRPC", "all", "f1"] == official["MRPC"]["f1"]
    mean = np.mean([printed["acc"] for printed in official.values()])
    assert ours["Avg.", "printed", "accuracy"] == pytest.approx(mean, abs=6e-3)


def test_at_once_is_one_by_one():
    """Folds of two lengths, which stop at different looks, and one that draws its own validation
    rows."""
    torch.manual_seed(7)
    x = torch.randn(150, 8)
    y = (x + torch.randn(150, 8))[:, :3].argmax(1)
    rows = torch.randperm(150).repeat(2).numpy()
    cuts = [(0, 90), (30, 120), (60, 150), (90, 180), (120, 210), (0, 118)]
    folds = [_probe.Fold(rows[start:end], rows[end : end + 30]) for start, end in cuts] + [
        _probe.held_out(rows[:120])
    ]
    decays = [[0.0, 1.0], [3.0, 0.1], [0.01, 0.0], [1.0, 0.3], [1e-5, 3.0], [0.1, 0.01], [0.0, 1.0]]
    before = torch.get_rng_state()
    weights, accuracy = _probe.fit(x, y, 3, folds, decays, SETTINGS["fasttest"])
    assert torch.equal(torch.get_rng_state(), before)  # the caller's random numbers
    for i, j in np.ndindex(accuracy.shape):
        alone, reached = _probe.fit(x, y, 3, [folds[i]], [[decays[i][j]]], SETTINGS["fasttest"])
        np.testing.assert_allclose(weights[i, j], alone[0, 0], atol=1e-5)
        assert accuracy[i, j] == reached[0, 0]


def test_the_first_of_equal_regularisers_wins():
    """Means are compared as SentEval prints them, to two decimals of a percent."""
    assert _senteval.choose(np.array([[0.5, 0.50003, 0.4]])) == (0, 0.5)
    assert _senteval.choose(np.array([[0.5, 0.5002, 0.4], [0.5, 0.5, 0.9]])) == (2, 0.65)


def test_rows_as_senteval_reads_them(tmp_path):
    """Phrases: latin-1, and lines end where Python says: at byte 0x85, carriage returns and form
    feeds. MRPC: a byte-order mark, a header, and quotes that are text."""
    (tmp_path / "MR").write_bytes(
        b"a  good   film \n\nna M-CM-/ve .\ncaf\xe9\x85two\r\nthree\x0cfour\n"
    )
    lines = ("a good film", "", "na M-CM-/ve .", "café", "two", "three", "four")
    assert transfer.phrases(tmp_path / "MR") == [(line, None) for line in lines]
    text = (
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\t" He said\tHe  spoke "\r\n'
    )
    (tmp_path / "MRPC").write_bytes(text.encode())
    assert transfer.mrpc(tmp_path / "MRPC") == [('" He said', 'He spoke "', 1)]


def test_counts_are_declared_and_those_of_the_published_files():
    counts = {task: transfer.COUNTS[task] for task in ("SST", "TREC", "MRPC")}
    assert transfer.DECLARATION["counts"] == {
        task: [*files.values()][-1] for task, files in counts.items()
    }
    root = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
    if (root / "downstream/MR").exists():
        for task in transfer.COUNTS:
            transfer.read(root, task)  # refuses other counts
