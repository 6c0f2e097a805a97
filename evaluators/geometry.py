"""Geometry of the embedding space on STS-B dev: alignment, uniformity, isotropy.

Idea: paraphrases lie close together, all other sentences spread over the sphere, and no direction
dominates.
Score: alignment, the mean squared distance of pairs graded above 4; uniformity, log mean exp(-2
squared distance) over all pairs of distinct sentences; both on the unit sphere, as the curve of
every training run has them. Also the mean cosine of distinct sentences (0: no common direction),
and of the covariance of the unit vectors the share of its largest eigenvalue and the effective
rank, exp of the entropy of its spectrum. Values as they are, no fractions.
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


EQUAL_VECTORS = 1e-12  # of the covariance's trace: less is rounding


def evaluate(model: Embedder, data_root: Path) -> tuple[list[Score], Items]:
    """Rows of subset `all`; items (module docstring)."""
    (pairs,) = read_sts(data_root, "STS-B", "dev")
    close = np.flatnonzero(pairs.gold > 4)
    if len(close) == 0:
        raise BadInput(
            f"{data_root}: STS-B dev: no pair is graded above 4, so there is nothing to align."
        )
    names = {s: s for s in (*pairs.left, *pairs.right)}
    names |= {
        s: f"above 4: {pairs.left[i]}" for i in close for s in (pairs.left[i], pairs.right[i])
    }
    vectors = dict(zip(names, unit(model.embed(list(names), list(names.values()))), strict=True))
    left, right = (
        np.stack([vectors[side[i]] for i in close]) for side in (pairs.left, pairs.right)
    )
    distinct = np.stack(list(vectors.values()))
    count = len(distinct)
    spectrum = np.clip(np.linalg.eigvalsh(np.cov(distinct.T))[::-1], 0, None)
    trace = spectrum.sum()
    # shares of nothing
    spectrum = spectrum / trace if trace >= EQUAL_VECTORS else np.full_like(spectrum, np.nan)
    positive = spectrum[~(spectrum <= 0)]
    values = {
        "alignment": alignment(left, right),
        "uniformity": uniformity(distinct),
        "mean_cosine": float((np.square(distinct.sum(0)).sum() - count) / (count * (count - 1))),
        "top_share": float(spectrum[0]),
        "effective_rank": float(np.exp(-(positive * np.log(positive)).sum())),
    }
    rows = [Score("STS-B", "all", metric, value) for metric, value in values.items()]
    return rows, {"spectrum": spectrum, "cosines": (left * right).sum(1)}
