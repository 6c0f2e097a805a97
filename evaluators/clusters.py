"""Clusters of unlabelled sentences by k-means and t-SNE, compared with labels.

Idea: sentences of one topic form a cluster that needs no labels to be seen.
Score: purity, normalised mutual information and adjusted Rand index of k-means clusters against the
labels. The papers print no number, so these are ours.
Paper: InforMin-CL Figure 2 (2,000 sentences of IMDB, 10 clusters); MSSE Figure 4 (20,000 titles of
StackOverflow, 30 clusters). Official code: none.
Items: `cluster` (sentences,), `label` (sentences,) names, `text` (sentences,) their first 100
characters; `shown` (points,) row numbers, and their t-SNE `coordinates` (points, 2). No score is a
mean over items.
Relations: `geometry` describes the same space without labels.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.corpus import draw_subset, read_lines
from csebench.model.embedder import Embedder
from csebench.model.metrics import unit
from csebench.score.score_types import Items, Score

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from csebench.score.drawing import DrawingSource

DECLARATION = {
    "name": "clusters",
    "version": 1,
    "title": "Clusters of sentences, by k-means and t-SNE",
    "protocol": "kmeans-tsne-{dataset}",
    "tasks": ["imdb", "stackoverflow"],
    "takes": "dataset",
    "example": "stackoverflow",
    "ordered": "samples are drawn, and k-means and t-SNE start, by seed and number of the line",
    "files": {
        "imdb": ["misc/imdb/*.tsv"],
        "stackoverflow": [
            "misc/stackoverflow/title_StackOverflow.txt",
            "misc/stackoverflow/label_StackOverflow.txt",
        ],
    },
    "params": {"points": 5000, "seed": 42},
    "best": {"purity": 1.0, "nmi": 1.0, "ari": 1.0},
    "bounds": {"ari": (-1.0, 1.0)},
    "chance": {"purity": (0.2, 0.8), "nmi": (0.0, 0.4), "ari": (-0.1, 0.1)},
    "panels": {"clusters": {"item": "coordinates", "width": 3.65, "height": 3.2}},
    "source": "InforMin-CL Figure 2; MSSE Figure 4 (no code)",
    "deviations": [
        (
            "k-means on vectors of length one (k-means++, the best of 10 starts); the papers do"
            " not say"
        ),
        "fewer clusters where there are less than four sentences for each: only on small data",
        (
            "t-SNE: perplexity 30, 1,000 iterations, started from the principal components; the"
            " papers do not say"
        ),
        (
            "IMDB: a sentence is a whole review, cut at what the encoder reads, line breaks as"
            " blanks: labels are of reviews; 2,000 drawn by seed from all that there are"
        ),
        (
            "StackOverflow: all 20,000 titles are clustered; the picture shows 5,000 of them, drawn"
            " by seed"
        ),
        "purity, normalised mutual information and adjusted Rand index against the labels are ours",
    ],
}
SIZES = {"imdb": (2000, 10), "stackoverflow": (20_000, 30)}  # sentences, clusters
# fmt: off
TAGS = [  # of StackOverflow's labels 1 to 20
    "wordpress", "oracle", "svn", "apache", "excel", "matlab", "visual-studio", "cocoa", "osx", "bash", "spring",  # noqa: E501
    "hibernate", "scala", "sharepoint", "ajax", "qt", "drupal", "linq", "haskell", "magento",
]
# fmt: on


def evaluate(
    model: Embedder, data_root: Path, dataset: str, points: int, seed: int
) -> tuple[list[Score], Items]:
    """Cluster the vectors of a model.

    Args:
        dataset: imdb or stackoverflow.
        points: number of sentences that t-SNE shows.

    Returns:
        Rows of purity, nmi and ari; items (module docstring).
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    size, clusters = SIZES[dataset]
    texts, labels = zip(*draw_subset(read(data_root, dataset), size, seed), strict=True)
    if len(texts) < 8:
        file = data_root / DECLARATION["files"][dataset][0]
        raise BadInput(f"{file}: {len(texts)} sentences, needs at least 8.")
    vectors = unit(model.embed(list(texts), list(labels))).astype(np.float32)
    shown = np.array(draw_subset(list(range(len(texts))), points, seed))
    cluster, coordinates = cluster_and_project(vectors, shown, min(clusters, len(texts) // 4), seed)
    values = {
        "purity": purity(labels, cluster),
        "nmi": normalized_mutual_info_score(labels, cluster),
        "ari": adjusted_rand_score(labels, cluster),
    }
    rows = [Score(dataset, "all", metric, float(value)) for metric, value in values.items()]
    items = {
        "cluster": cluster,
        "label": np.array(labels),
        "text": np.array([text[:100] for text in texts]),
        "shown": shown,
        "coordinates": coordinates,
    }
    return rows, items


def cluster_and_project(
    vectors: np.ndarray, shown: np.ndarray, count: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Run k-means on all vectors, and t-SNE on those that are shown.

    Returns:
        (N,) number of each vector's cluster, and (shown, 2) coordinates.
    """
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    kmeans = KMeans(count, n_init=10, random_state=seed)  # pyright: ignore[reportArgumentType]
    tsne = TSNE(perplexity=min(30, (len(shown) - 1) // 3), init="pca", random_state=seed)
    # one thread always sums in the same order, so the bytes are the same on any number of cores
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal vectors make fewer clusters
        cluster = kmeans.fit_predict(vectors)
        has_directions = np.ptp(vectors[shown], axis=0).any()
        if has_directions:
            coordinates = tsne.fit_transform(vectors[shown])
        else:  # t-SNE would crash, because it starts from the main directions
            coordinates = np.full((len(shown), 2), np.nan, dtype=np.float32)
    return cluster, coordinates


def purity(labels: tuple[str, ...], cluster: np.ndarray) -> float:
    """Compute the share of sentences that have the most frequent label of their cluster."""
    from sklearn.metrics.cluster import contingency_matrix

    return float(contingency_matrix(labels, cluster).max(axis=0).sum() / len(labels))


# ---------------------------------------------------------------- reading


def read(data_root: Path, dataset: str) -> list[tuple[str, str]]:
    """Read (text, label) of every sentence of a data set."""
    if dataset == "imdb":
        return imdb(data_root)
    return stackoverflow(data_root)


def imdb(data_root: Path) -> list[tuple[str, str]]:
    """Read (review, class) of all files, which have a header, tabs and no quoting."""
    reviews = []
    for path in sorted(data_root.glob(DECLARATION["files"]["imdb"][0])):
        header, *lines = read_lines(path)
        if header.split("\t") != ["label", "id", "rating", "text"] or not lines:
            raise BadInput(
                f"{path}: expected the columns label, id, rating, text, and reviews (got"
                f" {header[:60]!r})."
            )
        for number, line in enumerate(lines, 2):
            fields = line.split("\t")
            label, text = fields[0], fields[-1]
            if len(fields) != 4 or label not in ("0", "1") or not text.strip():
                raise BadInput(
                    f"{path}: line {number}: expected 0 or 1, id, rating, text (got {line[:60]!r})."
                )
            review = " ".join(text.replace("<br />", " ").split())
            reviews.append((review, "positive" if label == "1" else "negative"))
    return reviews


def stackoverflow(data_root: Path) -> list[tuple[str, str]]:
    """Read (title, tag) of two files with a line for each title."""
    title_file, label_file = (data_root / name for name in DECLARATION["files"]["stackoverflow"])
    titles = read_lines(title_file)
    labels = read_lines(label_file)
    if len(titles) != len(labels):
        raise BadInput(f"{label_file}: {len(labels)} labels for {len(titles)} titles.")
    tags = {str(number): tag for number, tag in enumerate(TAGS, 1)}
    tagged = []
    for number, (title, label) in enumerate(zip(titles, labels, strict=True), 1):
        if label.strip() not in tags or not title.strip():
            raise BadInput(
                f"{label_file}: line {number}: expected a title and its label, 1 to 20 (got"
                f" {label[:20]!r})."
            )
        tagged.append((title, tags[label.strip()]))
    return tagged


# ---------------------------------------------------------------- figure


def draw_clusters_columns(items: Items) -> dict[str, np.ndarray]:
    """List the sentences of InforMin-CL Figure 2 or MSSE Figure 4."""
    shown = items["shown"]
    x, y = items["coordinates"].T
    return {
        "sentence": shown,
        "x": x,
        "y": y,
        "cluster": items["cluster"][shown],
        "label": items["label"][shown],
        "text": items["text"][shown],
    }


def draw_clusters(
    figure: FigureBase, columns: dict[str, np.ndarray], source: DrawingSource
) -> None:
    """Draw InforMin-CL Figure 2 or MSSE Figure 4 as a map of labels.

    The papers draw a point per sentence, and points cover one another. Here a square of the map has
    the colour of its most frequent label. Only the eight largest labels have colours and names.
    """
    from csebench.score.drawing import group_colour
    from csebench.score.end_labels import MarkLabel, write_end_labels
    from csebench.score.store import value
    from csebench.score.themes import GREY, on_both, on_white

    labels, counts = np.unique(columns["label"], return_counts=True)
    largest = sorted(labels[np.argsort(-counts, kind="stable")[:8]])
    groups = [columns["label"] == label for label in largest]
    groups.append(~np.isin(columns["label"], largest))
    colours = [group_colour(number) for number in range(len(largest))]
    colours.append(on_both(GREY))

    counts_of_squares, x_edges, y_edges = draw_counts(columns, groups)
    axes = figure.subplots()
    draw_map(axes, counts_of_squares, colours, x_edges, y_edges)

    # the name of a label stands at the height of its fullest square
    names = []
    for label, colour, counts_of_label in zip(largest, colours, counts_of_squares, strict=False):
        _, row = np.unravel_index(counts_of_label.argmax(), counts_of_label.shape)
        names.append(MarkLabel(str(label), float(y_edges[row]), on_white(colour)))
    if groups[-1].any():
        others = f"{len(labels) - len(largest)} others"
        names.append(MarkLabel(others, float(y_edges[0]), GREY))
    write_end_labels(axes, names, distance=0.075 * (y_edges[-1] - y_edges[0]))

    axes.set(xticks=[], yticks=[], aspect="auto")
    axes.spines[:].set_visible(False)
    axes.set_xlabel("colour: the most frequent label of a square")
    dataset = source.evaluator.split(":")[1]
    share = value(source.content, dataset, "purity")
    assert share is not None
    axes.set_title(f"{source.model}: purity {100 * share:.2f} %")


def draw_counts(columns: dict[str, np.ndarray], groups: list[np.ndarray]):
    """Count the sentences of each group in each square of a map.

    Returns:
        (groups, 40, 40) counts, and the edges of the squares.
    """
    squares = 40
    _, x_edges, y_edges = np.histogram2d(columns["x"], columns["y"], squares)
    counts = []
    for group in groups:
        of_group, _, _ = np.histogram2d(
            columns["x"][group], columns["y"][group], [x_edges, y_edges]
        )
        counts.append(of_group)
    return np.stack(counts), x_edges, y_edges


def draw_map(axes, counts: np.ndarray, colours: list[str], x_edges, y_edges) -> None:
    """Draw the most frequent group of each square in its colour. The last group is pale."""
    from matplotlib.colors import to_rgba

    palette = [to_rgba(colour) for colour in colours[:-1]]
    palette += [to_rgba(colours[-1], 0.3), to_rgba("white", 0)]  # others, and empty squares
    group_of_square = np.where(counts.any(0), counts.argmax(0), len(colours))
    extent = (x_edges[0], x_edges[-1], y_edges[0], y_edges[-1])
    pixels = np.array(palette)[group_of_square.T]
    axes.imshow(pixels, origin="lower", extent=extent, interpolation="none")
