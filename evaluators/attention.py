"""What the attention of two views has in common: against the cosine of the views, by syntax, and as
histograms.

Idea: miCSE aligns attention maps of dropout views, so mutual information of attention should be
higher for sentences of the same syntax.
Score: cosine and mutual information at the centroid of positive and negative pairs, and of pairs
with identical and non-identical trees, the distance of the two; mutual information of every slice
of layers and heads.
Paper: miCSE Figures 5, 6, 8 and App. B, D, which print no number. Official code: none.
Items: `similarity/GROUP` and `syntax/GROUP` (pairs, 2), cosine and mutual information, with their
`sentences`; `syntax/parser`; `histogram/joint` (slices, BINS, BINS), each summing to one, with
`edges` (slices, BINS + 1) and `slices` (slices,) names.
Relations: the mutual information is that of methods/components/ami.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.corpus import draw_subset, read_corpus
from csebench.model.embedder import check_finite
from csebench.model.metrics import cosine
from csebench.score.score_types import Items, Score

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

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
            "width": 9.6,
            "height": 7,
            "shared_axes": True,
        },
        "attention_similarity": {
            "item": "similarity/positive",
            "width": 5.2,
            "height": 4.6,
            "shared_axes": True,
        },
        "attention_syntax": {
            "item": "syntax/identical",
            "width": 5.2,
            "height": 4.6,
            "shared_axes": True,
        },
    },
    "needs": "a BERT or RoBERTa encoder; for the task syntax spaCy with en_core_web_sm",
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
    """Attention of a model.

    Args:
        sentences: drawn for the pairs; parsed: drawn for the split by syntax, of at most `words`
            words.
        views: pairs of dropout views behind the histograms.
        tokens: at which sentences of a pair are cut.

    Returns:
        rows and items (module docstring).
    """
    import torch

    from csebench.model.encoder import BERTS

    files = sorted(data_root.glob(DECLARATION["files"][0]))
    corpus = list(dict.fromkeys(s for path in files for s in read_corpus(path) if s.strip()))
    drawn = list(draw_subset(corpus, sentences, seed))
    if len(drawn) < 2:
        raise BadInput(f"{files[0]}: {len(drawn)} sentences, needs at least two.")
    if (
        getattr(model, "encoder", None) is None
        or model.encoder.model.config.model_type not in BERTS
    ):
        raise BadInput(
            "attention: needs a model with attention maps: an encoder of the kinds"
            f" {', '.join(BERTS)}."
        )
    short = list(
        draw_subset(
            [s for s in corpus if len(s.split()) <= words and s.endswith(".")], parsed, seed
        )
    )
    trees, parser = parse(short)
    triples = by_syntax(short, trees)
    pairs = {
        "similarity/positive": (drawn, drawn),
        "similarity/negative": (drawn, drawn[1:] + drawn[:1]),
    }
    if triples:
        anchors, same, others = map(list, zip(*triples, strict=True))
        pairs |= {"syntax/identical": (anchors, same), "syntax/non-identical": (anchors, others)}
    model.embed(drawn)  # refuses a collapsed model, whose views would differ by dropout alone
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(seed)
        view = dropout_views(model)
        # first: its masks are the same without spaCy
        joint, edges, slices, shared = histograms(view, views)
        groups = {name: compare(view, left, right, tokens) for name, (left, right) in pairs.items()}

    rows = [row("syntax", "identical", "pairs", len(triples))]
    rows += [
        row("histogram", name, "mutual information", nats)
        for name, nats in zip(slices, shared, strict=True)
    ]
    rows += [row("histogram", "all", "mutual information", np.mean(shared))]
    centroids = {name: values.mean(0, dtype=np.float64) for name, values in groups.items()}
    for name, centroid in centroids.items():
        task, subset = name.split("/")
        metrics = zip(("cosine", "mutual information"), centroid, strict=True)
        rows += [row(task, subset, metric, value) for metric, value in metrics]
    for task in dict.fromkeys(name.split("/")[0] for name in centroids):
        first, second = (centroid for name, centroid in centroids.items() if name.startswith(task))
        rows += [row(task, "all", "distance", np.linalg.norm(first - second))]
    items = groups | {"similarity/sentences": np.array(drawn), "syntax/parser": np.array(parser)}
    items |= {"syntax/sentences": np.array(triples)} if triples else {}
    return rows, items | {
        "histogram/joint": joint,
        "histogram/edges": edges,
        "histogram/slices": np.array(slices),
    }


def row(task: str, subset: str, metric: str, value: float | np.floating) -> Score:
    return Score(task, subset, metric, float(value))


# ---------------------------------------------------------------- attention of dropout views


DropoutView = Callable[..., "tuple[Encoded, np.ndarray]"]  # of `dropout_views`


def dropout_views(model: SentenceEncoder) -> DropoutView:
    """`view(sentences, tokens)`: a pass with all its attention, each under other dropout masks,
    and its vectors."""
    from csebench.model.pooling import pool

    encoder = copy.deepcopy(model.encoder).train()
    encoder.set_dropout(DROPOUT)
    encoder.attention_layers.update(range(encoder.num_layers))

    def view(sentences: list[str], tokens: int | None = None) -> tuple[Encoded, np.ndarray]:
        output = encoder(encoder.tokenize(sentences, tokens, model.pooler), model.pooler)
        vectors = pool(model.pooler, output).float().cpu().numpy()
        check_finite(vectors)
        return output, vectors if model.transform is None else model.transform(vectors)

    return view


def compare(view: DropoutView, left: list[str], right: list[str], tokens: int) -> np.ndarray:
    """(pairs, 2) cosine and attention mutual information of pairs of sentences, each sentence in
    another view."""
    batches = []
    for start in range(0, len(left), BATCH):
        (output1, u), (output2, v) = (
            view(side[start : start + BATCH], tokens) for side in (left, right)
        )
        nats = [mutual_information(output1, output2, number) for number in range(len(u))]
        batches.append(np.stack([cosine(u, v), nats], axis=1))
    return np.concatenate(batches).astype(np.float32)


def mutual_information(view1: Encoded, view2: Encoded, number: int) -> float:
    """AMI of one pair of sentences of two passes, over all entries that both have."""
    import torch

    from csebench.train.losses import ami_layers, ami_paper

    size = int(torch.minimum(view1.mask[number].sum(), view2.mask[number].sum()))
    layers = ami_layers("paper", len(view1.attention))
    maps1, maps2 = (
        [view.attention[i][number, None, :, :size, :size].float() for i in layers]
        for view in (view1, view2)
    )
    return ami_paper(maps1, maps2, view1.mask[number, None, :size], samples=None).item()


# ---------------------------------------------------------------- pairs by syntax


Tree = tuple[tuple[str, int], ...]  # relation and head of every word


def parse(sentences: list[str]) -> tuple[list[Tree], str]:
    """The linearised dependency tree of every sentence, and with what; ([], why not) without
    spaCy."""
    try:
        import spacy  # pyright: ignore[reportMissingImports]

        parser = spacy.load(
            "en_core_web_sm", exclude=["tagger", "attribute_ruler", "lemmatizer", "ner"]
        )
    except (ImportError, OSError) as e:
        return [], f"left out: spaCy with en_core_web_sm cannot be loaded: {str(e).splitlines()[0]}"
    trees = [tuple((word.dep_, word.head.i) for word in tree) for tree in parser.pipe(sentences)]
    return trees, f"spaCy {spacy.__version__}, {parser.meta['name']} {parser.meta['version']}"


def by_syntax(sentences: list[str], trees: list[Tree]) -> list[tuple[str, str, str]]:
    """(sentence, one of the same tree, one of another tree of as many words) of every tree that
    has two sentences."""
    of_tree, of_length = {}, {}
    for sentence, tree in zip(sentences, trees, strict=False):
        of_tree.setdefault(tree, []).append(sentence)
    for tree in of_tree:
        of_length.setdefault(len(tree), []).append(tree)
    triples = []
    for equally_long in of_length.values():
        for tree, other in zip(equally_long, equally_long[1:] + equally_long[:1], strict=True):
            if len(of_tree[tree]) > 1 and other != tree:
                triples.append((*of_tree[tree][:2], of_tree[other][0]))
    return triples


# ---------------------------------------------------------------- histograms


def histograms(
    view: DropoutView, views: int
) -> tuple[np.ndarray, np.ndarray, list[str], list[float]]:
    """Joint histograms of the log attention of both views of SENTENCE, over slices of adjacent
    layers and heads.

    Returns:
        (slices, BINS, BINS), edges (slices, BINS + 1) that both views share, names, mutual
        information of each slice.
    """
    import torch

    from csebench.train.losses import gaussian_mi

    passes = [view([SENTENCE] * views)[0] for _ in range(2)]
    maps = ([layer.float().cpu() for layer in output.attention.values()] for output in passes)
    view1, view2 = map(torch.stack, maps)  # (L, N, H, T, T)
    names, logs = [], []
    for layers in np.array_split(np.arange(len(view1)), min(3, len(view1))):
        for heads in np.array_split(np.arange(view1.shape[2]), min(4, view1.shape[2])):
            a, b = (x[layers][:, :, heads].flatten() for x in (view1, view2))
            positive = (a > 0) & (b > 0)
            logs.append((a[positive].double().log(), b[positive].double().log()))
            names.append(f"{span('layer', layers)}, {span('head', heads)}")
    ranges = [torch.cat(pair).aminmax() for pair in logs]
    edges = np.stack([np.linspace(float(r.min), float(r.max), BINS + 1) for r in ranges])
    counts = [
        np.histogram2d(a.numpy(), b.numpy(), bins)[0]
        for (a, b), bins in zip(logs, edges, strict=True)
    ]
    shared = [gaussian_mi(a.exp(), b.exp()).item() for a, b in logs]
    return np.stack([c / c.sum() for c in counts]).astype(np.float32), edges, names, shared


def span(kind: str, numbers: np.ndarray) -> str:
    """Counted from one: layer 4, layers 4-6."""
    first, last = numbers[0] + 1, numbers[-1] + 1
    return f"{kind} {first}" if first == last else f"{kind}s {first}-{last}"


# ---------------------------------------------------------------- figures


def draw_attention_similarity(
    figure: FigureBase, items: Items, source: DrawingSource
) -> list[list]:
    """miCSE Figure 5."""
    groups = {g: items[f"similarity/{g}"] for g in ("negative", "positive")}
    heading = "pairs of dropout views: same sentence, two sentences"
    return draw_clouds(
        figure, groups, "similarity", source, heading, "cosine of the pair (−1 to 1)", NATS
    )


def draw_attention_syntax(figure: FigureBase, items: Items, source: DrawingSource) -> list[list]:
    """miCSE Figure 6."""
    groups = {g: items[f"syntax/{g}"] for g in ("non-identical", "identical")}
    centroids = [values.mean(0) for values in groups.values()]
    groups = {
        g: values - other
        for (g, values), other in zip(groups.items(), reversed(centroids), strict=True)
    }
    labels = (
        "cosine of the pair, less that of the other centroid",
        f"{NATS},\nless that of the other centroid",
    )
    return draw_clouds(
        figure, groups, "syntax", source, "negative pairs by dependency tree", *labels
    )


def draw_clouds(
    figure: FigureBase,
    groups: dict[str, np.ndarray],
    task: str,
    source: DrawingSource,
    heading: str,
    x: str,
    y: str,
) -> list[list]:
    """A cloud of (pairs, 2) points for each group, and the distance of their centroids."""
    from csebench.score.drawing import COLOURS, GREY, points
    from csebench.score.store import value

    axes, centroids = figure.subplots(), []
    for place, (group, values) in enumerate(groups.items()):
        points(
            axes,
            values[:, 0],
            values[:, 1],
            place,
            label=f"{group} ({len(values):,} pairs)",
            alpha=0.35,
        )
        centroids.append(values.mean(0))
        axes.plot(*centroids[-1], "o", c=COLOURS[place], ms=10, mec=GREY, mew=1.5, zorder=3)
    axes.annotate(
        "",
        *centroids,
        arrowprops={
            "arrowstyle": "<->",
            "color": GREY,
            "linewidth": 1.5,
            "shrinkA": 6,
            "shrinkB": 6,
        },
    )
    distance = value(source.content, task, "distance")
    axes.set(xlabel=x, ylabel=y, title=f"{source.model}: centroids {distance:.3f} apart\n{heading}")
    axes.legend(loc="best", markerscale=2)
    rows = [[group, *point] for group, values in groups.items() for point in values]
    return [["pair", "cosine", "mutual_information_nats"], *rows]


def draw_attention_histograms(
    figure: FigureBase, items: Items, source: DrawingSource
) -> list[list]:
    """miCSE Figure 8."""
    from matplotlib.colors import LogNorm

    from csebench.score.store import value

    joint, edges, names = (items[f"histogram/{name}"] for name in ("joint", "edges", "slices"))
    columns = min(4, len(joint))
    axes = figure.subplots(-(-len(joint) // columns), columns, squeeze=False)
    norm = LogNorm(joint[joint > 0].min(), joint.max())
    for ax, name, bins, share in zip(axes.flat, names, edges, joint, strict=True):
        mesh = ax.pcolormesh(
            bins, bins, np.ma.masked_equal(share.T, 0), norm=norm, cmap="cividis", rasterized=True
        )
        ax.set_title(name, fontsize=9)
        ax.set_aspect("equal")
    figure.colorbar(mesh, ax=axes, label="share of the slice's entries", shrink=0.8)
    figure.supxlabel("ln of the attention weight (no unit), view 1", fontsize=9)
    figure.supylabel("ln of the attention weight (no unit), view 2", fontsize=9)
    shared = value(source.content, "histogram", "mutual information")
    figure.suptitle(
        f"{source.model}\njoint attention of two dropout views, mutual information {shared:.3f}"
        " nats"
    )
    rows = [
        [names[s], *edges[s, i : i + 2], *edges[s, j : j + 2], joint[s, i, j]]
        for s, i, j in np.argwhere(joint)
    ]
    return [["slice", "view1_from", "view1_to", "view2_from", "view2_to", "share"], *rows]
