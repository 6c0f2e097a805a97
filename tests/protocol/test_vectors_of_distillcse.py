"""DistillCSE, and RankCSE with its teachers, against the values and gradients of public code.

vector_cases.py says which files have them.
"""

import pytest
import torch
from torch import nn
from vector_cases import Case, GivenStates, cases

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder
from csebench.plan.catalog.registry import load, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train.method import View, Views
from csebench.train.teachers import load_teachers, teacher_similarities
from methods.distillcse import shuffle_in_groups
from methods.rankcse_teachers import list_mle


def batch_of(rows):
    return {"input_ids": torch.zeros(rows, 1, dtype=torch.long)}


def loss_of(case, name, make_spec, tiny_bert, **params):
    """Compute the loss of a method with the vectors and teachers of a case.

    Returns:
        The loss, z1 and z2.
    """
    spec = make_spec(name, params=params)
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"))
    method = load(name)(encoder, typed_params(name, spec.params))
    method.teachers = nn.ModuleList(map(GivenStates, case.tensor("in_teachers")))
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)
    batch = batch_of(len(z1))
    return method.loss(Views(View(z1, z1, batch), View(z2, z2, batch))), z1, z2


@cases("distillcse")
def test_distillcse_has_the_official_loss(name, precision, make_spec, tiny_bert, monkeypatch):
    case = Case(name, precision)
    share = case.settings["group_size_by_prob"]
    if share > 0:
        monkeypatch.setattr(torch, "rand", lambda *_, **__: case.tensor("in_noise"))

    loss, z1, z2 = loss_of(
        case,
        "distillcse",
        make_spec,
        tiny_bert,
        temperature=case.settings["temp"],
        distillation=case.settings["distill_weight"],
        student_temperature=case.settings["distill_temp1"],
        teacher_temperature=case.settings["distill_temp2"],
        group_share=share,
    )

    case.check("out_loss", loss)
    case.check_gradients(loss, z1=z1, z2=z2)


@cases("rankcse_teachers")
def test_rankcse_with_teachers_has_the_loss_of_the_community_code(
    name, precision, make_spec, tiny_bert
):
    case = Case(name, precision)

    loss, z1, z2 = loss_of(
        case,
        "rankcse_teachers",
        make_spec,
        tiny_bert,
        temperature=case.settings["temp"],
        distillation=case.settings["gamma_"],
        ranking=case.settings["distillation_loss"],
        teacher_temperature=case.settings["tau2"],
        first_share=case.settings["alpha_"],
        form="entropy",
    )

    official = loss - 1e-7  # models.py:60 replaces a logarithm by 1e-7, which has no gradient
    case.check("out_loss", official)
    case.check_gradients(loss, z1=z1, z2=z2)


# ---------------------------------------------------------------- groups and rankings


def test_similarities_move_only_within_their_group():
    """Twelve nearly equal cosines, a twelfth of the softmax each, are cut at every fifth of it."""
    torch.manual_seed(0)
    similarities = torch.linspace(0.501, 0.5, 12).repeat(100, 1)
    group = torch.tensor([0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4])
    group_of = dict(zip(similarities[0].tolist(), group.tolist(), strict=True))

    shuffled = shuffle_in_groups(similarities, 0.2, torch.rand(100, 12))

    for row in shuffled.tolist():
        assert [group_of[value] for value in row] == group.tolist()
    for place, column in enumerate(shuffled.T):
        assert len(column.unique()) == (group == group[place]).sum()


def test_a_share_of_one_shuffles_whole_rows():
    torch.manual_seed(0)
    rows = torch.linspace(0, 1, 12).repeat(50, 1)
    shuffled = shuffle_in_groups(rows, 1.0, torch.rand(50, 12))
    assert torch.equal(shuffled.sort().values, rows)
    assert len(shuffled[:, 0].unique()) == 12


def test_list_mle_is_the_probability_to_draw_in_the_teachers_order():
    student = torch.tensor([[0.1, 0.7, 0.2]]).log()
    taught = torch.tensor([[0.5, 0.2, 0.9]])  # 2, then 0, then 1
    expected = -torch.tensor(0.2 * 0.1 / 0.8).log()
    assert list_mle(student, taught).item() == pytest.approx(expected.item(), rel=1e-5)


# ---------------------------------------------------------------- teachers


@pytest.fixture
def encoder(tiny_bert):
    return Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"), dropout=0.5)


def test_a_teacher_computes_without_dropout_and_gradient(encoder, sentences):
    teachers = load_teachers("self", encoder, "distillcse.teachers").train()
    batch = encoder.tokenize(sentences[:8])
    first = teacher_similarities(teachers, batch)
    again = teacher_similarities(teachers, batch)
    assert torch.equal(first, again)
    assert not first.requires_grad
    assert not any(weight.requires_grad for weight in teachers.parameters())


def test_a_teacher_computes_in_fp32_under_autocast(encoder, sentences):
    teachers = load_teachers("self", encoder, "distillcse.teachers")
    batch = encoder.tokenize(sentences[:8])
    expected = teacher_similarities(teachers, batch)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(teacher_similarities(teachers, batch), expected)


def test_teachers_that_cannot_teach_are_refused(encoder, tiny_roberta, monkeypatch):
    roberta = Encoder.load(EncoderRef(name=str(tiny_roberta), revision="local"))
    monkeypatch.setattr(Encoder, "load", lambda ref: roberta)  # of a hub
    with pytest.raises(BadInput, match=r"distillcse\.teachers: .* another vocabulary"):
        load_teachers(f"self some/model@{40 * '0'}", encoder, "distillcse.teachers")
    with pytest.raises(BadInput, match=r"the revision 'main' does not say which files are read"):
        load_teachers("some/model", encoder, "distillcse.teachers")
    with pytest.raises(BadInput, match=r"distillcse\.teachers: names no model"):
        load_teachers(" ", encoder, "distillcse.teachers")


def test_rankcse_needs_two_teachers(make_spec, encoder):
    params = typed_params("rankcse_teachers", make_spec("rankcse_teachers").params)
    with pytest.raises(BadInput, match="names 1 models; name two"):
        load("rankcse_teachers")(encoder, params.model_copy(update={"teachers": "self"}))
