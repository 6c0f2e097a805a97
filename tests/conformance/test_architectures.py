"""Every method takes a step on every architecture that is trained, or says why it cannot.

`pytest tests/conformance/test_architectures.py -k NAME`
"""

import pytest
import torch
from test_conformance import PLAIN, RUNS, batches
from tiny_encoders import TEXTS, load_local

from csebench.base.errors import BadInput
from csebench.plan.catalog.registry import COMPONENTS, declaration, load, typed_params
from csebench.train import trainer
from csebench.train.run import load_encoder
from methods.components import rtd

# These read attention maps, single layers, a prefix or changed word vectors.
READ_LAYERS = [
    "clsep_sup",
    "condenser",
    "infocse",
    "micse",
    "promcse",
    "promcse_sup",
    "simcse+ami",
    "simcse+auxiliary_mlm",
]
# These put a sentence vector among word vectors.
READ_WORDS = ["diffcse", "msse", "msse_sup", "simcse+compensation", "simcse+rtd"]


@pytest.fixture
def first_loss(tiny, make_spec, sentences):
    """`first_loss("micse", "electra")`: the loss of a first step, as `csebench train` makes it.

    If an architecture lacks the pooler of a method, another one is taken.
    """

    def step(run, model_type):
        params = {"max_length": 32}  # tiny models read 40 tokens
        if declaration(RUNS[run]["method"]).params["pooler"][0] == "cls":
            params["pooler"] = "cls_before_pooler"
        spec = make_spec(**RUNS[run], params=params, encoder=tiny(model_type))
        hyperparameters = typed_params(spec.method, spec.params)
        components = {
            name: typed_params(name, component.params, COMPONENTS)
            for name, component in spec.components.items()
        }
        encoder = load_encoder(spec, hyperparameters)
        modules, optimizer = trainer.assemble(spec.method, encoder, hyperparameters, components)
        method = modules["method"]
        method.read_corpus(sentences[:20])
        batch = batches(spec, sentences, method)[0]
        return trainer.optimise(method, modules["components"], optimizer, batch, "fp32")

    return step


@pytest.mark.parametrize("run", READ_LAYERS)
def test_what_reads_layers_trains_an_encoder_laid_out_like_bert(run, first_loss):
    assert torch.isfinite(first_loss(run, "xlm-roberta"))


@pytest.mark.slow
@pytest.mark.parametrize("run", sorted({*PLAIN} - {*READ_WORDS}))
@pytest.mark.parametrize("model_type", ["xlm-roberta", "electra"])
def test_every_method_trains_an_encoder_laid_out_like_bert(run, model_type, first_loss):
    assert torch.isfinite(first_loss(run, model_type))


@pytest.mark.slow
@pytest.mark.parametrize("run", sorted({*PLAIN} - {*READ_LAYERS}))
@pytest.mark.parametrize("model_type", ["mpnet", "deberta-v2", "modernbert", "distilbert"])
def test_a_method_trains_any_encoder_if_it_reads_no_single_layers(run, model_type, first_loss):
    assert torch.isfinite(first_loss(run, model_type))


@pytest.mark.parametrize("run", READ_LAYERS)
def test_what_reads_layers_is_refused_in_one_sentence_for_other_encoders(run, first_loss):
    message = r"^encoder [^\n]*: mpnet: [^\n]* laid out like BERT \([^\n]*\); use one, or [^\n]*\.$"
    with pytest.raises(BadInput, match=message):
        first_loss(run, "mpnet")


@pytest.mark.parametrize("model_type", ["albert", "electra"])
@pytest.mark.parametrize("run", READ_WORDS)
def test_word_vectors_that_are_narrower_than_a_sentence_vector_are_refused(
    run, model_type, first_loss
):
    message = rf"^encoder [^\n]*: {model_type}: its embedding layer has 8 dimensions[^\n]*; use"
    with pytest.raises(BadInput, match=message):
        first_loss(run, model_type)


@pytest.mark.parametrize("model_type", ["bert", "mpnet", "deberta-v2", "modernbert", "distilbert"])
def test_the_generator_of_rtd_takes_the_tokens_that_its_own_code_finds_likely(
    model_type, tiny, make_spec
):
    spec = make_spec("simcse", components={"rtd": {}}, params={"max_length": 32})
    method = load("simcse")(load_local(tiny(model_type)), typed_params(spec.method, spec.params))
    component_params = typed_params("rtd", spec.components["rtd"].params, COMPONENTS)
    component = rtd.Component(method, component_params).eval()
    batch = method.encoder.tokenize(TEXTS)

    with torch.no_grad():
        tokens = component.most_likely(batch["input_ids"], batch["attention_mask"])
        expected = component.generator(**batch).logits.argmax(-1)

    is_real = batch["attention_mask"].bool()
    assert torch.equal(tokens[is_real], expected[is_real])
