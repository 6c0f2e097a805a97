"""A page as one value: its answer, picture, tables and folded details, in the order of reading.

The value is written as Markdown, or its tables as LaTeX, CSV or JSON. The same value always gives
the same bytes. What stands on a page is decided by the other modules of this folder.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from csebench.base.project import __version__
from csebench.base.shown import visible, visible_lines
from csebench.base.terminal import csv_text, json_text, records
from csebench.plan.targets import grid_path
from csebench.report.pages.latex import LATEX_PACKAGES, latex_comment, latex_table


class Command(str):
    """A cell with a command line, which pages fold away because it is long."""


class TextTable(NamedTuple):
    """A table of texts: a head and the rows below it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""  # for a page with several tables


class Picture(NamedTuple):
    """An image file in the folder of the page."""

    file: str
    alt: str


class Fold(NamedTuple):
    """Parts that a reader unfolds by a click on the summary."""

    summary: str
    parts: Sequence["Part"]


Part = str | TextTable | Picture | Fold  # a text is a paragraph or a list, in Markdown


class PageSection(NamedTuple):
    """What a page says about one table or figure."""

    answers: Sequence[str]
    visible: Sequence[Part]  # picture, tables, legend
    folded: Sequence[Part]


class PageContent(NamedTuple):
    """Everything on a page, in the order of reading."""

    title: str
    scale_line: str  # names the scale and what it can say; empty if no scale matters
    parts: Sequence[Part]
    runs: Sequence[str] = ()  # a line for each row with runs: its label, and their ids

    def write(self, form: str) -> str:
        """Write the page as `markdown`, or its tables as `latex`, `csv` or `json`.

        Folded tables are written in Markdown only.
        """
        if form == "markdown":
            return self.to_markdown()
        tables = [part for part in self.parts if isinstance(part, TextTable)]
        if form == "latex":
            return self.to_latex(tables)
        if form == "csv":
            texts = [csv_text(table.head, records(table.head, table.rows)) for table in tables]
            return "\n".join(texts)
        contents = []
        for table in tables:
            contents.append({"title": table.title, "rows": records(table.head, table.rows)})
        page = {"title": self.title, "scale": self.scale_line, "tables": contents}
        return json_text(page) + "\n"

    def to_latex(self, tables: Sequence[TextTable]) -> str:
        """Write tables to be read with \\input. Comments name the page, and the runs behind it."""
        comments = [
            f"csebench {__version__}: {self.title}",
            self.scale_line,
            rf"Needs \usepackage{{{LATEX_PACKAGES}}}.",
            *self.runs,
        ]
        blocks = ["\n".join(latex_comment(comment) for comment in comments if comment)]
        for table in map(without_commands, tables):
            block = latex_table(table.head, table.rows)
            if table.title:
                block = f"{latex_comment(table.title)}\n{block}"
            blocks.append(block)
        return "\n\n".join(blocks) + "\n"

    def to_markdown(self) -> str:
        parts: list[Part] = [f"# {visible(self.title)}"]
        if self.scale_line:
            parts.append(f"*{visible(self.scale_line)}*")
        parts += self.parts
        return "\n\n".join(part_markdown(part) for part in parts) + "\n"


def without_empty_columns(table: TextTable, empty: str = "") -> TextTable:
    """Leave out the columns of a table in which every row has only the text `empty`."""
    used: list[int] = []
    for index in range(len(table.head)):
        if any(row[index] != empty for row in table.rows):
            used.append(index)
    return choose_columns(table, used)


def without_commands(table: TextTable) -> TextTable:
    """Leave out the columns of a table that have commands."""
    others: list[int] = []
    for index in range(len(table.head)):
        if not any(isinstance(row[index], Command) for row in table.rows):
            others.append(index)
    return choose_columns(table, others)


def choose_columns(table: TextTable, indexes: Sequence[int]) -> TextTable:
    """Choose columns of a table by their index."""
    head = [table.head[index] for index in indexes]
    rows = [[row[index] for index in indexes] for row in table.rows]
    return TextTable(head, rows, table.title)


# ---------------------------------------------------------------- parts as Markdown


def part_markdown(part: Part) -> str:
    match part:
        case Picture():
            alt = visible(part.alt).replace("]", "")
            return f"![{escape_html(alt)}]({part.file})"
        case Fold():
            summary = escape_html(visible(part.summary))
            inside = [part_markdown(inner) for inner in part.parts]
            opening = f"<details><summary>{summary}</summary>"
            return "\n\n".join([opening, *inside, "</details>"])
        case TextTable():
            return table_markdown(part)
    return escape_html(part)


def table_markdown(table: TextTable) -> str:
    head, *rows = (markdown_row(cells) for cells in (table.head, *table.rows))
    rule = "|---" * len(table.head) + "|"
    lines = "\n".join([head, rule, *rows])
    if not table.title:
        return lines
    return f"**{escape_html(visible(table.title))}**\n\n{lines}"


def markdown_row(cells: Sequence[str]) -> str:
    escaped = " | ".join(escape_cell(cell) for cell in cells)
    return f"| {escaped} |"


def escape_cell(text: str) -> str:
    """Keep a text inside its cell: escape pipes, line ends, HTML and an unpaired backtick.

    A command is folded, so that a table with long commands stays narrow.
    """
    if isinstance(text, Command):
        return f"<details><summary>run</summary>`{escape_html(text)}`</details>"
    text = escape_html(visible(text)).replace("|", "\\|")
    is_paired = text.count("`") % 2 == 0
    return text if is_paired else text.replace("`", "\\`")


def escape_html(text: str) -> str:
    """Escape HTML, images and links, except links to web pages and within the project.

    The texts come from papers/, evidence/, score JSONs (names of hardware) and data sets
    (retrieved sentences), so anybody may have written them.
    """
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", visible_lines(text))  # tags and comments
    text = text.replace("![", "!\\[")  # images
    # links with a scheme, such as `javascript:`, but not http and https
    return re.sub(r"\]\((?=\s*[A-Za-z][\w+.-]*:)(?!https?://)", "]\\(", text)


# ---------------------------------------------------------------- texts that parts are made of


def as_list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def heading_link(text: str, heading: str) -> str:
    """Link to a heading of the same page, by the anchor that GitHub and the site give it."""
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
    return f"[{text}](#{anchor})"


def linked_count(count: int, heading: str) -> str:
    """Write a count that links to its heading, or 0, which has none."""
    return heading_link(str(count), heading) if count else "0"


def merge_labels(labelled: Iterable[tuple[str, str]]) -> list[str]:
    """Write each text once, after all labels that have it: `SimCSE; CT: measured by the authors.`

    Args:
        labelled: pairs of a label and its text.
    """
    labels_of: dict[str, list[str]] = {}  # by text
    for label, text in labelled:
        labels = labels_of.setdefault(text, [])
        if label not in labels:
            labels.append(label)
    return [f"{'; '.join(labels)}: {text}" for text, labels in labels_of.items()]


def relative_path(paper_name: str, name: str, scale: str, ending: str, folder: Path) -> str:
    """Give the path from a page's folder to a file of a table or figure."""
    return os.path.relpath(grid_path(paper_name, name, scale, ending), folder)
