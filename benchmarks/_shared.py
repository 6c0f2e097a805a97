"""Parts that benchmarks of training share: arguments, encoders, sentences, methods, a clock.

Import this module before csebench. It makes Python take `csebench` and `methods` from this
checkout.
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
# the project comes first: else benchmarks/methods.py would shadow the package `methods`
sys.path.append(sys.path[0])
sys.path[0] = str(ROOT)

from csebench.model.encoder import Encoder
from csebench.plan.catalog.registry import COMPONENTS, declaration, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train import trainer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

CUDA = torch.cuda.is_available()
# layers, hidden size, heads
SHAPES = {"base": (12, 768, 12), "large": (24, 1024, 16), "quick": (2, 32, 2)}
# Settings that need neither models of the hub nor earlier runs.
SETTINGS = {
    "rtd": {"generator": "self"},
    "msse": {"augmentation": "insert_copies"},
    "infocse": {"pretraining": "none"},
}


def parser(doc: str, quick: str, precision: str | None = None) -> argparse.ArgumentParser:
    """Make a parser with --quick. If a precision is given, add --precision and --threads.

    Args:
        doc: description of the benchmark.
        quick: what --quick measures.
        precision: default of --precision.
    """
    options = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--quick", action="store_true", help=f"{quick}: proves that the script works"
    )
    if precision is not None:
        options.add_argument(
            "--precision",
            choices=["bf16", "fp32"],
            default=precision,
            help=f"(default: {precision})",
        )
        options.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    return options


def random_encoder(shape: str, folder: Path) -> Path:
    """Write an encoder of BERT's architecture with random weights."""
    layers, size, heads = SHAPES[shape]
    config = BertConfig(
        vocab_size=30522,
        hidden_size=size,
        intermediate_size=4 * size,
        num_hidden_layers=layers,
        num_attention_heads=heads,
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(
        ROOT / "encoders/bert-mini-wiki", trust_remote_code=False
    )
    tokenizer.save_pretrained(folder)
    return folder


def distinct_sentences(corpus: list[str], count: int) -> list[str]:
    """Take sentences of a corpus. If it has too few, make more from its words and lengths."""
    rng = np.random.default_rng(0)
    words = " ".join(corpus).split()
    sentences = corpus[:count]
    for number in range(len(corpus), count):
        length = len(corpus[number % len(corpus)].split())
        sentences.append(" ".join(rng.choice(words, length)))
    return sentences


def assemble(name: str, encoder: Path | str, given: dict, chunk_size: int | None = None):
    """Assemble a method with its components, ready to make steps.

    Args:
        name: of the method; `simcse+ami` adds a component.
        given: hyper-parameters of the method.

    Returns:
        Modules and optimiser.
    """
    host, *added = name.split("+")
    method = declaration(host)
    params = typed_params(host, given | SETTINGS.get(host, {}))
    components = {}
    for component in dict.fromkeys([*method.components, *added]):
        # a component that the name adds has its own defaults, not those of the method
        settings = {} if component in added else method.components[component]
        settings = settings | SETTINGS.get(component, {})
        components[component] = typed_params(component, settings, COMPONENTS)
    torch.manual_seed(0)
    ref = EncoderRef(name=str(encoder), revision="local")
    with_pooler = params.pooler == "cls"
    loaded = Encoder.load(ref, params.dropout, with_pooler, new_pooler=True)
    return trainer.assemble(host, loaded, params, components, chunk_size)


def timed(function, *args) -> float:
    """Measure the seconds of a call, with the work that it leaves to the GPU."""
    wait()
    started = time.perf_counter()
    function(*args)
    wait()
    return time.perf_counter() - started


def wait() -> None:
    """Wait until the GPU has done its work."""
    if CUDA:
        torch.cuda.synchronize()
