"""A batch in chunks has the loss and the gradients of the whole: `pytest tests/conformance/test_chunks.py -k NAME`."""

import pytest
import torch
from test_conformance import PLAIN, RUNS, TRAINED, assembled, batches, runs
from tiny_runs import weights
from torch import nn

from csebench.base.errors import BadInput
from csebench.model import chunks
from csebench.model.encoder import Encoder
from csebench.train import trainer

CHUNK = 5  # divides no batch of these tests


def two_steps(spec, sentences, chunk_size, dropout=True, precision="fp32"):
    """(losses, gradients by parameter) of a run's first two steps, the second with a queue."""
    modules, optimizer = assembled(spec, chunk_size)
    if not dropout:
        turn_dropout_off(modules)
    batch, *_ = batches(spec, sentences, modules["method"])
    gradients, clear = [], optimizer.zero_grad

    def keep(**kwargs):
        gradients.append({name: p.grad.clone() for name, p in modules.named_parameters() if p.grad is not None})
        clear(**kwargs)

    optimizer.zero_grad = keep
    losses = []
    for step in range(2):
        torch.manual_seed(step)
        losses.append(trainer.optimise(modules["method"], modules["components"], optimizer, batch, precision))
    return torch.stack(losses), gradients


def turn_dropout_off(modules):
    for module in modules.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        if isinstance(module, Encoder):
            module.set_dropout = lambda _: None


def assert_equal(first, second):
    """Within the rounding of fp32, which batch normalisation over a few rows magnifies."""
    torch.testing.assert_close(first[0], second[0], rtol=1e-4, atol=1e-6)
    for one, other in zip(first[1], second[1], strict=True):
        assert one.keys() == other.keys()
        one, other = (torch.cat([g.flatten() for g in gradients.values()]) for gradients in (one, other))
        difference, size = float((one - other).norm()), float(other.norm())
        assert difference < 1e-3 * size + 1e-4, (difference, size)  # 0 where equal views need no training


@runs(TRAINED)
def test_without_dropout_it_is_the_plain_step(run, make_spec, sentences):
    spec = make_spec(**RUNS[run])
    assert_equal(*(two_steps(spec, sentences, size, dropout=False) for size in (CHUNK, None)))


@runs(PLAIN)
def test_dropout_is_replayed(run, make_spec, sentences, monkeypatch):
    """Against the same chunks, with the same masks, kept in memory: nothing is computed again."""
    spec = make_spec(**RUNS[run])
    chunked = two_steps(spec, sentences, CHUNK)
    monkeypatch.setattr(chunks, "checkpoint", lambda function, *rows, use_reentrant: function(*rows))
    assert_equal(chunked, two_steps(spec, sentences, CHUNK))


def test_gradients_of_chunks_are_summed_in_fp32(make_spec, sentences):
    """Under bf16: chunks share no weights that were rounded once for all, whose gradients would be rounded sums."""
    torch.manual_seed(0)
    encoder, gradients = Encoder.load(make_spec("simcse").encoder, 0.0).train(), []
    batch = encoder.tokenize(sentences[:64], 16)
    for size, precision in ((None, "fp32"), (None, "bf16"), (1, "bf16")):
        encoder.use_chunks(size)
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            states = encoder(batch, "cls_before_pooler").output.last_hidden_state
        states[..., :5].float().sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None]))
        encoder.zero_grad()
    exact, plain, chunked = gradients
    assert (chunked - exact).norm() < 1.1 * (plain - exact).norm()


def test_a_chunk_is_in_memory_at_a_time(make_spec, sentences):
    """What a backward pass will read of 64 sentences: bytes that autograd keeps after the forward pass."""
    encoder = Encoder.load(make_spec("simcse").encoder).train()
    batch, kept = encoder.tokenize(sentences[:64], 32), {}
    for size in (None, 8):
        encoder.use_chunks(size)
        storages = {}

        def count(tensor, storages=storages):
            storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            encoder(batch, "cls_before_pooler").output.last_hidden_state.sum()
        kept[size] = sum(storages.values())
    assert kept[8] < kept[None] / 8


# ---------------------------------------------------------------- a run


def test_a_run_says_how_it_was_computed(make_spec, train, tmp_path):
    """In its provenance; the id is the same, the masks are others. Batches that fit are computed as they are."""
    spec = make_spec("simcse")  # 8 sentences, 16 rows
    made = {size: train(spec, tmp_path / str(size), chunk_size=size) for size in (None, 5, 16)}
    assert {size: report["provenance"]["chunk_size"] for size, report in made.items()} == {size: size for size in made}
    assert len({report["run"] for report in made.values()}) == 1
    assert weights(tmp_path / "16") == weights(tmp_path / "None") != weights(tmp_path / "5")


def test_batch_normalisation_in_the_encoder_is_refused(make_spec):
    spec = make_spec("simcse")
    encoder = Encoder.load(spec.encoder)
    encoder.model.embeddings.LayerNorm = nn.BatchNorm1d(encoder.size)
    with pytest.raises(BadInput, match=r"--chunk-size 5: embeddings\.LayerNorm .* normalises over the batch"):
        trainer.assemble("simcse", encoder, spec.params, {}, CHUNK)
    trainer.assemble("simcse", encoder, spec.params, {})
