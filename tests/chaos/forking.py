"""Run csebench's commands in processes that are forked from this one, which has imported torch: it
takes 3 seconds.

Each line of stdin is an order as JSON, answered by one line: {"arguments": [...], "log": FILE, ...}
by the id of the process that runs the command (`run_command`), {"wait": ID} by its exit code, which
is negative after a signal.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from csebench import cli
from csebench.score import evaluate, models  # noqa: F401  what a job imports
from csebench.train import loop

LONGEST = 600  # seconds: what takes longer is killed
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}


def make_encoder(shipped: Path, tiny: Path) -> None:
    """One with random weights, larger than BERT's, so that attention is not uniform."""
    shutil.copytree(
        shipped,
        tiny,
        ignore=lambda _, names: {*names} - {"tokenizer.json", "tokenizer_config.json"},
    )
    torch.manual_seed(0)
    BertModel(BertConfig.from_pretrained(shipped, initializer_range=0.1, **TINY)).save_pretrained(
        tiny
    )


def run_command(arguments, log, strike=(0, 0)) -> int:
    """A csebench command, printing into a file, whose last line is the number of its write
    operations; before the n-th it gets a signal, where `strike` is (n, signal)."""
    file, writes = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 0
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.alarm(LONGEST)

    def count(event: str, values: tuple) -> None:
        nonlocal writes
        changes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
        if changes or (event == "open" and values[2] & (os.O_WRONLY | os.O_RDWR)):
            writes += 1
            if writes == strike[0]:
                os.kill(os.getpid(), strike[1])

    sys.addaudithook(count)
    sys.argv = ["csebench", *arguments]
    try:
        return cli.main(arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        print(f"\n{writes}", flush=True)


def main() -> None:
    loop.CHECKPOINT_SECONDS = 0  # a checkpoint after every evaluation
    make_encoder(Path("encoders/bert-mini-wiki"), Path("encoders/tiny"))
    print("ready", flush=True)
    for order in map(json.loads, sys.stdin):
        if "wait" in order:
            print(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]), flush=True)
        elif process := os.fork():
            print(process, flush=True)
        else:
            code = 1
            try:
                code = run_command(**order)
            finally:
                os._exit(code)


if __name__ == "__main__":
    main()
