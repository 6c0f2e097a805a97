"""STS12-16, STS-B and SICK-R in the protocol of SimCSE's SentEval.

Idea: the closer two sentences are in meaning, the higher the cosine of their vectors.
Score: Spearman's rank correlation of cosines, in float32, with gold scores. `all`: one correlation
over the concatenated subsets (what the papers print); also every subset's, and their mean. STS-B
and SICK-R: the test split.
Paper: Gao et al. 2021, SimCSE, sec. 6. Official code: princeton-nlp/SimCSE
SentEval/senteval/sts.py:59-112, evaluation.py:182-188.
Items: `TASK/SUBSET` (pairs,) cosines and `gold/TASK/SUBSET` (pairs,), whose rank correlation is the
score; `sentences/TASK/SUBSET` (pairs, 2) ids, by which pairs of the same sentence are known.
Relations: `stsb_dev` is the same score of STS-B's dev set; `mteb:STS12` … read MTEB's texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from csebench.data.sts import Pairs, read_sts
from csebench.model.embedder import Embedder
from csebench.model.metrics import cosine, mean_scores, spearman
from csebench.score.score_types import Items, Score, sentence_ids

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from csebench.score.drawing import DrawingSource

DECLARATION = {
    "name": "sts",
    "version": 2,
    "title": "Semantic textual similarity",
    "protocol": "simcse-senteval-all",
    "tasks": ["STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R"],
    "average": True,
    "published_as": "Avg.",
    "files": [
        "downstream/STS/STSBenchmark/sts-test.csv",
        "downstream/SICK/SICK_test_annotated.txt",
        "downstream/STS/STS12-en-test/STS.*.txt",
        "downstream/STS/STS13-en-test/STS.*.txt",
        "downstream/STS/STS14-en-test/STS.*.txt",
        "downstream/STS/STS15-en-test/STS.*.txt",
        "downstream/STS/STS16-en-test/STS.*.txt",
    ],
    "best": {"spearman": 1.0},
    "bounds": {"spearman": (-1.0, 1.0)},
    "chance": {"spearman": (-0.45, 0.45)},
    "items": {
        "values": "{task}/*",
        "score": "spearman",
        "gold": "gold/{task}/*",
        "sentences": "sentences/{task}/*",
    },
    "panels": {
        "cosine_gold": {
            "item": "gold/STS-B/test",
            "width": 5.2,
            "height": 4.2,
            "shared_axes": True,
        }
    },
    "source": "SimCSE evaluation.py:182-188; SentEval/senteval/sts.py:59-112",
    "deviations": [
        (
            "pairs of identical sentences tie; SentEval leaves their order to the rounding of"
            " float32, which moves its STS12, with 79 such pairs, by up to 2e-5 with the size of"
            " its batches"
        ),
    ],
}


def evaluate(model: Embedder, data_root: Path) -> tuple[list[Score], Items]:
    """Scores of a model.

    Args:
        data_root: in SentEval's layout.

    Returns:
        rows of every task and subset, and the average of the tasks as it is and as printed; items
        (module docstring).
    """
    tasks = {task: read_sts(data_root, task) for task in DECLARATION["tasks"]}
    subsets = [pairs for parts in tasks.values() for pairs in parts]
    left, right = model.pairs(concatenate("all", subsets))
    splits = iter(np.split(cosine(left, right), np.cumsum([len(pairs) for pairs in subsets])[:-1]))
    rows, items = [], {}
    for task, parts in tasks.items():
        cosines = [next(splits) for _ in parts]
        values = [spearman(c, pairs.gold) for c, pairs in zip(cosines, parts, strict=True)]
        whole = spearman(np.concatenate(cosines), np.concatenate([pairs.gold for pairs in parts]))
        rows += [row(task, pairs.subset, value) for pairs, value in zip(parts, values, strict=True)]
        rows += [row(task, "mean", float(np.mean(values))), row(task, "all", whole)]
        for c, pairs in zip(cosines, parts, strict=True):
            items |= {f"{task}/{pairs.subset}": c, f"gold/{task}/{pairs.subset}": pairs.gold}
            items[f"sentences/{task}/{pairs.subset}"] = sentence_ids(pairs.left, pairs.right)
    mean, printed = mean_scores([score.value for score in rows if score.subset == "all"])
    return [*rows, row("Avg.", "all", mean), row("Avg.", "printed", printed)], items


def row(task: str, subset: str, value: float) -> Score:
    return Score(task, subset, "spearman", value)


def concatenate(name: str, parts: list[Pairs]) -> Pairs:
    return Pairs(
        name,
        [s for p in parts for s in p.left],
        [s for p in parts for s in p.right],
        np.concatenate([p.gold for p in parts]),
    )


def draw_cosine_gold(figure: FigureBase, items: Items, source: DrawingSource) -> list[list]:
    """miCSE Figure 7: STS-B's test pairs."""
    from csebench.score.drawing import points

    cosines, gold = items["STS-B/test"], items["gold/STS-B/test"]
    axes = figure.subplots()
    points(axes, gold, cosines, c=gold, cmap="cividis", alpha=0.7)
    axes.set(xlabel="gold score of the pair (0 to 5)", ylabel="cosine of the pair (−1 to 1)")
    axes.set_title(f"{source.model}\nSTS-B test, Spearman {100 * spearman(cosines, gold):.2f}")
    return [["gold", "cosine"], *map(list, zip(gold, cosines, strict=True))]
