"""Reading of what methods train on: corpora of sentences or triplets, and their back-translations.

Also drawing of few-shot subsets. Test sets are read by data/sts.py and by evaluators.
Back-translations are made by data/translate.py. Never imports torch.
"""

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


def read_corpus(
    path: Path,
    expected_sha256: str | None = None,
    kind: str = "sentences",
    least: int = 2,
    size: int = 0,
) -> Sequence:
    """Read the corpus that a method trains on.

    Args:
        expected_sha256: the sha256 from which the run's key was computed.
        kind: `sentences`, one a line, or `triplets` (anchor, positive, hard negative), from a CSV
            file with the columns of TRIPLET.
        least: number of lines with text that are needed. A method learns from the differences
            between two.
        size: number of sentences that will be drawn from the corpus. It does not count for
            triplets: a scale states it in sentences, and all triplets are drawn if there are fewer.

    Raises:
        BadInput: the file is damaged, too small, or another than expected.
    """
    check_sha256(path, expected_sha256)
    sentences = read_lines(path)  # for triplets, too: it refuses a byte-order mark
    if kind == "triplets":
        is_published = expected_sha256 is not None and expected_sha256.startswith("hub:")
        return _read_triplets(path, is_published)
    if set(TRIPLET[:2]) <= set(sentences[0].split(",")):
        raise BadInput(
            f"{path}: line 1: names the columns of pairs or triplets; expected one sentence per"
            " line."
        )
    with_text = (sentence for sentence in sentences if sentence.strip())
    found = len(list(islice(with_text, least)))  # not all: there can be millions
    if found < least:
        raise BadInput(
            f"{path}: lines with text: {found}; at least {least} are needed, one sentence per line."
        )
    if size > len(sentences):
        raise BadInput(
            f"{path}: holds {len(sentences):,} sentences, fewer than the size of the run, {size:,}."
        )
    return sentences


def read_positives(path: Path, corpus_sha256: str, translators: str, count: int) -> list[str]:
    """Read the back-translation of a corpus: one line for each line of the corpus.

    Args:
        count: number of lines of the corpus.

    Raises:
        BadInput: the file is damaged, or is the back-translation of another corpus or by other
            translators.
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


def draw_subset(sentences: Sequence, size: int, seed: int) -> Sequence:
    """Draw a few-shot subset (miCSE sec. 3.1).

    Returns:
        `size` sentences, drawn by the seed without replacement, in the order of the corpus.
    """
    if size >= len(sentences):
        return sentences
    generator = np.random.default_rng(seed)
    drawn = generator.choice(len(sentences), size, replace=False)
    return [sentences[position] for position in np.sort(drawn)]


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 file.

    Only line feeds end a line, because a sentence may hold U+0085 or U+2028.

    Raises:
        BadInput: the file cannot be read, or begins with a byte-order mark, which would become a
            part of its first line.
    """
    lines = read_text(path).split("\n")
    if lines[0].startswith("\ufeff"):
        raise BadInput(f"{path}: line 1: a byte-order mark; save it as UTF-8 without one.")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()  # nothing follows the last line feed
    return [line.removesuffix("\r") for line in lines]


def check_sha256(path: Path, expected: str | None) -> None:
    """Refuse a file that is not the one from which a run's key was computed.

    Args:
        expected: None, or a text that begins with `hub:`, if the sha256 is not known.
    """
    if expected is None or expected.startswith("hub:"):
        return
    actual = sha256(path)
    if actual != expected:
        raise BadInput(
            f"{path}: sha256 is {actual[:12]}…, expected {expected[:12]}… (data/registry.yaml):"
            " truncated or another file. Fetch it again, or register the new file under a name of"
            " its own."
        )


# ---------------------------------------------------------------- triplets


def _read_triplets(path: Path, is_published: bool = False) -> list[Triplet]:
    """Read the triplets of a CSV file, row by row.

    Nothing is guessed: a sentence that lost its quotes would become two, and every later column
    another sentence.

    Args:
        is_published: whether the file is a paper's own, checked when it was fetched. Then sentences
            are taken as they are, even if they are empty, because the paper trained on them.

    Raises:
        BadInput: names the line of the first row that is no triplet.
    """
    rows = _rows(path)
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
    # a quote that is not closed, text after a closing quote, or a text of more than 128 KB
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
