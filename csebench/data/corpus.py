"""What methods train on: corpora of sentences or triplets, their back-translations, few-shot
subsets. No torch."""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput, shortened
from csebench.base.files import read_json, read_text, sha256
from csebench.plan.recipe import back_translation_facts

TRIPLET = ("sent0", "sent1", "hard_neg")  # SimCSE's nli_for_simcse.csv
Triplet = tuple[str, str, str]
QUOTING = (
    'A text with a comma stands in quotes ("a, b"), a quote inside them is doubled, and a text is'
    " one line."
)


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file. Only line feeds end a line (a sentence may hold U+0085 or
    U+2028).

    Raises:
        BadInput: the file cannot be read, or begins with a byte-order mark, which would be a part
        of its first line.
    """
    content = read_text(path).split("\n")
    if content[0].startswith("\ufeff"):
        raise BadInput(f"{path}: line 1: a byte-order mark; save it as UTF-8 without one.")
    texts = [line.removesuffix("\r") for line in content]
    return texts[:-1] if len(texts) > 1 and not content[-1] else texts


def check_sha256(path: Path, expected: str | None) -> None:
    """Raises BadInput where a file is not the one that a run's key was made from."""
    if expected is None or expected.startswith("hub:"):
        return
    if (actual := sha256(path)) != expected:
        reason = (
            f"sha256 is {actual[:12]}…, expected {expected[:12]}… (data/registry.yaml): truncated"
            " or another file"
        )
        raise BadInput(
            f"{path}: {reason}. Fetch it again, or register the new file under a name of its own."
        )


def read_corpus(
    path: Path,
    expected_sha256: str | None = None,
    kind: str = "sentences",
    least: int = 2,
    size: int = 0,
) -> Sequence:
    """What a method trains on: one sentence a line, or of kind `triplets` (anchor, positive, hard
    negative), from a CSV with the columns of TRIPLET. Refuses a file that is damaged, too small, or
    not the one that the run's key was made from.

    Args:
        least: lines with text (a method learns from the differences between two).
        size: sentences that are drawn from it. Of triplets, whose scales have sizes of sentences,
            all are, if need be.
    """
    check_sha256(path, expected_sha256)
    sentences = read_lines(path)
    if kind == "triplets":
        is_published = expected_sha256 is not None and expected_sha256.startswith("hub:")
        return _read_triplets(path, is_published)
    if set(TRIPLET[:2]) <= set(sentences[0].split(",")):
        raise BadInput(
            f"{path}: line 1: names the columns of pairs or triplets; expected one sentence per"
            " line."
        )
    held = len(list(islice((s for s in sentences if s.strip()), least)))
    if held < least:
        raise BadInput(
            f"{path}: lines with text: {held}; at least {least} are needed, one sentence per line."
        )
    if size > len(sentences):
        raise BadInput(
            f"{path}: holds {len(sentences):,} sentences, fewer than the size of the run, {size:,}."
        )
    return sentences


def _read_triplets(path: Path, is_published: bool = False) -> list[Triplet]:
    """Read the triplets of a CSV file, row by row.

    Nothing is guessed: a sentence that lost its quotes would become two, and every later column
    another sentence.

    Args:
        is_published: whether the file is a paper's own, checked when it was fetched. Then sentences
            are taken as they are, also empty ones: the paper trained on them.

    Raises:
        BadInput: names the line of the first row that is no triplet.
    """
    rows = _rows(path)
    _, columns = next(rows, (1, []))
    _check_columns(path, columns)
    places = [columns.index(name) for name in TRIPLET]
    triplets = []
    for line, fields in rows:
        problem = _row_problem(fields, columns)
        if problem is None and not is_published:
            problem = _sentence_problem(fields, columns)
        if problem is not None:
            raise BadInput(f"{path}: line {line}: {problem}")
        anchor, positive, hard_negative = (fields[place] for place in places)
        triplets.append((anchor, positive, hard_negative))
    if not triplets:
        raise BadInput(f"{path}: holds no triplet below its line of column names.")
    return triplets


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give every row of a CSV file that is not blank, with the number of the line on which it
    begins."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    # a quote that is not closed, text behind a closing quote, a text of more than 128 KB
    except csv.Error as e:
        raise BadInput(f"{path}: line {line}: not a row of a CSV file: {e}. {QUOTING}") from None


def _check_columns(path: Path, columns: list[str]) -> None:
    """Refuse a first line that does not name each column of a triplet once."""
    if set(TRIPLET) <= set(columns) and len(set(columns)) == len(columns):
        return
    named = shortened(repr(",".join(columns))) if columns else "none"
    expected = f"expected {','.join(TRIPLET)}"
    if len(columns) == 2:
        remedy = (
            "Pairs are not enough: add a column hard_neg, whose sentence contradicts that of sent0;"
            " or train a method without labels, on a file with one sentence a line."
        )
    else:
        remedy = "Write these names into the first line, with commas between them."
    raise BadInput(f"{path}: line 1: columns are {named}, {expected}. {remedy}")


def _row_problem(fields: list[str], columns: list[str]) -> str | None:
    """Say what is wrong with the form of a row; None if nothing is."""
    if len(fields) != len(columns):
        return f"{len(fields)} fields for {len(columns)} columns. {QUOTING}"
    if fields == columns:
        return "the column names again; delete the line."
    return None


def _sentence_problem(fields: list[str], columns: list[str]) -> str | None:
    """Say what is wrong with the sentences of a row; None if nothing is."""
    for column, text in zip(columns, fields, strict=True):
        if column not in TRIPLET:
            continue
        if not any(character.isprintable() and not character.isspace() for character in text):
            return f"{column} is empty; write its sentence, or delete the row."
        if "\n" in text or "\r" in text:  # legal in CSV, but here it is a quote that was not closed
            return f"{column} goes on in another line: {shortened(repr(text), 60)}. {QUOTING}"
        if text.startswith("\ufeff"):
            return f"{column} begins with a byte-order mark; delete it."
        if "\0" in text:
            return f"{column} holds a NUL character; delete it."
    return None


def read_positives(path: Path, corpus_sha256: str, translators: str, count: int) -> list[str]:
    """The back-translation of a corpus, aligned with its `count` lines; that of another corpus
    is refused."""
    facts, wanted = (
        path.with_name(f"{path.name}.json"),
        back_translation_facts(corpus_sha256, translators),
    )
    if (stated := read_json(facts)) != wanted:
        raise BadInput(
            f"{facts}: is {shortened(repr(stated))}, this run wants {wanted}; translate again."
        )
    positives = read_lines(path)
    if len(positives) != count:
        raise BadInput(
            f"{path}: {len(positives)} lines for a corpus of {count}: truncated; translate again."
        )
    return positives


def draw_subset(sentences: Sequence, size: int, seed: int) -> Sequence:
    """A few-shot subset (miCSE sec. 3.1): `size` sentences drawn by seed without replacement, in
    corpus order."""
    if size >= len(sentences):
        return sentences
    index = np.random.default_rng(seed).choice(len(sentences), size, replace=False)
    return [sentences[i] for i in np.sort(index)]
