"""What methods train on: corpora of sentences or triplets, their back-translations, few-shot subsets. No torch."""

from __future__ import annotations

import codecs
import csv
import io
from collections import deque
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from csebench.base.errors import BadInput, shortened
from csebench.base.files import read_bytes, read_json, read_text, sha256
from csebench.plan.recipe import back_translation_facts

PIECE = 2**18  # bytes that are checked at a time
LONGEST = 10**6  # bytes of a line

TRIPLET = ("sent0", "sent1", "hard_neg")  # SimCSE's nli_for_simcse.csv


class Lines(Sequence):
    """Lines of a UTF-8 file, each decoded on access: a run may see a few thousand of a million sentences. Only line
    feeds end a line (a sentence may hold U+0085 or U+2028). Raises BadInput where it is missing or not UTF-8."""

    def __init__(self, path: Path):
        self.content = read_bytes(path)  # not mapped into memory: it must stay what was checked
        pieces = (self.content[start : start + PIECE] for start in range(0, len(self.content), PIECE))
        try:
            deque(codecs.iterdecode(pieces, "utf-8"), maxlen=0)
        except ValueError:
            read_text(path)  # says what is wrong, and where
            raise
        feeds = np.flatnonzero(np.frombuffer(self.content, np.uint8) == ord("\n"))
        self.ends = feeds if self.content.endswith(b"\n") else np.append(feeds, len(self.content))

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, number: int | slice) -> str | list[str]:
        line = range(len(self))[number]
        if isinstance(line, range):
            return [str(self[i]) for i in line]
        start = self.ends[line - 1] + 1 if line else 0
        return self.content[start : self.ends[line]].removesuffix(b"\r").decode("utf-8")


def lines(path: Path) -> list[str]:
    """All lines of a UTF-8 file; raises as `Lines`."""
    return list(Lines(path))


def check_sha256(path: Path, expected: str | None) -> None:
    """Raises BadInput where a file is not the one that a run's key was made from."""
    if expected is None or expected.startswith("hub:"):
        return
    if (actual := sha256(path)) != expected:
        raise BadInput(
            f"{path}: sha256 is {actual[:12]}…, expected {expected[:12]}… (data/registry.yaml): truncated or"
            " another file. Fetch it again, or register the new file under a name of its own."
        )


def read_corpus(
    path: Path, expected_sha256: str | None = None, kind: str = "sentences", least: int = 2, size: int = 0
) -> Sequence:
    """What a method trains on: one sentence a line, or of kind `triplets` a CSV with the columns of TRIPLET. Raises
    BadInput for a file that is missing, damaged, too small, or not the one that the run's key was made from.

    Args:
        least: lines with text (a method learns from the differences between two).
        size: sentences that are drawn from it. Of triplets, whose scales have sizes of sentences, all are, if need be.

    Returns:
        sentences, or tuples of anchor, positive and hard negative.
    """
    check_sha256(path, expected_sha256)
    sentences = Lines(path)
    _refuse_damage(path, sentences)
    if kind == "triplets":
        return _read_triplets(path)
    held = len(list(islice((s for s in sentences if s.strip()), least)))
    if held < least and b"\r" in sentences.content.rstrip(b"\r\n"):
        raise BadInput(f"{path}: its lines end with carriage returns alone; convert them to line feeds.")
    if held < least:
        content = "only one sentence; at least two are needed, one per line" if held else "no sentence"
        raise BadInput(f"{path}: holds {content}.")
    if size > len(sentences):
        raise BadInput(f"{path}: holds {len(sentences):,} sentences, fewer than the size of the run, {size:,}.")
    return sentences


def _refuse_damage(path: Path, sentences: Lines) -> None:
    content, ends = sentences.content, sentences.ends
    too_long = np.flatnonzero(np.diff(ends, prepend=-1) > LONGEST + 1)
    for start, what in (
        (0 if content.startswith(codecs.BOM_UTF8) else -1, "a byte-order mark; save it as UTF-8 without one"),
        (content.find(b"\0"), "a NUL byte; a text has none"),
        (ends[too_long[0]] if len(too_long) else -1, f"over {LONGEST // 10**6} MB; a line holds one sentence"),
    ):
        if start >= 0:
            raise BadInput(f"{path}: line {np.searchsorted(ends, start) + 1}: {what}.")


def _read_triplets(path: Path) -> list[tuple[str, str, str]]:
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        columns = list(rows.fieldnames or ())
        if not {*TRIPLET} <= {*columns} or len({*columns}) < len(columns):
            named = shortened(", ".join(columns)) or "none"
            raise BadInput(f"{path}: line 1: columns are {named}, expected {', '.join(TRIPLET)}.")
        triplets: list[Any] = [tuple(row[column] for column in TRIPLET) for row in rows]
    except csv.Error as e:  # a text of more than 128 KB, or an open quote
        raise BadInput(f"{path}: line {rows.line_num}: not a row of a CSV file: {e}.") from None
    short = next((number for number, row in enumerate(triplets, 2) if None in row), None)
    if short is not None or not triplets:
        raise BadInput(f"{path}: row {short or 2}: fewer than {len(TRIPLET)} columns; truncated?")
    return triplets


def read_positives(path: Path, corpus_sha256: str, translators: str, count: int) -> list[str]:
    """The back-translation of a corpus, aligned with its `count` lines. Raises BadInput where it is missing, of
    another corpus, made in another way, or of another length."""
    facts = path.with_name(f"{path.name}.json")
    stated = read_json(facts)
    if not isinstance(stated, dict):
        raise BadInput(f"{facts}: is damaged; translate again.")
    for key, wanted in back_translation_facts(corpus_sha256, translators).items():
        if stated.get(key) != wanted:
            raise BadInput(f"{facts}: {key}: is {stated.get(key)!r}, this run wants {wanted!r}; translate again.")
    positives = lines(path)
    if len(positives) != count:
        raise BadInput(f"{path}: {len(positives)} lines for a corpus of {count}: truncated; translate again.")
    return positives


def draw_subset(sentences: Sequence, size: int, seed: int) -> Sequence:
    """A few-shot subset (miCSE sec. 3.1): `size` sentences drawn by seed without replacement, in corpus order."""
    if size >= len(sentences):
        return sentences
    index = np.random.default_rng(seed).choice(len(sentences), size, replace=False)
    return [sentences[i] for i in np.sort(index)]
