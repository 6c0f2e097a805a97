"""One of several processes of tests/slow/test_parallel.py: loss and gradient of a step of every case, as JSON.

torchrun --nproc-per-node 2 tests/slow/parallel_worker.py ENCODER OUT [CHUNK_SIZE]
"""

import importlib
import json
import sys
from pathlib import Path

import torch
from tiny_runs import TINY, TINY_METHODS

from csebench.data.corpus import read_corpus
from csebench.model.encoder import Encoder
from csebench.plan.declarations import EncoderRef
from csebench.plan.registry import COMPONENTS, declaration, fill
from csebench.train import parallel, trainer

CASES = ["simcse", "simcse+moco", "simcse+ami", "simcse+mlm", "simcse_sup", "msse+compensation", "ct", "pcl", "scd"]
CASES += ["rankcse", "iscse", "infocse+auxiliary_mlm", "mirror_bert", "condenser"]
SMOKE = Path(__file__).resolve().parents[2] / "data" / "smoke"


def every_third(tokenizer, ids, probability):
    """A mask that draws nothing, and hides unequally many tokens of unequal sentences."""
    chosen = (ids % 3 == 0) & ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    return ids.masked_fill(chosen, tokenizer.mask_token_id), ids.masked_fill(~chosen, -100)


def step(case: str, encoder: Path, chunk_size: int | None) -> list[float]:
    """Losses of three steps and the norm of the last gradient, without anything random."""
    name, *plugins = case.split("+")
    found = declaration(name)
    params = fill(found, {**TINY_METHODS.get(name, {}), **TINY, "dropout": 0.0}, case)
    if name == "msse":
        params["augmentation"] = "reverse"
    if name == "scd":
        params["second_dropout"] = 0.0
    if name == "ct":
        params["batch_size"] = 16  # two groups
    given = {"moco": {"queue": 12, "dropout": 0.0}, "ami": {"weight": 1.0, "samples": 2000}}
    given |= {"compensation": {"input_dropout": 0.0}, "mlm": {"weight": 1.0}, "auxiliary_mlm": {"weight": 1.0}}
    components = {n: fill(declaration(n, COMPONENTS), given[n], case) for n in plugins}
    torch.manual_seed(0)
    ref = EncoderRef(name=str(encoder), revision="local")
    loaded = Encoder.load(ref, 0.0, params["pooler"] == "cls")
    state, optimizer = trainer.assemble(name, loaded, params, components, chunk_size)
    for module in state.modules():  # the decoder of compensation has its own
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    norms = []
    optimizer.register_step_pre_hook(
        lambda o, *_: norms.append(float(torch.cat([p.grad.flatten() for p in o.param_groups[0]["params"]]).norm()))
    )
    method, kind = state["method"], found.corpus
    sentences = read_corpus(SMOKE / ("nli/smoke.csv" if kind == "triplets" else "wiki/smoke.txt"), kind=kind)
    losses = []
    for number in range(3):
        batch = trainer.batch_at(number, sentences, method.sentences_per_step(), 1)
        batch = parallel.shard(batch, method.group)
        loss = trainer.optimise(method, list(state["components"]), optimizer, batch, "fp32")
        losses.append(float(parallel.mean(loss)))
    return [*losses, *norms]


def main(encoder: str, out: str, chunk_size: str | None = None) -> None:
    parallel.start()
    for module in ("methods.condenser", "methods.components.mlm", "methods.components.auxiliary_mlm"):
        importlib.import_module(module).mask_batch = every_third
    importlib.import_module("methods.mirror_bert").randint = lambda high: high // 2
    found = {case: step(case, Path(encoder), chunk_size and int(chunk_size)) for case in CASES}
    if parallel.rank() == 0:
        Path(out).write_text(json.dumps(found))
    parallel.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
