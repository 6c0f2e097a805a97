"""csebench beside sentence-transformers: a training step, and encoding.

Both sides have the same encoder, sentences, precision and threads:
  step                an optimiser step of SimCSE: our trainer's, and one of
                      MultipleNegativesRankingLoss over pairs (s, s), with a dense layer on [CLS],
                      the same dropout, AdamW and clipping
  encode              the sentences of STS-B test, many of them twice
  encode distinct     the same sentences, each once

The two sides alternate, and a ratio is the median over pairs of calls, so that other work on the
machine slows both. The share is the operations per second of our step or encoding, divided by
those of a product of two square matrices in the same precision, on the same threads.

    python benchmarks/peer.py [--seconds 120] [--encoder E] [--batch 64] [--threads 1 2]
                              [--precisions fp32 bf16]
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from statistics import median

import torch
from _shared import ROOT, assemble, distinct_sentences, parser, timed
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Dense, Pooling
from tabulate import tabulate
from torch.utils.flop_counter import FlopCounterMode

from csebench.base.provenance import processor
from csebench.base.terminal import bar
from csebench.data.corpus import read_corpus
from csebench.data.sts import read_sts
from csebench.plan.schema.declarations import Evaluation
from csebench.score.models import open_model
from csebench.train.trainer import optimise

PRECISIONS = ("fp32", "bf16")
LENGTH = 32  # tokens of a sentence in training
DROPOUT = 0.1
LEARNING_RATE = 3e-5
LARGEST_NORM = 1.0  # gradients are clipped to it
SIDE = 1024  # of the square matrices that the rate is measured with
FEWEST_PAIRS = 3


@dataclass(frozen=True)
class Workload:
    """The same work of both libraries."""

    name: str
    sentences: int
    ours: Callable[[], object]
    peer: Callable[[], object]


# ---------------------------------------------------------------- training


def training_step(encoder: str, precision: str, size: int) -> Workload:
    """Prepare a step of both sides on the same batch of `size` sentences."""
    corpus = read_corpus(ROOT / "data/smoke/wiki/smoke.txt").sentences
    batch = distinct_sentences(corpus, size)
    given = {"batch_size": size, "max_length": LENGTH, "steps": 10**6, "dropout": DROPOUT}
    modules, optimizer = assemble("simcse", encoder, given)

    def ours():
        optimise(modules["method"], modules["components"], optimizer, batch, precision)

    return Workload("step", size, ours, peer_step(encoder, precision, batch))


def peer_step(encoder: str, precision: str, batch: list[str]) -> Callable[[], None]:
    """Prepare a step of sentence-transformers."""
    dropout = {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}
    transformer = peer_model(encoder, config_kwargs=dropout)[0]
    transformer.max_seq_length = LENGTH
    size = transformer.get_embedding_dimension()
    pooling = Pooling(size, pooling_mode="cls")
    model = SentenceTransformer(modules=[transformer, pooling, Dense(size, size)])
    model.train()
    loss_function = MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

    def step():
        views = [on_device(model, model.preprocess(batch)) for _ in range(2)]
        optimizer.zero_grad()
        with autocast(model, precision):
            loss = loss_function(views, None)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), LARGEST_NORM)
        optimizer.step()

    return step


def on_device(model: "SentenceTransformer", features: dict) -> dict:
    """Move the tensors of tokenised sentences to the device of a model."""
    moved = dict(features)
    for name, value in features.items():
        if isinstance(value, torch.Tensor):
            moved[name] = value.to(model.device)
    return moved


# ---------------------------------------------------------------- encoding


def encoding(encoder: str, precision: str, is_quick: bool) -> list[Workload]:
    """Prepare encoding of STS-B test, as it is and with each sentence once."""
    (pairs,) = read_sts(ROOT / "data/smoke", "STS-B")
    sentences = [*pairs.left, *pairs.right, *pairs.left]
    if is_quick:
        sentences = [*pairs.left[:16], *pairs.left[:16]]
    distinct = list(dict.fromkeys(sentences))
    ours = open_model(encoder, "avg", Evaluation(precision=precision))
    transformer = peer_model(encoder)[0]
    size = transformer.get_embedding_dimension()
    peer = SentenceTransformer(modules=[transformer, Pooling(size, pooling_mode="mean")])

    def workload(name: str, texts: list[str]) -> Workload:
        def embed():
            ours.known.clear()  # else the vectors of the last call are looked up
            return ours.embed(texts)

        def encode():
            with autocast(peer, precision):
                return peer.encode(texts, show_progress_bar=False)

        return Workload(name, len(texts), embed, encode)

    return [workload("encode", sentences), workload("encode distinct", distinct)]


def peer_model(encoder: str, **options) -> "SentenceTransformer":
    """Load an encoder of the project, or of a folder, with sentence-transformers."""
    path = ROOT / encoder
    name = str(path) if path.exists() else encoder
    options["model_kwargs"] = {"dtype": torch.float32}
    return SentenceTransformer(name, trust_remote_code=False, **options)


def autocast(model: "SentenceTransformer", precision: str) -> torch.autocast:
    is_bf16 = precision == "bf16"
    return torch.autocast(model.device.type, torch.bfloat16, enabled=is_bf16)


# ---------------------------------------------------------------- measuring


def measured(workload: Workload, matmul: Callable[[], object], seconds: float) -> list:
    """Measure pairs of calls for some seconds, and return a row of the table."""
    for call in (workload.ours, workload.peer, matmul):
        call()  # warms up
    counter = FlopCounterMode(display=False)
    with counter:
        workload.ours()
    operations = counter.get_total_flops()

    ours = []
    ratios = []
    shares = []
    until = time.monotonic() + seconds
    while len(ratios) < FEWEST_PAIRS or time.monotonic() < until:
        our_seconds = timed(workload.ours)
        peer_seconds = timed(workload.peer)
        matmul_rate = 2 * SIDE**3 / timed(matmul)
        ours.append(our_seconds)
        ratios.append(peer_seconds / our_seconds)
        shares.append(operations / our_seconds / matmul_rate)
    rate = workload.sentences / median(ours)
    return [len(ratios), rate, median(ratios), min(ratios), max(ratios), median(shares)]


def square_product(precision: str) -> Callable[[], object]:
    """Prepare a product of two square matrices."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    device = "cuda" if torch.cuda.is_available() else "cpu"
    matrix = torch.randn(SIDE, SIDE, device=device).to(dtype)
    return lambda: matrix @ matrix


def main():
    options = parser(__doc__, "three pairs of calls with few sentences, on one thread")
    options.add_argument(
        "--encoder", default="encoders/bert-mini-wiki", help="folder (of the project or anywhere)"
    )
    options.add_argument(
        "--seconds", type=float, default=120, help="of measuring (default: %(default)s)"
    )
    options.add_argument("--batch", type=int, default=64, help="sentences of a step")
    options.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    options.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    args = options.parse_args()
    if args.quick:
        args.seconds = 0
        args.threads = [1]
        args.batch = 8
        args.precisions = ["fp32"]  # bf16 takes minutes on a CPU without its instructions
    settings = list(product(args.precisions, args.threads))
    rows = []
    for precision, threads in bar(settings, "measuring", "setting"):
        torch.set_num_threads(threads)
        matmul = square_product(precision)
        workloads = [training_step(args.encoder, precision, args.batch)]
        workloads += encoding(args.encoder, precision, args.quick)
        for workload in workloads:
            seconds = args.seconds / len(settings) / len(workloads)
            row = measured(workload, matmul, seconds)
            rows.append([workload.name, precision, threads, *row])

    print(f"{args.encoder}, {processor()}, torch {torch.__version__}")
    print(f"steps of {args.batch} sentences, at most {LENGTH} tokens each\n")
    head = ["work", "precision", "threads", "pairs", "sentences/s", "x peer", "min", "max"]
    formats = ("", "", "", "", ".0f", ".2f", ".2f", ".2f", ".2f")
    print(tabulate(rows, [*head, "of matmul rate"], floatfmt=formats))


if __name__ == "__main__":
    main()
