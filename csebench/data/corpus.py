"""Read the corpora that methods train on: sentences, triplets, and back-translations of sentences.

This module also joins lines to documents and draws few-shot subsets. data/sts.py and evaluators
read test sets. data/translate.py makes back-translations. Never imports torch.
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput, shortened
from csebench.base.files import decoded, read_bytes, read_json, read_text, sha256
from csebench.plan.recipe import back_translation_facts

TRIPLET = ("sent0", "sent1", "hard_neg")  # SimCSE's nli_for_simcse.csv
Triplet = tuple[str, str, str]
QUOTING = (
    'A text with a comma stands in quotes ("a, b"), a quote inside them is doubled, and a text is'
    " one line."
)


@dataclass(frozen=True)
class Corpus:
    """A corpus in memory."""

    sentences: Sequence  # sentences, or triplets
    sha256: str  # of its file


def read_corpus(
    path: Path,
    expected_sha256: str | None = None,
    kind: str = "sentences",
    least: int = 2,
    size: int = 0,
) -> Corpus:
    """Read the corpus that a method trains on. Its file is read once.

    Args:
        expected_sha256: the sha256 that is part of the run's identity. `hub:COMMIT` stands for a
            published file. Its hash is known to the hub only and was checked by `csebench fetch`,
            so it is not checked here.
        kind: `sentences`, one a line, or `triplets` (anchor, positive, hard negative), from a CSV
            file with the columns of TRIPLET.
        least: smallest number of lines with text. A method needs two, because it learns from the
            differences between sentences.
        size: number of sentences that will be drawn. The corpus must have so many. Triplets may be
            fewer, and all of them are drawn then, because a scale states sizes for sentences.

    Raises:
        BadInput: the file is damaged or too small, or is not the expected one.
    """
    content = read_bytes(path)
    actual_sha256 = hashlib.sha256(content).hexdigest()
    refuse_other_file(path, actual_sha256, expected_sha256)
    text = decoded(content, path)
    sentences = split_lines(text, path)  # also for triplets, to refuse a byte-order mark
    if kind == "triplets":
        is_published = expected_sha256 is not None and expected_sha256.startswith("hub:")
        return Corpus(_parse_triplets(text, path, is_published), actual_sha256)
    if set(TRIPLET[:2]) <= set(sentences[0].split(",")):
        raise BadInput(
            f"{path}: line 1: names the columns of pairs or triplets; expected one sentence per"
            " line."
        )
    with_text = (sentence for sentence in sentences if sentence.strip())
    found = len(list(islice(with_text, least)))  # no more, because there can be millions
    if found < least:
        raise BadInput(
            f"{path}: lines with text: {found}; at least {least} are needed, one sentence per line."
        )
    if size > len(sentences):
        raise BadInput(
            f"{path}: holds {len(sentences):,} sentences, fewer than the size of the run, {size:,}."
        )
    return Corpus(sentences, actual_sha256)


def read_positives(path: Path, corpus_sha256: str, translators: str, count: int) -> list[str]:
    """Read the back-translation of a corpus: one line for each line of the corpus.

    Args:
        count: number of lines of the corpus.

    Raises:
        BadInput: the file is damaged, or was made from another corpus or by other translators.
    """
    facts = path.with_name(f"{path.name}.json")
    expected = back_translation_facts(corpus_sha256, translators)
    stated = read_json(facts)
    if stated != expected:
        raise BadInput(
            f"{facts}: is {shortened(repr(stated))}, this run wants {expected}; translate again."
        )
    positives = read_lines(path)
    if len(positives) != count:
        raise BadInput(
            f"{path}: {len(positives)} lines for a corpus of {count}: truncated; translate again."
        )
    return positives


def join_lines(lines: Sequence[str], count: int) -> list[str]:
    """Join every `count` consecutive lines of a corpus to a document of one line.

    Lines that remain at the end are left out.
    """
    documents = []
    for end in range(count, len(lines) + 1, count):
        documents.append(" ".join(lines[end - count : end]))
    return documents


def draw_subset(sentences: Sequence, size: int, seed: int) -> Sequence:
    """Draw a few-shot subset (miCSE sec. 3.1).

    Returns:
        `size` sentences, drawn without replacement, in the order of the corpus. The seed decides
        which ones. If the corpus has fewer, all of it.
    """
    if size >= len(sentences):
        return sentences
    generator = np.random.default_rng(seed)
    drawn = generator.choice(len(sentences), size, replace=False)
    return [sentences[position] for position in np.sort(drawn)]


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file (`split_lines`).

    Raises:
        BadInput: the file cannot be read, or begins with a byte-order mark.
    """
    return split_lines(read_text(path), path)


def split_lines(text: str, path: Path) -> list[str]:
    """Split the text of a file into its lines.

    Only line feeds end a line, because a sentence may hold U+0085 or U+2028.

    Raises:
        BadInput: the text begins with a byte-order mark, which would become a part of its first
            line.
    """
    lines = text.split("\n")
    if lines[0].startswith("\ufeff"):
        raise BadInput(f"{path}: line 1: a byte-order mark; save it as UTF-8 without one.")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()  # nothing follows the last line feed
    return [line.removesuffix("\r") for line in lines]


def check_sha256(path: Path, expected: str | None) -> None:
    """Refuse a file whose sha256 is not the one that is part of a run's identity.

    Args:
        expected: None, or a text that begins with `hub:`, if the sha256 is not known. Then every
            file passes.
    """
    if expected is not None and not expected.startswith("hub:"):
        refuse_other_file(path, sha256(path), expected)


def refuse_other_file(path: Path, actual: str, expected: str | None) -> None:
    """Raise BadInput if the sha256 of a file is not the expected one (see `check_sha256`)."""
    if expected is None or expected.startswith("hub:"):
        return
    if actual != expected:
        raise BadInput(
            f"{path}: sha256 is {actual[:12]}…, expected {expected[:12]}… (data/registry.yaml):"
            " truncated or another file. Fetch it again, or register the new file under a name of"
            " its own."
        )


# ---------------------------------------------------------------- triplets


def _parse_triplets(text: str, path: Path, is_published: bool = False) -> list[Triplet]:
    """Parse the triplets of a CSV file, row by row.

    A row that can be misread is refused. For example, a sentence with a comma and without quotes
    becomes two fields, so that each later column gets the wrong sentence.

    Args:
        is_published: whether the file is a paper's own, checked when it was fetched. Its sentences
            are taken as they are, even empty ones, because the paper trained on them.

    Raises:
        BadInput: a row is no triplet. The message names the line of the first such row.
    """
    rows = _rows(text, path)
    _, columns = next(rows, (1, []))
    _check_columns(path, columns)
    positions = [columns.index(name) for name in TRIPLET]
    triplets = []
    for line, fields in rows:
        problem = _row_problem(fields, columns)
        if problem is None and not is_published:
            problem = _sentence_problem(fields, columns)
        if problem is not None:
            raise BadInput(f"{path}: line {line}: {problem}")
        anchor, positive, hard_negative = (fields[position] for position in positions)
        triplets.append((anchor, positive, hard_negative))
    if not triplets:
        raise BadInput(f"{path}: holds no triplet below its line of column names.")
    return triplets


def _rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of a CSV file: the number of its first line, and its fields.

    Blank lines are left out.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    # raised for an open quote, text after a closing quote, or a text of more than 128 KB
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
            "Pairs are not enough: add a column hard_neg with a sentence that contradicts sent0, or"
            " train a method without labels, on a file with one sentence a line."
        )
    else:
        remedy = "Write these names into the first line, with commas between them."
    raise BadInput(f"{path}: line 1: columns are {named}, {expected}. {remedy}")


def _row_problem(fields: list[str], columns: list[str]) -> str | None:
    """Return what is wrong with the form of a row. None if nothing is wrong."""
    if len(fields) != len(columns):
        return f"{len(fields)} fields for {len(columns)} columns. {QUOTING}"
    if fields == columns:
        return "the column names again; delete the line."
    return None


def _sentence_problem(fields: list[str], columns: list[str]) -> str | None:
    """Return what is wrong with the sentences of a row. None if nothing is wrong."""
    for column, text in zip(columns, fields, strict=True):
        if column not in TRIPLET:
            continue
        if not any(character.isprintable() and not character.isspace() for character in text):
            return f"{column} is empty; write its sentence, or delete the row."
        if "\n" in text or "\r" in text:  # allowed in CSV, but here a quote was not closed
            return f"{column} goes on in another line: {shortened(repr(text), 60)}. {QUOTING}"
        if text.startswith("\ufeff"):
            return f"{column} begins with a byte-order mark; delete it."
        if "\0" in text:
            return f"{column} holds a NUL character; delete it."
    return None
