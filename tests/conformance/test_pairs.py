"""Every method with every component: two steps, or why not.

`pytest tests/conformance/test_pairs.py -k NAME`
"""

import re
from itertools import product

import pytest
import torch
from test_conformance import assembled, batches

from csebench.base.errors import BadInput
from csebench.plan.catalog.registry import COMPONENTS, METHODS, adapter_names, declaration
from csebench.train import trainer

TRAINED = [name for name in adapter_names(METHODS) if declaration(name).is_trained]
PAIRS = list(product(TRAINED, adapter_names(COMPONENTS)))


def refused_needs(method, component):
    """List what a component asks of a method that the method refuses."""
    refused = declaration(method).refuses
    return [need for need in declaration(component, COMPONENTS).asks if need in refused]


REFUSED = [pair for pair in PAIRS if refused_needs(*pair)]
ACCEPTED = [pair for pair in PAIRS if not refused_needs(*pair)]


def with_marks(pairs):
    """Mark the pairs as slow whose method is not SimCSE, because there are many."""
    marked = []
    for pair in pairs:
        marks = () if pair[0] == "simcse" else pytest.mark.slow
        marked.append(pytest.param(*pair, id="+".join(pair), marks=marks))
    return marked


@pytest.mark.parametrize(("method", "component"), with_marks(ACCEPTED))
def test_makes_steps(method, component, make_spec, sentences):
    """The component takes part: it adds a finite term, gives a queue, or edits what is encoded."""
    spec = make_spec(method, components={component: {}})
    modules, optimizer = assembled(spec)
    plugged = modules["components"][list(spec.components).index(component)]
    terms = note_terms(plugged)
    batch, *_ = batches(spec, sentences, modules["method"])

    losses = []
    for _ in range(2):
        loss = trainer.optimise(modules["method"], modules["components"], optimizer, batch, "fp32")
        losses.append(loss)

    assert torch.isfinite(torch.stack(losses)).all()
    if plugged.queue is None:
        for term in terms:
            assert torch.isfinite(term)
            assert term != 0


def note_terms(component):
    """Note the terms that a component adds from now on.

    Returns:
        A list that gets them.
    """
    compute_term = component.term
    terms = []

    def noting(*args):
        terms.append(compute_term(*args))
        return terms[-1]

    component.term = noting
    return terms


@pytest.mark.parametrize(("method", "component"), REFUSED, ids=map("+".join, REFUSED))
def test_is_refused_with_its_reason(method, component, make_spec):
    first_need, *_ = refused_needs(method, component)
    reason = re.escape(declaration(method).refuses[first_need])
    message = f"{method} cannot take component {component}: {reason}"
    with pytest.raises(BadInput, match=message):
        make_spec(method, components={component: {}})
