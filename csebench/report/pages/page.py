"""A page as one value: answer, picture, tables, folds; as Markdown, its tables as LaTeX, CSV,
JSON. Same bytes."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from csebench.base.shown import visible, visible_lines
from csebench.base.terminal import csv_text, json_text, records
from csebench.plan.targets import grid_path


class TextTable(NamedTuple):
    """Texts in rows below a head; `title` tells it from others of a page."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""


class Picture(NamedTuple):
    """An image beside the page."""

    file: str
    alt: str


class Fold(NamedTuple):
    """Parts behind a line that unfolds them."""

    summary: str
    parts: Sequence["Part"]


Part = str | TextTable | Picture | Fold  # a text is a paragraph or a list, in Markdown


class PageContent(NamedTuple):
    """What a reader gets: the parts stand in the order in which they are read."""

    title: str
    scale_line: str  # at which scale, and what that can say
    parts: Sequence[Part]

    def write(self, form: str) -> str:
        """The page in `markdown`, or its tables in `latex`, `csv` or `json`."""
        if form == "markdown":
            head = [
                f"# {visible(self.title)}",
                *([f"*{visible(self.scale_line)}*"] if self.scale_line else []),
            ]
            return "\n\n".join(map(part_markdown, [*head, *self.parts])) + "\n"
        # those that are not folded
        tables = [part for part in self.parts if isinstance(part, TextTable)]
        if form == "latex":
            texts = (latex_table(table) for table in tables)
            return "\n\n".join(texts) + "\n"
        if form == "csv":
            return "\n".join(csv_text(t.head, records(t.head, t.rows)) for t in tables)
        content = [{"title": t.title, "rows": records(t.head, t.rows)} for t in tables]
        return json_text({"title": self.title, "scale": self.scale_line, "tables": content}) + "\n"


def latex_table(table: TextTable) -> str:
    rows = [[visible(cell) for cell in row] for row in table.rows]
    return tabulate(
        rows, [visible(cell) for cell in table.head], "latex_booktabs", disable_numparse=True
    )


def relative_path(paper_name: str, name: str, scale: str, ending: str, folder: Path) -> str:
    """From a page in a folder to a file of a table or figure."""
    return os.path.relpath(grid_path(paper_name, name, scale, ending), folder)


def part_markdown(part: Part) -> str:
    if isinstance(part, Picture):
        return f"![{escape_html(visible(part.alt).replace(']', ''))}]({part.file})"
    if isinstance(part, Fold):
        inside = map(part_markdown, part.parts)
        return "\n\n".join(
            [
                f"<details><summary>{escape_html(visible(part.summary))}</summary>",
                *inside,
                "</details>",
            ]
        )
    if isinstance(part, TextTable):
        lines = [f"| {' | '.join(map(escape_cell, row))} |" for row in (part.head, *part.rows)]
        lines.insert(1, "|---" * len(part.head) + "|")
        return f"**{escape_html(visible(part.title))}**\n\n" * bool(part.title) + "\n".join(lines)
    return escape_html(part)


def as_list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def escape_cell(text: str) -> str:
    """A text that stays in its cell: pipes, line ends, HTML, and a backtick without a second one
    are escaped."""
    text = escape_html(visible(text)).replace("|", "\\|")
    return text if text.count("`") % 2 == 0 else text.replace("`", "\\`")


def escape_html(text: str) -> str:
    """A text of papers/, evidence/, score JSONs (names of hardware) or data sets (what was
    retrieved) as Markdown: it has no HTML and no image, and its only links are to web pages and
    within the project."""
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", visible_lines(text)).replace("![", "!\\[")
    return re.sub(r"\]\((?=\s*[A-Za-z][\w+.-]*:)(?!https?://)", "]\\(", text)
