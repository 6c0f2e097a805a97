"""The path that a GPU takes, where there is none: steps that do not wait for it, compiled
layers, token ids."""

import subprocess
import sys

import pytest
import torch
from test_chunks import assert_equal, losses_and_gradients, turn_dropout_off
from test_conformance import RUNS, assembled, batches
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.runtime.cache_dir_utils import default_cache_dir

from csebench.base.project import ROOT
from csebench.model.encoder import Encoder
from csebench.model.layers import Dropout, bert_layer
from csebench.model.sentence_encoder import split
from csebench.plan.schema.declarations import EncoderRef
from csebench.train import trainer

# of passes
TWO_KINDS = ("infocse", "micse", "scd", "simcse+auxiliary_mlm", "simcse+moco", "average", "chunks")
GRAPHS = {"simcse": 2, "ct": 2, "msse": 2, "diffcse": 2, "esimcse": 3} | dict.fromkeys(TWO_KINDS, 4)
SETTINGS = RUNS | {"chunks": RUNS["simcse"]}  # the last of them is smaller
SETTINGS |= {
    "average": {"method": "simcse", "params": {"pooler": "avg"}, "components": {"ami": {}}}
}


@pytest.mark.slow
def test_no_step_waits_for_the_device():
    """Of any method, on a made-up GPU."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/conformance/made_up_gpu.py",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
@torch._dynamo.config.patch(recompile_limit=64)
@pytest.mark.parametrize("case", GRAPHS)
def test_one_graph_serves_all_layers(case, make_spec, sentences, monkeypatch):
    """Of all encoders, and another for all further lengths; without a break: a layer is one call.
    More where there are two kinds of passes: with maps of attention, without gradient, with other
    dropout, in chunks of other sizes.
    """
    graphs, calls, layers = [], [], []

    def backend(graph, _):
        graphs.append(graph)
        return lambda *args: calls.append(graph) or graph.forward(*args)

    monkeypatch.setattr(Dropout, "forward", torch.nn.Dropout.forward)  # as on a GPU
    torch._dynamo.reset()
    spec = make_spec(**SETTINGS[case])
    modules, optimizer = assembled(spec, 5 if case == "chunks" else None)
    compiled = torch.compile(bert_layer, backend=backend)
    for encoder in (module for module in modules.modules() if isinstance(module, Encoder)):
        encoder.compiled_layer = lambda *args: layers.append(args) or compiled(*args)
    for number, batch in enumerate(batches(spec, sentences, modules["method"])):
        texts = [s if number == 0 or not isinstance(s, str) else s[: 20 * number] for s in batch]
        trainer.optimise(modules["method"], modules["components"], optimizer, texts, "bf16")
    assert len(calls) == len(layers) > 0
    assert len(graphs) <= GRAPHS[case]


def plain_and_compiled(spec, steps):
    """Losses and gradients of steps without dropout, first without torch.compile, then with it."""
    made = []
    for is_compiled in (False, True):
        modules, _ = assembled(spec)
        turn_dropout_off(modules)
        if is_compiled:
            modules["method"].encoder.compile_layers()
        made.append(losses_and_gradients(modules, steps))
    return made


@pytest.mark.slow
def test_compiled_layers_give_the_same_losses(make_spec, sentences, tmp_path, monkeypatch):
    """Over lengths and sizes of batches. What is compiled is kept in runs/, for other jobs."""
    torch._dynamo.reset()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", default_cache_dir())  # so that it is restored
    monkeypatch.setattr("csebench.model.encoder.RUNS", tmp_path)
    steps = [sentences[:8], [s[:60] for s in sentences[8:12]], [s[:20] for s in sentences[12:18]]]
    plain, compiled = plain_and_compiled(make_spec("simcse"), steps)
    assert_equal(compiled, plain, rtol=1e-3)
    assert [*(tmp_path / ".inductor").iterdir()]


def fail(*_, **__):
    raise RuntimeError("Python.h: No such file or directory\ncompilation terminated.")


def fail_in_the_backward_pass(graph, inputs, **_):
    return aot_autograd(fw_compiler=lambda forward, _: forward, bw_compiler=fail)(graph, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", [fail, fail_in_the_backward_pass])
@torch._dynamo.config.patch(disable=False)
def test_a_failed_compilation_is_a_line_and_the_step_is_made(
    compiler, make_spec, sentences, monkeypatch, caplog
):
    """As without Python's headers."""
    torch._dynamo.reset()  # of what other tests compiled
    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", compiler)
    (plain, _), (compiled, _) = plain_and_compiled(make_spec("simcse"), [sentences[:8]])
    torch._dynamo.reset()
    assert torch.equal(compiled, plain)
    (line,) = [
        record.getMessage()
        for record in caplog.records
        if record.name == "torch._dynamo.convert_frame"
    ]
    assert "layers run as they are" in line and line.endswith("Python.h: No such file or directory")


def test_rows_are_the_tokenizers(tiny_bert, sentences):
    """Cut at any length as the tokenizer cuts, also from memory."""
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    some = [*sentences[:20], "a long walk along the river " * 60]
    wanted = {length: encoder.ids(some, length) for length in (4, 8, 32, None)}
    encoder.known_ids = {}
    for tokenizer in (encoder.tokenizer, None):  # the second from what is remembered
        encoder.tokenizer = tokenizer
        assert {length: encoder.ids(some, length) for length in wanted} == wanted


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [([512] * 300, [128, 128, 44]), ([8] * 300, [200, 100]), ([10**6] * 2, [1, 1])],
)
def test_a_batch_has_no_more_tokens_than_fit_in_memory(lengths, rows):
    assert [batch.stop - batch.start for batch in split(lengths, 200)] == rows
