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
from csebench.report.words.claims import detail_text, notes, verdict_and_size
from csebench.report.words.comparisons import sentence
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
    values["differs"] = "; ".join(setting.text for setting in comparison.differs)
    values["sentence"] = sentence(comparison, equality)
    return {
        name: "" if values.get(name) is None else values[name]
        for name in COMPARISONS[COMPARISONS.index("row") :]
    }


def claim_record(judged: Judged) -> dict:
    """Give a paper's sentence as plain values: its verdicts, and the numbers of each claim.

    At the default scale our runs are left out.
    """
    is_smoke = judged.scale == DEFAULT_SCALE
    parts = []
    for row in judged.rows:
        ours = None if is_smoke else judgement_record(row.ours)
        printed = judgement_record(row.published)
        parts.append({"row": row.claims[0].row, "printed": printed, "ours": ours})
    return {
        "paper": judged.paper,
        "place": ", ".join(judged.places),
        "claim": judged.claims[0].quote,
        "scale": judged.scale,
        "printed numbers": verdict_and_size(judged.published),
        "our runs": "–" if is_smoke else judged.ours.seen,
        "parts": parts,
    }


def judgement_record(judgement: Judgement) -> dict:
    """Give a judgement as plain values. Infinite numbers are None, as JSON has none."""
    contrasts = []
    for contrast in judgement.contrasts:
        record = asdict(contrast) | {"differs": [setting.text for setting in contrast.differs]}
        contrasts.append({key: finite(value) for key, value in record.items()})
    return {
        "direction": judgement.direction,
        "shown": judgement.significance,
        "size": judgement.size,
        "detail": detail_text(judgement),
        "contrary_p": judgement.contrary_p,
        "contrary": judgement.contrary,
        "notes": notes(judgement),
        "differs": [setting.text for setting in judgement.differs],
        "excludes": finite(judgement.excludes),
        "strict": judgement.strict,
        "claims_significance": judgement.claims_significance,
        "contrasts": contrasts,
    }


def finite(value):
    """Give a value as it is, or None for infinity."""
    return None if value == inf else value


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
