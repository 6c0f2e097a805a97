"""What a terminal shows: bars while something takes more than two seconds, and tables; tables
for programs."""

import csv
import io
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from math import sqrt

from tqdm import tqdm

from csebench.base.processes import is_main_process
from csebench.base.shown import as_csv_cell, as_json_escapes, visible, visible_lines

GAP = "  "  # between columns
NUMBER_CELL = re.compile(r"([-+]?[\d.,]+( ?± ?[\d.]+)?|–)?")
LONGEST_WORD = 24  # that a narrow column keeps whole


def on_terminal() -> bool:
    """Whether a person sees what this process writes to stderr."""
    return is_main_process() and sys.stderr.isatty()


def bar(items: Iterable | None, what: str, unit: str = "it", **more) -> tqdm:
    """A progress bar that appears after two seconds, in a terminal only: iterates over the
    items, or over nothing, to be moved by `update`; `more` is for tqdm, as in `total=100`."""
    about = {"desc": what, "unit": unit, "delay": 2, "leave": False, "disable": not on_terminal()}
    return tqdm(items, **about | more)


def print_table(columns: Sequence[str], rows: Iterable[Sequence], as_json=False, shown=()) -> None:
    """Print rows as a table of the columns `shown` (all if empty), or whole as a JSON list with
    an object per row."""
    by_column = records(columns, rows)
    if as_json:
        return print(json_text(by_column))
    shown = shown or columns
    return print(
        table_text(shown, [[record.get(column) for column in shown] for record in by_column])
    )


def print_text(text: str) -> None:
    """Print a text, which may hold tables; lines that are wider than the terminal are broken,
    but not within words."""
    width = shutil.get_terminal_size().columns
    for line in visible_lines(text).split("\n"):
        print(textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False))
    sys.stdout.flush()


def table_text(columns: Sequence[str], rows: Iterable[Sequence], floatfmt: str = "g") -> str:
    """A table that fits the terminal: text is wrapped, numbers stand at the right, `–` is for
    None."""

    def text(cell) -> str:
        if cell is None:
            return "–"
        return f"{cell:{floatfmt}}" if isinstance(cell, float) else visible(str(cell))

    titles = [text(column) for column in columns]
    cells = [*zip_longest(titles, *([text(cell) for cell in row] for row in rows), fillvalue="")]
    widths = column_widths(cells, shutil.get_terminal_size().columns)
    aligned = [
        str.rjust if all(map(NUMBER_CELL.fullmatch, column[1:])) else str.ljust for column in cells
    ]

    def lines(row: Sequence[str]) -> list[str]:
        wrapped = (textwrap.wrap(cell, width) for cell, width in zip(row, widths, strict=True))
        parts = zip_longest(*wrapped, fillvalue="")
        return [
            GAP.join(map(lambda align, *of: align(*of), aligned, part, widths)).rstrip()
            for part in parts
        ]

    head, *body = (lines(row) for row in zip(*cells, strict=True))
    if columns:
        body = [head, [GAP.join("-" * width for width in widths)], *body]
    return "\n".join(chain(*body))


def column_widths(columns: Sequence[Sequence[str]], width: int) -> list[int]:
    """Widths with which columns fit side by side: the more text, the wider; words stay whole
    where there is room."""
    widths = [max(1, *map(len, cells)) for cells in columns]
    words = [
        min(LONGEST_WORD, max(len(word) for cell in cells for word in cell.split() or [""]))
        for cells in columns
    ]
    share = [max(1.0, sqrt(sum(map(len, cells)))) for cells in columns]
    for _ in range(sum(widths) + len(GAP) * (len(columns) - 1) - width):
        widest = max(
            range(len(widths)),
            key=lambda i: (widths[i] > words[i], widths[i] > 1, widths[i] / share[i]),
        )
        widths[widest] = max(1, widths[widest] - 1)
    return widths


def counted(count: int, noun: str) -> str:
    """`1 run`, `2 runs`, `1,000 runs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def records(columns: Sequence[str], rows: Iterable[Sequence]) -> list[dict]:
    """Each row as a dict by column; a short row lacks the last columns."""
    return [dict(zip(columns, row, strict=False)) for row in rows]


def json_text(content) -> str:
    """JSON for people and programs: letters of any language as they are, what cannot be seen as
    escapes."""
    return as_json_escapes(json.dumps(content, indent=2, ensure_ascii=False))


def csv_text(columns: Sequence[str], rows: Iterable[dict]) -> str:
    """Equal rows give equal bytes; no cell has a line break, or is a formula (`as_csv_cell`)."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writerow({column: as_csv_cell(column) for column in columns})
    for row in rows:
        writer.writerow({column: as_csv_cell(value) for column, value in row.items()})
    return text.getvalue()
