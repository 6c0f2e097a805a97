"""The judged claims as a data set, for people who evaluate automatic reviewers.

`csebench export claims` writes a row per claim: what the paper says and where, the printed numbers
that it is about, and the verdict of a test on these numbers. Runs of this project play no part. The
data card (README.md) says what every column means.
"""

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pandas

from csebench.base.files import write_bytes, write_text
from csebench.base.project import REPOSITORY, __version__
from csebench.base.terminal import json_text
from csebench.plan.catalog.files import DEFAULT_SCALE, paper, paper_names
from csebench.plan.grids import find_grid
from csebench.plan.schema.paper import Claim, Grid
from csebench.plan.targets import grid_label
from csebench.report.numbers.claims import Judged, judge_all
from csebench.report.numbers.contrasts import Contrast
from csebench.report.words.claims import detail_text, stated_text

CLAIM_COLUMNS = {
    "id": "`PAPER-SENTENCE.CLAIM`: the paper, the number of the sentence, and the claim's in it",
    "paper": "short name of the paper",
    "title": "title of the paper",
    "reference": "authors, venue and year",
    "quote": "a few words of the paper's sentence",
    "section": "section of the paper that has the sentence",
    "place": "table or figure that the claim is about",
    "row": "label of the row that the claim is about",
    "relation": "`above`, `comparable` or `not worse`: how the row relates to the others",
    "lower_is_better": "whether less counts as above",
    "statistic": "what is compared: `value`, or `std` for standard deviations",
    "stated": "the difference that the sentence states, such as `+2.60`; empty if none",
    "cells": (
        "the printed numbers that are compared: a list of `row`, `column`, `printed`; empty if a"
        " figure prints no numbers"
    ),
    "differences": (
        "a list of `versus`, `column`, `difference`, `standard_error`, `p`: the claim's row minus"
        " another row, in printed units; positive if it agrees with the claim"
    ),
    "verdict": (
        "by the printed numbers: `supported`, `open`, `against`, `misprint` or `cannot tell`. It"
        " assumes that scores deviate over seeds as others' runs do"
    ),
    "verdict_at_smaller_deviations": "a list of `deviation` (points), `verdict`",
    "outcome": "what the test gives, finer than the verdict",
    "size": "whether the printed difference has the size that the sentence states",
    "detail": "the verdict's numbers in words",
    "sentence_verdict": "the verdict on the whole sentence, which may make several claims",
}
CARD_TEXT = """\
---
pretty_name: Claims of papers on sentence embeddings, judged by their own numbers
license: mit
language: [en]
task_categories: [text-classification]
configs:
- config_name: default
  data_files: {data_file}
---

# Claims of papers on sentence embeddings, judged by their own numbers

{claims} claims in {sentences} sentences of {papers} papers: what a claim says about a table or
figure, the printed numbers that it is about, and whether these numbers support it. A test on the
printed numbers decides, not a reader ([how]({repository}/blob/main/docs/statistics.md)).
[csebench]({repository}) {version} made the files.

## Columns

{columns}

## What it cannot say

- The verdict is about the printed numbers. A claim that is `open` may be true: the numbers do not
  rule out chance.
- Most papers print one run per row. The deviation over seeds is borrowed from runs that others
  published.
- The sentences were chosen by hand, from a few papers of one field. Claims of one sentence
  are not independent.
"""


def write_claims_data(folder: Path) -> list[Path]:
    """Write the data set and its card.

    Returns:
        The files. Without the package pyarrow, `claims.parquet` is not among them.
    """
    sentences = judge_all(DEFAULT_SCALE, paper_names())
    records = data_rows(sentences)
    card = folder / "README.md"
    json_file = folder / "claims.json"
    parquet_file = folder / "claims.parquet"
    write_text(json_file, json_text(records) + "\n")
    if find_spec("pyarrow") is None:
        parquet_file.unlink(missing_ok=True)  # rows of an earlier export
        write_text(card, data_card(sentences, records, json_file.name))
        return [card, json_file]
    table = pandas.DataFrame(records, columns=list(CLAIM_COLUMNS))
    write_bytes(parquet_file, table.to_parquet(index=False, engine="pyarrow"))
    write_text(card, data_card(sentences, records, parquet_file.name))
    return [card, json_file, parquet_file]


def data_card(sentences: list[Judged], records: list[dict], data_file: str) -> str:
    """Write the card of the data set, with the front matter that the hub reads.

    Args:
        data_file: name of the file from which the hub shows the rows.
    """
    papers = {judged.paper for judged in sentences}
    columns = "\n".join(f"- `{name}`: {meaning}." for name, meaning in CLAIM_COLUMNS.items())
    return CARD_TEXT.format(
        claims=len(records),
        sentences=len(sentences),
        papers=len(papers),
        version=__version__,
        repository=REPOSITORY,
        columns=columns,
        data_file=data_file,
    )


# ---------------------------------------------------------------- rows


def data_rows(sentences: list[Judged]) -> list[dict]:
    """Describe every claim of every sentence as a row under CLAIM_COLUMNS."""
    rows = []
    numbers: Counter[str] = Counter()  # sentences so far, by paper
    for sentence in sentences:
        numbers[sentence.paper] += 1
        for part_number, claim in enumerate(sentence.rows or [sentence], 1):
            claim_id = f"{sentence.paper}-{numbers[sentence.paper]}.{part_number}"
            rows.append(data_row(claim_id, claim, sentence))
    return rows


def data_row(claim_id: str, judged: Judged, sentence: Judged) -> dict:
    """Describe a claim.

    Args:
        judged: the claim, with its verdicts.
        sentence: the sentence that makes it, with the verdict on all its claims.
    """
    (claim,) = judged.claims
    source = paper(judged.paper)
    contrasts = judged.published.contrasts
    return {
        "id": claim_id,
        "paper": source.label or source.name,
        "title": source.title,
        "reference": source.reference,
        "quote": claim.quote,
        "section": claim.section,
        "place": grid_label(claim.place),
        "row": claim.row,
        "relation": claim.relation,
        "lower_is_better": claim.lower,
        "statistic": claim.statistic,
        "stated": stated_text(claim),
        "cells": printed_numbers(judged.paper, claim, contrasts),
        "differences": [difference_record(contrast) for contrast in contrasts],
        "verdict": judged.published.verdict.value,
        "verdict_at_smaller_deviations": smaller_deviations(judged),
        "outcome": judged.published.outcome.value,
        "size": judged.published.size.value,
        "detail": detail_text(judged.published),
        "sentence_verdict": sentence.published.verdict.value,
    }


def difference_record(contrast: Contrast) -> dict:
    """Describe a difference of printed numbers. Floating-point dust is rounded away."""
    return {
        "versus": contrast.versus,
        "column": contrast.column,
        "difference": round(contrast.difference, 10),
        "standard_error": contrast.error,
        "p": contrast.p,
    }


def smaller_deviations(judged: Judged) -> list[dict]:
    """List the verdicts that assume a smaller deviation over seeds than others' runs have."""
    records = []
    for assumed in judged.assumed:
        verdict = assumed.judgement.verdict.value
        records.append({"deviation": assumed.deviation, "verdict": verdict})
    return records


def printed_numbers(paper_name: str, claim: Claim, contrasts: tuple[Contrast, ...]) -> list[dict]:
    """List the printed numbers of a claim's row and of the rows that it is compared with."""
    places = [(claim.place, claim.row, column) for column in claim.columns]
    versus_place = claim.places[-1]
    for contrast in contrasts:
        columns = claim.columns  # a contrast of an average names no column of the claim
        if contrast.column in claim.columns:
            columns = [contrast.column]
        if claim.versus_column is not None:  # the claim compares with another column
            columns = [claim.versus_column]
        places += [(versus_place, contrast.versus, column) for column in columns]
    for row, base in claim.gains_over.items():
        place = claim.place if row == claim.row else versus_place
        places += [(place, base, column) for column in claim.columns]

    cells = []
    for place, label, column in dict.fromkeys(places):
        grid = find_grid(paper_name, place)
        assert isinstance(grid, Grid), place
        for row in grid.rows:
            printed = row.values[grid.column(column)]
            if row.label == label and printed is not None:
                cells.append({"row": label, "column": column, "printed": printed.text})
    return cells
