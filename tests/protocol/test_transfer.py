"""Transfer tasks against SentEval itself (what its code printed), a plain loop, and readings worked out by hand."""

import copy
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


class OneByOne:
    """One logistic regression, as SentEval trains it: reseeds, splits, trains, stops and keeps its best weights."""

    def __init__(self, size, classes, decay, settings):
        np.random.seed(_probe.SEED)
        torch.manual_seed(_probe.SEED)
        self.settings = settings
        self.model = torch.nn.Linear(size, classes)
        self.optimizer = _probe.OPTIMIZERS[settings["optimizer"]](self.model.parameters(), weight_decay=decay)

    def fit(self, x, y, dev=None):
        if dev is None:
            order, cut = np.random.permutation(len(x)), int(0.05 * len(x))
            dev = (x[order[:cut]], y[order[:cut]])
            x, y = x[order[cut:]], y[order[cut:]]
        best, misses, epochs = -1.0, 0, 0
        while misses <= self.settings["tenacity"] and epochs <= 200:
            for _ in range(self.settings["epoch_size"]):
                order = np.random.permutation(len(x))
                for start in range(0, len(x), self.settings["batch_size"]):
                    rows = torch.from_numpy(order[start : start + self.settings["batch_size"]])
                    loss = torch.nn.functional.cross_entropy(self.model(x[rows]), y[rows])
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
            epochs += self.settings["epoch_size"]
            if (accuracy := self.score(*dev)) > best:
                best, kept = accuracy, copy.deepcopy(self.model)
            else:
                misses += 1
        self.model = kept
        return best

    @torch.no_grad()
    def score(self, x, y):
        return float((self.model(x).argmax(1) == y).double().mean())


def one_by_one(x, y, classes, folds, decay, settings):
    """The arguments and results of `_probe.fit`, one fit after the other."""
    weights, accuracy = [], []
    for fold, fold_decay in zip(folds, decay, strict=True):
        for value in fold_decay:
            one = OneByOne(x.shape[1], classes, value, settings)
            if fold.drawn:  # the split is part of the fit
                rows = np.sort(np.concatenate([fold.train, fold.dev]))
                accuracy.append(one.fit(x[rows], y[rows]))
            else:
                accuracy.append(one.fit(x[fold.train], y[fold.train], (x[fold.dev], y[fold.dev])))
            weights.append(torch.cat([one.model.weight, one.model.bias.unsqueeze(1)], 1).detach())
    shape = (len(folds), len(decay[0]))
    return torch.stack(weights).unflatten(0, shape), np.array(accuracy).reshape(shape)


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
    wanted, reached = one_by_one(x, y, 3, folds, decay, SETTINGS[setting])
    np.testing.assert_allclose(accuracy, reached, atol=1e-12)
    torch.testing.assert_close(weights, wanted, atol=1e-4, rtol=1e-3)


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


def test_declared_counts_are_those_of_the_test_files():
    counts = {task: transfer.COUNTS[task] for task in ("SST", "TREC", "MRPC")}
    assert transfer.DECLARATION["counts"] == {task: [*files.values()][-1] for task, files in counts.items()}


def test_published_counts_where_the_data_are_there():
    root = os.environ.get("CSEBENCH_DATA")
    if not root or not (Path(root) / "downstream/MR").exists():
        pytest.skip("CSEBENCH_DATA names no folder with SentEval's data")
    sizes = {task: sum(len(s.labels) for s in transfer.read(Path(root), task).values()) for task in transfer.COUNTS}
    assert sizes["MR"] == 10662 and sizes["SUBJ"] == 10000 and sizes["SST"] == 70042
