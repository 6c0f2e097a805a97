"""Tables in which a paper prints its settings: each value next to the value of the recipe."""

from collections import Counter

from csebench.plan.grids import recipe_values
from csebench.plan.schema.declarations import Value
from csebench.plan.schema.paper import SettingsTable
from csebench.report.numbers.cells import GridView
from csebench.report.numbers.row_settings import setting_text
from csebench.report.pages.page import Fold, PageSection, TextTable, as_list

EQUAL_SIGN = " ✓"
DIFFERENT_SIGN = " ≠"
NO_SIGN = ""  # nothing is printed
SETTINGS_LEGEND = (
    "The value in the recipe at scale paper (printed value); ✓ equal, ≠ different, – not printed."
)


def settings_section(view: GridView, table: SettingsTable) -> PageSection:
    """Compare every printed setting with the recipe of its column: `128 (128 ✓)`."""
    signs: Counter[str] = Counter()
    rows: list[list[str]] = []
    for row in table.rows:
        texts = [row.label]
        ours = recipe_values(view.paper, view.name, row.param)
        for printed_value, our_value in zip(row.values, ours, strict=True):
            sign = comparison_sign(printed_value, our_value)
            signs[sign] += 1
            texts.append(f"{setting_text(our_value)} ({printed_value or '–'}{sign})")
        rows.append(texts)

    head = ["Setting", *(column.label for column in table.columns)]
    printed_count = signs[EQUAL_SIGN] + signs[DIFFERENT_SIGN]
    answer = f"**{signs[EQUAL_SIGN]} of {printed_count} printed settings equal the recipes.**"
    folded = []
    if table.notes:
        folded.append(Fold("Notes", [as_list(table.notes)]))
    return PageSection([answer], [TextTable(head, rows), SETTINGS_LEGEND], folded)


def comparison_sign(printed: str | None, ours: Value) -> str:
    """Compare a printed value with ours."""
    if printed is None:
        return NO_SIGN
    return EQUAL_SIGN if is_equal(printed, ours) else DIFFERENT_SIGN


def is_equal(printed: str, ours: Value) -> bool:
    """Compare numbers as numbers, rounded as the page shows them, and all else as text."""
    text = setting_text(ours)
    try:
        return float(printed) == float(text)
    except ValueError:
        return printed == text
