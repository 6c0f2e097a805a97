"""Memory and time of a training step in chunks against the plain step: `csebench train
--chunk-size`.

Each side is a process of its own, with an encoder of BERT's architecture and random weights and a
method with its components; sides alternate. Printed, with the ratio to the plain step of the same
run: kept      what autograd keeps of the forward pass of a batch until the backward pass, GB peak
memory of the process (on a GPU: of the device) at its highest, GB; weights, gradients and moments
included step      seconds of a step after the first

The last line gives what a batch of --target sentences needs in chunks of each size: 16 bytes per
weight (weight, gradient, two moments), what autograd keeps of one chunk, measured per row, and of
the whole batch in chunks.

    python benchmarks/memory.py [--shape base] [--method simcse] [--batch-size 32] [--chunk-sizes 8
    32] [--quick]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import torch
from _shared import CUDA, ROOT, assemble, parser, random_encoder, timed
from tabulate import tabulate

from csebench.base.terminal import bar
from csebench.data.corpus import read_corpus
from csebench.train import trainer

LENGTH = 32  # tokens of every row, as the papers cut them
STEPS = 3
UNITS = {"kept": 1e9, "peak": 1e9, "step": 1}


def measure(args) -> dict:
    """One side, in this process."""
    torch.set_num_threads(args.threads)
    given = {"batch_size": args.batch_size, "max_length": LENGTH}
    modules, optimizer = assemble(args.method, args.encoder, given, args.chunk_sizes[0] or None)
    # no row is padded
    long = [f"{s} " * 8 for s in read_corpus(ROOT / "data/smoke/wiki/smoke.txt")]
    batch = (long * args.batch_size)[: modules["method"].sentences_per_step()]
    kept, rows = kept_bytes(modules["method"], batch, args.precision)
    step = (
        trainer.optimise,
        modules["method"],
        modules["components"],
        optimizer,
        batch,
        args.precision,
    )
    seconds = [timed(*step) for _ in range(STEPS)]
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = torch.cuda.max_memory_allocated() if CUDA else host
    trained = sum(p.numel() for p in modules.parameters() if p.requires_grad)
    return {
        "kept": kept,
        "rows": rows,
        "peak": peak,
        "step": median(seconds[1:]),
        "trained": trained,
    }


def kept_bytes(method, batch: list, precision: str) -> tuple[int, int]:
    """(bytes that autograd keeps of the views of a batch, without weights; rows that were
    encoded)."""
    weights = {p.untyped_storage().data_ptr() for p in method.parameters()}
    storages = {}

    def count(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    autocast = torch.autocast(
        method.encoder.device.type, torch.bfloat16, enabled=precision == "bf16"
    )
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor), autocast:
        views = method.views(batch)
    return sum(storages.values()), sum(len(view.ids) for view in views)


def main():
    options = parser(__doc__, "two small layers, one process per side, chunks of 8 rows", "fp32")
    options.add_argument("--shape", choices=["base", "large"], default="base")
    options.add_argument(
        "--method", default="simcse", help="with its components (default: %(default)s)"
    )
    options.add_argument(
        "--batch-size", type=int, default=32, help="sentences (default: %(default)s)"
    )
    options.add_argument(
        "--chunk-sizes", type=int, nargs="+", default=[8, 32], help="rows (default: 8 32)"
    )
    options.add_argument(
        "--target", type=int, default=512, help="sentences of the prediction (default: %(default)s)"
    )
    options.add_argument(
        "--repeats", type=int, default=2, help="processes per side (default: %(default)s)"
    )
    # of one side, which prints its values as JSON
    options.add_argument("--encoder", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.encoder is not None:
        print(json.dumps(measure(args)))
        return
    if args.quick:
        args.shape, args.chunk_sizes, args.repeats, args.threads = "quick", [8], 1, 1
    sides = {size: [] for size in (0, *args.chunk_sizes)}
    given = [
        "--method",
        args.method,
        "--batch-size",
        args.batch_size,
        "--precision",
        args.precision,
    ]
    with tempfile.TemporaryDirectory() as folder:
        given += [
            "--threads",
            args.threads,
            "--encoder",
            random_encoder(args.shape, Path(folder)),
            "--chunk-sizes",
        ]
        for size in bar([*sides] * args.repeats, "measuring", "process"):
            command = [sys.executable, __file__, *map(str, given), str(size)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            sides[size].append(json.loads(done.stdout.splitlines()[-1]))
    best = {
        size: {k: min(m[k] for m in measured) for k in measured[0]}
        for size, measured in sides.items()
    }
    plain, rows = best[0], []
    for size, side in best.items():
        values = [(side[key] / unit, side[key] / plain[key]) for key, unit in UNITS.items()]
        rows.append([size or "plain", *(number for pair in values for number in pair)])
    gpu = torch.cuda.get_device_name() if CUDA else f"CPU, {args.threads} threads"
    print(
        f"{args.method}, BERT {args.shape}, {plain['rows']} rows of {LENGTH} tokens,"
        f" {args.precision}, {gpu}"
    )
    print(f"{plain['trained'] / 1e6:.0f} million trained weights\n")
    head = ["chunk", "kept", "ratio", "peak", "ratio", "step", "ratio"]
    print(tabulate(rows, head, floatfmt=("", ".3f", ".2f", ".2f", ".2f", ".2f", ".2f")))
    state, factor = 16 * plain["trained"], args.target / args.batch_size
    parts = [
        f"{size}:"
        f" {(state + plain['kept'] * min(1, size / plain['rows']) + best[size]['kept'] * factor) / 1e9:.1f}"  # noqa: E501
        for size in args.chunk_sizes
    ]
    whole = (state + plain["kept"] * factor) / 1e9
    print(
        f"\nbatch of {args.target}, predicted: plain {whole:.1f} GB; in chunks of"
        f" {', '.join(parts)} GB"
    )


if __name__ == "__main__":
    main()
