"""Overhead of the harness: CPU seconds of a job that are not its work, and CPU seconds of planning.

A job is `csebench work RUN` in a fresh process, which trains and scores one run. Its work is the training steps, the
embedding of sentences and the scoring; everything else is overhead: start of Python, imports,
planning, reading and checking of data, loading and writing of models, checkpoints. The goals are 5 % of a run of scale
mini and 4 s. The first job of a workflow stores the plan for the others; this is left out (`csebench plan all` is the
same work). Also printed: a second call for the same run, which is done by then, and `csebench publish`.

Planning is timed on generated papers of 10, 1,000 and 10,000 distinct runs: `csebench plan all` and
`snakemake -n`, each in a fresh process.

    python benchmarks/overhead.py [--scale smoke] [--run ID] [--sizes 10 1000 10000]

Scale mini needs its data (CSEBENCH_DATA).
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml
from tabulate import tabulate

from csebench import ROOT

# Runs a job and notes the CPU seconds of the work in it.
JOB = """
import json, runpy, sys, time
def timed(function):
    def run(*args, **kwargs):
        before, outer = time.process_time(), timed.inside
        timed.inside = True
        try:
            return function(*args, **kwargs)
        finally:
            timed.inside = outer
            if not outer:
                timed.seconds += time.process_time() - before
    return run
timed.inside, timed.seconds = False, 0.0
from csebench import cli, worker
train_and_score = worker.train_and_score
def patched(*args):
    import torch._dynamo, torch.optim  # which the first step would import
    from csebench.model import sentence_encoder
    from csebench.score import evaluate
    from csebench.train import trainer
    trainer.optimise, trainer.dev_point = timed(trainer.optimise), timed(trainer.dev_point)
    sentence_encoder.SentenceEncoder.vectors = timed(sentence_encoder.SentenceEncoder.vectors)
    load = evaluate.load
    evaluate.load = lambda *names: timed(load(*names))
    train_and_score(*args)
worker.train_and_score = patched
main = cli.main
def noting():
    code = main(sys.argv[1:])
    print(json.dumps({"work": timed.seconds}), file=sys.stderr)
    return code
cli.main = noting
runpy.run_module("csebench", run_name="__main__")
"""


def cpu(command, cwd):
    """(CPU seconds of a process and its children, wall seconds, what it printed to stderr)"""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    env = {**os.environ, "PYTHONPATH": str(cwd), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:4])}: exit {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, time.perf_counter() - started, done.stderr


def project(folder):
    """A copy of the project without runs and results."""
    left_out = ("runs", "results", ".snakemake", ".venv")
    shutil.copytree(ROOT, folder, ignore=lambda path, names: {*left_out} & {*names} if Path(path) == ROOT else set())
    return folder


def jobs(args, folder):
    from csebench.plan import targets

    specs = targets.runs(args.scale)
    name = args.run or next(r for r in specs if r.startswith("simcse-"))
    run = [name, "--scale", args.scale]
    cpu([sys.executable, "-c", f"from csebench.plan import targets; targets.run({name!r}, {args.scale!r})"], folder)
    total, wall, printed = cpu([sys.executable, "-c", JOB, "work", *run], folder)
    work = json.loads(printed.splitlines()[-1])["work"]
    rows = [[f"work {name}", total, work, total - work, f"{(total - work) / total:.1%}", wall]]
    for again in (["work", *run], ["publish", run[0], "sts", *run[1:]]):
        seconds, wall, _ = cpu([sys.executable, "-m", "csebench", *again], folder)
        rows.append([f"{again[0]}, when it is done", seconds, 0.0, seconds, "", wall])
    print(f"one job at scale {args.scale}, {specs[name].threads} thread(s)\n")
    print(tabulate(rows, ["job", "CPU s", "of it work", "harness", "share", "wall s"], floatfmt=".2f"))


def planning(args, folder):
    rows = []
    for size in args.sizes:
        make_papers(folder, size)
        plan, *_ = cpu([sys.executable, "-m", "csebench", "plan", "all"], folder)
        snakemake = ["-m", "snakemake", "-n", "--quiet", "all", "--", "all"]
        dry, *_ = cpu([sys.executable, *snakemake], folder)
        rows.append([size, plan, dry, 1000 * dry / size])
    print("\nplanning, CPU s\n")
    head = ["runs", "csebench plan all", "snakemake -n all", "ms a run"]
    print(tabulate(rows, head, floatfmt=("", ".2f", ".2f", ".1f")))


def make_papers(folder, runs):
    """One paper with tables of 50 rows of SimCSE, each with another temperature, on two seeds."""
    for old in (folder / "papers").glob("*.yaml"):
        old.unlink()
    tables, column = {}, {"label": "Avg.", "task": "Avg.", "size": "1%"}
    for row in range(runs // 2):
        recipe = {"method": "simcse", "params": {"temperature": 0.01 + row / 1e6}}
        line = {"label": f"row {row}", "run": recipe, "source": "measured", "values": [None]}
        number = str(1 + row // 50)
        tables.setdefault(number, {"title": "made up", "columns": [column], "rows": []})["rows"].append(line)
    paper = {"name": "made_up", "title": "Made up", "reference": "benchmarks/overhead.py", "tables": tables}
    (folder / "papers" / "made_up.yaml").write_text(yaml.safe_dump(paper))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="smoke")
    parser.add_argument("--run", help="a run of the scale; one of SimCSE without it")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10, 1000, 10000], help="runs to plan")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = project(Path(scratch) / "csebench")
        jobs(args, folder)
        planning(args, folder)


if __name__ == "__main__":
    main()
