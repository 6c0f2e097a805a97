"""The training loop's promises, and the facts of the components that a run relies on."""

import os
import signal
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from tiny_runs import weights

from csebench import cli
from csebench.base.errors import BadInput, RunFailed, Stopped, Untrainable
from csebench.cli import run as run_verbs
from csebench.data.sts import Pairs
from csebench.model.encoder import Encoder, head_of
from csebench.model.layers import additive, bert_layer
from csebench.plan.declarations import EncoderRef
from csebench.plan.registry import COMPONENTS, declaration, fill, load
from csebench.train import loop, trainer
from csebench.train.method import View, Views
from methods.components.ami import aligned
from methods.simcse import Method


def load_encoder(folder):
    return Encoder.load(EncoderRef(name=str(folder), revision=""))


def make_method(name, folder, **params):
    """A method over a fresh tiny encoder, with its declared hyper-parameters but for `params`."""
    torch.manual_seed(0)
    return load(name)(load_encoder(folder), fill(declaration(name), params, name))


def make_component(name, method, **params):
    return load(name, COMPONENTS)(method, fill(declaration(name, COMPONENTS), params, name))


# ---------------------------------------------------------------- what stops a run


@pytest.mark.parametrize(("value", "calls"), [(float("nan"), 3), (float("inf"), 7)])
def test_a_loss_that_is_not_finite_stops_the_run_for_good(value, calls, make_spec, train, tmp_path, monkeypatch):
    """It leaves nothing behind that a second try would start from."""
    spec, loss = make_spec("simcse", params={"steps": 8, "evaluate_every": 4}), Method.loss
    left = [1.0] * (calls - 1) + [value]
    with monkeypatch.context() as patched:
        patched.setattr(Method, "loss", lambda self, views: loss(self, views) * (left.pop(0) if left else 1.0))
        with pytest.raises(Untrainable, match=rf"{spec.run_id}.*{value} at step {calls} .*rate 3e-05"):
            train(spec, tmp_path / "run", checkpoint_seconds=0)
    assert not {"model", "train.json", ".checkpoint.json"} & {path.name for path in (tmp_path / "run").iterdir()}
    assert train(spec, tmp_path / "run")["resumed_at"] is None


@pytest.mark.parametrize(("step", "name"), [(7, "SIGTERM"), (12, "SIGINT")])  # between two readings; the last one
def test_a_signal_to_end_loses_nothing(step, name, make_spec, train, tmp_path, monkeypatch):
    """The step is finished, the checkpoint written, and the next try ends as a run that was left alone."""
    spec, number = make_spec("simcse", params={"steps": 12, "evaluate_every": 4}), signal.Signals[name]
    whole = train(spec, tmp_path / "whole")
    batch_at, handler = trainer.batch_at, signal.getsignal(number)

    def asked_to_end(at, *args):
        if at == step - 1:
            os.kill(os.getpid(), number)
        return batch_at(at, *args)

    with monkeypatch.context() as patched:
        patched.setattr(trainer, "batch_at", asked_to_end)
        with pytest.raises(Stopped, match=f"{spec.run_id}.*{name} after step {step}") as stopped:
            train(spec, tmp_path / "run")
    assert stopped.value.interrupted == (name == "SIGINT") and signal.getsignal(number) is handler
    assert (tmp_path / "run" / ".checkpoint.json").exists() and not (tmp_path / "run" / "model").exists()
    resumed = train(spec, tmp_path / "run")
    assert resumed["resumed_at"] == step
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert all(resumed[fact] == whole[fact] for fact in ("curve", "losses", "best_dev"))


ENDS = [(KeyboardInterrupt(), 130), (Stopped("SIGINT", interrupted=True), 130), (Stopped("SIGTERM"), 1)]


@pytest.mark.parametrize(("error", "code"), ENDS)
def test_an_interrupted_command_says_so_in_one_line(error, code, monkeypatch, capsys):
    monkeypatch.setattr(run_verbs, "work", Mock(side_effect=error))
    assert cli.main(["work", "run"]) == code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_files_that_are_not_those_of_the_spec(make_spec, train, tmp_path, corpus):
    """Wrong by one byte, another dev set, no encoder, too long: refused before anything is written."""
    other, spec = tmp_path / "other.txt", make_spec("simcse")
    other.write_bytes(corpus.read_bytes()[:-2] + b"!\n")
    nowhere = spec.encoder.model_copy(update={"name": str(tmp_path / "nowhere")})
    for wrong, file, message in (
        (spec, other, r"other\.txt.*sha256"),
        (make_spec("whitening"), None, "whitening needs a corpus"),
        (spec.model_copy(update={"dev_sha256": "0" * 64}), ..., r"sts-dev\.csv.*sha256"),
        (spec.model_copy(update={"encoder": nowhere}), ..., "nowhere"),
        (make_spec("simcse", params={"max_length": 129}), ..., r"max_length 129: .* reads 128 tokens"),
    ):
        with pytest.raises(BadInput, match=message):
            train(wrong, tmp_path / "run", file)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- steps


def test_what_a_run_reports(make_spec, train, tmp_path, monkeypatch):
    """The last step is evaluated too; a loss is the mean since the reading before, at most ten steps ago; what a
    method learns besides is read at every evaluation."""
    monkeypatch.setattr(Method, "learned", lambda method: {"temperature": method.p.temperature})
    spec = make_spec("simcse", params={"steps": 13, "evaluate_every": 12})
    report = train(spec, tmp_path / "run")
    assert [point["step"] for point in report["curve"]] == [12, 13]
    assert all(point["learned"] == {"temperature": 0.05} for point in report["curve"])
    assert [step for step, _ in report["losses"]] == [10, 12, 13]
    facts = ("steps", "sentences", "processes", "resumed_at", "run")
    assert [report[fact] for fact in facts] == [13, 400, 1, None, spec.run_id]


def test_losses_are_read_as_their_mean(monkeypatch):
    task = SimpleNamespace(name="run", peak_learning_rate=1.0)
    state = SimpleNamespace(pending=[*torch.tensor([1.0, 2.0, 6.0])], step=9, losses=[])
    loop.read_losses(task, state)
    assert state.losses == [[9, 3.0]] and state.pending == []


def test_learning_rates_and_gradients_of_a_run(make_spec, train, tmp_path, monkeypatch):
    """Linear warm-up and decay from the first step on; gradients are clipped at `clip`, and cleared after a step."""
    rates, norms, make = [], [], trainer.make_optimizer

    def watched(weights, method):
        optimizer = make(weights, method)

        def note(*_):
            rates.append(optimizer.param_groups[0]["lr"])
            norms.append(float(torch.cat([w.grad.flatten() for w in weights if w.grad is not None]).norm()))

        optimizer.register_step_pre_hook(note)
        optimizer.register_step_post_hook(lambda *_: norms.append(norms[-1]))
        return optimizer

    monkeypatch.setattr(trainer, "make_optimizer", watched)
    params = {"steps": 6, "evaluate_every": 6, "warmup_steps": 2, "learning_rate": 1.0, "clip": 0.01}
    with pytest.raises(Untrainable):  # so high a rate
        train(make_spec("simcse", params=params), tmp_path / "run")
    assert rates == pytest.approx([0.5, 1, 1, 0.75, 0.5, 0.25])
    assert norms == pytest.approx([0.01] * 12, rel=1e-3)


@pytest.mark.parametrize(("name", "every"), [("simcse", False), ("ct", False), ("mirror_bert", True)])
def test_weight_decay_leaves_out_biases_and_layernorm(name, every, make_spec, tiny_bert):
    """As the trainer of transformers does; Mirror-BERT's code decays every weight. Without gradients, a step is decay
    alone."""
    spec = make_spec(name, params={"weight_decay": 0.1, "learning_rate": 0.5})
    modules, optimizer = trainer.assemble(spec.method, load_encoder(tiny_bert), spec.params, {})
    trained = {key: w for key, w in modules.named_parameters() if w.requires_grad}
    for weight in trained.values():
        weight.data.fill_(1)
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    decayed = {key for key, w in trained.items() if not (w == 1).all()}
    spared = {key for key in trained if "bias" in key or "LayerNorm" in key}
    assert spared and decayed == (set(trained) if every else set(trained) - spared)
    assert {group["weight_decay"] for group in optimizer.param_groups} == ({0.1} if every else {0.1, 0.0})


def test_rmsprop_has_the_defaults_of_tensorflow(tiny_bert):
    method = make_method("ct", tiny_bert)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer, mean, wanted = trainer.make_optimizer([weight], method), 0.0, 0.0
    for gradient in (1e-6, 2.0, -1.0):
        weight.grad = torch.tensor([gradient])
        optimizer.step()
        mean = 0.9 * mean + 0.1 * gradient**2
        wanted -= method.p.learning_rate * gradient / (mean**0.5 + 1e-7)
        assert weight.item() == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize(("n", "size"), [(64, 8), (65, 8), (66, 8), (7, 8), (9, 8)])
def test_an_epoch_shows_every_sentence_once(n, size):
    """In an order of its own, by seed; a last batch is smaller, a single sentence joins the batch before it."""
    sentences = [f"sentence {i}" for i in range(n)]
    batches = max(1, n // size + (n % size > 1))
    epochs = []
    for epoch in range(3):
        seen = [trainer.batch_at(epoch * batches + i, sentences, size, 5) for i in range(batches)]
        assert [len(batch) for batch in seen[:-1]] == [size] * (batches - 1)
        epochs.append([sentence for batch in seen for sentence in batch])
        assert sorted(epochs[-1]) == sorted(sentences)
    assert epochs[0] != epochs[1] != epochs[2]
    assert trainer.batch_at(0, sentences, size, seed=5) != trainer.batch_at(0, sentences, size, seed=6)


@pytest.mark.parametrize("source", ["order", "dropout", "head"])
def test_each_source_has_a_seed_of_its_own(source, make_spec, train, tmp_path):
    """Another seed of one source gives other weights, the same seeds the same ones."""
    spec, same = make_spec("simcse", size=20), {"order": 5, "dropout": 5, "head": 5}
    one, again, other = (spec.model_copy(update={"seeds": s}) for s in (same, {**same}, same | {source: 6}))
    assert one.run_id == again.run_id != other.run_id
    for name, run in (("one", one), ("again", again), ("other", other)):
        train(run, tmp_path / name)
    assert weights(tmp_path / "one") == weights(tmp_path / "again") != weights(tmp_path / "other")


@pytest.mark.parametrize(("rows", "advice"), [(5, "--chunk-size 4, which fits"), (0, "a smaller `batch_size`")])
def test_out_of_memory_names_a_chunk_size_that_fits(rows, advice, make_spec, train, tmp_path, monkeypatch):
    run = Encoder._run

    def limited(self, pooler, dropout, ids, *rest):
        if len(ids) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, pooler, dropout, ids, *rest)

    monkeypatch.setattr(Encoder, "_run", limited)
    with pytest.raises(RunFailed, match=f"8 sentences do not fit in the memory .*{advice}"):
        train(make_spec("simcse"), tmp_path / "run")


# ---------------------------------------------------------------- selection on STS-B dev


@pytest.mark.parametrize(
    ("method", "selection", "points", "best"),
    [
        ("simcse", "best", [0.1, 0.5, 0.5], (4, 0, 0.5)),  # the first of a tie
        ("simcse", "best", [0.1, float("nan"), 0.0], (2, 0, 0.1)),
        ("simcse", "last", [0.9, 0.5, 0.4], (6, 0, 0.4)),
        ("condenser", "best", [0.9, 0.5, 0.4], (6, 0, 0.4)),  # keeps_last
        ("ct", "best", [0.1, 0.2, 0.4, 0.5, 0.3, 0.3], (4, 1, 0.5)),
        ("ct", "last", [0.9, 0.8, 0.7, 0.6, 0.4, 0.5], (6, 1, 0.5)),
        ("ct", "last", [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], (6, 0, 0.5)),
    ],
)
def test_which_weights_are_kept(method, selection, points, best, make_spec, train, tmp_path, monkeypatch):
    """Those of the best evaluation, or of the last; of two encoders the better; they are what is exported."""
    left, seen = [*points], []

    def dev_point(encoder, pooler, dev, precision):
        seen.append({name: weight.clone() for name, weight in encoder.model.state_dict().items()})
        return {"spearman": left.pop(0), "alignment": 0.0, "uniformity": 0.0}

    monkeypatch.setattr(trainer, "dev_point", dev_point)
    report = train(make_spec(method, params={"steps": 6, "selection": selection}), tmp_path / "run")
    assert tuple(report[f"best_{fact}"] for fact in ("step", "encoder", "dev")) == best
    per_step = len(points) // 3
    assert [point["encoder"] for point in report["curve"]] == [*range(per_step)] * 3
    exported = load_encoder(tmp_path / "run" / "model")
    kept = seen[(best[0] // 2 - 1) * per_step + best[1]]
    assert all(torch.equal(kept[name], weight) for name, weight in exported.model.state_dict().items())


def test_a_run_without_a_score_on_dev_has_no_model(make_spec, train, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": float("nan")})
    with pytest.raises(Untrainable, match="STS-B dev gave no score"):
        train(make_spec("simcse"), tmp_path / "run")


def test_figures_on_dev(tiny_bert):
    """Alignment is that of pairs graded above 4, uniformity of all distinct vectors (Wang & Isola 2020)."""
    encoder = load_encoder(tiny_bert).eval()
    pairs = Pairs("all", ["a", "a", "the b", "x y"], ["c c", "a", "a", "z w q"], np.array([5.0, 4.0, 4.5, 1.0]))
    found = trainer.dev_point(encoder, "avg", pairs, "fp32")
    batch = lambda texts: encoder(encoder.tokenize(texts), "avg").output.last_hidden_state.detach()  # noqa: E731
    unit = {
        text: torch.nn.functional.normalize(batch([text])[0].mean(0), dim=0) for text in {*pairs.left, *pairs.right}
    }
    squared = lambda a, b: float((unit[a] - unit[b]).double().square().sum())  # noqa: E731
    texts = sorted(unit)
    spread = [np.exp(-2 * squared(a, b)) for a in texts for b in texts if a != b]
    assert found["alignment"] == pytest.approx((squared("a", "c c") + squared("the b", "a")) / 2, rel=1e-3)
    assert found["uniformity"] == pytest.approx(np.log(np.mean(spread)), rel=1e-3)
    rounded = trainer.dev_point(encoder, "avg", pairs, "bf16")
    assert 0 < abs(rounded["alignment"] - found["alignment"]) < 0.05


# ---------------------------------------------------------------- attention


def view(ids, lengths, maps):
    mask = (torch.arange(maps.shape[-1]) < torch.tensor(lengths)[:, None]).long()
    return View(None, None, {"input_ids": torch.tensor(ids), "attention_mask": mask}, {0: maps})


def test_only_equal_tokens_before_the_first_difference_count():
    """A span mask shifts what is behind it: only the common beginning of the two views is compared."""
    maps = torch.rand(4, 2, 7, 7)
    same = [1, 5, 6, 7, 2, 0, 0]
    one = view([same, same, [1, 5, 6, 2, 0, 0, 0], [1, 5, 6, 7, 8, 9, 2]], [5, 5, 4, 7], maps)
    two = view([same, [1, 5, 9, 7, 2, 0, 0], [1, 5, 6, 2, 0, 0, 0], [1, 5, 6, 2, 0, 0, 0]], [5, 5, 4, 4], maps)
    attention1, attention2, real = aligned(one, two, [0])
    assert real.tolist() == [[i < n for i in range(5)] for n in (5, 2, 4, 3)]  # equal; replaced; padded; shifted
    assert all(torch.equal(kept, maps[:, :, :5, :5]) for kept in (*attention1, *attention2))
    one.same = two.same = torch.tensor([True, False, False, True])  # pairs of different sentences do not count
    attention1, _, real = aligned(one, two, [0])
    assert real.sum(1).tolist() == [5, 3] and torch.equal(attention1[0], maps[[0, 3], :, :5, :5])


def test_each_encoder_keeps_the_attention_asked_for(tiny_bert, sentences):
    """CT: the maps of a view are of the encoder that made it; what two components ask for is kept for both."""
    method = make_method("ct", tiny_bert).eval()
    assert method.encoder(method.encoder.tokenize(sentences[:2])).attention == {}
    make_component("ami", method)
    method.encoder.attention_layers.add(0)
    with torch.no_grad():
        for weight in method.second.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    for made, encoder, layers in zip(method.views(sentences[:15]), method.encoders(), ([0, 2], [2]), strict=True):
        wanted = encoder.model(**made.batch, output_attentions=True).attentions
        assert sorted(made.attention) == layers
        assert all(torch.equal(made.attention[layer], wanted[layer]) for layer in layers)


def test_under_bf16_what_is_compared_entry_by_entry_is_in_fp32(tiny_bert, sentences):
    """Attention maps that AMI reads, and logits whose argmax RTD takes: rounded to bf16 they tie."""
    method = make_method("simcse", tiny_bert).eval()
    rtd, logits = make_component("rtd", method, generator="self").eval(), []
    head_of(rtd.generator).register_forward_hook(lambda _, __, out: logits.append(out))
    batch, attention = method.encoder.tokenize(sentences[:4]), method.encoder.stack[0].attention.self
    states = method.encoder.model.embeddings(input_ids=batch["input_ids"])
    mask = additive(batch["attention_mask"])
    with torch.autocast("cpu", torch.bfloat16):
        _, kept = bert_layer(method.encoder.stack[0], states, mask, keeps=True)
        query, key = (
            p(states).float().unflatten(-1, (4, -1)).transpose(1, 2) for p in (attention.query, attention.key)
        )
        rtd.most_likely(batch["input_ids"], batch["attention_mask"])
    torch.testing.assert_close(kept, (query @ key.mT * attention.scaling + mask).softmax(-1))
    assert logits[0].dtype == torch.float32


# ---------------------------------------------------------------- MoCo


def test_queue_is_first_in_first_out_and_capped(tiny_bert, sentences):
    method = make_method("simcse", tiny_bert).train()
    moco = make_component("moco", method, queue=20)
    assert moco.queue is None
    for step, wanted in enumerate((8, 16, 20, 20)):
        before = moco.queue
        one, _ = method.views(sentences[8 * step : 8 * step + 8])
        moco.after_step(method, Views(one, one))
        assert moco.queue.shape == (wanted, 32)
        if before is not None:  # the newest are at the end, the oldest are gone
            assert torch.equal(moco.queue[:-8], before[len(before) - (wanted - 8) :])


def test_momentum_encoder_moves_towards_the_trained_one(tiny_bert, sentences):
    """By 1 - m of the distance a step, and only it. Its keys are of the first view, behind the shared head."""
    method = make_method("simcse", tiny_bert).train()
    assert make_component("moco", method).momentum.dropout == 0.3
    moco = make_component("moco", method, momentum=0.9, dropout=0.0)
    method.encoder.set_dropout(0.0)
    start = [w.clone() for w in moco.momentum.parameters()]
    one, two = method.view(sentences[:8]), method.view(sentences[8:16])
    with torch.no_grad():  # an optimiser step
        for weight in method.encoder.parameters():
            weight.add_(torch.randn_like(weight))
    online = [w.clone() for w in method.encoder.parameters()]
    moco.momentum.eval()
    moco.after_step(method, Views(one, two))
    torch.testing.assert_close(moco.queue, one.z.detach())
    for slow, fast, now in zip(start, online, moco.momentum.parameters(), strict=True):
        torch.testing.assert_close(now, 0.9 * slow + 0.1 * fast)
    assert all(torch.equal(a, b) for a, b in zip(online, method.encoder.parameters(), strict=True))
    assert moco.momentum.training


def test_a_step_compares_with_every_queue(tiny_bert, sentences, monkeypatch):
    """And tells the method of its end before the components, who enqueue then."""
    method, seen = make_method("simcse", tiny_bert).train(), []
    components = [make_component("moco", method), make_component("moco", method)]
    components[0].queue, components[1].queue = torch.zeros(1, 32), torch.ones(2, 32)
    loss = method.loss
    monkeypatch.setattr(method, "loss", lambda views: seen.append(views.queue) or loss(views))
    monkeypatch.setattr(method, "after_step", lambda: seen.append([len(c.queue) for c in components]))
    optimizer = trainer.make_optimizer([*method.parameters()], method)
    trainer.optimise(method, components, optimizer, sentences[:4], "fp32")
    assert torch.equal(seen[0], torch.tensor([[0.0], [1.0], [1.0]]).expand(3, 32))
    assert seen[1:] == [[1, 2]] and [len(c.queue) for c in components] == [5, 6]
