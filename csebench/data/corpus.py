"""What methods train on: corpora of sentences or triplets, their back-translations, few-shot subsets. No torch."""

import csv
import io
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from csebench.base.errors import BadInput, shortened
from csebench.base.files import read_json, read_text, sha256
from csebench.plan.recipe import back_translation_facts

TRIPLET = ("sent0", "sent1", "hard_neg")  # SimCSE's nli_for_simcse.csv


def lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file. Only line feeds end a line (a sentence may hold U+0085 or U+2028)."""
    content = read_text(path).split("\n")
    texts = [line.removesuffix("\r") for line in content]
    return texts[:-1] if len(texts) > 1 and not content[-1] else texts


def check_sha256(path: Path, expected: str | None) -> None:
    """Raises BadInput where a file is not the one that a run's key was made from."""
    if expected is None or expected.startswith("hub:"):
        return
    if (actual := sha256(path)) != expected:
        reason = f"sha256 is {actual[:12]}…, expected {expected[:12]}… (data/registry.yaml): truncated or another file"
        raise BadInput(f"{path}: {reason}. Fetch it again, or register the new file under a name of its own.")


def read_corpus(
    path: Path, expected_sha256: str | None = None, kind: str = "sentences", least: int = 2, size: int = 0
) -> Sequence:
    """What a method trains on: one sentence a line, or of kind `triplets` (anchor, positive, hard negative), from a
    CSV with the columns of TRIPLET. Refuses a file that is damaged, too small, or not the one that the run's key was
    made from.

    Args:
        least: lines with text (a method learns from the differences between two).
        size: sentences that are drawn from it. Of triplets, whose scales have sizes of sentences, all are, if need be.
    """
    check_sha256(path, expected_sha256)
    sentences = lines(path)
    if sentences[0].startswith("\ufeff"):
        raise BadInput(f"{path}: line 1: a byte-order mark; save it as UTF-8 without one.")
    if kind == "triplets":
        return _read_triplets(path)
    held = len(list(islice((s for s in sentences if s.strip()), least)))
    if held < least:
        raise BadInput(f"{path}: lines with text: {held}; at least {least} are needed, one sentence per line.")
    if size > len(sentences):
        raise BadInput(f"{path}: holds {len(sentences):,} sentences, fewer than the size of the run, {size:,}.")
    return sentences


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
    """The back-translation of a corpus, aligned with its `count` lines; that of another corpus is refused."""
    facts, wanted = path.with_name(f"{path.name}.json"), back_translation_facts(corpus_sha256, translators)
    if (stated := read_json(facts)) != wanted:
        raise BadInput(f"{facts}: is {shortened(repr(stated))}, this run wants {wanted}; translate again.")
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
