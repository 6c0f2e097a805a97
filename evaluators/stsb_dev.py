"""STS-B dev, the score of InfoCSE's ablations (Tables 4 to 9 and 12), which also selects the best
step of a run.

Idea: as `sts`: the closer two sentences are in meaning, the higher the cosine of their vectors.
Score: Spearman's rank correlation of cosines with gold scores.
Paper: Wu et al. 2022, InfoCSE, sec. 5. Official code: princeton-nlp/SimCSE
simcse/trainers.py:119-140.
Items: `STS-B/dev` (pairs,) cosines and `gold/STS-B/dev` (pairs,), whose rank correlation is the
score; `sentences/STS-B/dev` (pairs, 2) ids, by which pairs with a common sentence are recognised.
Relations: `sts` computes the same score on the test sets.
"""

from pathlib import Path

from csebench.data.sts import read_sts
from csebench.model.embedder import Embedder
from csebench.model.metrics import cosine, spearman
from csebench.score.score_types import Items, Score, sentence_ids

DECLARATION = {
    "name": "stsb_dev",
    "version": 2,
    "title": "STS-B dev",
    "protocol": "simcse-stsb-dev",
    "tasks": ["STS-B"],
    "published_as": "stsb_dev",
    "files": ["downstream/STS/STSBenchmark/sts-dev.csv"],
    "best": {"spearman": 1.0},
    "bounds": {"spearman": (-1.0, 1.0)},
    "chance": {"spearman": (-0.45, 0.45)},
    "items": {
        "values": "{task}/*",
        "score": "spearman",
        "gold": "gold/{task}/*",
        "sentences": "sentences/{task}/*",
    },
    "source": "SimCSE trainers.py:119-140; InfoCSE sec. 5",
    "deviations": [
        "the dev set also selected the step that is scored, as in the papers: the number is"
        " optimistic"
    ],
}


def evaluate(model: Embedder, data_root: Path) -> tuple[list[Score], Items]:
    """Score a model: one row, and items (module docstring)."""
    (pairs,) = read_sts(data_root, "STS-B", "dev")
    left, right = model.pairs(pairs)
    cosines = cosine(left, right)
    rows = [Score("STS-B", "all", "spearman", spearman(cosines, pairs.gold))]
    items = {
        "STS-B/dev": cosines,
        "gold/STS-B/dev": pairs.gold,
        "sentences/STS-B/dev": sentence_ids(pairs.left, pairs.right),
    }
    return rows, items
