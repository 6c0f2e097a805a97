"""The schema of `papers/*.yaml`: tables, figures, published numbers, claims and errata."""

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


class Published(Strict):
    """A number as a paper prints it, in the paper's units."""

    value: float
    std: float | None = None
    text: str  # as printed, with spaces: `78.13 ± 0.31`

    @property
    def unit(self) -> float:
        """One unit of the last printed digit: 0.01 for `78.13`."""
        return 10.0 ** -len(self.text.split("±")[0].strip().partition(".")[2])

    @classmethod
    def __get_pydantic_json_schema__(cls, *_):
        return {"type": ["string", "number"], "pattern": f"^{PRINTED}$"}  # as YAML files have it


def _parse_published(text) -> Published:
    if isinstance(text, Published):
        return text
    match = re.fullmatch(PRINTED, str(text).strip())
    if match is None:
        raise ValueError(f"not a number, nor a number ± a number: {text!r}")
    spaced = " ± ".join(filter(None, match.groups()))
    return Published(value=float(match[1]), std=float(match[2]) if match[2] else None, text=spaced)


PublishedValue = Annotated[Published, BeforeValidator(_parse_published)]
PrintedSeeds = Annotated[int, Field(ge=1, le=10_000)]
Factor = Annotated[float, Field(gt=0)]
Digits = Annotated[int, Field(ge=0, le=9)]


class Recipe(Strict):
    """How a row is run: a method, and what differs from its defaults."""

    method: str
    variant: str | None = None
    params: dict[str, Value] = {}
    components: dict[str, dict[str, Value]] = {}
    encoder: str | None = None  # role, where it differs from the table's
    # parameters that the table varies; a scale's settings do not override them
    sweep: dict[str, Value] = {}


class EvidenceKey(Strict):
    """Whose published runs are of a row's method (csebench/plan/catalog/evidence.py)."""

    method: str  # of evidence/methods.yaml
    encoder: str | None = None  # None: the row's


class Row(Strict):
    """A row of a table or figure: its recipe, or the reason why it has none, and the published
    values."""

    label: Line
    run: Recipe | None = None
    missing: str | None = None  # why nothing is run
    # where the recipe does not tell whose evidence is of the row
    evidence: EvidenceKey | None = None
    # how the authors obtained the values: unknown until somebody has looked it up
    source: Literal["measured", "copied", "rerun", "unknown"] = "unknown"
    origin: str | None = Field(default=None, alias="from")  # paper that copied values come from
    note: str | None = None
    values: list[PublishedValue | None] = []  # one per column; none where nothing is published

    @model_validator(mode="after")
    def is_run_or_missing(self):
        if (self.run is None) == (self.missing is None):
            raise ValueError(
                f"{self.label}: needs either `run`, or `missing` with the reason why nothing is run"
            )
        if (self.source == "copied") != (self.origin is not None):
            raise ValueError(
                f"{self.label}: `source: copied` and `from`, the paper copied from, go together"
            )
        return self


class Column(Strict):
    """What a column shows: the score of a task, or a value derived from other columns."""

    label: Line
    task: str | None = None  # None: derived
    evaluator: str | None = None  # where it differs from the table's
    metric: str | None = None  # where it differs from the evaluator's main metric
    size: str = "100%"  # of the training set
    sweep: dict[str, Value] = {}  # added to the row's
    seeds: PrintedSeeds | None = None  # behind a published value, where it differs from the table's
    delta: str | None = None  # label of a column: shows its difference to the baseline row
    mean: bool = False  # shows the mean of the columns before it
    lower: bool = False  # whether less is better
    factor: Factor | None = None  # where it differs from the table's
    digits: Digits | None = None  # where they differ from the table's

    @model_validator(mode="after")
    def shows_one_thing(self):
        if sum([self.task is not None, self.delta is not None, self.mean]) != 1:
            raise ValueError(f"{self.label}: needs exactly one of `task`, `delta`, `mean`")
        return self


def _fits_columns(row, info: ValidationInfo):
    """The check of a row: it has a value per column, or none at all, which is completed here."""
    columns = info.data.get("columns", row.values)  # without those that are invalid
    if row.values and len(row.values) != len(columns):
        raise ValueError(f"{row.label}: {len(row.values)} values for {len(columns)} columns")
    row.values.extend([None] * (len(columns) - len(row.values)))
    return row


class Premise(Strict):
    """That a row scores clearly less in some columns than in another: without it, nothing can be
    won back there."""

    row: str
    most: str  # a column
    less: list[str] = Field(min_length=1)  # columns, whose mean counts
    least: float = Field(ge=0)  # points; it must be shown to lose more
    printed: str  # how much less it is in the paper, and where


OTHERS = "others"


class Family(Strict):
    """A question that a table or figure answers by comparing rows.

    Its p-values are corrected by Holm over the family. The primary question of a table is a single
    comparison, and its answer stands first on the page.
    """

    question: Line
    # (row, the row that it is compared with); OTHERS as row: every other row
    rows: list[tuple[str, str]]
    # average: the column that is one, else the mean of
    columns: Literal["average", "each"] | list[str] = "average"
    # all; each: every column that is not derived, by itself; labels: the mean of these columns
    primary: bool = False
    # whether the question is if the rows are equal, as of a setting that should not matter
    equality: bool = False
    premise: Premise | None = None  # which must be shown here, or the question cannot be asked
    first_page: str | None = None  # the question of a scale's first page that the family answers

    @property
    def is_one_comparison(self) -> bool:
        return len(self.rows) == 1 and self.rows[0][0] != OTHERS and self.columns != "each"

    def named_rows(self) -> list[str]:
        """List the labels of rows that the question names."""
        labels = [label for pair in self.rows for label in pair if label != OTHERS]
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


class Grid(Strict):
    """Rows of runs and columns of scores: what a table and a figure have in common."""

    title: Line
    caption: str = ""
    section: str | None = None
    encoder: str = "bert-base"  # role of the encoder, for rows that name none
    evaluator: str = "sts"  # for columns that name none
    seeds: PrintedSeeds = 1  # behind a published value
    run_seeds: int | None = Field(default=None, ge=1)  # of ours; None: those of the scale
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
        if sum(family.primary for family in self.compare) > 1:
            raise ValueError("compare: one question can be primary")
        return self

    def check_family(self, family: Family) -> None:
        """Raises ValueError where a question cannot be asked of these rows and columns."""
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
        """Index of the only row with a label. Raises ValueError."""
        return _index("rows", self.rows, label)

    @property
    def baseline_row(self) -> int:
        """Index of the row that is subtracted in differences. Raises ValueError where there is
        none."""
        return self.row(self.baseline or "")

    def column(self, label: str) -> int:
        """Index of the only column with a label. Raises ValueError."""
        return _index("columns", self.columns, label)

    def column_evaluator(self, column: Column) -> str:
        return column.evaluator or self.evaluator

    def column_digits(self, column: Column) -> int:
        return self.digits if column.digits is None else column.digits


def _index(kind: str, items: list, label: str) -> int:
    labels = [item.label for item in items]
    if labels.count(label) != 1:
        raise ValueError(
            f"{labels.count(label)} {kind} have the label {label!r}; the labels are {labels}"
        )
    return labels.index(label)


class Table(Grid):
    kind: Literal["scores"] = "scores"


class SettingsColumn(Strict):
    """A run whose hyper-parameters a table of settings prints."""

    label: Line
    run: Recipe


class SettingsRow(Strict):
    """A hyper-parameter, and its printed value for each run."""

    label: Line
    param: str  # of the method; `ami.weight` of a component
    values: list[str | None] = []  # as printed


class SettingsTable(Strict):
    """A printed table of hyper-parameters: each value is compared with the value in the recipe
    of its column."""

    kind: Literal["settings"]
    title: Line
    caption: str = ""
    section: str | None = None
    encoder: str = "bert-base"
    columns: list[SettingsColumn]
    rows: list[Annotated[SettingsRow, AfterValidator(_fits_columns)]]
    notes: list[str] = []
    compare: ClassVar[list[Family]] = []  # it has no rows to compare


def _kind(table) -> str | None:
    return table.get("kind", "scores") if isinstance(table, dict) else getattr(table, "kind", None)


AnyTable = Annotated[Table, Tag("scores")] | Annotated[SettingsTable, Tag("settings")]
FIGURES_OF_SCORES = ("curves", "bars", "scatter", "training")


class Figure(Grid):
    """A data figure: a grid of cells, and how it is drawn.

    curves: each row is a line over the sizes of its columns, with a band of one deviation over
    seeds; with a baseline, a second panel shows the differences to it. bars: each row is a bar in
    each column; with a baseline, bars of the differences. scatter: each row is a point; its columns
    are x, y and colour. training: each row is the path of alignment and uniformity over steps. Any
    other kind is a panel that an evaluator draws from the per-item values of each row's run, one
    panel per row.
    """

    # of FIGURES_OF_SCORES, or a panel that an evaluator declares (checked by grids.plan_grid)
    kind: str
    axis: str  # title of the value axis, with the unit


class Claim(Strict):
    """A conclusion that a paper draws from a table, as a predicate over its cells.

    In each of `columns` (with `on_average`: in their mean) the value of `row` is above that of
    every row of `versus`, or `relation` says what else. Claims with the same `quote` are rows of
    one sentence, which has one verdict.
    """

    quote: Line  # from the paper, a few words
    section: str
    table: str | None = None
    figure: str | None = None
    row: str
    versus: list[str] | Literal["others"] = "others"  # labels of rows; `others`: every other row
    exclude: list[str] = []  # rows that `others` leaves out
    columns: list[str]
    versus_column: str | None = None  # column of the other cell, where it is another one
    versus_table: str | None = None  # table of the other cell, where it is another one of the paper
    lower: bool = False  # less is meant by above, and by better
    relation: Literal["above", "comparable", "not worse"] = "above"  # not worse: on par or better
    statistic: Literal["value", "std"] = "value"  # what is compared
    on_average: bool = False
    # the difference that the paper states, with the digits that it states
    by: PublishedValue | None = None
    up_to: PublishedValue | None = None  # or the largest difference
    # comparable: what the sentence says a difference stays below, either way
    less_than: PublishedValue | None = None

    @model_validator(mode="after")
    def states_one_thing(self):
        problem = self.contradiction()
        if problem is not None:
            raise ValueError(f"{self.quote!r}: {problem}")
        return self

    def contradiction(self) -> str | None:
        """Say which keys of the claim do not go together; None if all do."""
        amounts = [self.by, self.up_to, self.less_than]
        is_above = self.relation == "above"
        if (self.table is None) == (self.figure is None):
            return "needs either `table` or `figure`"
        if len([amount for amount in amounts if amount is not None]) > 1:
            return "needs at most one of `by`, `up_to`, `less_than`"
        if self.less_than is not None and self.relation != "comparable":
            return "`less_than` needs `relation: comparable`"
        if (self.by is not None or self.up_to is not None) and not is_above:
            return "`by` and `up_to` are of `relation: above`"
        if self.statistic == "std" and (self.on_average or not is_above):
            return "`statistic: std` has neither `on_average` nor `relation`"
        return None

    def versus_rows(self, there: Grid, same: bool) -> list[int]:
        """Indices of the rows that `row` is compared with, in the table or figure that has them,
        which has `row`, too, if it is the `same`. Raises ValueError: no row has a label that the
        claim names."""
        versus = [] if self.versus == "others" else self.versus
        for label in (*self.exclude, *versus):
            there.row(label)
        excluded = {*self.exclude} | ({self.row} if same and self.versus_column is None else set())
        if self.versus == "others":
            versus = [row.label for row in there.rows if row.label not in excluded]
        return [index for index, row in enumerate(there.rows) if row.label in versus]

    @property
    def place(self) -> str:
        """Name of the table or figure: `table2`, `figure3`."""
        return f"table{self.table}" if self.table else f"figure{self.figure}"

    @property
    def places(self) -> list[str]:
        """Those of the cells that are compared."""
        return [self.place, f"table{self.versus_table}"] if self.versus_table else [self.place]


ErratumKind = Literal[
    "found by reading", "sentence against table", "impossible value", "inconsistent value"
]


class Erratum(Strict):
    """An error in print that no check of csebench/report/numbers/audit.py can find."""

    where: str  # table2, or a place in the text
    row: str | None = None  # with `kind`: replaces what the audit finds of this row at `where`
    also: dict[str, str] = {}  # one more place, by the paper's name
    text: str
    kind: ErratumKind = "found by reading"
    # as csebench/report/numbers/audit.py defines them
    severity: Literal["serious", "notable", "minor"] = "minor"


def _file_name(key):
    if not re.fullmatch(r"\w+", str(key)):
        raise ValueError("must be of letters and digits, as its page is named after it: 2, A1")
    return key


GridName = Annotated[
    str, Field(pattern=r"^\w+$"), BeforeValidator(_file_name)
]  # of a table or figure


def _names_cells(claim: Claim, info: ValidationInfo) -> Claim:
    """The check of a claim: tables, rows and columns that it names are there."""
    if {"tables", "figures"} <= {*info.data}:  # valid ones
        try:
            here, there = (pick_grid(info.data, claim.places[index]) for index in (0, -1))
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
    """`table2` or `figure3` of a paper's fields; a name without a kind is the key of a table."""
    kind = "figure" if name.startswith("figure") else "table"
    return look_up(f"{kind}{whose}", name.removeprefix(kind), fields[f"{kind}s"])


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
        """The claims by the sentence that makes them, in the order of the file."""
        claims: dict[str, list[Claim]] = {}
        for claim in self.claims:
            claims.setdefault(claim.quote, []).append(claim)
        return claims
