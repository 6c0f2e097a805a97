"""Row by row: the printed value, our mean, others' runs, the verdict and the command of each row.

A table has many columns. The first table of its page shows the one column that sums it up, because
a reader asks first whether that number holds.
"""

from csebench.base.project import REPOSITORY, snakemake
from csebench.base.terminal import NO_VALUE
from csebench.plan import targets
from csebench.plan.catalog import files as catalog
from csebench.plan.catalog.data_sources import source_of
from csebench.plan.rows import TableRow, row_names
from csebench.plan.schema.paper import Published
from csebench.report.numbers import stats
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.numbers.others import Group, PooledGroup
from csebench.report.pages.page import Command, TextTable, without_empty_columns
from csebench.report.pages.score_table import (
    BestRows,
    bold_cells,
    main_column,
    marked_text,
)
from csebench.report.words.evidence import MEAN_OVER_SOURCES
from csebench.report.words.verdicts import printed_verdict_text

# titles of columns
VERDICT = "verdict on the printed value"
COMMAND = "command"


def row_by_row_table(view: GridView, best: BestRows) -> TextTable:
    """Tabulate the main column: printed value, our mean, others' runs, verdict and command.

    Rows and columns without any value are left out.

    Args:
        best: the rows of every column that may be best.
    """
    column = main_column(view)
    bold = bold_cells(best)
    lines = []
    for row, cells in enumerate(view.rows):
        texts = cell_texts(cells[column], is_bold=(row, column) in bold)
        texts.append(row_command(view, row))
        if any(text != NO_VALUE for text in texts):
            lines.append([view.grid.rows[row].label, *texts])

    label = view.score_grid.columns[column].label
    here = f"here ({view.scale})"
    head = ["Model", f"printed ({label})", here, "others' runs", VERDICT, COMMAND]
    return without_empty_columns(TextTable(head, lines), NO_VALUE)


def row_by_row_legend(table: TextTable, scale: str) -> str:
    """Explain verdicts, pooled means and commands of a table row by row; empty if it has none."""
    sentences = []
    if VERDICT in table.head:
        sentences.append(
            "*Verdict*: a printed value *differs* if it is outside the range of 95 % of further"
            f" such runs. Inside, it *agrees* if the range is narrower than ±{stats.AGREEMENT:g}"
            f" point, and is *inconclusive* otherwise. With {stats.ORDER_STATISTICS} or more runs,"
            " the range comes from the sorted runs, and need not be symmetric. With fewer, or over"
            " several sources, it is a prediction interval by Student's t."
        )
    if any("sources" in text for row in table.rows for text in row):
        sentences.append(
            "*Others' runs* leave out runs by the authors of this paper; the page of the evidence"
            " has them. Where a cell names a number of sources, the mean is that of the sources'"
            " means, and ± is the standard deviation of one run of a new source. Elsewhere, ± is"
            " that of the n runs."
        )
    if COMMAND in table.head and not has_public_corpus(scale):
        guide = f"{REPOSITORY}/blob/main/docs/rerun.md#choose-a-scale"
        sentences.append(
            "The commands need training sentences that are not public;"
            f" [other scales]({guide}) have public data."
        )
    return " ".join(sentences)


def has_public_corpus(scale: str) -> bool:
    """Whether the project has the training sentences of a scale, or a public source does."""
    settings = catalog.scale(scale)
    if settings.data_root is not None:
        return True
    return source_of(catalog.dataset(settings.corpus).path) is not None


def cell_texts(cell: Cell, is_bold: bool) -> list[str]:
    """Word a cell: the printed value, our mean, others' mean, the verdict on the printed value."""
    printed = cell.published.text if cell.published else NO_VALUE
    others = others_mean(cell, cell.others) if cell.others else NO_VALUE
    return [printed, marked_text(cell, is_bold), others, verdict_text(cell)]


def others_mean(cell: Cell, others: Group) -> str:
    """Word the mean of others' runs: `74.95 ± 1.74, n = 50`, `75.27 ± 0.90, n = 67, 14 sources`."""
    text = f"{cell.mean_and_std(others.summary)}, n = {others.summary.n}"
    if isinstance(others, PooledGroup):
        text += f", {others.effects.sources} sources"
    return text


def verdict_text(cell: Cell) -> str:
    """Word the verdict on the printed value: by our runs if they test it, else by others'."""
    if cell.published is None:
        return NO_VALUE
    has_verdict = cell.judged and cell.verdict not in ("", stats.NOT_COMPARABLE)
    is_tested = has_verdict and cell.verdict != stats.TOO_FEW
    if cell.others is not None and not is_tested:
        return others_verdict_text(cell, cell.others, cell.published)
    if has_verdict and cell.distance is not None:
        verdict = stats.Verdict(cell.verdict, cell.distance)
        return printed_verdict_text(verdict, len(cell.values), cell.digits)
    return NO_VALUE


def others_verdict_text(cell: Cell, others: Group, published: Published) -> str:
    """Word the verdict on the printed value of a cell by the runs of others."""
    verdict = others.verdict(published, cell.published_seeds, cell.point)
    runs = others.summary.n
    if isinstance(others, PooledGroup):
        return printed_verdict_text(verdict, runs, cell.digits, mean=MEAN_OVER_SOURCES)
    return printed_verdict_text(verdict, runs, cell.digits)


# ---------------------------------------------------------------- commands


def row_command(view: GridView, row: int) -> str:
    """Give the command that trains and scores one row; `–` if nothing of the row can be run."""
    scores = targets.scores_of(cell.plan for cell in view.rows[row])
    if not targets.available_scores(scores, view.scale):
        return NO_VALUE
    name = row_names(view.paper, view.name)[row]
    file = TableRow(view.paper, view.name, row, name, view.scale).path
    return Command(snakemake(file))
