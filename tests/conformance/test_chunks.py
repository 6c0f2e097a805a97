"""A batch in chunks has the loss and the gradients of the whole.

`pytest tests/conformance/test_chunks.py -k NAME`
"""

from typing import NamedTuple

import pytest
import torch
from test_conformance import PLAIN, RUNS, TRAINED, assembled, batches, runs
from tiny_runs import weights
from torch import nn

from csebench.model import chunks
from csebench.model.encoder import Encoder
from csebench.train import trainer

CHUNK = 5  # divides no batch of these tests
# together they have every kind of forward pass; the others are slow tests, because there are many
EVERY_PASS = ("simcse", "diffcse", "infocse", "msse", "simcse+ami")


def slow_except(quick, ids):
    """Mark the runs as slow that are not among the quick ones."""
    return [run if run in quick else pytest.param(run, marks=pytest.mark.slow) for run in ids]


class Steps(NamedTuple):
    """The results of some steps."""

    losses: torch.Tensor  # (steps,)
    gradients: list[dict[str, torch.Tensor]]  # of each step, by parameter


def two_steps(spec, sentences, chunk_size, dropout=True, precision="fp32"):
    """Compute the first two steps of a run. The second one has a queue, if the method has any."""
    modules, _ = assembled(spec, chunk_size)
    if not dropout:
        turn_dropout_off(modules)
    first_two = batches(spec, sentences, modules["method"])[:2]
    return losses_and_gradients(modules, first_two, precision)


def losses_and_gradients(modules, steps, precision="fp32"):
    """Compute steps without learning anything: the learning rate is 0.

    Args:
        steps: a batch for each step.
    """
    trained = [weight for weight in modules.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.0)
    losses = []
    gradients = []

    def note_gradients(*_):
        of_step = {}
        for name, weight in modules.named_parameters():
            if weight.grad is not None:
                of_step[name] = weight.grad
        gradients.append(of_step)

    optimizer.register_step_pre_hook(note_gradients)
    method = modules["method"]
    components = modules["components"]
    for number, batch in enumerate(steps):
        torch.manual_seed(number)  # masks, edits and augmentations are drawn on the host
        losses.append(trainer.optimise(method, components, optimizer, batch, precision))
    return Steps(torch.stack(losses).float().cpu(), gradients)


def turn_dropout_off(modules):
    for module in modules.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        if isinstance(module, Encoder):
            module.set_dropout = lambda _: None


def assert_equal(actual, expected, rtol=1e-4, atol=1e-6, gradient=1e-3):
    """Compare the losses and the gradients of steps.

    The default tolerances are for the rounding of fp32, which batch normalisation over a few rows
    magnifies.

    Args:
        actual, expected: `Steps`.
        rtol, atol: tolerance of the losses.
        gradient: largest difference of two gradients, as a share of the expected one.
    """
    torch.testing.assert_close(actual.losses, expected.losses, rtol=rtol, atol=atol)
    for one, other in zip(actual.gradients, expected.gradients, strict=True):
        assert one.keys() == other.keys()
        expected_vector = as_vector(other.values())
        difference = float((as_vector(one.values()) - expected_vector).norm())
        size = float(expected_vector.norm())
        # the size is 0 if equal views need no training
        assert difference < gradient * size + 1e-4, (difference, size)


def as_vector(tensors):
    return torch.cat([tensor.flatten().cpu() for tensor in tensors])


def replayed_and_kept(spec, sentences, monkeypatch, precision="fp32"):
    """Compute two steps in chunks, once replayed and once kept in memory.

    Chunks that are kept have the same masks, and nothing is computed again.
    """
    replayed = two_steps(spec, sentences, CHUNK, precision=precision)

    def keep_in_memory(function, *rows, use_reentrant):
        return function(*rows)

    monkeypatch.setattr(chunks, "checkpoint", keep_in_memory)
    kept = two_steps(spec, sentences, CHUNK, precision=precision)
    return replayed, kept


@runs(slow_except(EVERY_PASS, TRAINED))
def test_without_dropout_it_is_the_plain_step(run, make_spec, sentences):
    spec = make_spec(**RUNS[run])
    in_chunks = two_steps(spec, sentences, CHUNK, dropout=False)
    plain = two_steps(spec, sentences, None, dropout=False)
    assert_equal(in_chunks, plain)


@runs(slow_except(EVERY_PASS, PLAIN))
def test_dropout_is_replayed(run, make_spec, sentences, monkeypatch):
    replayed, kept = replayed_and_kept(make_spec(**RUNS[run]), sentences, monkeypatch)
    assert_equal(replayed, kept)


def test_gradients_of_chunks_are_summed_in_fp32(make_spec, sentences):
    """Chunks share no weights that were rounded to bf16 once for all chunks. The gradients of such
    weights would be rounded sums."""
    torch.manual_seed(0)
    encoder = Encoder.load(make_spec("simcse").encoder, 0.0).train()
    batch = encoder.tokenize(sentences[:64], 16)

    def gradient(chunk_size, precision):
        encoder.chunk_size = chunk_size
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            states = encoder(batch, "cls_before_pooler").output.last_hidden_state
        states[..., :5].float().sum().backward()
        gradients = [weight.grad for weight in encoder.parameters() if weight.grad is not None]
        encoder.zero_grad()
        return as_vector(gradients)

    exact = gradient(None, "fp32")
    plain = gradient(None, "bf16")
    chunked = gradient(1, "bf16")
    assert (chunked - exact).norm() < 1.1 * (plain - exact).norm()


@pytest.mark.parametrize("factors", ["by feature", "by token"])
def test_a_chunk_has_the_factors_of_its_rows_on_the_embeddings(factors, make_spec, sentences):
    encoder = Encoder.load(make_spec("simcse").encoder, 0.0).train()
    batch = encoder.tokenize(sentences[:11], 16)
    rows, length = batch["input_ids"].shape
    if factors == "by feature":
        scale = torch.rand(rows, 1, encoder.embedding_size)
    else:
        scale = torch.rand(rows, length, 1)

    def states(chunk_size, scale):
        encoder.chunk_size = chunk_size
        return encoder(batch, "avg", scale=scale).output.last_hidden_state

    whole = states(None, scale)
    torch.testing.assert_close(states(CHUNK, scale), whole)
    assert not torch.allclose(states(None, None), whole)


def test_a_chunk_is_in_memory_at_a_time(make_spec, sentences):
    """Compare the bytes that autograd keeps after the forward pass, for the backward pass of 64
    sentences."""
    encoder = Encoder.load(make_spec("simcse").encoder).train()
    batch = encoder.tokenize(sentences[:64], 32)

    def kept_bytes(chunk_size):
        sizes = {}  # by address

        def note_size(tensor):
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = storage.nbytes()
            return tensor

        encoder.chunk_size = chunk_size
        with torch.autograd.graph.saved_tensors_hooks(note_size, lambda tensor: tensor):
            encoder(batch, "cls_before_pooler").output.last_hidden_state.sum()
        return sum(sizes.values())

    assert kept_bytes(8) < kept_bytes(None) / 8


# ---------------------------------------------------------------- a run


@pytest.mark.parametrize("chunk_size", [5, 16])
def test_a_run_says_in_which_chunks_it_was_computed(
    chunk_size, make_spec, finished, train, tmp_path
):
    """The provenance of the run says so. Chunks change the masks, but not the id of the run."""
    spec = make_spec("simcse")
    whole = finished("simcse")

    report = train(spec, tmp_path, chunk_size=chunk_size)

    assert report["run"] == spec.run_id
    assert report["provenance"]["chunk_size"] == chunk_size
    # a batch has 8 sentences in 16 rows: if it fits in a chunk, it is computed as it is
    is_as_whole = weights(tmp_path) == weights(whole)
    assert is_as_whole == (chunk_size == 16)
