"""MixCSE, CompCSE and WhitenedCSE against the values and gradients of their official code.

vector_cases.py says which files have them. What no official code gives is computed by hand.
"""

from math import exp, log
from types import SimpleNamespace

import pytest
import torch
from vector_cases import Case, cases, set_weights

from csebench.base.errors import BadInput
from csebench.train.method import View, Views
from methods import compcse, mixcse, whitenedcse

# ---------------------------------------------------------------- MixCSE


@cases("mixcse")
def test_mixcse_and_its_gradients(name, precision):
    case = Case(name, precision)
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)

    loss = mixcse.mixed_info_nce(z1, z2, case.settings["temp"], case.settings["lambdas"])

    case.check("loss", loss)
    case.check_gradients(loss, z1=z1, z2=z2)


def rows_of_logits(z1, z2, temperature, mixing):
    """Compute the logits of each sentence one by one, without the two that the code sets to 0.

    The first logit of a row is the positive's.
    """
    n = len(z1)

    def score(a, b):
        return float(torch.cosine_similarity(a, b, dim=0) / temperature)

    def mixed(z, i):
        return mixing * z[i] + (1 - mixing) * z[(i + 1) % n]

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


def test_a_queue_adds_negatives_of_the_anchors_to_mixcse():
    """At a temperature of 0.5, the six logits of the batch are 2 where a vector meets itself and 0
    elsewhere: three of each in a row. The queue adds 2 and 1.2 to one row, 0 and 1.6 to the
    other."""
    z = torch.eye(2)
    queue = torch.tensor([[1.0, 0.0], [0.6, 0.8]])
    loss = mixcse.mixed_info_nce(z, z, 0.5, mixing=1.0, queue=queue)
    of_batch = 3 * exp(2) + 3
    denominators = (of_batch + exp(2) + exp(1.2), of_batch + exp(0) + exp(1.6))
    assert loss.item() == pytest.approx(sum(log(d) - 2 for d in denominators) / 2)


def test_mixcse_without_its_zeros_leaves_two_mixtures_out_of_each_row():
    z1, z2 = two_views()
    losses = [-row.log_softmax(0)[0] for row in rows_of_logits(z1, z2, 0.3, 0.2)]

    loss = mixcse.mixed_info_nce(z1, z2, 0.3, 0.2, "removed")

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
    set_weights(method.head, weight, bias)

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


# ---------------------------------------------------------------- WhitenedCSE


@cases("whitenedcse")
def test_whitenedcse_and_its_gradients(name, precision, monkeypatch):
    case = Case(name, precision)
    names = ["z1", "z2", "z3", "W", "b"]
    inputs = {key: case.tensor(f"in_{key}", grad=True) for key in names}
    z1, z2, z3, weight, bias = inputs.values()
    params = SimpleNamespace(
        temperature=case.settings["temp"], groups=case.settings["num_groups"], form="thirds"
    )
    method = whitenedcse.Method(SimpleNamespace(size=z1.shape[1]), params)
    set_weights(method.mlp, weight, bias)
    monkeypatch.setattr(whitenedcse, "draw_orders", lambda size: case.tensor("in_orders"))

    positives = torch.cat([z2, z3])
    loss = method.loss(Views(View(z1, z1, {}), View(positives, positives, {})))

    case.check("loss", loss)
    case.check_gradients(loss, **inputs)


def test_whitened_groups_have_the_identity_as_covariance():
    x = torch.randn(50, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    order = torch.arange(12).flip(0)

    whitened = whitenedcse.whiten_groups(x, 4, order)

    for group in range(4):
        columns = whitened[:, 3 * group : 3 * group + 3]
        covariance = columns.T @ columns / 50
        assert torch.allclose(covariance, torch.eye(3, dtype=torch.float64))
    assert torch.allclose(whitened.mean(0), torch.zeros(12, dtype=torch.float64))


def test_each_part_is_whitened_in_its_own_order():
    generator = torch.Generator().manual_seed(0)
    parts = torch.randn(3, 20, 8, generator=generator)
    orders = [torch.randperm(8, generator=generator) for _ in range(3)]

    whitened = whitenedcse.whiten_parts(parts, 2, orders)

    for part, order, result in zip(parts, orders, whitened, strict=True):
        assert torch.equal(whitenedcse.whiten_groups(part, 2, order), result)


def test_equal_sentences_are_whitened_to_finite_vectors():
    whitened = whitenedcse.whiten_groups(torch.ones(4, 6), 2, torch.arange(6))

    assert torch.isfinite(whitened).all()


def test_whitenedcse_refuses_groups_of_unequal_sizes():
    with pytest.raises(BadInput, match=r"whitenedcse\.groups: 10 dimensions"):
        whitenedcse.Method(SimpleNamespace(size=10), SimpleNamespace(groups=4))
