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

SEEDS_NEEDED = 3  # a published value gets a verdict if our runs have this many seeds
PRINTED = r"(-?\d+(?:\.\d+)?)(?:\s*±\s*(\d+(?:\.\d+)?))?"


# ---------------------------------------------------------------- published numbers


class Published(Strict):
    """A number as a paper prints it, in the paper's units."""

    value: float
    std: float | None = None  # after `±`
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

    method: str  # name of a file of methods/
    variant: str | None = None  # None: the method itself
    params: dict[str, Value] = {}  # hyper-parameters that differ
    components: dict[str, dict[str, Value]] = {}  # component to add -> hyper-parameters that differ
    encoder: str | None = None  # role of the encoder; None: the encoder of the table
    # hyper-parameters that the table varies; a scale's settings do not override them
    sweep: dict[str, Value] = {}


class EvidenceKey(Strict):
    """The method whose published runs count for a row (csebench/plan/catalog/evidence.py)."""

    method: str  # name in evidence/methods.yaml
    encoder: str | None = None  # name in evidence/methods.yaml; None: the encoder of the row


class Row(Strict):
    """A row of a table or figure: its published values, and its recipe or the reason why it has
    none."""

    label: Line
    run: Recipe | None = None  # how the row is run
    missing: str | None = None  # why nothing is run; given in place of `run`
    # method whose published runs count; None: the method of the recipe, if the recipe changes at
    # most its pooler and training budget
    evidence: EvidenceKey | None = None
    # how the authors obtained the values; `unknown`: nobody has looked it up
    source: Literal["measured", "copied", "rerun", "unknown"] = "unknown"
    origin: str | None = Field(default=None, alias="from")  # paper that the values are copied from
    note: str | None = None
    # published values, one per column; `null`: nothing is published
    values: list[PublishedValue | None] = []

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
    """The score of a task, or a value that is derived from other columns."""

    label: Line
    task: str | None = None  # task whose score is shown; None: the column is derived
    evaluator: str | None = None  # None: the evaluator of the table
    metric: str | None = None  # None: the main metric of the evaluator
    size: str = "100%"  # size of the training set, as in `sizes` of a scale
    sweep: dict[str, Value] = {}  # hyper-parameters to add to `sweep` of the row
    # number of seeds that a published value averages; None: `seeds` of the table
    seeds: PrintedSeeds | None = None
    # label of another column: its difference to the baseline row is shown
    delta: str | None = None
    mean: bool = False  # whether the mean of the columns to the left is shown
    lower: bool = False  # whether less is better
    factor: Factor | None = None  # printed value / score; None: the factor of the table
    # number of printed digits after the decimal point; None: the digits of the table
    digits: Digits | None = None

    @model_validator(mode="after")
    def shows_one_thing(self):
        has_task = self.task is not None
        has_delta = self.delta is not None
        if [has_task, has_delta, self.mean].count(True) != 1:
            raise ValueError(f"{self.label}: needs exactly one of `task`, `delta`, `mean`")
        return self


def _fits_columns(row, info: ValidationInfo):
    """Check that a row has a value per column. A row without values gets None for each."""
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

    row: str  # label of the row
    most: str  # label of the column with the higher score
    # labels of the columns with the lower score; their mean counts
    less: list[str] = Field(min_length=1)
    least: float = Field(ge=0)  # the loss must be shown to be larger than this, in points
    printed: str  # how large the loss is in the paper, and where


OTHERS = "others"


class Family(Strict):
    """A question that a table or figure answers by comparing rows.

    Its p-values are corrected by Holm over the family. The primary question of a table is a single
    comparison, and its answer stands first on the page.
    """

    question: Line
    # pairs of labels: a row, and the row that it is compared with; `others` as the first label:
    # every other row
    rows: list[tuple[str, str]]
    # `average`: the column with the average, or the mean of all columns if there is no such column;
    # `each`: every column that is not derived, by itself;
    # a list of labels: the mean of these columns
    columns: Literal["average", "each"] | list[str] = "average"
    left_out: list[str] = []  # with `each`: labels of columns that another page compares
    primary: bool = False  # whether this is the primary question of the table
    # whether the rows are expected to be equal, as for a setting that should not matter
    equality: bool = False
    premise: Premise | None = None  # must hold in our runs, or the question cannot be asked
    first_page: str | None = None  # question on the first page of a scale that this one answers

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
        labels += self.left_out
        if self.premise:
            labels += [self.premise.most, *self.premise.less]
        return labels


# ---------------------------------------------------------------- tables and figures of scores


class Grid(Strict):
    """Rows of runs and columns of scores: the common part of a table and a figure."""

    title: Line
    caption: str = ""
    section: str | None = None  # section of the paper
    encoder: str = "bert-base"  # role of the encoder of rows that name none
    evaluator: str = "sts"  # evaluator of columns that name none
    seeds: PrintedSeeds = 1  # number of seeds that a published value averages
    # number of seeds of our runs; None: the seeds of the scale
    run_seeds: int | None = Field(default=None, ge=1)
    # number of random settings: each of our runs has settings of its own, which the rows share;
    # None: all runs of a row have the same settings (plan/random_settings.py)
    random_settings: int | None = Field(default=None, ge=2)
    factor: Factor = 100  # printed value / score
    digits: Digits = 2  # number of printed digits after the decimal point
    baseline: str | None = None  # label of the row that is subtracted in differences
    columns: list[Column]
    rows: list[Annotated[Row, AfterValidator(_fits_columns)]]
    compare: list[Family] = []  # questions that comparisons of rows answer
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
        if self.run_seeds is not None and self.random_settings is not None:
            raise ValueError("run_seeds and random_settings both set the number of runs; keep one")
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
        if family.left_out and family.columns != "each":
            raise ValueError(f"{where}: `left_out` needs `columns: each`")
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
    """A table of scores."""

    kind: Literal["scores"] = "scores"


FIGURES_OF_SCORES = ("curves", "bars", "scatter", "training")


class Figure(Grid):
    """A data figure: a grid of cells, and how csebench/report/figures/scores.py draws it.

    - curves: each row is a line over the sizes of its columns, with 95 % intervals over seeds. With
      a baseline, a second panel shows the differences to it.
    - bars: each row is a dot with its 95 % interval in each column. With a baseline, the dots are
      the differences to it.
    - scatter: each row is a point. The first two columns are x and y, a third is in the label.
    - training: each row is the path of its uniformity and alignment over the steps of training.
    - Any other kind is the name of a panel that an evaluator draws. It has one panel per row, from
      the per-item values of the row's run.
    """

    # `curves`, `bars`, `scatter`, `training`, or a panel that an evaluator declares
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
    param: str  # hyper-parameter of the method, or of a component (`ami.weight`)
    values: list[str | None] = []  # one per column, as printed; `null`: nothing is printed


class SettingsTable(Strict):
    """A printed table of hyper-parameters. Each value is compared with the value in the recipe of
    its column."""

    kind: Literal["settings"]
    title: Line
    caption: str = ""
    section: str | None = None  # section of the paper
    encoder: str = "bert-base"  # role of the encoder of columns that name none
    columns: list[SettingsColumn]
    rows: list[Annotated[SettingsRow, AfterValidator(_fits_columns)]]
    notes: list[str] = []
    compare: ClassVar[list[Family]] = []  # settings are not compared between rows


# ---------------------------------------------------------------- tables of texts


class TextsColumn(Strict):
    """A column of a table of texts."""

    label: Line


class TextsRow(Strict):
    """A row of texts."""

    label: Line
    values: list[Line | None] = []  # one per column, as printed; `null`: nothing is printed


class TextsTable(Strict):
    """A printed table of texts, such as examples. Nothing is run for it; its page shows the
    texts."""

    kind: Literal["texts"]
    title: Line
    caption: str = ""
    section: str | None = None  # section of the paper
    columns: list[TextsColumn]
    rows: list[Annotated[TextsRow, AfterValidator(_fits_columns)]]
    notes: list[str] = []
    compare: ClassVar[list[Family]] = []  # texts are not compared between rows


UnscoredTable = SettingsTable | TextsTable  # a table without scores


def _kind(table) -> str | None:
    if isinstance(table, dict):
        return table.get("kind", "scores")
    return getattr(table, "kind", None)


AnyTable = (
    Annotated[Table, Tag("scores")]
    | Annotated[SettingsTable, Tag("settings")]
    | Annotated[TextsTable, Tag("texts")]
)


# ---------------------------------------------------------------- claims and errata


class Claim(Strict):
    """A conclusion that a paper draws from a table, as a predicate over its cells.

    In each of `columns` (with `on_average`: in their mean), the value of `row` is above the value
    of every row of `versus`. `relation` can replace "above". With `gains_over`, gains are compared
    in place of values. Claims with the same `quote` are parts of one sentence, which gets one
    verdict.
    """

    quote: Line  # a few words of the paper
    section: str  # section of the paper with the quote
    table: str | None = None  # key of the table
    figure: str | None = None  # key of the figure, in place of `table`
    row: str  # label of the row that the claim is about
    versus: list[str] | Literal["others"] = "others"  # labels of rows; `others`: every other row
    exclude: list[str] = []  # labels of rows that `others` leaves out
    columns: list[str]  # labels of columns
    versus_column: str | None = None  # column of the rows of `versus`; None: the same column
    # table with the rows of `versus`, in the same paper; None: the table or figure of `row`
    versus_table: str | None = None
    # `row` and each row of `versus` -> the row that is subtracted from it: gains are compared
    gains_over: dict[str, str] = {}
    lower: bool = False  # whether less counts as above, and as better
    # `comparable`: on par; `not worse`: on par or better
    relation: Literal["above", "comparable", "not worse"] = "above"
    # what is compared: the values, or their standard deviations
    statistic: Literal["value", "std"] = "value"
    on_average: bool = False  # whether the mean of `columns` is compared, not each of them
    # stated difference, with the digits of the paper
    by: PublishedValue | None = None
    up_to: PublishedValue | None = None  # stated largest difference
    # for `relation: comparable`: bound on the difference in either direction
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
            return "`by` and `up_to` need `relation: above`"
        if self.statistic == "std" and (self.on_average or not is_above):
            return "`statistic: std` cannot have `on_average` or `relation`"
        if self.gains_over:
            return self.contradiction_of_gains()
        return None

    def contradiction_of_gains(self) -> str | None:
        """Say which keys cannot stand beside `gains_over`. Return None if all can."""
        if self.statistic == "std" or self.versus == "others" or self.versus_table:
            return "`gains_over` needs a list `versus`, and no `statistic: std` or `versus_table`"
        if {*self.gains_over} != {self.row, *self.versus}:
            return "`gains_over` needs `row` and every row of `versus`, and no other row"
        if {*self.gains_over} & {*self.gains_over.values()}:
            return "`gains_over`: a row whose gain is compared cannot be subtracted, too"
        return None

    @property
    def states_significance(self) -> bool:
        """Whether the sentence says that a difference is significant.

        `most significant` only says that one difference is larger than others.
        """
        return re.search(r"(?<!most )significant", self.quote.lower()) is not None

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

    where: str  # `table2`, or a place in the text
    # label of a row at `where`; with `kind`, the erratum replaces what the audit finds in this row
    row: str | None = None
    also: dict[str, str] = {}  # another place that the erratum is about: paper -> `table2`
    text: str  # what is wrong
    kind: ErratumKind = "found by reading"  # how the error shows
    # how serious the error is, as csebench/report/numbers/audit.py defines it
    severity: Literal["serious", "notable", "minor"] = "minor"


# ---------------------------------------------------------------- a paper


def _file_name(key):
    if not re.fullmatch(r"\w+", str(key)):
        raise ValueError("must have letters and digits only, as its page is named after it: 2, A1")
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
        if isinstance(here, UnscoredTable) or isinstance(there, UnscoredTable):
            raise ValueError("a table of settings or texts has no values to compare")
        here.row(claim.row)
        claim.versus_rows(there, here is there)
        for label in claim.gains_over.values():
            here.row(label)
        for label in claim.columns:
            here.column(label)
            there.column(claim.versus_column or label)
    except (BadInput, ValueError) as error:
        raise ValueError(f"{claim.quote!r}: {str(error).rstrip('.')}") from None
    return claim


def pick_grid(
    fields: Mapping[str, Any], name: str, whose: str = ""
) -> Table | UnscoredTable | Figure:
    """Return `table2` or `figure3` from the fields of a paper.

    A name without a kind is the key of a table.

    Args:
        whose: the end of "no such table" in the message, such as ` of micse`.

    Raises:
        BadInput: the paper has no such table or figure.
    """
    if name.startswith("figure"):
        kind, grids = "figure", fields["figures"]
    else:
        kind, grids = "table", fields["tables"]
    return look_up(f"{kind}{whose}", name.removeprefix(kind), grids)


class Paper(Strict):
    """A paper whose experiments are run and judged."""

    name: str  # name of the file
    label: Line = ""  # short name of the method
    title: Line
    reference: Line  # authors, venue and year
    url: Url | None = None
    tables: dict[GridName, Annotated[AnyTable, Discriminator(_kind)]]  # by their number: `2`, `A1`
    figures: dict[GridName, Figure] = {}  # by their number
    claims: list[Annotated[Claim, AfterValidator(_names_cells)]] = []  # conclusions to be judged
    errata: list[Erratum] = []  # errors in print

    def claims_by_quote(self) -> dict[str, list[Claim]]:
        """Group the claims by the sentence that makes them, in the order of the file."""
        claims: dict[str, list[Claim]] = {}
        for claim in self.claims:
            claims.setdefault(claim.quote, []).append(claim)
        return claims
