"""The step of every method and component relative to SimCSE's, on the same encoder and batch.

All methods have the same length, precision, threads and sentences (supervised ones have triplets).
Steps of a method and of SimCSE alternate, and the ratio is that of the medians. Rows are the
sentences that pass through the encoder: PCL encodes twenty if SimCSE encodes two.

    python benchmarks/methods.py [NAME …] [--encoder E] [--batch 32] [--length 32] [--steps 7]
    [--threads 2]

With --save, the seconds of a step (the median of all steps of SimCSE, times the ratio) and the rate
of an evaluation's embedding go to data/step_times.yaml. They replace the entry of this device and
encoder. `csebench plan` forecasts from them. --as names the encoders of config/ whose shape the
folder has.
"""

import time
from itertools import cycle, islice
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
        self.method = modules["method"]
        self.components = modules["components"]
        self.precision = args.precision
        self.batch = self.sentences(declaration(name.split("+")[0]).corpus)
        self.rows = 0
        for encoder in self.method.encoders():
            encoder.register_forward_pre_hook(self.count)

    def sentences(self, kind):
        """Take sentences or triplets for a step. A corpus that is too small is repeated."""
        file = "nli/smoke.csv" if kind == "triplets" else "wiki/smoke.txt"
        corpus = read_corpus(ROOT / "data/smoke" / file, kind=kind).sentences
        return list(islice(cycle(corpus), self.method.sentences_per_step()))

    def count(self, _, inputs):
        self.rows += len(inputs[0]["input_ids"])

    def step(self):
        """Measure the seconds of one step of the trainer."""
        self.rows = 0
        return timed(
            optimise, self.method, self.components, self.optimizer, self.batch, self.precision
        )


def main():
    options = parser(
        __doc__, "a step of 8 sentences of three methods in fp32, nothing is saved", "bf16"
    )
    names = [name for name in adapter_names(METHODS) if declaration(name).is_trained]
    names += [f"simcse+{component}" for component in adapter_names(COMPONENTS)]
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
        args.names = ["msse", "simcse_sup", "simcse+ami"]
        args.batch = 8
        args.steps = 1
        args.threads = 1
        args.precision = "fp32"  # many CPUs have no bf16, and take a minute for a step
    torch.set_num_threads(args.threads)
    seconds = print_ratios(args, args.names or names)
    entry = step_times(args, seconds)
    if args.quick:
        print(yaml.safe_dump(entry, sort_keys=False))
    elif args.save:
        save(entry)


def print_ratios(args, names):
    """Measure methods against SimCSE, and print the table.

    Returns:
        The seconds of a step, by method: the median of all steps of SimCSE, times the ratio.
    """
    table = []
    ratios = {}
    all_simcse_seconds = []
    for name in bar(names, "measuring", "method"):
        if CUDA:
            torch.compiler.reset()
        method = Steps(name, args)
        simcse = Steps("simcse", args)
        for steps in (method, simcse):  # warm up, and fill queues
            steps.step()
            steps.step()
        pairs = [(method.step(), simcse.step()) for _ in range(args.steps)]
        method_seconds = median(seconds for seconds, _ in pairs)
        simcse_seconds = median(seconds for _, seconds in pairs)
        ratios[name] = method_seconds / simcse_seconds
        all_simcse_seconds += [seconds for _, seconds in pairs]
        per_row = (method_seconds / method.rows) / (simcse_seconds / simcse.rows)
        table.append([name, method.rows, 1000 * method_seconds, ratios[name], per_row])
    print(
        f"{Path(args.encoder).name}, {args.batch} sentences, length {args.length},"
        f" {args.precision}, {args.threads} threads, {args.steps} pairs of steps; SimCSE has"
        f" {2 * args.batch} rows per step"
    )
    head = ["method", "encoder rows", "ms per step", "x SimCSE", "x SimCSE per row"]
    print(tabulate(table, head, floatfmt=("", "", ".0f", ".2f", ".2f")))
    ratios["simcse"] = 1.0
    return {name: ratio * median(all_simcse_seconds) for name, ratio in ratios.items()}


def step_times(args, seconds):
    """Make an entry of data/step_times.yaml (csebench/plan/forecast.py: StepTimes)."""
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
    """Replace the entry of the same device and encoders, and keep the comments at the top."""
    path = ROOT / "data" / "step_times.yaml"
    text = path.read_text()
    head = "".join(line for line in text.splitlines(True) if line.startswith("#"))
    entries = []
    for other in yaml.safe_load(text):
        is_same = other["device"] == entry["device"] and other["encoders"] == entry["encoders"]
        if not is_same:
            entries.append(other)
    entries.append(entry)
    path.write_text(head + yaml.safe_dump(entries, sort_keys=False, width=115, allow_unicode=True))


def embedding_rate(args):
    """Measure the sentences per second of an evaluation, as a scale of this device runs it.

    The sentences are those of STS-B test.
    """
    (pairs,) = read_sts(ROOT / "data/smoke", "STS-B")
    copies = 4 if args.quick else 20
    texts = []
    for number in range(copies):
        texts += [f"{sentence} {number}" for sentence in (*pairs.left, *pairs.right)]
    model = open_model(args.encoder, "avg", scale("paper" if CUDA else "mini").evaluation)
    first, rest = texts[:128], texts[128:]
    model.embed(first)  # warms up; the model remembers these vectors
    return len(rest) / timed(model.embed, rest)


if __name__ == "__main__":
    main()
