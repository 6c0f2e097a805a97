"""Memory and time of a training step in chunks against the plain step: `csebench train --chunk-size`.

Each side is a process of its own, with an encoder of BERT's architecture and random weights and a method with its
components; sides alternate. Printed, with the ratio to the plain step of the same run:
  kept      what autograd keeps of the forward pass of a batch until the backward pass, GB
  peak      memory of the process (on a GPU: of the device) at its highest, GB; weights, gradients and moments included
  step      seconds of a step after the first

The last line gives what a batch of --target sentences needs in chunks of each size: 16 bytes per weight (weight,
gradient, two moments), what autograd keeps of one chunk, measured per row, and of the whole batch in chunks.

    python benchmarks/memory.py [--shape base] [--method simcse] [--batch-size 32] [--chunk-sizes 8 32] [--quick]
"""

# ruff: noqa: E402
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # else benchmarks/methods.py would shadow the package `methods`

import torch
from tabulate import tabulate

from csebench.data.corpus import read_corpus
from csebench.model.encoder import Encoder
from csebench.plan.registry import COMPONENTS, declaration, fill
from csebench.plan.schema import EncoderRef
from csebench.train import trainer

LENGTH = 32  # tokens of every row, as the papers cut them
STEPS = 3
SUBSTITUTES = {"rtd": {"generator": "self"}}  # DistilBERT has to be fetched


def measure(args) -> dict:
    """One side, in this process."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    method = declaration(args.method)
    params = fill(method, {"batch_size": args.batch_size, "max_length": LENGTH}, "benchmark")
    plugins = {
        name: fill(declaration(name, COMPONENTS), {**given, **SUBSTITUTES.get(name, {})}, name)
        for name, given in method.components.items()
    }
    encoder = Encoder.load(EncoderRef(name=args.encoder, revision="local"), params["dropout"])
    modules, optimizer = trainer.assemble(args.method, encoder, params, plugins, args.chunk_sizes[0] or None)
    long = [f"{s} " * 8 for s in read_corpus(ROOT / "data/smoke/wiki/smoke.txt")]  # no row is padded
    batch = (long * args.batch_size)[: modules["method"].sentences_per_step()]
    kept, rows = kept_bytes(modules["method"], batch, args.precision)
    seconds = []
    for _ in range(STEPS):
        started = time.perf_counter()
        trainer.optimise(modules["method"], modules["components"], optimizer, batch, args.precision)
        if encoder.device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if encoder.device.type == "cuda":
        peak = torch.cuda.max_memory_allocated()
    trained = sum(p.numel() for p in modules.parameters() if p.requires_grad)
    return {"kept": kept, "rows": rows, "peak": peak, "step": median(seconds[1:]), "trained": trained}


def kept_bytes(method, batch: list, precision: str) -> tuple[int, int]:
    """(bytes that autograd keeps of the views of a batch, without weights; rows that were encoded)."""
    weights = {p.untyped_storage().data_ptr() for p in method.parameters()}
    storages = {}

    def count(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    autocast = torch.autocast(method.encoder.device.type, torch.bfloat16, enabled=precision == "bf16")
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor), autocast:
        views = method.views(batch)
    return sum(storages.values()), sum(len(view.ids) for view in views)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=["base", "large"], default="base")
    parser.add_argument("--method", default="simcse", help="with its components (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, help="sentences (default: %(default)s)")
    parser.add_argument("--chunk-sizes", type=int, nargs="+", default=[8, 32], help="rows (default: 8 32)")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="fp32", help="(default: %(default)s)")
    parser.add_argument("--target", type=int, default=512, help="sentences of the prediction (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2, help="processes per side (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two small layers, 1 process: proves that it works")
    parser.add_argument("--encoder", help=argparse.SUPPRESS)  # of one side, which prints its values as JSON
    args = parser.parse_args()
    if args.encoder is not None:
        return print(json.dumps(measure(args)))
    from benchmarks.gpu import random_encoder  # with what its comparisons import, which a side does not need

    shape, repeats = ("quick", 1) if args.quick else (args.shape, args.repeats)
    sides = {size: [] for size in (0, *args.chunk_sizes)}
    options = ["--method", args.method, "--batch-size", args.batch_size, "--precision", args.precision]
    with tempfile.TemporaryDirectory() as folder:
        encoder = random_encoder(shape, Path(folder))
        for _ in range(repeats):
            for size, measured in sides.items():
                command = [sys.executable, __file__, *options, "--threads", args.threads, "--encoder", encoder]
                command = [*map(str, command), "--chunk-sizes", str(size)]
                done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
                measured.append(json.loads(done.stdout.splitlines()[-1]))
    best = {size: {k: min(m[k] for m in measured) for k in measured[0]} for size, measured in sides.items()}
    plain, rows = best[0], []
    for size, side in best.items():
        ratios = [side[key] / plain[key] for key in ("kept", "peak", "step")]
        rows.append([size or "plain", side["kept"] / 1e9, ratios[0], side["peak"] / 1e9, ratios[1], side["step"]])
        rows[-1].append(ratios[2])
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {args.threads} threads"
    print(f"{args.method}, BERT {shape}, {plain['rows']} rows of {LENGTH} tokens, {args.precision}, {gpu}")
    print(f"{plain['trained'] / 1e6:.0f} million trained weights\n")
    head = ["chunk", "kept", "ratio", "peak", "ratio", "step", "ratio"]
    print(tabulate(rows, head, floatfmt=("", ".3f", ".2f", ".2f", ".2f", ".2f", ".2f")))
    state, factor = 16 * plain["trained"], args.target / args.batch_size
    parts = [f"{size}: {(state + plain['kept'] * min(1, size / plain['rows']) + side['kept'] * factor) / 1e9:.1f}"
             for size, side in best.items() if size]  # fmt: skip
    whole = (state + plain["kept"] * factor) / 1e9
    print(f"\nbatch of {args.target}, predicted: plain {whole:.1f} GB; in chunks of {', '.join(parts)} GB")
    return None


if __name__ == "__main__":
    main()
