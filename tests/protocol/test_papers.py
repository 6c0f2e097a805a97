"""The papers as data: every published number against a second transcription, and what the schema
refuses.

tests/protocol/published/*.tsv were made from the papers by another person than papers/*.yaml:
blocks of `# table N`, rows, columns and labels as in papers/. A paper without one has no second
transcription.
"""

import re

import pytest

from csebench.base.errors import BadInput
from csebench.base.project import ROOT
from csebench.base.yaml_lines import read_yaml
from csebench.plan import grids
from csebench.plan.catalog import files as catalog
from csebench.plan.schema.paper import Paper, Recipe, Row, SettingsTable

PUBLISHED = ROOT / "tests" / "protocol" / "published"
TRANSCRIBED = sorted(path.stem for path in PUBLISHED.glob("*.tsv"))
NO_NUMBERS = {("msse", "8")}  # tables of texts
PRINTED = [
    (name, n)
    for name in TRANSCRIBED
    for n in catalog.paper(name).tables
    if (name, n) not in NO_NUMBERS
]
SETTINGS = [
    (name, n) for name, n in PRINTED if isinstance(catalog.paper(name).tables[n], SettingsTable)
]


def transcription(name):
    """{number: (labels of columns, labels of rows, numbers of rows)} of a paper."""
    tables = {}
    for block in (PUBLISHED / f"{name}.tsv").read_text(encoding="utf-8").split("# table ")[1:]:
        number, (_, *columns), *rows = (line.split("\t") for line in block.splitlines())
        tables[number[0]] = columns, [label for label, *_ in rows], [values for _, *values in rows]
    return tables


def held(table):
    """The same of a table of papers/, without the columns that nobody printed."""
    texts = [
        [v if isinstance(v, str) else "" if v is None else v.text for v in row.values]
        for row in table.rows
    ]
    printed = [place for place in range(len(table.columns)) if any(row[place] for row in texts)]
    numbers = [[re.sub(r"\s*±\s*", "±", row[place].strip()) for place in printed] for row in texts]
    return (
        [table.columns[place].label for place in printed],
        [row.label for row in table.rows],
        numbers,
    )


@pytest.mark.parametrize(("name", "n"), PRINTED)
def test_every_published_number_is_the_printed_one(name, n):
    assert transcription(name)[n] == held(catalog.paper(name).tables[n])


def test_the_transcription_is_of_these_tables():
    printed = {
        (name, n): numbers
        for name in TRANSCRIBED
        for n, (_, _, numbers) in transcription(name).items()
    }
    assert {*printed} == {*PRINTED} and len(SETTINGS) == 2
    assert sum(bool(v) for of_table in printed.values() for row in of_table for v in row) > 1100


def test_a_printed_number_has_its_digits():
    row = Row.model_validate({"label": "x", "missing": "y", "values": ["78.13", "2.0 ± 0.10", 7]})
    values = [(78.13, None, 0.01), (2, 0.1, 0.1), (7, None, 1)]
    assert [(v.value, v.std, v.unit) for v in row.values] == [
        pytest.approx(expected) for expected in values
    ]


@pytest.mark.parametrize(("name", "n"), SETTINGS)
def test_settings_are_the_printed_ones(name, n):
    for row in catalog.paper(name).tables[n].rows:
        ours = grids.recipe_values(name, f"table{n}", row.param)
        assert [float(v) for v in ours] == [float(v) for v in row.values], row.label


def test_a_setting_may_be_of_a_component(monkeypatch):
    table = grids.find_grid("msse", "table5")
    columns = [c.model_copy(update={"run": Recipe(method="micse")}) for c in table.columns[:1]]
    monkeypatch.setattr(
        grids, "find_grid", lambda *_: table.model_copy(update={"columns": columns})
    )
    assert grids.recipe_values("msse", "table5", "ami.weight") == [2.5e-3]
    for wrong in ("ami.wieght", "amii.weight"):
        with pytest.raises(
            BadInput, match=r"papers/msse\.yaml: line \d+: tables\.5\..*'ami.weight'"
        ):
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
REFUSED = {
    "a value too many": (
        '["1.00", null]',
        '["1.00", null, null]',
        "tables.1",
        "one: 3 values for 2 columns",
    ),
    "a setting too many": (
        '["64"]',
        '["64", "64"]',
        "tables.2",
        "Batch size: 2 values for 1 columns",
    ),
    "no number": ("2.00±0.10", "2,00", "tables.1", "rows.1.values.0", "'2,00'"),
    "neither run nor missing": (
        "missing: cited only, ",
        "",
        "tables.1",
        "two: needs either `run`, or `missing`",
    ),
    "unknown column of a difference": (
        "delta: STS-B",
        "delta: STSB",
        "0 columns have the label 'STSB'",
    ),
    "difference without a baseline": (
        "    baseline: one\n",
        "",
        "tables.1",
        "`delta` needs a `baseline`",
    ),
    "baseline of two rows": ("label: two", "label: one", "tables.1", "2 rows have the label 'one'"),
    "column of nothing": (
        "- {label: STS-B, task: STS-B}",
        "- {label: STS-B}",
        "columns.0",
        "exactly one of `task`",
    ),
    "source": (
        "source: measured",
        "source: mesured",
        "tables.1",
        "source",
        "'mesured'",
        "'measured'",
    ),
    "kind of a table": ("kind: settings", "kind: setings", "tables.2", "'settings'"),
    "claim of nothing": (
        'table: "1", ',
        "",
        "claims.0",
        "'one is better': needs either `table` or `figure`",
    ),
    "two sizes of a difference": (
        'by: "1.0"',
        'by: "1.0", less_than: "2.0"',
        "claims.0",
        "needs at most one of `by`",
    ),
    "a limit of what is above": (
        'by: "1.0"',
        'less_than: "1.0"',
        "claims.0",
        "needs `relation: comparable`",
    ),
    "a size of what is comparable": (
        'by: "1.0"',
        'by: "1.0", relation: comparable',
        "claims.0",
        "`relation: above`",
    ),
    "a deviation on average": (
        'by: "1.0"',
        "statistic: std, on_average: true",
        "claims.0",
        "`statistic: std`",
    ),
}


@pytest.mark.parametrize(
    ("old", "new", "parts"), [(a, b, p) for a, b, *p in REFUSED.values()], ids=REFUSED
)
def test_what_does_not_fit_is_one_clear_message(old, new, parts, tmp_path):
    file = tmp_path / "small.yaml"
    file.write_text(SMALL, encoding="utf-8")
    assert old in SMALL and read_yaml(file, Paper).claims[0].by.unit == pytest.approx(0.1)
    file.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        read_yaml(file, Paper)
    message = str(refused.value)
    assert message.startswith(f"{file}: ") and "\n" not in message and "(got {" not in message
    for part in parts:
        assert part in message, message
