"""Output on a terminal and output for programs: progress bars, tables, colours, JSON and CSV.

rich lays out tables and colours words. It is imported when something is printed, because it takes a
moment to load. base/shown.py decides which characters of a text may be shown. The callers decide
what a table says. Only the words of verdicts are repeated here, in VERDICT_COLOURS, because they
have colours.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from math import sqrt
from typing import TYPE_CHECKING

from tqdm import tqdm

from csebench.base.processes import is_main_process
from csebench.base.shown import as_csv_cell, as_json_escapes, visible, visible_lines

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

GAP = 2  # spaces between columns
NO_VALUE = "–"
NUMBER_CELL = re.compile(rf"([-+]?[\d.,]+(e[-+]\d+)?( ?± ?[\d.]+)?|{NO_VALUE})?")
LONGEST_WORD = 24  # a column may break words with more characters
NARROWEST_COLUMN = 8  # characters for longer words, or else the table is shown line by line


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


def and_list(names: list[str]) -> str:
    """Write one or more names in a sentence: `A`, `A and B`, `A, B and C`."""
    *first, last = names
    if not first:
        return last
    return f"{', '.join(first)} and {last}"


def capitalised(text: str) -> str:
    """Write the first letter in upper case. The others stay as they are."""
    return text[:1].upper() + text[1:]


def print_text(text: str) -> None:
    """Print a text, which may hold tables.

    Lines that are wider than the terminal are broken between words. rich would also break words,
    such as an address that somebody copies. A terminal shows verdicts in colour.
    """
    from rich.text import Text

    width = shutil.get_terminal_size().columns
    lines = []
    for line in visible_lines(text).split("\n"):
        filled = Text(textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False))
        filled.highlight_regex(VERDICT_IN_TEXT, colour_of)
        lines.append(filled)
    print(rendered(Text("\n").join(lines), is_filled=True), flush=True)


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
    print(rendered(laid_out(visible_columns, visible_rows)))


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


def table_text(columns: Sequence[str], rows: Iterable[Sequence], floatfmt: str = "g") -> str:
    """Lay out a table that fits the terminal, without colours.

    Args:
        columns: the titles. If there are none, the table has no head.
        rows: short rows are filled with empty cells.
    """
    return rendered(laid_out(columns, rows, floatfmt), has_colours=False)


def laid_out(columns: Sequence[str], rows: Iterable[Sequence], floatfmt: str = "g") -> Table:
    """Lay out a table. Columns of numbers are aligned at the right. None is shown as `–`.

    If the terminal is too narrow for the columns, every value gets a line of its own.
    """
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    titles = [visible(title) for title in columns]
    texts_by_row = [[shown_value(value, floatfmt) for value in row] for row in rows]
    texts_by_column = list(zip_longest(titles, *texts_by_row, fillvalue=""))
    room = shutil.get_terminal_size().columns - GAP * (len(texts_by_column) - 1)
    if columns and sum(longest_words(texts_by_column, NARROWEST_COLUMN)) > room:
        return laid_out([], values_by_line(titles, texts_by_row))

    table = Table(box=None, show_header=False, padding=(0, GAP, 0, 0), pad_edge=False)
    cells_by_column = []
    for width, texts in zip(column_widths(texts_by_column, room), texts_by_column, strict=True):
        title, *values = texts
        is_number = all(NUMBER_CELL.fullmatch(value) for value in values)
        table.add_column(
            justify="right" if is_number else "left",
            max_width=width,
            overflow="fold",  # rich would cut long words off
        )
        cells: list[RenderableType] = []
        if columns:
            cells += [Text(title), Rule(characters="-", style="none")]
        for value in values:
            cell = Text(value)
            if title in VERDICT_COLUMNS:
                cell.stylize(colour_of(value))
            cells.append(cell)
        cells_by_column.append(cells)
    for row in zip(*cells_by_column, strict=True):
        table.add_row(*row)
    return table


def shown_value(value: object, floatfmt: str) -> str:
    """Turn a value into the text of a cell."""
    if value is None:
        return NO_VALUE
    if isinstance(value, float):
        return f"{value:{floatfmt}}"
    return visible(str(value))


def values_by_line(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[list[str]]:
    """Turn each row of a table into lines of a title and a value, with an empty line between."""
    lines: list[list[str]] = []
    for row in rows:
        if lines:
            lines.append([])
        for title, text in zip(titles, row, strict=False):
            lines.append([title, text])
    return lines


def column_widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Choose the largest width of each column, so that words stay whole if they can.

    rich narrows the widest columns until all are equal, even if this breaks words. This function
    narrows columns without breaking words: first those whose title is longer than every value, then
    those with little text for their width. What then is still too wide is left to rich.

    Args:
        columns: the texts of each column, beginning with its title.
        room: for all columns, without the gaps between them.
    """
    lengths_by_column = [[len(text) for text in texts] for texts in columns]
    widths = [max(1, *lengths) for lengths in lengths_by_column]
    shares = [max(1.0, sqrt(sum(lengths))) for lengths in lengths_by_column]
    narrowest = longest_words(columns, LONGEST_WORD)

    def title_then_widest_for_its_text(index: int) -> tuple[bool, float]:
        longest_value = max(lengths_by_column[index][1:], default=0)
        return widths[index] > longest_value, widths[index] / shares[index]

    while sum(widths) > room:
        narrowable = [index for index, width in enumerate(widths) if width > narrowest[index]]
        if not narrowable:
            break
        widths[max(narrowable, key=title_then_widest_for_its_text)] -= 1
    return widths


def longest_words(columns: Sequence[Sequence[str]], limit: int) -> list[int]:
    """Count the letters of the longest word of each column, up to a limit."""
    lengths = []
    for texts in columns:
        words = " ".join(texts).split()
        lengths.append(min(limit, max((len(word) for word in words), default=1)))
    return lengths


def rendered(content: RenderableType, has_colours: bool = True, is_filled: bool = False) -> str:
    """Render a table or text for stdout: in colours on a terminal, else as plain text.

    rich respects NO_COLOR (https://no-color.org) and TERM=dumb.

    Args:
        is_filled: whether lines are broken already. If not, rich breaks them.
    """
    from rich.console import Console

    size = shutil.get_terminal_size()
    console = Console(
        width=size.columns,
        height=size.lines,
        force_terminal=has_colours and sys.stdout.isatty(),
    )
    with console.capture() as capture:
        console.print(content, soft_wrap=is_filled)
    lines = capture.get().removesuffix("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


# ---------------------------------------------------------------- colours


# By the words with which a verdict begins. They repeat VerdictWord, PrintedWord, ClaimVerdict and
# Severity (csebench/report/numbers), which this room must not import.
VERDICT_COLOURS = {
    "higher": "green",
    "supported": "green",
    "agrees": "green",
    "lower": "red",
    "against": "red",
    "differs": "red",
    "serious": "red",
    "open": "yellow",
    "unclear": "yellow",
    "inconclusive": "yellow",
    "misprint": "yellow",
    "notable": "yellow",
    "same": "blue",
    "not tested": "bright_black",
    "cannot tell": "bright_black",
    "minor": "bright_black",
}
VERDICT_COLUMNS = ("verdict", "printed numbers", "our runs", "severity")  # titles
VERDICT_WORDS = "|".join(VERDICT_COLOURS).replace(" ", r"\s+")
VERDICT_AT_START = re.compile(rf"\*?({VERDICT_WORDS})\b", re.IGNORECASE)
# In a text, a verdict is at the beginning or after punctuation, and numbers or an end follow it:
# `higher: +0.67`, `printed: *open*: p = 0.1`, `Cannot tell.`
VERDICT_IN_TEXT = re.compile(
    rf"(?:\A|(?<=[.:;]\s))\*?({VERDICT_WORDS})\*?(?=[:.]|\Z)", re.IGNORECASE
)


def colour_of(text: str) -> str:
    """Find the colour of the verdict with which a text begins. Empty if it begins with none."""
    match = VERDICT_AT_START.match(text)
    if match is None:
        return ""
    words = match[1].lower().split()
    return VERDICT_COLOURS[" ".join(words)]


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
