"""The papers' runs on a GPU: step time, fraction of the GPU's matmul rate, predicted wall time, and
the speed of sentence-transformers' trainer for comparison.

Encoders have the architecture of BERT base and large with random weights. A method has its paper's
settings; a step is a step of the trainer with batch assembly, on the plain path and as the trainer
does it on a GPU (layers compiled). The prediction adds the first steps, which compile, the paper's
steps, and the paper's evaluations of 1,500 pairs. Operations are counted by PyTorch's counter in
one plain step, and divided by the rate of a large bf16 matmul. Goals on one H100: SimCSE's run on
BERT base under 4 minutes, three times sentence-transformers' sentences per second.

    python benchmarks/gpu.py [--encoders base large] [--save]

The output goes to benchmarks/results/ with date and GPU. --save also measures the step of every
method for data/step_times.yaml (benchmarks/methods.py), from which `csebench plan` forecasts.
Without a GPU nothing is measured, and the exit code is 2; --quick runs everything on any machine
with an encoder of two layers, and writes nothing.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import datasets
import numpy as np
import torch
from _shared import CUDA, ROOT, assemble, distinct_sentences, parser, random_encoder, timed, wait
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Dense, Pooling
from tabulate import tabulate
from torch.utils.flop_counter import FlopCounterMode
from transformers import PrinterCallback, TrainerCallback

from csebench.base.terminal import bar
from csebench.data.corpus import read_corpus
from csebench.data.sts import Pairs
from csebench.train import trainer

HUB = {  # encoders of each shape, as in config/paper.yaml
    "base": ["google-bert/bert-base-uncased", "FacebookAI/roberta-base"],
    "large": ["google-bert/bert-large-uncased", "FacebookAI/roberta-large"],
}
METHODS = ("simcse", "micse", "infocse", "msse")
datasets.disable_progress_bars()


def matmul_rate() -> float:
    """bf16 operations per second of a large product."""
    size = 8192 if CUDA else 512
    a = torch.randn(size, size, dtype=torch.bfloat16, device="cuda" if CUDA else "cpu")
    timed(torch.matmul, a, a)
    return 2 * size**3 / min(timed(torch.matmul, a, a) for _ in range(10))


class PaperRun:
    """A method at its paper's settings, ready to make steps."""

    def __init__(self, name, folder, corpus, args):
        modules, self.optimizer = assemble(name, folder, {"batch_size": 8} if args.quick else {})
        self.method, self.components, self.p = (
            modules["method"],
            modules["components"],
            modules["method"].p,
        )
        self.corpus, self.completed = corpus, 0

    def steps(self, count):
        for _ in range(count):
            batch = trainer.batch_at(
                self.completed, self.corpus, self.method.sentences_per_step(), 0
            )
            trainer.optimise(self.method, self.components, self.optimizer, batch, "bf16")
            self.completed += 1

    def measure(self, args):
        """Seconds of the first steps, of a step of each path, of an evaluation; operations of a
        step."""
        first = timed(self.steps, args.warm)
        compiled = timed(self.steps, args.steps) / args.steps
        with torch.compiler.set_stance("force_eager"):
            self.steps(2)
            plain = timed(self.steps, args.steps) / args.steps
            with FlopCounterMode(display=False) as counter:
                self.steps(1)
        left, right = self.corpus[: args.pairs], self.corpus[args.pairs : 2 * args.pairs]
        dev = Pairs("dev", left, right, np.random.default_rng(0).random(args.pairs) * 5)
        evaluations = [
            timed(trainer.dev_point, self.method.encoder, self.p.pooler, dev, "bf16")
            for _ in range(3)
        ]
        return first, plain, compiled, median(evaluations), counter.get_total_flops()


class Clock(TrainerCallback):
    """Seconds from before the first batch to after the last step."""

    started = None

    def on_epoch_begin(self, *_, **__):
        wait()
        self.started = self.started or time.perf_counter()

    def on_epoch_end(self, *_, **__):
        wait()
        self.seconds = time.perf_counter() - self.started


def peer_seconds(encoder, p, sentences, steps, folder):
    """Seconds per step of sentence-transformers' own SimCSE recipe, with the settings of a run:
    its trainer, collator, sampler, optimiser and attention, on (s, s) pairs."""
    kwargs = {"dtype": torch.float32}
    dropout = {"hidden_dropout_prob": p.dropout, "attention_probs_dropout_prob": p.dropout}
    word = SentenceTransformer(
        str(encoder), trust_remote_code=False, model_kwargs=kwargs, config_kwargs=dropout
    )[0]
    word.max_seq_length = p.max_length
    size = word.get_embedding_dimension()
    model = SentenceTransformer(
        modules=[word, Pooling(size, pooling_mode="cls"), Dense(size, size)]
    )
    settings = SentenceTransformerTrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=p.batch_size,
        learning_rate=p.learning_rate,
        bf16=True,
        use_cpu=not CUDA,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    pairs = datasets.Dataset.from_dict({"anchor": sentences, "positive": sentences})
    loss, clock = MultipleNegativesRankingLoss(model), Clock()
    peer = SentenceTransformerTrainer(
        model, settings, train_dataset=pairs, loss=loss, callbacks=[clock]
    )
    peer.remove_callback(PrinterCallback)
    peer.train()
    return clock.seconds / steps


def report(args, gpu) -> str:
    corpus = distinct_sentences(
        read_corpus(ROOT / "data/smoke/wiki/smoke.txt"), 400 if args.quick else 20_000
    )
    rate, rows, ratio = matmul_rate(), [], {}
    runs = [(shape, name) for shape in args.encoders for name in METHODS]
    with tempfile.TemporaryDirectory() as scratch:
        folders = {shape: random_encoder(shape, Path(scratch) / shape) for shape in args.encoders}
        for shape, name in bar(runs, "measuring", "run"):
            run = PaperRun(name, folders[shape], corpus, args)
            first, plain, step, dev, operations = run.measure(args)
            size, p = run.method.sentences_per_step(), run.p
            whole = first + p.steps * step + p.steps // p.evaluate_every * dev
            speeds = [1000 * plain, 1000 * step, size / step, operations / step / rate]
            rows.append([f"{shape} {name}", size, *speeds, first, dev, f"{p.steps:,}", whole / 60])
            if name == "simcse":
                peer_seconds(folders[shape], p, corpus, 3, scratch)
                ratio[shape] = peer_seconds(folders[shape], p, corpus, args.steps, scratch) / step
        for shape in args.encoders if args.save else ():
            script = [
                sys.executable,
                ROOT / "benchmarks/methods.py",
                "--batch",
                "64",
                "--length",
                "32",
                "--save",
            ]
            subprocess.run([*script, "--encoder", folders[shape], "--as", *HUB[shape]], check=True)
    head = [
        "run",
        "batch",
        "plain, ms per step",
        "ms per step",
        "sentences/s",
        "of matmul rate",
        "first steps, s",
    ]
    head += ["evaluation, s", "steps", "whole run, min"]
    digits = ("", "", ".1f", ".1f", ".0f", ".0%", ".1f", ".2f", "", ".1f")
    lines = [
        f"{gpu}, bf16 matmul {rate / 1e12:.0f} TFLOP/s; torch {torch.__version__}; {args.steps}"
        " steps per path"
    ]
    lines += ["", tabulate(rows, head, floatfmt=digits), ""]
    lines += [
        f"{s}: {x:.2f}x the sentences per second of sentence-transformers' trainer"
        for s, x in ratio.items()
    ]
    return "\n".join(lines)


def main():
    options = parser(__doc__, "on any machine, 2 steps of two small layers")
    options.add_argument(
        "--encoders", nargs="+", choices=["base", "large"], default=["base", "large"]
    )
    options.add_argument("--steps", type=int, default=100, help="timed, of each path")
    options.add_argument(
        "--save", action="store_true", help="step times of all methods to data/step_times.yaml"
    )
    args = options.parse_args()
    # steps in which the compiler meets every padded length; pairs of an evaluation
    args.warm, args.pairs = 12, 1500
    gpu = torch.cuda.get_device_name() if CUDA else None
    if args.quick:
        args.encoders, args.steps, args.save, args.warm, args.pairs = ["quick"], 2, False, 1, 20
        torch.set_num_threads(1)
    elif gpu is None:
        options.exit(2, "No GPU here: nothing is measured. --quick shows that the script works.\n")
    text = report(args, gpu or "no GPU")
    print(text)
    if gpu and not args.quick:
        out = (
            ROOT / "benchmarks/results" / f"{time.strftime('%Y-%m-%d')}-{gpu.replace(' ', '-')}.txt"
        )
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
