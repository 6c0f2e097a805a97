"""Clusters of unlabelled sentences: k-means and t-SNE, with the clusters' purity where sentences
have labels.

Idea: sentences of one topic form a cluster that needs no labels to be seen.
Score: purity, normalised mutual information and adjusted Rand index of k-means clusters against the
labels; ours, as the papers print no number.
Paper: InforMin-CL Figure 2 (2,000 sentences of IMDB, 10 clusters); MSSE Figure 4 (20,000 titles of
StackOverflow, 30 clusters). Official code: none.
Items: `cluster` (sentences,), `label` (sentences,) names, `text` (sentences,) their first 100
characters; `shown` (points,) row numbers and their t-SNE `coordinates` (points, 2). No score is a
mean over them.
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
    "panels": {"clusters": {"item": "coordinates", "width": 10.8, "height": 4.8}},
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
    """Clusters of a model's vectors.

    Args:
        dataset: imdb or stackoverflow.
        points: shown by t-SNE.

    Returns:
        rows of purity, nmi and ari; items (module docstring).
    """
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.manifold import TSNE
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from threadpoolctl import threadpool_limits

    size, clusters = SIZES[dataset]
    texts, labels = zip(*draw_subset(READERS[dataset](data_root), size, seed), strict=True)
    if len(texts) < 8:
        raise BadInput(
            f"{data_root / DECLARATION['files'][dataset][0]}: {len(texts)} sentences, needs at"
            " least 8."
        )
    vectors = unit(model.embed(list(texts), list(labels))).astype(np.float32)
    shown = np.array(draw_subset(list(range(len(texts))), points, seed))
    count = min(clusters, len(texts) // 4)
    kmeans = KMeans(count, n_init=10, random_state=seed)  # pyright: ignore[reportArgumentType]
    tsne = TSNE(perplexity=min(30, (len(shown) - 1) // 3), init="pca", random_state=seed)
    # sums in one order: the same bytes on any number of cores
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal vectors make fewer clusters
        cluster = kmeans.fit_predict(vectors)
        if np.ptp(vectors[shown], axis=0).any():
            coordinates = tsne.fit_transform(vectors[shown])
        else:  # no main direction to start from: t-SNE would crash
            coordinates = np.full((len(shown), 2), np.nan, dtype=np.float32)
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
    }
    return rows, items | {"shown": shown, "coordinates": coordinates}


def purity(labels: tuple[str, ...], cluster: np.ndarray) -> float:
    """Share of sentences that bear the commonest label of their cluster."""
    from sklearn.metrics.cluster import contingency_matrix

    return float(contingency_matrix(labels, cluster).max(axis=0).sum() / len(labels))


# ---------------------------------------------------------------- reading


def imdb(data_root: Path) -> list[tuple[str, str]]:
    """(review, class) of all files, which have a header, tabs and no quoting."""
    reviews = []
    for path in sorted(data_root.glob(DECLARATION["files"]["imdb"][0])):
        header, *rest = read_lines(path)
        if header.split("\t") != ["label", "id", "rating", "text"] or not rest:
            raise BadInput(
                f"{path}: expected the columns label, id, rating, text, and reviews (got"
                f" {header[:60]!r})."
            )
        for number, line in enumerate(rest, 2):
            label, text = line.split("\t")[0], line.split("\t")[-1]
            if line.count("\t") != 3 or label not in ("0", "1") or not text.strip():
                raise BadInput(
                    f"{path}: line {number}: expected 0 or 1, id, rating, text (got {line[:60]!r})."
                )
            reviews.append(
                (
                    " ".join(text.replace("<br />", " ").split()),
                    ("negative", "positive")[int(label)],
                )
            )
    return reviews


def stackoverflow(data_root: Path) -> list[tuple[str, str]]:
    """(title, tag)"""
    title_file, label_file = (data_root / name for name in DECLARATION["files"]["stackoverflow"])
    titles, labels = read_lines(title_file), read_lines(label_file)
    if len(titles) != len(labels):
        raise BadInput(f"{label_file}: {len(labels)} labels for {len(titles)} titles.")
    tags = {str(number): tag for number, tag in enumerate(TAGS, 1)}
    for number, (title, label) in enumerate(zip(titles, labels, strict=True), 1):
        if label.strip() not in tags or not title.strip():
            got = f"(got {label[:20]!r})"
            raise BadInput(
                f"{label_file}: line {number}: expected a title and its label, 1 to 20 {got}."
            )
    return [(title, tags[label.strip()]) for title, label in zip(titles, labels, strict=True)]


READERS = {"imdb": imdb, "stackoverflow": stackoverflow}


# ---------------------------------------------------------------- figure


def draw_clusters(figure: FigureBase, items: Items, source: DrawingSource) -> list[list]:
    """InforMin-CL Figure 2, MSSE Figure 4: the same points by cluster and by label; the eight
    largest have colours."""
    from csebench.score.drawing import GREY, points
    from csebench.score.store import value

    shown, coordinates, dataset = (
        items["shown"],
        items["coordinates"],
        source.evaluator.split(":")[1],
    )
    cluster, label = items["cluster"][shown], items["label"][shown]
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, groups, name in zip(
        axes, (cluster, label), ("cluster of k-means", "label"), strict=True
    ):
        classes, counts = np.unique(groups, return_counts=True)
        largest = sorted(classes[np.argsort(-counts, kind="stable")[:8]])
        others = coordinates[~np.isin(groups, largest)]
        if len(others):
            points(
                ax,
                others[:, 0],
                others[:, 1],
                c=GREY,
                alpha=0.2,
                label=f"{len(classes) - len(largest)} others",
            )
        for place, group in enumerate(largest):
            members = coordinates[groups == group]
            points(ax, members[:, 0], members[:, 1], place, label=str(group))
            if groups is cluster:
                ax.text(
                    *np.median(members, axis=0),
                    str(group),
                    fontweight="bold",
                    ha="center",
                    va="center",
                )
        ax.set(xlabel="t-SNE dimension 1 (no unit)", title=f"by {name}")
    axes[0].set_ylabel("t-SNE dimension 2 (no unit)")
    axes[1].legend(loc="center left", bbox_to_anchor=(1, 0.5), markerscale=2)
    count = f"{len(shown):,} of {len(items['cluster']):,} sentences"
    share = value(source.content, dataset, "purity")
    assert share is not None
    figure.suptitle(f"{source.model}\n{dataset}: {count}, purity {100 * share:.2f} %")
    rows = zip(shown, *coordinates.T, cluster, label, items["text"][shown], strict=True)
    return [["sentence", "x", "y", "cluster", "label", "text"], *map(list, rows)]
