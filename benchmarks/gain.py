"""How much SimCSE as published adds to an encoder: what `csebench pretrain` candidates and snapshots are compared by.

Criterion, on STS-B dev (Spearman x 100): the best of three runs of SimCSE (temperature 0.05, [CLS] with its MLP in
training, batch 64, 32 tokens, 2,000 steps, scored every 125, seed 48; learning rates 1e-5, 3e-5, 1e-4) minus the best
untrained pooling. Then the average of the seven STS test sets of both winners.

    python benchmarks/gain.py ENCODER [ENCODER …] --corpus FILE --data DIR --out DIR [--jobs 1] [--threads 1]

Runs lie in OUT/<encoder>/lr-<rate>, where a second call resumes or reuses them; OUT/gain.csv has a row per score,
OUT/gain.json the settings and a summary per encoder, OUT/gain-by-tokens.svg a point per encoder. --jobs runs share a
GPU, or the cores.
"""

# ruff: noqa: E402
import argparse
import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ["TQDM_DISABLE"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # else benchmarks/methods.py would shadow the package `methods`

from tabulate import tabulate

from csebench.base.files import sha256, write_json
from csebench.base.provenance import Stopwatch
from csebench.data.sts import read_sts
from csebench.model.encoder import Encoder
from csebench.plan.schema import EncoderRef
from csebench.score.drawing import COLOURS, STYLE, figure_files, write_files
from csebench.train.trainer import dev_point

POOLERS = ("cls_before_pooler", "avg", "avg_top2", "avg_first_last_2021", "avg_first_last_2022")
LEARNING_RATES = ("1e-5", "3e-5", "1e-4")
COLUMNS = ("encoder", "tokens", "state", "pooler", "learning_rate", "step", "score", "value")


def csebench(*arguments) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "csebench", *map(str, arguments)], check=True, env=environment)


def train(encoder: Path, rate: str, args) -> dict:
    """The report of SimCSE's run."""
    out = args.out / encoder.name / f"lr-{rate}"
    settings = [f"learning_rate={rate}", f"steps={args.steps}", f"evaluate_every={args.evaluate_every}"]
    run = ["--method", "simcse", "--set", *settings, "--encoder", encoder, "--corpus", args.corpus, "--seed", "48"]
    csebench("train", *run, "--precision", "bf16", "--threads", args.threads, "--data", args.data, "--out", out)
    return json.loads((out / "train.json").read_text())


def sts_average(model: Path, pooler: str, out: Path, args) -> float:
    """Of the seven test sets, as the papers' tables average them."""
    if not out.exists():
        csebench(
            "evaluate", "--model", model, "--pooler", pooler, "--evaluators", "sts", "--data", args.data, "--out", out
        )
    return next(row["value"] for row in json.loads(out.read_text())["scores"] if row["task"] == "Avg.")


def tokens_seen(encoder: Path) -> int | None:
    """By the encoder's pre-training report, or by the name of a snapshot."""
    if (encoder / "pretraining.json").exists():
        return json.loads((encoder / "pretraining.json").read_text())["curve"][-1]["tokens"]
    return int(encoder.name) if encoder.name.isdigit() else None


def untrained(encoder: Path, args) -> dict[str, float]:
    (dev,) = read_sts(args.data, "STS-B", "dev")
    loaded = Encoder.load(EncoderRef(name=str(encoder), revision="local"))
    return {pooler: dev_point(loaded, pooler, dev, "bf16")["spearman"] for pooler in POOLERS}


def draw(summary: list[dict], out: Path) -> None:
    """STS-B dev against the tokens that an encoder saw: untrained, with the best pooling and with SimCSE's, and after
    SimCSE."""
    import matplotlib
    from matplotlib.figure import Figure

    points = sorted((row for row in summary if row["tokens"]), key=lambda row: row["tokens"])
    lines = {"untrained_dev": "untrained, best pooling", "untrained_cls_dev": "untrained, [CLS]"}
    lines |= {"simcse_dev": "after SimCSE as published, [CLS]"}
    tokens = [row["tokens"] / 1e6 for row in points]
    table = [["encoder", "million_tokens", *lines, "gain"]]
    table += [[row["encoder"], row["tokens"] / 1e6, *(row[key] for key in lines), row["gain"]] for row in points]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6, 3.6), layout="constrained")
        axis = figure.subplots()
        for (key, label), colour in zip(lines.items(), COLOURS, strict=False):
            axis.plot(tokens, [row[key] for row in points], marker="o", color=colour, label=label)
        axis.set_title("What SimCSE adds to an encoder, by tokens of pre-training")
        axis.set_xscale("log", base=2)
        axis.set_xticks(tokens, [f"{value:.3g}" for value in tokens])
        axis.set_xlabel("million tokens seen in pre-training")
        axis.set_ylabel("STS-B dev (Spearman x 100)")
        axis.legend(frameon=False)
        write_files(out / "gain-by-tokens", figure_files(figure, table))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoders", nargs="+", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--learning-rates", nargs="+", default=LEARNING_RATES)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--evaluate-every", type=int, default=125)
    parser.add_argument("--jobs", type=int, default=1, help="runs that train at the same time")
    parser.add_argument("--threads", type=int, default=1, help="of a run")
    args = parser.parse_args()
    watch, rows, summary = Stopwatch(), [], []
    with ThreadPoolExecutor(args.jobs) as pool:
        runs = {(e, rate): pool.submit(train, e, rate, args) for e in args.encoders for rate in args.learning_rates}
        for encoder in args.encoders:
            named = {"encoder": encoder.name, "tokens": tokens_seen(encoder)}

            def row(state, pooler, rate, step, score, value, named=named):
                rows.append(
                    named | dict(zip(COLUMNS[2:], (state, pooler, rate, step, score, 100 * value), strict=True))
                )

            before = untrained(encoder, args)
            for pooler, value in before.items():
                row("untrained", pooler, None, 0, "STS-B dev", value)
            reports = {rate: runs[encoder, rate].result() for rate in args.learning_rates}
            for rate, report in reports.items():
                for point in report["curve"]:
                    row("simcse", POOLERS[0], rate, point["step"], "STS-B dev", point["spearman"])
            pooler, rate = max(before, key=before.get), max(reports, key=lambda r: reports[r]["best_dev"])
            folder = args.out / encoder.name
            averages = [
                sts_average(encoder, pooler, folder / "untrained.json", args),
                sts_average(folder / f"lr-{rate}/model", POOLERS[0], folder / f"lr-{rate}.json", args),
            ]
            row("untrained", pooler, None, 0, "STS average", averages[0])
            row("simcse", POOLERS[0], rate, reports[rate]["best_step"], "STS average", averages[1])
            best = 100 * reports[rate]["best_dev"]
            summary.append(named | {"untrained_pooler": pooler, "untrained_dev": 100 * before[pooler]})
            summary[-1]["untrained_cls_dev"] = 100 * before[POOLERS[0]]
            summary[-1] |= {"learning_rate": rate, "step": reports[rate]["best_step"], "simcse_dev": best}
            summary[-1] |= {"gain": best - 100 * before[pooler]}
            summary[-1] |= dict(zip(("untrained_sts", "simcse_sts"), (100 * a for a in averages), strict=True))
            with open(args.out / "gain.csv", "w", newline="") as file:  # as far as it is
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            settings = {
                "corpus_sha256": sha256(args.corpus),
                "steps": args.steps,
                "evaluate_every": args.evaluate_every,
            }
            settings |= {"batch_size": 64, "max_length": 32, "temperature": 0.05, "seed": 48, "precision": "bf16"}
            settings["learning_rates"] = list(args.learning_rates)
            provenance = watch.record()
            write_json(args.out / "gain.json", {"settings": settings, "encoders": summary, "provenance": provenance})
    draw(summary, args.out)
    print(tabulate(summary, headers="keys", floatfmt=".2f"))


if __name__ == "__main__":
    main()
