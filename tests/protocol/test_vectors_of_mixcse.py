"""MixCSE and CompCSE against the values and gradients of their official code.

`vectors/mixcse.*` and `vectors/compcse.*` state how they were made. What no official code gives is
computed by hand.
"""

from types import SimpleNamespace

import pytest
import torch
from vector_cases import Case, cases

from csebench.train.method import View, Views
from methods import compcse, mixcse

# ---------------------------------------------------------------- MixCSE


@cases("mixcse")
def test_mixcse_and_its_gradients(name, precision):
    case = Case(name, precision)
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)

    loss = mixcse.mixed_info_nce(z1, z2, case.settings["temp"], case.settings["lambdas"])

    case.check("loss", loss)
    case.check_gradients(loss, z1=z1, z2=z2)


def rows_of_logits(z1, z2, temperature, share):
    """Compute the logits of each sentence one by one, without the two that the code sets to 0.

    The first logit of a row is the positive's. The second is the mixture of this positive.
    """
    n = len(z1)

    def score(a, b):
        return float(torch.cosine_similarity(a, b, dim=0) / temperature)

    def mixed(z, i):
        return share * z[i] + (1 - share) * z[(i + 1) % n]

    rows = []
    for i in range(n):
        row = [score(z1[i], z2[i]), score(z1[i], mixed(z2, i))]
        for j in range(n):
            if j != i:
                row.append(score(z1[i], z2[j]))
            if j not in (i, (i - 1) % n):
                row.append(score(z1[i], mixed(z2, j)))
            if j != (i + 1) % n:
                row.append(score(mixed(z1, i), z2[j]))
        rows.append(torch.tensor(row))
    return rows


def two_views():
    generator = torch.Generator().manual_seed(0)
    z1 = torch.randn(5, 6, generator=generator)
    z2 = 0.5 * z1 + torch.randn(5, 6, generator=generator)
    return z1, z2


def test_mixcse_without_its_zeros_leaves_two_mixtures_out_of_each_row():
    z1, z2 = two_views()
    losses = [-row.log_softmax(0)[0] for row in rows_of_logits(z1, z2, 0.3, 0.2)]

    loss = mixcse.mixed_info_nce(z1, z2, 0.3, 0.2, "removed")

    assert float(loss) == pytest.approx(float(torch.stack(losses).mean()), rel=1e-5)


def test_mixcse_with_single_mixtures_adds_one_negative_to_each_row():
    z1, z2 = two_views()
    losses = []
    for i, row in enumerate(rows_of_logits(z1, z2, 0.3, 0.2)):
        batch = torch.cosine_similarity(z1[i], z2) / 0.3
        losses.append(torch.logsumexp(torch.cat([batch, row[1:2]]), 0) - row[0])

    loss = mixcse.mixed_info_nce(z1, z2, 0.3, 0.2, "single")

    assert float(loss) == pytest.approx(float(torch.stack(losses).mean()), rel=1e-5)


# ---------------------------------------------------------------- CompCSE


@cases("compcse")
def test_compcse_and_its_gradients(name, precision):
    """The method itself gets the [CLS] states of the sentences and of their halves."""
    case = Case(name, precision)
    names = ["whole", "left", "right", "W", "b"]
    inputs = {key: case.tensor(f"in_{key}", grad=True) for key in names}
    whole, left, right, weight, bias = inputs.values()
    params = SimpleNamespace(
        pooler="cls_before_pooler", temperature=case.settings["temp"], d0=case.settings["d0"]
    )
    method = compcse.Method(SimpleNamespace(size=whole.shape[1]), params)
    head = method.head.dense
    del head.weight, head.bias
    head.weight = weight
    head.bias = bias

    halves = torch.cat([left, right])
    anchors = View(method.project(whole), whole, {})
    loss = method.loss(Views(anchors, method.compose(View(halves, halves, {}))))

    case.check("loss", loss)
    case.check_gradients(loss, **inputs)


@pytest.mark.parametrize(
    ("sentence", "halves"),
    [
        ("one two three four", ("one two", "three four")),
        ("one  two three", ("one", "two three")),
        ("word", ("word", "word")),
        ("", ("", "")),
    ],
)
def test_compcse_splits_in_the_middle_of_the_words(sentence, halves):
    assert compcse.split(sentence) == halves
