"""The step of every method and component relative to SimCSE's, on the same encoder and batch.

All methods have the same length, precision, threads and sentences (supervised ones have triplets).
Steps of a method and of SimCSE alternate; the ratio is that of the medians. Rows are the sentences
that pass through the encoder: PCL encodes twenty where SimCSE encodes two.

    python benchmarks/methods.py [NAME …] [--encoder E] [--batch 32] [--length 32] [--steps 7]
    [--threads 2]

With --save the seconds of a step (SimCSE's median of all, times the ratios) and the rate of an
evaluation's embedding go to data/step_times.yaml and replace the entry of this device and encoder;
`csebench plan` forecasts from them. --as names the encoders of config/ whose shape the folder has.
"""

import time
from pathlib import Path
from statistics import median

import torch
import yaml
from _shared import CUDA, ROOT, assemble, parser, timed
from tabulate import tabulate

from csebench.base.provenance import code_state, processor
from csebench.base.terminal import bar
from csebench.data.corpus import read_corpus
from csebench.data.sts import read_sts
from csebench.plan.catalog.files import scale
from csebench.plan.catalog.registry import COMPONENTS, METHODS, adapter_names, declaration
from csebench.score.models import open_model
from csebench.train.trainer import optimise


class Steps:
    """A method with its components, ready to make steps."""

    def __init__(self, name, args):
        given = {"batch_size": args.batch, "max_length": args.length, "steps": 10**6}
        modules, self.optimizer = assemble(name, args.encoder, given)
        self.method, self.components = modules["method"], modules["components"]
        corpus = declaration(name.split("+")[0]).corpus
        folder = ROOT / "data/smoke"
        file = folder / ("nli/smoke.csv" if corpus == "triplets" else "wiki/smoke.txt")
        self.batch = ([*read_corpus(file, kind=corpus)] * args.batch)[
            : self.method.sentences_per_step()
        ]
        self.precision, self.rows = args.precision, 0
        for one in self.method.encoders():
            one.register_forward_pre_hook(self.count)

    def count(self, _, inputs):
        self.rows += len(inputs[0]["input_ids"])

    def step(self):
        """Seconds of one step of the trainer."""
        self.rows = 0
        return timed(
            optimise, self.method, self.components, self.optimizer, self.batch, self.precision
        )


def main():
    options = parser(__doc__, "a step of 8 sentences of three methods, nothing is saved", "bf16")
    every = [n for n in adapter_names(METHODS) if declaration(n).is_trained]
    every += [f"simcse+{n}" for n in adapter_names(COMPONENTS)]
    options.add_argument(
        "names", nargs="*", metavar="NAME", help="simcse+ami, for example; all without it"
    )
    options.add_argument(
        "--encoder", default="encoders/bert-mini-wiki", help="folder (of the project or anywhere)"
    )
    options.add_argument("--batch", type=int, default=32)
    options.add_argument("--length", type=int, default=32)
    options.add_argument("--steps", type=int, default=7)
    options.add_argument("--save", action="store_true")
    options.add_argument(
        "--as", dest="encoders", nargs="+", help="encoders of config/ that have its shape"
    )
    args = options.parse_args()
    if args.quick:
        args.names, args.batch, args.steps, args.threads = (
            ["msse", "simcse_sup", "simcse+ami"],
            8,
            1,
            1,
        )
    torch.set_num_threads(args.threads)
    table, ratios, reference = [], {}, []
    for name in bar(args.names or every, "measuring", "method"):
        if CUDA:
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
    print(
        f"{Path(args.encoder).name}, {args.batch} sentences, length {args.length},"
        f" {args.precision},",
        end=" ",
    )
    print(
        f"{args.threads} threads, {args.steps} pairs of steps; SimCSE has {2 * args.batch} rows per"
        " step"
    )
    head = ["method", "encoder rows", "ms per step", "x SimCSE", "x SimCSE per row"]
    print(tabulate(table, head, floatfmt=("", "", ".0f", ".2f", ".2f")))
    entry = step_times(
        args,
        {name: ratio * median(reference) for name, ratio in (ratios | {"simcse": 1.0}).items()},
    )
    if args.quick:
        print(yaml.safe_dump(entry, sort_keys=False))
    elif args.save:
        save(entry)


def step_times(args, seconds):
    """An entry of data/step_times.yaml (csebench/plan/forecast.py: StepTimes)."""
    gpu = torch.cuda.get_device_name() if CUDA else None
    return {
        "device": gpu or f"{processor()}, {args.threads} threads",
        "encoders": args.encoders or [args.encoder],
        "batch_size": args.batch,
        "max_length": args.length,
        "precision": args.precision,
        "sentences_per_second": round(embedding_rate(args), 1),
        "source": (
            f"benchmarks/methods.py, {time.strftime('%Y-%m-%d')}, commit"
            f" {code_state()['commit'][:10]}"
        ),
        "seconds": {name: float(f"{value:.4g}") for name, value in seconds.items()},
    }


def save(entry):
    path = ROOT / "data" / "step_times.yaml"
    head = "".join(line for line in path.read_text().splitlines(True) if line.startswith("#"))
    same = ("device", "encoders")
    kept = [
        e for e in yaml.safe_load(path.read_text()) if any(e[key] != entry[key] for key in same)
    ]
    path.write_text(
        head + yaml.safe_dump([*kept, entry], sort_keys=False, width=115, allow_unicode=True)
    )


def embedding_rate(args):
    """Sentences per second of an evaluation as a scale of this device runs it, on the sentences
    of STS-B test."""
    (pairs,) = read_sts(ROOT / "data/smoke", "STS-B")
    texts = [
        f"{s} {i}" for i in range(4 if args.quick else 20) for s in (*pairs.left, *pairs.right)
    ]
    model = open_model(args.encoder, "avg", scale("paper" if CUDA else "mini").evaluation)
    model.embed(texts[:128])  # which it remembers
    return len(texts[128:]) / timed(model.embed, texts[128:])


if __name__ == "__main__":
    main()
