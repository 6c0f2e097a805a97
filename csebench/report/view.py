"""What a table or figure shows: cells with our values, the published ones, verdicts. Written by render and html."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from csebench.plan.grids import CellPlan, find_grid, plan_grid
from csebench.plan.papers import Column, Figure, Grid, Published, Settings, Table
from csebench.plan.registry import EVALUATORS, declaration
from csebench.plan.targets import grid_path
from csebench.report import stats
from csebench.score.store import score, value

PAPER_SCALE = "paper"


@dataclass(frozen=True)
class Cell:
    """Ours beside the published value, both in printed units."""

    plan: CellPlan
    factor: float  # from a score to what is printed
    digits: int
    values: dict[int, float]  # by seed
    absent: int = 0  # runs without a score
    stale: bool = False  # of an older version of the code
    published: Published | None = None
    published_seeds: int = 1  # behind the published value
    parts: tuple[Cell, ...] = ()  # what a derived cell is the mean of, or whose difference it is
    best: bool = False
    verdict: stats.Verdict | None = None

    @property
    def ours(self) -> stats.Summary | None:
        return stats.summarise(self.values.values()) if self.values else None

    @property
    def seeds(self) -> list[int]:
        return sorted(self.values)

    def number(self, x: float) -> str:
        return f"{x:.{self.digits}f}"

    @property
    def text(self) -> str:
        """`78.41 ± 0.31`, of a difference `+0.41 ± 0.31`, or why there is none."""
        if self.ours is None:
            return "missing" if self.absent else "–"
        sign = "+" if self.plan.column.delta is not None and self.ours.mean >= 0 else ""
        std = "" if self.ours.std is None else f" ± {self.number(self.ours.std)}"
        return sign + self.number(self.ours.mean) + std


@dataclass(frozen=True)
class View:
    """A paper's table or figure at a scale."""

    paper: str
    name: str  # table2, figure3
    scale: str
    grid: Table | Figure | Settings
    rows: list[list[Cell]]
    comparisons: dict = field(
        default_factory=dict
    )  # of the columns that rows are compared in (csebench/report/compare.py)
    texts: dict | None = None  # that were retrieved, and printed ones

    def column(self, label: str) -> list[Cell]:
        place = self.grid.column(label)
        return [row[place] for row in self.rows]

    @property
    def progress(self) -> tuple[int, int]:
        """Runs with their scores, and runs that it shows; a run counts once for each evaluator."""
        cells = [cell.plan for row in self.rows for cell in row]
        wanted = {(spec.run_id, cell.evaluator): spec for cell in cells for spec in cell.specs}
        there = [score(spec, evaluator, self.scale)[0] for (_, evaluator), spec in wanted.items()]
        return sum(content is not None for content in there), len(wanted)

    @property
    def state(self) -> str:
        """How much of what could be run here has been."""
        if isinstance(self.grid, Settings):
            return "settings"
        done, wanted = self.progress
        if not wanted:
            return "nothing to run"
        return "complete" if done == wanted else "partial" if done else "missing"


def view(paper_name: str, name: str, scale: str) -> View:
    grid, rows = _printed(paper_name, name, scale)
    if isinstance(grid, Settings):
        return View(paper_name, name, scale, grid, rows)
    rows = _derived(grid, [[_scored(cell, scale) for cell in row] for row in rows])
    rows = _best([[_judged(cell, scale) for cell in row] for row in rows])
    kept = grid_path(paper_name, name, scale, "items.json")
    items = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    return View(paper_name, name, scale, grid, rows, items.get("comparisons") or {}, items.get("texts"))


def on_print(paper_name: str, name: str, scale: str) -> View:
    """What is printed alone: no score is read."""
    grid, rows = _printed(paper_name, name, scale)
    return View(paper_name, name, scale, grid, rows if isinstance(grid, Settings) else _derived(grid, rows))


def _printed(paper_name: str, name: str, scale: str) -> tuple[Grid, list[list[Cell]]]:
    grid = find_grid(paper_name, name)
    rows = []
    for plans in plan_grid(paper_name, name, scale):
        row = []
        for cell, published in zip(plans, plans[0].row.values, strict=True):
            column = cell.column
            own = Cell(cell, column.factor or grid.factor, digits(grid, column), {}, published=published)
            row.append(replace(own, published_seeds=column.seeds or grid.seeds))
        rows.append(row)
    return grid, rows


def digits(grid: Grid, column: Column) -> int:
    return grid.digits if column.digits is None else column.digits


def _scored(cell: Cell, scale: str) -> Cell:
    plan, values, stale, absent = cell.plan, {}, False, 0
    for spec in plan.specs:
        content, old = score(spec, plan.evaluator, scale)
        if content is None:
            absent += 1
            continue
        wanted = declaration(plan.evaluator.partition(":")[0], EVALUATORS).version
        stale |= old or any(e["version"] != wanted for e in content["evaluations"])
        if (found := value(content, plan.task, plan.column.metric)) is not None:
            values[spec.seed] = cell.factor * found
    return replace(cell, values=values, absent=absent, stale=stale)


def _derived(grid, rows: list[list[Cell]]) -> list[list[Cell]]:
    """Columns that are the mean of those before them, or a difference to the baseline row."""
    for place, column in enumerate(grid.columns):
        for row in rows:
            if column.mean:
                parts = [cell for cell, c in zip(row[:place], grid.columns, strict=False) if c.task is not None]
                row[place] = _of_parts(row[place], parts, lambda *v: sum(v) / len(v))
    for place, column in enumerate(grid.columns):
        if column.delta is None:
            continue
        of, base = grid.column(column.delta), rows[grid.row(grid.baseline)]
        for row in rows:
            if row is base:
                continue
            made, own, other = row[place], row[of].published, base[of].published
            if made.published is None and own and other:
                off = own.value - other.value
                made = replace(made, published=Published(value=off, text=f"{off:+.{made.digits}f}"))
            row[place] = _of_parts(made, [row[of], base[of]], lambda a, b: a - b)
    return rows


def _of_parts(cell: Cell, parts: list[Cell], function) -> Cell:
    if not parts or not all(part.values for part in parts):
        return replace(cell, parts=tuple(parts))
    values, absent = combined(function, *parts), max(part.absent for part in parts)
    return replace(cell, parts=tuple(parts), values=values, absent=absent, stale=any(part.stale for part in parts))


def combined(function, *cells: Cell) -> dict[int, float]:
    """A function of cells' values seed by seed; a row without randomness has the same value for every seed."""
    own = [cell.values for cell in cells if not fixed(cell)]
    seeds = sorted(set.intersection(*map(set, own))) if own else [0]
    return {s: function(*(next(iter(c.values.values())) if fixed(c) else c.values[s] for c in cells)) for s in seeds}


def methods(cell: Cell) -> set[str]:
    """Kinds of the methods behind a cell; of a difference, of its own row."""
    own = cell.parts[:1] if cell.plan.column.delta is not None else cell.parts
    return {kind for part in own for kind in methods(part)} | {declaration(s.method).kind for s in cell.plan.specs}


def fixed(cell: Cell) -> bool:
    """Whether a cell has no randomness, so that one run stands for every seed."""
    if cell.parts:
        return all(fixed(part) for part in cell.parts)
    return bool(cell.plan.specs) and methods(cell) == {"untrained"}


def is_control(cell: Cell) -> bool:
    return "control" in methods(cell)


def _judged(cell: Cell, scale: str) -> Cell:
    if cell.published is None or not cell.values or cell.plan.column.delta is not None:
        return cell
    if scale != PAPER_SCALE:
        reason = f"scale {scale}: another encoder, other data, fewer steps"
        return replace(cell, verdict=stats.Verdict(stats.NOT_COMPARABLE, None, reason))
    if cell.absent or cell.stale:
        return replace(cell, verdict=stats.Verdict(stats.NOT_COMPARABLE, None, "runs are missing or stale"))
    found = stats.verdict(cell.values.values(), cell.published, cell.published_seeds, fixed(cell))
    return replace(cell, verdict=found)


def _best(rows: list[list[Cell]]) -> list[list[Cell]]:
    """Marks the best of ours in a column among rows on the same encoder, but controls; ties together, as printed."""
    for place in range(len(rows[0]) if rows else 0):
        column, groups = rows[0][place].plan.column, {}
        if column.delta is not None:
            continue
        for row in rows:
            cell = row[place]
            if cell.values and not is_control(cell):
                groups.setdefault(role(cell), []).append(row)
        for group in groups.values():
            means = [float(row[place].number(row[place].ours.mean)) for row in group]
            best = min(means) if column.lower else max(means)
            if len(set(means)) > 1:
                for row, mean in zip(group, means, strict=True):
                    row[place] = replace(row[place], best=mean == best)
    return rows


def role(cell: Cell) -> str | None:
    """The encoder that a row's recipe names; None is the table's own."""
    return cell.plan.row.run.encoder if cell.plan.row.run else None
