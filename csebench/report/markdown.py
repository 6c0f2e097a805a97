"""Markdown of a table, and texts that stay texts in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def markdown_table(head: Iterable[str], body: Iterable[Sequence[str]]) -> str:
    """A table of texts, without padding."""
    head = [escape_cell(text) for text in head]
    lines = [f"| {' | '.join(map(escape_cell, row))} |" for row in body]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines])


def escape_cell(text: str) -> str:
    """A text that stays in its cell: pipes, line ends, HTML, and a backtick without a second one are escaped."""
    text = escape_html(" ".join(text.splitlines())).replace("|", "\\|")
    return text if text.count("`") % 2 == 0 else text.replace("`", "\\`")


def escape_html(text: str) -> str:
    """Markdown whose only HTML is the folding of pages, and whose only links are to web pages and within the project.

    For texts of papers/ and evidence/, of score JSONs (names of hardware) and of data sets (what was retrieved).
    """
    text = re.sub(r"<(?!/?(details|summary)>)(?=[A-Za-z/!?])", "&lt;", text)
    return re.sub(r"\]\((?=\s*[A-Za-z][\w+.-]*:)(?!https?://)", "]\\(", text)
