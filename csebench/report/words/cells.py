"""Words for the cells of a table: how many runs are scored, and why others do not count."""

from csebench.report.numbers.cells import ON_OTHER_DATA, Cell, ScoresElsewhere


def scored_text(scored: int, runs: int, outdated: int, elsewhere: int = 0) -> str:
    """Word how many runs are scored: `13 of 13 runs scored, 4 of them †, 2 of them ‡`.

    † marks scores of older code or with other settings, ‡ scores on other test data.
    """
    parts = [f"{scored} of {runs} runs scored"]
    if outdated:
        parts.append(f"{outdated} of them †")
    if elsewhere:
        parts.append(f"{elsewhere} of them {ON_OTHER_DATA}")
    return ", ".join(parts)


def reasons_of_cell(cell: Cell) -> list[str]:
    """List why runs of a cell have no score that counts, as far as it is known."""
    reasons = list(cell.reasons)
    if cell.elsewhere:
        reasons.append(elsewhere_text(cell))
    return reasons


def elsewhere_text(cell: Cell) -> str:
    """Say which runs of a cell are scored on other test data; empty if none are.

    `2 of 3 runs are scored on other test data than the table (sts: data 0123456789ab, not data
    94b655eb25db)`
    """
    return "; ".join(_elsewhere_text(cell, scores) for scores in cell.elsewhere)


def _elsewhere_text(cell: Cell, scores: ScoresElsewhere) -> str:
    count = len(scores.values)
    verb = "is" if count == 1 else "are"
    used = scores.data.text_beside(scores.table_data)
    expected = scores.table_data.text_beside(scores.data)
    return (
        f"{count} of {len(cell.plan.specs)} runs {verb} scored on other test data than the table"
        f" ({cell.plan.evaluator}: {used}, not {expected})"
    )
