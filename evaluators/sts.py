"""STS12-16, STS-B and SICK-R in the protocol of SimCSE's SentEval.

Cosine of the two vectors, Spearman's rank correlation with the gold scores. `all`: one correlation over the
concatenated subsets (what the papers print); also every subset's own, and their mean. STS-B and SICK-R: the
test split. Official code: princeton-nlp/SimCSE SentEval/senteval/sts.py:59-112, evaluation.py:182-188.
"""

import numpy as np

from csebench.base.errors import RunFailed
from csebench.data.sts import Pairs, read_sts
from csebench.model.metrics import averages, cosine, spearman

DECLARATION = {
    "name": "sts",
    "version": 1,
    "title": "Semantic textual similarity",
    "protocol": "simcse-senteval-all",
    "tasks": ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"],
    "average": True,
    "files": [
        "downstream/STS/STSBenchmark/sts-test.csv",
        "downstream/SICK/SICK_test_annotated.txt",
        "downstream/STS/STS1?-en-test/STS.*.txt",
    ],
    "best": {"spearman": 1.0},
    "chance": {"spearman": (-0.45, 0.45)},
    "source": "SimCSE evaluation.py:182-188; SentEval/senteval/sts.py:59-112",
    "deviations": [],
}


def evaluate(model, data_root):
    """Scores of a model.

    Args:
        model: csebench.model.embedder.Embedder.
        data_root: in SentEval's layout.

    Returns:
        (rows, items): rows `{task, subset, metric, value}`, values as fractions, unrounded; items
        `{task/subset: (pairs,) cosines}`.
    """
    read = {task: read_sts(data_root, task) for task in DECLARATION["tasks"]}
    everything = [p for subsets in read.values() for p in subsets]
    left, right = model.pairs(concatenate("all", everything))
    cosines = iter(np.split(cosine(left, right), np.cumsum([len(p) for p in everything])[:-1]))
    rows, items = [], {}
    for task, subsets in read.items():
        own = [next(cosines) for _ in subsets]
        of_subset = [spearman(c, p.gold) for c, p in zip(own, subsets, strict=True)]
        whole = spearman(np.concatenate(own), np.concatenate([p.gold for p in subsets]))
        rows += [row(task, p.subset, value) for p, value in zip(subsets, of_subset, strict=True)]
        rows += [row(task, "mean", float(np.mean(of_subset))), row(task, "all", whole)]
        items |= {f"{task}/{p.subset}": c.astype(np.float32) for c, p in zip(own, subsets, strict=True)}
    values = [r["value"] for r in rows]
    if not np.isfinite(values).all():
        raise RunFailed("STS: a correlation is not a number: the model gives every sentence the same vector.")
    mean, printed = averages([r["value"] for r in rows if r["subset"] == "all"])
    return [*rows, row("Avg.", "all", mean), row("Avg.", "printed", printed)], items


def row(task, subset, value):
    return {"task": task, "subset": subset, "metric": "spearman", "value": value}


def concatenate(name, parts):
    return Pairs(
        name,
        [s for p in parts for s in p.left],
        [s for p in parts for s in p.right],
        np.concatenate([p.gold for p in parts]),
    )
