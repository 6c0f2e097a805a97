"""Reading of the STS test sets as SimCSE's SentEval reads them.

evaluators/sts.py scores the pairs. data/corpus.py reads corpora.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, RootModel

from csebench.base.errors import BadInput
from csebench.base.files import DataRoot, is_there
from csebench.base.yaml_lines import read_yaml
from csebench.data.corpus import read_lines

STS = "downstream/STS"
WITH_SPLITS = ("STS-B", "SICK-R")
Count = Annotated[int, Field(ge=1)]

# The number of scored pairs of every subset, counted in the released files.
PUBLISHED_COUNTS = {
    "STS12": {
        "MSRpar": 750,
        "MSRvid": 750,
        "SMTeuroparl": 459,
        "surprise.OnWN": 750,
        "surprise.SMTnews": 399,
    },
    # without the subset SMT, which cannot be redistributed
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},
    "STS14": {
        "deft-forum": 450,
        "deft-news": 300,
        "headlines": 750,
        "OnWN": 750,
        "images": 750,
        "tweet-news": 750,
    },
    "STS15": {
        "answers-forums": 375,
        "answers-students": 750,
        "belief": 375,
        "headlines": 750,
        "images": 750,
    },
    "STS16": {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    },
    "STS-B": {"train": 5749, "dev": 1500, "test": 1379},
    "SICK-R": {"train": 4500, "trial": 500, "test": 4927},
}


@dataclass(frozen=True)
class Pairs:
    """Graded sentence pairs of one subset."""

    subset: str
    left: list[str]
    right: list[str]
    gold: np.ndarray  # one score a pair, from 0 to 5; in SICK-R from 1 to 5

    def __len__(self):
        return len(self.gold)


@dataclass(frozen=True)
class RatedPair:
    """Two sentences and the score that people gave them."""

    left: str
    right: str
    score: float


def read_sts(root: Path | DataRoot, task: str, split: str = "test") -> list[Pairs]:
    """Read the subsets of an STS task as SimCSE's SentEval reads them.

    Tokens are joined by single blanks. Quotes are text. Pairs without a score are dropped.

    Args:
        task: `STS12` … `STS16`, `STS-B` or `SICK-R`, as in the papers' columns.
        split: of STS-B (`train`, `dev`, `test`) or SICK-R (`train`, `trial`, `test`).

    Raises:
        BadInput: a file is damaged, has another number of scored pairs than expected, or the
            expected number is not stated.
    """
    counts = expected_counts(root, task, PUBLISHED_COUNTS)
    if task not in WITH_SPLITS:
        return [_read_subset(root, task, subset, count) for subset, count in counts.items()]
    if split not in counts:
        raise BadInput(f"{root / 'counts.yaml'}: {task}: {split}: missing; state its count.")
    return [_read_subset(root, task, split, counts[split])]


def expected_counts(
    root: Path | DataRoot, task: str, published: dict[str, dict[str, int]]
) -> dict[str, int]:
    """Look up how many items each part of a task should have.

    If the data root has a `counts.yaml`, the numbers are read from it. Otherwise they are the
    published ones.
    """
    file = root / "counts.yaml"
    counts = published
    if is_there(file):
        counts = read_yaml(file, RootModel[dict[str, dict[str, Count]]]).root
    if task not in counts:
        raise BadInput(f"{file}: {task}: missing; every task needs the counts of its parts.")
    return counts[task]


def _read_subset(root: Path | DataRoot, task: str, subset: str, count: int) -> Pairs:
    """Read one subset of STS12-16, or one split of STS-B or SICK-R."""
    match task:
        case "STS-B":
            path = root / f"{STS}/STSBenchmark/sts-{subset}.csv"
            rows = _read_table(path, (5, 6, 4))
        case "SICK-R":
            name = "test_annotated" if subset == "test" else subset
            path = root / f"downstream/SICK/SICK_{name}.txt"
            rows = _read_table(path, (1, 2, 3), header=1)
        case _:
            path = root / f"{STS}/{task}-en-test/STS.input.{subset}.txt"
            rows = _read_inputs(path, root / f"{STS}/{task}-en-test/STS.gs.{subset}.txt")
    if len(rows) != count:
        raise BadInput(
            f"{path}: {task} {subset}: {len(rows)} scored pairs, expected {count}: the file is cut"
            " short or another release."
        )
    left = [row.left for row in rows]
    right = [row.right for row in rows]
    return Pairs(subset, left, right, np.array([row.score for row in rows]))


def _read_inputs(inputs: Path, scores: Path) -> list[RatedPair]:
    """Read a subset of STS12-16: sentences from one file, scores from another.

    An empty line of scores means that nobody graded the pair. Such a pair is left out.
    """
    texts = read_lines(inputs)
    golds = read_lines(scores)
    if len(texts) != len(golds):
        raise BadInput(
            f"{inputs}: {len(texts)} lines, but {scores.name} has {len(golds)}: one of them is cut"
            " short."
        )
    rows = []
    for number, (text, gold) in enumerate(zip(texts, golds, strict=True), 1):
        if not gold.strip():
            continue
        sentences = text.split("\t")
        if len(sentences) < 2:
            raise BadInput(f"{inputs}: line {number}: expected two sentences separated by a tab.")
        rows.append(_rated_pair(sentences[0], sentences[1], gold, f"{scores}: line {number}"))
    return rows


def _read_table(path: Path, columns: tuple[int, int, int], header: int = 0) -> list[RatedPair]:
    """Read STS-B or SICK: one file with fields separated by tabs.

    Args:
        columns: positions of the two sentences and the score.
        header: number of lines before the first pair.
    """
    left, right, gold = columns
    rows = []
    for number, line in enumerate(read_lines(path)[header:], 1 + header):
        fields = line.split("\t")
        where = f"{path}: line {number}"
        if len(fields) <= max(columns):
            raise BadInput(f"{where}: {len(fields)} columns, expected at least {max(columns) + 1}.")
        rows.append(_rated_pair(fields[left], fields[right], fields[gold], where))
    return rows


def _rated_pair(left: str, right: str, gold: str, where: str) -> RatedPair:
    """Read a pair of sentences and its score.

    Args:
        where: file and line of the score, for a message.
    """
    try:
        score = float(gold)
    except ValueError:
        score = float("nan")
    if not np.isfinite(score):
        raise BadInput(f"{where}: the score {gold!r} is not a number.")
    return RatedPair(" ".join(left.split()), " ".join(right.split()), score)
