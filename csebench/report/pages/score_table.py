"""Our scores as tables, and the legend that says how to read them.

A cell has our mean and standard deviation, marks for what is missing or old and, at the scale of
the papers, the printed value with its verdict. The best row of a column is bold.
"""

from collections.abc import Iterable
from itertools import chain
from math import inf

from csebench.base.terminal import NO_VALUE
from csebench.plan.catalog.files import DEFAULT_SCALE, GENERATED, SIDE_BY_SIDE
from csebench.plan.rows import short_label
from csebench.plan.schema.paper import Figure
from csebench.report.numbers import stats
from csebench.report.numbers.cells import ON_OTHER_DATA, Cell, GridView
from csebench.report.numbers.compare import best_rows, block, summary_columns
from csebench.report.numbers.verdict_words import PrintedWord
from csebench.report.pages.page import Fold, Part, TextTable, as_list
from csebench.report.words import comparisons as words

OUTDATED = "†"  # after a score of an older code version or of other settings
PRINTED_VALUE_SIGNS = {  # the arrows say where our mean is
    "✓": PrintedWord.AGREES,
    "~": PrintedWord.INCONCLUSIVE,
    "↓": f"{PrintedWord.DIFFERS}, ours is lower",
    "↑": f"{PrintedWord.DIFFERS}, ours is higher",
    "?": PrintedWord.NOT_TESTED,
}
MOST_TIE_LINES = 2  # more lines “Possibly best in …” are folded

BestRows = list[list[set[int]]]  # per column and block of ranked rows: the rows that may be best


def score_parts(view: GridView, best: BestRows) -> list[Part]:
    """Show our scores of all rows with runs, and how to read them.

    Args:
        best: see `best_by_column`.
    """
    rows = [row for row in row_order(view) if has_runs(view.rows[row])]
    legend = legend_parts(view, rows, best)
    if is_shown_row_by_row(view) and len(view.score_grid.columns) == 1:
        return legend
    tables = score_tables(view, rows, best)
    if is_shown_row_by_row(view):
        return [f"Our scores at scale {view.scale}, all columns:", *tables, *legend]
    return [*tables, *legend]


def is_shown_row_by_row(view: GridView) -> bool:
    """Whether the page begins with one column, row by row (row_by_row.py). Tables of papers do."""
    return view.paper not in GENERATED and not isinstance(view.grid, Figure)


def best_by_column(view: GridView) -> BestRows:
    """Find the rows of every column that may be best. Empty at scale smoke."""
    if view.scale == DEFAULT_SCALE:
        return []
    return [best_rows(view, column) for column in view.score_grid.columns]


def has_runs(cells: Iterable[Cell]) -> bool:
    return any(cell.plan.specs for cell in cells)


def row_order(view: GridView) -> list[int]:
    """Order the rows as printed; on the page of all methods the best first and controls last."""
    rows = list(range(len(view.rows)))
    if view.paper != SIDE_BY_SIDE:
        return rows
    averages = view.column("Avg.")

    def controls_last_then_highest(row: int) -> tuple[bool, float]:
        average = averages[row]
        if not average.values:
            return average.is_control, inf
        return average.is_control, -average.mean

    return sorted(rows, key=controls_last_then_highest)


# ---------------------------------------------------------------- tables


def score_tables(view: GridView, rows: list[int], best: BestRows) -> list[TextTable]:
    """Tabulate the scores. Rows that learn with labels get a table of their own."""
    bold = bold_cells(best)
    order = column_order(view)
    without_labels: list[list[str]] = []
    with_labels: list[list[str]] = []
    for row in rows:
        texts = [view.grid.rows[row].label]
        for column in order:
            cell = view.rows[row][column]
            texts.append(cell_text(cell, is_bold=(row, column) in bold))
        ranked_with = block(view, row)
        if ranked_with is not None and ranked_with.corpus == "triplets":
            with_labels.append(texts)
        else:
            without_labels.append(texts)

    head = ["Model", *(view.score_grid.columns[column].label for column in order)]
    if not without_labels:
        return [TextTable(head, with_labels)]
    tables = [TextTable(head, without_labels)]
    if with_labels:
        tables.append(TextTable(head, with_labels, "Trained with labels"))
    return tables


def bold_cells(best: BestRows) -> set[tuple[int, int]]:
    """List the cells that alone are best, as (row, column)."""
    cells: set[tuple[int, int]] = set()
    for column, blocks in enumerate(best):
        for best_of_block in blocks:
            if len(best_of_block) == 1:
                cells |= {(row, column) for row in best_of_block}
    return cells


def only_average(view: GridView) -> int | None:
    """Find the column with the average. None if a table has several averages, or none."""
    averages = []
    for index, column in enumerate(view.score_grid.columns):
        if column.task == "Avg." or column.mean:
            averages.append(index)
    return averages[0] if len(averages) == 1 else None


def main_column(view: GridView) -> int:
    """Find the column that sums up a table: its only average, or else its last score."""
    average = only_average(view)
    if average is not None:
        return average
    columns = view.score_grid.columns
    return max(index for index, column in enumerate(columns) if column.delta is None)


def column_order(view: GridView) -> list[int]:
    """Order the columns of a table as pages show them: the only average comes first."""
    order = list(range(len(view.score_grid.columns)))
    average = only_average(view)
    if average is not None:
        order.remove(average)
        order.insert(0, average)
    return order


def cell_text(cell: Cell, is_bold: bool) -> str:
    """`78.41 ± 0.31`; with the printed value, its verdict and distance `… (78.13 ✓ +0.28)`."""
    text = marked_text(cell, is_bold)
    if not cell.judged or cell.published is None:
        return text
    sign = sign_of_verdict(cell)
    if not sign:
        return f"{text} ({cell.published.text})"
    return f"{text} ({cell.published.text} {sign} {signed(cell, cell.distance)})"


def marked_text(cell: Cell, is_bold: bool) -> str:
    """`78.41 ± 0.31†`, with marks for scores that are old, missing or on other test data."""
    text = f"**{cell.text}**" if is_bold else cell.text
    if cell.is_outdated:
        text += OUTDATED
    if cell.absent and cell.values:
        text += f" [{cell.absent} missing]"
    if cell.runs_elsewhere and cell.values:
        text += f" [{cell.runs_elsewhere} {ON_OTHER_DATA}]"
    return text


def sign_of_verdict(cell: Cell) -> str:
    """Give the sign of the verdict on the printed value of a cell.

    Returns:
        An empty text if the cell cannot be compared, because it is incomplete or a difference.
    """
    match stats.printed_word(cell.verdict):
        case PrintedWord.AGREES:
            return "✓"
        case PrintedWord.INCONCLUSIVE:
            return "~"
        case PrintedWord.DIFFERS:
            return "↓" if (cell.distance or 0.0) < 0 else "↑"
        case PrintedWord.NOT_TESTED:
            return "?" if cell.verdict == stats.TOO_FEW else ""


def signed(cell: Cell, distance: float | None) -> str:
    """Write how far our mean is from the printed value, with as many digits as printed: `+0.28`."""
    return "" if distance is None else f"{distance:+z.{cell.digits}f}"


# ---------------------------------------------------------------- the legend


def legend_parts(view: GridView, rows: list[int], best: BestRows) -> list[Part]:
    """Explain the cells, and name the rows that may be best in the columns that sum up a table.

    Long lists of such rows are folded.
    """
    cells = list(chain.from_iterable(view.rows[row] for row in rows))
    columns_of_rows = possibly_best(view, best)
    lines = []
    for tied_rows, columns in columns_of_rows.items():
        lines.append(f"{', '.join(columns)}: {', '.join(tied_rows)}.")
    has_long_line = any(len(tied_rows) > words.MOST_ROWS for tied_rows in columns_of_rows)
    is_folded = len(lines) > MOST_TIE_LINES or has_long_line

    sentences = [measure_sentence(cells)]
    shows_brackets = not is_shown_row_by_row(view) or len(view.score_grid.columns) > 1
    if view.judged and shows_brackets:
        signs = "; ".join(f"{sign} {meaning}" for sign, meaning in PRINTED_VALUE_SIGNS.items())
        sentences.append(
            f"In brackets: the printed value, its verdict ({signs}), and our mean minus it."
        )
    if any(len(candidates) == 1 for candidates in chain.from_iterable(best)):
        sentences.append("Bold: best at 95 %.")
    if not is_folded:
        sentences += [f"Possibly best in {line}" for line in lines]
    texts = {cell.text for cell in cells}
    if "missing" in texts:
        sentences.append("missing: can be run here, but was not run yet.")
    if NO_VALUE in texts:
        sentences.append(f"{NO_VALUE}: no run or no number.")
    if view.sentences_seen:
        sentences.append(
            "A column says from which share of the corpus a run draws. With the scale's batch, a"
            f" run sees {view.sentences_seen:,} sentences."
        )

    parts: list[Part] = [" ".join(sentences)]
    if is_folded:
        parts.append(Fold("Possibly best, by column", [as_list(lines)]))
    return parts


def measure_sentence(cells: list[Cell]) -> str:
    """`Mean ± standard deviation of 3 seeds, spearman × 100.`"""
    metrics: dict[float, set[str]] = {}  # by the factor between score and printed value
    for cell in cells:
        metrics_of_factor = metrics.setdefault(cell.factor, set())
        if cell.plan.metric:
            metrics_of_factor.add(cell.plan.metric)
    measures = []
    for factor, names in metrics.items():
        if not names:
            continue
        measure = ", ".join(sorted(names))
        if factor != 1:
            measure += f" × {factor:g}"
        measures.append(measure)

    seeds = words.ends_text(len(cell.values) for cell in cells)
    unit = "seed" if seeds == "1" else "seeds"
    return f"Mean ± standard deviation of {seeds} {unit}, {'; '.join(measures)}."


def possibly_best(view: GridView, best: BestRows) -> dict[tuple[str, ...], list[str]]:
    """Find the columns that sum up a table and have several rows that may be best.

    Returns:
        The labels of such columns, by the labels of the rows that may be best in them.
    """
    columns_of: dict[tuple[str, ...], list[str]] = {}
    if not best:
        return columns_of
    for column in summary_columns(view):
        for rows in best[column]:
            if len(rows) < 2:
                continue
            labels = tuple(short_label(view.grid.rows[row].label) for row in sorted(rows))
            columns_of.setdefault(labels, []).append(view.score_grid.columns[column].label)
    return columns_of
