"""The training loop keeps its promises, and components compute what a run relies on."""

import itertools
import os
import signal
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from tiny_runs import weights

from csebench import cli
from csebench.base.errors import BadInput, RunFailed, Stopped, Untrainable
from csebench.cli import run as run_verbs
from csebench.data.sts import Pairs
from csebench.model import metrics
from csebench.model.encoder import Encoder, head_of
from csebench.model.layers import additive, bert_layer
from csebench.model.sentence_encoder import SentenceEncoder
from csebench.plan.catalog.registry import COMPONENTS, load, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train import trainer
from csebench.train.method import View
from methods.components.ami import aligned
from methods.simcse import Method
from methods.vascl import nearest


def load_encoder(folder):
    return Encoder.load(EncoderRef(name=str(folder), revision=""))


def make_method(name, folder, **params):
    """Make a method on the encoder of a folder, with some parameters changed."""
    torch.manual_seed(0)
    return load(name)(load_encoder(folder), typed_params(name, params))


def make_component(name, method, **params):
    """Make a component on a method, with some parameters changed."""
    return load(name, COMPONENTS)(method, typed_params(name, params, COMPONENTS))


@pytest.mark.parametrize(("value", "calls"), [(float("nan"), 3), (float("inf"), 7)])
def test_a_loss_that_is_not_finite_stops_the_run_for_good(
    value, calls, make_spec, train, tmp_path, monkeypatch
):
    """It leaves no files that a second try would start from."""
    spec = make_spec("simcse", params={"steps": 8, "evaluate_every": 4})
    run = tmp_path / "run"
    loss = Method.loss
    call = itertools.count(1)

    def spoiled(self, views):
        factor = value if next(call) == calls else 1.0
        return loss(self, views) * factor

    message = rf"{spec.run_id}.*{value} at step {calls} .*rate 3e-05"
    with monkeypatch.context() as patched:
        patched.setattr(Method, "loss", spoiled)
        with pytest.raises(Untrainable, match=message):
            train(spec, run, checkpoint_seconds=0)

    for name in ("model", "train.json", ".checkpoint.json"):
        assert not (run / name).exists()
    assert train(spec, run)["resumed_at"] is None


@pytest.fixture
def as_in_a_terminal():
    """Handle SIGINT and SIGHUP as a command in a terminal does.

    A script ignores SIGINT in what it starts with `&`, and `nohup` ignores SIGHUP.
    """
    interrupt_before = signal.signal(signal.SIGINT, signal.default_int_handler)
    hang_up_before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, interrupt_before)
    signal.signal(signal.SIGHUP, hang_up_before)


# Signals come between two readings of the loss, and at the last step.
ENDS = [(7, "SIGTERM"), (12, "SIGINT"), (12, "SIGHUP")]


@pytest.mark.parametrize(("step", "name"), ENDS)
def test_a_signal_to_end_loses_nothing(
    step, name, make_spec, train, tmp_path, monkeypatch, as_in_a_terminal
):
    """The step is finished and the checkpoint written. The next try ends as a run that was left
    alone."""
    spec = make_spec("simcse", params={"steps": 12, "evaluate_every": 4})
    run = tmp_path / "run"
    number = signal.Signals[name]
    handler = signal.getsignal(number)
    batch_at = trainer.batch_at
    whole = train(spec, tmp_path / "whole")

    def asked_to_end(at, *args):
        if at == step - 1:
            os.kill(os.getpid(), number)
        return batch_at(at, *args)

    with monkeypatch.context() as patched:
        patched.setattr(trainer, "batch_at", asked_to_end)
        with pytest.raises(Stopped, match=f"{spec.run_id}.*{name} after step {step}") as stopped:
            train(spec, run)
    assert stopped.value.interrupted == (name == "SIGINT")
    assert signal.getsignal(number) is handler
    assert (run / ".checkpoint.json").exists()
    assert not (run / "model").exists()

    resumed = train(spec, run)
    assert resumed["resumed_at"] == step
    assert weights(run) == weights(tmp_path / "whole")
    for fact in ("curve", "losses", "best_dev"):
        assert resumed[fact] == whole[fact]


def interrupt(_):
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("error", "code"), [(interrupt, 130), (Stopped("", True), 130), (Stopped(""), 1)]
)
def test_an_interrupted_command_says_so_in_one_line(
    error, code, monkeypatch, capsys, as_in_a_terminal
):
    monkeypatch.setattr(run_verbs, "work", Mock(side_effect=error))
    assert cli.main(["work", "run"]) == code
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("factors", "notice"),
    [
        ([0, 0, 0, 0, 0, 0], "the loss is 0 in all steps"),
        ([1, 1, 1, 1e-6, 1e-6, 1e-6], "below 0.0001 of that from then on"),
        ([1, 1, 1, 1e-6, 1e-6, 1e-2], ""),
        ([1, 1, 1, 1, 1, 1], ""),
        ([0, 0, 0, 1, 1, 1], ""),  # as a loss that is warmed up
    ],
)
def test_a_loss_that_trains_nothing_is_said(
    factors, notice, make_spec, train, tmp_path, monkeypatch, capsys
):
    spec = make_spec("simcse", params={"steps": 6, "evaluate_every": 3})
    loss = Method.loss
    left = iter(factors)
    monkeypatch.setattr(Method, "loss", lambda self, views: loss(self, views) * next(left))

    report = train(spec, tmp_path)

    printed = capsys.readouterr().err.splitlines()
    lines = [line for line in printed if "changes next to nothing" in line]
    assert report.get("loss_vanished", False) == bool(notice)
    if notice:
        (line,) = lines
        assert line.startswith(spec.run_id)
        assert notice in line
    else:
        assert not lines


def test_files_that_are_not_those_of_the_spec(make_spec, train, tmp_path, corpus):
    """Wrong by one byte, none, another dev set, too long: refused before anything is written."""
    other, spec = tmp_path / "other.txt", make_spec("simcse")
    other.write_bytes(corpus.read_bytes()[:-2] + b"!\n")
    for wrong, file, message in (
        (spec, other, r"other\.txt.*sha256"),
        (make_spec("whitening"), None, "whitening needs a corpus"),
        (spec.model_copy(update={"dev_sha256": "0" * 64}), ..., r"sts-dev\.csv.*sha256"),
        (
            make_spec("simcse", params={"max_length": 129}),
            ...,
            r"max_length 129: .* reads 128 tokens",
        ),
    ):
        with pytest.raises(BadInput, match=message):
            train(wrong, tmp_path / "run", file)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- steps


def test_what_a_run_reports(make_spec, train, tmp_path, monkeypatch):
    """The last step is evaluated too; a loss is the mean since the reading before, at most ten
    steps ago; what a method learns besides is read at every evaluation. The learning rate warms up
    and decays from the first step on.
    """
    rates = []

    def optimise(method, components, optimizer, *_, **__):
        rates.append(optimizer.param_groups[0]["lr"])
        return torch.tensor(float(len(rates)))

    monkeypatch.setattr(trainer, "optimise", optimise)
    monkeypatch.setattr(Method, "learned", lambda method: {"temperature": method.p.temperature})
    params = {"steps": 13, "evaluate_every": 12, "warmup_steps": 3, "learning_rate": 0.1}
    spec = make_spec("simcse", params=params)
    report = train(spec, tmp_path / "run")
    assert [point["step"] for point in report["curve"]] == [12, 13]
    assert all(point["learned"] == {"temperature": 0.05} for point in report["curve"])
    assert report["losses"] == [[10, 5.5], [12, 11.5], [13, 13.0]]
    assert rates == pytest.approx([0.1 / 3, 0.2 / 3, 0.1, *(n / 100 for n in range(10, 0, -1))])
    assert [report[fact] for fact in ("steps", "sentences", "processes", "run")] == [
        13,
        400,
        1,
        spec.run_id,
    ]


def weights_as_vector(method):
    """Copy all weights of a method into one vector."""
    return torch.nn.utils.parameters_to_vector(method.parameters()).detach().clone()


def test_gradients_are_clipped(tiny_bert, sentences):
    method = make_method("simcse", tiny_bert, clip=0.01)
    optimizer = torch.optim.SGD(method.parameters(), lr=1.0)
    before = weights_as_vector(method)

    trainer.optimise(method, [], optimizer, sentences[:8], "fp32")

    change = weights_as_vector(method) - before
    assert float(change.norm()) == pytest.approx(0.01, rel=1e-2)


RMSPROP = {"alpha": 0.9, "eps": 1e-7, "momentum": 0, "centered": False}  # TensorFlow's defaults
OPTIMIZERS = [("simcse", False, {}), ("ct", False, RMSPROP), ("mirror_bert", True, {})]


@pytest.mark.parametrize(("name", "decays_all", "defaults"), OPTIMIZERS)
def test_weight_decay_leaves_out_biases_and_layernorm(name, decays_all, defaults, tiny_bert):
    """The trainer of transformers leaves out these weights of one dimension too. Mirror-BERT's code
    decays every weight."""
    matrix = torch.nn.Parameter(torch.ones(2, 2))
    bias = torch.nn.Parameter(torch.ones(2))
    method = make_method(name, tiny_bert, weight_decay=0.1, learning_rate=0.5)
    optimizer = trainer.make_optimizer([matrix, bias], method)
    # With gradients of 0, a step is decay alone.
    matrix.grad = torch.zeros_like(matrix)
    bias.grad = torch.zeros_like(bias)

    optimizer.step()

    assert (matrix != 1).all()
    assert (bias != 1).any() == decays_all
    assert optimizer.defaults.items() >= defaults.items()


@pytest.mark.parametrize(
    ("count", "size", "batches"), [(64, 8, 8), (65, 8, 8), (66, 8, 9), (7, 8, 1), (9, 8, 1)]
)
def test_an_epoch_shows_every_sentence_once(count, size, batches):
    """The order differs by epoch and seed. The last batch may be smaller; a single sentence joins
    the batch before it."""
    sentences = [f"sentence {number}" for number in range(count)]
    epochs = []
    for epoch in range(3):
        steps = range(epoch * batches, (epoch + 1) * batches)
        seen = [trainer.batch_at(step, sentences, size, 5) for step in steps]
        for batch in seen[:-1]:
            assert len(batch) == size
        order = list(itertools.chain(*seen))
        assert sorted(order) == sorted(sentences)
        epochs.append(order)
    assert epochs[0] != epochs[1] != epochs[2]

    first = trainer.batch_at(0, sentences, size, seed=5)
    assert first != trainer.batch_at(0, sentences, size, seed=6)


def test_each_source_has_a_seed_of_its_own(make_spec, train, tmp_path):
    same = {"order": 5, "dropout": 5, "head": 5}

    def train_with(seeds, folder):
        """The id of a run with these seeds, and its weights."""
        spec = make_spec("simcse", size=20).model_copy(update={"seeds": {**seeds}})
        train(spec, tmp_path / folder)
        return spec.run_id, weights(tmp_path / folder)

    first = train_with(same, "first")
    assert train_with(same, "again") == first

    runs = [first]
    for source in same:
        runs.append(train_with(same | {source: 6}, source))
    assert len({run_id for run_id, _ in runs}) == 4
    assert len({model for _, model in runs}) == 4


@pytest.mark.parametrize(
    ("rows", "advice"), [(5, "--chunk-size 4, which fits"), (0, "a smaller `batch_size`")]
)
def test_out_of_memory_names_a_chunk_size_that_fits(
    rows, advice, make_spec, train, tmp_path, monkeypatch
):
    run = Encoder._run

    def limited(self, pooler, dropout, ids, *rest):
        if len(ids) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(self, pooler, dropout, ids, *rest)

    monkeypatch.setattr(Encoder, "_run", limited)
    message = f"a step of 8 sentences does not fit in GPU memory.*{advice}"
    with pytest.raises(RunFailed, match=message):
        train(make_spec("simcse"), tmp_path / "run")


def test_encoders_with_other_tokenizers_keep_their_own_token_ids(make_spec, tiny_bert):
    """A teacher may read fewer tokens, or keep capitals."""

    class WithTeacher(Method):
        def __init__(self, encoder, params):
            super().__init__(encoder, params)
            self.copied = encoder.copy()
            self.teacher = load_encoder(tiny_bert)

    params = typed_params("simcse", make_spec("simcse").params)
    method = WithTeacher(load_encoder(tiny_bert), params)
    trainer.share_token_ids(method)

    assert method.copied.known_ids is method.encoder.known_ids
    assert method.teacher.known_ids is not method.encoder.known_ids


def test_a_small_last_batch_has_fewer_neighbours_than_vascl_asks_for():
    near = nearest(torch.randn(5, 8), 16)
    assert near.sum(1).tolist() == [4] * 5
    assert not near.diagonal().any()


def test_the_card_of_a_run_without_weights_says_so(make_spec, train, tmp_path):
    train(make_spec("random"), tmp_path / "run")
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "The folder has no weights" in card
    assert "trained" not in card


def test_the_card_of_a_run_that_diverged_says_so(make_spec, train, tmp_path, monkeypatch):
    spec = make_spec("simcse").model_copy(update={"if_diverged": "untrained"})
    monkeypatch.setattr(Method, "loss", lambda self, views: views.z1.sum() * float("nan"))
    train(spec, tmp_path / "run")
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "training by csebench diverged" in card


def test_ami_reads_pairs_of_one_sentence_up_to_their_first_difference():
    """A span mask shifts the tokens after it. CT's pairs of different sentences do not count."""
    maps = torch.rand(4, 2, 6, 6)
    same = torch.tensor([True, True, False, True])

    def view(*rows):
        ids = torch.tensor(rows)
        batch = {"input_ids": ids, "attention_mask": (ids > 0).long()}
        return View(None, None, batch, {0: maps}, same)

    # The pairs: equal, one token replaced, of other sentences, shifted.
    one = view([1, 5, 6, 2, 0, 0], [1, 5, 6, 7, 2, 0], [1, 5, 6, 2, 0, 0], [1, 5, 6, 7, 8, 2])
    two = view([1, 5, 6, 2, 0, 0], [1, 5, 9, 7, 2, 0], [1, 5, 6, 2, 0, 0], [1, 5, 6, 2, 0, 0])

    attention1, attention2, real = aligned(one, two, [0])

    assert real.tolist() == [
        [True, True, True, True, False],
        [True, True, False, False, False],
        [True, True, True, False, False],
    ]
    for kept in (*attention1, *attention2):
        assert torch.equal(kept, maps[same, :, :5, :5])


def test_momentum_encoder_moves_towards_the_trained_one(tiny_bert, sentences):
    """It moves by 1 - m of the distance in a step. first_steps.json has its keys and dropout."""
    method = make_method("simcse", tiny_bert)
    moco = make_component("moco", method, momentum=0.9)
    start = [weight.clone() for weight in moco.momentum.parameters()]
    for weight in method.encoder.parameters():
        torch.nn.init.zeros_(weight)

    moco.after_step(method, method.views(sentences[:8]))

    for before, after in zip(start, moco.momentum.parameters(), strict=True):
        torch.testing.assert_close(after, 0.9 * before)
    for weight in method.encoder.parameters():
        assert not weight.any()


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
def test_which_weights_are_kept(
    method, selection, points, best, make_spec, train, tmp_path, monkeypatch
):
    """Weights of the best evaluation, or of the last, are exported. Of two encoders, the better one
    is."""
    left = iter(points)
    evaluated = []  # the weights at every point, in the order of the evaluations

    def dev_point(encoder, pooler, dev, precision, added):
        state = encoder.model.state_dict()
        evaluated.append({name: weight.clone() for name, weight in state.items()})
        return {"spearman": next(left), "alignment": 0.0, "uniformity": 0.0}

    monkeypatch.setattr(trainer, "dev_point", dev_point)
    spec = make_spec(method, params={"steps": 6, "selection": selection})
    report = train(spec, tmp_path / "run")

    assert (report["best_step"], report["best_encoder"], report["best_dev"]) == best
    encoders = len(points) // 3  # there are three evaluations
    assert [point["encoder"] for point in report["curve"]] == [*range(encoders)] * 3

    best_step, best_encoder, _ = best
    evaluation = best_step // 2 - 1  # there is one every two steps
    kept = evaluated[evaluation * encoders + best_encoder]
    exported = load_encoder(tmp_path / "run" / "model").model.state_dict()
    for name, weight in exported.items():
        assert torch.equal(kept[name], weight)


def test_a_run_without_a_score_on_dev_has_no_model(make_spec, train, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": float("nan")})
    with pytest.raises(Untrainable, match="STS-B dev gave no score"):
        train(make_spec("simcse"), tmp_path / "run")


def test_a_last_step_without_a_score_is_not_replaced_by_an_earlier_one(
    make_spec, train, tmp_path, monkeypatch
):
    points = iter([0.5, 0.5, float("nan")])
    monkeypatch.setattr(trainer, "dev_point", lambda *_: {"spearman": next(points)})
    spec = make_spec("simcse", params={"steps": 6, "selection": "last"})
    with pytest.raises(Untrainable, match="STS-B dev gave no score"):
        train(spec, tmp_path / "run")


def test_figures_on_dev(tiny_bert, monkeypatch):
    """Alignment is computed over pairs graded above 4, uniformity over all distinct vectors (Wang &
    Isola 2020)."""
    monkeypatch.setattr(metrics, "ROWS_PER_BLOCK", 2)
    encoder = load_encoder(tiny_bert).eval()
    left = ["a", "a", "the b", "x y"]
    right = ["c c", "a", "a", "z w q"]
    pairs = Pairs("all", left, right, np.array([5.0, 4.0, 4.5, 1.0]))

    point = trainer.dev_point(encoder, "avg", pairs, "fp32")
    rounded = trainer.dev_point(encoder, "avg", pairs, "bf16")

    distinct_texts = ["a", "c c", "the b", "x y", "z w q"]
    unit = metrics.unit(SentenceEncoder(encoder, "avg").embed(distinct_texts))
    a, c, b = unit[:3]
    alignment = (np.square(a - c).sum() + np.square(b - a).sum()) / 2
    assert point["alignment"] == pytest.approx(alignment, rel=1e-3)
    uniformity = np.log(np.exp(-2 * pdist(unit, "sqeuclidean")).mean())
    assert point["uniformity"] == pytest.approx(uniformity, rel=1e-3)
    assert 0 < abs(rounded["alignment"] - point["alignment"]) < 0.05


def test_under_bf16_what_is_compared_entry_by_entry_is_in_fp32(tiny_bert, sentences):
    """AMI reads attention maps, and RTD takes the argmax of logits. Rounded to bf16, their entries
    tie."""
    method = make_method("simcse", tiny_bert).eval()
    rtd = make_component("rtd", method, generator="self").eval()
    logits = []
    head_of(rtd.generator).register_forward_hook(lambda _, __, out: logits.append(out))
    layer = method.encoder.stack[0]
    attention = layer.attention.self
    batch = method.encoder.tokenize(sentences[:4])
    states = method.encoder.model.embeddings(input_ids=batch["input_ids"])
    mask = additive(batch["attention_mask"])

    def by_heads(projected):
        return projected.float().unflatten(-1, (4, -1)).transpose(1, 2)

    with torch.autocast("cpu", torch.bfloat16):
        _, kept = bert_layer(layer, states, mask, keeps=True)
        query = by_heads(attention.query(states))
        key = by_heads(attention.key(states))
        rtd.most_likely(batch["input_ids"], batch["attention_mask"])

    expected = (query @ key.mT * attention.scaling + mask).softmax(-1)
    torch.testing.assert_close(kept, expected)
    assert logits[0].dtype == torch.float32
