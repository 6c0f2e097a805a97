"""PromCSE and CLSEP against the values and gradients of their official code.

vector_cases.py says which files have them.
"""

import pytest
import torch
from torch.nn.functional import linear
from transformers import BertConfig, BertModel, BertTokenizerFast
from vector_cases import Case, cases

from csebench.model.encoder import Encoder
from csebench.model.pooling import Encoded
from csebench.plan.catalog.registry import load, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train.method import View, Views
from methods import clsep_sup

# ---------------------------------------------------------------- PromCSE


@pytest.fixture
def promcse(make_spec):
    """Make the method on an encoder, with the settings of a case."""

    def make(case, folder):
        params = {
            "temperature": case.settings["temp"],
            "hard_weight": case.settings.get("hard_negative_weight", 0.0),
            "margin": case.settings["eh_loss_margin"],
            "hinge": case.settings["eh_loss_weight"],
            "prefix": case.settings.get("pre_seq_len", 1),
        }
        spec = make_spec("promcse_sup", params=params)
        ref = EncoderRef(name=str(folder), revision="local")
        encoder = Encoder.load(ref, dropout=0.0, with_pooler=True, new_pooler=True)
        return load("promcse_sup")(encoder, typed_params("promcse_sup", spec.params))

    return make


@cases("promcse_loss")
def test_promcse_has_the_official_loss(name, precision, promcse, tiny_bert):
    case = Case(name, precision)
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)
    z3 = case.tensor("in_z3", grad=True)
    batch = {"input_ids": torch.zeros(len(z1), 1, dtype=torch.long)}
    views = Views(View(z1, z1, batch), View(z2, z2, batch), View(z3, z3, batch))

    loss = promcse(case, tiny_bert).loss(views)

    case.check("out_loss", loss)
    case.check_gradients(loss, z1=z1, z2=z2, z3=z3)


def write_bert(case, folder):
    """Write the BERT of a case, without its prefix and head, and a vocabulary of its size."""
    config = BertConfig(**case.settings["bert_config"])
    model = BertModel(config, add_pooling_layer=False)
    weights = {name: case.tensor(f"in_bert.{name}").float() for name in model.state_dict()}
    model.load_state_dict(weights)
    model.save_pretrained(folder)
    words = [f"w{number}" for number in range(config.vocab_size - 5)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)


def in_our_layout(prefix, layers):
    """Reorder the official embedding of a prefix, (P, L * 2 * D) -> (L, 2, P, D)."""
    return prefix.unflatten(1, (layers, 2, -1)).permute(1, 2, 0, 3)


@cases("promcse_network")
def test_a_bert_with_a_prefix_has_the_official_vectors_and_gradients(
    name, precision, promcse, tmp_path, monkeypatch
):
    case = Case(name, precision)
    write_bert(case, tmp_path)
    method = promcse(case, tmp_path)
    model = method.encoder.model
    layers = method.encoder.num_layers
    prefix = case.tensor("in_prefix_encoder.embedding.weight")
    model.prefix.vectors.data = in_our_layout(prefix, layers)
    model.pooler.dense.weight.data = case.tensor("in_mlp.dense.weight")
    model.pooler.dense.bias.data = case.tensor("in_mlp.dense.bias")
    method.to(case.dtype).train()
    batch = {"input_ids": case.tensor("in_ids"), "attention_mask": case.tensor("in_mask")}
    monkeypatch.setattr(method, "tokenize", lambda _: batch)

    loss = method.loss(method.views([]))
    loss.backward()
    with torch.no_grad():
        vectors = method.eval().view([]).z

    case.check("out_loss", loss)
    case.check("out_vectors", vectors)
    case.check("grad_mlp.dense.weight", model.pooler.dense.weight.grad)
    expected = in_our_layout(case.tensor("grad_prefix_encoder.embedding.weight"), layers)
    gap = (model.prefix.vectors.grad - expected).abs().max() / expected.abs().max()
    assert gap <= case.tolerance


@pytest.mark.parametrize("name", ["promcse", "promcse_sup"])
def test_promcse_trains_the_prefix_and_the_head_alone(name, make_spec, tiny_bert):
    spec = make_spec(name)
    ref = EncoderRef(name=str(tiny_bert), revision="local")
    encoder = Encoder.load(ref, with_pooler=name == "promcse_sup", new_pooler=True)
    method = load(name)(encoder, typed_params(name, spec.params))

    trained = {key for key, weight in method.named_parameters() if weight.requires_grad}

    head = {"promcse": "head.dense", "promcse_sup": "encoder.model.pooler.dense"}[name]
    assert trained == {"encoder.model.prefix.vectors", f"{head}.weight", f"{head}.bias"}


# ---------------------------------------------------------------- CLSEP


@cases("clsep_augment")
def test_words_are_changed_as_in_the_official_code(name, precision, monkeypatch):
    case = Case(name, precision)
    draws = iter(["uniform", "size", "way", "kept"])
    remaining = case.tensor("in_remain")

    def next_draw(*_, **__):
        return case.tensor(f"in_{next(draws)}")

    monkeypatch.setattr(torch, "rand", next_draw)
    monkeypatch.setattr(torch, "rand_like", next_draw)
    monkeypatch.setattr(torch, "randn_like", lambda _: case.tensor("in_gauss"))
    monkeypatch.setattr(torch, "randint", lambda *_, **__: case.tensor("in_decibels"))
    monkeypatch.setattr(torch, "dropout", lambda x, p, train: x * remaining / (1 - p))
    words = case.tensor("in_words", grad=True)

    changed = clsep_sup.augment(words, share=0.6)

    assert torch.equal(changed[:, 0], words[:, 0])  # [CLS]
    case.check("out_words", changed[:, 1:])
    loss = (changed * case.tensor("in_weight"))[:, 1:].sum()
    case.check_gradients(loss, words=words)


@cases("clsep_loss")
def test_clsep_has_the_official_loss(name, precision, make_spec, tiny_bert, monkeypatch):
    case = Case(name, precision)
    params = {"temperature": case.settings["temp"], "projector": case.settings["width"]}
    spec = make_spec("clsep_sup", params=params)
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    method = load("clsep_sup")(encoder, typed_params("clsep_sup", spec.params))
    inputs = {}
    for number in range(3):
        for part in ("states", "weight", "bias"):
            inputs[f"{part}{number}"] = case.tensor(f"in_{part}{number}", grad=True)

    def project(pooled):
        hidden = linear(pooled, inputs["weight0"], inputs["bias0"]).tanh()
        hidden = linear(hidden, inputs["weight1"], inputs["bias1"]).tanh()
        return linear(hidden, inputs["weight2"], inputs["bias2"])

    monkeypatch.setattr(method, "project", project)
    views = []
    for number in range(3):
        mask = case.tensor(f"in_mask{number}")
        states = tuple(inputs[f"states{number}"])
        output = type("Output", (), {"hidden_states": states})
        views.append(method.as_view(Encoded(output, mask, mask.bool(), 0), {"input_ids": mask}))

    loss = method.loss(Views(*views))

    case.check("out_loss", loss)
    case.check_gradients(loss, **inputs)
