"""Neighbours, clusters, attention and their figures, held to cases worked out by hand."""

import sys

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from csebench.base.errors import BadInput
from csebench.model.embedder import Embedder
from csebench.plan.catalog.registry import evaluator_declaration, load, load_drawing
from csebench.score import store
from csebench.score.drawing import DrawingSource
from csebench.score.evaluate import evaluate_model
from csebench.score.models import open_model
from csebench.train.losses import RHO2_MAX, ami_paper
from evaluators import attention, clusters, neighbours


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return open_model(str(tiny_bert), "avg")


def params(name, **changed):
    return evaluator_declaration(name).params | changed


def by_length(sentences):
    """Stands in for spaCy: a tree is the number of words and whether the first has more than
    three letters."""
    return [(len(s.split()[0]) > 3,) * len(s.split()) for s in sentences], "by length"


@pytest.fixture(scope="module")
def scores(tiny_bert, smoke_data, tmp_path_factory):
    """Items by evaluator of one model, and its score JSON."""
    out, wanted = (
        tmp_path_factory.mktemp("scores") / "tiny.json",
        ["clusters:imdb", "attention", "sts"],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "parse", by_length)
        content = evaluate_model(str(tiny_bert), wanted, smoke_data, out, "avg")
    return store.items(content, out), content


class Words(Embedder):
    """A vector by hand for every sentence, by its first word."""

    def __init__(self, **vectors):
        self.by_word = vectors

    def vectors(self, sentences):
        return np.array([self.by_word[s.split()[0]] for s in sentences], dtype=np.float32)


def captions(root, texts):
    """Two of every image."""
    path = root / "misc/flickr30k/captions.token"
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{1 + i // 2}.jpg#{i % 2}\t{text}\n" for i, text in enumerate(texts)))


def test_a_query_finds_neither_itself_nor_its_image(tmp_path):
    """The paper's query stands in the file as Flickr30k writes it, with a blank before its full
    stop."""
    query = next(iter(neighbours.PUBLISHED))
    captions(tmp_path, [f"{query[:-1]} .", "Ladders .", "One .", "Two .", "Three .", "One again ."])
    model = Words(A=(1, 0), Two=(0, 1), Ladders=(0.9, 0.1), One=(0.8, 0.6), Three=(0.2, 0.9))
    rows, items = neighbours.evaluate(model, tmp_path, **params("neighbours"))
    assert items["queries"][0] == f"{query[:-1]} ."
    # of equals the first
    assert items["neighbours"][0].tolist() == ["One .", "One again .", "Three ."]
    assert items["cosines"][0] == pytest.approx([0.8, 0.8, 0.2 / np.hypot(0.2, 0.9)])
    assert items["searched"].tolist() == [f"{query[:-1]} .", "One .", "Three ."]
    assert items["hit"].tolist() == [True, False, False]  # One finds One again, Three finds Two
    assert rows == [("Flickr30k", "all", "recall@1", pytest.approx(1 / 3))]


def test_images_are_drawn_by_seed_and_the_printed_ones_are_always_searched(tmp_path):
    query = next(iter(neighbours.PUBLISHED))
    captions(tmp_path, [query, *(f"{number} ." for number in range(11))])
    model = load("random")({"dimensions": 8}, 1)
    searched = [
        neighbours.evaluate(model, tmp_path, images=3, seed=s)[1]["searched"].tolist()
        for s in range(5)
    ]
    assert (
        all(query in texts and len(texts) in (3, 4) for texts in searched)
        and len({*map(tuple, searched)}) > 1
    )


def test_what_is_clustered(encoder, smoke_data):
    """Reviews lose their markup; small data has a cluster for four of them; all are clustered,
    some are shown."""
    assert clusters.purity(list("aaab"), np.array([0, 1, 5, 5])) == 3 / 4
    _, items = clusters.evaluate(encoder, smoke_data, "imdb", points=20, seed=3)
    assert len(items["cluster"]) == 32 and len({*items["cluster"]}) == 8
    assert len({*items["shown"]}) == 20 and items["coordinates"].shape == (20, 2)
    assert {*items["label"]} == {"positive", "negative"} and not any(
        "<br" in text for text in items["text"]
    )
    assert any(text.startswith('"The Ninth Bell" is') for text in items["text"])


def test_mutual_information_of_a_pair_is_that_of_ami(encoder, sentences):
    """Alone and unpadded; of two lengths up to the shorter; of a view with itself the largest
    that AMI knows."""
    torch.manual_seed(0)
    left, right = sorted(sentences[:6], key=len), sorted(sentences[6:12], key=len, reverse=True)
    with torch.inference_mode():
        (one, _), (two, _) = map(attention.dropout_views(encoder), (left, right))
    for number in range(len(left)):
        size = min(int(side.mask[number].sum()) for side in (one, two))
        last = [
            [side.attention[max(side.attention)][number : number + 1, :, :size, :size]]
            for side in (one, two)
        ]
        expected = ami_paper(*last, torch.ones(1, size, dtype=torch.bool), samples=None).item()
        assert attention.mutual_information(one, two, number) == expected
    assert attention.mutual_information(one, one, 0) == pytest.approx(
        -0.5 * np.log1p(-RHO2_MAX), rel=0.05
    )


def test_syntax_by_hand():
    """Two of tree x, which pair with the next tree of as many words; tree y has one sentence, z
    no like length."""
    x, y, z = (("ROOT", 0), ("punct", 0)), (("ROOT", 0), ("dep", 0)), (("ROOT", 0),)
    assert attention.by_syntax(list("abcdefg"), [x, z, x, y, z, x, z]) == [("a", "c", "d")]


def test_attention_of_an_encoder(scores):
    """Positive pairs are closer in both; 3 layers of 4 heads are 12 slices; short sentences are
    parsed."""
    items, rows = scores[0]["attention"], scores[1]["scores"]
    values = {
        (r["task"], r["subset"], r["metric"]): r["value"]
        for r in rows
        if r["evaluator"] == "attention"
    }
    for metric in ("cosine", "mutual information"):
        assert values["similarity", "positive", metric] > values["similarity", "negative", metric]
    between = np.subtract(
        *(items[f"similarity/{group}"].mean(0, dtype=float) for group in ("positive", "negative"))
    )
    assert values["similarity", "all", "distance"] == pytest.approx(np.hypot(*between), rel=1e-5)
    assert items["histogram/joint"].shape == (12, 40, 40) and items["histogram/edges"].shape == (
        12,
        41,
    )
    assert items["histogram/joint"].sum((1, 2)) == pytest.approx(np.ones(12), abs=1e-5)
    shared = [values["histogram", name, "mutual information"] for name in items["histogram/slices"]]
    assert (
        values["histogram", "all", "mutual information"] == pytest.approx(np.mean(shared))
        and len(shared) == 12
    )
    assert values["syntax", "identical", "pairs"] == len(items["syntax/sentences"]) > 3
    assert values["syntax", "all", "distance"] > 0
    assert all(len(sentence.split()) <= 10 for sentence in items["syntax/sentences"].flat)


def test_slices_of_a_large_encoder():
    """BERT-base: four layers by three heads, as the paper pools them."""
    maps = {layer: torch.rand(1, 12, 5, 5).softmax(-1) for layer in range(12)}
    view = lambda sentences: (type("Out", (), {"attention": maps}), None)  # noqa: E731
    *_, names, shared = attention.histograms(view, 1)
    assert (
        names[0] == "layers 1-4, heads 1-3"
        and names[-1] == "layers 9-12, heads 10-12"
        and len(names) == 12
    )
    assert min(shared) > 6  # a view with itself


def test_without_spacy_the_split_is_left_out(encoder, smoke_data, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    rows, items = attention.evaluate(
        encoder, smoke_data, **params("attention", sentences=2, views=1)
    )
    assert [r for r in rows if r.task == "syntax"] == [
        attention.row("syntax", "identical", "pairs", 0)
    ]
    assert "left out: spaCy with en_core_web_sm cannot be loaded" in str(items["syntax/parser"])


def test_a_roberta_with_a_prompt_is_left_as_it_was(tiny_roberta, smoke_data):
    model = open_model(str(tiny_roberta), "mask")

    def state():
        noise = [module.p for module in model.encoder.modules() if hasattr(module, "p")]
        layers, training = {*model.encoder.attention_layers}, model.encoder.training
        return torch.random.get_rng_state().tolist(), layers, training, noise

    before = state()
    rows, items = attention.evaluate(
        model, smoke_data, **params("attention", sentences=4, parsed=0, views=1)
    )
    assert rows and len(items["similarity/sentences"]) == len(items["similarity/positive"]) == 4
    assert state() == before


def test_a_model_without_attention(finished, smoke_data):
    with pytest.raises(
        BadInput, match="needs a model with attention maps: an encoder of the kinds bert, roberta"
    ):
        attention.evaluate(
            open_model(str(finished("random") / "model")), smoke_data, **params("attention")
        )


def plotted(kind, evaluator, scores):
    """What a panel plots, by column."""
    items, content = scores
    head, *rows = load_drawing(kind)[1](
        Figure(), items[evaluator], DrawingSource(evaluator, "tiny", content)
    )
    return dict(zip(head, map(np.array, zip(*rows, strict=True)), strict=True))


def test_figures_plot_the_items(scores):
    items, _ = scores
    gold, cosines = plotted("cosine_gold", "sts", scores).values()
    assert gold == pytest.approx(items["sts"]["gold/STS-B/test"])
    assert cosines == pytest.approx(items["sts"]["STS-B/test"])
    assert [*plotted("attention_histograms", "attention", scores).values()][
        -1
    ].sum() == pytest.approx(12, abs=1e-3)
    assert (
        plotted("clusters", "clusters:imdb", scores)["label"] == items["clusters:imdb"]["label"]
    ).all()
    group, *values = plotted("attention_syntax", "attention", scores).values()
    shown = np.stack(values, axis=1)[group == "identical"]
    less = items["attention"]["syntax/identical"] - items["attention"]["syntax/non-identical"].mean(
        0
    )
    assert shown == pytest.approx(less, rel=1e-4, abs=1e-5)
