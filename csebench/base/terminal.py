"""Output on a terminal and output for programs: progress bars, tables, colours, JSON and CSV.

base/shown.py decides which characters of a text may be shown. The callers decide what a table says.
Only the words of verdicts are repeated here, in VERDICT_COLOURS, because they have colours.
"""

import csv
import io
import json
import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import zip_longest
from math import sqrt

from tqdm import tqdm

from csebench.base.processes import is_main_process
from csebench.base.shown import as_csv_cell, as_json_escapes, visible, visible_lines

GAP = "  "  # between columns
NO_VALUE = "–"
NUMBER_CELL = re.compile(rf"([-+]?[\d.,]+( ?± ?[\d.]+)?|{NO_VALUE})?")
LONGEST_WORD = 24  # a narrow column may break words with more characters


def on_terminal() -> bool:
    """Whether a person sees what this process writes to stderr."""
    return is_main_process() and sys.stderr.isatty()


def bar(items: Iterable | None, what: str, unit: str = "it", **more) -> tqdm:
    """Show a progress bar on a terminal, if the work takes more than two seconds.

    Args:
        items: what the bar iterates over; None if the caller moves the bar by `update`.
        what: name of the work, shown before the bar.
        more: options of tqdm, such as `total=100`.
    """
    options = {"desc": what, "unit": unit, "delay": 2, "leave": False}
    options["disable"] = not on_terminal()
    return tqdm(items, **options | more)


def counted(count: int, noun: str) -> str:
    """Write a count with its noun: `1 run`, `2 runs`, `1,000 runs`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}s"


def capitalised(text: str) -> str:
    """Write the first letter in upper case. The others stay as they are."""
    return text[:1].upper() + text[1:]


def print_text(text: str) -> None:
    """Print a text, which may hold tables.

    Lines that are wider than the terminal are broken between words. A terminal shows verdicts in
    colour.
    """
    width = shutil.get_terminal_size().columns
    has_colours = shows_colours()
    for line in visible_lines(text).split("\n"):
        filled = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        if has_colours:
            filled = with_coloured_verdicts(filled)
        print(filled)
    sys.stdout.flush()


def command_text(command: str) -> str:
    """Lay out a command of a shell so that it fits the terminal and can be copied.

    A line that goes on ends with a backslash.
    """
    width = shutil.get_terminal_size().columns - len(" \\")
    lines = textwrap.wrap(
        command, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return " \\\n".join(lines)


# ---------------------------------------------------------------- tables


def print_table(columns: Sequence[str], rows: Iterable[Sequence], as_json=False, shown=()) -> None:
    """Print rows as a table, or as a JSON list with an object per row.

    A terminal shows the verdicts of VERDICT_COLUMNS in colour.

    Args:
        shown: the columns of the table; all if empty. JSON always has all columns.
    """
    by_column = records(columns, rows)
    if as_json:
        print(json_text(by_column))
        return
    visible_columns = shown or columns
    visible_rows = []
    for record in by_column:
        visible_rows.append([record.get(column) for column in visible_columns])
    print(table_text(visible_columns, visible_rows, has_colours=shows_colours()))


def summary_line(
    listed: int, total: int, noun: str, verdicts: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Word the line below a long list: `2 claims. Printed numbers: 1 supported, 1 open.`

    Args:
        listed: how many entries the list has, after --limit.
        total: how many it would have without --limit.
        verdicts: of all entries, by title. Each counts by its words before any punctuation mark,
            because details follow it.
    """
    sentences = [f"{counted(total, noun)}."]
    if listed < total:
        first = "The first" if listed == 1 else f"The first {listed:,}"
        sentences = [f"{first} of {counted(total, noun)}."]
    for title, texts in (verdicts or {}).items():
        heads = [re.split(r"[,:;(]", text)[0].strip() for text in texts]
        counts = [f"{count:,} {head}" for head, count in Counter(heads).most_common()]
        if counts:
            sentences.append(f"{title}: {', '.join(counts)}.")
    return " ".join(sentences)


def table_text(
    columns: Sequence[str],
    rows: Iterable[Sequence],
    floatfmt: str = "g",
    has_colours: bool = False,
) -> str:
    """Lay out a table that fits the terminal.

    Text is wrapped. Columns of numbers are aligned at the right. None is shown as `–`.

    Args:
        columns: the titles. If there are none, the table has no head.
        rows: short rows are filled with empty cells.
        has_colours: whether verdicts get the escape codes of colours.
    """
    table = [_cell_texts(columns, floatfmt)]
    table += [_cell_texts(row, floatfmt) for row in rows]
    table_by_column = list(zip_longest(*table, fillvalue=""))
    widths = column_widths(table_by_column, shutil.get_terminal_size().columns)
    layout = []
    for width, texts in zip(widths, table_by_column, strict=True):
        is_coloured = has_colours and texts[0] in VERDICT_COLUMNS
        layout.append(_Column(width, texts, is_coloured))

    full_rows = list(zip(*table_by_column, strict=True))
    lines = []
    if columns:
        lines.extend(_row_lines(full_rows[0], layout))
        lines.append(GAP.join("-" * width for width in widths))
    for row in full_rows[1:]:
        lines.extend(_row_lines(row, layout))
    return "\n".join(lines)


def _cell_texts(row: Sequence, floatfmt: str) -> list[str]:
    """Turn the values of a row into the texts of its cells."""
    texts = []
    for value in row:
        if value is None:
            texts.append(NO_VALUE)
        elif isinstance(value, float):
            texts.append(f"{value:{floatfmt}}")
        else:
            texts.append(visible(str(value)))
    return texts


class _Column:
    """The layout of a column: its width, the side at which its text is aligned, its colours."""

    def __init__(self, width: int, texts: Sequence[str], has_colours: bool):
        self.width = width
        self.has_colours = has_colours
        self.is_number = all(NUMBER_CELL.fullmatch(text) for text in texts[1:])  # not the title

    def pad(self, text: str) -> str:
        """Fill a text up to the width of the column."""
        if self.is_number:
            return text.rjust(self.width)
        return text.ljust(self.width)

    def lines(self, text: str) -> list[str]:
        """Break the text of a cell into lines of the column's width, in the colour of its verdict.

        Spaces at the right have no colour, so that the end of a row can be cut.
        """
        lines = []
        for line in textwrap.wrap(text, self.width):
            padded = self.pad(line)
            if self.has_colours:
                padded = padded.replace(line, coloured(line, colour_of(text)))
            lines.append(padded)
        return lines


def _row_lines(row: Sequence[str], layout: Sequence[_Column]) -> list[str]:
    """Lay out a row. It has as many lines as its longest cell has after wrapping."""
    cells = [column.lines(text) for text, column in zip(row, layout, strict=True)]
    height = max(len(lines) for lines in cells)
    for lines, column in zip(cells, layout, strict=True):
        lines += [column.pad("")] * (height - len(lines))
    return [GAP.join(parts).rstrip() for parts in zip(*cells, strict=True)]


def column_widths(columns: Sequence[Sequence[str]], width: int) -> list[int]:
    """Choose widths with which columns of text fit side by side.

    Every column starts with the width of its longest text. Then one column after the other loses a
    character, until all fit. Columns with more text keep more of their width. Words are broken only
    if there is no room otherwise.

    Args:
        columns: the texts of each column.
        width: the room for all columns and the gaps between them.
    """
    widths = []
    longest_words = []
    shares = []  # how much of the room each column should get, relative to the others
    for texts in columns:
        lengths = [len(text) for text in texts]
        word_lengths = [len(word) for word in " ".join(texts).split()]
        widths.append(max(1, *lengths))
        longest_words.append(min(LONGEST_WORD, max(word_lengths, default=0)))
        shares.append(max(1.0, sqrt(sum(lengths))))

    def whole_words_then_widest(index: int) -> tuple[bool, bool, float]:
        """Order columns by how well each can lose a character.

        The best one keeps its words whole, and is the widest for its share.
        """
        keeps_words_whole = widths[index] > longest_words[index]
        can_be_narrower = widths[index] > 1
        return keeps_words_whole, can_be_narrower, widths[index] / shares[index]

    gaps = len(GAP) * (len(columns) - 1)
    excess = sum(widths) + gaps - width
    for _ in range(excess):
        narrowed = max(range(len(widths)), key=whole_words_then_widest)
        widths[narrowed] = max(1, widths[narrowed] - 1)
    return widths


# ---------------------------------------------------------------- colours


class TerminalColour(StrEnum):
    """The codes of ANSI terminals for the colour of letters."""

    DEFAULT = ""
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    BLUE = "34"
    GREY = "90"


# By the words with which a verdict begins. They repeat VerdictWord, PrintedWord, ClaimVerdict and
# Severity (csebench/report/numbers), which this room must not import.
VERDICT_COLOURS = {
    "higher": TerminalColour.GREEN,
    "supported": TerminalColour.GREEN,
    "agrees": TerminalColour.GREEN,
    "lower": TerminalColour.RED,
    "against": TerminalColour.RED,
    "differs": TerminalColour.RED,
    "serious": TerminalColour.RED,
    "open": TerminalColour.YELLOW,
    "unclear": TerminalColour.YELLOW,
    "inconclusive": TerminalColour.YELLOW,
    "misprint": TerminalColour.YELLOW,
    "notable": TerminalColour.YELLOW,
    "same": TerminalColour.BLUE,
    "not tested": TerminalColour.GREY,
    "cannot tell": TerminalColour.GREY,
    "minor": TerminalColour.GREY,
}
VERDICT_COLUMNS = ("verdict", "printed numbers", "our runs", "severity")  # titles
VERDICT_WORDS = "|".join(VERDICT_COLOURS).replace(" ", r"\s+")
VERDICT_AT_START = re.compile(rf"\*?({VERDICT_WORDS})\b", re.IGNORECASE)
# In a text, a verdict is at the beginning or after punctuation, and numbers or an end follow it:
# `higher: +0.67`, `printed: *open*: p = 0.1`, `Cannot tell.`
VERDICT_IN_TEXT = re.compile(
    rf"(?:\A|(?<=[.:;]\s))\*?({VERDICT_WORDS})\*?(?=[:.]|\Z)", re.IGNORECASE
)


def shows_colours() -> bool:
    """Whether stdout is a terminal that shows colours, and the user has not refused them.

    NO_COLOR (https://no-color.org) refuses them if it is set and not empty.
    """
    refused = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not refused and sys.stdout.isatty()


def colour_of(text: str) -> TerminalColour:
    """Find the colour of the verdict with which a text begins, or DEFAULT."""
    match = VERDICT_AT_START.match(text)
    if match is None:
        return TerminalColour.DEFAULT
    words = match[1].lower().split()
    return VERDICT_COLOURS[" ".join(words)]


def coloured(text: str, colour: TerminalColour) -> str:
    """Show a text in a colour, with the escape codes of ANSI terminals."""
    if colour == TerminalColour.DEFAULT:
        return text
    return f"\033[{colour}m{text}\033[0m"


def with_coloured_verdicts(text: str) -> str:
    """Show the verdicts in a text in their colours, such as `higher` in `higher: +0.67`."""
    return VERDICT_IN_TEXT.sub(lambda match: coloured(match[0], colour_of(match[0])), text)


# ---------------------------------------------------------------- JSON and CSV


def records(columns: Sequence[str], rows: Iterable[Sequence]) -> list[dict]:
    """Turn each row into a dict by column. A short row lacks the last columns."""
    return [dict(zip(columns, row, strict=False)) for row in rows]


def json_text(content) -> str:
    """Format content as JSON for people and programs.

    Letters of any language stay as they are. Characters that nobody sees are written as escapes.
    """
    return as_json_escapes(json.dumps(content, indent=2, ensure_ascii=False))


def csv_text(columns: Sequence[str], rows: Iterable[dict]) -> str:
    """Format rows as CSV. Equal rows give equal bytes.

    No cell has a line break, and none is a formula (`as_csv_cell`).
    """
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writerow({column: as_csv_cell(column) for column in columns})
    for row in rows:
        writer.writerow({column: as_csv_cell(value) for column, value in row.items()})
    return text.getvalue()
