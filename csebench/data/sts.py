"""Reading of the STS test sets as SimCSE's SentEval reads them."""

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
Count = Annotated[int, Field(ge=1)]

# Scored pairs of every set, as SimCSE's SentEval reads them (facts checked on the released files).
PUBLISHED_COUNTS = {
    "STS12": {
        "MSRpar": 750,
        "MSRvid": 750,
        "SMTeuroparl": 459,
        "surprise.OnWN": 750,
        "surprise.SMTnews": 399,
    },
    # without SMT, which cannot be redistributed
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
    gold: np.ndarray  # (pairs,) 0-5, SICK 1-5

    def __len__(self):
        return len(self.gold)


def read_sts(root: Path | DataRoot, task: str, split: str = "test") -> list[Pairs]:
    """The subsets of an STS task as SimCSE's SentEval reads them: tokens joined by single blanks,
    no quoting, unscored pairs dropped. Refuses a file that has another number of scored pairs than
    expected.

    Args:
        task: `STS12` … `STS16`, `STS-B` or `SICK-R`, as in the papers' columns.
        split: of STS-B (`train`, `dev`, `test`) and SICK-R (`train`, `trial`, `test`).
    """
    counts = expected_counts(root, task, PUBLISHED_COUNTS)
    pairs = []
    for subset in (split,) if split in counts else counts:
        if task == "STS-B":
            path = root / f"{STS}/STSBenchmark/sts-{split}.csv"
            rows = _table(path, (5, 6, 4))
        elif task == "SICK-R":
            path = (
                root / f"downstream/SICK/SICK_{'test_annotated' if split == 'test' else split}.txt"
            )
            rows = _table(path, (1, 2, 3), header=1)
        else:
            path = root / f"{STS}/{task}-en-test/STS.input.{subset}.txt"
            rows = _inputs(path, root / f"{STS}/{task}-en-test/STS.gs.{subset}.txt")
        if len(rows) != counts[subset]:
            number = f"{len(rows)} scored pairs, expected {counts[subset]}"
            raise BadInput(
                f"{path}: {task} {subset}: {number}: the file is cut short or another release."
            )
        left, right, gold = zip(*rows, strict=True)
        pairs.append(Pairs(subset, list(left), list(right), np.array(gold)))
    return pairs


def expected_counts(
    root: Path | DataRoot, task: str, published: dict[str, dict[str, int]]
) -> dict[str, int]:
    """How many items each part of a task has: the data root's own `counts.yaml`, else the
    published numbers."""
    file = root / "counts.yaml"
    counts = (
        read_yaml(file, RootModel[dict[str, dict[str, Count]]]).root
        if is_there(file)
        else published
    )
    if task not in counts:
        raise BadInput(f"{file}: {task}: missing; every task needs the counts of its parts.")
    return counts[task]


RatedPair = tuple[str, str, float]  # two sentences and their score


def _inputs(inputs: Path, scores: Path) -> list[RatedPair]:
    """STS12-16: sentences in one file, scores in another, an empty score for a pair that nobody
    graded."""
    texts, golds = read_lines(inputs), read_lines(scores)
    if len(texts) != len(golds):
        raise BadInput(
            f"{inputs}: {len(texts)} lines, but {scores.name} has {len(golds)}: one of them is cut"
            " short."
        )
    rows = []
    for number, (text, gold) in enumerate(zip(texts, golds, strict=True), 1):
        if gold.strip():
            left, *rest = text.split("\t")
            if not rest:
                raise BadInput(
                    f"{inputs}: line {number}: expected two sentences separated by a tab."
                )
            rows.append(_row(left, rest[0], gold, scores, number))
    return rows


def _table(path: Path, columns: tuple[int, int, int], header: int = 0) -> list[RatedPair]:
    """STS-B and SICK: one tab-separated file, `header` lines first; quotes are text."""
    rows = []
    for number, line in enumerate(read_lines(path)[header:], 1 + header):
        fields = line.split("\t")
        if len(fields) <= max(columns):
            raise BadInput(
                f"{path}: line {number}: {len(fields)} columns, expected at least"
                f" {max(columns) + 1}."
            )
        left, right, gold = (fields[c] for c in columns)
        rows.append(_row(left, right, gold, path, number))
    return rows


def _row(left: str, right: str, gold: str, path: Path, number: int) -> RatedPair:
    try:
        score = float(gold)
    except ValueError:
        score = float("nan")
    if not np.isfinite(score):
        raise BadInput(f"{path}: line {number}: the score {gold!r} is not a number.")
    return " ".join(left.split()), " ".join(right.split()), score
