"""Template: one line on what is measured.

Idea: what is asked of the vectors, and what a good model does.
Score: how a number is computed: metric, subsets, averages.
Paper: authors, year, section or table. Official code: repository, file, lines.
Items: what is kept of every pair, sentence or query, with shapes, and how it makes the score.
Relations: which evaluator here reads the same data or asks the same question, and what differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from csebench.data.sts import read_sts
from csebench.model.embedder import Embedder
from csebench.model.metrics import cosine, spearman
from csebench.score.score_types import Items, Score, sentence_ids

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from csebench.score.drawing import DrawingSource

# A literal, because it is read without running the file: no calls and no names. All keys are
# described in csebench/plan/schema/declarations.py.
DECLARATION = {
    "name": "template",  # as people write it
    "version": 1,  # bump it when a change of this file changes a number
    "title": "Template",
    "protocol": "whose-reading-of-what",  # forks differ silently, so the reading has a name
    "tasks": ["STS-B"],  # as in the papers' columns
    "files": ["downstream/STS/STSBenchmark/sts-dev.csv"],  # all that is read, below the data root
    "params": {"shown": 100},  # arguments of `evaluate`
    "variants": {"all": {"shown": 1500}},  # other arguments: `template:all`
    "best": {"spearman": 1.0},  # metric: what a perfect model scores
    # metric: lowest and highest value, if they are not 0 and 1
    "bounds": {"spearman": (-1.0, 1.0)},
    # metric: range of the scores of random vectors on data/smoke
    "chance": {"spearman": (-0.45, 0.45)},
    # How the score of a {task} and {metric} follows from items: `mean`, or `spearman` with gold
    # values. Rows are then also tested over items. `sentences` are ids: items with a common
    # sentence are resampled together. Leave `items` out if the score is neither.
    "items": {
        "values": "{task}/*",
        "score": "spearman",
        "gold": "gold/{task}/*",
        "sentences": "sentences/{task}/*",
    },
    # "counts": {"SST": 1821},  # task: test items, if an accuracy or recall is a share of them
    # Figures of one model, each drawn by the functions draw_KIND_columns and draw_KIND. A paper's
    # figure names the kind. Functions named draw_… may change without a new version. Optional.
    "panels": {"template": {"item": "shown", "width": 3.6, "height": 3.2, "shared_axes": True}},
    "source": "official file, paper section",
    "deviations": [],  # from the source, and choices that it leaves open
}


def evaluate(model: Embedder, data_root: Path, shown: int) -> tuple[list[Score], Items]:
    """Score a model.

    Read everything first, so that bad data is refused (BadInput, with file and line) before
    anything is embedded. Values need no check: csebench refuses those that are not finite.

    Args:
        data_root: in SentEval's layout. Write `data_root / "misc/NAME/FILE"` with whole names, as
            it may be several folders.
        shown: number of pairs in the figure.

    Returns:
        Rows; items: `STS-B/dev` (pairs,) cosines, `gold/STS-B/dev` (pairs,), `sentences/STS-B/dev`
        (pairs, 2) ids, `shown` (shown,) numbers of pairs.
    """
    (pairs,) = read_sts(data_root, "STS-B", "dev")
    # (pairs, D) each; use `model.embed(sentences, truth)` for sentences that are no graded pairs
    left, right = model.pairs(pairs)
    cosines = cosine(left, right)
    rows = [Score("STS-B", "all", "spearman", spearman(cosines, pairs.gold))]
    items = {
        "STS-B/dev": cosines,
        "gold/STS-B/dev": pairs.gold,
        "sentences/STS-B/dev": sentence_ids(pairs.left, pairs.right),
        "shown": np.arange(len(pairs))[:shown],
    }
    return rows, items


def draw_template_columns(items: Items) -> dict[str, np.ndarray]:
    """List what the figure shows, for its CSV file. A column `text` is not published."""
    shown = items["shown"]
    return {"gold": items["gold/STS-B/dev"][shown], "cosine": items["STS-B/dev"][shown]}


def draw_template(
    figure: FigureBase, columns: dict[str, np.ndarray], source: DrawingSource
) -> None:
    """Draw these columns, of one model, into a figure."""
    from csebench.score.drawing import points

    axes = figure.subplots()
    points(axes, columns["gold"], columns["cosine"])
    axes.set(xlabel="gold score (0 to 5)", ylabel="cosine (−1 to 1)", title=source.model)
