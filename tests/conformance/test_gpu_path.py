"""The path that a GPU takes, checked on the CPU.

Steps do not wait for the GPU, layers are compiled, and token ids are remembered.
"""

import subprocess
import sys
from types import SimpleNamespace

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

# by case: the number of graphs that torch.compile may make of its layers
GRAPHS = {
    "simcse": 2,
    "ct": 2,
    "msse": 2,
    "diffcse": 2,
    "esimcse": 3,
    # these have two kinds of passes
    "infocse": 4,
    "micse": 4,
    "promcse": 4,  # what the first layer reads has no gradient
    "scd": 4,
    "simcse+auxiliary_mlm": 4,
    "simcse+moco": 4,
    "average": 4,
    "chunks": 4,  # the last chunk is smaller
}
SETTINGS = RUNS | {
    "average": {"method": "simcse", "params": {"pooler": "avg"}, "components": {"ami": {}}},
    "chunks": RUNS["simcse"],
}


@pytest.mark.slow
def test_no_step_waits_for_the_device():
    """Make steps of all methods on a made-up GPU."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command.append("tests/conformance/made_up_gpu.py")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]


@pytest.mark.slow
@torch._dynamo.config.patch(recompile_limit=64)
@pytest.mark.parametrize("case", GRAPHS)
def test_one_graph_serves_all_layers(case, make_spec, sentences, monkeypatch):
    """A graph serves the layers of all encoders, and another one serves all further lengths. A
    layer is one call, without a break. There are more graphs if there are two kinds of passes: with
    maps of attention, without gradient, with other dropout, in chunks of other sizes.
    """
    graphs = []
    graph_calls = []
    layer_calls = []

    def backend(graph, _):
        graphs.append(graph)

        def call(*args):
            graph_calls.append(graph)
            return graph.forward(*args)

        return call

    monkeypatch.setattr(Dropout, "forward", torch.nn.Dropout.forward)  # as on a GPU
    torch._dynamo.reset()
    compiled_layer = torch.compile(bert_layer, backend=backend)

    def call_layer(*args):
        layer_calls.append(args)
        return compiled_layer(*args)

    spec = make_spec(**SETTINGS[case])
    chunk_size = 5 if case == "chunks" else None
    modules, optimizer = assembled(spec, chunk_size)
    for module in modules.modules():
        if isinstance(module, Encoder):
            module.compiled_layer = call_layer
    method = modules["method"]
    for number, batch in enumerate(batches(spec, sentences, method)):
        if number > 0 and isinstance(batch[0], str):
            batch = [sentence[: 20 * number] for sentence in batch]
        trainer.optimise(method, modules["components"], optimizer, batch, "bf16")

    assert len(graph_calls) == len(layer_calls) > 0
    assert len(graphs) <= GRAPHS[case]


def plain_and_compiled(spec, steps):
    """Compute steps without dropout, first without torch.compile, then with it."""
    plain, _ = assembled(spec)
    turn_dropout_off(plain)
    plain_steps = losses_and_gradients(plain, steps)

    compiled, _ = assembled(spec)
    turn_dropout_off(compiled)
    compiled["method"].encoder.compile_layers()
    return plain_steps, losses_and_gradients(compiled, steps)


@pytest.mark.slow
def test_compiled_layers_give_the_same_losses(make_spec, sentences, tmp_path, monkeypatch):
    """Batches have several lengths and sizes. Compiled code is kept in runs/, for other jobs."""
    torch._dynamo.reset()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", default_cache_dir())  # so that it is restored
    monkeypatch.setattr("csebench.model.encoder.RUNS", tmp_path)
    steps = [
        sentences[:8],
        [sentence[:60] for sentence in sentences[8:12]],
        [sentence[:20] for sentence in sentences[12:18]],
    ]

    plain, compiled = plain_and_compiled(make_spec("simcse"), steps)

    assert_equal(compiled, plain, rtol=1e-3)
    assert list((tmp_path / ".inductor").iterdir())


def fail(*_, **__):
    raise RuntimeError("Python.h: No such file or directory\ncompilation terminated.")


def fail_in_the_backward_pass(graph, inputs, **_):
    backend = aot_autograd(fw_compiler=lambda forward, _: forward, bw_compiler=fail)
    return backend(graph, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", [fail, fail_in_the_backward_pass])
@torch._dynamo.config.patch(disable=False)
def test_a_failed_compilation_is_a_line_and_the_step_is_made(
    compiler, make_spec, sentences, monkeypatch, caplog
):
    """Compilation fails in this way if Python's headers are missing."""
    torch._dynamo.reset()  # what other tests compiled
    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", compiler)

    plain, compiled = plain_and_compiled(make_spec("simcse"), [sentences[:8]])

    torch._dynamo.reset()
    assert torch.equal(compiled.losses, plain.losses)
    lines = []
    for record in caplog.records:
        if record.name == "torch._dynamo.convert_frame":
            lines.append(record.getMessage())
    (line,) = lines
    assert "layers run as they are" in line
    assert line.endswith("Python.h: No such file or directory")


def test_rows_are_the_tokenizers(tiny_bert, sentences):
    """Remembered ids are cut at any length as the tokenizer cuts."""
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    texts = [*sentences[:20], "a long walk along the river " * 60]

    def ids_by_length():
        return {length: encoder.ids(texts, length) for length in (4, 8, 32, None)}

    expected = ids_by_length()
    encoder.known_ids = {}
    assert ids_by_length() == expected
    # only what is remembered is left
    encoder.tokenizer = SimpleNamespace(model_max_length=encoder.tokenizer.model_max_length)
    assert ids_by_length() == expected


@pytest.mark.parametrize(
    ("lengths", "rows"),
    [([512] * 300, [128, 128, 44]), ([8] * 300, [200, 100]), ([10**6] * 2, [1, 1])],
)
def test_a_batch_has_no_more_tokens_than_fit_in_memory(lengths, rows):
    assert [batch.stop - batch.start for batch in split(lengths, 200)] == rows
