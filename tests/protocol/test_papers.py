"""The papers as data: every published number against a second transcription, and what the schema refuses.

tests/protocol/published/*.tsv were made from the papers by another person than papers/*.yaml: blocks of `# table N`,
rows, columns and labels as in papers/. A paper without one has no second transcription.
"""

import re

import pytest

from csebench.base.errors import BadInput
from csebench.base.files import read_yaml
from csebench.base.project import ROOT
from csebench.plan import catalog, grids, targets
from csebench.plan.papers import Paper, Recipe, Row, SettingsTable

PUBLISHED = ROOT / "tests" / "protocol" / "published"
TRANSCRIBED = sorted(path.stem for path in PUBLISHED.glob("*.tsv"))
# of papers that are there as a whole
TABLES = {"micse": range(1, 5), "infocse": range(1, 13), "informin_cl": range(2, 8), "msse": range(1, 9)}
FIGURES = {"micse": range(3, 10), "infocse": (), "informin_cl": (2, 3), "msse": range(4, 9)}
NO_NUMBERS = {("msse", "8")}  # tables of texts
SETTINGS = [
    (p, f"table{n}") for p in TABLES for n, t in catalog.paper(p).tables.items() if isinstance(t, SettingsTable)
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
    texts = [[v if isinstance(v, str) else "" if v is None else v.text for v in row.values] for row in table.rows]
    printed = [place for place in range(len(table.columns)) if any(row[place] for row in texts)]
    numbers = [[re.sub(r"\s*±\s*", "±", row[place].strip()) for place in printed] for row in texts]
    return [table.columns[place].label for place in printed], [row.label for row in table.rows], numbers


@pytest.mark.parametrize(
    ("name", "n"), [(p, n) for p in TRANSCRIBED for n in catalog.paper(p).tables if (p, n) not in NO_NUMBERS]
)
def test_every_published_number_is_the_printed_one(name, n):
    assert transcription(name)[n] == held(catalog.paper(name).tables[n])


def test_the_transcription_is_of_these_tables():
    printed = {(name, n): numbers for name in TRANSCRIBED for n, (_, _, numbers) in transcription(name).items()}
    assert {*printed} == {(p, n) for p in TRANSCRIBED for n in catalog.paper(p).tables} - NO_NUMBERS
    assert sum(bool(v) for of_table in printed.values() for row in of_table for v in row) > 1100


@pytest.mark.parametrize(
    ("text", "value", "std", "unit"), [("78.13", 78.13, None, 0.01), ("2.0 ± 0.10", 2, 0.1, 0.1), (7, 7, None, 1)]
)
def test_a_printed_number_has_its_digits(text, value, std, unit):
    (row,) = [Row.model_validate({"label": "x", "missing": "y", "source": "measured", "values": [text]})]
    assert (row.values[0].value, row.values[0].std, row.values[0].unit) == pytest.approx((value, std, unit))


@pytest.mark.parametrize(("name", "grid"), SETTINGS)
def test_settings_are_the_printed_ones(name, grid):
    table = grids.find_grid(name, grid)
    ours = {row.label: [float(v) for v in grids.recipe_values(name, grid, row.param)] for row in table.rows}
    assert ours == {row.label: [float(v) for v in row.values] for row in table.rows}


def test_a_setting_may_be_of_a_component(monkeypatch):
    table = grids.find_grid("msse", "table5")
    columns = [c.model_copy(update={"run": Recipe(method="micse")}) for c in table.columns[:1]]
    monkeypatch.setattr(grids, "find_grid", lambda *_: table.model_copy(update={"columns": columns}))
    assert grids.recipe_values("msse", "table5", "ami.weight") == [2.5e-3]
    near_names = {"ami.wieght": "'ami.weight'", "amii.weight": "'ami.weight'", "batch_sise": "'batch_size'"}
    for wrong, near in near_names.items():
        with pytest.raises(BadInput, match=rf"papers/msse\.yaml: line \d+: tables\.5\..*{near}"):
            grids.recipe_values("msse", "table5", wrong)


def test_every_numbered_table_and_data_figure_is_there():
    papers = {name: catalog.paper(name) for name in TABLES}
    assert {n: sorted(map(int, paper.tables)) for n, paper in papers.items()} == {n: [*k] for n, k in TABLES.items()}
    assert {n: sorted(map(int, paper.figures)) for n, paper in papers.items()} == {n: [*k] for n, k in FIGURES.items()}
    assert len(SETTINGS) == 2


def test_a_table_says_what_it_is_of():
    for name, grid in [(p, n) for p in TRANSCRIBED for n in targets.grid_names(p)]:
        table = grids.find_grid(name, grid)
        assert table.title and table.caption and (table.axis if grid.startswith("figure") else table.section), grid


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
figures:
  "1":
    kind: bars
    title: A figure
    axis: Spearman x 100
    columns: [{label: STS-B, task: STS-B}]
    rows: [{label: one, run: {method: simcse}, source: measured, values: [null]}]
claims:
  - {quote: one is better, section: "4", table: "1", row: one, versus: [two], columns: [STS-B], by: "1.0"}
"""
REFUSED = {
    "a value too many": ('["1.00", null]', '["1.00", null, null]', "tables.1", "one: 3 values for 2 columns"),
    "a value too few": ('["2.00±0.10", null]', '["2.00±0.10"]', "tables.1", "two: 1 values for 2 columns"),
    "a value too many in a figure": ("values: [null]", "values: [null, null]", "figures.1", "2 values for 1 columns"),
    "a setting too many": ('["64"]', '["64", "64"]', "tables.2", "Batch size: 2 values for 1 columns"),
    "no number": ("2.00±0.10", "2,00", "tables.1", "rows.1.values.0", "'2,00'"),
    "neither run nor missing": ("missing: cited only, ", "", "tables.1", "two: needs either `run`, or `missing`"),
    "run and missing": ("missing:", "run: {method: bert}, missing:", "tables.1", "two: needs either"),
    "unknown column of a difference": (
        "delta: STS-B",
        "delta: STSB",
        "tables.1",
        "change: `delta` needs exactly one column",
    ),
    "difference without a baseline": ("    baseline: one\n", "", "tables.1", "change: `delta` needs", "`baseline`"),
    "baseline that is no row": ("baseline: one", "baseline: three", "tables.1", "baseline: exactly one", "'three'"),
    "baseline of two rows": ("label: two", "label: one", "tables.1", "baseline: exactly one row", "'one'"),
    "column of nothing": (
        "- {label: STS-B, task: STS-B}", "- {label: STS-B}", "columns.0", "exactly one of `task`, `delta`, `mean`"
    ),
    "column of two things": ("task: STS-B}\n", "task: STS-B, mean: true}\n", "tables.1", "columns.0", "one of"),
    "source": ("source: measured", "source: mesured", "tables.1", "source", "'mesured'", "'measured'"),
    "kind of a table": ("kind: settings", "kind: setings", "tables.2", "'settings'"),
    "no axis": ("    axis: Spearman x 100\n", "", "figures.1.axis", "required"),
    "claim of nothing": ('table: "1", ', "", "claims.0", "'one is better': needs either `table` or `figure`"),
    "claim of two things": ('table: "1"', 'table: "1", figure: "1"', "claims.0", "needs either `table` or `figure`"),
    "two sizes of a difference": ('by: "1.0"', 'by: "1.0", less_than: "2.0"', "claims.0", "needs at most one of `by`"),
    "a limit of what is above": ('by: "1.0"', 'less_than: "1.0"', "claims.0", "needs `relation: comparable`"),
    "a size of what is comparable": ('by: "1.0"', 'by: "1.0", relation: comparable', "claims.0", "`relation: above`"),
    "unknown relation": ('by: "1.0"', "relation: equal", "claims.0.relation", "'comparable'"),
    "unknown key of a claim": ("by:", "buy:", "claims.0.buy: unknown key", "'by'"),
    "a deviation on average": ('by: "1.0"', "statistic: std, on_average: true", "claims.0", "`statistic: std`"),
    "a comparable deviation": ('by: "1.0"', "statistic: std, relation: comparable", "claims.0", "`statistic: std`"),
    "stated difference": ('by: "1.0"', "by: much", "claims.0.by", "'much'"),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "parts"), [(a, b, p) for a, b, *p in REFUSED.values()], ids=REFUSED)
def test_what_does_not_fit_is_one_clear_message(old, new, parts, tmp_path):
    """Of one line, which does not repeat the whole table."""
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
