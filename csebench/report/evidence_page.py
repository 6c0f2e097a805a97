"""The page "Does it reproduce?" (`results/evidence.md`): its sections, for Markdown and HTML.

Its sentences, tables and figures are in evidence_words.py, evidence_tables.py and evidence_figures.py, the numbers in
evidence.py. Same data, same bytes: no dates, no scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from csebench.report.evidence import groups, keys
from csebench.report.evidence_figures import RUNS, SELECTION, Picture
from csebench.report.evidence_tables import (
    HEAD,
    TableData,
    checkpoint_table,
    selection_parts,
    source_table,
    table_rows,
    task_table,
    untrained_table,
)
from csebench.report.evidence_words import caveats, excluded_parts, how_to_read, meaning_text, opening, title
from csebench.report.markdown import markdown_table

NAME = "evidence"
TITLE = "Does it reproduce?"
COMMAND = f"snakemake -j4 results/{NAME}.md"


class Section(NamedTuple):
    heading: str
    parts: Sequence[str | TableData | Picture]  # paragraphs and lists as Markdown, tables, figures


def page() -> str:
    """The whole page as Markdown."""
    parts = [f"# {TITLE}", *opening(), as_markdown(RUNS), *caveats()]
    for section in sections():
        parts += [f"## {section.heading}", *map(as_markdown, section.parts)]
    return "\n\n".join([*parts, f"Regenerate: `{COMMAND}`."]) + "\n"


def as_markdown(part: str | TableData | Picture) -> str:
    """A part of a section; a figure is a file beside the page."""
    if isinstance(part, Picture):
        return f"![{part.alt}]({part.name}.svg)\n\n{part.caption}"
    return part if isinstance(part, str) else markdown_table(*part)


def sections() -> list[Section]:
    """What follows the figure, for Markdown and HTML."""
    with_runs = [key for key in keys() if groups(key)]
    return [
        Section("Method by method", ["\n".join(f"- **{title(key)}**: {meaning_text(key)}" for key in with_runs)]),
        Section(
            "Printed values and others' runs",
            [how_to_read(), TableData(HEAD, [row for key in with_runs for row in table_rows(key)])],
        ),
        Section(
            "Test set by test set",
            ["How many runs of a seed sweep are at or above the printed value of each column.", task_table()],
        ),
        Section(
            "What selection does",
            [
                "The best of several seeds is another number than the score of one run, whichever set picks it.",
                SELECTION,
                *selection_parts(),
            ],
        ),
        Section(
            "Released checkpoints",
            [
                "Average of the seven STS test sets: what the method's paper prints, what the README of the checkpoint"
                " states (`off`: how far from print) and what others scored. This is about a file, not about"
                " training: a released model can score what is printed while a new training does not; it may be the"
                " best of several runs. `snakemake results/paper/checkpoints.md` scores the files again, with the"
                " protocol of this project.",
                checkpoint_table(),
            ],
        ),
        Section(
            "Models without training",
            [
                "Nothing is random here, so everybody should get the same number; the pooling and the copy of SICK-R"
                " explain the differences.",
                untrained_table(),
            ],
        ),
        Section("What takes no part in a verdict", excluded_parts()),
        Section(
            "Sources",
            [
                "Numbers are facts with a source; texts and code stay their authors'. How to add a source:"
                " docs/evidence.md.",
                source_table(),
            ],
        ),
    ]
