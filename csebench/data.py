"""Reading of the data root (SentEval's layout): training corpora, few-shot subsets, STS pairs. No torch."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from pydantic import RootModel

from csebench.errors import BadInput, read_text, read_yaml

STS = "downstream/STS"
PIECE = 2**18  # bytes that are checked at a time
TRIPLET = ("sent0", "sent1", "hard_neg")  # SimCSE's nli_for_simcse.csv

# Scored pairs of every set, as SimCSE's SentEval reads them (facts checked on the released files).
PUBLISHED_COUNTS = {
    "STS12": {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
    "STS13": {"FNWN": 189, "headlines": 750, "OnWN": 561},  # without SMT, which cannot be redistributed
    "STS14": {"deft-forum": 450, "deft-news": 300, "headlines": 750, "OnWN": 750, "images": 750, "tweet-news": 750},
    "STS15": {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
    "STS16": {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209},
    "STS-B": {"train": 5749, "dev": 1500, "test": 1379},
    "SICK-R": {"train": 4500, "trial": 500, "test": 4927},
}


def sha256(path: Path) -> str:
    """Read once by a process, as long as the file has not changed.

    Raises:
        BadInput: no such file.
    """
    try:
        state = os.stat(path)
        return _sha256(Path(path), state.st_mtime_ns, state.st_size)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file.") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder, not a file.") from None


@cache
def _sha256(path: Path, _modified: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Lines(Sequence):
    """Lines of a UTF-8 file, each decoded when it is asked for: of a million sentences a run may see a few thousand.
    Only line feeds end a line (a sentence may hold U+0085 or U+2028).

    Raises:
        BadInput: no such file, or not UTF-8.
    """

    def __init__(self, path: Path):
        decoder, ends = codecs.getincrementaldecoder("utf-8")(), []
        try:
            self.content = path.read_bytes()  # not mapped into memory: it must stay what was checked
            for start in range(0, len(self.content), PIECE):
                piece = self.content[start : start + PIECE]
                decoder.decode(piece)
                ends.append(start + np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n")))
            decoder.decode(b"", final=True)
        except (OSError, UnicodeDecodeError):
            read_text(path)  # says what is wrong, and where
            raise
        if self.content[-1:] != b"\n":
            ends.append([len(self.content)])
        self.ends = np.concatenate(ends)

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, number: int | slice) -> str | list[str]:
        number = range(len(self))[number]
        if isinstance(number, range):
            return [self[i] for i in number]
        start = self.ends[number - 1] + 1 if number else 0
        return self.content[start : self.ends[number]].removesuffix(b"\r").decode("utf-8")


def lines(path: Path) -> list[str]:
    return list(Lines(path))


def check_sha256(path: Path, expected: str | None) -> None:
    """Raises BadInput where a file is not the one that a run's key was made from."""
    if expected is None or expected.startswith("hub:"):
        return
    if (found := sha256(path)) != expected:
        raise BadInput(
            f"{path}: sha256 is {found[:12]}…, expected {expected[:12]}… (data/registry.yaml): truncated or"
            " another file. Fetch it again, or register the new file under a name of its own."
        )


def read_corpus(path: Path, expected_sha256: str | None = None, kind: str = "sentences") -> Sequence:
    """What a method trains on: one sentence a line, or of kind `triplets` a CSV with the columns of TRIPLET.

    Returns:
        sentences, or tuples of anchor, positive and hard negative.

    Raises:
        BadInput: missing or empty, not UTF-8, without those columns, or not the file the run's key was made from.
    """
    check_sha256(path, expected_sha256)
    if kind == "triplets":
        return _read_triplets(path)
    sentences = Lines(path)
    if not any(s.strip() for s in sentences):
        raise BadInput(f"{path}: holds no sentence.")
    return sentences


def _read_triplets(path: Path) -> list[tuple[str, str, str]]:
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""))
    if rows.fieldnames is None or not {*TRIPLET} <= {*rows.fieldnames}:
        raise BadInput(f"{path}: line 1: columns are {rows.fieldnames}, expected {', '.join(TRIPLET)}.")
    found = [tuple(row[column] for column in TRIPLET) for row in rows]
    short = next((number for number, row in enumerate(found, 2) if None in row), None)
    if short is not None or not found:
        raise BadInput(f"{path}: row {short or 2}: fewer than {len(TRIPLET)} columns; truncated?")
    return found


def back_translation_facts(corpus_sha256: str, translators: str) -> dict:
    """What decides a back-translated corpus (csebench/translate.py): under its hash the file is kept.

    `version` goes up when translate.py comes to write other sentences.
    """
    return {"corpus_sha256": corpus_sha256, "translators": translators, "beams": 5, "longest": 128, "version": 1}


def read_positives(path: Path, corpus_sha256: str, translators: str, count: int) -> list[str]:
    """The back-translation of a corpus, aligned with its `count` lines.

    Raises:
        BadInput: missing, of another corpus, made in another way, or of another length.
    """
    facts = path.with_name(f"{path.name}.json")
    made = json.loads(read_text(facts))
    for key, wanted in back_translation_facts(corpus_sha256, translators).items():
        if made.get(key) != wanted:
            raise BadInput(f"{facts}: {key}: is {made.get(key)!r}, this run wants {wanted!r}; translate again.")
    found = lines(path)
    if len(found) != count:
        raise BadInput(f"{path}: {len(found)} lines for a corpus of {count}: truncated; translate again.")
    return found


def draw_subset(sentences: Sequence, size: int, seed: int) -> Sequence:
    """A few-shot subset (miCSE sec. 3.1): `size` sentences drawn by seed without replacement, in corpus order."""
    if size >= len(sentences):
        return sentences
    index = np.random.default_rng(seed).choice(len(sentences), size, replace=False)
    return [sentences[i] for i in np.sort(index)]


# ---------------------------------------------------------------- STS


@dataclass(frozen=True)
class Pairs:
    """Graded sentence pairs of one subset."""

    subset: str
    left: list[str]
    right: list[str]
    gold: np.ndarray  # (pairs,) 0-5, SICK 1-5

    def __len__(self):
        return len(self.gold)


def read_sts(root: Path, task: str, split: str = "test") -> list[Pairs]:
    """The subsets of an STS task as SimCSE's SentEval reads them: tokens joined by single blanks, no quoting,
    unscored pairs dropped.

    Args:
        task: `STS12` … `STS16`, `STS-B` or `SICK-R`, as in the papers' columns.
        split: of STS-B (`train`, `dev`, `test`) and SICK-R (`train`, `trial`, `test`).

    Raises:
        BadInput: a file is missing, cut short or not UTF-8, a score is no number, or the number of scored
            pairs is not the published one (not the one in `counts.yaml`, where the data root ships its own).
    """
    counts = expected_counts(root, task, PUBLISHED_COUNTS)
    pairs = []
    for subset in (split,) if split in counts else counts:
        if task == "STS-B":
            path = root / STS / "STSBenchmark" / f"sts-{split}.csv"
            rows = _table(path, (5, 6, 4), header=False)
        elif task == "SICK-R":
            file = {"test": "SICK_test_annotated.txt"}.get(split, f"SICK_{split}.txt")
            path = root / "downstream" / "SICK" / file
            rows = _table(path, (1, 2, 3), header=True)
        else:
            path = root / STS / f"{task}-en-test" / f"STS.input.{subset}.txt"
            rows = _inputs(path, path.with_name(f"STS.gs.{subset}.txt"))
        if len(rows) != counts[subset]:
            raise BadInput(
                f"{path}: {task} {subset}: {len(rows)} scored pairs, expected {counts[subset]}:"
                " the file is cut short or another release."
            )
        left, right, gold = zip(*rows, strict=True)
        pairs.append(Pairs(subset, list(left), list(right), np.array(gold)))
    return pairs


def expected_counts(root: Path, task: str, published: dict[str, dict[str, int]]) -> dict[str, int]:
    """How many items each part of a task must have: the published numbers, or those of the data root's own
    `counts.yaml`, where it has one."""
    own = root / "counts.yaml"
    found = read_yaml(own, RootModel[dict[str, dict[str, int]]]).root if own.exists() else published
    if task not in found:
        raise BadInput(f"{own}: {task}: missing; every task needs the counts of its parts.")
    return found[task]


def _score(text: str, path: Path, number: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = float("nan")
    if not np.isfinite(score):
        raise BadInput(f"{path}: line {number}: the score {text!r} is not a number.")
    return score


def _clean(sentence: str) -> str:
    return " ".join(sentence.split())


def _inputs(inputs: Path, scores: Path):
    """STS12-16: sentences in one file, scores in another, an empty score for a pair that nobody graded."""
    texts, golds = lines(inputs), lines(scores)
    if len(texts) != len(golds):
        raise BadInput(f"{inputs}: {len(texts)} lines, but {scores.name} has {len(golds)}: one of them is cut short.")
    rows = []
    for number, (text, gold) in enumerate(zip(texts, golds, strict=True), 1):
        if not gold.strip():
            continue
        fields = text.split("\t")
        if len(fields) < 2:
            raise BadInput(f"{inputs}: line {number}: expected two sentences separated by a tab.")
        rows.append((_clean(fields[0]), _clean(fields[1]), _score(gold, scores, number)))
    return rows


def _table(path: Path, columns: tuple[int, int, int], header: bool):
    """STS-B and SICK: one tab-separated file; quotes are text."""
    rows = []
    for number, line in enumerate(lines(path), 1):
        if header and number == 1:
            continue
        fields = line.split("\t")
        if len(fields) <= max(columns):
            raise BadInput(f"{path}: line {number}: {len(fields)} columns, expected at least {max(columns) + 1}.")
        left, right, gold = (fields[c] for c in columns)
        rows.append((_clean(left), _clean(right), _score(gold, path, number)))
    return rows
