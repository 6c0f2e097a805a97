"""The papers as data: every published number against a second transcription, the claims, and what the schema refuses.

tests/protocol/published/*.tsv were made from the papers by another person than papers/*.yaml, blocks of `# table N`.
"""

import re

import pytest

from csebench.base.errors import BadInput
from csebench.base.files import read_yaml
from csebench.base.project import ROOT
from csebench.plan import catalog, grids, targets
from csebench.plan.papers import Paper, Published, Recipe, SettingsTable
from csebench.report.claims import judge

TABLES = {"micse": range(1, 5), "infocse": range(1, 13), "informin_cl": range(2, 8), "msse": range(1, 9)}
FIGURES = {"micse": range(3, 10), "infocse": (), "informin_cl": (2, 3), "msse": range(4, 9)}
NO_NUMBERS = {("msse", "8")}  # tables of texts
EXCHANGED = {("infocse", "3"), ("infocse", "7"), ("infocse", "8"), ("informin_cl", "7")}  # rows and columns
BLOCKS = {("msse", "6")}  # pairs of lines below one another, settings and their values
LETTERS = {"λ": "lambda", "β": "beta", "τ": "tau", "Δ": "delta"}
CLAIMS = [(p, claim) for p in catalog.paper_names() for claim in catalog.paper(p).claims]
SETTINGS = [
    (p, f"table{n}") for p in TABLES for n, t in catalog.paper(p).tables.items() if isinstance(t, SettingsTable)
]


# ---------------------------------------------------------------- every published number


def transcription(name):
    """{number: (labels of columns, [(label of a row, numbers)])} of a paper, rows and columns as papers/ has them."""
    found, lines = (
        {},
        (ROOT / "tests" / "protocol" / "published" / f"{name}.tsv").read_text(encoding="utf-8").splitlines(),
    )
    for line in lines:
        if line.startswith("# table "):
            block = found[line.removeprefix("# table ")] = []
        else:
            block.append(line.split("\t"))
    return {number: oriented(name, number, block) for number, block in found.items()}


def oriented(name, number, block):
    if (name, number) in BLOCKS:
        pairs = zip(block[::2], block[1::2], strict=True)
        rows = [(f"{x[0]} {own}", [v]) for x, y in pairs for own, v in zip(x[1:], y[1:], strict=True)]
        return [block[1][0]], rows
    if (name, number) in EXCHANGED:
        block = [list(line) for line in zip(*block, strict=True)]
    head, *rows = block
    if head[0] == "PLM":
        head, rows = head[1:], [[f"{model}-{plm}", *values] for plm, model, *values in rows]
    return head[1:], [(label, values) for label, *values in rows]


def held(table):
    """The same of a table of papers/, without the columns that nobody printed."""
    texts = [[v if isinstance(v, str) else "" if v is None else v.text for v in row.values] for row in table.rows]
    printed = [place for place in range(len(table.columns)) if any(row[place] for row in texts)]
    rows = [(row.label, [own[place] for place in printed]) for row, own in zip(table.rows, texts, strict=True)]
    return [table.columns[place].label for place in printed], rows


def alike(one, other):
    """Whether labels are the same but for marks, spaces and what only one of them adds."""
    one, other = (
        re.sub(r"[^a-z0-9.]", "", "".join(LETTERS.get(letter, letter) for letter in text).lower()).strip(".")
        for text in (one, other)
    )
    return bool(one and other) and (one in other or other in one)


def number(text):
    return re.sub(r"\s*±\s*", "±", text.strip())


def off(name, tables, printed):
    """Where a paper's tables and the transcription differ."""
    wanted = {n for n in tables if (name, n) not in NO_NUMBERS}
    found = [f"table {n}: only one side has it" for n in wanted ^ set(printed)]
    for n in sorted(wanted & set(printed)):
        (columns, rows), (their_columns, their_rows) = held(tables[n]), printed[n]
        if len(columns) != len(their_columns) or not all(map(alike, columns, their_columns)):
            found.append(f"table {n}: columns {columns} against {their_columns}")
        if len(rows) != len(their_rows):
            found.append(f"table {n}: {len(rows)} rows against {len(their_rows)}")
        for (label, values), (their_label, their_values) in zip(rows, their_rows, strict=False):
            if not alike(label, their_label):
                found.append(f"table {n}: {label} against {their_label}")
            if [number(v) for v in values] != [number(v) for v in their_values]:
                found.append(f"table {n}: {label}: {values} against {their_values}")
    return found


@pytest.mark.parametrize("name", TABLES)
def test_every_published_number_is_the_printed_one(name):
    printed = transcription(name)
    assert off(name, catalog.paper(name).tables, printed) == []
    assert sum(len(rows) for _, rows in printed.values()) == sum(
        len(t.rows) for n, t in catalog.paper(name).tables.items() if (name, n) not in NO_NUMBERS
    )


def test_the_transcription_is_not_empty():
    numbers = [v for name in TABLES for _, rows in transcription(name).values() for _, own in rows for v in own if v]
    assert len(numbers) > 1100 and sum("±" in v for v in numbers) == 27 + 12 + 12 + 28


@pytest.mark.parametrize("name", TABLES)
def test_one_changed_digit_is_found(name):
    """In every cell, the last digit."""
    printed = transcription(name)
    for n, table in catalog.paper(name).tables.items():
        for i, row in enumerate(table.rows):
            for j, value in enumerate(row.values):
                if value is None:
                    continue
                changed = list(row.values)
                text = value if isinstance(value, str) else value.text
                text = text[:-1] + str((int(text[-1]) + 1) % 10)
                changed[j] = text if isinstance(value, str) else Published(value=value.value, text=text)
                rows = list(table.rows)
                rows[i] = row.model_copy(update={"values": changed})
                own = {n: table.model_copy(update={"rows": rows})}
                (message,) = off(name, own, {n: printed[n]})
                assert message.startswith(f"table {n}: {row.label}: ")


@pytest.mark.parametrize("name", TABLES)
def test_what_one_side_lacks_is_found(name):
    tables, printed = catalog.paper(name).tables, transcription(name)
    for n in printed:
        assert off(name, {k: t for k, t in tables.items() if k != n}, printed)
        assert off(name, tables, {k: t for k, t in printed.items() if k != n})
        fewer = tables[n].model_copy(update={"rows": tables[n].rows[:-1]})
        assert off(name, tables | {n: fewer}, printed)
        columns, rows = printed[n]
        assert off(name, tables, printed | {n: (columns, rows[:-1])})
        assert off(name, tables, printed | {n: (columns, [rows[-1], *rows[:-1]])}), "the order of rows counts"


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
        with pytest.raises(BadInput, match=f"papers/msse.yaml: table5.*{near}"):
            grids.recipe_values("msse", "table5", wrong)


# ---------------------------------------------------------------- what there is


def test_every_numbered_table_and_data_figure_is_there():
    assert {p: sorted(map(int, catalog.paper(p).tables)) for p in TABLES} == {p: sorted(n) for p, n in TABLES.items()}
    assert {p: sorted(map(int, catalog.paper(p).figures)) for p in FIGURES} == {
        p: sorted(n) for p, n in FIGURES.items()
    }
    assert sum(map(len, TABLES.values())) == 30 and sum(map(len, FIGURES.values())) == 14
    assert len(SETTINGS) == 2


@pytest.mark.parametrize(("name", "grid"), [(p, n) for p in TABLES for n in targets.grid_names(p)])
def test_a_table_says_what_it_is_of(name, grid):
    found = grids.find_grid(name, grid)
    assert found.title and found.caption
    assert found.axis if grid.startswith("figure") else found.section


# ---------------------------------------------------------------- claims


def test_claims_there_are():
    assert len(CLAIMS) >= 40 and {p for p, _ in CLAIMS} == set(TABLES)
    written = [(p, claim.model_dump_json()) for p, claim in CLAIMS]
    assert len(set(written)) == len(written), "none twice"


@pytest.mark.parametrize(("name", "claim"), CLAIMS, ids=lambda v: v if isinstance(v, str) else v.quote[:30])
def test_a_claim_names_what_exists(name, claim):
    assert 0 < len(claim.quote.strip()) <= 120 and claim.section
    here = grids.find_grid(name, claim.place)
    there = catalog.paper(name).tables[claim.versus_table] if claim.versus_table else here
    here.row(claim.row)
    for label in claim.columns:
        here.column(label)
        there.column(claim.versus_column or label)
    others = [] if claim.versus == "others" else claim.versus
    for label in (*claim.exclude, *others):
        there.row(label)
    assert claim.columns and (others or claim.versus == "others")
    assert claim.versus != "others" or set(r.label for r in there.rows) - {claim.row, *claim.exclude}
    assert not (claim.exclude and others), "`exclude` leaves out of `others`"


@pytest.mark.parametrize("name", TABLES)
def test_claims_of_printed_numbers_are_judged_on_them(name):
    """Those of figures are not: their values are drawn, not printed."""
    judged = [judge(name, claim, "smoke") for claim in catalog.paper(name).claims]
    untested = {j.claim.place for j in judged if j.published.detail == "no numbers to compare"}
    assert all(place.startswith("figure") or (name, place[5:]) in NO_NUMBERS for place in untested), untested


# ---------------------------------------------------------------- what the schema refuses


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
    "stated difference": ('by: "1.0"', "by: much", "claims.0.by", "'much'"),
}  # fmt: skip


def test_the_small_paper_is_read(tmp_path):
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    assert read_yaml(tmp_path / "small.yaml", Paper).claims[0].by.unit == pytest.approx(0.1)


@pytest.mark.parametrize(("old", "new", "parts"), [(a, b, p) for a, b, *p in REFUSED.values()], ids=REFUSED)
def test_what_does_not_fit_is_one_clear_message(old, new, parts, tmp_path):
    message = refusal(old, new, tmp_path)
    assert message.startswith(f"{tmp_path / 'small.yaml'}: ") and "\n" not in message
    for part in parts:
        assert part in message, message


def test_a_message_does_not_repeat_the_whole_table(tmp_path):
    for old, new, *_ in REFUSED.values():
        message = refusal(old, new, tmp_path)
        assert "(got {" not in message and "lambda" not in message, message


def refusal(old, new, folder):
    path = folder / "small.yaml"
    assert old in SMALL
    path.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadInput) as refused:
        read_yaml(path, Paper)
    return str(refused.value)
