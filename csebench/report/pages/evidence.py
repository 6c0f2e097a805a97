"""The page "Does it reproduce?" (`results/evidence.md`): what runs that others published say of the printed values.

The numbers are in csebench/report/evidence.py. Same data, same bytes: no dates, no scale.
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
from csebench.report.pages.page import Fold, Page, Part, Picture, Table

COMMAND = "snakemake -j4 results/evidence.md"


def evidence_page(_scale: str) -> Page:
    """The same at every scale."""
    with_runs = [key for key in keys() if groups(key)]
    parts: list[Part] = [
        *opening(),
        Picture("evidence.svg", "Others' runs against the printed values"),
        RUNS,
        *caveats(),
        "## Method by method",
        "\n".join(f"- **{title(key)}**: {meaning_text(key)}" for key in with_runs),
        "## Printed values and others' runs",
        how_to_read(),
        Table(HEAD, [row for key in with_runs for row in table_rows(key)]),
        "## Test set by test set",
        "How many runs of a seed sweep are at or above the printed value of each column.",
        task_table(),
        "## What selection does",
        "The best of several seeds is another number than the score of one run, whichever set picks it.",
        Picture("evidence-selection.svg", "What picking the best of k seeds adds, on dev and on test"),
        SELECTION,
        *selection_parts(),
        Fold(
            "Released checkpoints",
            [
                "Average of the seven STS test sets: what the method's paper prints, what the README of the checkpoint"
                " states (`off`: how far from print) and what others scored. This is about a file, not about training:"
                " it may be the best of several runs. `csebench evaluate --model HUB_ID --pooler POOLER` scores a file"
                " again.",
                checkpoint_table(),
            ],
        ),
        Fold(
            "Models without training",
            ["Nothing is random here; the pooling and the copy of SICK-R explain the differences.", untrained_table()],
        ),
        Fold("What takes no part in a verdict", [*excluded_parts()]),
        Fold("Sources", ["Numbers are facts with a source. How to add one: docs/evidence.md.", source_table()]),
        f"Regenerate: `{COMMAND}`.",
    ]
    return Page("Does it reproduce?", "", parts)
