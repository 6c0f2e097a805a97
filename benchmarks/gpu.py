"""The papers' runs on a GPU: step time, fraction of the GPU's matmul rate, predicted wall time, and the speed of
sentence-transformers' trainer for comparison.

Encoders have the architecture of BERT base and large with random weights. A method has its paper's settings; a step is
a step of the trainer with batch assembly, on the plain path and as the trainer does it on a GPU (layers compiled). The
prediction adds the first steps, which compile, the paper's steps, and the paper's evaluations of 1,500 pairs.
Operations are counted by PyTorch's counter in one plain step, and divided by the rate of a large bf16 matmul.
Goals on one H100: SimCSE's run on BERT base under 4 minutes, three times sentence-transformers' sentences per second.

    python benchmarks/gpu.py [--encoders base large] [--save]

The output goes to benchmarks/results/ with date and GPU. --save also measures the step of every method for
data/step_times.yaml (benchmarks/methods.py), from which `csebench plan` forecasts. Without a GPU nothing is measured;
--quick runs everything on any machine with an encoder of two layers, and writes nothing.
"""

# ruff: noqa: E402
import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace

os.environ["TQDM_DISABLE"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # else benchmarks/methods.py would shadow the package `methods`

import numpy as np
import torch
from tabulate import tabulate
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer, BertConfig, BertModel

from benchmarks.train_step import peer_seconds
from csebench.data.corpus import read_corpus
from csebench.data.sts import Pairs
from csebench.model.encoder import Encoder
from csebench.plan.registry import COMPONENTS, declaration, fill
from csebench.plan.schema import EncoderRef
from csebench.train import trainer

SHAPES = {"base": (12, 768, 12), "large": (24, 1024, 16), "quick": (2, 32, 2)}  # layers, hidden size, heads
HUB = {"base": "google-bert/bert-base-uncased", "large": "google-bert/bert-large-uncased"}  # as in config/paper.yaml
METHODS = {"simcse": {}, "micse": {}, "infocse": {"pretraining": "none"}, "msse": {"augmentation": "insert_copies"}}
WARM = 12  # steps in which the compiler meets every padded length


def random_encoder(shape: str, folder: Path) -> Path:
    layers, size, heads = SHAPES[shape]
    sizes = {"hidden_size": size, "num_hidden_layers": layers, "num_attention_heads": heads}
    config = BertConfig(vocab_size=30522, intermediate_size=4 * size, **sizes)
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(ROOT / "encoders/bert-mini-wiki", trust_remote_code=False).save_pretrained(folder)
    return folder


def sentences_like(corpus: list[str], count: int) -> list[str]:
    """Distinct sentences of the corpus' lengths and words."""
    rng, words = np.random.default_rng(0), " ".join(corpus).split()
    return [" ".join(rng.choice(words, len(corpus[i % len(corpus)].split()))) for i in range(count)]


def wait():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(function, *args) -> float:
    wait()
    started = time.perf_counter()
    function(*args)
    wait()
    return time.perf_counter() - started


def matmul_rate() -> float:
    """bf16 operations per second of a large product."""
    size = 8192 if torch.cuda.is_available() else 512
    a = torch.randn(size, size, dtype=torch.bfloat16, device="cuda" if torch.cuda.is_available() else "cpu")
    timed(torch.matmul, a, a)
    return 2 * size**3 / min(timed(torch.matmul, a, a) for _ in range(10))


class PaperRun:
    """A method at its paper's settings, ready to make steps."""

    def __init__(self, name, folder, corpus, args):
        declared = declaration(name)
        quick = {"batch_size": 8} if args.quick else {}
        params = fill(declared, METHODS[name] | quick, name)
        plugins = {n: fill(declaration(n, COMPONENTS), given, name) for n, given in declared.components.items()}
        torch.manual_seed(0)
        encoder = Encoder.load(EncoderRef(name=str(folder), revision="local"), params["dropout"])
        state, self.optimizer = trainer.assemble(name, encoder, params, plugins)
        self.method, self.components, self.p = state["method"], state["components"], SimpleNamespace(**params)
        trainer.use_tokens(state, corpus, 0)
        self.corpus, self.completed = corpus, 0

    def steps(self, count):
        for _ in range(count):
            batch = trainer.batch_at(self.completed, self.corpus, self.method.sentences_per_step(), 0)
            trainer.optimise(self.method, self.components, self.optimizer, batch, "bf16")
            self.completed += 1

    def measure(self, args):
        """Seconds of the first steps, of a step of each path, of an evaluation; operations of a step."""
        first = timed(self.steps, WARM)
        compiled = timed(self.steps, args.steps) / args.steps
        with torch.compiler.set_stance("force_eager"):
            self.steps(2)
            plain = timed(self.steps, args.steps) / args.steps
            with FlopCounterMode(display=False) as counter:
                self.steps(1)
        dev = Pairs("dev", self.corpus[:1500], self.corpus[1500:3000], np.random.default_rng(0).random(1500) * 5)
        evaluations = [timed(trainer.dev_point, self.method.encoder, self.p.pooler, dev, "bf16") for _ in range(3)]
        return first, plain, compiled, median(evaluations), counter.get_total_flops()


def report(args, gpu) -> str:
    corpus = sentences_like(read_corpus(ROOT / "data/smoke/wiki/smoke.txt"), 20_000)
    rate, rows, ratio = matmul_rate(), [], {}
    with tempfile.TemporaryDirectory() as scratch:
        for shape in args.encoders:
            folder = random_encoder(shape, Path(scratch) / shape)
            for name in METHODS:
                run = PaperRun(name, folder, corpus, args)
                first, plain, step, dev, operations = run.measure(args)
                size, p = run.method.sentences_per_step(), run.p
                whole = first + p.steps * step + p.steps // p.evaluate_every * dev
                rows.append(
                    [f"{shape} {name}", size, 1000 * plain, 1000 * step, size / step, operations / step / rate]
                )
                rows[-1] += [first, dev, f"{p.steps:,}", whole / 60]
                if name == "simcse":
                    peer = SimpleNamespace(encoder=str(folder), max_length=p.max_length, batch_size=size)
                    peer.precision, peer.peer_attention = "bf16", None
                    peer_seconds(peer, corpus, 3, scratch)
                    ratio[shape] = peer_seconds(peer, corpus, args.steps, scratch) / step
            if args.save:
                script = [sys.executable, ROOT / "benchmarks/methods.py", "--batch", "64", "--length", "32", "--save"]
                subprocess.run([*script, "--encoder", folder, "--as", HUB[shape]], check=True)
    head = ["run", "batch", "plain, ms per step", "ms per step", "sentences/s", "of matmul rate", "first steps, s"]
    head += ["evaluation, s", "steps", "whole run, min"]
    digits = ("", "", ".1f", ".1f", ".0f", ".0%", ".1f", ".2f", "", ".1f")
    lines = [
        f"{gpu}, bf16 matmul {rate / 1e12:.0f} TFLOP/s; torch {torch.__version__}; {args.steps} steps per path",
        "",
    ]
    lines += [tabulate(rows, head, floatfmt=digits), ""]
    lines += [f"{s}: {x:.2f}x the sentences per second of sentence-transformers' trainer" for s, x in ratio.items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoders", nargs="+", choices=["base", "large"], default=["base", "large"])
    parser.add_argument("--steps", type=int, default=100, help="timed, of each path")
    parser.add_argument("--save", action="store_true", help="step times of all methods to data/step_times.yaml")
    parser.add_argument("--quick", action="store_true", help="on any machine, proves that the script works")
    args = parser.parse_args()
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    if args.quick:
        args.encoders, args.steps, args.save = ["quick"], 2, False
    elif gpu is None:
        sys.exit("No GPU here: nothing is measured. --quick shows that the script works.")
    text = report(args, gpu or "no GPU")
    print(text)
    if gpu and not args.quick:
        out = ROOT / "benchmarks/results" / f"{time.strftime('%Y-%m-%d')}-{gpu.replace(' ', '-')}.txt"
        out.parent.mkdir(exist_ok=True)
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
