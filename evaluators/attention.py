"""Mutual information of the attention of two views: against their cosine, by syntax, and as
histograms.

Idea: miCSE aligns attention maps of dropout views, so mutual information of attention should be
higher for sentences of the same syntax.
Score: the centroid, as cosine and mutual information, of positive and of negative pairs, and of
pairs with identical and with non-identical trees. The distance of the two centroids of a kind of
pairs. The mutual information of every slice of layers and heads.
Paper: miCSE Figures 5, 6, 8 and App. B, D, which print no number. Official code: none.
Items: `similarity/GROUP` and `syntax/GROUP` (pairs, 2), cosine and mutual information, with their
`sentences`; `syntax/parser`; `histogram/joint` (slices, BINS, BINS), each summing to one, with
`edges` (slices, BINS + 1) and `slices` (slices,) names.
Relations: methods/components/ami.py trains with the same mutual information.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib.metadata import version
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.corpus import draw_subset, read_corpus
from csebench.data.parser import load_parser
from csebench.model.embedder import check_finite
from csebench.model.metrics import cosine
from csebench.score.score_types import Items, Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase
    from torch import Tensor

    from csebench.model.pooling import Encoded
    from csebench.model.sentence_encoder import SentenceEncoder
    from csebench.score.drawing import DrawingSource

DECLARATION = {
    "name": "attention",
    "version": 1,
    "title": "Attention mutual information against cosine",
    "protocol": "micse-figures-5-6-8",
    "tasks": ["similarity", "syntax", "histogram"],
    "files": ["wiki/*.txt"],
    "ordered": "sentences are drawn by seed and number of the line",
    "params": {
        "sentences": 1000,
        "parsed": 10000,
        "words": 10,
        "views": 16,
        "tokens": 32,
        "seed": 42,
    },
    "best": {},
    "chance": {},
    "bounds": {"cosine": (-1.0, 1.0), "mutual information": (0.0, None), "distance": (0.0, None)},
    "units": {
        "mutual information": "nats",
        "distance": "distance in cosine and nats",
        "pairs": "pairs",
    },
    "panels": {
        "attention_histograms": {
            "item": "histogram/joint",
            "width": 7.3,
            "height": 3.0,
            "shared_axes": True,
        },
        "attention_similarity": {
            "item": "similarity/positive",
            "width": 3.65,
            "height": 3.6,
            "shared_axes": True,
        },
        "attention_syntax": {
            "item": "syntax/identical",
            "width": 3.65,
            "height": 3.6,
            "shared_axes": True,
        },
    },
    "needs": "an encoder laid out like BERT; for the task syntax the extra `syntax`",
    "source": "miCSE Figures 5, 6, 8 and App. B, D (no code)",
    "deviations": [
        (
            "1,000 sentences drawn by seed, cut at 32 tokens as in training; dropout 0.1 for every"
            " model, even one trained with another"
        ),
        (
            "a negative pair is a sentence and the next one drawn, also in two dropout views;"
            " attention is compared by position, up to the end of the shorter one"
        ),
        (
            "mutual information as AMI takes it (last third of the layers, pairs of heads), every"
            " entry once, in nats"
        ),
        (
            "syntax: the linearised tree of the paper, relation and head of every word; equal trees"
            " are rare, and then often of one template, so 10,000 sentences of at most 10 words and"
            " with a full stop are parsed, and every tree gives one pair, whose first sentence also"
            " pairs with one of as many words and another tree"
        ),
        "without spaCy there is no split by syntax: 0 pairs, and the item `syntax/parser` says why",
        (
            "histograms: 3 groups of layers by 4 of heads, which for BERT-base are 4 layers by 3"
            " heads; the logarithms that AMI correlates, over 16 pairs of views instead of one,"
            " without entries that dropout zeroed"
        ),
        "distance: of the centroids in the plane of cosine and nats; ours",
    ],
}
DROPOUT = 0.1
BATCH = 32
BINS = 40
SENTENCE = "the best thing you can do is to know your stuff."
NATS = "mutual information of attention (nats)"
METRICS = ("cosine", "mutual information")


def evaluate(
    model: SentenceEncoder,
    data_root: Path,
    sentences: int,
    parsed: int,
    words: int,
    views: int,
    tokens: int,
    seed: int,
) -> tuple[list[Score], Items]:
    """Measure the attention of a model.

    Args:
        sentences: number drawn for the pairs.
        parsed: number drawn for the split by syntax, of at most `words` words.
        views: pairs of dropout views that the histograms are made from.
        tokens: number of tokens to which the sentences of a pair are cut.

    Returns:
        Rows and items (module docstring).
    """
    import torch

    # draw sentences, and form pairs
    files = sorted(data_root.glob(DECLARATION["files"][0]))
    corpus = distinct_sentences(files)
    drawn = list(draw_subset(corpus, sentences, seed))
    if len(drawn) < 2:
        raise BadInput(f"{files[0]}: {len(drawn)} sentences, needs at least two.")
    check_has_attention(model)
    is_short = [len(s.split()) <= words and s.endswith(".") for s in corpus]
    short = list(draw_subset(list(compress(corpus, is_short)), parsed, seed))
    trees, parser = parse(short)
    triples = by_syntax(short, trees)
    pairs = {
        "similarity/positive": (drawn, drawn),
        "similarity/negative": (drawn, drawn[1:] + drawn[:1]),
    }
    if triples:
        anchors, same, others = map(list, zip(*triples, strict=True))
        pairs["syntax/identical"] = (anchors, same)
        pairs["syntax/non-identical"] = (anchors, others)

    # measure
    model.embed(drawn)  # refuses a collapsed model, whose views would differ by dropout alone
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(seed)
        view = dropout_views(model)
        # histograms come first, so that their masks are the same with and without spaCy
        joint, edges, slices, shared = histograms(view, views)
        groups = {name: compare(view, left, right, tokens) for name, (left, right) in pairs.items()}

    rows = [row("syntax", "identical", "pairs", len(triples))]
    for name, nats in zip(slices, shared, strict=True):
        rows.append(row("histogram", name, "mutual information", nats))
    rows.append(row("histogram", "all", "mutual information", np.mean(shared)))
    rows += centroid_rows(groups)
    items = {
        **groups,
        "similarity/sentences": np.array(drawn),
        "syntax/parser": np.array(parser),
    }
    if triples:
        items["syntax/sentences"] = np.array(triples)
    items["histogram/joint"] = joint
    items["histogram/edges"] = edges
    items["histogram/slices"] = np.array(slices)
    return rows, items


def distinct_sentences(files: list[Path]) -> list[str]:
    """Read the sentences of several files, each sentence once, without blank lines."""
    distinct: dict[str, None] = {}
    for path in files:
        for sentence in read_corpus(path).sentences:
            if sentence.strip():
                distinct[sentence] = None
    return list(distinct)


def check_has_attention(model: SentenceEncoder) -> None:
    """Refuse a model whose attention cannot be read."""
    from csebench.model.families import BERT_LAYERS

    encoder = getattr(model, "encoder", None)
    if encoder is None or not encoder.stack:
        raise BadInput(
            "attention: needs a model with attention maps, an encoder laid out like BERT"
            f" ({BERT_LAYERS}); use one, or another evaluator."
        )


def centroid_rows(groups: dict[str, np.ndarray]) -> list[Score]:
    """Make rows for the centroids, and for the distance of the two centroids of each task.

    Args:
        groups: (pairs, 2) cosine and mutual information by `TASK/SUBSET`, two for each task.
    """
    rows: list[Score] = []
    centroids_of_task: dict[str, list[np.ndarray]] = {}
    for name, values in groups.items():
        task, subset = name.split("/")
        centroid = values.mean(0, dtype=np.float64)
        centroids_of_task.setdefault(task, []).append(centroid)
        for metric, value in zip(METRICS, centroid, strict=True):
            rows.append(row(task, subset, metric, value))
    for task, (first, second) in centroids_of_task.items():
        rows.append(row(task, "all", "distance", np.linalg.norm(first - second)))
    return rows


def row(task: str, subset: str, metric: str, value: float | np.floating) -> Score:
    return Score(task, subset, metric, float(value))


# ---------------------------------------------------------------- attention of dropout views


DropoutView = Callable[..., "tuple[Encoded, np.ndarray]"]  # of `dropout_views`


def dropout_views(model: SentenceEncoder) -> DropoutView:
    """Make a function `view(sentences, tokens)` that encodes sentences under new dropout masks.

    It returns the output of the encoder, with the attention of all layers, and the vectors.
    """
    from csebench.model.pooling import pool

    encoder = copy.deepcopy(model.encoder).train()
    encoder.set_dropout(DROPOUT)
    encoder.attention_layers.update(range(encoder.num_layers))

    def view(sentences: list[str], tokens: int | None = None) -> tuple[Encoded, np.ndarray]:
        output = encoder(encoder.tokenize(sentences, tokens, model.pooler), model.pooler)
        vectors = pool(model.pooler, output).float().cpu().numpy()
        check_finite(vectors)
        if model.transform is not None:
            vectors = model.transform(vectors)
        return output, vectors

    return view


def compare(view: DropoutView, left: list[str], right: list[str], tokens: int) -> np.ndarray:
    """Compare pairs of sentences, each sentence in a dropout view of its own.

    Returns:
        (pairs, 2) cosine and mutual information of attention.
    """
    batches = []
    for start in range(0, len(left), BATCH):
        output1, u = view(left[start : start + BATCH], tokens)
        output2, v = view(right[start : start + BATCH], tokens)
        nats = [mutual_information(output1, output2, number) for number in range(len(u))]
        batches.append(np.stack([cosine(u, v), nats], axis=1))
    return np.concatenate(batches).astype(np.float32)


def mutual_information(view1: Encoded, view2: Encoded, number: int) -> float:
    """Compute AMI of one pair of sentences, over all entries that both attention maps have.

    Args:
        number: place of the sentence in both batches.
    """
    import torch

    from csebench.train.losses import ami_layers, ami_paper

    size = int(torch.minimum(view1.mask[number].sum(), view2.mask[number].sum()))
    layers = ami_layers("paper", len(view1.attention))

    def maps(view: Encoded) -> list[Tensor]:
        return [view.attention[i][number, None, :, :size, :size].float() for i in layers]

    mask = view1.mask[number, None, :size]
    return ami_paper(maps(view1), maps(view2), mask, samples=None).item()


# ---------------------------------------------------------------- pairs by syntax


Tree = tuple[tuple[str, int], ...]  # relation and head of every word


def parse(sentences: list[str]) -> tuple[list[Tree], str]:
    """Parse sentences into linearised dependency trees.

    Returns:
        The trees, and a text with name and version of the parser. Without a parser there are no
        trees, and the text says why.
    """
    try:
        # a tree needs the parser alone
        parser = load_parser(exclude=["tagger", "attribute_ruler", "lemmatizer", "ner"])
    except BadInput as error:
        return [], f"left out: {error}"
    trees = []
    for sentence in parser.pipe(sentences):
        trees.append(tuple((word.dep_, word.head.i) for word in sentence))
    return trees, f"spaCy {version('spacy')}, {parser.meta['name']} {parser.meta['version']}"


def by_syntax(sentences: list[str], trees: list[Tree]) -> list[tuple[str, str, str]]:
    """Pair sentences of equal trees, and sentences of different trees with as many words.

    Returns:
        For every tree that has two sentences: these two, and a sentence of another tree.
    """
    of_tree: dict[Tree, list[str]] = {}
    for sentence, tree in zip(sentences, trees, strict=False):
        of_tree.setdefault(tree, []).append(sentence)
    of_length: dict[int, list[Tree]] = {}
    for tree in of_tree:
        of_length.setdefault(len(tree), []).append(tree)
    triples = []
    for equally_long in of_length.values():
        next_trees = equally_long[1:] + equally_long[:1]
        for tree, other in zip(equally_long, next_trees, strict=True):
            if len(of_tree[tree]) > 1 and other != tree:
                first, second = of_tree[tree][:2]
                triples.append((first, second, of_tree[other][0]))
    return triples


# ---------------------------------------------------------------- histograms


def histograms(
    view: DropoutView, views: int
) -> tuple[np.ndarray, np.ndarray, list[str], list[float]]:
    """Count joint histograms of the log attention of both views of SENTENCE.

    Each histogram is over a slice of adjacent layers and heads.

    Returns:
        (slices, BINS, BINS), edges (slices, BINS + 1) that both views share, names, mutual
        information of each slice.
    """
    import torch

    from csebench.train.losses import gaussian_mi

    first, _ = view([SENTENCE] * views)
    second, _ = view([SENTENCE] * views)
    view1 = torch.stack([layer.float().cpu() for layer in first.attention.values()])
    view2 = torch.stack([layer.float().cpu() for layer in second.attention.values()])
    number_of_layers, _, number_of_heads, _, _ = view1.shape  # (L, N, H, T, T)

    joint: list[np.ndarray] = []
    edges: list[np.ndarray] = []
    names: list[str] = []
    shared: list[float] = []
    for layers in np.array_split(np.arange(number_of_layers), min(3, number_of_layers)):
        for heads in np.array_split(np.arange(number_of_heads), min(4, number_of_heads)):
            a = view1[layers][:, :, heads].flatten()
            b = view2[layers][:, :, heads].flatten()
            positive = (a > 0) & (b > 0)  # without entries that dropout zeroed
            a = a[positive].double().log()
            b = b[positive].double().log()
            low, high = torch.cat([a, b]).aminmax()
            bins = np.linspace(float(low), float(high), BINS + 1)
            counts, _, _ = np.histogram2d(a.numpy(), b.numpy(), bins)
            joint.append(counts / counts.sum())
            edges.append(bins)
            names.append(f"{span('layer', layers)}, {span('head', heads)}")
            shared.append(gaussian_mi(a.exp(), b.exp()).item())  # it takes the logarithms itself
    return np.stack(joint).astype(np.float32), np.stack(edges), names, shared


def span(kind: str, numbers: np.ndarray) -> str:
    """Write a range, counted from one: layer 4, layers 4-6."""
    first, last = numbers[0] + 1, numbers[-1] + 1
    return f"{kind} {first}" if first == last else f"{kind}s {first}-{last}"


# ---------------------------------------------------------------- figures


def draw_attention_similarity_columns(items: Items) -> dict[str, np.ndarray]:
    """List the pairs of miCSE Figure 5."""
    groups = {name: items[f"similarity/{name}"] for name in ("negative", "positive")}
    return draw_clouds_columns(groups)


def draw_attention_similarity(
    figure: FigureBase, columns: dict[str, np.ndarray], source: DrawingSource
) -> None:
    """Draw miCSE Figure 5."""
    axes = draw_clouds(figure, columns)
    axes.set(
        xlabel="cosine of a pair of dropout views",
        ylabel=NATS,
        title=title_with_distance(source, "similarity"),
    )


def draw_attention_syntax_columns(items: Items) -> dict[str, np.ndarray]:
    """List the pairs of miCSE Figure 6, less the centroid of the other group."""
    others = items["syntax/non-identical"]
    identical = items["syntax/identical"]
    groups = {
        "non-identical": others - identical.mean(0),
        "identical": identical - others.mean(0),
    }
    return draw_clouds_columns(groups)


def draw_attention_syntax(
    figure: FigureBase, columns: dict[str, np.ndarray], source: DrawingSource
) -> None:
    """Draw miCSE Figure 6: negative pairs by dependency tree."""
    axes = draw_clouds(figure, columns)
    axes.set(
        xlabel="cosine of the pair, less the other centroid",
        ylabel=f"{NATS},\nless the other centroid",
        title=title_with_distance(source, "syntax"),
    )


def draw_clouds_columns(groups: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """List the (pairs, 2) points of two groups."""
    head, *rows = table_of_clouds(groups)
    return {
        name: np.array(column) for name, column in zip(head, zip(*rows, strict=True), strict=True)
    }


def draw_clouds(figure: FigureBase, columns: dict[str, np.ndarray]) -> Axes:
    """Draw the cloud of points of each of two groups, with its name and centroid as numbers.

    An arrow connects the centroids of the two clouds.
    """
    from csebench.score.drawing import COLOURS, points
    from csebench.score.themes import GREY, INK, on_white

    axes = figure.subplots()
    values = np.stack([columns["cosine"], columns["mutual_information_nats"]], axis=1)
    centroids = []
    for number, group in enumerate(dict.fromkeys(columns["pair"])):
        members = values[columns["pair"] == group]
        points(axes, members[:, 0], members[:, 1], number, alpha=0.6)
        cosine, nats = members.mean(0)
        colour = on_white(COLOURS[number])
        axes.plot(cosine, nats, "o", c=colour, ms=10, mec=INK, mew=1.5, zorder=3)
        centroids.append((cosine, nats))
        # in the upper left corner, because positive pairs lie at the right
        height = 0.97 - 0.07 * number
        label = f"{group}, {len(members):,} pairs: {cosine:.2f}, {nats:.2f} nats"
        axes.text(0.02, height, label, color=colour, transform=axes.transAxes, va="top")
    arrow = {"arrowstyle": "<->", "color": GREY, "linewidth": 1.5, "shrinkA": 6, "shrinkB": 6}
    axes.annotate("", *centroids, arrowprops=arrow)
    axes.margins(y=0.3)  # so that no point lies behind the names
    return axes


def title_with_distance(source: DrawingSource, task: str) -> str:
    """Write the first line of a figure's title."""
    from csebench.score.store import value

    return f"{source.model}: centroids {value(source.content, task, 'distance'):.3f} apart"


def table_of_clouds(groups: dict[str, np.ndarray]) -> list[list]:
    """List the points of a figure."""
    table: list[list] = [["pair", "cosine", "mutual_information_nats"]]
    for group, values in groups.items():
        table += [[group, *point] for point in values]
    return table


def draw_attention_histograms_columns(items: Items) -> dict[str, np.ndarray]:
    """List the joint histograms of miCSE Figure 8: the bins with entries, and their shares."""
    joint = items["histogram/joint"]
    edges = items["histogram/edges"]
    slices, first, second = joint.nonzero()
    return {
        "slice": items["histogram/slices"][slices],
        "view1_from": edges[slices, first],
        "view1_to": edges[slices, first + 1],
        "view2_from": edges[slices, second],
        "view2_to": edges[slices, second + 1],
        "share": joint[slices, first, second],
    }


def draw_attention_histograms(
    figure: FigureBase, columns: dict[str, np.ndarray], source: DrawingSource
) -> None:
    """Draw what miCSE Figure 8 is about: how much the attention of two dropout views shares.

    The paper draws a histogram for each slice, in which models are hard to compare. Here a slice
    has its mutual information: the narrower a histogram, the more the views share.
    """
    from csebench.score.drawing import COLOURS
    from csebench.score.store import value
    from csebench.score.themes import on_white

    shared = {}
    for row in source.content["scores"]:
        if row["task"] == "histogram" and row["metric"] == "mutual information":
            shared[row["subset"]] = row["value"]
    names = [name for name in dict.fromkeys(columns["slice"]) if name in shared]
    places = range(len(names))
    axes = figure.subplots()
    nats = [shared[name] for name in names]
    axes.hlines(places, 0, nats, color=on_white(COLOURS[0]), linewidth=1.5)
    axes.plot(nats, places, "o", color=on_white(COLOURS[0]), markersize=5)
    axes.set_yticks(places, [f"{name}: {shared[name]:.2f}" for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(left=0)
    axes.invert_yaxis()
    axes.set_xlabel("mutual information of the attention weights of two dropout views (nats)")
    mean = value(source.content, "histogram", "mutual information")
    axes.set_title(f"{source.model}: mean {mean:.3f} nats")
