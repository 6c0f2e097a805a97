"""The fold with the texts that models retrieve for each query, next to the texts papers print."""

from csebench.base.errors import BadInput
from csebench.base.shown import visible
from csebench.plan.catalog.registry import protocol
from csebench.report.numbers.cells import Cell, GridView
from csebench.report.pages.page import Fold, Part, TextTable
from csebench.score.data_of_scores import Scored
from csebench.score.store import stored_score


def texts_fold(view: GridView) -> list[Part]:
    """Tabulate, per query, the texts that the first run of every row retrieved.

    Raises:
        BadInput: if rows have texts of different queries.
    """
    retrieved: dict[str, list[list[str]]] = {}  # by row, the texts for each query
    shared: dict | None = None  # queries and printed texts, the same for all rows
    printed_labels: list[str] = []
    for cell, *_ in view.rows:
        texts = retrieved_texts(cell, view)
        if texts is None:
            continue
        label = cell.plan.row.label
        if shared is None:
            shared = texts
            printed_labels = printed_columns(cell)
        elif not has_same_queries(texts, shared):
            problem = f"the texts of {label} are of other queries than those of the rows above"
            raise BadInput(f"{view.paper}/{view.name}: {problem}; evaluate its runs again.")
        retrieved[label] = texts["retrieved"]
    if shared is None:
        return []

    head = ["", *retrieved, *printed_labels]
    parts: list[Part] = []
    for number, query in enumerate(shared["queries"]):
        columns = [texts[number] for texts in retrieved.values()]
        columns += shared["printed"][number]
        rows = []
        for rank, row in enumerate(zip(*columns, strict=True), 1):
            rows.append([f"#{rank}", *row])
        parts += [f"Query: {visible(query)}", TextTable(head, rows)]
    return [Fold("Retrieved texts", parts)]


def retrieved_texts(cell: Cell, view: GridView) -> dict | None:
    """Read `queries`, `retrieved` and `printed` from the score file of a cell's first run.

    Returns:
        None if the evaluator retrieves no texts, or the run has none for the data of the table.
    """
    evaluator = cell.plan.evaluator
    if not cell.plan.specs or protocol(evaluator).declaration.texts is None:
        return None
    content, is_outdated = stored_score(cell.plan.specs[0], evaluator, view.scale)
    if content is None or not view.is_on_its_data(evaluator, Scored(content, is_outdated)):
        return None
    return content.get("texts")


def has_same_queries(texts: dict, others: dict) -> bool:
    return texts["queries"] == others["queries"] and texts["printed"] == others["printed"]


def printed_columns(cell: Cell) -> list[str]:
    """Label the columns with the texts that papers print, as the evaluator declares them."""
    declared = protocol(cell.plan.evaluator).declaration.texts
    assert declared is not None, cell.plan.evaluator
    return [f"{label} (printed)" for label in declared.labels]
