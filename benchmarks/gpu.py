"""The papers' runs on a GPU: step time, fraction of the GPU's matmul rate, predicted wall time.

sentence-transformers' trainer is measured for comparison.

Encoders have the architecture of BERT base and large with random weights. A method has its paper's
settings. A step is a step of the trainer with batch assembly, on the plain path and as the trainer
does it on a GPU (layers compiled). The prediction adds the first steps, which compile, the paper's
steps, and the paper's evaluations of 1,500 pairs. PyTorch's counter counts the operations of one
plain step; they are divided by the rate of a large bf16 matmul. Goals on one H100: SimCSE's run on
BERT base under 4 minutes, three times sentence-transformers' sentences per second.

    python benchmarks/gpu.py [--encoders base large] [--save]

The output goes to benchmarks/results/ with date and GPU. --save also measures the step of every
method for data/step_times.yaml (benchmarks/methods.py), from which `csebench plan` forecasts.
Without a GPU nothing is measured, and the exit code is 2. --quick runs everything on any machine
with an encoder of two layers, and writes nothing.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

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
WARM_UP_PEER = 3  # steps of sentence-transformers' trainer that are not timed
HEAD = [
    "run",
    "batch",
    "plain, ms per step",
    "ms per step",
    "sentences/s",
    "of matmul rate",
    "first steps, s",
    "evaluation, s",
    "steps",
    "whole run, min",
]
DIGITS = ("", "", ".1f", ".1f", ".0f", ".0%", ".1f", ".2f", "", ".1f")
datasets.disable_progress_bars()


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
    args.warm = 12  # first steps, in which the compiler meets every padded length
    args.pairs = 1500  # of an evaluation
    gpu = torch.cuda.get_device_name() if CUDA else None
    if args.quick:
        args.encoders = ["quick"]
        args.steps = 2
        args.save = False
        args.warm = 1
        args.pairs = 20
        torch.set_num_threads(1)
    elif gpu is None:
        options.exit(2, "No GPU here: nothing is measured. --quick shows that the script works.\n")
    text = report(args, gpu or "no GPU")
    print(text)
    if gpu and not args.quick:
        file = f"{time.strftime('%Y-%m-%d')}-{gpu.replace(' ', '-')}.txt"
        (ROOT / "benchmarks/results" / file).write_text(text + "\n")


def report(args, gpu: str) -> str:
    """Measure all methods on all encoders, and write the results as a table."""
    count = 400 if args.quick else 20_000
    corpus = distinct_sentences(read_corpus(ROOT / "data/smoke/wiki/smoke.txt").sentences, count)
    rate = matmul_rate()
    rows = []
    speedups = {}  # over sentence-transformers' trainer, by shape
    runs = [(shape, name) for shape in args.encoders for name in METHODS]
    with tempfile.TemporaryDirectory() as scratch:
        folders = {shape: random_encoder(shape, Path(scratch) / shape) for shape in args.encoders}
        for shape, name in bar(runs, "measuring", "run"):
            run = PaperRun(name, folders[shape], corpus, args.quick)
            times = run.measure(args.warm, args.steps, args.pairs)
            rows.append(table_row(f"{shape} {name}", run, times, rate))
            if name == "simcse":
                folder = folders[shape]
                peer_seconds(folder, run.settings, corpus, WARM_UP_PEER, scratch)
                seconds = peer_seconds(folder, run.settings, corpus, args.steps, scratch)
                speedups[shape] = seconds / times.compiled
        if args.save:
            for shape in args.encoders:
                save_step_times(folders[shape], HUB[shape])

    lines = [
        f"{gpu}, bf16 matmul {rate / 1e12:.0f} TFLOP/s; torch {torch.__version__}; {args.steps}"
        " steps per path",
        "",
        tabulate(rows, HEAD, floatfmt=DIGITS),
        "",
    ]
    for shape, speedup in speedups.items():
        lines.append(
            f"{shape}: {speedup:.2f}x the sentences per second of sentence-transformers' trainer"
        )
    return "\n".join(lines)


def matmul_rate() -> float:
    """Measure the bf16 operations per second of a large product."""
    size = 8192 if CUDA else 128
    device = "cuda" if CUDA else "cpu"
    matrix = torch.randn(size, size, dtype=torch.bfloat16, device=device)
    timed(torch.matmul, matrix, matrix)  # warms up
    return 2 * size**3 / min(timed(torch.matmul, matrix, matrix) for _ in range(10))


def save_step_times(folder: Path, encoders: list[str]) -> None:
    """Measure the step of every method with benchmarks/methods.py, and save the seconds.

    Args:
        folder: of an encoder.
        encoders: of config/ that have its shape.
    """
    script = [sys.executable, ROOT / "benchmarks/methods.py"]
    settings = ["--batch", "64", "--length", "32", "--save"]
    command = [*script, *settings, "--encoder", folder, "--as", *encoders]
    subprocess.run(command, check=True)


# ---------------------------------------------------------------- csebench


@dataclass(frozen=True)
class RunTimes:
    """The seconds of the parts of a run, and the operations of a step."""

    first: float  # all first steps
    plain: float  # a step without compiled layers
    compiled: float  # a step as the trainer does it on a GPU
    evaluation: float
    operations: int


class PaperRun:
    """A method at its paper's settings, ready to make steps."""

    def __init__(self, name: str, folder: Path, corpus: list[str], is_quick: bool):
        given = {"batch_size": 8} if is_quick else {}
        modules, self.optimizer = assemble(name, folder, given)
        self.method: Any = modules["method"]
        self.components = modules["components"]
        self.settings = self.method.p
        self.corpus = corpus
        self.completed = 0

    def steps(self, count: int) -> None:
        for _ in range(count):
            batch = trainer.batch_at(
                self.completed, self.corpus, self.method.sentences_per_step(), 0
            )
            trainer.optimise(self.method, self.components, self.optimizer, batch, "bf16")
            self.completed += 1

    def measure(self, warm: int, steps: int, pairs: int) -> RunTimes:
        """Measure steps and evaluations.

        Args:
            warm: number of first steps.
            steps: number of steps to time on each path.
            pairs: number of pairs of sentences in an evaluation.
        """
        first = timed(self.steps, warm)
        compiled = timed(self.steps, steps) / steps
        with torch.compiler.set_stance("force_eager"):
            self.steps(2)
            plain = timed(self.steps, steps) / steps
            with FlopCounterMode(display=False) as counter:
                self.steps(1)

        left = self.corpus[:pairs]
        right = self.corpus[pairs : 2 * pairs]
        dev = Pairs("dev", left, right, np.random.default_rng(0).random(pairs) * 5)
        evaluations = []
        for _ in range(3):
            seconds = timed(
                trainer.dev_point, self.method.encoder, self.settings.pooler, dev, "bf16"
            )
            evaluations.append(seconds)
        return RunTimes(first, plain, compiled, median(evaluations), counter.get_total_flops())


def table_row(label: str, run: PaperRun, times: RunTimes, rate: float) -> list:
    """Write a run as a row under HEAD.

    Args:
        rate: operations per second of a large matmul.
    """
    batch_size = run.method.sentences_per_step()
    steps = run.settings.steps
    evaluations = steps // run.settings.evaluate_every
    whole_run = times.first + steps * times.compiled + evaluations * times.evaluation
    return [
        label,
        batch_size,
        1000 * times.plain,
        1000 * times.compiled,
        batch_size / times.compiled,
        times.operations / times.compiled / rate,
        times.first,
        times.evaluation,
        f"{steps:,}",
        whole_run / 60,
    ]


# ---------------------------------------------------------------- sentence-transformers


class Clock(TrainerCallback):
    """The seconds from before the first batch to after the last step."""

    started = None

    def on_epoch_begin(self, *_, **__):
        wait()
        self.started = self.started or time.perf_counter()

    def on_epoch_end(self, *_, **__):
        wait()
        self.seconds = time.perf_counter() - self.started


def peer_seconds(encoder: Path, settings, sentences: list[str], steps: int, folder: str) -> float:
    """Measure the seconds per step of sentence-transformers' own SimCSE recipe.

    Its trainer, collator, sampler, optimiser and attention train on pairs of equal sentences.

    Args:
        settings: hyper-parameters of our run, which the recipe gets, too.
        folder: for what the trainer writes.
    """
    dropout = {
        "hidden_dropout_prob": settings.dropout,
        "attention_probs_dropout_prob": settings.dropout,
    }
    loaded = SentenceTransformer(
        str(encoder),
        trust_remote_code=False,
        model_kwargs={"dtype": torch.float32},
        config_kwargs=dropout,
    )
    word = loaded[0]
    word.max_seq_length = settings.max_length
    size = word.get_embedding_dimension()
    model = SentenceTransformer(
        modules=[word, Pooling(size, pooling_mode="cls"), Dense(size, size)]
    )
    training = SentenceTransformerTrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        bf16=True,
        use_cpu=not CUDA,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    pairs = datasets.Dataset.from_dict({"anchor": sentences, "positive": sentences})
    loss = MultipleNegativesRankingLoss(model)
    clock = Clock()
    peer = SentenceTransformerTrainer(
        model, training, train_dataset=pairs, loss=loss, callbacks=[clock]
    )
    peer.remove_callback(PrinterCallback)
    peer.train()
    return clock.seconds / steps


if __name__ == "__main__":
    main()
