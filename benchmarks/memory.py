"""Memory and time of a training step in chunks, compared with the plain step.

Chunks are those of `csebench train --chunk-size`. A side is the plain step, or a chunk size. Each
side runs in a process of its own, with a method, its components, and an encoder of BERT's
architecture with random weights. Sides alternate. Printed, with the ratio to the plain step of the
same run:

- kept: bytes that autograd keeps of the forward pass of a batch until the backward pass, GB
- peak: highest memory of the process (on a GPU: of the device), weights, gradients and moments
  included, GB
- step: seconds of a step after the first

The last line predicts the memory of a batch of --target sentences, plain and in chunks of each
size. It is the sum of 16 bytes per weight (weight, gradient, two moments), the bytes that autograd
keeps of one chunk, measured per row, and the bytes that it keeps of the whole batch in chunks.

    python benchmarks/memory.py [--shape base] [--method simcse] [--batch-size 32] [--chunk-sizes 8
    32] [--quick]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from itertools import cycle, islice
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
    """Measure one side in this process: the plain step, or a chunk size."""
    torch.set_num_threads(args.threads)
    given = {"batch_size": args.batch_size, "max_length": LENGTH}
    modules, optimizer = assemble(args.method, args.encoder, given, args.chunk_sizes[0] or None)
    method = modules["method"]
    components = modules["components"]
    # sentences are so long that no row is padded
    corpus = read_corpus(ROOT / "data/smoke/wiki/smoke.txt")
    long = [f"{sentence} " * 8 for sentence in corpus.sentences]
    batch = list(islice(cycle(long), method.sentences_per_step()))
    kept, rows = kept_bytes(method, batch, args.precision)
    seconds = []
    for _ in range(STEPS):
        step = timed(trainer.optimise, method, components, optimizer, batch, args.precision)
        seconds.append(step)
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
    """Count the bytes that autograd keeps of the views of a batch, without weights.

    Returns:
        The bytes, and the rows that were encoded.
    """
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
    options = parser(__doc__, "two small layers, one process per side, chunks of 4 rows", "fp32")
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
    # set if this process measures one side, and prints its values as JSON
    options.add_argument("--encoder", help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.encoder is not None:
        print(json.dumps(measure(args)))
        return
    if args.quick:
        args.shape = "quick"
        args.chunk_sizes = [4]
        args.batch_size = 8
        args.repeats = 1
        args.threads = 1
    print_results(args, measure_in_processes(args))


def measure_in_processes(args) -> dict[int, dict]:
    """Measure every side in processes of its own.

    Returns:
        The lowest values of each side, by its chunk size; 0 for the plain step.
    """
    chunk_sizes = [0, *args.chunk_sizes]
    sides: dict[int, list[dict]] = {size: [] for size in chunk_sizes}
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "--method": args.method,
            "--batch-size": args.batch_size,
            "--precision": args.precision,
            "--threads": args.threads,
            "--encoder": random_encoder(args.shape, Path(folder)),
        }
        command = [sys.executable, __file__]
        for option, value in options.items():
            command += [option, str(value)]
        for size in bar(chunk_sizes * args.repeats, "measuring", "process"):
            side_command = [*command, "--chunk-sizes", str(size)]
            done = subprocess.run(side_command, stdout=subprocess.PIPE, text=True, check=True)
            sides[size].append(json.loads(done.stdout.splitlines()[-1]))
    lowest = {}
    for size, repeats in sides.items():
        lowest[size] = {key: min(values[key] for values in repeats) for key in repeats[0]}
    return lowest


def print_results(args, sides: dict[int, dict]) -> None:
    """Print the table, and the memory that a larger batch needs.

    Args:
        sides: as `measure_in_processes` returns them.
    """
    plain = sides[0]
    rows = []
    for size, side in sides.items():
        row = [size or "plain"]
        for key, unit in UNITS.items():
            row += [side[key] / unit, side[key] / plain[key]]
        rows.append(row)
    device = torch.cuda.get_device_name() if CUDA else f"CPU, {args.threads} threads"
    print(
        f"{args.method}, BERT {args.shape}, {plain['rows']} rows of {LENGTH} tokens,"
        f" {args.precision}, {device}"
    )
    print(f"{plain['trained'] / 1e6:.0f} million trained weights\n")
    head = ["chunk", "kept", "ratio", "peak", "ratio", "step", "ratio"]
    print(tabulate(rows, head, floatfmt=("", ".3f", ".2f", ".2f", ".2f", ".2f", ".2f")))

    state = 16 * plain["trained"]  # bytes of weights, gradients and two moments
    factor = args.target / args.batch_size
    whole = (state + plain["kept"] * factor) / 1e9
    parts = []
    for size in args.chunk_sizes:
        kept_of_chunk = plain["kept"] * min(1, size / plain["rows"])
        total = (state + kept_of_chunk + sides[size]["kept"] * factor) / 1e9
        parts.append(f"{size}: {total:.1f}")
    print(
        f"\nbatch of {args.target}, predicted: plain {whole:.1f} GB; in chunks of"
        f" {', '.join(parts)} GB"
    )


if __name__ == "__main__":
    main()
