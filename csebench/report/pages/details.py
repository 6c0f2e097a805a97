"""The folded details of a table or figure: printed values, others' runs, comparisons, claims.

A function for a fold returns no part if there is nothing to show. The folds of retrieved texts
and of missing scores are in retrieved.py and missing.py.
"""

from collections.abc import Callable
from pathlib import Path

from csebench.base.project import REPOSITORY
from csebench.plan.catalog.files import DEFAULT_SCALE
from csebench.plan.schema.paper import Row
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.numbers.claims import judge_all
from csebench.report.numbers.compare import Answer
from csebench.report.numbers.losses import row_losses
from csebench.report.pages.answer_text import all_comparisons
from csebench.report.pages.claims import sentence_table
from csebench.report.pages.page import Fold, Part, TextTable, as_list, merge_labels
from csebench.report.pages.row_by_row import others_mean, others_verdict_text
from csebench.report.pages.score_table import column_order
from csebench.report.words import comparisons as words
from csebench.report.words.claims import ASSUMED_DEVIATION, DEPENDS
from csebench.report.words.evidence import group_remark

SOURCES = {
    "measured": "measured by the authors",
    "rerun": "re-run by the authors",
    "copied": "copied from {}",
    "unknown": "source not stated",
}
HOW_COMPARED = (
    "Differences are in points (0.01 of a score), paired by seed; the interval is over seeds and"
    " test items. Interval and p are corrected for all comparisons of a question (Bonferroni,"
    " Holm). Where most of the error is from test items, p can be much smaller than a test over so"
    " few seeds alone could give. *What else differs* leaves out what a method keeps by definition."
    f" [How rows are compared]({REPOSITORY}/blob/main/docs/statistics.md)."
)
DEPENDS_LEGEND = (
    f"{DEPENDS}: the verdict by printed numbers depends on the deviation over seeds that is assumed"
    f" ([how]({REPOSITORY}/blob/main/docs/statistics.md#does-the-papers-sentence-hold))."
    f" {ASSUMED_DEVIATION}"
)


# ---------------------------------------------------------------- printed values


def printed_parts(view: GridView) -> list[Part]:
    """Show the printed values unfolded. This is for tables in which nothing is run here."""
    table = table_of_texts(view, printed_text)
    if not table.rows:
        return []
    return [table, Fold("Where the printed values come from", [source_list(view)])]


def printed_fold(view: GridView) -> list[Part]:
    """Fold the printed values away, with the source of each.

    Values that our runs are judged by are left out, because the table of our scores shows them.
    """
    table = table_of_texts(view, printed_text)
    if not table.rows:
        return []
    parts: list[Part] = []
    if view.not_standard or not view.judged:
        parts.append(table)
    parts.append(source_list(view))
    encoders = dict.fromkeys(cell.published_encoder for cell in view.cells if cell.published)
    summary = f"The printed values ({', '.join(encoders)}), and where each comes from"
    return [Fold(summary, parts)]


def printed_text(cell: Cell) -> str | None:
    return cell.published.text if cell.published else None


def source_list(view: GridView) -> str:
    """List the rows by the source of their printed values."""
    rows = [row for row in view.score_grid.rows if any(row.values) or row.note]
    return as_list(merge_labels((row.label, source_text(row)) for row in rows))


def source_text(row: Row) -> str:
    """`copied from Gao et al. 2021.`, and the note of the row if it has one."""
    text = f"{SOURCES[row.source].format(row.origin)}."
    if row.note:
        text += f" {row.note}"
    return text.rstrip()


def table_of_texts(view: GridView, text_of: Callable[[Cell], str | None]) -> TextTable:
    """Tabulate a text per cell, leaving out rows and columns without any text."""
    rows: list[tuple[str, list[str | None]]] = []  # the label of a row, and its texts
    for row, cells in zip(view.grid.rows, view.rows, strict=True):
        texts = [text_of(cell) for cell in cells]
        if any(texts):
            rows.append((row.label, texts))

    head = ["Model"]
    body = [[label] for label, _ in rows]
    for index in column_order(view):
        if not any(texts[index] for _, texts in rows):
            continue
        head.append(view.score_grid.columns[index].label)
        for line, (_, texts) in zip(body, rows, strict=True):
            line.append(texts[index] or "–")
    return TextTable(head, body)


# ---------------------------------------------------------------- training


def losses_fold(view: GridView) -> list[Part]:
    """Show the training loss of every row. A loss next to 0 leaves the runs little to learn."""
    losses = row_losses(view)
    if not losses or view.scale == DEFAULT_SCALE:
        return []
    rows = []
    for loss in losses:
        readings = [f"{loss.first:.3g}", f"{loss.last:.3g}"]
        rows.append([loss.row, str(loss.runs), *readings, f"{loss.first_step}, {loss.last_step}"])
    head = ["Model", "runs", "first evaluation", "last evaluation", "steps of the two"]
    return [Fold("Training loss at the first and last evaluation", [TextTable(head, rows)])]


# ---------------------------------------------------------------- runs of others


def others_fold(view: GridView) -> list[Part]:
    """Show the scores of runs that other people published, and how they were set up otherwise."""
    table = table_of_texts(view, others_text)
    if not table.rows:
        return []
    legend = "Our means do not include these runs."
    if any(cell.published for cell in view.cells):
        legend += " In brackets: the printed value, and the verdict on it by these runs."
    remarks: list[tuple[str, str]] = []
    for cell in view.cells:
        if cell.others is not None:
            row = cell.plan.row
            remarks.append((row.label, group_remark(cell.others, row)))
    parts = [legend, table, as_list(merge_labels(remarks))]
    return [Fold("Others' runs on the paper's encoder", parts)]


def others_text(cell: Cell) -> str | None:
    """Word the mean of others' runs, and the verdict on the printed value; None without runs.

    `75.11 ± 0.84, n = 50 (printed 76.25, inconclusive: 1.14 above an average run)`
    """
    if cell.others is None:
        return None
    text = others_mean(cell, cell.others)
    if cell.published is None:
        return text
    verdict = others_verdict_text(cell, cell.others, cell.published)
    return f"{text} (printed {cell.published.text}, {verdict})"


# ---------------------------------------------------------------- comparisons and claims


def comparisons_fold(view: GridView, answered: list[Answer]) -> list[Part]:
    """Tabulate every declared comparison of a table or figure, by question."""
    if view.scale == DEFAULT_SCALE or not answered:
        return []
    parts: list[Part] = []
    count = 0
    for answer in answered:
        rows = [words.comparison_row(comparison) for comparison in answer.comparisons]
        parts += [answer.family.question, TextTable(words.COMPARISON_HEAD, rows)]
        count += len(rows)
    parts.append(HOW_COMPARED)
    parts += seeds_only_remark(answered)
    return [Fold(f"Every declared comparison: {count}", parts)]


def seeds_only_remark(answered: list[Answer]) -> list[str]:
    """Say how many intervals are over seeds only, although their evaluator scores test items."""
    tested = [c for c in all_comparisons(answered) if c.estimate is not None]
    lacking = sum(comparison.over_seeds_only for comparison in tested)
    if not lacking:
        return []
    count = "All" if lacking == len(tested) else f"{lacking} of {len(tested)}"
    reason = "the score files have no replicates over test items"
    return [f"{count} of these intervals are over seeds only: {reason}."]


def claims_fold(view: GridView, folder: Path) -> list[Part]:
    """Judge what the paper says about its table or figure.

    Args:
        folder: folder of the page, from which links start.
    """
    if view.scale == DEFAULT_SCALE:
        return []
    claims = judge_all(view.scale, [view.paper], view.name)
    if not claims:
        return []
    parts: list[Part] = [sentence_table(claims, view.scale, folder)]
    if any(part.depends_on_deviation for judged in claims for part in (judged, *judged.rows)):
        parts.append(DEPENDS_LEGEND)
    return [Fold(f"Claims about it: {len(claims)}", parts)]
