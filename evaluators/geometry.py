"""Geometry of the embedding space on STS-B dev: alignment, uniformity, isotropy.

Idea: paraphrases lie close together, all other sentences spread over the sphere, and no direction
dominates.
Score: alignment is the mean squared distance of pairs graded above 4. Uniformity is log mean exp(-2
squared distance) over all pairs of distinct sentences. Both are measured on the unit sphere, as in
the curve of every training run. `mean_cosine` is the mean cosine of distinct sentences (0: no
common direction). Two scores describe the covariance of the unit vectors: `top_share` is the share
of its largest eigenvalue, `effective_rank` is exp of the entropy of its spectrum. The values are
not fractions.
Paper: Wang & Isola 2020; Gao et al. 2021, SimCSE, sec. 2.3; Roy & Vetterli 2007 (effective rank).
Official code: princeton-nlp/SimCSE, issues #122 and #225.
Items: `spectrum` (D,) eigenvalues of the covariance as shares, falling; `cosines` (pairs graded
above 4,).
Relations: `stsb_dev` reads the same pairs.
"""

from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.sts import read_sts
from csebench.model.embedder import Embedder
from csebench.model.metrics import alignment, uniformity, unit
from csebench.score.score_types import Items, Score

DECLARATION = {
    "name": "geometry",
    "version": 1,
    "title": "Alignment, uniformity, isotropy",
    "protocol": "stsb-dev-above4-normalised",
    "tasks": ["STS-B"],
    "files": ["downstream/STS/STSBenchmark/sts-dev.csv"],
    "best": {"alignment": 0.0},
    "chance": {
        "alignment": (1.5, 2.5),
        "uniformity": (-4.0, -3.0),
        "mean_cosine": (-0.1, 0.1),
        "top_share": (0.0, 0.3),
        "effective_rank": (20.0, 64.0),
    },
    "bounds": {
        "alignment": (0.0, 4.0),
        "uniformity": (-8.0, 0.0),
        "mean_cosine": (-1.0, 1.0),
        "effective_rank": (1.0, None),
    },
    "units": {"alignment": "squared distance", "uniformity": "log", "effective_rank": "dimensions"},
    "source": "SimCSE sec. 2.3; InforMin-CL Fig. 3; MSSE Fig. 6",
    "deviations": ["SCD's code takes pairs graded 4, too, and does not normalise: not imitated"],
}


EQUAL_VECTORS = 1e-12  # a covariance with a smaller trace is nothing but rounding errors


def evaluate(model: Embedder, data_root: Path) -> tuple[list[Score], Items]:
    """Score a model: rows of subset `all`, and items (module docstring)."""
    (pairs,) = read_sts(data_root, "STS-B", "dev")
    close = np.flatnonzero(pairs.gold > 4)
    if len(close) == 0:
        raise BadInput(
            f"{data_root}: STS-B dev: no pair is graded above 4, so there is nothing to align."
        )

    # what the oracle is told of a sentence: both sentences of a close pair have the same name
    names = {sentence: sentence for sentence in (*pairs.left, *pairs.right)}
    for i in close:
        names[pairs.left[i]] = f"above 4: {pairs.left[i]}"
        names[pairs.right[i]] = f"above 4: {pairs.left[i]}"
    distinct = unit(model.embed(list(names), list(names.values())))
    vectors = dict(zip(names, distinct, strict=True))
    left = np.stack([vectors[pairs.left[i]] for i in close])
    right = np.stack([vectors[pairs.right[i]] for i in close])

    spectrum = shares_of_variance(distinct)
    positive = spectrum[~(spectrum <= 0)]  # keeps the NaN of equal vectors, which are refused
    values = {
        "alignment": alignment(left, right),
        "uniformity": uniformity(distinct),
        "mean_cosine": mean_cosine(distinct),
        "top_share": float(spectrum[0]),
        "effective_rank": float(np.exp(-(positive * np.log(positive)).sum())),
    }
    rows = [Score("STS-B", "all", metric, value) for metric, value in values.items()]
    return rows, {"spectrum": spectrum, "cosines": (left * right).sum(1)}


def shares_of_variance(vectors: np.ndarray) -> np.ndarray:
    """Compute the eigenvalues of the covariance as shares of its trace: (N, D) -> (D,).

    The largest comes first. All are NaN if all vectors are equal.
    """
    spectrum = np.clip(np.linalg.eigvalsh(np.cov(vectors.T))[::-1], 0, None)
    trace = spectrum.sum()
    if trace < EQUAL_VECTORS:
        return np.full_like(spectrum, np.nan)
    return spectrum / trace


def mean_cosine(vectors: np.ndarray) -> float:
    """Compute the mean cosine of all pairs of distinct rows of length one."""
    count = len(vectors)
    return float((np.square(vectors.sum(0)).sum() - count) / (count * (count - 1)))
