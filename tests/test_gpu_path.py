"""The path that a GPU takes, where there is none: a step on a made-up device, compiled layers, token files.

`Gpu` lets every operation on a device of PyTorch's own for extensions go by without data, and raises where the host
would wait for it or a tensor of the host would be mixed with one of the device.
"""

import numpy as np
import pytest
import torch
from test_conformance import RUNS, TRAINED, runs
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from csebench import trainer
from csebench.encoder import Encoder, SentenceEncoder
from csebench.registry import declaration
from csebench.schema import EncoderRef
from csebench.tokens import Tokens

DEVICE = "madeup"
COPIES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class Waits(Exception):
    pass


class Gpu(TorchDispatchMode):
    """Operations of the host are done; those of the device have shapes and types only."""

    def __init__(self):
        super().__init__()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.setting_up = False  # then waiting is fine

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        places = {x.device.type for x in tensors if x.dim() or x.device.type == DEVICE}
        if kwargs.get("device") is not None:
            places.add(kwargs["device"].type)
        if DEVICE not in places:
            return func(*args, **kwargs)
        if len(places) == 2 and not self.setting_up:
            to_device = func in COPIES and (args[0].device.type == DEVICE) == (func is COPIES[1])
            if not (to_device and (kwargs.get("non_blocking") or True in args[2:])):
                raise Waits(f"{func} {[tuple(x.shape) for x in tensors]}: the host waits, or devices are mixed")
        args, kwargs = tree_map_only(torch.Tensor, self.faked, (args, kwargs))
        with self.fake:
            return func(*args, **kwargs)

    def faked(self, tensor):
        return tensor if isinstance(tensor, FakeTensor) else self.fake.from_tensor(tensor)


@pytest.fixture
def gpu(monkeypatch):
    if not hasattr(torch, DEVICE):
        _setup_privateuseone_for_python_backend(DEVICE)
        getattr(torch, DEVICE).get_amp_supported_dtype = lambda: [torch.bfloat16]
    return Gpu()


def on_the_device(spec, gpu):
    """A run's method, components and optimiser on the made-up device."""
    encoder = Encoder.load(spec.encoder, spec.params["dropout"], spec.params["pooler"] == "cls")
    plugins = {name: component.params for name, component in spec.components.items()}
    state, _ = trainer.assemble(spec.method, encoder, spec.params, plugins)
    gpu.setting_up = True
    with gpu:
        state.to(DEVICE)
    gpu.setting_up = False
    assert {t.device.type for t in (*state.parameters(), *state.buffers())} == {DEVICE}
    return state, trainer.make_optimizer([w for w in state.parameters() if w.requires_grad], state["method"].p)


WAITING = {k for k in TRAINED if k.startswith("micse-code")}  # form code of ami counts what dropout leaves


@runs([k for k in TRAINED if k not in WAITING])
def test_no_step_waits_for_the_device(run, gpu, make_spec, sentences):
    spec = make_spec(**RUNS[run])
    state, optimizer = on_the_device(spec, gpu)
    method, components = state["method"], state["components"]
    batch = sentences[: method.sentences_per_step()]
    if declaration(spec.method).corpus == "triplets":
        batch = [(s, s, s) for s in batch]
    with gpu:
        for _ in range(2):  # the second with a queue
            trainer.optimise(method, components, optimizer, batch, "fp32")


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
            assert [hasattr(layer, "_compiled_call_impl") for layer in encoder.stack] == [True] * 3
            assert [layer._compiled_call_impl is not None for layer in encoder.stack] == [True, True, False]
        batches = [sentences[:8], sentences[8:16], [s[:20] for s in sentences[16:24]], sentences[24:28]]
        losses[compiled] = [float(trainer.optimise(state["method"], [], optimizer, b, "fp32")) for b in batches]
        vectors = SentenceEncoder(encoder, "cls_before_pooler").embed(sentences[:5])
        losses[compiled] += vectors[:, 0].tolist()
    assert losses[True] == pytest.approx(losses[False], rel=1e-3)


# ---------------------------------------------------------------- token ids


def test_rows_are_the_tokenizers(tiny_bert, sentences):
    """Cut at any length as the tokenizer cuts, from memory and from a corpus file."""
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    some = [*sentences[:20], "a long walk along the river " * 60]
    wanted = {length: encoder.ids(some, length) for length in (4, 8, 32, None)}
    encoder.tokens = Tokens(encoder.tokenizer, encoder.longest)
    for _ in range(2):  # the second from what is remembered
        assert {length: encoder.ids(some, length) for length in wanted} == wanted


def test_a_corpus_is_tokenised_once_for_all_runs(tiny_bert, sentences, tmp_path, monkeypatch):
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    wanted, asked = encoder.ids(sentences), []
    plain = Tokens._tokenise
    monkeypatch.setattr(Tokens, "_tokenise", lambda self, texts: asked.append(len(texts)) or plain(self, texts))
    for _ in range(2):
        encoder.tokens = Tokens(encoder.tokenizer, encoder.longest)
        encoder.tokens.keep(sentences, tmp_path)
        assert encoder.ids(sentences) == wanted
        assert isinstance(encoder.tokens.ids, np.memmap)
    assert asked == [len(sentences)]
    encoder.tokens.keep(sentences[1:], tmp_path)  # another corpus
    assert len([p for p in tmp_path.iterdir() if p.is_dir()]) == len(asked) == 2


def test_a_long_run_keeps_its_corpus(make_spec, train, tmp_path, monkeypatch):
    """With the same weights at the end as one that tokenises as it goes."""
    made = {}
    for bound in (10**6, 10):
        monkeypatch.setattr("csebench.trainer.IN_MEMORY", bound)
        monkeypatch.setattr("csebench.tokens.FOLDER", tmp_path / "tokens")
        train(make_spec("simcse", params={"batch_size": 128}), tmp_path / str(bound))
        made[bound] = (tmp_path / str(bound) / "model/model.safetensors").read_bytes()
    assert made[10] == made[10**6]
    assert list((tmp_path / "tokens").glob("*/ids.npy"))
