"""SimCSE training throughput: the trainer of csebench against the trainer of sentence-transformers.

Compared, in sentences per second of whole steps (tokenising, two dropout views, SimCSE's head on [CLS], loss,
backward, clipping, optimiser, learning rate):
  csebench               `csebench.train.trainer.fit` with methods/simcse.py, without the STS-B dev evaluation
  sentence-transformers  SentenceTransformerTrainer, MultipleNegativesRankingLoss on (s, s) pairs: its SimCSE recipe,
                         with its collator, sampler, optimiser and (unless --peer-attention) attention; without logging
                         and saving
Both train the same encoder in one epoch over the same sentences, none of which occurs twice, with the same batch,
length, dropout, precision of weights and products, and threads. The two alternate; each run trains a fresh copy of the
encoder, and its clock runs from the first batch to the last step. Imports, loading, set-up and one warm-up run per
side do not count.

    python benchmarks/train_step.py [--corpus FILE] [--precision fp32] [--threads 2] [--quick]
"""

import tempfile
import time
from pathlib import Path
from statistics import median
from unittest.mock import patch

import datasets
import torch
from _shared import CUDA, ROOT, distinct_sentences, parser, wait
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Dense, Pooling
from tabulate import tabulate
from transformers import PrinterCallback, TrainerCallback

from csebench.base.runs import Progress
from csebench.base.terminal import bar
from csebench.data.corpus import read_corpus
from csebench.model.encoder import Encoder
from csebench.plan.declarations import EncoderRef
from csebench.plan.registry import declaration, fill
from csebench.plan.spec import Spec
from csebench.train import loop, trainer
from csebench.train.inputs import Inputs

datasets.disable_progress_bars()
DROPOUT = 0.1  # of both sides
NO_DEV = dict.fromkeys(("spearman", "alignment", "uniformity"), 0.0)


def csebench_seconds(args, sentences, steps, folder):
    """Seconds per step, as the trainer reports them."""
    given = dict(steps=steps, evaluate_every=steps, batch_size=args.batch_size, max_length=args.max_length)
    params = fill(declaration("simcse"), given | {"dropout": DROPOUT}, "benchmark")
    ref = EncoderRef(name=args.encoder, revision="local")
    run = dict(encoder=ref, seed=0, precision=args.precision, threads=torch.get_num_threads())
    spec = Spec(method="simcse", method_version=1, params=params, **run)
    encoder, inputs = Encoder.load(ref, DROPOUT), Inputs(sentences, None, {})
    no_dev, no_checkpoints = ((trainer, "dev_point", lambda *_: NO_DEV), (loop, "CHECKPOINT_SECONDS", float("inf")))
    with Progress(Path(folder), spec.run_id) as progress, patch.object(*no_dev), patch.object(*no_checkpoints):
        report, _ = trainer.fit(spec, Path(folder), encoder, inputs, progress)
    return report["seconds_per_step"]


class Clock(TrainerCallback):
    """Seconds from before the first batch to after the last step."""

    started = None

    def on_epoch_begin(self, *_, **__):
        wait()
        self.started = self.started or time.perf_counter()

    def on_epoch_end(self, *_, **__):
        wait()
        self.seconds = time.perf_counter() - self.started


def peer_seconds(args, sentences, steps, folder):
    """Seconds per step of sentence-transformers."""
    path = str(ROOT / args.encoder if (ROOT / args.encoder).exists() else args.encoder)
    kwargs = {"dtype": torch.float32} | ({"attn_implementation": args.peer_attention} if args.peer_attention else {})
    dropout = {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}
    word = SentenceTransformer(path, trust_remote_code=False, model_kwargs=kwargs, config_kwargs=dropout)[0]
    word.max_seq_length = args.max_length
    size = word.get_embedding_dimension()
    model = SentenceTransformer(modules=[word, Pooling(size, pooling_mode="cls"), Dense(size, size)])
    settings = SentenceTransformerTrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=args.batch_size,
        learning_rate=3e-5,
        bf16=args.precision == "bf16",
        use_cpu=not CUDA,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    pairs = datasets.Dataset.from_dict({"anchor": sentences, "positive": sentences})
    loss, clock = MultipleNegativesRankingLoss(model), Clock()
    peer = SentenceTransformerTrainer(model, settings, train_dataset=pairs, loss=loss, callbacks=[clock])
    peer.remove_callback(PrinterCallback)
    peer.train()
    return clock.seconds / steps


def main():
    options = parser(__doc__, "2 runs of 3 steps of 8 sentences, 1 thread", "bf16")
    options.add_argument("--encoder", default="encoders/bert-mini-wiki", help="folder (of the project or anywhere)")
    options.add_argument("--corpus", type=Path, default=ROOT / "data/smoke/wiki/smoke.txt", help="a sentence per line")
    options.add_argument("--batch-size", type=int, default=64)
    options.add_argument("--max-length", type=int, default=32)
    options.add_argument("--peer-attention", help="eager or sdpa; default: the choice of sentence-transformers")
    options.add_argument("--steps", type=int, default=40, help="steps per run")
    options.add_argument("--repeats", type=int, default=5, help="runs of each side")
    args = options.parse_args()
    if args.quick:
        args.steps, args.repeats, args.batch_size, args.threads = 3, 2, 8, 1
    torch.set_num_threads(args.threads)
    sentences = distinct_sentences([*dict.fromkeys(read_corpus(args.corpus))], args.steps * args.batch_size)
    sides = {"csebench": csebench_seconds, "sentence-transformers": peer_seconds}
    runs = [name for _ in range(1 + args.repeats) for name in sides]
    speeds = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as folder:
        for name in bar(runs, "training", "run"):
            speeds[name].append(args.batch_size / sides[name](args, sentences, args.steps, folder))
    speeds = {name: speed[1:] for name, speed in speeds.items()}  # the first run of each warms up
    rows = [[name, median(s), min(s), max(s), 1000 * args.batch_size / median(s)] for name, s in speeds.items()]
    print(f"{args.encoder}, {args.corpus.name}, batch {args.batch_size}, length {args.max_length}, {args.precision}")
    print(f"{args.threads} threads, {args.repeats} runs of {args.steps} steps per side, alternating\n")
    print(tabulate(rows, ["sentences/s", "median", "min", "max", "ms/step"], floatfmt=".1f"))
    paired = [a / b for a, b in zip(*speeds.values(), strict=True)]
    print(f"\nratio by pairs: {min(paired):.2f}x to {max(paired):.2f}x")
    print(f"ratio csebench / sentence-transformers: {median(paired):.2f}x")


if __name__ == "__main__":
    main()
