"""Tables of a scale for pandas and spreadsheets: `scores.csv`, a row per score; `cells.csv`, a row
per cell of a table or figure; `comparisons.csv`, a row per declared comparison. All are derived
from the score JSONs and the papers.
"""

from collections.abc import Iterable
from dataclasses import asdict
from math import inf
from pathlib import Path

from csebench.base.errors import by_number
from csebench.base.terminal import csv_text
from csebench.plan.catalog.files import DEFAULT_SCALE, results_folder
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import pages
from csebench.report.numbers.cells import GridView, grid_view
from csebench.report.numbers.claims import Judged, Judgement
from csebench.report.numbers.compare import Comparison, answers
from csebench.report.words.comparisons import reason_text, sentence, setting_difference_text
from csebench.score.scores_csv import SCORES, score_rows
from csebench.score.store import stored_score

CELLS = [
    "paper",
    "table",
    "number",
    "row",
    "column",
    "published",
    "published_std",
    "ours",
    "std",
    "n",
    "text",
]
CELLS += ["missing", "outdated", "verdict", "evaluator", "task", "metric", "factor", "runs"]
COMPARISONS = [
    "paper",
    "table",
    "question",
    "primary",
    "row",
    "against",
    "columns",
    "relation",
    "gain",
    "low",
    "high",
]
COMPARISONS += [
    "p",
    "p_family",
    "family_low",
    "family_high",
    "seeds",
    "seed_sd",
    "item_se",
    "printed",
    "differs",
]
COMPARISONS += ["reason", "sentence"]


def csv_files(scale: str) -> dict[Path, str]:
    """The tables of a scale, by path."""
    grids = sorted(
        {grid for page in pages(scale) for grid in page.grids()},
        key=lambda g: (g[0], by_number(g[1])),
    )
    views = [grid_view(*grid, scale) for grid in grids]
    tables = {
        "scores": (SCORES, score_rows(scale)),
        "cells": (CELLS, (row for view in views for row in cell_rows(view))),
        "comparisons": (COMPARISONS, (row for view in views for row in comparison_records(view))),
    }
    return {
        results_folder(scale) / f"{name}.csv": csv_text(head, rows)
        for name, (head, rows) in tables.items()
    }


def comparison_records(view: GridView) -> Iterable[dict]:
    """The declared comparisons of a table or figure, as rows under COMPARISONS."""
    for answer in answers(view):
        for comparison in answer.comparisons:
            about = {"paper": view.paper, "table": view.name, "question": answer.family.question}
            yield {
                **about,
                "primary": answer.family.primary,
                **comparison_record(comparison, answer.family.equality),
            }


def comparison_record(comparison: Comparison, equality: bool = False) -> dict:
    """A comparison as plain values, under COMPARISONS without what asks for it; what is not
    known is empty."""
    values = vars(comparison) | (vars(comparison.estimate) if comparison.estimate else {})
    values["differs"] = "; ".join(map(setting_difference_text, comparison.differs))
    values["reason"] = reason_text(comparison.reason)
    values["sentence"] = sentence(comparison, equality)
    return {
        name: "" if values.get(name) is None else values[name]
        for name in COMPARISONS[COMPARISONS.index("row") :]
    }


def claim_record(judged: Judged) -> dict:
    """A paper's sentence as plain values: verdicts, what is behind each claim; at the default
    scale without ours."""

    def plain(judgement: Judgement) -> dict:
        return asdict(
            judgement, dict_factory=lambda items: {k: None if v == inf else v for k, v in items}
        )

    smoke = judged.scale == DEFAULT_SCALE
    parts = [
        {
            "row": of.claims[0].row,
            "printed": plain(of.published),
            "ours": None if smoke else plain(of.ours),
        }
        for of in judged.rows
    ]
    about = {
        "paper": judged.paper,
        "place": ", ".join(judged.places),
        "claim": judged.claims[0].quote,
    }
    verdicts = {
        "printed numbers": judged.published.verdict_and_size,
        "our runs": "–" if smoke else judged.ours.seen,
    }
    return {**about, "scale": judged.scale, **verdicts, "parts": parts}


def cell_rows(view: GridView) -> Iterable[dict]:
    """The cells of a table or figure; two rows with the same label have different numbers,
    counted from 1."""
    for number, cell in (
        (number, cell) for number, cells in enumerate(view.rows, 1) for cell in cells
    ):
        published, ours = cell.published, cell.ours
        runs = [(spec, leaf.plan.evaluator) for leaf in cell.leaves for spec in leaf.counted_specs]
        scored = [
            Spec.model_validate(done["spec"]).run_id
            for run in runs
            if (done := stored_score(*run, view.scale)[0])
        ]
        yield {
            "paper": view.paper,
            "table": view.name,
            "number": number,
            "row": cell.plan.row.label,
            "column": cell.plan.column.label,
            "published": published.value if published else "",
            "published_std": "" if published is None or published.std is None else published.std,
            "ours": ours.mean if ours else "",
            "std": "" if ours is None or ours.std is None else ours.std,
            "n": ours.n if ours else 0,
            "text": cell.text if ours or cell.runs_elsewhere else "",
            "missing": cell.absent + cell.runs_elsewhere,
            "outdated": cell.stale,
            "verdict": cell.verdict,
            "evaluator": cell.plan.evaluator,
            "task": cell.plan.task,
            "metric": cell.plan.metric,
            "factor": cell.factor,
            "runs": " ".join(sorted({*scored}) if cell.parts else scored),
        }
