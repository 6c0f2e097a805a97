"""Every method with every component: two steps, or why not. `pytest
tests/conformance/test_pairs.py -k NAME`."""

import re

import pytest
import torch
from test_conformance import assembled, batches

from csebench.base.errors import BadInput
from csebench.plan.catalog.registry import COMPONENTS, METHODS, adapter_names, declaration
from csebench.train import trainer

PAIRS = [
    (m, c)
    for m in adapter_names(METHODS)
    if declaration(m).is_trained
    for c in adapter_names(COMPONENTS)
]
REFUSED = [
    (m, c) for m, c in PAIRS if {*declaration(m).refuses} & {*declaration(c, COMPONENTS).asks}
]
ACCEPTED = [pair for pair in PAIRS if pair not in REFUSED]


@pytest.mark.parametrize(("method", "component"), ACCEPTED, ids=map("+".join, ACCEPTED))
def test_makes_steps(method, component, make_spec, sentences):
    """The component takes part: it adds a finite term, gives a queue, or edits what is encoded."""
    spec = make_spec(method, components={component: {}})
    modules, optimizer = assembled(spec)
    plugged = modules["components"][list(spec.components).index(component)]
    terms, term = [], plugged.term
    plugged.term = lambda *args: terms.append(term(*args)) or terms[-1]
    batch, *_ = batches(spec, sentences, modules["method"])
    losses = [
        trainer.optimise(modules["method"], modules["components"], optimizer, batch, "fp32")
        for _ in range(2)
    ]
    assert torch.isfinite(torch.stack(losses)).all()
    assert plugged.queue is not None or all(torch.isfinite(t) and t != 0 for t in terms)


@pytest.mark.parametrize(("method", "component"), REFUSED, ids=map("+".join, REFUSED))
def test_is_refused_with_its_reason(method, component, make_spec):
    reasons = declaration(method).refuses
    reason = next(
        reasons[need] for need in declaration(component, COMPONENTS).asks if need in reasons
    )
    with pytest.raises(
        BadInput, match=f"{method} cannot take component {component}: {re.escape(reason)}"
    ):
        make_spec(method, components={component: {}})
