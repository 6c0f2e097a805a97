"""STS-B dev: the number that InfoCSE's ablations print (Tables 4 to 9 and 12), and that selects a run's best step.

Cosine of the two vectors, Spearman's rank correlation with the gold scores, as `sts` takes it of the test sets.
"""

import numpy as np

from csebench.base.errors import RunFailed
from csebench.data.sts import read_sts
from csebench.model.metrics import cosine, spearman

DECLARATION = {
    "name": "stsb_dev",
    "version": 1,
    "title": "STS-B dev",
    "protocol": "simcse-stsb-dev",
    "tasks": ["STS-B"],
    "files": ["downstream/STS/STSBenchmark/sts-dev.csv"],
    "best": {"spearman": 1.0},
    "chance": {"spearman": (-0.45, 0.45)},
    "source": "SimCSE trainers.py:119-140; InfoCSE sec. 5",
    "deviations": ["the dev set also selected the step that is scored, as in the papers: the number is optimistic"],
}


def evaluate(model, data_root):
    """Score of a model.

    Returns:
        (rows, items): one row; items `STS-B/dev` (pairs,) cosines.
    """
    (pairs,) = read_sts(data_root, "STS-B", "dev")
    cosines = cosine(*model.pairs(pairs))
    value = spearman(cosines, pairs.gold)
    if not np.isfinite(value):
        raise RunFailed("STS-B dev: the correlation is not a number: the model gives every sentence the same vector.")
    row = {"task": "STS-B", "subset": "all", "metric": "spearman", "value": value}
    return [row], {"STS-B/dev": cosines.astype(np.float32)}
