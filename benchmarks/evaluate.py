"""One evaluation by several evaluators against separate evaluations by each, which load and embed anew.

    python benchmarks/evaluate.py [--data DATA_ROOT] [--evaluators sts,transfer:fasttest,stsb_retrieval,geometry]

Prints seconds and sentences embedded, and the largest difference between the scores.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import torch
from tabulate import tabulate

from csebench import ROOT
from csebench.plan.schema import Evaluation
from csebench.score.evaluate import evaluate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="encoders/bert-mini-wiki", help="folder (of the project or anywhere)")
    parser.add_argument("--pooler", default="avg_first_last_2021")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CSEBENCH_DATA", ROOT / "data/smoke")))
    parser.add_argument("--evaluators", default="sts,transfer:fasttest,stsb_retrieval,geometry")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    evaluators, settings = args.evaluators.split(","), Evaluation(precision=args.precision)

    def run(wanted):
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            result = evaluate(args.encoder, wanted, args.data, Path(folder) / "x.json", args.pooler, settings)
            seconds = time.perf_counter() - started
        timings = result["timings"].values()
        totals = [sum(t[key] for t in timings) for key in ("embedding_seconds", "scoring_seconds")]
        return result["scores"], [seconds, *totals, sum(t["sentences_embedded"] for t in timings)]

    for e in evaluators:  # imports and a warm-up
        run([e])
    alone = [run([e]) for e in evaluators]
    scores, together = run(evaluators)
    others = [row["value"] for rows, _ in alone for row in rows]
    apart = max(abs(row["value"] - other) for row, other in zip(scores, others, strict=True))
    total = [sum(column) for column in zip(*(costs for _, costs in alone), strict=True)]
    rows = [["together", *together], *([e, *costs] for e, (_, costs) in zip(evaluators, alone, strict=True))]
    print(f"{args.encoder}, {args.pooler}, {args.precision}, {args.threads} threads, {args.data}\n")
    head = ["evaluators", "seconds", "embedding", "scoring", "sentences embedded"]
    print(tabulate([*rows, ["sum of the separate ones", *total]], head, floatfmt=".1f"))
    ratios = [total[i] / together[i] for i in (0, 3)]
    print(f"\nlargest difference between the scores: {apart:.1e} (a vector's last bits depend on its batch)")
    print("ratio separate / together: {:.2f}x seconds, {:.2f}x sentences".format(*ratios))


if __name__ == "__main__":
    main()
