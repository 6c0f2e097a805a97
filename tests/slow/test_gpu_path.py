"""The path that a GPU takes, where there is none: steps that do not wait for it, compiled layers, token ids."""

import subprocess
import sys

import pytest
import torch
from test_conformance import assembled

from csebench.base.project import ROOT
from csebench.model.encoder import Encoder
from csebench.model.layers import Dropout, bert_layer
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.model.tokens import Tokens
from csebench.plan.declarations import EncoderRef
from csebench.train import trainer


@pytest.mark.slow
def test_no_step_waits_for_the_device():
    """Of any method, on a made-up GPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    command.append("tests/conformance/made_up_gpu.py")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
def test_compiled_layers_give_the_same_losses(make_spec, sentences):
    """Lengths, sizes and an evaluation between: SimCSE's steps with and without torch.compile, without dropout."""
    spec = make_spec("simcse", params={"dropout": 0.0})
    losses = {}
    for compiled in (False, True):
        torch.manual_seed(0)
        encoder = Encoder.load(spec.encoder, 0.0)
        state, optimizer = trainer.assemble("simcse", encoder, spec.params, {})
        if compiled:
            encoder.compile_layers()
        batches = [sentences[:8], sentences[8:16], [s[:20] for s in sentences[16:24]], sentences[24:28]]
        losses[compiled] = [float(trainer.optimise(state["method"], [], optimizer, b, "fp32")) for b in batches]
        vectors = SentenceEncoder(encoder, "cls_before_pooler").embed(sentences[:5])
        losses[compiled] += vectors[:, 0].tolist()
    assert losses[True] == pytest.approx(losses[False], rel=1e-3)


GRAPHS = {  # settings: graphs after one length, after several
    "simcse": ({"method": "simcse"}, (1, 2)),
    "all hidden states": ({"method": "condenser"}, (1, 2)),
    "maps of AMI": ({"method": "simcse", "params": {"pooler": "avg"}, "components": {"ami": {}}}, (2, 4)),
    "momentum": ({"method": "simcse", "components": {"moco": {}}}, (2, 4)),
    "another dropout": ({"method": "scd"}, (2, 4)),
    "chunks": ({"method": "simcse"}, (2, 4)),  # the last of them is smaller
}


@pytest.mark.slow
@pytest.mark.parametrize("case", GRAPHS)
def test_one_graph_serves_all_layers(case, make_spec, sentences, monkeypatch):
    """And all lengths but the first; a compiled layer is one graph, not several."""
    graphs, calls = [], []

    def backend(graph, _):
        graphs.append(graph)
        return lambda *args: calls.append(graph) or graph.forward(*args)

    monkeypatch.setattr(Dropout, "forward", torch.nn.Dropout.forward)  # as on a GPU
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 64)
    torch._dynamo.reset()
    settings, wanted = GRAPHS[case]
    modules, optimizer = assembled(make_spec(**settings), chunk_size=5 if case == "chunks" else None)
    layers = []
    for encoder in trainer.encoders(modules):
        compiled = torch.compile(bert_layer, backend=backend)
        encoder.compiled_layer = lambda *args, compiled=compiled: layers.append(1) or compiled(*args)
    found = []
    for batch in (
        sentences[:8],
        [s[:20] for s in sentences[8:16]],
        sentences[16:24],
        [s[:60] for s in sentences[24:32]],
    ):
        trainer.optimise(modules["method"], modules["components"], optimizer, batch, "bf16")
        found.append(len(graphs))
    assert (found[0], found[-1]) == wanted and len(calls) == len(layers) > 0


def test_rows_are_the_tokenizers(tiny_bert, sentences):
    """Cut at any length as the tokenizer cuts, also from memory."""
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    some = [*sentences[:20], "a long walk along the river " * 60]
    wanted = {length: encoder.ids(some, length) for length in (4, 8, 32, None)}
    encoder.tokens = Tokens(encoder.tokenizer, encoder.max_seq_length)
    for tokenizer in (encoder.tokenizer, None):  # the second from what is remembered
        encoder.tokens.tokenizer = tokenizer
        assert {length: encoder.ids(some, length) for length in wanted} == wanted
