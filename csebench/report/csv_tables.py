"""The numbers of a scale as CSV files for pandas and spreadsheets.

`scores.csv` has a row per score, `cells.csv` a row per cell of a table or figure,
`comparisons.csv` a row per declared comparison, and `claims.csv` a row per judged sentence of a
paper. A row of a table has a file of its own, too, with its scores by seed. All follow from the
score JSONs and the papers.
Verbs that print JSON get comparisons and claims as plain values from here, too.
"""

from collections.abc import Iterator
from dataclasses import asdict
from math import inf
from pathlib import Path

from csebench.base.errors import by_number
from csebench.base.terminal import csv_text
from csebench.plan.catalog.files import DEFAULT_SCALE, paper_names, results_folder
from csebench.plan.rows import TableRow
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import pages
from csebench.report.numbers import stats
from csebench.report.numbers.cells import PAPER_SCALE, Cell, GridView, grid_view
from csebench.report.numbers.claims import Judged, Judgement, judge_all
from csebench.report.numbers.compare import Comparison, answers
from csebench.report.numbers.printed_spread import ASSUMED_DEVIATIONS
from csebench.report.numbers.verdict_words import VerdictWord
from csebench.report.words.claims import (
    deciding_difference_text,
    detail_text,
    short_other_verdicts,
    why_not_all,
)
from csebench.report.words.comparisons import (
    reason_text,
    sentence,
    setting_difference_text,
    tuned_away_text,
)
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
    "missing",
    "outdated",
    "verdict",  # of the printed value, in a word
    "finer_verdict",  # the same, with the side and why it is not tested
    "evaluator",
    "task",
    "metric",
    "factor",
    "runs",
]
ROW_SCORES = [  # of the file of one row: a line per column and seed
    "paper",
    "table",
    "number",
    "row",
    "column",
    "seed",
    "ours",
    "published",
    "evaluator",
    "task",
    "metric",
    "run",
]
COMPARISON_COLUMNS = [  # without the question that the comparison belongs to
    "row",
    "against",
    "columns",
    "verdict",  # in a word
    "relation",  # the same, with the kind of reason
    "gain",
    "low",
    "high",
    "p",
    "p_family",
    "family_low",
    "family_high",
    "seeds",
    "seed_sd",
    "item_se",
    "printed",
    "differs",
    "tuned_away",
    "reason",
    "sentence",
]
COMPARISONS = ["paper", "table", "question", "primary", *COMPARISON_COLUMNS]
CLAIMS = [
    "paper",
    "places",
    "claim",
    "printed",  # verdict on the printed numbers, at the deviations that others published
    *(f"printed_at_{deviation:g}" for deviation in ASSUMED_DEVIATIONS),
    "outcome",  # of the test of the printed numbers; finer than the verdict
    "size",
    "detail",
    "ours",
]


def csv_files(scale: str) -> dict[Path, str]:
    """Make the CSV files of a scale.

    Returns:
        The text of each file, by its path.
    """
    cells: list[dict] = []
    comparisons: list[dict] = []
    for paper_name, name in sorted_grids(scale):
        view = grid_view(paper_name, name, scale)
        cells += cell_rows(view)
        comparisons += comparison_records(view)
    folder = results_folder(scale)
    return {
        folder / "scores.csv": csv_text(SCORES, score_rows(scale)),
        folder / "cells.csv": csv_text(CELLS, cells),
        folder / "comparisons.csv": csv_text(COMPARISONS, comparisons),
        folder / "claims.csv": csv_text(CLAIMS, sentence_rows(scale)),
    }


def sorted_grids(scale: str) -> list[tuple[str, str]]:
    """List the tables and figures on the pages of a scale, by paper and number."""
    grids: set[tuple[str, str]] = set()
    for page in pages(scale):
        grids.update(page.grids())

    def by_paper_and_number(grid: tuple[str, str]):
        paper_name, name = grid
        return paper_name, by_number(name)

    return sorted(grids, key=by_paper_and_number)


# ---------------------------------------------------------------- cells


def cell_rows(view: GridView) -> Iterator[dict]:
    """Describe the cells of a table or figure as rows under CELLS.

    Rows are numbered from 1, because two rows may have the same label.
    """
    for number, cells in enumerate(view.rows, 1):
        for cell in cells:
            yield cell_record(view, number, cell)


def cell_record(view: GridView, number: int, cell: Cell) -> dict:
    """Describe a cell as a row under CELLS. Unknown values are empty.

    Args:
        number: number of its row in the table, from 1.
    """
    record: dict = dict.fromkeys(CELLS, "")  # keeps the order of CELLS
    record |= {
        "paper": view.paper,
        "table": view.name,
        "number": number,
        "row": cell.plan.row.label,
        "column": cell.plan.column.label,
        "n": 0,
        "missing": cell.absent + cell.runs_elsewhere,
        "outdated": cell.is_outdated,
        "verdict": stats.printed_word(cell.verdict) if cell.verdict else "",
        "finer_verdict": cell.verdict,
        "evaluator": cell.plan.evaluator,
        "task": cell.plan.task,
        "metric": cell.plan.metric,
        "factor": cell.factor,
        "runs": " ".join(scored_runs(cell, view.scale)),
    }
    if cell.published:
        record["published"] = cell.published.value
        record["published_std"] = empty_if_none(cell.published.std)
    if cell.ours:
        record["ours"] = cell.ours.mean
        record["std"] = empty_if_none(cell.ours.std)
        record["n"] = cell.ours.n
    if cell.ours or cell.runs_elsewhere:
        record["text"] = cell.text
    return record


def scored_runs(cell: Cell, scale: str) -> list[str]:
    """List the ids of the runs whose scores count in a cell, as stated in their score files."""
    run_ids = []
    for leaf in cell.leaves:
        for spec in leaf.counted_specs:
            content, _ = stored_score(spec, leaf.plan.evaluator, scale)
            if content:
                run_ids.append(Spec.model_validate(content["spec"]).run_id)
    if cell.parts:  # a run may be in several parts
        return sorted(set(run_ids))
    return run_ids


# ---------------------------------------------------------------- one row of a table


def row_csv(row: TableRow) -> str:
    """Make the CSV file of one row: its scores by column and seed, in the unit of the paper.

    Differences to another row are left out, because they need the scores of that row.
    """
    view = grid_view(row.paper, row.table, row.scale)
    records: list[dict] = []
    for cell in view.rows[row.index]:
        if cell.plan.column.delta is None:
            records += seed_records(view, row.index + 1, cell)
    return csv_text(ROW_SCORES, records)


def seed_records(view: GridView, number: int, cell: Cell) -> Iterator[dict]:
    """Describe the values of a cell as rows under ROW_SCORES. An average of cells has no run.

    Args:
        number: number of its row in the table, from 1.
    """
    of_cell = cell_record(view, number, cell)
    runs = {spec.seed: spec.run_id for spec in cell.plan.specs}
    for seed, value in sorted(cell.values.items()):
        record = {column: of_cell.get(column, "") for column in ROW_SCORES}
        yield record | {"seed": seed, "ours": value, "run": runs.get(seed, "")}


# ---------------------------------------------------------------- comparisons and claims


def comparison_records(view: GridView) -> Iterator[dict]:
    """Describe the declared comparisons of a table or figure as rows under COMPARISONS."""
    for answer in answers(view):
        for comparison in answer.comparisons:
            yield {
                "paper": view.paper,
                "table": view.name,
                "question": answer.family.question,
                "primary": answer.family.primary,
                **comparison_record(comparison),
            }


def comparison_record(comparison: Comparison) -> dict:
    """Describe a comparison as a row under COMPARISON_COLUMNS. Unknown values are empty."""
    values = dict(vars(comparison))
    if comparison.estimate:
        values |= vars(comparison.estimate)
    values["verdict"] = comparison.relation.word
    values["differs"] = "; ".join(map(setting_difference_text, comparison.differs))
    values["tuned_away"] = "; ".join(map(tuned_away_text, comparison.tuned_away))
    values["reason"] = reason_text(comparison.reason)
    values["sentence"] = sentence(comparison)
    return {name: empty_if_none(values.get(name)) for name in COMPARISON_COLUMNS}


def empty_if_none(value):
    return "" if value is None else value


def sentence_rows(scale: str) -> Iterator[dict]:
    """Describe the sentences of all papers as rows under CLAIMS."""
    for judged in judge_all(scale, paper_names()):
        row = {
            "paper": judged.paper,
            "places": " ".join(judged.places),
            "claim": judged.claims[0].quote,
            "printed": judged.published.verdict,
            "outcome": judged.published.outcome,
            "size": judged.published.size,
            "detail": detail_text(judged.published),
            "ours": "" if scale == DEFAULT_SCALE else our_verdict(judged),
        }
        for assumed in judged.assumed:
            row[f"printed_at_{assumed.deviation:g}"] = assumed.judgement.verdict
        yield row


def claim_record(judged: Judged) -> dict:
    """Describe what a paper says, with its verdicts and the numbers of each of its claims.

    Our runs are left out at the default scale, which only shows that the workflow runs.
    """
    has_ours = judged.scale != DEFAULT_SCALE
    our_runs = "–"
    if has_ours:
        our_runs = our_verdict(judged)
    parts = []
    for row in judged.rows:
        part = {
            "row": row.claims[0].row,
            "printed": judgement_record(row.published),
            "printed verdicts": printed_verdicts_record(row),
            "ours": None,
        }
        if has_ours:
            part["ours"] = judgement_record(row.ours)
        parts.append(part)
    return {
        "paper": judged.paper,
        "place": ", ".join(judged.places),
        "claim": judged.claims[0].quote,
        "scale": judged.scale,
        "printed numbers": judged.published.verdict,
        "printed gain": deciding_difference_text(judged.published),
        "if seeds vary less": short_other_verdicts(judged.printed_verdicts),
        "printed verdicts": printed_verdicts_record(judged),
        "our runs": our_runs,
        "parts": parts,
    }


def our_verdict(judged: Judged) -> str:
    """Give the verdict on our runs: on the claim at the scale of the papers, else on its rows.

    A sentence over claims with several verdicts has them all, in one order: `higher, unclear`.
    """
    if judged.scale == PAPER_SCALE:
        return judged.ours.verdict
    return ", ".join(word for word in VerdictWord if word in judged.words)


def printed_verdicts_record(judged: Judged) -> list[dict]:
    """Describe the verdicts on printed numbers, one record per assumed deviation.

    `deviation` is of the STS average on BERT-base over seeds, in points. None stands for the
    deviation that others published. `p` is that of the difference that decided.
    """
    return [asdict(at) for at in judged.printed_verdicts]


def judgement_record(judgement: Judgement) -> dict:
    """Describe a judgement as plain values. Infinite numbers, which JSON lacks, become None."""
    contrasts = []
    for contrast in judgement.contrasts:
        record = asdict(contrast)
        record["differs"] = [setting_difference_text(setting) for setting in contrast.differs]
        record["tuned_away"] = [tuned_away_text(term) for term in contrast.tuned_away]
        contrasts.append({key: finite(value) for key, value in record.items()})
    reason = why_not_all(judgement)
    return {
        "outcome": judgement.outcome,
        "direction": judgement.direction,
        "shown": judgement.significance,
        "size": judgement.size,
        "detail": detail_text(judgement),
        "contrary_p": judgement.contrary_p,
        "contrary": judgement.contrary,
        "notes": [reason] if reason else [],
        "differs": [setting_difference_text(setting) for setting in judgement.differs],
        "excludes": finite(judgement.excludes),
        "strict": judgement.strict,
        "claims_significance": judgement.claims_significance,
        "contrasts": contrasts,
    }


def finite(value):
    """Give a value as it is, or None for infinity."""
    return None if value == inf else value
