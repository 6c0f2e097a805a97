"""Losses against the values and gradients of the official implementations.

`vectors/values.npz.xz` has made-up inputs, and what the official code of each paper gives for them.
These losses and gradients were measured by this project in float64 with the code imported
unmodified, and are kept exactly. `ct_st` ran the version of sentence-transformers.
`micse_ami_paper`, `informin_paper` and `msse_dcm_paper` are the papers' equations, which nobody
released. `cases.json` states for each case the repository, commit, file and lines, how it was run,
and its settings. No code is copied. `weights.npz.xz` are random weights of the tiny networks, 0 in
the rows of tokens and positions that no case reads.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch.func import functional_call
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertTokenizerFast
from vector_cases import FACTS, WEIGHTS, Case, arrays, cases, kind

from csebench.model.encoder import Encoder
from csebench.model.layers import Head
from csebench.model.pooling import mean_pool
from csebench.plan.catalog.registry import COMPONENTS, load, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train import losses
from csebench.train.method import Views
from csebench.train.mlm import mask_batch, masked_lm_loss
from methods import ct, informin_cl, mirror_bert, msse, scd
from methods.components import ami

# ---------------------------------------------------------------- losses of tensors


def info_nce(case, z1, z2, **options):
    return losses.info_nce(z1, z2, case.settings["temp"], **options)


def info_nce_of_head(case, hidden, weight, bias):
    """Compare the outputs of the MLP head. Rows 2i and 2i+1 are the views of sentence i."""
    head = Head(hidden.shape[-1])
    weights = {"dense.weight": weight, "dense.bias": bias}
    z = functional_call(head, weights, hidden[:, 0])
    return info_nce(case, z[0::2], z[1::2])


def info_nce_and_masked_lm(case, hidden, masked, head_weight):
    """Add the loss of a linear masked-LM head to InfoNCE of the [CLS] states."""
    head_bias = case.tensor("in_head_b")
    labels = case.tensor("in_labels").flatten(0, 1)

    def head(states):
        return states @ head_weight.T + head_bias

    contrast = info_nce(case, hidden[0::2, 0], hidden[1::2, 0])
    return contrast + case.settings["mlm_weight"] * masked_lm_loss(head, masked, labels)


def info_nce_of_positives(case, z1, z2):
    return info_nce(case, z1, z2, in_batch_negatives=False)


def info_nce_with_queue(case, z1, z2):
    return info_nce(case, z1, z2, queue=case.tensor("in_queue"))


def info_nce_with_hard_negatives(case, z1, z2, z3):
    return info_nce(case, z1, z2, hard=z3, hard_weight=case.settings["hard_negative_weight"])


def tension_of_states(case, states1, states2):
    """Compute CT of mean-pooled states."""
    pooled1 = mean_pool(states1, case.tensor("in_mask1"))
    pooled2 = mean_pool(states2, case.tensor("in_mask2"))
    return ct.contrastive_tension(pooled1, pooled2, case.tensor("in_labels"))


def summed_tension(case, e1, e2):
    return ct.contrastive_tension(e1, e2, case.tensor("in_labels"), reduction="sum")


def mirror_nt_xent(case, states1, states2):
    """Compare states, pooled as the case says."""

    def pool(states):
        mode = case.settings["agg_mode"]
        if mode == "cls":
            return states[:, 0]
        if mode == "mean":
            return states.mean(1)
        return mean_pool(states, case.tensor("in_mask"))

    return mirror_bert.nt_xent(pool(states1), pool(states2), case.settings["tau"])


def barlow_twins(case, z1, z2):
    return scd.barlow_twins(z1, z2, case.settings["lambd"])


def dimension_contrast_code(case, a, b):
    return losses.dimension_contrast(a, b, "code")


def dimension_contrast_paper(case, a, b):
    return losses.dimension_contrast(a, b, "paper")


class Loss(NamedTuple):
    """A loss of the engine, and the names of what the official code gave for it."""

    function: Callable  # of the case and the inputs
    inputs: str  # names of the inputs, which have gradients
    name: str = "loss"


LOSSES = {
    "simcse_unsup": Loss(info_nce, "z1 z2"),
    "simcse_unsup_mlp": Loss(info_nce_of_head, "hidden W b"),
    "simcse_mlm": Loss(info_nce_and_masked_lm, "hidden mlm_hidden head_W", "loss_total"),
    "micse_diag_only": Loss(info_nce_of_positives, "z1 z2"),
    "esimcse_queue": Loss(info_nce_with_queue, "z1 z2"),
    "simcse_sup_hardneg": Loss(info_nce_with_hard_negatives, "z1 z2 z3"),
    "ct_official": Loss(tension_of_states, "E1 E2"),
    "ct_st": Loss(summed_tension, "e1 e2"),
    "mirror_infonce": Loss(mirror_nt_xent, "h1 h2"),
    "barlow_twins": Loss(barlow_twins, "z1 z2"),
    "msse_dcm_code": Loss(dimension_contrast_code, "a b"),
    "msse_dcm_paper": Loss(dimension_contrast_paper, "a b"),
}


@cases(*LOSSES)
def test_a_loss_and_its_gradients(name, precision):
    case = Case(name, precision)
    loss = LOSSES[kind(name)]
    inputs = {}
    for input_name in loss.inputs.split():
        inputs[input_name] = case.tensor(f"in_{input_name}", grad=True)

    value = loss.function(case, *inputs.values())

    case.check(loss.name, value)
    case.check_gradients(value, **inputs)


# ---------------------------------------------------------------- parts of methods


@pytest.mark.parametrize("example", FACTS["mirror_span_mask_1"]["examples"])
def test_mirror_span_mask(example):
    rng = np.random.RandomState(example["numpy_global_seed"])
    masked = mirror_bert.mask_span(example["input"], rng.randint, example["mask_len"])
    assert masked == example["output"]


@pytest.mark.parametrize(("length", "is_masked"), [(29, False), (30, True)])
def test_shortest_text_with_a_mirror_span_mask(length, is_masked):
    masked = mirror_bert.mask_span("a" * length, lambda high: 2)
    assert ("[MASK]" in masked) == is_masked


@cases("micse_ami_code")
def test_ami_code(name, precision, monkeypatch):
    case = Case(name, precision)
    settings = case.settings
    attention = case.tensor("in_attention", grad=True)
    layers = attention[settings["min_layer"] : settings["max_layer"]]
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)
    positions = case.tensor("in_sample_index")

    def recorded(valid, samples, replacement):
        assert valid.shape[0] == len(case.tensor("in_kept_chunks"))
        assert samples == positions.shape[1]
        assert not replacement
        return positions

    monkeypatch.setattr(ami, "sample_positions", recorded)
    mutual_information = ami.ami_code(
        [maps[0::2] for maps in layers],
        [maps[1::2] for maps in layers],
        settings["target_samples"],
    )
    term = -mutual_information
    contrast = losses.info_nce(z1, z2, settings["temp"])
    total = settings["task_alpha"] * contrast + settings["task_lambda"] * term

    case.check("mi_term", term)
    case.check("ce", contrast)
    case.check("loss_total", total)
    case.check_gradients(total, total_z1=z1, total_z2=z2)
    # the term alone reads attention
    case.check("grad_mi_attn", attention.grad / settings["task_lambda"])


@cases("micse_ami_paper")
def test_ami_paper(name, precision, monkeypatch):
    case = Case(name, precision)
    attention = case.tensor("in_attention", grad=True)
    layers = attention[-4:]
    real = case.tensor("in_real_token_mask").bool()
    positions = case.tensor("in_sample_index")
    samples = case.settings["samples"]
    if samples == "all":
        samples = None

    def recorded(valid, count, replacement):
        return positions.reshape(*valid.shape[:2], count)

    monkeypatch.setattr(losses, "sample_positions", recorded)
    mean_mi = losses.ami_paper(
        [maps[0::2] for maps in layers],
        [maps[1::2] for maps in layers],
        real,
        samples,
    )
    loss = -case.settings["lambda"] * mean_mi

    case.check("mean_mi", mean_mi)
    case.check("loss", loss)
    case.check_gradients(loss, attn=attention)


@cases("informin_code")
def test_reconstruction_of_the_code(name, precision):
    case = Case(name, precision)
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)

    term = informin_cl.reconstruction(z1, z2, "code")
    total = info_nce(case, z1, z2) + case.settings["reconstruction_weight"] * term

    case.check("term", term)
    case.check("loss_total", total)
    case.check_gradients(total, total_z1=z1, total_z2=z2)


@pytest.mark.parametrize(("form", "suffix"), [("paper", "normalised"), ("raw", "raw")])
@cases("informin_paper")
def test_reconstruction_of_the_paper(name, precision, form, suffix):
    case = Case(name, precision)
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)

    term = informin_cl.reconstruction(z1, z2, form)
    total = info_nce(case, z1, z2) + case.settings["lambda"] * term

    case.check(f"term_{suffix}", term)
    case.check(f"total_{suffix}", total)
    case.check_gradients(total, **{f"total_{suffix}_z1": z1, f"total_{suffix}_z2": z2})


@cases("msse_nce")
def test_released_total_of_msse(name, precision):
    """The released code adds NCE of the projector's outputs, a term over thirds of the layers, and
    DCM with the released pairing. It has no ICM."""
    case = Case(name, precision)
    hidden = case.tensor("in_hidden_states", grad=True)
    weight = case.tensor("in_W")
    bias = case.tensor("in_b")
    size = case.settings["N"]

    def view(rows):
        pooled = hidden[-1, rows, 0]
        states = [layer[rows, 0] for layer in hidden]
        return SimpleNamespace(z=pooled @ weight.T + bias, pooled=pooled, states=states)

    view1 = view(slice(0, size))
    view2 = view(slice(size, None))
    nce = info_nce(case, view1.z, view2.z)
    repulsion = losses.layerwise_repulsion(view1.states, case.tensor("in_noise"))
    released = SimpleNamespace(p=SimpleNamespace(form="code", released_pairing=True))
    dcm = msse.Method.dimension_term(released, view1, view2)
    total = nce - 0.8 * repulsion + 0.2 * dcm

    case.check("nce", nce)
    case.check("mi_est", repulsion)
    case.check("dcm_mispaired", dcm)
    case.check("total_repaired", total)
    case.check_gradients(total, total_hidden=hidden)


# ---------------------------------------------------------------- methods with a network


class Network:
    """A tiny method and its component, with the weights of the official network."""

    def __init__(self, case, folder, method, component, projector, params):
        """Build the method from a checkpoint, as `infocse` and `diffcse` do, and load its weights.

        Args:
            folder: for the checkpoint.
            projector: hyper-parameter of the method.
            params: hyper-parameters of the component.
        """
        self.case = case
        self.weights = {}
        for key, weight in arrays(WEIGHTS).items():
            network, _, name = key.partition("/")
            if network == method:
                self.weights[name] = torch.from_numpy(weight)

        write_checkpoint(BertConfig(**case.settings["bert_config"]), folder)
        encoder = Encoder.load(EncoderRef(name=str(folder), revision="local"), dropout=0.0)
        own_params = {"temperature": case.settings["temp"], "projector": projector}
        self.method = load(method)(encoder, typed_params(method, own_params))
        params_of_component = typed_params(component, params, COMPONENTS)
        self.component = load(component, COMPONENTS)(self.method, params_of_component)

        self.load_weights(encoder.model, "bert.")
        if projector == "batchnorm":
            self.load_weights(self.method.head, "mlp.net.")
        elif projector == "mlp":
            self.load_weights(self.method.head, "mlp.")
        self.method.to(case.dtype).train()
        self.component.to(case.dtype).train()

    def load_weights(self, module, prefix, rename=str):
        """Load the weights whose names begin with `prefix`.

        Args:
            rename: maps the official name, without the prefix, to ours.
        """
        state = {}
        for name, weight in self.weights.items():
            if name.startswith(prefix):
                state[rename(name.removeprefix(prefix))] = weight
        missing, _ = module.load_state_dict(state, strict=False)

        # the last stands for decoder.bias, too
        without_weights = ("position_ids", "num_batches_tracked", "running_", "predictions.bias")
        for name in missing:
            assert any(part in name for part in without_weights), name

    def check(self, **weights):
        """Compare the losses of the case, and the gradients at some weights."""
        ids = self.case.tensor("in_input_ids").flatten(0, 1)
        mask = self.case.tensor("in_attention_mask").flatten(0, 1)
        encoded = self.method.encode({"input_ids": ids, "attention_mask": mask})
        # rows 2i and 2i+1 are the views of sentence i
        views = Views(encoded.rows(slice(0, None, 2)), encoded.rows(slice(1, None, 2)))
        contrast = self.method.loss(views)
        total = contrast + self.component.term(self.method, views)

        self.case.check("loss_contrastive", contrast)
        self.case.check("loss_total", total)
        embeddings = self.method.encoder.model.embeddings.word_embeddings.weight
        self.case.check_gradients(total, word_embeddings=embeddings, **weights)

    def rows(self, name):
        """Read an array in the order of the component's rows: all first views, then all second."""
        return self.case.tensor(name).transpose(0, 1).flatten(0, 1)


def write_checkpoint(config, folder):
    """Write a masked-LM BERT with random weights, and a vocabulary in which BERT's special tokens
    have their usual ids."""
    BertForMaskedLM(config).save_pretrained(folder)
    special = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
    vocabulary = [special.get(index, f"w{index}") for index in range(config.vocab_size)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)


@cases("infocse_aux")
def test_auxiliary_mlm(name, precision, tmp_path, monkeypatch):
    case = Case(name, precision)
    if case.settings["batchnorm_projector"]:
        projector = "batchnorm"
    elif case.settings["pooler_type"] == "cls":
        projector = "mlp"
    else:
        projector = "none"
    params = {"weight": case.settings["mlm_weight"]}
    network = Network(case, tmp_path, "infocse", "auxiliary_mlm", projector, params)
    component = network.component
    network.load_weights(component.lower.model, "mlm.bert.")
    network.load_weights(component.upper.layers, "c_head.")
    network.load_weights(component.head, "lm_head.", name_in_bert_head)
    masked_ids = network.rows("in_mlm_input_ids")
    labels = network.rows("in_mlm_labels")
    monkeypatch.setattr(
        "methods.components.auxiliary_mlm.mask_batch", lambda *_: (masked_ids, labels)
    )

    weights = {"lm_head_bias": component.head.predictions.decoder.bias}
    if name == "infocse_aux_1":  # kept for one case: it is large
        weights["c_head0_query"] = component.upper.layers[0].attention.self.query.weight
    network.check(**weights)

    for weight in component.lower.parameters():
        assert weight.grad is None


def name_in_bert_head(name):
    """Translate the name of a weight in the official masked-LM head to that in BERT's."""
    parts = {
        "transform": "predictions.transform",
        "decoder": "predictions.decoder",
        "bias": "predictions.decoder.bias",
    }
    first, dot, rest = name.partition(".")
    return parts[first] + dot + rest


@cases("diffcse_rtd")
def test_replaced_token_detection(name, precision, tmp_path, monkeypatch):
    case = Case(name, precision)
    projector = "batchnorm" if case.settings["batchnorm"] else "mlp"
    params = {"weight": case.settings["lambda_weight"], "generator": "self"}
    network = Network(case, tmp_path, "diffcse", "rtd", projector, params)
    component = network.component
    network.load_weights(component.discriminator.model, "discriminator.")
    network.load_weights(component.classify, "electra_head.")
    generated = network.rows("in_generator_argmax")
    monkeypatch.setattr(component, "most_likely", lambda ids, mask: generated)
    monkeypatch.setattr(
        "methods.components.rtd.mask_batch", lambda tokenizer, ids, probability: (ids, None)
    )

    # the official code forces the id of [CLS], ours keeps what the sentence begins with: the same
    # in a real batch
    assert (network.rows("in_input_ids")[:, 0] == case.settings["cls_token"]).all()
    embeddings = component.discriminator.model.embeddings.word_embeddings.weight
    network.check(disc_word_embeddings=embeddings, electra_head=component.classify.weight)


# ---------------------------------------------------------------- what no official code says


@pytest.mark.parametrize("loss", [losses.info_nce, mirror_bert.nt_xent])
def test_no_gradient_reaches_the_queue_and_autocast_does_not_round_cosines(loss):
    """bf16 has 8 bits. At temperature 0.02, a cosine rounded to them moves a logit by up to 0.1."""
    views = [torch.randn(rows, 6) for rows in (5, 5, 7)]

    def value_and_gradient(autocast):
        z1, z2, queue = (view.clone().requires_grad_() for view in views)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            value = loss(z1, z2, 0.02, queue)
        value.backward()
        assert queue.grad is None
        return value.detach(), z1.grad

    plain = value_and_gradient(autocast=False)
    rounded = value_and_gradient(autocast=True)
    torch.testing.assert_close(rounded, plain, rtol=0, atol=0)


COMPARISONS = {
    "info_nce": lambda a, b: losses.info_nce(a, b, 0.05),
    "contrastive_tension": lambda a, b: ct.contrastive_tension(a, b, torch.arange(5) % 2),
    "reconstruction": lambda a, b: informin_cl.reconstruction(a, b, "raw"),
    "barlow_twins": lambda a, b: scd.barlow_twins(a, b, 0.0051),
    "layerwise_repulsion": lambda a, b: losses.layerwise_repulsion([a, b, a], torch.ones(3, 5, 6)),
}


@pytest.mark.parametrize("loss", COMPARISONS.values(), ids=COMPARISONS)
def test_half_precision_is_widened_before_it_is_compared(loss):
    a = torch.randn(5, 6).bfloat16()
    b = torch.randn(5, 6).bfloat16()
    assert torch.equal(loss(a, b), loss(a.float(), b.float()))


@pytest.mark.parametrize(
    ("depth", "paper", "code"),
    [
        (12, range(8, 12), range(7, 11)),
        (24, range(16, 24), range(14, 22)),
        (9, range(6, 9), range(5, 7)),
        (2, range(1, 2), range(0, 2)),
    ],
)
def test_layers_that_ami_reads(depth, paper, code):
    """The forms `paper` and `code` read other layers of an encoder of `depth` layers."""
    assert losses.ami_layers("paper", depth) == paper
    assert losses.ami_layers("code", depth) == code


@pytest.mark.parametrize(
    ("states", "ends"), [(13, (4, 8)), (25, (8, 15)), (7, (2, 4)), (4, (1, 2))]
)
def test_thirds_of_the_hidden_states(states, ends):
    """13 states become 0-3, 4-7 and 8-12. Other depths are divided in the same proportions."""
    first, second = ends
    parts = [slice(0, first), slice(first, second), slice(second, states)]
    assert list(losses.thirds(states)) == parts


def test_the_diagonal_is_dropped():
    square = torch.arange(9).reshape(3, 3)
    assert losses.off_diagonal(square).tolist() == [[1, 2], [3, 5], [6, 7]]


def test_dimensions_are_correlated_over_the_batch():
    a, b = torch.randn(2, 6, 4, dtype=torch.float64)
    expected = np.corrcoef(a.T, b.T)[:4, 4:]
    biased = losses.cross_correlation(a, b, eps=0.0)
    unbiased = losses.cross_correlation(a, b, eps=0.0, unbiased=True)
    np.testing.assert_allclose(biased, expected)
    np.testing.assert_allclose(unbiased, expected * 5 / 6)


def test_eps_is_added_to_the_variance_or_to_the_unbiased_deviation():
    a = torch.randn(6, 1, dtype=torch.float64)
    biased = losses.cross_correlation(a, a, eps=0.5)
    unbiased = losses.cross_correlation(a, a, eps=0.5, unbiased=True)
    variance = a.var(correction=0)
    assert float(biased) == pytest.approx(float(variance / (variance + 0.5)))
    assert float(unbiased) == pytest.approx(float(variance / (a.std() + 0.5) ** 2))


def test_heads_are_paired_and_an_odd_last_one_is_left_out():
    attention = [torch.rand(2, 3, 5, 5), torch.rand(2, 3, 5, 5)]
    slices = losses.slices_paper(attention)
    assert slices.shape == (2, 2, 50)
    for layer, maps in enumerate(attention):
        torch.testing.assert_close(slices[:, layer], maps[:, :2].flatten(1))


def test_mutual_information_counts_the_weighted_entries_only():
    x, y = torch.rand(2, 9, dtype=torch.float64) + 0.1
    counts = torch.tensor([True] * 6 + [False] * 3)
    rho = np.corrcoef(x[:6].log(), y[:6].log())[0, 1]
    expected = -0.5 * np.log(1 - rho**2)
    assert float(losses.gaussian_mi(x, y, counts)) == pytest.approx(expected)
    assert float(losses.gaussian_mi(x[:6], y[:6])) == pytest.approx(expected)


def test_attention_of_0_in_one_view_is_not_drawn():
    """It has no logarithm. Neither is that of a token that does not count."""
    first, second = torch.rand(2, 1, 2, 3, 3, dtype=torch.float64) + 0.1
    first[0, 0, 0, 1] = 0.0
    second[0, 1, 1, 0] = 0.0
    real = torch.tensor([[True, True, False]])
    drawn = losses.ami_paper([first], [second], real, samples=None)

    counts = (real[0][:, None] & real[0]).expand(2, 3, 3) & (first[0] > 0) & (second[0] > 0)
    assert int(counts.sum()) == 6
    rho = np.corrcoef(first[0][counts].log(), second[0][counts].log())[0, 1]
    assert float(drawn) == pytest.approx(-0.5 * np.log(1 - rho**2))


def test_mutual_information_of_equal_views_is_finite():
    """The correlation is cut at ρ² = 1 - 1e-6. CT starts from two equal encoders."""
    x = (torch.rand(3, 8, dtype=torch.float64) + 0.1).requires_grad_()
    equal = losses.gaussian_mi(x, x)
    assert equal.tolist() == pytest.approx([-0.5 * np.log(1e-6)] * 3)
    (gradient,) = torch.autograd.grad(equal.sum(), x)
    assert gradient.isfinite().all()


def test_one_entry_or_none_has_no_mutual_information():
    x, y = torch.rand(2, 3, 8, dtype=torch.float64) + 0.1
    entries = torch.tensor([[8], [1], [0]])
    many, one, none = losses.gaussian_mi(x, y, torch.arange(8) < entries)
    assert many > 1e-9
    assert one.abs() < 1e-9
    assert none.abs() < 1e-9


def test_positions_are_drawn_among_the_valid_ones():
    """Each row draws for itself. With replacement it may draw more than it has."""
    valid = torch.tensor([[[True, False, True, False]], [[False, False, False, True]]])
    positions = losses.sample_positions(valid, 40, replacement=True)
    assert positions.shape == (2, 1, 40)
    assert set(positions[0, 0].tolist()) == {0, 2}
    assert set(positions[1, 0].tolist()) == {3}


def test_a_row_without_a_valid_position_draws_from_all():
    valid = torch.tensor([[False, False, False], [True, False, False]])
    without, one = losses.sample_positions(valid, 60, replacement=True).tolist()
    assert set(without) == {0, 1, 2}
    assert set(one) == {0}


def test_without_replacement_no_position_is_drawn_twice():
    positions = losses.sample_positions(torch.ones(5, 6, dtype=torch.bool), 6, replacement=False)
    assert positions.sort(-1).values.tolist() == [list(range(6))] * 5


def test_special_tokens_are_not_masked(tiny_bert):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    texts = ["a river", "a long walk [MASK] [UNK]"]
    ids = tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]
    _, labels = mask_batch(tokenizer, ids, 1.0)
    is_special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    assert torch.equal(labels != -100, ~is_special)


def test_nothing_to_restore_costs_nothing():
    states = torch.randn(2, 3, 4, requires_grad=True)
    loss = masked_lm_loss(torch.nn.Linear(4, 9), states, torch.full((2, 3), -100))
    loss.backward()
    assert loss == 0
    assert not states.grad.any()


def test_masked_tokens_are_compared_in_fp32():
    head = torch.nn.Linear(4, 9).bfloat16()
    states = torch.randn(2, 3, 4).bfloat16()
    loss = masked_lm_loss(head, states, torch.ones(2, 3, dtype=torch.long))
    assert loss.dtype == torch.float32
