"""Planning: seconds to resolve every target of all papers, at each scale, in a fresh process.

Timed from the start of the interpreter to its end, as a user pays it: `csebench plan all --scale S`, which must not
import torch, transformers or sentence-transformers; and `snakemake -n -q all` at the default scale, which adds
Snakemake's own start and DAG. The goal is 3 s each.

    python benchmarks/plan.py [--repeats 5] [--quick]
"""

import argparse
import os
import subprocess
import sys
import time
from statistics import median

from tabulate import tabulate

from csebench import ROOT
from csebench.plan import catalog

GOAL = 3.0  # seconds
HEAVY = ("torch", "transformers", "sentence_transformers", "mteb", "beir")
PLAN = f"""
import sys
from csebench.cli import main
code = main(["plan", "all", "--scale", sys.argv[1]])
heavy = [m for m in {HEAVY!r} if m in sys.modules]
sys.exit(code or (f"planning imported {{heavy}}" if heavy else 0))
"""


def timed(command, repeats):
    """Median and worst seconds of a command in fresh processes, and what it printed last."""
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
        seconds.append(time.perf_counter() - started)
        if done.returncode != 0:
            raise SystemExit(f"{command[-1]}: exit {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return median(seconds), max(seconds), done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes per line")
    parser.add_argument("--quick", action="store_true", help="one process per line")
    args = parser.parse_args()
    repeats, rows = 1 if args.quick else args.repeats, []
    for scale in catalog.scale_names():
        middle, worst, printed = timed([sys.executable, "-c", PLAN, scale], repeats)
        runs = next(line.split()[0] for line in printed.splitlines() if " runs at scale " in line)
        rows.append([f"csebench plan all --scale {scale}", runs, middle, worst])
    middle, worst, _ = timed([sys.executable, "-m", "snakemake", "-n", "-q", "all"], repeats)
    rows.append(["snakemake -n -q all (smoke)", "", middle, worst])
    print(tabulate(rows, ["command", "runs", f"median of {repeats}, s", "worst, s"], floatfmt=".2f"))
    print(f"\nnone of {', '.join(HEAVY)} imported by `csebench plan`")
    print(f"ratio goal ({GOAL:.0f} s) / slowest: {GOAL / max(row[2] for row in rows):.2f}x")


if __name__ == "__main__":
    main()
