"""Losses against the values and gradients of the official implementations.

`vectors/values.npz.xz` has made-up inputs and what the official code of each paper gives for them:
its losses and gradients, measured by this project in float64 with the code imported unmodified, and
kept exactly. `ct_st` ran the version of sentence-transformers; `micse_ami_paper`, `informin_paper`
and `msse_dcm_paper` are the papers' equations, which nobody released. `cases.json` states for each
case the repository, commit, file and lines, how it was run, and its settings; no code is copied.
`weights.npz.xz` are random weights of the tiny networks, 0 in the rows of tokens and positions that
no case reads.
"""

import io
import json
import lzma
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.func import functional_call
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertTokenizerFast

from csebench.model.encoder import Encoder
from csebench.model.layers import Head
from csebench.model.pooling import mean_pool
from csebench.plan.catalog.registry import COMPONENTS, declaration, fill, load
from csebench.plan.schema.declarations import EncoderRef
from csebench.train import losses
from csebench.train.method import Views
from csebench.train.mlm import mask_batch, masked_lm_loss
from methods import ct, informin_cl, mirror_bert, msse, scd
from methods.components import ami

FOLDER = Path(__file__).parent / "vectors"
FACTS = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
# of the largest entry; the official code: 8e-6
F64, F32 = (torch.float64, 1e-9), (torch.float32, 1e-4)


@cache
def arrays(file):
    """By `case/name`, or `network/name of a weight`."""
    return dict(np.load(io.BytesIO(lzma.decompress((FOLDER / file).read_bytes()))))


class Case:
    """The arrays of one case in one precision, and the comparison with what is expected."""

    def __init__(self, name, precision):
        self.name, (self.dtype, self.tolerance) = name, precision
        self.settings = FACTS[name]["hyper_parameters"]

    def tensor(self, name, grad=False):
        t = torch.from_numpy(arrays("values.npz.xz")[f"{self.name}/{name}"])
        t = t.to(self.dtype) if t.is_floating_point() else t.long()
        return t.requires_grad_() if grad else t

    def check(self, name, value):
        expected = self.tensor(name).to(value.dtype)
        gap = (value.detach() - expected).abs().max() / expected.abs().max()
        assert gap <= self.tolerance, f"{name}: relative gap {gap:.2e}"

    def check_gradients(self, inputs, **made):
        """Values by name, and the gradients of the last one at the inputs."""
        [*made.values()][-1].backward()
        for name, value in made.items():
            self.check(name, value)
        for name, tensor in inputs.items():
            self.check(f"grad_{name}", tensor.grad)


def cases(*prefixes):
    names = [name for name in FACTS if name.rpartition("_")[0] in prefixes]
    params = [
        pytest.param(n, p, id=f"{n}-{p[0]}".replace("torch.float", "f"))
        for n in names
        for p in (F64, F32)
    ]
    return pytest.mark.parametrize(("name", "precision"), params)


def mirror(case, h1, h2):
    pools = {"cls": lambda h: h[:, 0], "mean": lambda h: h.mean(1)}
    pool = pools.get(case.settings["agg_mode"], lambda h: mean_pool(h, case.tensor("in_mask")))
    return mirror_bert.nt_xent(pool(h1), pool(h2), case.settings["tau"])


def tension(case, *states):
    pooled = [mean_pool(s, case.tensor(f"in_mask{i}")) for i, s in enumerate(states, 1)]
    return ct.contrastive_tension(*pooled, case.tensor("in_labels"))


def hard_negatives(case, z1, z2, z3):
    return info_nce(case, z1, z2, hard=z3, hard_weight=case.settings["hard_negative_weight"])


def info_nce(case, z1, z2, **more):
    return losses.info_nce(z1, z2, case.settings["temp"], **more)


def behind_head(case, hidden, weight, bias):
    head = Head(hidden.shape[-1])
    z = functional_call(head, {"dense.weight": weight, "dense.bias": bias}, hidden[:, 0])
    return info_nce(case, z[0::2], z[1::2])


def with_masked_lm(case, hidden, masked, weight):
    head = lambda states: states @ weight.T + case.tensor("in_head_b")  # noqa: E731
    term = masked_lm_loss(head, masked, case.tensor("in_labels").flatten(0, 1))
    return info_nce(case, hidden[0::2, 0], hidden[1::2, 0]) + case.settings["mlm_weight"] * term


LOSSES = {  # case: its inputs with gradients, and the loss
    "simcse_unsup": ("z1 z2", info_nce),
    "simcse_unsup_mlp": ("hidden W b", behind_head),
    "simcse_mlm": ("hidden mlm_hidden head_W", with_masked_lm),
    "micse_diag_only": ("z1 z2", lambda case, *z: info_nce(case, *z, in_batch_negatives=False)),
    "esimcse_queue": ("z1 z2", lambda case, *z: info_nce(case, *z, queue=case.tensor("in_queue"))),
    "simcse_sup_hardneg": ("z1 z2 z3", hard_negatives),
    "ct_official": ("E1 E2", tension),
    "ct_st": (
        "e1 e2",
        lambda case, *e: ct.contrastive_tension(*e, case.tensor("in_labels"), reduction="sum"),
    ),
    "mirror_infonce": ("h1 h2", mirror),
    "barlow_twins": ("z1 z2", lambda case, *z: scd.barlow_twins(*z, case.settings["lambd"])),
    "msse_dcm_code": ("a b", lambda case, *v: losses.dimension_contrast(*v, "code")),
    "msse_dcm_paper": ("a b", lambda case, *v: losses.dimension_contrast(*v, "paper")),
}


@cases(*LOSSES)
def test_a_loss_and_its_gradients(name, precision):
    names, loss = LOSSES[name.rpartition("_")[0]]
    case = Case(name, precision)
    inputs = {x: case.tensor(f"in_{x}", grad=True) for x in names.split()}
    total = "loss_total" if loss is with_masked_lm else "loss"
    case.check_gradients(inputs, **{total: loss(case, *inputs.values())})


def test_mirror_span_mask():
    for example in FACTS["mirror_span_mask_1"]["examples"]:
        rng = np.random.RandomState(example["numpy_global_seed"])
        assert (
            mirror_bert.mask_span(example["input"], rng.randint, example["mask_len"])
            == example["output"]
        )
    for text in ("a" * 29, "a" * 30):  # the shortest that is masked
        assert ("[MASK]" in mirror_bert.mask_span(text, lambda high: 2)) == (len(text) == 30)


@cases("micse_ami_code")
def test_ami_code(name, precision, monkeypatch):
    case = Case(name, precision)
    attention, settings = case.tensor("in_attention", True), case.settings
    layers = attention[settings["min_layer"] : settings["max_layer"]]
    positions = case.tensor("in_sample_index")

    def recorded(valid, samples, replacement):
        assert valid.shape[0] == len(case.tensor("in_kept_chunks"))
        assert samples == positions.shape[1] and not replacement
        return positions

    monkeypatch.setattr(ami, "sample_positions", recorded)
    z1, z2 = case.tensor("in_z1", True), case.tensor("in_z2", True)
    term = -ami.ami_code(
        [a[0::2] for a in layers], [a[1::2] for a in layers], settings["target_samples"]
    )
    contrast = losses.info_nce(z1, z2, settings["temp"])
    total = settings["task_alpha"] * contrast + settings["task_lambda"] * term
    case.check_gradients(
        {"total_z1": z1, "total_z2": z2}, mi_term=term, ce=contrast, loss_total=total
    )
    # the term alone reads attention
    case.check("grad_mi_attn", attention.grad / settings["task_lambda"])


@cases("micse_ami_paper")
def test_ami_paper(name, precision, monkeypatch):
    case = Case(name, precision)
    attention, samples = case.tensor("in_attention", True), case.settings["samples"]
    layers, real = attention[-4:], case.tensor("in_real_token_mask").bool()
    positions = case.tensor("in_sample_index")
    drawn = lambda valid, samples, replacement: positions.reshape(*valid.shape[:2], samples)  # noqa: E731
    monkeypatch.setattr(losses, "sample_positions", drawn)
    views = [a[0::2] for a in layers], [a[1::2] for a in layers]
    mean_mi = losses.ami_paper(*views, real, None if samples == "all" else samples)
    case.check_gradients(
        {"attn": attention}, mean_mi=mean_mi, loss=-case.settings["lambda"] * mean_mi
    )


@cases("informin_code", "informin_paper")
def test_reconstruction(name, precision):
    case, forms = Case(name, precision), {"code": ("term", "loss_total", "total")}
    if "paper" in name:
        forms = {
            "paper": ("term_normalised", *["total_normalised"] * 2),
            "raw": ("term_raw", *["total_raw"] * 2),
        }
    for form, (term_name, total_name, gradient) in forms.items():
        z1, z2 = case.tensor("in_z1", True), case.tensor("in_z2", True)
        term = informin_cl.reconstruction(z1, z2, form)
        weight = case.settings.get("reconstruction_weight", case.settings.get("lambda"))
        made = {term_name: term, total_name: info_nce(case, z1, z2) + weight * term}
        case.check_gradients({f"{gradient}_z1": z1, f"{gradient}_z2": z2}, **made)


@cases("msse_nce")
def test_released_total_of_msse(name, precision):
    """NCE behind the projector, the term over thirds of the layers, and DCM with the released
    pairing; without ICM."""
    case = Case(name, precision)
    hidden, weight, bias = (
        case.tensor("in_hidden_states", True),
        case.tensor("in_W"),
        case.tensor("in_b"),
    )
    n = case.settings["N"]
    views = []
    for rows in (slice(0, n), slice(n, None)):
        pooled = hidden[-1, rows, 0]
        states = [h[rows, 0] for h in hidden]
        views.append(SimpleNamespace(z=pooled @ weight.T + bias, pooled=pooled, states=states))
    nce = info_nce(case, views[0].z, views[1].z)
    repulsion = losses.layerwise_repulsion(views[0].states, case.tensor("in_noise"))
    released = SimpleNamespace(p=SimpleNamespace(form="code", released_pairing=True))
    dcm = msse.Method.dimension_term(released, *views)
    total = nce - 0.8 * repulsion + 0.2 * dcm
    made = {"nce": nce, "mi_est": repulsion, "dcm_mispaired": dcm, "total_repaired": total}
    case.check_gradients({"total_hidden": hidden}, **made)


class Network:
    """A tiny method with the official network's weights, as `infocse` and `diffcse` build it
    from a checkpoint."""

    def __init__(self, case, folder, method, component):
        weights = {
            key.partition("/"): torch.from_numpy(w) for key, w in arrays("weights.npz.xz").items()
        }
        self.weights = {name: w for (network, _, name), w in weights.items() if network == method}
        self.case, settings, config = (
            case,
            case.settings,
            BertConfig(**case.settings["bert_config"]),
        )
        BertForMaskedLM(config).save_pretrained(folder)
        special = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
        (folder / "vocab.txt").write_text(
            "\n".join(special.get(i, f"w{i}") for i in range(config.vocab_size))
        )
        BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
        encoder = Encoder.load(EncoderRef(name=str(folder), revision="local"), dropout=0.0)
        batchnorm = settings.get("batchnorm", settings.get("batchnorm_projector"))
        has_head = settings.get("pooler_type", "cls") == "cls"
        projector = "batchnorm" if batchnorm else "mlp" if has_head else "none"
        params = {"temperature": settings["temp"], "projector": projector}
        self.method = load(method)(encoder, fill(declaration(method), params, method))
        params = {"weight": settings.get("mlm_weight", settings.get("lambda_weight"))}
        params |= {"generator": "self"} if component == "rtd" else {}
        params = fill(declaration(component, COMPONENTS), params, component)
        self.component = load(component, COMPONENTS)(self.method, params)
        self.fill(encoder.model, "bert.")
        if projector != "none":
            self.fill(self.method.head, "mlp.net." if batchnorm else "mlp.")
        for module in (self.method, self.component):
            module.to(case.dtype).train()

    def fill(self, module, prefix, rename=lambda key: key):
        """Weights whose names begin with `prefix`."""
        own = {
            rename(k.removeprefix(prefix)): v
            for k, v in self.weights.items()
            if k.startswith(prefix)
        }
        missing, _ = module.load_state_dict(own, strict=False)
        # the last: also decoder.bias
        unused = ("position_ids", "num_batches_tracked", "running_", "predictions.bias")
        assert not [k for k in missing if not any(u in k for u in unused)]

    def check(self, **gradients):
        """The losses, and gradients of weights by name."""
        ids, mask = (
            self.case.tensor(f"in_{key}").flatten(0, 1) for key in ("input_ids", "attention_mask")
        )
        # rows 2i and 2i+1: of sentence i
        both = self.method.encode({"input_ids": ids, "attention_mask": mask})
        views = Views(both.rows(slice(0, None, 2)), both.rows(slice(1, None, 2)))
        contrast = self.method.loss(views)
        total = contrast + self.component.term(self.method, views)
        gradients["word_embeddings"] = self.method.encoder.model.embeddings.word_embeddings.weight
        self.case.check_gradients(gradients, loss_contrastive=contrast, loss_total=total)

    def rows(self, name):
        """An array of the case in the order of the component's rows: first views, then second
        ones."""
        return self.case.tensor(name).transpose(0, 1).flatten(0, 1)


@cases("infocse_aux")
def test_auxiliary_mlm(name, precision, tmp_path, monkeypatch):
    case = Case(name, precision)
    network = Network(case, tmp_path, "infocse", "auxiliary_mlm")
    component = network.component
    network.fill(component.lower.model, "mlm.bert.")
    network.fill(component.upper.layers, "c_head.")
    head = {
        "transform": "predictions.transform",
        "decoder": "predictions.decoder",
        "bias": "predictions.decoder.bias",
    }
    network.fill(
        component.head,
        "lm_head.",
        lambda k: k.replace(k.partition(".")[0], head[k.partition(".")[0]], 1),
    )
    masked = network.rows("in_mlm_input_ids"), network.rows("in_mlm_labels")
    monkeypatch.setattr("methods.components.auxiliary_mlm.mask_batch", lambda *_: masked)
    weights = {"lm_head_bias": component.head.predictions.decoder.bias}
    if name == "infocse_aux_1":  # kept for one case: it is large
        weights["c_head0_query"] = component.upper.layers[0].attention.self.query.weight
    network.check(**weights)
    assert all(w.grad is None for w in component.lower.parameters())


@cases("diffcse_rtd")
def test_replaced_token_detection(name, precision, tmp_path, monkeypatch):
    case = Case(name, precision)
    network = Network(case, tmp_path, "diffcse", "rtd")
    component = network.component
    network.fill(component.discriminator.model, "discriminator.")
    network.fill(component.classify, "electra_head.")
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
    """bf16 has 8 bits: at temperature 0.02 a cosine rounded to them moves a logit by up to 0.1."""
    results, views = [], [torch.randn(rows, 6) for rows in (5, 5, 7)]
    for enabled in (False, True):
        z1, z2, queue = (view.clone().requires_grad_() for view in views)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            value = loss(z1, z2, 0.02, queue)
        value.backward()
        assert queue.grad is None
        results.append((value.detach(), z1.grad))
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


HALF = {
    "info_nce": lambda a, b: losses.info_nce(a, b, 0.05),
    "contrastive_tension": lambda a, b: ct.contrastive_tension(a, b, torch.arange(5) % 2),
    "reconstruction": lambda a, b: informin_cl.reconstruction(a, b, "raw"),
    "barlow_twins": lambda a, b: scd.barlow_twins(a, b, 0.0051),
    "layerwise_repulsion": lambda a, b: losses.layerwise_repulsion([a, b, a], torch.ones(3, 5, 6)),
}


@pytest.mark.parametrize("loss", HALF.values(), ids=HALF)
def test_half_precision_is_widened_before_it_is_compared(loss):
    half = [torch.randn(5, 6).bfloat16() for _ in range(2)]
    assert torch.equal(loss(*half), loss(*(view.float() for view in half)))


LAYERS = {
    12: ((8, 12), (7, 11)),
    24: ((16, 24), (14, 22)),
    9: ((6, 9), (5, 7)),
    2: ((1, 2), (0, 2)),
}


@pytest.mark.parametrize("depth", LAYERS)
def test_layers_that_ami_reads(depth):
    """Of an encoder of so many layers, in form paper and in form code."""
    assert [losses.ami_layers(form, depth) for form in ("paper", "code")] == [
        range(*ends) for ends in LAYERS[depth]
    ]


def test_mutual_information_at_its_ends():
    """Equal views: cut at rho² = 1 - 1e-6. One entry or none correlates with nothing."""
    x, y = (torch.rand(2, 3, 8, dtype=torch.float64) + 0.1).requires_grad_()
    equal = losses.gaussian_mi(x, x)
    assert equal.tolist() == pytest.approx([-0.5 * np.log(1e-6)] * 3)
    # CT starts from two equal encoders
    assert torch.autograd.grad(equal.sum(), x)[0].isfinite().all()
    some = losses.gaussian_mi(x, y, torch.arange(8) < torch.tensor([[8], [1], [0]]))
    assert some[0] > 1e-9 > some[1:].abs().max()


def test_special_tokens_are_not_masked_and_nothing_to_restore_costs_nothing(tiny_bert):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    ids = tokenizer(["a river", "a long walk [MASK] [UNK]"], padding=True, return_tensors="pt")[
        "input_ids"
    ]
    _, labels = mask_batch(tokenizer, ids, 1.0)
    assert torch.equal(labels != -100, ~torch.isin(ids, torch.tensor(tokenizer.all_special_ids)))
    states = torch.randn(2, 3, 4, requires_grad=True)
    loss = masked_lm_loss(torch.nn.Linear(4, 9), states, torch.full((2, 3), -100))
    loss.backward()
    assert loss == 0 and not states.grad.any()
    half = masked_lm_loss(
        torch.nn.Linear(4, 9).bfloat16(), states.bfloat16(), torch.ones(2, 3, dtype=torch.long)
    )
    assert half.dtype == torch.float32  # compared in fp32
