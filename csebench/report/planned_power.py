"""What a table will show, before any training: power from a spread over seeds that is already known.

The report of `csebench power`, and the paragraph of a page without scores. The statistics are in
csebench/report/power.py; tables with scores, in csebench/report/table_power.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt
from statistics import fmean

from tabulate import tabulate

from csebench.base.caches import cached_by_folder
from csebench.plan import evidence, targets
from csebench.plan.papers import Column, SettingsTable
from csebench.report.cells import (
    PAPER_SCALE,
    Cell,
    GridView,
    encoder_role,
    grid_view,
    is_comparable,
    is_control,
    is_deterministic,
)
from csebench.report.compare import compared_columns
from csebench.report.evidence import spread
from csebench.report.power import POWER, Design, power_of, seeds_needed, smallest_difference
from csebench.report.stats import LEVEL
from csebench.report.table_power import POINTS, needed_label, pair_designs


@dataclass(frozen=True)
class KnownSpread:
    """Standard deviation of a score over seeds, in points, and where it is known from."""

    std: float
    source: str


@dataclass(frozen=True)
class Plan:
    """What a table will show between rows of one encoder, from a spread that is known; in points."""

    table: str
    columns: tuple[str, ...]
    encoder: str
    seeds: int
    pairs: int  # that the table tests, over all its encoders and columns
    spread: KnownSpread | None
    paired: Design | None
    unpaired: Design | None


def plans(view: GridView, other_tables: bool = True) -> list[Plan]:
    """A plan for every encoder and compared column of a table; columns with the same plan are one.

    Args:
        other_tables: whether spreads are also taken from scores of other tables of the scale.
    """
    if isinstance(view.grid, SettingsTable) or not view.rows:
        return []
    columns = compared_columns(view)
    by_column = {column.label: [cell for cell in view.column(column.label) if _is_trained(cell)] for column in columns}
    pairs = sum(len(cells) * (len(cells) - 1) // 2 for cells in by_column.values())
    merged: dict[tuple, list[str]] = {}
    for column in columns:
        cells = by_column[column.label]
        for role in dict.fromkeys(encoder_role(cell) or view.score_grid.encoder for cell in cells):
            seeds = max(_seeds_planned(c) for c in cells if (encoder_role(c) or view.score_grid.encoder) == role)
            row_spread = known_spread(view, column, role, other_tables)
            paired = (
                None if row_spread is None else measured_design(view, column, role) or Design(sqrt(2) * row_spread.std)
            )
            merged.setdefault((role, seeds, row_spread, paired), []).append(column.label)
    name = view.name if view.paper == view.name else f"{view.paper}/{view.name}"
    return [
        Plan(
            name,
            tuple(labels),
            role,
            seeds,
            pairs,
            row_spread,
            paired,
            row_spread and Design(row_spread.std, paired=False),
        )
        for (role, seeds, row_spread, paired), labels in merged.items()
    ]


def _is_trained(cell: Cell) -> bool:
    """Whether a cell is of runs whose score depends on a seed; a derived one, whether its parts are."""
    plans_of_runs = (cell, *cell.parts) if cell.parts else (cell,)
    return any(c.plan.specs for c in plans_of_runs) and not is_deterministic(cell) and not is_control(cell)


def _seeds_planned(cell: Cell) -> int:
    return max(len(c.plan.specs) for c in (cell, *cell.parts))


def known_spread(view: GridView, column: Column, role: str, other_tables: bool = True) -> KnownSpread | None:
    """The spread over seeds of one row, from the nearest that is known.

    In this order: scores of this table, of another table of the scale with the same task, training set and encoder;
    at scale paper also deviations that the table prints, then seeds that others published (evidence/).
    """
    unit = view.score_grid.column_factor(column) / 100
    cells = [cell for cell in view.column(column.label) if (encoder_role(cell) or view.score_grid.encoder) == role]
    if (std := _pooled([c.ours.std for c in cells if is_comparable(c) and c.ours is not None])) is not None:
        return KnownSpread(std / unit, "scores of this table")
    if column.task is None:
        return None
    tables = _spreads_of_scale(view.scale).get((role, *_score_key(view, column)), {}) if other_tables else {}
    for other, std in tables.items():
        return KnownSpread(std, f"scores of {other}")
    if view.scale != PAPER_SCALE:
        return None
    printed = [c.published.std for c in cells if c.published is not None and c.published_seeds > 1]
    if (std := _pooled(printed)) is not None:
        return KnownSpread(std / unit, "deviations that the table prints")
    score = evidence.score_name(view.score_grid.column_evaluator(column), column.task)
    nearest = None if score is None or column.metric is not None else spread(role, score)
    if nearest is None:
        return None
    method = evidence.names().methods[nearest.method].title
    size = "" if column.size == evidence.FULL else " on 100 % of the data"
    return KnownSpread(nearest.std, f"{nearest.n} seeds of {method}{size} ({nearest.source})")


def measured_design(view: GridView, column: Column, role: str) -> Design | None:
    """How paired differences vary on average over pairs of rows of an encoder, in points; None where none is known."""
    unit = view.score_grid.column_factor(column) / 100
    roles = [encoder_role(cell) or view.score_grid.encoder for cell in view.column(column.label)]
    designs = [
        design
        for other, rows, _, design in pair_designs(view)
        if other is column and design.std is not None and {roles[row] for row in rows} == {role}
    ]
    if not designs:
        return None
    items = [design.item_variance for design in designs if design.item_variance is not None]
    std = sqrt(fmean(design.std**2 for design in designs if design.std is not None))
    return Design(std / unit, fmean(items) / unit**2 if items else None)


def _pooled(deviations: Iterable[float | None]) -> float | None:
    """The root mean square of deviations that are known and not zero; None where there is none."""
    values = [std for std in deviations if std]
    return sqrt(fmean(std**2 for std in values)) if values else None


def _score_key(view: GridView, column: Column) -> tuple:
    return view.score_grid.column_evaluator(column), column.task, column.metric, column.size


@cached_by_folder
def _spreads_of_scale(scale: str) -> dict[tuple, dict[str, float]]:
    """Pooled deviations over seeds, in points, by (role of the encoder, score), then by table."""
    spreads: dict[tuple, dict[str, float]] = {}
    for paper_name, name in dict.fromkeys(grid for page in targets.pages(scale) for grid in page.grids()):
        view = grid_view(paper_name, name, scale)
        if isinstance(view.grid, SettingsTable):
            continue
        for column in view.score_grid.columns:
            if column.task is None:
                continue
            by_role: dict[str, list[float | None]] = {}
            for cell in view.column(column.label):
                if is_comparable(cell) and cell.ours is not None:
                    by_role.setdefault(encoder_role(cell) or view.score_grid.encoder, []).append(cell.ours.std)
            for role, deviations in by_role.items():
                if (std := _pooled(deviations)) is not None:
                    tables = spreads.setdefault((role, *_score_key(view, column)), {})
                    tables[f"{paper_name}/{name}"] = std * 100 / view.score_grid.column_factor(column)
    return spreads


# ---------------------------------------------------------------- words


def planned_text(view: GridView) -> str | None:
    """What a table without scores will show, as a paragraph and a list; None where it compares no trained rows.

    From deviations that the table prints, or seeds that others published: a page shows no scores of other tables.
    """
    all_plans = plans(view, other_tables=False)
    if not all_plans:
        return None
    lines = []
    for plan in all_plans:
        if plan.spread is None or plan.paired is None:
            continue
        needs = ", ".join(f"{needed_label(seeds_needed(points, plan.paired))} for {points:g}" for points in POINTS)
        lines.append(
            f"- {plan.encoder}, {', '.join(plan.columns)}: {smallest_difference(plan.paired, plan.seeds):.2f} with"
            f" {plan.seeds} seeds; seeds needed: {needs}; sd of a row {plan.spread.std:.2f} ({plan.spread.source})."
        )
    if not lines:
        return "Nothing yet: no two rows have current scores that can be tested, and no spread over seeds is known."
    intro = (
        "No two rows have current scores that can be tested yet. With a spread that is known, this is the smallest"
        f" true difference, in points, that will be detected with {100 * POWER:.0f} % power, paired over seeds alone"
        " and before Holm's correction:"
    )
    return "\n\n".join([intro, "\n".join(lines)])


UNKNOWN = "not known: no seeds at this scale, and nobody published some"


def rows(views: list[GridView], difference: float) -> tuple[list[str], list[list]]:
    """What tables will show, as columns and rows: two rows per table, encoder and group of columns.

    Args:
        difference: in points, whose power is computed.
    """
    head = ["table", "columns", "encoder", "sd", "known from", "seeds", "test", "detects", "detects, Holm"]
    head += [f"power at {difference:g}", *(f"seeds for {points:g}" for points in POINTS)]
    tests = []
    for plan in (plan for view in views for plan in plans(view)):
        labels = ", ".join(plan.columns) if len(plan.columns) < 4 else f"{len(plan.columns)} columns"
        about = [plan.table, labels, plan.encoder]
        if plan.spread is None or plan.paired is None or plan.unpaired is None:
            tests.append([*about, "–", UNKNOWN, plan.seeds])
            continue
        for name, design in (("paired", plan.paired), ("unpaired", plan.unpaired)):
            smallest, holm = (
                smallest_difference(design, plan.seeds, level) for level in (LEVEL, LEVEL / max(plan.pairs, 1))
            )
            tested = [_points(smallest), _points(holm), f"{power_of(difference, design, plan.seeds):.2f}"]
            needed = [needed_label(seeds_needed(points, design)) for points in POINTS]
            tests.append([*about, f"{plan.spread.std:.2f}", plan.spread.source, plan.seeds, name, *tested, *needed])
    return head, tests


def report(views: list[GridView], difference: float) -> str:
    """The same as text, with a legend."""
    head, tests = rows(views, difference)
    if not tests:
        return "No two trained rows are compared there."
    return "\n\n".join([tabulate(tests, head, disable_numparse=True), LEGEND])


def _points(difference: float) -> str:
    return "–" if difference == inf else f"{difference:.2f}"


LEGEND = f"""\
In points: 1 is 1 % or 1 of Spearman x 100. `sd`: of one row over seeds. `detects`: the smallest true difference of two
rows that a two-sided test at {LEVEL:g} detects with {100 * POWER:.0f} % power; with Holm: at the strictest level of
its correction, {LEVEL:g} / number of pairs. Power and seeds needed are those of one pair, before the correction.
`paired`: the test of the tables, over seeds that both rows share, and over test items where they are known; without
scores, rows are taken to share nothing but the seed's number (deviation of a difference: sd x 1.41).
`unpaired`: Welch's test of rows with other seeds each. `none`: test items alone vary too much for any number."""
