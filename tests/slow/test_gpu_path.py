"""The path that a GPU takes, where there is none: steps that do not wait for it, compiled layers, token ids."""

import subprocess
import sys

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.runtime.cache_dir_utils import default_cache_dir

from csebench.base.project import ROOT
from csebench.model.encoder import Encoder
from csebench.model.sentence_encoder import SentenceEncoder
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
def test_compiled_layers_give_the_same_losses(make_spec, sentences, tmp_path, monkeypatch):
    """Lengths, sizes and an evaluation between: SimCSE's steps with and without torch.compile, without dropout. What
    is compiled is kept in runs/, for other jobs."""
    torch._dynamo.reset()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", default_cache_dir())  # so that it is restored
    monkeypatch.setattr("csebench.model.encoder.RUNS", tmp_path)
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
    assert [*(tmp_path / ".inductor").iterdir()]


def fail(*_, **__):
    raise RuntimeError("Python.h: No such file or directory\ncompilation terminated.")


def fail_in_the_backward_pass(graph, inputs, **_):
    return aot_autograd(fw_compiler=lambda forward, _: forward, bw_compiler=fail)(graph, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", [fail, fail_in_the_backward_pass])
@torch._dynamo.config.patch(disable=False)
def test_a_failed_compilation_is_a_line_and_the_step_is_made(compiler, make_spec, sentences, monkeypatch, caplog):
    """As without Python's headers."""
    torch._dynamo.reset()  # of what other tests compiled
    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", compiler)
    losses = {}
    for compiled in (False, True):
        torch.manual_seed(0)
        encoder = Encoder.load(make_spec("simcse").encoder, 0.0)
        state, optimizer = trainer.assemble("simcse", encoder, make_spec("simcse").params, {})
        if compiled:
            encoder.compile_layers()
        losses[compiled] = float(trainer.optimise(state["method"], [], optimizer, sentences[:8], "fp32"))
    torch._dynamo.reset()
    assert losses[True] == losses[False]
    (line,) = [record.getMessage() for record in caplog.records if record.name == "torch._dynamo.convert_frame"]
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
