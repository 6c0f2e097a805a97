"""Transfer tasks: all folds and regularisers at once against one fit after the other, as SentEval trains them.

    python benchmarks/transfer.py --data DATA_ROOT --tasks CR,TREC,MRPC [--variant fasttest] [--dimensions 768]

Both sides see the same vectors and the same protocol; the embedding is not timed. `one_by_one` is a plain loop over
fits with torch's modules; it replaces SentEval's classifier, which no longer runs. The accuracies of
both sides are printed.
"""

import argparse
import copy
import sys
import time
from pathlib import Path

import numpy as np
import torch
from tabulate import tabulate

from csebench.plan.registry import protocol
from csebench.score.models import open_model
from evaluators import transfer
from evaluators._probe import OPTIMIZERS, SEED, fit


class OneByOne:
    """One logistic regression: reseeds, splits, trains, stops and keeps its best weights."""

    def __init__(self, size, classes, decay, settings):
        np.random.seed(SEED)
        torch.manual_seed(SEED)
        self.settings = settings
        self.model = torch.nn.Linear(size, classes)
        self.optimizer = OPTIMIZERS[settings["optimizer"]](self.model.parameters(), weight_decay=decay)

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
    """The same arguments and results as evaluators/_probe.py: fit."""
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


def solve(task, features, labels, settings, fit):
    """(seconds, accuracy in validation, accuracy in test) with a function that fits."""
    started = time.perf_counter()
    dev, accuracy, _ = transfer.SOLVERS[task](features, labels, settings, fit)
    return time.perf_counter() - started, 100 * dev, 100 * accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="encoders/bert-mini-wiki")
    parser.add_argument("--pooler", default="avg_first_last_2021")
    parser.add_argument("--data", type=Path, default=Path("data/smoke"))
    parser.add_argument("--tasks", default="CR,TREC,MRPC")
    parser.add_argument("--variant", choices=["test", "fasttest"], default="test")
    parser.add_argument("--dimensions", type=int, help="project the vectors to so many, as a larger encoder has")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = open_model(args.encoder, args.pooler)
    settings = protocol("transfer" if args.variant == "test" else "transfer:fasttest").params
    rows, total = [], np.zeros(2)
    for task in args.tasks.split(","):
        splits = transfer.read(args.data, task)
        labels = {name: items.labels for name, items in splits.items()}
        features = {name: transfer.embed(model, task, name, items) for name, items in splits.items()}
        if args.dimensions:
            size = next(iter(features.values())).shape[1]
            wanted = args.dimensions * (2 if task == "MRPC" else 1)
            matrix = np.random.default_rng(0).standard_normal((size, wanted)).astype(np.float32) / np.sqrt(size)
            features = {name: f @ matrix for name, f in features.items()}
        at_once = solve(task, features, labels, settings, fit)
        loop = solve(task, features, labels, settings, one_by_one)
        total += (at_once[0], loop[0])
        rows.append([task, at_once[0], loop[0], loop[0] / at_once[0], at_once[2], loop[2], at_once[1], loop[1]])
        print(f"{task}: {loop[0] / at_once[0]:.1f}x", file=sys.stderr, flush=True)
    size = args.dimensions or model.encoder.size
    print(f"{args.encoder}, {size} dimensions, {args.variant}, {args.threads} threads, {args.data}\n")
    head = ["task", "s at once", "s one by one", "ratio", "acc.", "acc. one by one", "dev", "dev one by one"]
    print(tabulate(rows, head, floatfmt=("", ".1f", ".1f", ".1f", ".2f", ".2f", ".2f", ".2f")))
    print(f"\nratio over all tasks: {total[1] / total[0]:.1f}x")


if __name__ == "__main__":
    main()
