"""SimCSE training throughput: the trainer of csebench against the trainer of sentence-transformers.

Compared, in sentences per second of whole steps (tokenising, two dropout views, loss, backward, clipping, optimiser,
learning rate):
  csebench               `csebench.train.trainer.fit` with methods/simcse.py, without the STS-B dev evaluation
  sentence-transformers  SentenceTransformerTrainer, MultipleNegativesRankingLoss on (s, s) pairs: its SimCSE recipe,
                         with its collator, sampler, optimiser and (unless --peer-attention) attention; without logging
                         and saving
Same encoder, sentences, batch, length, dropout, precision and threads. The two alternate; each run trains a fresh copy
of the encoder and starts its clock after set-up. Imports, loading and one warm-up run per side do not count.

    python benchmarks/train_step.py [--corpus FILE] [--precision fp32] [--threads 2] [--quick]
"""

# ruff: noqa: E402
import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from threading import Event

os.environ["TQDM_DISABLE"] = "1"
sys.path[0] = str(Path(__file__).resolve().parents[1])  # else benchmarks/methods.py would shadow the package `methods`

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling
from tabulate import tabulate
from transformers import TrainerCallback

from csebench import ROOT
from csebench.base.progress import Progress
from csebench.data.corpus import read_corpus
from csebench.model.encoder import Encoder
from csebench.plan.registry import declaration, fill
from csebench.plan.schema import EncoderRef
from csebench.plan.spec import Spec
from csebench.train import trainer

NO_DEV = {"spearman": 0.0, "alignment": 0.0, "uniformity": 0.0}


def csebench_seconds(args, sentences, steps, folder):
    """Seconds per step, as the trainer reports them."""
    trainer.dev_point = lambda *_: NO_DEV
    ref = EncoderRef(name=args.encoder, revision="local")
    given = dict(steps=steps, evaluate_every=steps, batch_size=args.batch_size, max_length=args.max_length)
    params = fill(declaration("simcse"), given, "benchmark")
    run = dict(encoder=ref, seed=0, precision=args.precision, threads=args.threads)
    spec = Spec(method="simcse", method_version=1, params=params, **run)
    encoder = Encoder.load(ref, params["dropout"])
    with Progress(Path(folder), spec.run_id) as progress:
        report, _ = trainer.fit(spec, Path(folder), encoder, sentences, None, float("inf"), progress, Event())
    return report["seconds_per_step"]


class Clock(TrainerCallback):
    def on_train_begin(self, *_, **__):
        self.started = time.perf_counter()

    def on_train_end(self, *_, **__):
        self.seconds = time.perf_counter() - self.started


def peer_seconds(args, sentences, steps, folder):
    """Seconds per step, from the trainer's first to its last callback."""
    path = str(ROOT / args.encoder if (ROOT / args.encoder).exists() else args.encoder)
    kwargs = {"attn_implementation": args.peer_attention} if args.peer_attention else {}
    word = SentenceTransformer(path, trust_remote_code=False, model_kwargs=kwargs)[0]
    word.max_seq_length = args.max_length
    pooling = Pooling(word.get_embedding_dimension(), pooling_mode="cls")
    model, clock = SentenceTransformer(modules=[word, pooling]), Clock()
    settings = SentenceTransformerTrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=args.batch_size,
        learning_rate=3e-5,
        bf16=args.precision == "bf16",
        use_cpu=not torch.cuda.is_available(),
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    pairs = Dataset.from_dict({"anchor": sentences, "positive": sentences})
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model, settings, train_dataset=pairs, loss=loss, callbacks=[clock]).train()
    return clock.seconds / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="encoders/bert-mini-wiki", help="folder (of the project or anywhere)")
    parser.add_argument(
        "--corpus", type=Path, default=ROOT / "data/smoke/wiki/smoke.txt", help="one sentence per line"
    )
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=32)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer-attention", help="eager or sdpa; default: the choice of sentence-transformers")
    parser.add_argument("--steps", type=int, default=40, help="steps per run")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each side")
    parser.add_argument("--quick", action="store_true", help="3 steps, 2 runs: proves that the script works")
    args = parser.parse_args()
    if args.quick:
        args.steps, args.repeats = 3, 2
    torch.set_num_threads(args.threads)
    count, corpus = args.steps * args.batch_size, [*read_corpus(args.corpus)]
    sentences = (corpus * -(-count // len(corpus)))[:count]
    sides = {"csebench": csebench_seconds, "sentence-transformers": peer_seconds}
    speeds = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(args.repeats + 1):
            for name, seconds in sides.items():
                steps = args.steps if repeat else min(args.steps, 5)  # the first run of each warms up
                speed = args.batch_size / seconds(args, sentences, steps, folder)
                if repeat:
                    speeds[name].append(speed)
    rows = [[name, median(s), min(s), max(s), 1000 * args.batch_size / median(s)] for name, s in speeds.items()]
    print(f"{args.encoder}, {args.corpus.name}, batch {args.batch_size}, length {args.max_length}, {args.precision}")
    print(f"{args.threads} threads, {args.repeats} runs of {args.steps} steps per side, alternating\n")
    print(tabulate(rows, ["sentences/s", "median", "min", "max", "ms/step"], floatfmt=".1f"))
    paired = [a / b for a, b in zip(*speeds.values(), strict=True)]
    print(f"\nratio by pairs: {min(paired):.2f}x to {max(paired):.2f}x")
    print(f"ratio csebench / sentence-transformers: {median(paired):.2f}x")


if __name__ == "__main__":
    main()
