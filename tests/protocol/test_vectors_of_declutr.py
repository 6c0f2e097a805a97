"""DeCLUTR against the values and gradients of its official code, and the spans that it draws.

vector_cases.py says which files have them.
"""

from types import SimpleNamespace

import pytest
import torch
from torch.nn.functional import linear
from vector_cases import Case, cases

from csebench.model.pooling import mean_pool
from csebench.train.method import View
from methods import declutr


@cases("declutr")
def test_declutr_and_its_gradients(name, precision):
    """The method's loss gets the states of anchors and positives."""
    case = Case(name, precision)
    names = ["anchors", "positives", "W"]
    inputs = {key: case.tensor(f"in_{key}", grad=True) for key in names}
    anchors, positives, weight = inputs.values()
    z1 = mean_pool(anchors, case.tensor("in_anchor_mask").bool())
    of_positives = mean_pool(positives, case.tensor("in_positive_mask").bool())
    z2 = of_positives.unflatten(0, (-1, case.settings["positives"])).mean(1)
    views = declutr.SpanViews(
        view1=View(z1, z1, {}),
        view2=View(z2, z2, {}),
        states=anchors,
        labels=case.tensor("in_labels"),
    )
    method = SimpleNamespace(
        p=SimpleNamespace(temperature=case.settings["temp"]),
        lm_head=lambda states: linear(states, weight),
    )

    loss = declutr.Method.loss(method, views)

    case.check("loss", loss)
    case.check_gradients(loss, **inputs)


SPAN_CASES = ["declutr_spans_1", "declutr_spans_2", "declutr_spans_3"]


@pytest.mark.parametrize("name", SPAN_CASES)
def test_spans_are_those_of_the_official_code_for_the_same_draws(name, monkeypatch):
    """The draws of the official code are given, and must be asked for with the same arguments."""
    case = Case(name, SimpleNamespace(dtype=torch.float64, tolerance=0))
    betas = iter(case.tensor("betas").tolist())
    integers = iter(case.tensor("ints").tolist())

    def given(draws):
        def draw(first, second):
            *arguments, value = next(draws)
            assert arguments == [first, second]
            return value

        return draw

    monkeypatch.setattr(declutr, "draw_beta", given(betas))
    monkeypatch.setattr(declutr, "draw_integer", given(integers))

    spans = declutr.draw_spans(case.settings["tokens"], SimpleNamespace(**case.settings))

    for key in ("anchors", "positives"):
        found = [[span.start, span.stop] for span in getattr(spans, key)]
        assert found == case.tensor(key).tolist()
    assert not [*betas, *integers]


def settings(**changes):
    return SimpleNamespace(
        **{"anchors": 2, "positives": 2, "max_span": 16, "min_span": 4} | changes
    )


@pytest.mark.parametrize(
    ("tokens", "anchors"), [(2, 1), (17, 1), (300, 1), (4, 2), (64, 2), (300, 2), (6, 3), (300, 3)]
)
def test_spans_lie_in_their_document_and_touch_their_anchor(tokens, anchors):
    torch.manual_seed(0)
    for _ in range(200):
        spans = declutr.draw_spans(tokens, settings(anchors=anchors))
        assert len(spans.anchors) == anchors
        assert len(spans.positives) == 2 * anchors
        for number, positive in enumerate(spans.positives):
            anchor = spans.anchors[number // 2]
            assert 0 <= anchor.start < anchor.stop <= tokens
            assert 0 <= positive.start < positive.stop <= tokens
            assert positive.start <= anchor.stop
            assert positive.stop >= anchor.start


@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_a_document_without_room_for_spans_is_its_own_anchor_and_positive(tokens):
    spans = declutr.draw_spans(tokens, settings())

    assert spans.anchors == [slice(0, tokens)] * 2
    assert spans.positives == [slice(0, tokens)] * 4


def test_the_learning_rate_of_a_step_is_that_of_allennlp():
    """AllenNLP numbers the steps from 1. Here are the steps 1, 5, 10, 55 and 100 of 100."""
    method = SimpleNamespace(p=SimpleNamespace(steps=100, warmup_steps=10))
    factors = [declutr.Method.learning_rate_factor(method, step) for step in (0, 4, 9, 54, 99)]

    assert factors == pytest.approx([(1 + 0.1 * 31) / 32, 33 / 64, 1, 33 / 64, 1 / 32])
