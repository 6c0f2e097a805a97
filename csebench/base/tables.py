"""Rows with named columns as text: aligned for people, JSON or CSV for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence

from tabulate import tabulate


def print_table(columns: Sequence[str], rows: Iterable[Sequence], as_json: bool = False, **layout) -> None:
    """Print rows as a table, or as a JSON list with an object per row.

    Args:
        layout: for tabulate, as in `maxcolwidths=[None, 60]`.
    """
    print(json_text(records(columns, rows)) if as_json else tabulate(rows, columns, **layout))


def records(columns: Sequence[str], rows: Iterable[Sequence]) -> list[dict]:
    """Each row as a dict by column; a short row lacks the last columns."""
    return [dict(zip(columns, row, strict=False)) for row in rows]


def json_text(content) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


def csv_text(columns: Sequence[str], rows: Iterable[dict]) -> str:
    """Equal rows give equal bytes."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
