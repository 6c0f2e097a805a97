"""PromptBERT, a method of the folder successors/, against the values and gradients of its official
code.

vector_cases.py says which files have them. Its templates are compared with what transformers
computes at stated positions.
"""

import sys
from types import SimpleNamespace

import pytest
import torch
from tiny_encoders import load_local
from transformers import AutoModel, AutoTokenizer
from vector_cases import Case, cases, set_weights

from csebench.base.errors import BadInput
from csebench.model.layers import Head
from csebench.plan.catalog import registry
from csebench.train.losses import info_nce

SENTENCES = ["a man walks along the river", "the city", "", "it was the first of three albums"]


@pytest.fixture
def prompt_bert(successors):
    """The class of the method, while its folder has joined the project."""
    return registry.load("prompt_bert")


@pytest.fixture
def method(prompt_bert, tiny_bert):
    """PromptBERT on a tiny encoder, without dropout."""
    encoder = load_local(tiny_bert)
    return prompt_bert(encoder, settings()).to(encoder.device).eval()


def settings(**changed):
    values = {"pooler": "mask", "max_length": 32, "temperature": 0.05, "denoising": True}
    return SimpleNamespace(**values | changed)


@cases("prompt_bert")
def test_prompt_bert_and_its_gradients(name, precision, prompt_bert):
    case = Case(name, precision)
    names = ["h1", "h2", "t1", "t2", "W", "b"]
    inputs = {key: case.tensor(f"in_{key}", grad=True) for key in names}
    h1, h2, t1, t2, weight, bias = inputs.values()
    lengths = case.tensor("in_lengths")
    denoise = sys.modules[prompt_bert.__module__].denoise
    head = Head(h1.shape[1])
    set_weights(head, weight, bias)

    z1 = head(denoise(h1, t1, lengths))
    z2 = head(denoise(h2, t2, lengths))
    loss = info_nce(z1, z2, case.settings["temp"])

    case.check("loss", loss)
    case.check_gradients(loss, **inputs)


def states_at_mask(folder, tokenizer, text, start=None, shift=0):
    """Compute the state at [MASK] of a text with transformers alone, (D,).

    Args:
        start: the first token whose position is shifted; None: no position is.
        shift: how far.
    """
    model = AutoModel.from_pretrained(folder).eval()
    batch = tokenizer(text, return_tensors="pt")
    positions = torch.arange(batch["input_ids"].shape[1])
    if start is not None:
        positions[start:] += shift
    with torch.no_grad():
        output = model(**batch, position_ids=positions[None])
    is_mask = batch["input_ids"][0] == tokenizer.mask_token_id
    return output.last_hidden_state[0, is_mask][-1]


@pytest.mark.parametrize(
    ("view", "opening"), [(0, "This sentence of"), (1, "This sentence :")], ids=["first", "second"]
)
def test_a_view_is_the_state_at_mask_less_that_of_the_template_at_the_same_positions(
    view, opening, method, tiny_bert
):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    start = len(tokenizer(f'{opening} "')["input_ids"]) - 1  # [SEP] is not in the template here

    pooled = list(method.views(SENTENCES))[view].pooled

    for row, sentence in zip(pooled, SENTENCES, strict=True):
        words = len(tokenizer(sentence, add_special_tokens=False)["input_ids"])
        filled = states_at_mask(tiny_bert, tokenizer, f'{opening} "{sentence}" means [MASK].')
        alone = states_at_mask(tiny_bert, tokenizer, f'{opening} "" means [MASK].', start, words)
        assert torch.allclose(row.cpu(), filled - alone, atol=1e-5)


def test_without_denoising_a_view_is_the_state_at_mask(method, tiny_bert):
    method.p = settings(denoising=False)
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)

    pooled = method.views(SENTENCES[:1]).view1.pooled

    filled = states_at_mask(
        tiny_bert, tokenizer, f'This sentence of "{SENTENCES[0]}" means [MASK].'
    )
    assert torch.allclose(pooled[0].cpu(), filled, atol=1e-5)


def test_words_beyond_the_maximum_are_cut_and_the_template_is_not(method):
    method.p = settings(max_length=3)

    long, short = (method.views([text]).view2.batch for text in ("a a a a a a a", "a a a"))

    assert torch.equal(long["input_ids"], short["input_ids"])


def test_the_exported_tokenizer_opens_every_sentence(method, tmp_path):
    method.encoder.model.save_pretrained(tmp_path)
    method.encoder.tokenizer.save_pretrained(tmp_path)

    exported = load_local(tmp_path)

    rows = exported.ids(SENTENCES)
    assert rows == method.encoder.ids(SENTENCES)
    assert rows[0][: len(method.before1)] == method.before1


def test_another_pooler_is_refused(prompt_bert, tiny_bert):
    encoder = load_local(tiny_bert)

    with pytest.raises(BadInput, match=r"prompt_bert\.pooler: avg: .*`mask`"):
        prompt_bert(encoder, settings(pooler="avg"))
