"""The papers as data: every published number against a second transcription, and what the schema
refuses.

tests/protocol/published/*.tsv were made from the papers by another person than papers/*.yaml. They
have blocks of `# table N`, with rows, columns and labels as in papers/. A paper without such a file
has no second transcription.
"""

import re
from typing import NamedTuple

import pytest

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.yaml_lines import read_yaml
from csebench.plan import grids
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.paper import Paper, Recipe, Row, SettingsTable

PUBLISHED = ROOT / "tests" / "protocol" / "published"
TRANSCRIBED = sorted(path.stem for path in PUBLISHED.glob("*.tsv"))
NO_NUMBERS = {("informin_cl", "1"), ("msse", "8")}  # tables of texts


def printed_tables():
    """List every transcribed table, as the name of its paper and its number."""
    tables = []
    for name in TRANSCRIBED:
        for number in catalog.paper(name).tables:
            if (name, number) not in NO_NUMBERS:
                tables.append((name, number))
    return tables


PRINTED = printed_tables()


def is_of_settings(name, number):
    return isinstance(catalog.paper(name).tables[number], SettingsTable)


SETTINGS = [(name, number) for name, number in PRINTED if is_of_settings(name, number)]


class Printed(NamedTuple):
    """A table as it is printed."""

    columns: list[str]  # labels
    rows: list[str]  # labels
    numbers: list[list[str]]  # by row; empty where nothing is printed


@pytest.mark.parametrize(("name", "n"), PRINTED)
def test_every_published_number_is_the_printed_one(name, n):
    assert table_as_printed(catalog.paper(name).tables[n]) == transcription(name)[n]


def transcription(name):
    """Read the second transcription of a paper: its tables by number."""
    text = (PUBLISHED / f"{name}.tsv").read_text(encoding="utf-8")
    tables = {}
    for block in text.split("# table ")[1:]:
        title, header, *rows = [line.split("\t") for line in block.splitlines()]
        labels = [row[0] for row in rows]
        numbers = [row[1:] for row in rows]
        tables[title[0]] = Printed(header[1:], labels, numbers)
    return tables


def table_as_printed(table):
    """Write a table of papers/ as the transcription does, without the columns that nobody
    printed."""
    texts = []
    for row in table.rows:
        texts.append([text_of(value) for value in row.values])

    def is_printed(index):
        return any(row[index] for row in texts)

    printed = [index for index in range(len(table.columns)) if is_printed(index)]
    numbers = []
    for row in texts:
        numbers.append([row[index] for index in printed])
    columns = [table.columns[index].label for index in printed]
    labels = [row.label for row in table.rows]
    return Printed(columns, labels, numbers)


def text_of(value):
    """Return the text of a printed value, with no blanks around `±`."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else value.text
    return re.sub(r"\s*±\s*", "±", text.strip())


def test_the_transcription_is_of_these_tables():
    tables = []
    number_count = 0
    for name in TRANSCRIBED:
        for number, table in transcription(name).items():
            tables.append((name, number))
            for row in table.numbers:
                number_count += sum(1 for text in row if text)
    assert set(tables) == set(PRINTED)
    assert len(SETTINGS) == 2
    assert number_count > 1100


@pytest.mark.parametrize(
    ("printed", "value", "std", "unit"),
    [("78.13", 78.13, None, 0.01), ("2.0 ± 0.10", 2, 0.1, 0.1), (7, 7, None, 1)],
)
def test_a_printed_number_has_its_digits(printed, value, std, unit):
    row = Row.model_validate({"label": "x", "missing": "y", "values": [printed]})
    (number,) = row.values
    assert number.value == pytest.approx(value)
    assert number.std == pytest.approx(std)
    assert number.unit == pytest.approx(unit)


@pytest.mark.parametrize(("name", "n"), SETTINGS)
def test_settings_are_the_printed_ones(name, n):
    for row in catalog.paper(name).tables[n].rows:
        ours = grids.recipe_values(name, f"table{n}", row.param)
        assert [float(v) for v in ours] == [float(v) for v in row.values], row.label


def test_a_setting_may_be_of_a_component(monkeypatch):
    table = grids.find_grid("msse", "table5")
    column = table.columns[0].model_copy(update={"run": Recipe(method="micse")})
    of_micse = table.model_copy(update={"columns": [column]})
    monkeypatch.setattr(grids, "find_grid", lambda *_: of_micse)
    assert grids.recipe_values("msse", "table5", "ami.weight") == [2.5e-3]

    message = r"papers/msse\.yaml: line \d+: tables\.5\..*'ami.weight'"
    for wrong in ("ami.wieght", "amii.weight"):
        with pytest.raises(BadInput, match=message):
            grids.recipe_values("msse", "table5", wrong)


SMALL = """
name: small
title: A paper
reference: Somebody
tables:
  "1":
    title: A table
    baseline: one
    columns:
      - {label: STS-B, task: STS-B}
      - {label: change, delta: STS-B}
    rows:
      - {label: one, run: {method: simcse}, source: measured, values: ["1.00", null]}
      - {label: two, missing: cited only, source: copied, from: others, values: ["2.00±0.10", null]}
  "2":
    kind: settings
    title: Settings
    columns: [{label: base, run: {method: simcse}}]
    rows: [{label: Batch size, param: batch_size, values: ["64"]}]
claims:
  - {quote: one is better, section: "4", table: "1", row: one, versus: [two], columns: [STS-B], by: "1.0"}
"""  # noqa: E501


class Mistake(NamedTuple):
    """A change of SMALL that makes it wrong, and what the message about it has to say."""

    old: str
    new: str
    message: list[str]  # parts


REFUSED = {
    "a value too many": Mistake(
        '["1.00", null]', '["1.00", null, null]', ["tables.1", "one: 3 values for 2 columns"]
    ),
    "a setting too many": Mistake(
        '["64"]', '["64", "64"]', ["tables.2", "Batch size: 2 values for 1 columns"]
    ),
    "no number": Mistake("2.00±0.10", "2,00", ["tables.1", "rows.1.values.0", "'2,00'"]),
    "neither run nor missing": Mistake(
        "missing: cited only, ", "", ["tables.1", "two: needs either `run`, or `missing`"]
    ),
    "unknown column of a difference": Mistake(
        "delta: STS-B", "delta: STSB", ["0 columns have the label 'STSB'"]
    ),
    "difference without a baseline": Mistake(
        "    baseline: one\n", "", ["tables.1", "`delta` needs a `baseline`"]
    ),
    "baseline of two rows": Mistake(
        "label: two", "label: one", ["tables.1", "2 rows have the label 'one'"]
    ),
    "column of nothing": Mistake(
        "- {label: STS-B, task: STS-B}", "- {label: STS-B}", ["columns.0", "exactly one of `task`"]
    ),
    "source": Mistake(
        "source: measured", "source: mesured", ["tables.1", "source", "'mesured'", "'measured'"]
    ),
    "kind of a table": Mistake("kind: settings", "kind: setings", ["tables.2", "'settings'"]),
    "claim of nothing": Mistake(
        'table: "1", ', "", ["claims.0", "'one is better': needs either `table` or `figure`"]
    ),
    "two sizes of a difference": Mistake(
        'by: "1.0"', 'by: "1.0", less_than: "2.0"', ["claims.0", "needs at most one of `by`"]
    ),
    "a limit of what is above": Mistake(
        'by: "1.0"', 'less_than: "1.0"', ["claims.0", "needs `relation: comparable`"]
    ),
    "a size of what is comparable": Mistake(
        'by: "1.0"', 'by: "1.0", relation: comparable', ["claims.0", "`relation: above`"]
    ),
    "a deviation on average": Mistake(
        'by: "1.0"', "statistic: std, on_average: true", ["claims.0", "`statistic: std`"]
    ),
    "the gain of one row only": Mistake(
        'by: "1.0"', "gains_over: {one: two}", ["claims.0", "every row of `versus`"]
    ),
    "a gain over a row whose gain is compared": Mistake(
        'by: "1.0"', "gains_over: {one: two, two: one}", ["claims.0", "cannot be subtracted"]
    ),
    "a column left out of an average": Mistake(
        "    baseline: one\n",
        "    baseline: one\n    compare: [{question: a, rows: [[one, two]], left_out: [STS-B]}]\n",
        ["tables.1", "`left_out` needs `columns: each`"],
    ),
    "gains of deviations": Mistake(
        'by: "1.0"', "gains_over: {one: two}, statistic: std", ["claims.0", "no `statistic: std`"]
    ),
}


@pytest.mark.parametrize("mistake", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_one_clear_message(mistake, tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    assert read_yaml(file, Paper).claims[0].by.unit == pytest.approx(0.1)
    assert mistake.old in SMALL
    file.write_text(SMALL.replace(mistake.old, mistake.new, 1), encoding="utf-8")

    with pytest.raises(BadInput) as refused:
        read_yaml(file, Paper)

    message = str(refused.value)
    assert message.startswith(f"{file}: ")
    assert "\n" not in message
    assert "(got {" not in message
    for part in mistake.message:
        assert part in message, message
