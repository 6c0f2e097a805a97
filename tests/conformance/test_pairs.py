"""Every method with every component: two steps, or why not. `pytest tests/conformance/test_pairs.py -k NAME`."""

import pytest
import torch

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder
from csebench.plan.recipe import refusal
from csebench.plan.registry import COMPONENTS, METHODS, declaration, names
from csebench.train import trainer

TRAINED = [name for name in names(METHODS) if declaration(name).is_trained]
PAIRS = [(method, component) for method in TRAINED for component in names(COMPONENTS)]
REASONS = {pair: refusal(declaration(pair[0]), declaration(pair[1], COMPONENTS)) for pair in PAIRS}


def pairs(refused):
    chosen = [pair for pair in PAIRS if (REASONS[pair] is not None) == refused]
    return pytest.mark.parametrize(("method", "component"), chosen, ids=["+".join(pair) for pair in chosen])


@pairs(refused=False)
def test_makes_steps(method, component, make_spec, sentences):
    """The component takes part: it adds a finite term, gives a queue, or edits what is encoded."""
    spec = make_spec(method, components={component: {}})
    torch.manual_seed(0)
    encoder = Encoder.load(spec.encoder, spec.params["dropout"], spec.params["pooler"] == "cls")
    plugins = {name: plugin.params for name, plugin in spec.components.items()}
    modules, optimizer = trainer.assemble(method, encoder, spec.params, plugins)
    batch = sentences[: modules["method"].sentences_per_step()]
    if declaration(method).corpus == "triplets":
        batch = [(sentence, sentence, sentence) for sentence in batch]
    plugged = modules["components"][list(plugins).index(component)]
    terms, term = [], plugged.term
    plugged.term = lambda *args: terms.append(term(*args)) or terms[-1]
    losses = [trainer.optimise(modules["method"], modules["components"], optimizer, batch, "fp32") for _ in range(2)]
    assert torch.isfinite(torch.stack(losses)).all()
    assert plugged.queue is not None or all(torch.isfinite(t) and t != 0 for t in terms)


@pairs(refused=True)
def test_is_refused_with_its_reason(method, component, make_spec):
    with pytest.raises(BadInput, match="cannot take component") as caught:
        make_spec(method, components={component: {}})
    assert REASONS[method, component] in str(caught.value)
    assert len(REASONS[method, component].split()) > 3  # a sentence, not a word
