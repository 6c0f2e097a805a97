"""Transfer tasks against SentEval itself (what its code printed) and readings worked out by hand."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from csebench.base.project import ROOT
from csebench.plan.registry import load, protocol
from evaluators import _probe, _senteval, transfer

SETTINGS = {"test": protocol("transfer").params, "fasttest": protocol("transfer:fasttest").params}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("setting", SETTINGS)
def test_senteval_to_the_digit(setting, smoke_data):
    """golden/transfer.json: what the official code printed for the control `random` (seed 1, 64 numbers) on
    data/smoke; its `.cuda()` taken out, `getargspec` replaced, nothing else touched."""
    official = json.loads((ROOT / "tests/protocol/transfer.json").read_text())[setting]
    rows, items = transfer.evaluate(load("random")({"dimensions": 64}, 1), smoke_data, **SETTINGS[setting])
    ours = {(r.task, r.subset, r.metric): round(100 * r.value, 2) for r in rows}
    for task, printed in official.items():
        assert ours[task, "all", "accuracy"] == printed["acc"], task
        assert ours[task, "dev", "accuracy"] == printed["devacc"], task
    assert ours["MRPC", "all", "f1"] == official["MRPC"]["f1"]
    assert ours["Avg.", "printed", "accuracy"] == pytest.approx(
        np.mean([p["acc"] for p in official.values()]), abs=6e-3
    )
    assert 100 * items["TREC"].mean() == pytest.approx(official["TREC"]["acc"], abs=0.01)


ONE_BY_ONE = {  # norms of the weights, and accuracies, of a plain loop over the fits, as SentEval trains them
    "test": (
        [[1.008830, 1.008473], [1.009750, 1.009710], [1.008473, 1.004924], [1.008430, 0.993321], [1.007360, 1.007418]],
        [[1 / 3, 1 / 3], [1 / 3, 1 / 3], [1 / 3, 1 / 3], [0.4, 0.4], [1 / 3, 1 / 3]],
    ),
    "fasttest": (
        [[1.111405, 0.971987], [1.123484, 1.119434], [0.971987, 0.700219], [1.264456, 0.377629], [0.820927, 0.822148]],
        [[0.6, 0.6], [0.6, 0.6], [0.6, 0.6], [0.6, 0.6], [0.5, 0.5]],
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_at_once_is_one_by_one(setting):
    """Folds of three lengths, one that draws its own validation rows, two regularisers of its own each."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((150, 8)).astype(np.float32))
    y = (x[:, 0] + 0.7 * torch.randn(150, generator=torch.Generator().manual_seed(0)) > 0).long()
    y[:20] = 2
    order = rng.permutation(150)
    folds = [_probe.Fold(order[:n], order[n : n + 30]) for n in (90, 91, 90, 118)]
    folds.append(_probe.held_out(np.sort(order[:120])))
    decay = [[1e-5, 1e-2], [1e-4, 1e-3], [1e-2, 1e-1], [0.0, 1.0], [1e-3, 1e-5]]
    torch.manual_seed(7)
    weights, accuracy = _probe.fit(x, y, 3, folds, decay, SETTINGS[setting])
    assert torch.rand(1) == torch.rand(1, generator=torch.Generator().manual_seed(7))  # the caller's random numbers
    norms, reached = ONE_BY_ONE[setting]
    np.testing.assert_allclose(weights.flatten(2).norm(dim=2), norms, atol=5e-6)
    np.testing.assert_allclose(accuracy, reached, atol=1e-12)


def test_the_first_of_equal_regularisers_wins():
    """Means are compared as SentEval prints them, to two decimals of a percent."""
    assert _senteval.choose(np.array([[0.5, 0.50003, 0.4]])) == (0, 0.5)
    assert _senteval.choose(np.array([[0.5, 0.5002, 0.4], [0.5, 0.5, 0.9]])) == (2, 0.65)


READ = {  # reader: bytes of a file, and its rows
    "phrases": (b"a  good   film \n\nna M-CM-/ve .\n", [("a good film", None), ("", None), ("na M-CM-/ve .", None)]),
    # latin-1, and lines end where Python says: at byte 0x85, carriage returns and form feeds
    "phrases of latin-1": (
        b"caf\xe9\x85two\r\nthree\x0cfour\n",
        [(s, None) for s in ("café", "two", "three", "four")],
    ),
    "trec": (
        b"NUM:dist How far is Su\xf0ureyri ?\nABBR:exp What is `` UN '' ?\n",
        [("How far is Suðureyri ?", None, 5), ("What is `` UN '' ?", None, 0)],
    ),
    "mrpc": (  # a byte-order mark, a header, and quotes that are text
        '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\t" He said\tHe  spoke "\r\n'.encode(),
        [('" He said', 'He spoke "', 1)],
    ),
    "sst": (b"a dull film \t0\nfun\t1\n", [("a dull film", None, 0), ("fun", None, 1)]),
}


@pytest.mark.parametrize("name", READ)
def test_rows_as_senteval_reads_them(name, tmp_path):
    content, rows = READ[name]
    (tmp_path / "file").write_bytes(content)
    assert getattr(transfer, name.partition(" ")[0])(tmp_path / "file") == rows


def test_counts_are_declared_and_those_of_the_published_files():
    counts = {task: transfer.COUNTS[task] for task in ("SST", "TREC", "MRPC")}
    assert transfer.DECLARATION["counts"] == {task: [*files.values()][-1] for task, files in counts.items()}
    root = Path(os.environ.get("CSEBENCH_DATA", "no data root"))
    if (root / "downstream/MR").exists():
        sizes = {task: sum(len(s.labels) for s in transfer.read(root, task).values()) for task in transfer.COUNTS}
        assert sizes["MR"] == 10662 and sizes["SUBJ"] == 10000 and sizes["SST"] == 70042
