"""The step of every method and component relative to SimCSE's, on the same encoder and batch.

All methods have the same length, precision, threads and sentences (supervised ones have triplets). Steps of a method
and of SimCSE alternate; the ratio is that of the medians. Rows are the sentences that pass through the encoder: PCL
encodes twenty where SimCSE encodes two.

    python benchmarks/methods.py [NAME …] [--encoder E] [--batch 32] [--length 32] [--steps 7] [--threads 2]

With --save the seconds of a step (SimCSE's median of all, times the ratios) and the rate of an evaluation's embedding
go to data/step_times.yaml and replace the entry of this device and encoder; `csebench plan` forecasts from them. --as
names the encoder of config/ whose architecture the folder has.
"""

# ruff: noqa: E402
import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

os.environ["TQDM_DISABLE"] = "1"
sys.path[0] = str(Path(__file__).resolve().parents[1])  # else this file would shadow the package `methods`

import torch
import yaml
from tabulate import tabulate

from csebench import ROOT
from csebench.base.provenance import code_state, processor
from csebench.data.corpus import read_corpus
from csebench.data.sts import read_sts
from csebench.model.encoder import Encoder
from csebench.plan.forecast import device_name
from csebench.plan.registry import COMPONENTS, METHODS, declaration, fill, names
from csebench.plan.schema import EncoderRef, Evaluation
from csebench.score.models import open_model
from csebench.train.trainer import assemble, optimise

# Replace parts that only the hub has, and runs that would have to come first.
SETTINGS = {
    "rtd": {"generator": "self"},
    "msse": {"augmentation": "insert_copies"},
    "infocse": {"pretraining": "none"},
}


class Steps:
    """A method with its components, ready to make steps."""

    def __init__(self, name, args):
        host, *plugins = name.split("+")
        declared = declaration(host)
        common = {"batch_size": args.batch, "max_length": args.length, "steps": 10**6}
        params = fill(declared, common | SETTINGS.get(host, {}), name)
        torch.manual_seed(0)
        encoder = Encoder.load(
            EncoderRef(name=args.encoder, revision="local"), params["dropout"], params["pooler"] == "cls"
        )
        plugins = {**declared.components, **{plugin: {} for plugin in plugins}}
        plugins = {
            n: fill(declaration(n, COMPONENTS), SETTINGS.get(n, {}) | given, name) for n, given in plugins.items()
        }
        state, self.optimizer = assemble(host, encoder, params, plugins)
        self.method, self.components = state["method"], state["components"]
        folder = ROOT / "data/smoke"
        file = folder / ("nli/smoke.csv" if declared.corpus == "triplets" else "wiki/smoke.txt")
        self.batch = ([*read_corpus(file, kind=declared.corpus)] * args.batch)[: self.method.sentences_per_step()]
        self.precision, self.rows = args.precision, 0
        for one in self.method.encoders():
            one.register_forward_pre_hook(self.count)

    def count(self, _, inputs):
        self.rows += len(inputs[0]["input_ids"])

    def step(self):
        """Seconds of one step of the trainer."""
        self.rows, started = 0, time.perf_counter()
        optimise(self.method, self.components, self.optimizer, self.batch, self.precision)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [n for n in names(METHODS) if declaration(n).kind == "trained"]
    every += [f"simcse+{n}" for n in names(COMPONENTS)]
    parser.add_argument("names", nargs="*", metavar="NAME", help="simcse+ami, for example; all without it")
    parser.add_argument("--encoder", default="encoders/bert-mini-wiki", help="folder (of the project or anywhere)")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--as", dest="name", help="name of the encoder in config/")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    table, ratios, reference = [], {}, []
    for name in args.names or every:
        if torch.cuda.is_available():
            torch.compiler.reset()
        method, simcse = Steps(name, args), Steps("simcse", args)
        for steps in (method, simcse):  # warm up, and fill queues
            steps.step(), steps.step()
        pairs = [(method.step(), simcse.step()) for _ in range(args.steps)]
        seconds, simcse_seconds = (median(side) for side in zip(*pairs, strict=True))
        ratios[name] = seconds / simcse_seconds
        reference += [simcse_step for _, simcse_step in pairs]
        per_row = (seconds / method.rows) / (simcse_seconds / simcse.rows)
        table.append([name, method.rows, 1000 * seconds, ratios[name], per_row])
    print(f"{Path(args.encoder).name}, {args.batch} sentences, length {args.length}, {args.precision},", end=" ")
    print(f"{args.threads} threads, {args.steps} pairs of steps; SimCSE has {2 * args.batch} rows per step")
    head = ["method", "encoder rows", "ms per step", "x SimCSE", "x SimCSE per row"]
    print(tabulate(table, head, floatfmt=("", "", ".0f", ".2f", ".2f")))
    if args.save:
        save(args, {name: ratio * median(reference) for name, ratio in (ratios | {"simcse": 1.0}).items()})


def save(args, seconds):
    """An entry of data/step_times.yaml (csebench/plan/forecast.py: StepTimes)."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    entry = {
        "device": device_name(gpu, processor(), args.threads),
        "encoder": args.name or args.encoder,
        "batch_size": args.batch,
        "max_length": args.length,
        "precision": args.precision,
        "sentences_per_second": round(embedding_rate(args), 1),
        "source": f"benchmarks/methods.py, {time.strftime('%Y-%m-%d')}, commit {code_state()['commit'][:10]}",
        "seconds": {name: float(f"{value:.4g}") for name, value in seconds.items()},
    }
    path = ROOT / "data" / "step_times.yaml"
    head = "".join(line for line in path.read_text().splitlines(True) if line.startswith("#"))
    same = ("device", "encoder")
    kept = [e for e in yaml.safe_load(path.read_text()) if any(e[key] != entry[key] for key in same)]
    path.write_text(head + yaml.safe_dump([*kept, entry], sort_keys=False, width=115, allow_unicode=True))


def embedding_rate(args):
    """Sentences per second of an evaluation, on the sentences of STS-B test."""
    (pairs,) = read_sts(ROOT / "data/smoke", "STS-B")
    texts = [f"{s} {i}" for i in range(20) for s in (*pairs.left, *pairs.right)]
    model = open_model(args.encoder, "avg", Evaluation(precision=args.precision))
    model.embed(texts[:128])
    started = time.perf_counter()
    model.embed(texts)
    return len(texts) / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
