"""The training loop's promises, and the facts of the components that a run relies on."""

import os
import signal

import pytest
import torch

from csebench import cli
from csebench.base.errors import BadInput, Stopped, Untrainable
from csebench.cli import run as run_verbs
from csebench.data.corpus import draw_subset
from csebench.model.encoder import Encoder
from csebench.model.pooling import pool
from csebench.plan.declarations import POOLERS, EncoderRef
from csebench.plan.registry import COMPONENTS, declaration, fill, load
from csebench.train import trainer
from csebench.train.losses import ami_layers, ami_paper
from csebench.train.method import View, Views
from csebench.train.trainer import assemble
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


def test_loss_that_is_not_finite_stops_the_run(make_spec, train, tmp_path, monkeypatch):
    calls, loss = [], Method.loss

    def poisoned(self, views):
        calls.append(None)
        return loss(self, views) * (float("nan") if len(calls) == 3 else 1.0)

    monkeypatch.setattr(Method, "loss", poisoned)
    spec = make_spec("simcse")
    with pytest.raises(Untrainable, match=rf"{spec.run_id}.*nan.*step 3\b"):
        train(spec, tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()
    assert not (tmp_path / "run" / "train.json").exists()


def test_a_failed_run_can_be_run_again(make_spec, train, tmp_path, monkeypatch):
    """A failure leaves nothing behind that a second try would start from."""
    spec = make_spec("simcse", params={"steps": 12, "evaluate_every": 2})
    wanted = train(spec, tmp_path / "whole")
    calls, loss = [], Method.loss

    def poisoned(self, views):
        calls.append(None)
        return loss(self, views) * (float("inf") if len(calls) == 7 else 1.0)

    with monkeypatch.context() as patched:
        patched.setattr(Method, "loss", poisoned)
        with pytest.raises(Untrainable, match="step 7"):
            train(spec, tmp_path / "run", checkpoint_seconds=0)
    again = train(spec, tmp_path / "run")
    assert again["resumed_at"] is None
    assert again["curve"] == wanted["curve"]


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
        with pytest.raises(Stopped, match=f"{spec.run_id}.*{name} after step {step}"):
            train(spec, tmp_path / "run")
    assert signal.getsignal(number) is handler
    assert (tmp_path / "run" / ".checkpoint.json").exists() and not (tmp_path / "run" / "model").exists()
    resumed = train(spec, tmp_path / "run")
    assert resumed["resumed_at"] == step
    assert weights(tmp_path / "run") == weights(tmp_path / "whole")
    assert [resumed[fact] for fact in ("curve", "losses", "best_dev")] == [
        whole[fact] for fact in ("curve", "losses", "best_dev")
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KeyboardInterrupt(), 130),
        (Stopped("run: stopped by SIGINT", interrupted=True), 130),
        (Stopped("run: stopped by SIGTERM"), 1),
    ],
)
def test_an_interrupted_command_says_so_in_one_line(error, code, monkeypatch, capsys):
    def interrupted(args):
        raise error

    monkeypatch.setattr(run_verbs, "work", interrupted)
    assert cli.main(["work", "run"]) == code
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_files_that_are_not_those_of_the_spec(make_spec, train, tmp_path, corpus):
    """Wrong by one byte, another dev set, no encoder: refused before anything is written."""
    other = tmp_path / "other.txt"
    other.write_bytes(corpus.read_bytes()[:-2] + b"!\n")
    for method in ("simcse", "whitening"):
        with pytest.raises(BadInput, match=r"other\.txt.*sha256"):
            train(make_spec(method), tmp_path / "run", other)
        with pytest.raises(BadInput, match=f"{method} needs a corpus"):
            train(make_spec(method), tmp_path / "run", None)
    spec = make_spec("bert")
    nowhere = spec.encoder.model_copy(update={"name": str(tmp_path / "nowhere")})
    with pytest.raises(BadInput, match=r"sts-dev\.csv.*sha256"):
        train(make_spec("simcse").model_copy(update={"dev_sha256": "0" * 64}), tmp_path / "run")
    with pytest.raises(BadInput, match="nowhere"):
        train(spec.model_copy(update={"encoder": nowhere}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- selection on STS-B dev


def scores(monkeypatch, *values):
    """Stand-ins for the scores on STS-B dev, in the order of the evaluations; the last one repeats."""
    left = list(values)

    def dev_point(encoder, pooler, dev, precision):
        value = left.pop(0) if len(left) > 1 else left[0]
        return {"spearman": value, "alignment": 0.0, "uniformity": 0.0}

    monkeypatch.setattr("csebench.train.trainer.dev_point", dev_point)


def weights(out):
    return (out / "model" / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("name", "every"), [("simcse", False), ("condenser", False), ("mirror_bert", True)])
def test_weight_decay_leaves_out_biases_and_layernorm(name, every, make_spec, tiny_bert):
    """As the trainer of transformers does; Mirror-BERT's code decays every weight. Without gradients, a step is decay
    alone."""
    spec = make_spec(name, params={"weight_decay": 0.1, "learning_rate": 0.5})
    modules, optimizer = assemble(spec.method, load_encoder(tiny_bert), spec.params, {})
    weights = {key: w for key, w in modules.named_parameters() if w.requires_grad}
    before = {key: w.detach().clone().fill_(1) for key, w in weights.items()}
    for weight in weights.values():
        weight.data.fill_(1)
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    decayed = {key for key, w in weights.items() if not torch.equal(w, before[key])}
    spared = {key for key in weights if "bias" in key or "LayerNorm" in key}
    assert spared and decayed == (set(weights) if every else set(weights) - spared)


def test_first_best_wins_ties(make_spec, train, tmp_path, monkeypatch):
    spec = make_spec("simcse", params={"steps": 6, "evaluate_every": 2})
    scores(monkeypatch, 0.1, 0.5, 0.5)
    tied = train(spec, tmp_path / "tied")
    assert (tied["best_step"], tied["best_dev"]) == (4, 0.5)
    scores(monkeypatch, 0.1, 0.5, 0.4)
    train(spec, tmp_path / "second")
    scores(monkeypatch, 0.1, 0.5, 0.6)
    assert train(spec, tmp_path / "last")["best_step"] == 6
    assert weights(tmp_path / "tied") == weights(tmp_path / "second") != weights(tmp_path / "last")


def test_better_of_two_encoders_is_kept(make_spec, train, tmp_path, monkeypatch):
    """CT: both encoders are scored at every evaluation, the better is exported, the first at a tie."""
    spec = make_spec("ct", params={"steps": 2, "evaluate_every": 2})
    for name, points, kept in (("one", (0.5, 0.4), 0), ("two", (0.4, 0.5), 1), ("tie", (0.5, 0.5), 0)):
        scores(monkeypatch, *points)
        report = train(spec, tmp_path / name)
        assert [point["encoder"] for point in report["curve"]] == [0, 1]
        assert report["best_encoder"] == kept
    assert weights(tmp_path / "one") == weights(tmp_path / "tie") != weights(tmp_path / "two")


def test_last_step_is_evaluated(make_spec, train, tmp_path):
    report = train(make_spec("simcse", params={"steps": 5, "evaluate_every": 3}), tmp_path / "run")
    assert [point["step"] for point in report["curve"]] == [3, 5]


# ---------------------------------------------------------------- sentences of a run


def test_few_shot_subsets():
    sentences = [f"sentence {i}" for i in range(1000)]
    drawn = draw_subset(sentences, 50, 7)
    assert drawn == draw_subset(sentences, 50, 7)
    assert drawn != draw_subset(sentences, 50, 8)
    assert len(set(drawn)) == 50 and set(drawn) <= set(sentences)
    assert draw_subset(sentences, 1000, 7) == draw_subset(sentences, 5000, 7) == sentences


@pytest.mark.parametrize(("n", "size"), [(64, 8), (100, 8), (65, 8), (8, 8), (7, 8), (9, 8), (30, 15)])
def test_an_epoch_shows_every_sentence_once(n, size):
    from csebench.train.trainer import batch_at

    sentences = [f"sentence {i}" for i in range(n)]
    step, epochs = 0, []
    for _ in range(3):
        seen = []
        while len(seen) < n:
            batch = batch_at(step, sentences, size, seed=5)
            assert 2 <= len(batch) <= size + 1
            assert batch == batch_at(step, sentences, size, seed=5)
            seen += batch
            step += 1
        assert sorted(seen) == sorted(sentences)
        epochs.append(seen)
    assert epochs[0] != epochs[1] != epochs[2]
    assert batch_at(0, sentences, size, seed=5) != batch_at(0, sentences, size, seed=6)


# ---------------------------------------------------------------- AMI


@pytest.mark.parametrize("depth", range(2, 25))
def test_layers_of_the_paper_and_of_the_code(depth):
    assert [*ami_layers("paper", 12)] == [8, 9, 10, 11] and [*ami_layers("code", 12)] == [7, 8, 9, 10]
    paper, code = ami_layers("paper", depth), ami_layers("code", depth)
    assert len(paper) >= 1 and paper[-1] == depth - 1
    assert len(code) >= 2 and len(code) % 2 == 0
    assert paper[0] >= 0 and code[0] >= 0 and code[-1] < depth


@pytest.mark.parametrize("form", ["paper", "code"])
def test_identical_views_give_a_finite_gradient(form, tiny_bert, sentences):
    """CT starts from two equal encoders without dropout: rho is exactly 1."""
    method = make_method("ct", tiny_bert).train()
    component = make_component("ami", method, form=form)
    one, two = method.views(sentences[:15])
    loss = component.term(method, Views(one, two))
    assert torch.isfinite(loss) and loss < 0
    loss.backward()
    gradients = [w.grad for w in method.parameters() if w.grad is not None]
    assert gradients and all(torch.isfinite(g).all() for g in gradients)


def test_padding_does_not_move_the_papers_term(tiny_bert, sentences):
    """A longer sentence elsewhere in the batch pads the others; form paper does not see it."""

    def term(texts):
        method = make_method("simcse", tiny_bert).eval()
        layers = make_component("ami", method).layers
        a, b, real = aligned(*method.views(texts), layers)
        b = [m.roll(1, 1) for m in b]  # other heads, for there is no dropout
        return ami_paper([m[:3] for m in a], [m[:3] for m in b], real[:3], samples=None)

    short = sentences[:3]
    torch.testing.assert_close(term([*short, " ".join(sentences[3:6])]), term([*short, "a b"]))


def view(ids, mask, maps):
    batch = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}
    return View(None, None, batch, {0: maps})


def test_only_equal_tokens_before_the_first_difference_count():
    """A span mask shifts what is behind it: only the common beginning of the two views is compared."""
    maps = torch.rand(4, 2, 6, 6)
    one = view([[1, 5, 6, 7, 2, 0], [1, 5, 6, 7, 2, 0], [1, 5, 6, 2, 0, 0], [1, 5, 6, 7, 8, 2]],
               [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], maps)  # fmt: skip
    two = view([[1, 5, 6, 7, 2, 0], [1, 5, 9, 7, 2, 0], [1, 5, 6, 2, 0, 0], [1, 5, 6, 2, 0, 0]],
               [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 0, 0]], maps)  # fmt: skip
    attention1, attention2, real = aligned(one, two, [0])
    assert real.sum(1).tolist() == [5, 2, 4, 3]  # equal; one token replaced; padding is not real; then shifted
    assert (real.long().diff(dim=1) <= 0).all()  # a beginning, nothing behind it
    width = real.shape[1]
    for kept in (*attention1, *attention2):
        assert torch.equal(kept, maps[:, :, :width, :width])


def test_pairs_of_different_sentences_do_not_count():
    maps = torch.rand(3, 2, 4, 4)
    one = view([[1, 5, 6, 2]] * 3, [[1] * 4] * 3, maps)
    two = view([[1, 5, 6, 2]] * 3, [[1] * 4] * 3, maps)
    one.same = two.same = torch.tensor([True, False, True])
    attention1, _, real = aligned(one, two, [0])
    assert len(real) == 2
    assert torch.equal(attention1[0], maps[[0, 2]])


# ---------------------------------------------------------------- attention maps


def test_attention_is_kept_of_the_layers_asked_for(tiny_bert, sentences):
    encoder = load_encoder(tiny_bert).eval()
    batch = encoder.tokenize(sentences[:4])
    assert encoder(batch).attention == {}
    wanted = encoder.model(**batch, output_attentions=True).attentions
    for layers, kept in (((2,), {2}), ((0, 2), {0, 2}), ((1,), {0, 1, 2})):  # of two components, both are heard
        encoder.keep_attention(layers)
        maps = encoder(batch).attention
        assert set(maps) == kept
        assert all(torch.equal(maps[layer], wanted[layer]) for layer in kept)


def test_each_of_two_encoders_keeps_its_own_attention(tiny_bert, sentences):
    """CT: the maps of a view are of the encoder that made it."""
    method = make_method("ct", tiny_bert).eval()
    make_component("ami", method)
    with torch.no_grad():
        for weight in method.second.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    for made, encoder in zip(method.views(sentences[:15]), method.encoders(), strict=True):
        wanted = encoder.model(**made.batch, output_attentions=True).attentions
        last = encoder.num_layers - 1
        assert torch.equal(made.attention[last], wanted[last])


@pytest.mark.parametrize("used_before", [False, True])
def test_a_twin_gives_the_same_vectors(used_before, tiny_bert, sentences):
    """Whatever the pooler, whether or not the encoder has been used before."""
    encoder = load_encoder(tiny_bert).eval()
    batch = encoder.tokenize(sentences[:4])
    if used_before:
        encoder(batch)
    twin = encoder.copy().eval()
    for pooler in sorted({*POOLERS} - {"cls"}):
        ours, theirs = (e(batch, pooler) for e in (encoder, twin))
        assert torch.equal(pool(pooler, ours), pool(pooler, theirs))


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
    """By 1 - m of the distance a step, and only it: the trained encoder is left alone."""
    method = make_method("simcse", tiny_bert).train()
    moco = make_component("moco", method, momentum=0.9)
    start = [w.clone() for w in moco.momentum.parameters()]
    one, _ = method.views(sentences[:8])
    with torch.no_grad():  # an optimiser step
        for weight in method.encoder.parameters():
            weight.add_(torch.randn_like(weight))
    online = [w.clone() for w in method.encoder.parameters()]
    for slow, fast in zip(start, online, strict=True):
        assert not torch.equal(slow, fast)
    moco.after_step(method, Views(one, one))
    moved = zip(start, online, moco.momentum.parameters(), strict=True)
    for slow, fast, now in moved:
        torch.testing.assert_close(now, 0.9 * slow + 0.1 * fast)
    assert all(torch.equal(a, b) for a, b in zip(online, method.encoder.parameters(), strict=True))


def test_no_gradient_flows_into_momentum_encoder_or_queue(tiny_bert, sentences):
    method = make_method("simcse", tiny_bert).train()
    moco = make_component("moco", method)
    moco.after_step(method, method.views(sentences[:8]))
    assert not moco.queue.requires_grad
    one, two = method.views(sentences[8:16])
    loss = method.loss(Views(one, two, queue=moco.queue))
    loss.backward()
    assert all(w.grad is None and not w.requires_grad for w in moco.parameters())
    assert any(w.grad is not None for w in method.encoder.parameters())
    assert loss > method.loss(Views(one, two))  # the queue stands in the denominator


# ---------------------------------------------------------------- identity of a run


def test_what_a_user_sets_for_a_component_is_used(make_spec):
    """Above the method's own and the variant's values, as for the method's hyper-parameters."""
    assert make_spec("micse", variant="code").components["ami"].params["weight"] == 1e-4
    assert make_spec("micse", components={"ami": {"weight": 0.5}}).components["ami"].params["weight"] == 0.5
    both = make_spec("micse", variant="code", components={"ami": {"weight": 0.5}}).components["ami"].params
    assert (both["weight"], both["form"]) == (0.5, "code")


@pytest.mark.parametrize("first", ["finished", "killed"])
def test_folder_of_another_run(first, make_spec, train, tmp_path, monkeypatch):
    """A folder that holds another run is refused or made anew: never taken for this run's."""
    if first == "finished":
        train(make_spec("simcse", seed=1), tmp_path / "run")
    else:
        batch_at = trainer.batch_at

        def killed(step, *args):
            if step == 3:
                raise KeyboardInterrupt
            return batch_at(step, *args)

        with monkeypatch.context() as patched:
            patched.setattr(trainer, "batch_at", killed)
            with pytest.raises(KeyboardInterrupt):
                train(make_spec("simcse", seed=1), tmp_path / "run", checkpoint_seconds=0)
    spec = make_spec("simcse", seed=2)
    try:
        report = train(spec, tmp_path / "run")
    except BadInput:
        return
    assert report["run"] == spec.run_id
    train(spec, tmp_path / "clean")
    assert weights(tmp_path / "run") == weights(tmp_path / "clean")


def test_a_model_that_is_not_ours_is_left_alone(make_spec, train, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="belongs to no known run"):
        train(make_spec("simcse"), tmp_path)
    assert (tmp_path / "model" / "mine.txt").exists()


def test_a_dev_score_that_is_no_number_does_not_lose_the_run(make_spec, train, tmp_path, monkeypatch):
    """One evaluation with constant vectors: the best of the others is kept."""
    scores(monkeypatch, 0.5, float("nan"))
    report = train(make_spec("simcse"), tmp_path / "run")
    assert report["best_step"] == 2


# ---------------------------------------------------------------- a seed for each source


def with_seeds(spec, **seeds):
    return spec.model_copy(update={"seeds": seeds})


@pytest.mark.parametrize("source", ["order", "dropout", "head"])
def test_each_source_has_a_seed_of_its_own(source, make_spec, train, tmp_path):
    """Another seed of one source gives other weights, the same seeds the same ones."""
    spec = make_spec("simcse", size=20)
    same = {"order": 5, "dropout": 5, "head": 5}
    one, again, other = with_seeds(spec, **same), with_seeds(spec, **same), with_seeds(spec, **same | {source: 6})
    assert one.run_id == again.run_id != other.run_id
    for name, run in (("one", one), ("again", again), ("other", other)):
        train(run, tmp_path / name)
    assert weights(tmp_path / "one") == weights(tmp_path / "again") != weights(tmp_path / "other")


def test_the_last_step_can_be_kept(make_spec, train, tmp_path, monkeypatch):
    """Where STS-B dev is best at the first evaluation; of two encoders the better one of that step."""

    def kept(method, selection, points):
        points = iter(points)
        monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": next(points)})
        report = train(make_spec(method, params={"selection": selection}), tmp_path / f"{method}-{selection}")
        return report["best_step"], report["best_encoder"]

    assert kept("simcse", "best", [0.9, 0.5]) == (2, 0)
    assert kept("simcse", "last", [0.9, 0.5]) == (4, 0)
    assert kept("ct", "last", [0.9, 0.8, 0.6, 0.5]) == (4, 0)
