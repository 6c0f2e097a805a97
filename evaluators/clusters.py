"""Clusters of unlabelled sentences: k-means and t-SNE, with the clusters' purity where sentences have labels.

Paper: InforMin-CL Figure 2 (2,000 sentences of IMDB, 10 clusters), MSSE Figure 4 (20,000 titles of StackOverflow, 30
clusters). Neither released code for it, nor a number.
"""

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.corpus import draw_subset, lines
from csebench.model.metrics import unit

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
        "stackoverflow": ["misc/stackoverflow/title_StackOverflow.txt", "misc/stackoverflow/label_StackOverflow.txt"],
    },
    "params": {"points": 5000, "seed": 42},
    "best": {"purity": 1.0, "nmi": 1.0, "ari": 1.0},
    "chance": {"purity": (0.2, 0.8), "nmi": (0.0, 0.4), "ari": (-0.1, 0.1)},
    "source": "InforMin-CL Figure 2; MSSE Figure 4 (no code)",
    "deviations": [
        "k-means on vectors of length one (k-means++, the best of 10 starts); the papers do not say",
        "fewer clusters where there are less than four sentences for each: only on small data",
        "t-SNE: perplexity 30, 1,000 iterations, started from the principal components; the papers do not say",
        "IMDB: a sentence is a whole review, cut at what the encoder reads, line breaks as blanks: labels are of"
        " reviews; 2,000 drawn by seed from all that there are",
        "StackOverflow: all 20,000 titles are clustered; the picture shows 5,000 of them, drawn by seed",
        "purity, normalised mutual information and adjusted Rand index against the labels are ours",
    ],
}
SIZES = {"imdb": (2000, 10), "stackoverflow": (20_000, 30)}  # sentences, clusters
# fmt: off
TAGS = [  # of StackOverflow's labels 1 to 20
    "wordpress", "oracle", "svn", "apache", "excel", "matlab", "visual-studio", "cocoa", "osx", "bash", "spring",
    "hibernate", "scala", "sharepoint", "ajax", "qt", "drupal", "linq", "haskell", "magento",
]
# fmt: on


def evaluate(model, data_root, dataset, points, seed):
    """Clusters of a model's vectors.

    Args:
        model: csebench.model.embedder.Embedder.
        dataset: imdb or stackoverflow.
        points: shown by t-SNE.

    Returns:
        (rows, items): purity, nmi and ari; items: `cluster` (sentences,), `label` names, `text` their first 100
        characters; `shown` (points,) row numbers and `coordinates` (points, 2).
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
        raise BadInput(f"{data_root / DECLARATION['files'][dataset][0]}: {len(texts)} sentences, needs at least 8.")
    vectors = unit(model.embed(list(texts), list(labels))).astype(np.float32)
    shown = np.array(draw_subset(list(range(len(texts))), points, seed))
    kmeans = KMeans(min(clusters, len(texts) // 4), n_init=10, random_state=seed)
    tsne = TSNE(perplexity=min(30, (len(shown) - 1) // 3), init="pca", random_state=seed)
    with threadpool_limits(1), warnings.catch_warnings():  # sums in one order: the same bytes on any number of cores
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal vectors make fewer clusters
        warnings.filterwarnings("ignore", "invalid value encountered in divide")  # nor do they have a main direction
        cluster = kmeans.fit_predict(vectors)
        coordinates = tsne.fit_transform(vectors[shown])
    scores = {
        "purity": purity(labels, cluster),
        "nmi": normalized_mutual_info_score(labels, cluster),
        "ari": adjusted_rand_score(labels, cluster),
    }
    rows = [{"task": dataset, "subset": "all", "metric": m, "value": float(v)} for m, v in scores.items()]
    items = {"cluster": cluster, "label": np.array(labels), "text": np.array([t[:100] for t in texts])}
    return rows, items | {"shown": shown, "coordinates": coordinates}


def purity(labels, cluster):
    """Share of sentences that bear the commonest label of their cluster."""
    from sklearn.metrics.cluster import contingency_matrix

    return float(contingency_matrix(labels, cluster).max(axis=0).sum() / len(labels))


def imdb(data_root):
    """(review, class) of all files, which have a header, tabs and no quoting."""
    found = []
    for path in sorted(data_root.glob(DECLARATION["files"]["imdb"][0])):
        header, *rest = lines(path)
        if header.split("\t") != ["label", "id", "rating", "text"] or not rest:
            raise BadInput(f"{path}: expected the columns label, id, rating, text, and reviews (got {header[:60]!r}).")
        for number, line in enumerate(rest, 2):
            label, text = line.split("\t")[0], line.split("\t")[-1]
            if line.count("\t") != 3 or label not in ("0", "1") or not text.strip():
                raise BadInput(f"{path}: line {number}: expected 0 or 1, id, rating, text (got {line[:60]!r}).")
            found.append((" ".join(text.replace("<br />", " ").split()), ("negative", "positive")[int(label)]))
    return found


def stackoverflow(data_root):
    """(title, tag)"""
    titles, labels = (data_root / name for name in DECLARATION["files"]["stackoverflow"])
    found = list(zip(lines(titles), numbers := lines(labels), strict=False))
    if len(lines(titles)) != len(numbers):
        raise BadInput(f"{labels}: {len(numbers)} labels for {len(lines(titles))} titles.")
    known = {str(number): tag for number, tag in enumerate(TAGS, 1)}
    for number, (title, label) in enumerate(found, 1):
        if label.strip() not in known or not title.strip():
            raise BadInput(f"{labels}: line {number}: expected a title and its label, 1 to 20 (got {label[:20]!r}).")
    return [(title, known[label.strip()]) for title, label in found]


READERS = {"imdb": imdb, "stackoverflow": stackoverflow}
