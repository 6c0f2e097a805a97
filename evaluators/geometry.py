"""Geometry of the embedding space on STS-B dev: alignment, uniformity, isotropy.

Alignment: mean squared distance of pairs graded above 4. Uniformity: log mean exp(-2 squared distance) over all pairs
of distinct sentences. Both on the unit sphere (Wang & Isola 2020; SimCSE sec. 2.3 and its issues #122, #225), as the
curve of every training run has them. Beside them: the mean cosine of distinct sentences (0: no common direction), and
of the covariance of the unit vectors the share of its largest eigenvalue and the effective rank, exp of the entropy
of its spectrum (Roy & Vetterli 2007).
"""

import numpy as np

from csebench.base.errors import BadInput, RunFailed
from csebench.data.sts import read_sts
from csebench.model.metrics import alignment, uniformity, unit

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
    "source": "SimCSE sec. 2.3; InforMin-CL Fig. 3; MSSE Fig. 6",
    "deviations": ["SCD's code takes pairs graded 4, too, and does not normalise: not imitated"],
}


def evaluate(model, data_root):
    """Figures of a model.

    Returns:
        (rows, items): rows of subset `all`, values as they are (no fractions); items `spectrum` (D,), eigenvalues
        of the covariance as shares, falling, and `cosines`, (pairs above 4,).
    """
    (pairs,) = read_sts(data_root, "STS-B", "dev")
    close = pairs.gold > 4
    if not close.any():
        raise BadInput(f"{data_root}: STS-B dev: no pair is graded above 4, so there is nothing to align.")
    names = {s: s for s in (*pairs.left, *pairs.right)}
    names |= {s: f"above 4: {pairs.left[i]}" for i in np.flatnonzero(close) for s in (pairs.left[i], pairs.right[i])}
    vectors = dict(zip(names, unit(model.embed(list(names), list(names.values()))), strict=True))
    left, right = (np.stack([vectors[side[i]] for i in np.flatnonzero(close)]) for side in (pairs.left, pairs.right))
    every = np.stack(list(vectors.values()))
    count = len(every)
    spectrum = np.clip(np.linalg.eigvalsh(np.cov(every.T))[::-1], 0, None)
    if spectrum.sum() < 1e-12:
        raise RunFailed("geometry: the model gives every sentence the same vector.")
    spectrum = spectrum / spectrum.sum()
    real = spectrum[spectrum > 0]
    found = {
        "alignment": alignment(left, right),
        "uniformity": uniformity(every),
        "mean_cosine": float((np.square(every.sum(0)).sum() - count) / (count * (count - 1))),
        "top_share": float(spectrum[0]),
        "effective_rank": float(np.exp(-(real * np.log(real)).sum())),
    }
    rows = [{"task": "STS-B", "subset": "all", "metric": m, "value": float(v)} for m, v in found.items()]
    return rows, {"spectrum": spectrum, "cosines": (left * right).sum(1)}
