"""The page "Does it reproduce?" (`results/evidence.md`): its sections, for Markdown and HTML.

Its sentences, tables and figures are in evidence_words.py, evidence_tables.py and evidence_figures.py, the numbers in
evidence.py. Same data, same bytes: no dates, no scale.
"""

from __future__ import annotations

from csebench.report.evidence import groups, keys
from csebench.report.evidence_figures import RUNS, SELECTION
from csebench.report.evidence_tables import (
    HEAD,
    checkpoint_table,
    selection_parts,
    source_table,
    table_rows,
    task_table,
    untrained_table,
)
from csebench.report.evidence_words import caveats, excluded_parts, how_to_read, meaning_text, opening, title
from csebench.report.sections import Section, TableData, as_markdown

NAME = "evidence"
TITLE = "Does it reproduce?"
COMMAND = f"snakemake -j4 results/{NAME}.md"


def page() -> str:
    """The whole page as Markdown."""
    return "\n\n".join([f"# {TITLE}", *as_markdown(sections()), f"Regenerate: `{COMMAND}`."]) + "\n"


def sections() -> list[Section]:
    with_runs = [key for key in keys() if groups(key)]
    return [
        Section("", [*opening(), RUNS, *caveats()]),
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
                " best of several runs. `csebench evaluate --model HUB_ID --pooler POOLER` scores a file again, with"
                " the protocol of this project.",
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
