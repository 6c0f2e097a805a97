"""A page as sections of paragraphs, tables and figures, from which both its Markdown and its HTML are made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from csebench.report.markdown import markdown_table


class TableData(NamedTuple):
    head: list[str]
    rows: list[list[str]]


class Picture(NamedTuple):
    name: str  # of its files, beside the page
    alt: str
    caption: str


Part = str | TableData | Picture  # a text is a paragraph or a list, in Markdown


class Section(NamedTuple):
    heading: str  # empty at the beginning of a page
    parts: Sequence[Part]


def as_markdown(sections: Iterable[Section]) -> list[str]:
    """The parts of a Markdown page."""
    parts = []
    for section in sections:
        parts += [f"## {section.heading}"] if section.heading else []
        parts += map(part_markdown, section.parts)
    return parts


def part_markdown(part: Part) -> str:
    if isinstance(part, Picture):
        return f"![{part.alt}]({part.name}.svg)\n\n{part.caption}"
    return part if isinstance(part, str) else markdown_table(*part)
