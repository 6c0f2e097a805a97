"""STS12-16, STS-B and SICK-R in the protocol of SimCSE's SentEval.

Idea: the closer two sentences are in meaning, the higher the cosine of their vectors.
Score: Spearman's rank correlation of cosines, in float32, with gold scores. The papers print `all`,
one correlation over the concatenated subsets. Every subset also has a row of its own, and `mean` is
the mean of these rows. STS-B and SICK-R: the test split.
Paper: Gao et al. 2021, SimCSE, sec. 6. Official code: princeton-nlp/SimCSE
SentEval/senteval/sts.py:59-112, evaluation.py:182-188.
Items: `TASK/SUBSET` (pairs,) cosines and `gold/TASK/SUBSET` (pairs,), whose rank correlation is the
score; `sentences/TASK/SUBSET` (pairs, 2) ids, by which pairs with a common sentence are recognised.
Relations: `stsb_dev` is the same score on STS-B's dev set; `mteb:STS12` … read MTEB's texts.
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
            "width": 7.3,
            "height": 1.9,
            "shared_axes": True,
        }
    },
    "source": "SimCSE evaluation.py:182-188; SentEval/senteval/sts.py:59-112",
    "deviations": [
        (
            "pairs of identical sentences have the same cosine here; in SentEval, rounding orders"
            " them, so its STS12, with 79 such pairs, changes by up to 2e-5 with the batch size"
        ),
    ],
}


def evaluate(model: Embedder, data_root: Path) -> tuple[list[Score], Items]:
    """Score a model.

    Args:
        data_root: in SentEval's layout.

    Returns:
        Rows of every task and subset. The average of the tasks comes last, exact (`all`) and as
        papers print it (`printed`). Items (module docstring).
    """
    rows: list[Score] = []
    items: Items = {}
    of_tasks: list[float] = []
    tasks = {task: read_sts(data_root, task) for task in DECLARATION["tasks"]}
    cosines_of_tasks = embed_at_once(model, tasks)
    for task, subsets in tasks.items():
        of_subsets: list[float] = []
        for pairs, cosines in zip(subsets, cosines_of_tasks[task], strict=True):
            of_subsets.append(spearman(cosines, pairs.gold))
            rows.append(row(task, pairs.subset, of_subsets[-1]))
            items[f"{task}/{pairs.subset}"] = cosines
            items[f"gold/{task}/{pairs.subset}"] = pairs.gold
            items[f"sentences/{task}/{pairs.subset}"] = sentence_ids(pairs.left, pairs.right)
        gold = np.concatenate([pairs.gold for pairs in subsets])
        of_tasks.append(spearman(np.concatenate(cosines_of_tasks[task]), gold))
        rows.append(row(task, "mean", float(np.mean(of_subsets))))
        rows.append(row(task, "all", of_tasks[-1]))
    mean, printed = mean_scores(of_tasks)
    return [*rows, row("Avg.", "all", mean), row("Avg.", "printed", printed)], items


def embed_at_once(model: Embedder, tasks: dict[str, list[Pairs]]) -> dict[str, list[np.ndarray]]:
    """Compute the cosines of all pairs in one pass, and split them by task and subset."""
    subsets = [pairs for subsets_of_task in tasks.values() for pairs in subsets_of_task]
    left, right = model.pairs(concatenate("all", subsets))
    ends = np.cumsum([len(pairs) for pairs in subsets])
    of_subsets = iter(np.split(cosine(left, right), ends[:-1]))
    return {task: [next(of_subsets) for _ in parts] for task, parts in tasks.items()}


def concatenate(name: str, parts: list[Pairs]) -> Pairs:
    """Join the pairs of several subsets."""
    left: list[str] = []
    right: list[str] = []
    for part in parts:
        left += part.left
        right += part.right
    return Pairs(name, left, right, np.concatenate([part.gold for part in parts]))


def row(task: str, subset: str, value: float) -> Score:
    return Score(task, subset, "spearman", value)


def draw_cosine_gold_columns(items: Items) -> dict[str, np.ndarray]:
    """List STS-B's test pairs, for miCSE Figure 7."""
    return {"gold": items["gold/STS-B/test"], "cosine": items["STS-B/test"]}


def draw_cosine_gold(
    figure: FigureBase, columns: dict[str, np.ndarray], source: DrawingSource
) -> None:
    """Draw miCSE Figure 7: the cosines of pairs whose human ratings are alike.

    The paper draws a point per pair. Pairs cover one another there, so that only a cloud is left.
    """
    from csebench.score.drawing import COLOURS
    from csebench.score.themes import on_white

    gold, cosines = columns["gold"], columns["cosine"]
    band_of_pair = np.minimum(gold.astype(int), 4)  # from 0 to 1, ..., from 4 to 5
    bands = np.unique(band_of_pair)
    colour = on_white(COLOURS[0])
    axes = figure.subplots()
    labels = []
    for place, band in enumerate(bands):
        of_band = cosines[band_of_pair == band]
        lowest, lower, median, upper, highest = np.quantile(
            of_band, [0.025, 0.25, 0.5, 0.75, 0.975]
        )
        axes.plot([lowest, highest], [place, place], color=colour, linewidth=1.2)
        axes.plot([lower, upper], [place, place], color=colour, linewidth=4)
        axes.plot(median, place, "o", color=colour, markersize=8)
        labels.append(
            f"rated {band} to {band + 1}, {len(of_band):,} pairs:"
            f" {median:.2f} ({lowest:.2f} to {highest:.2f})"
        )
    axes.set_yticks(range(len(bands)), labels)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.margins(y=0.15)
    axes.invert_yaxis()
    axes.set_xlabel("dot: median; thick: half of the pairs; thin and in brackets: 95 %")
    axes.set_title(f"{source.model}: Spearman x 100 = {100 * spearman(cosines, gold):.2f}")
