"""What benchmarks that train share: arguments, encoders of any size, sentences of any number,
methods, a clock.

Imported before csebench, it also makes `csebench` and `methods` those of this checkout.
"""

# ruff: noqa: E402
import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoTokenizer, BertConfig, BertModel

ROOT = Path(__file__).resolve().parents[1]
# behind the project, else benchmarks/methods.py would shadow the package `methods`
sys.path.append(sys.path[0])
sys.path[0] = str(ROOT)

from csebench.model.encoder import Encoder
from csebench.plan.catalog.registry import COMPONENTS, declaration, fill
from csebench.plan.schema.declarations import EncoderRef
from csebench.train import trainer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

CUDA = torch.cuda.is_available()
# layers, hidden size, heads
SHAPES = {"base": (12, 768, 12), "large": (24, 1024, 16), "quick": (2, 32, 2)}
# Settings that replace parts which only the hub has, and runs that would have to come first.
SETTINGS = {
    "rtd": {"generator": "self"},
    "msse": {"augmentation": "insert_copies"},
    "infocse": {"pretraining": "none"},
}


def parser(doc: str, quick: str, precision: str | None = None) -> argparse.ArgumentParser:
    """With --quick; given a precision, also with it as the default of --precision, and with
    --threads."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--quick", action="store_true", help=f"{quick}: proves that the script works")
    if precision is not None:
        made.add_argument(
            "--precision",
            choices=["bf16", "fp32"],
            default=precision,
            help=f"(default: {precision})",
        )
        made.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    return made


def random_encoder(shape: str, folder: Path) -> Path:
    """An encoder of BERT's architecture with random weights."""
    layers, size, heads = SHAPES[shape]
    sizes = {"hidden_size": size, "num_hidden_layers": layers, "num_attention_heads": heads}
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=30522, intermediate_size=4 * size, **sizes)).save_pretrained(
        folder
    )
    tokenizer = AutoTokenizer.from_pretrained(
        ROOT / "encoders/bert-mini-wiki", trust_remote_code=False
    )
    tokenizer.save_pretrained(folder)
    return folder


def distinct_sentences(corpus: list[str], count: int) -> list[str]:
    """Those of the corpus, or where it has too few, sentences of its lengths and words."""
    rng, words = np.random.default_rng(0), " ".join(corpus).split()
    more = range(len(corpus), count)
    return [
        *corpus[:count],
        *(" ".join(rng.choice(words, len(corpus[i % len(corpus)].split()))) for i in more),
    ]


def assemble(name: str, encoder: Path | str, given: dict, chunk_size: int | None = None):
    """(modules, optimiser) of a method with its components, ready to make steps; `simcse+ami`
    adds a component."""
    host, *more = name.split("+")
    declared = declaration(host)
    params = fill(declared, given | SETTINGS.get(host, {}), name)
    plugins = {**declared.components, **{plugin: {} for plugin in more}}
    plugins = {
        n: fill(declaration(n, COMPONENTS), v | SETTINGS.get(n, {}), name)
        for n, v in plugins.items()
    }
    torch.manual_seed(0)
    ref, with_pooler = EncoderRef(name=str(encoder), revision="local"), params["pooler"] == "cls"
    loaded = Encoder.load(ref, params["dropout"], with_pooler, new_pooler=True)
    return trainer.assemble(host, loaded, params, plugins, chunk_size)


def timed(function, *args) -> float:
    """Seconds of a call, with what it leaves to the GPU."""
    wait()
    started = time.perf_counter()
    function(*args)
    wait()
    return time.perf_counter() - started


def wait() -> None:
    if CUDA:
        torch.cuda.synchronize()
