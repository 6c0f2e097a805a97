"""Embedding the sentences of the seven STS sets: csebench's SentenceEncoder against SentenceTransformer.encode.

Both load one exported folder (mean pooling) and run in the same precision, on the same threads. Two workloads:
  all pairs           what an evaluation costs: csebench as its STS evaluator does it (left and right of all sets,
                      every distinct sentence once), sentence-transformers task by task, left then right
  distinct sentences  the same list of sentences, each once, for both: without the effect of de-duplication
csebench uses its default batch (128), sentence-transformers the faster of its default (32) and 128. The two alternate;
loading and a warm-up do not count. The vectors must agree.

    python benchmarks/encode.py [--data ROOT] [--encoder E] [--precision bf16] [--threads 2] [--quick]
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from statistics import median

os.environ["TQDM_DISABLE"] = "1"

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from tabulate import tabulate

from csebench import ROOT
from csebench.data.sts import read_sts
from csebench.model.encoder import Encoder
from csebench.model.export import save_encoder
from csebench.model.metrics import cosine
from csebench.plan.schema import EncoderRef, Evaluation
from csebench.score.models import open_model
from evaluators.sts import DECLARATION, concatenate


def timed(work):
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="encoders/bert-mini-wiki", help="folder (of the project or anywhere)")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CSEBENCH_DATA", ROOT / "data/smoke")))
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="runs per side")
    parser.add_argument("--quick", action="store_true", help="at most 64 pairs per task, 1 run")
    args = parser.parse_args()
    args.repeats = 1 if args.quick else args.repeats
    torch.set_num_threads(args.threads)

    tasks = {t: concatenate(t, read_sts(args.data, t)) for t in DECLARATION["tasks"]}
    lists = [side[: 64 if args.quick else None] for pairs in tasks.values() for side in (pairs.left, pairs.right)]
    left, right = ([s for side in lists[i::2] for s in side] for i in (0, 1))
    distinct = list(dict.fromkeys(left + right))
    with tempfile.TemporaryDirectory() as folder:
        save_encoder(Path(folder), Encoder.load(EncoderRef(name=args.encoder, revision="local")), "avg")
        ours = open_model(folder, "avg", evaluation=Evaluation(precision=args.precision))
        peer = SentenceTransformer(folder, device=str(ours.encoder.device), trust_remote_code=False)

    def embed(*parts):
        ours.known.clear()
        return np.concatenate([ours.embed(part) for part in parts])

    def encode(*parts, size):
        with torch.autocast(peer.device.type, torch.bfloat16, enabled=args.precision == "bf16"):
            return np.concatenate([peer.encode(p, batch_size=size, show_progress_bar=False) for p in parts])

    few, peers = distinct[:256], {"sentence-transformers, batch 32": 32, "sentence-transformers, batch 128": 128}
    agreement = cosine(embed(few), encode(few, size=32)).min()  # also warms up both
    if agreement < (0.9999 if args.precision == "fp32" else 0.999):
        raise SystemExit(f"the vectors differ: smallest cosine {agreement:.6f}")
    seconds = {}
    for _ in range(args.repeats):
        for work, ours_parts, peer_parts, count in (
            ("all pairs", [left, right], lists, len(left) + len(right)),
            ("distinct sentences", [distinct], [distinct], len(distinct)),
        ):
            seconds.setdefault((work, count, "csebench"), []).append(timed(lambda p=ours_parts: embed(*p))[0])
            for name, size in peers.items():
                took, _ = timed(lambda p=peer_parts, s=size: encode(*p, size=s))
                seconds.setdefault((work, count, name), []).append(took)

    print(f"{args.encoder}, {args.data}, {args.precision}, {args.threads} threads, {args.repeats} runs per side")
    print(f"smallest cosine between the two libraries' vectors: {agreement:.6f}\n")
    rows = [[work, n, who, median(s), n / median(s)] for (work, n, who), s in seconds.items()]
    head = ["workload", "sentences", "library", "seconds", "sentences/s"]
    print(tabulate(rows, head, floatfmt=("", "", "", ".2f", ".0f")) + "\n")
    for work in ("distinct sentences", "all pairs"):
        best = {who == "csebench": s for w, _, who, s, _ in sorted(rows, key=lambda r: -r[3]) if w == work}
        print(f"ratio csebench / sentence-transformers, {work}: {best[False] / best[True]:.2f}x")


if __name__ == "__main__":
    main()
