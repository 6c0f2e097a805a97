"""Run csebench's commands in processes that are forked from this one, which has imported torch.

Importing it takes 3 seconds. Each line of stdin is an order as JSON, and each gets one line as the
answer. {"arguments": [...], "log": FILE, "strike": [n, signal]} starts a command (`run_command`),
and is answered by the id of its process. {"wait": ID} is answered by the exit code of a process,
which is negative after a signal.
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
    "initializer_range": 0.1,  # larger than BERT's, so that attention is not uniform
}


def main() -> None:
    """Answer orders until stdin ends."""
    loop.CHECKPOINT_SECONDS = 0  # a checkpoint after every evaluation
    make_encoder(Path("encoders/bert-mini-wiki"), Path("encoders/tiny"))
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _, status = os.waitpid(order["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
        else:
            print(fork_command(order), flush=True)


def make_encoder(shipped: Path, tiny: Path) -> None:
    """Make an encoder with random weights and the tokenizer of a shipped one."""
    tiny.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy2(shipped / name, tiny)
    torch.manual_seed(0)
    config = BertConfig.from_pretrained(shipped, **TINY)
    BertModel(config).save_pretrained(tiny)


def fork_command(order: dict) -> int:
    """Run a command in a forked process, and return its id."""
    process = os.fork()
    if process != 0:
        return process
    code = 1
    try:
        code = run_command(**order)
    finally:
        os._exit(code)  # the process must not go on with the orders of its parent


def run_command(arguments: list[str], log: str, strike: tuple[int, int] | None = None) -> int:
    """Run a csebench command, and return its exit code.

    Args:
        log: file that the command prints into. Its last line is the number of write operations.
        strike: (n, signal): the command gets this signal before its n-th write operation.
    """
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.alarm(LONGEST)
    writes = 0

    def count_writes(event: str, values: tuple) -> None:
        nonlocal writes
        if not is_write(event, values):
            return
        writes += 1
        if strike is not None and writes == strike[0]:
            os.kill(os.getpid(), strike[1])

    sys.addaudithook(count_writes)
    sys.argv = ["csebench", *arguments]
    try:
        return cli.main(arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        print(f"\n{writes}", flush=True)


def is_write(event: str, values: tuple) -> bool:
    """Whether an audit event of Python is a write operation on a disk."""
    if event == "open":
        _, _, flags = values
        return bool(flags & (os.O_WRONLY | os.O_RDWR))
    return event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")


if __name__ == "__main__":
    main()
