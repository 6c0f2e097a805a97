"""Tables in which a paper prints texts, such as examples. Nothing is run for them."""

from csebench.plan.schema.paper import TextsTable
from csebench.report.pages.page import Fold, PageSection, TextTable, as_list


def texts_section(table: TextsTable) -> PageSection:
    """Show the printed texts."""
    rows = []
    for row in table.rows:
        rows.append([row.label, *(text or "–" for text in row.values)])
    head = ["", *(column.label for column in table.columns)]
    folded = []
    if table.notes:
        folded.append(Fold("Notes", [as_list(table.notes)]))
    answer = "**The paper prints these texts. Nothing is run for this table.**"
    return PageSection([answer], [TextTable(head, rows)], folded)
