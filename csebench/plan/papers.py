"""A paper as data (`papers/*.yaml`), as types: tables, figures, published numbers, claims, misprints."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from csebench.plan.schema import Strict, Value


class Published(Strict):
    value: float
    std: float | None = None
    text: str  # as printed

    @property
    def unit(self) -> float:
        """One unit of the last printed digit: 0.01 of `78.13`."""
        return 10.0 ** -len(self.text.split("±")[0].strip().partition(".")[2])


def _published(text):
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)(?:\s*±\s*(\d+(?:\.\d+)?))?", str(text).strip())
    if match is None:
        raise ValueError(f"not a number, nor a number ± a number: {text!r}")
    mean, std = match.groups()
    return Published(value=float(mean), std=float(std) if std else None, text=str(text).strip())


Cell = Annotated[Published, BeforeValidator(_published)]


class Recipe(Strict):
    """How a row is run here: differences from the method's defaults."""

    method: str
    variant: str | None = None
    params: dict[str, Value] = {}
    components: dict[str, dict[str, Value]] = {}
    encoder: str | None = None
    sweep: dict[str, Value] = {}  # parameters that the table varies: a scale's settings do not replace them


class Row(Strict):
    label: str
    run: Recipe | None = None
    missing: str | None = None  # why nothing is run
    source: Literal["measured", "copied", "rerun"]
    origin: str | None = Field(None, alias="from")
    note: str | None = None
    values: list[Cell | None]


class Column(Strict):
    """What a column shows of a row's run: a task's score, or something derived from other columns."""

    label: str
    task: str | None = None  # None: derived
    evaluator: str | None = None  # where it differs from the table's
    metric: str | None = None  # where it is not the evaluator's own
    size: str = "100%"  # of the training set
    sweep: dict[str, Value] = {}  # joins the row's
    seeds: int | None = None  # of the paper, where the column differs from the table
    delta: str | None = None  # label of the column of which it is the difference to the baseline row
    mean: bool = False  # of the columns before it
    lower: bool = False  # whether less is better
    factor: float | None = None  # where they differ from the table's
    digits: int | None = None

    @model_validator(mode="after")
    def shows_one_thing(self):
        if sum([self.task is not None, self.delta is not None, self.mean]) != 1:
            raise ValueError(f"{self.label}: needs one of `task`, `delta`, `mean`")
        return self


class Grid(Strict):
    """Rows of runs and columns of what they score: what a table and a figure have in common."""

    title: str
    caption: str = ""
    section: str | None = None
    encoder: str = "bert-base"
    evaluator: str = "sts"
    seeds: int = 1  # behind a published value
    factor: float = 100  # from a score to what is printed
    digits: int = 2
    baseline: str | None = None  # label of the row that differences are taken to
    columns: list[Column]
    rows: list[Row]
    notes: list[str] = []

    @model_validator(mode="after")
    def rows_fit(self):
        labels = [row.label for row in self.rows]
        for row in self.rows:
            if len(row.values) != len(self.columns):
                raise ValueError(f"{row.label}: {len(row.values)} values for {len(self.columns)} columns")
            if (row.run is None) == (row.missing is None):
                raise ValueError(f"{row.label}: needs either `run`, or `missing` with the reason why there is none")
        if self.baseline is not None and labels.count(self.baseline) != 1:
            raise ValueError(f"baseline: no one row has the label {self.baseline!r}")
        for column in self.columns:
            if column.delta is not None and (
                self.baseline is None or column.delta not in [c.label for c in self.columns]
            ):
                raise ValueError(f"{column.label}: `delta` needs a column of that label, and a `baseline`")
        return self

    def row(self, label: str) -> int:
        """Position of the one row of a label. Raises ValueError."""
        found = [i for i, row in enumerate(self.rows) if row.label == label]
        if len(found) != 1:
            raise ValueError(f"{len(found)} rows have the label {label!r}; there are {[r.label for r in self.rows]}")
        return found[0]

    def column(self, label: str) -> int:
        """Position of the one column of a label. Raises ValueError."""
        found = [i for i, column in enumerate(self.columns) if column.label == label]
        if len(found) != 1:
            raise ValueError(f"{len(found)} columns are called {label!r}; there are {[c.label for c in self.columns]}")
        return found[0]


class Table(Grid):
    kind: Literal["scores"] = "scores"


class SettingsColumn(Strict):
    label: str
    run: Recipe


class SettingsRow(Strict):
    label: str
    param: str  # of the method; `ami.weight` of a component
    values: list[str | None]  # as printed


class Settings(Strict):
    """A printed table of hyper-parameters: each is compared with what a recipe has here."""

    kind: Literal["settings"]
    title: str
    caption: str = ""
    section: str | None = None
    encoder: str = "bert-base"
    columns: list[SettingsColumn]
    rows: list[SettingsRow]
    notes: list[str] = []

    @model_validator(mode="after")
    def rows_fit(self):
        for row in self.rows:
            if len(row.values) != len(self.columns):
                raise ValueError(f"{row.label}: {len(row.values)} values for {len(self.columns)} columns")
        return self


AnyTable = Annotated[
    Annotated[Table, Tag("scores")] | Annotated[Settings, Tag("settings")],
    Discriminator(
        lambda v: v.get("kind", "scores") if isinstance(v, dict) else v.kind,
        custom_error_type="kind",
        custom_error_message="kind: must be 'scores' or 'settings'",
    ),
]


FIGURES_OF_SCORES = ("curves", "bars", "scatter", "training")


class Figure(Grid):
    """A data figure: a grid of cells, and how it is drawn.

    curves: a row is a line over the sizes of its columns, with a band of the deviation over seeds; with a baseline
    also the differences to it. bars: a row is a bar in each column; with a baseline, of the differences. scatter: a
    row is a point; its columns are x, y and colour. training: a row is the path of alignment and uniformity over
    steps. Any other kind is a panel that an evaluator draws from the per-item values of each row's run.
    """

    kind: str  # of FIGURES_OF_SCORES, or a panel that an evaluator declares (checked by grids.plan_grid)
    axis: str  # title of the value axis, with its unit


class Claim(Strict):
    """A sentence that a paper draws from a table, as a predicate over its cells.

    In each of `columns` (on_average: in their mean) the value of `row` is above that of every row of `than`.
    """

    says: str  # the paper's own words, a few
    section: str
    table: str | None = None
    figure: str | None = None
    row: str
    than: list[str] | Literal["others"] = "others"  # every other row
    but: list[str] = []  # rows that `others` leaves out
    columns: list[str]
    than_column: str | None = None  # where the other cell is in another column
    than_table: str | None = None  # or in another table of the paper
    lower: bool = False  # below, not above
    of: Literal["value", "std"] = "value"
    on_average: bool = False
    by: Cell | None = None  # how large it says the difference is, with the digits that it says it in
    up_to: Cell | None = None  # or its largest
    at_least: Cell | None = None
    within: Cell | None = None  # no larger than this, either way: `comparable`

    @model_validator(mode="after")
    def says_one_thing(self):
        if (self.table is None) == (self.figure is None):
            raise ValueError(f"{self.says!r}: needs either `table` or `figure`")
        if sum(size is not None for size in (self.by, self.up_to, self.at_least, self.within)) > 1:
            raise ValueError(f"{self.says!r}: needs at most one of `by`, `up_to`, `at_least`, `within`")
        if self.of == "std" and self.on_average:
            raise ValueError(f"{self.says!r}: deviations have no average")
        return self


class Erratum(Strict):
    """What is wrong in print and no arithmetic finds."""

    where: str
    says: str


def _file_name(key):
    if not re.fullmatch(r"\w+", str(key)):
        raise ValueError("must be of letters and digits, as its page is named after it: 2, A1")
    return key


Key = Annotated[str, BeforeValidator(_file_name)]  # of a table or figure


class Paper(Strict):
    name: str
    label: str = ""  # as people call it
    title: str
    reference: str
    url: str | None = None
    tables: dict[Key, AnyTable]
    figures: dict[Key, Figure] = {}
    claims: list[Claim] = []
    errata: list[Erratum] = []
