"""The schema of `papers/*.yaml`: tables, figures, published numbers, claims and errata.

A table or a figure is a grid: rows say what is run, columns say which score is shown. This module
checks a file by itself. csebench/plan/grids.py checks that the methods and evaluators it names
exist, and plans the runs.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_validator,
)

from csebench.base.errors import BadInput, look_up
from csebench.plan.schema.declarations import Line, Strict, Url, Value

SEEDS_NEEDED = 3  # of our runs, for a verdict on a published value
PRINTED = r"(-?\d+(?:\.\d+)?)(?:\s*±\s*(\d+(?:\.\d+)?))?"


# ---------------------------------------------------------------- published numbers


class Published(Strict):
    """A number as a paper prints it, in the paper's units."""

    value: float
    std: float | None = None
    text: str  # as printed, with spaces: `78.13 ± 0.31`

    @property
    def unit(self) -> float:
        """One unit of the last printed digit: 0.01 for `78.13`."""
        number = self.text.split("±")[0].strip()
        decimals = number.partition(".")[2]
        return 10.0 ** -len(decimals)

    @classmethod
    def __get_pydantic_json_schema__(cls, *_):
        """Describe what a YAML file has in place of this model: a number, or a text."""
        return {"type": ["string", "number"], "pattern": f"^{PRINTED}$"}


def _parse_published(text) -> Published:
    if isinstance(text, Published):
        return text
    match = re.fullmatch(PRINTED, str(text).strip())
    if match is None:
        raise ValueError(f"not a number, nor a number ± a number: {text!r}")
    number, deviation = match.groups()
    if deviation is None:
        return Published(value=float(number), text=number)
    return Published(value=float(number), std=float(deviation), text=f"{number} ± {deviation}")


PublishedValue = Annotated[Published, BeforeValidator(_parse_published)]
PrintedSeeds = Annotated[int, Field(ge=1, le=10_000)]
Factor = Annotated[float, Field(gt=0)]
Digits = Annotated[int, Field(ge=0, le=9)]


# ---------------------------------------------------------------- rows and columns


class Recipe(Strict):
    """How a row is run: a method, and the settings that differ from its defaults."""

    method: str
    variant: str | None = None
    params: dict[str, Value] = {}
    components: dict[str, dict[str, Value]] = {}
    encoder: str | None = None  # role; None: the encoder of the table
    # parameters that the table varies; a scale's settings do not override them
    sweep: dict[str, Value] = {}


class EvidenceKey(Strict):
    """The method whose published runs count for a row (csebench/plan/catalog/evidence.py)."""

    method: str  # a name of evidence/methods.yaml
    encoder: str | None = None  # None: the encoder of the row


class Row(Strict):
    """A row of a table or figure: its published values, and its recipe or the reason why it has
    none."""

    label: Line
    run: Recipe | None = None
    missing: str | None = None  # why nothing is run
    evidence: EvidenceKey | None = None  # None: the recipe tells
    # how the authors obtained the values; unknown until somebody has looked it up
    source: Literal["measured", "copied", "rerun", "unknown"] = "unknown"
    origin: str | None = Field(default=None, alias="from")  # the paper that values are copied from
    note: str | None = None
    values: list[PublishedValue | None] = []  # one per column; None: nothing is published

    @model_validator(mode="after")
    def is_run_or_missing(self):
        has_run = self.run is not None
        has_reason = self.missing is not None
        if has_run == has_reason:
            raise ValueError(
                f"{self.label}: needs either `run`, or `missing` with the reason why nothing is run"
            )
        is_copied = self.source == "copied"
        has_origin = self.origin is not None
        if is_copied != has_origin:
            raise ValueError(
                f"{self.label}: `source: copied` and `from`, the paper copied from, go together"
            )
        return self


class Column(Strict):
    """A column shows the score of a task, or a value that is derived from other columns."""

    label: Line
    task: str | None = None  # None: the column is derived
    evaluator: str | None = None  # None: the evaluator of the table
    metric: str | None = None  # None: the main metric of the evaluator
    size: str = "100%"  # of the training set
    sweep: dict[str, Value] = {}  # added to the sweep of the row
    seeds: PrintedSeeds | None = None  # that a published value averages; None: as the table says
    delta: str | None = None  # label of a column: shows its difference to the baseline row
    mean: bool = False  # shows the mean of the columns before it
    lower: bool = False  # whether less is better
    factor: Factor | None = None  # None: the factor of the table
    digits: Digits | None = None  # None: the digits of the table

    @model_validator(mode="after")
    def shows_one_thing(self):
        has_task = self.task is not None
        has_delta = self.delta is not None
        if [has_task, has_delta, self.mean].count(True) != 1:
            raise ValueError(f"{self.label}: needs exactly one of `task`, `delta`, `mean`")
        return self


def _fits_columns(row, info: ValidationInfo):
    """Check that a row has a value per column, or none at all, and fill in None for the latter."""
    columns = info.data.get("columns")
    if columns is None:  # the columns are invalid, which has a message of its own
        return row
    if row.values and len(row.values) != len(columns):
        raise ValueError(f"{row.label}: {len(row.values)} values for {len(columns)} columns")
    if not row.values:
        row.values.extend([None] * len(columns))
    return row


# ---------------------------------------------------------------- questions


class Premise(Strict):
    """A loss of one row that a question takes for granted.

    The row has to score clearly less in some columns than in another. Without this loss, nothing
    can be won back in these columns.
    """

    row: str
    most: str  # label of a column
    less: list[str] = Field(min_length=1)  # labels of columns; their mean counts
    least: float = Field(ge=0)  # points; the loss must be shown to be larger
    printed: str  # how large the loss is in the paper, and where


OTHERS = "others"


class Family(Strict):
    """A question that a table or figure answers by comparing rows.

    Its p-values are corrected by Holm over the family. The primary question of a table is a single
    comparison, and its answer stands first on the page.
    """

    question: Line
    # (row, the row that it is compared with); OTHERS in place of the first: every other row
    rows: list[tuple[str, str]]
    # average: the column with the average, or the mean of all columns if there is no such column
    # each: every column that is not derived, by itself
    # a list of labels: the mean of these columns
    columns: Literal["average", "each"] | list[str] = "average"
    primary: bool = False
    # whether the rows are expected to be equal, as for a setting that should not matter
    equality: bool = False
    premise: Premise | None = None  # must hold in our runs, or the question cannot be asked
    first_page: str | None = None  # the question of a scale's first page that the family answers

    @property
    def is_one_comparison(self) -> bool:
        return len(self.rows) == 1 and self.rows[0][0] != OTHERS and self.columns != "each"

    def named_rows(self) -> list[str]:
        """List the labels of rows that the question names."""
        labels = []
        for pair in self.rows:
            labels += [label for label in pair if label != OTHERS]
        if self.premise:
            labels.append(self.premise.row)
        return labels

    def named_columns(self) -> list[str]:
        """List the labels of columns that the question names."""
        labels = []
        if isinstance(self.columns, list):
            labels += self.columns
        if self.premise:
            labels += [self.premise.most, *self.premise.less]
        return labels


# ---------------------------------------------------------------- tables and figures of scores


class Grid(Strict):
    """Rows of runs and columns of scores: the common part of a table and a figure."""

    title: Line
    caption: str = ""
    section: str | None = None
    encoder: str = "bert-base"  # role of the encoder, for rows that name none
    evaluator: str = "sts"  # for columns that name none
    seeds: PrintedSeeds = 1  # that a published value averages
    run_seeds: int | None = Field(default=None, ge=1)  # of our runs; None: the seeds of the scale
    factor: Factor = 100  # printed value / score
    digits: Digits = 2  # printed after the decimal point
    baseline: str | None = None  # label of the row that is subtracted in differences
    columns: list[Column]
    rows: list[Annotated[Row, AfterValidator(_fits_columns)]]
    compare: list[Family] = []
    notes: list[str] = []

    @model_validator(mode="after")
    def labels_fit(self):
        deltas = [column.delta for column in self.columns if column.delta is not None]
        if deltas and self.baseline is None:
            raise ValueError("`delta` needs a `baseline`")
        if self.baseline is not None:
            self.row(self.baseline)
        for label in deltas:
            self.column(label)
        for family in self.compare:
            self.check_family(family)
        primary_questions = [family for family in self.compare if family.primary]
        if len(primary_questions) > 1:
            raise ValueError("compare: one question can be primary")
        return self

    def check_family(self, family: Family) -> None:
        """Raise ValueError if a question cannot be asked of these rows and columns."""
        where = f"compare: {family.question}"
        for row, against in family.rows:
            if row == against:
                raise ValueError(f"{where}: {row} is compared with itself")
        if family.primary and not family.is_one_comparison:
            raise ValueError(f"{where}: the primary question is one comparison")
        for label in family.named_rows():
            self.row(label)
        for label in family.named_columns():
            self.column(label)

    def row(self, label: str) -> int:
        """Return the index of the only row with a label.

        Raises:
            ValueError: no row, or more than one, has the label.
        """
        return _index("rows", self.rows, label)

    @property
    def baseline_row(self) -> int:
        """Index of the row that is subtracted in differences.

        Raises:
            ValueError: the grid has no baseline.
        """
        return self.row(self.baseline or "")

    def column(self, label: str) -> int:
        """Return the index of the only column with a label.

        Raises:
            ValueError: no column, or more than one, has the label.
        """
        return _index("columns", self.columns, label)

    def column_evaluator(self, column: Column) -> str:
        return column.evaluator or self.evaluator

    def column_digits(self, column: Column) -> int:
        if column.digits is None:
            return self.digits
        return column.digits


def _index(kind: str, items: list, label: str) -> int:
    labels = [item.label for item in items]
    if labels.count(label) != 1:
        raise ValueError(
            f"{labels.count(label)} {kind} have the label {label!r}; the labels are {labels}"
        )
    return labels.index(label)


class Table(Grid):
    kind: Literal["scores"] = "scores"


FIGURES_OF_SCORES = ("curves", "bars", "scatter", "training")


class Figure(Grid):
    """A data figure: a grid of cells, and how csebench/report/figures/scores.py draws it.

    - curves: each row is a line over the sizes of its columns, with error bars of one standard
      deviation over seeds. With a baseline, a second panel shows the differences to it.
    - bars: each row is a dot with an error bar in each column. With a baseline, the dots are the
      differences to it.
    - scatter: each row is a point. Its first two columns are x and y, a third one is in the legend.
    - training: each row is the path of its uniformity and alignment over the steps of training.
    - Any other kind is the name of a panel that an evaluator draws. It has one panel per row, from
      the per-item values of the row's run.
    """

    # one of FIGURES_OF_SCORES, or a panel that an evaluator declares; grids.plan_grid checks it
    kind: str
    axis: str  # title of the value axis, with the unit


# ---------------------------------------------------------------- tables of settings


class SettingsColumn(Strict):
    """A run whose hyper-parameters a table of settings prints."""

    label: Line
    run: Recipe


class SettingsRow(Strict):
    """A hyper-parameter, and its printed value for each run."""

    label: Line
    param: str  # of the method; `ami.weight` is a parameter of a component
    values: list[str | None] = []  # as printed


class SettingsTable(Strict):
    """A printed table of hyper-parameters. Each value is compared with the value in the recipe of
    its column."""

    kind: Literal["settings"]
    title: Line
    caption: str = ""
    section: str | None = None
    encoder: str = "bert-base"
    columns: list[SettingsColumn]
    rows: list[Annotated[SettingsRow, AfterValidator(_fits_columns)]]
    notes: list[str] = []
    compare: ClassVar[list[Family]] = []  # settings are not compared between rows


def _kind(table) -> str | None:
    if isinstance(table, dict):
        return table.get("kind", "scores")
    return getattr(table, "kind", None)


AnyTable = Annotated[Table, Tag("scores")] | Annotated[SettingsTable, Tag("settings")]


# ---------------------------------------------------------------- claims and errata


class Claim(Strict):
    """A conclusion that a paper draws from a table, as a predicate over its cells.

    In each of `columns` (with `on_average`: in their mean), the value of `row` is above the value
    of every row of `versus`. `relation` can state something else in place of above. Claims with the
    same `quote` are rows of one sentence, which has one verdict.
    """

    quote: Line  # from the paper, a few words
    section: str
    table: str | None = None
    figure: str | None = None
    row: str
    versus: list[str] | Literal["others"] = "others"  # labels of rows; `others`: every other row
    exclude: list[str] = []  # rows that `others` leaves out
    columns: list[str]
    versus_column: str | None = None  # column of the other cell; None: the same column
    versus_table: str | None = None  # table of the other cell, in the same paper; None: this one
    lower: bool = False  # whether less counts as above, and as better
    relation: Literal["above", "comparable", "not worse"] = "above"  # not worse: on par or better
    statistic: Literal["value", "std"] = "value"  # what is compared
    on_average: bool = False
    # the difference that the paper states, with the digits that it states
    by: PublishedValue | None = None
    up_to: PublishedValue | None = None  # the largest difference that the paper states
    # with `comparable`: the bound that a difference in either direction stays below
    less_than: PublishedValue | None = None

    @model_validator(mode="after")
    def states_one_thing(self):
        problem = self.contradiction()
        if problem is not None:
            raise ValueError(f"{self.quote!r}: {problem}")
        return self

    def contradiction(self) -> str | None:
        """Say which keys of the claim do not go together. Return None if all do."""
        is_above = self.relation == "above"
        amounts = [self.by, self.up_to, self.less_than]
        stated_amounts = [amount for amount in amounts if amount is not None]
        if (self.table is None) == (self.figure is None):
            return "needs either `table` or `figure`"
        if len(stated_amounts) > 1:
            return "needs at most one of `by`, `up_to`, `less_than`"
        if self.less_than is not None and self.relation != "comparable":
            return "`less_than` needs `relation: comparable`"
        if (self.by is not None or self.up_to is not None) and not is_above:
            return "`by` and `up_to` are of `relation: above`"
        if self.statistic == "std" and (self.on_average or not is_above):
            return "`statistic: std` has neither `on_average` nor `relation`"
        return None

    def versus_rows(self, grid: Grid, has_row: bool) -> list[int]:
        """List the indices of the rows that `row` is compared with.

        Args:
            grid: the table or figure that has these rows.
            has_row: whether it also has `row`.

        Raises:
            ValueError: no row has a label that the claim names.
        """
        for label in self.exclude:
            grid.row(label)
        if self.versus != "others":
            indices = [grid.row(label) for label in self.versus]
            return sorted({*indices})
        excluded = {*self.exclude}
        if has_row and self.versus_column is None:
            excluded.add(self.row)  # a cell is not compared with itself
        return [index for index, row in enumerate(grid.rows) if row.label not in excluded]

    @property
    def place(self) -> str:
        """Name of the table or figure: `table2`, `figure3`."""
        if self.table:
            return f"table{self.table}"
        return f"figure{self.figure}"

    @property
    def places(self) -> list[str]:
        """Names of the tables or figures with the cells that are compared."""
        if self.versus_table:
            return [self.place, f"table{self.versus_table}"]
        return [self.place]


ErratumKind = Literal[
    "found by reading", "sentence against table", "impossible value", "inconsistent value"
]


class Erratum(Strict):
    """An error in print that no check of csebench/report/numbers/audit.py can find."""

    where: str  # table2, or a place in the text
    # if `kind` is given, the erratum replaces what the audit finds in this row at `where`
    row: str | None = None
    also: dict[str, str] = {}  # one more place, by the paper's name
    text: str
    kind: ErratumKind = "found by reading"
    # as csebench/report/numbers/audit.py defines them
    severity: Literal["serious", "notable", "minor"] = "minor"


# ---------------------------------------------------------------- a paper


def _file_name(key):
    if not re.fullmatch(r"\w+", str(key)):
        raise ValueError("must be of letters and digits, as its page is named after it: 2, A1")
    return key


# the key of a table or figure
GridName = Annotated[str, Field(pattern=r"^\w+$"), BeforeValidator(_file_name)]


def _names_cells(claim: Claim, info: ValidationInfo) -> Claim:
    """Check that the tables, rows and columns that a claim names are there."""
    if "tables" not in info.data or "figures" not in info.data:
        return claim  # they are invalid, which has a message of its own
    try:
        here = pick_grid(info.data, claim.places[0])
        there = pick_grid(info.data, claim.places[-1])
        if isinstance(here, SettingsTable) or isinstance(there, SettingsTable):
            raise ValueError("a table of settings has no values to compare")
        here.row(claim.row)
        claim.versus_rows(there, here is there)
        for label in claim.columns:
            here.column(label)
            there.column(claim.versus_column or label)
    except (BadInput, ValueError) as error:
        raise ValueError(f"{claim.quote!r}: {str(error).rstrip('.')}") from None
    return claim


def pick_grid(
    fields: Mapping[str, Any], name: str, whose: str = ""
) -> Table | SettingsTable | Figure:
    """Return `table2` or `figure3` from the fields of a paper.

    A name without a kind is the key of a table.

    Args:
        whose: ` of PAPER`, for the message.

    Raises:
        BadInput: the paper has no such table or figure.
    """
    if name.startswith("figure"):
        kind, grids = "figure", fields["figures"]
    else:
        kind, grids = "table", fields["tables"]
    return look_up(f"{kind}{whose}", name.removeprefix(kind), grids)


class Paper(Strict):
    name: str
    label: Line = ""  # short name of the method
    title: Line
    reference: Line
    url: Url | None = None
    tables: dict[GridName, Annotated[AnyTable, Discriminator(_kind)]]
    figures: dict[GridName, Figure] = {}
    claims: list[Annotated[Claim, AfterValidator(_names_cells)]] = []
    errata: list[Erratum] = []

    def claims_by_quote(self) -> dict[str, list[Claim]]:
        """Group the claims by the sentence that makes them, in the order of the file."""
        claims: dict[str, list[Claim]] = {}
        for claim in self.claims:
            claims.setdefault(claim.quote, []).append(claim)
        return claims
