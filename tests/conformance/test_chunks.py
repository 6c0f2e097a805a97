"""A batch in chunks has the loss and the gradients of the whole: `pytest
tests/conformance/test_chunks.py -k NAME`."""

import torch
from test_conformance import PLAIN, RUNS, TRAINED, assembled, batches, runs
from tiny_runs import weights
from torch import nn

from csebench.model import chunks
from csebench.model.encoder import Encoder
from csebench.train import trainer

CHUNK = 5  # divides no batch of these tests


def two_steps(spec, sentences, chunk_size, dropout=True, precision="fp32"):
    """`losses_and_gradients` of a run's first two steps, the second with a queue."""
    modules, _ = assembled(spec, chunk_size)
    if not dropout:
        turn_dropout_off(modules)
    return losses_and_gradients(modules, batches(spec, sentences, modules["method"])[:2], precision)


def losses_and_gradients(modules, steps, precision="fp32"):
    """Losses of steps, and their gradients by parameter. Learns nothing: rate 0."""
    optimizer = torch.optim.SGD([w for w in modules.parameters() if w.requires_grad], lr=0.0)
    losses, gradients = [], []

    def note(*_):
        gradients.append(
            {name: w.grad for name, w in modules.named_parameters() if w.grad is not None}
        )

    optimizer.register_step_pre_hook(note)
    for number, batch in enumerate(steps):
        torch.manual_seed(number)  # masks, edits and augmentations are drawn on the host
        losses.append(
            trainer.optimise(modules["method"], modules["components"], optimizer, batch, precision)
        )
    return torch.stack(losses).float().cpu(), gradients


def turn_dropout_off(modules):
    for module in modules.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        if isinstance(module, Encoder):
            module.set_dropout = lambda _: None


def assert_equal(first, second, rtol=1e-4, atol=1e-6, gradient=1e-3):
    """Within the rounding of fp32, unless told, which batch normalisation over a few rows
    magnifies."""
    torch.testing.assert_close(first[0], second[0], rtol=rtol, atol=atol)
    for one, other in zip(first[1], second[1], strict=True):
        assert one.keys() == other.keys()
        one, other = (
            torch.cat([g.flatten().cpu() for g in gradients.values()]) for gradients in (one, other)
        )
        difference, size = float((one - other).norm()), float(other.norm())
        # 0 where equal views need no training
        assert difference < gradient * size + 1e-4, (difference, size)


def replayed_and_kept(spec, sentences, monkeypatch, precision="fp32"):
    """Two steps in chunks, and in the same chunks with the same masks kept in memory: nothing is
    computed again."""
    replayed = two_steps(spec, sentences, CHUNK, precision=precision)
    monkeypatch.setattr(
        chunks, "checkpoint", lambda function, *rows, use_reentrant: function(*rows)
    )
    return replayed, two_steps(spec, sentences, CHUNK, precision=precision)


@runs(TRAINED)
def test_without_dropout_it_is_the_plain_step(run, make_spec, sentences):
    spec = make_spec(**RUNS[run])
    assert_equal(*(two_steps(spec, sentences, size, dropout=False) for size in (CHUNK, None)))


@runs(PLAIN)
def test_dropout_is_replayed(run, make_spec, sentences, monkeypatch):
    assert_equal(*replayed_and_kept(make_spec(**RUNS[run]), sentences, monkeypatch))


def test_gradients_of_chunks_are_summed_in_fp32(make_spec, sentences):
    """Under bf16: chunks share no weights that were rounded once for all, whose gradients would
    be rounded sums."""
    torch.manual_seed(0)
    encoder, gradients = Encoder.load(make_spec("simcse").encoder, 0.0).train(), []
    batch = encoder.tokenize(sentences[:64], 16)
    for size, precision in ((None, "fp32"), (None, "bf16"), (1, "bf16")):
        encoder.chunk_size = size
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            states = encoder(batch, "cls_before_pooler").output.last_hidden_state
        states[..., :5].float().sum().backward()
        gradients.append(
            torch.cat([p.grad.flatten() for p in encoder.parameters() if p.grad is not None])
        )
        encoder.zero_grad()
    exact, plain, chunked = gradients
    assert (chunked - exact).norm() < 1.1 * (plain - exact).norm()


def test_a_chunk_is_in_memory_at_a_time(make_spec, sentences):
    """What a backward pass will read of 64 sentences: bytes that autograd keeps after the
    forward pass."""
    encoder = Encoder.load(make_spec("simcse").encoder).train()
    batch = encoder.tokenize(sentences[:64], 32)

    def kept_bytes(chunk_size):
        sizes = {}

        def note(tensor):
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        encoder.chunk_size = chunk_size
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            encoder(batch, "cls_before_pooler").output.last_hidden_state.sum()
        return sum(sizes.values())

    assert kept_bytes(8) < kept_bytes(None) / 8


# ---------------------------------------------------------------- a run


def test_a_run_says_how_it_was_computed(make_spec, finished, train, tmp_path):
    """In its provenance; the id is the same, the masks are others. Batches that fit are computed
    as they are."""
    spec, whole = make_spec("simcse"), finished("simcse")  # 8 sentences, 16 rows
    for size in (5, 16):
        report = train(spec, tmp_path / str(size), chunk_size=size)
        assert (report["run"], report["provenance"]["chunk_size"]) == (spec.run_id, size)
    assert weights(tmp_path / "16") == weights(whole) != weights(tmp_path / "5")
