"""What torch.compile makes of a step, counted by a backend that compiles nothing."""

import pytest
import torch
from test_conformance import PLAIN, RUNS, assembled, batches

from csebench.model.encoder import Encoder
from csebench.model.layers import Dropout, bert_layer
from csebench.train import trainer

CASES = {run: (RUNS[run], None) for run in PLAIN}
CASES |= {"simcse, in chunks": ({"method": "simcse"}, 5)}  # the last of them is smaller
CASES |= {"simcse+ami, average": ({"method": "simcse", "params": {"pooler": "avg"}, "components": {"ami": {}}}, None)}
TWO_KINDS = ("infocse", "micse", "scd", "simcse+auxiliary_mlm", "simcse+moco", *list(CASES)[-2:])  # of passes
GRAPHS = dict.fromkeys(CASES, 2) | dict.fromkeys(TWO_KINDS, 4) | {"esimcse": 3}


@pytest.mark.slow
@torch._dynamo.config.patch(recompile_limit=64)
@pytest.mark.parametrize("case", CASES)
def test_one_graph_serves_all_layers(case, make_spec, sentences, monkeypatch):
    """Of all encoders, and another for all further lengths; without a break: a layer is one call. More where there are
    two kinds of passes: with maps of attention, without gradient, with other dropout, in chunks of other sizes."""
    graphs, calls, layers = [], [], []

    def backend(graph, _):
        graphs.append(graph)
        return lambda *args: calls.append(graph) or graph.forward(*args)

    monkeypatch.setattr(Dropout, "forward", torch.nn.Dropout.forward)  # as on a GPU
    torch._dynamo.reset()
    settings, chunk_size = CASES[case]
    spec = make_spec(**settings)
    modules, optimizer = assembled(spec, chunk_size)
    compiled = torch.compile(bert_layer, backend=backend)
    for encoder in (module for module in modules.modules() if isinstance(module, Encoder)):
        encoder.compiled_layer = lambda *args: layers.append(args) or compiled(*args)
    for number, batch in enumerate(batches(spec, sentences, modules["method"])):
        texts = [s if number == 0 or not isinstance(s, str) else s[: 20 * number] for s in batch]
        trainer.optimise(modules["method"], modules["components"], optimizer, texts, "bf16")
    assert len(calls) == len(layers) > 0
    assert len(graphs) <= GRAPHS[case]
