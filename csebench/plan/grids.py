"""Tables and figures as grids of cells, and the runs behind every cell at a scale."""

from dataclasses import dataclass
from itertools import chain

from csebench.base.caches import cached
from csebench.base.errors import BadInput, look_up, unknown
from csebench.plan import tuning
from csebench.plan.catalog import SIDE_BY_SIDE, encoder_roles, paper, place_in_paper, scale
from csebench.plan.declarations import Scale, Value
from csebench.plan.papers import FIGURES_OF_SCORES, Column, Figure, Grid, Recipe, Row, SettingsTable, Table, pick_grid
from csebench.plan.recipe import conditions, corpus_of, make_spec, pretraining, recipe_defect
from csebench.plan.registry import EVALUATORS, declaration, defect, panels, protocol
from csebench.plan.spec import Spec


@dataclass(frozen=True)
class CellPlan:
    """One cell: its runs, one per seed, and the score to read from each; or the reason why there are none."""

    row: Row
    column: Column
    specs: tuple[Spec, ...] = ()
    evaluator: str = ""  # these three are empty where there are no runs
    task: str = ""
    metric: str = ""
    missing: str | None = None
    before: tuple[Spec, ...] = ()  # pre-training runs that `specs` start from

    @property
    def scores(self) -> set[tuple[str, ...]]:
        """What it shows, and on which encoder."""
        return {(self.evaluator, self.task, self.metric, spec.encoder.name) for spec in self.specs}


@cached
def plan_grid(paper_name: str, name: str, scale_name: str) -> list[list[CellPlan]]:
    """The rows of cells of `table2` or `figure3`; empty for a table of settings."""
    grid = find_grid(paper_name, name)
    if isinstance(grid, SettingsTable):
        return []
    for index, column in enumerate(grid.columns):
        key = ("columns", index) if column.evaluator else ("evaluator",)
        evaluator, where = grid.column_evaluator(column), place_in_paper(paper_name, name, *key)
        if column.task is None or defect(evaluator, EVALUATORS, where):
            continue
        if column.task not in (tasks := protocol(evaluator, where).tasks):
            where = f"{place_in_paper(paper_name, name, 'columns', index)}: {column.label}"
            raise unknown(f"task of {evaluator}", column.task, tasks, where)
    if isinstance(grid, Figure) and grid.kind not in FIGURES_OF_SCORES:
        where, drawn_by = place_in_paper(paper_name, name, "kind"), panels().get(grid.kind, [])
        if not drawn_by:
            raise unknown("kind of figure", grid.kind, [*FIGURES_OF_SCORES, *panels()], where)
        if drawn_by[1:]:
            raise BadInput(f"{where}: {' and '.join(drawn_by)} both draw {grid.kind!r}: rename it in one's `panels`.")
    rows = []
    for index, row in enumerate(grid.rows):
        where = place_in_paper(paper_name, name, "rows", index)
        run, missing = row.run, row.missing
        if run is not None:
            missing = recipe_defect(run.method, run.components, f"{where}: {row.label}")
        if run is None or missing:
            rows.append([CellPlan(row, column, missing=missing) for column in grid.columns])
        else:
            settings = scale(scale_name)
            seeds = settings.seeds_of(f"{paper_name}/{name}", grid.run_seeds)
            rows.append([_cell(grid, row, run, column, settings, seeds, where) for column in grid.columns])
    return rows


def _cell(grid: Grid, row: Row, run: Recipe, column: Column, scale: Scale, seeds: list[int], where: str) -> CellPlan:
    if column.task is None:
        return CellPlan(row, column)  # derived from other cells
    role = run.encoder or grid.encoder
    if role not in scale.encoders:
        if role not in encoder_roles():
            raise unknown("encoder of config/", role, encoder_roles(), where)
        return CellPlan(row, column, missing=f"no {role} at scale {scale.scale}")
    size = look_up(f"size of config/{scale.scale}.yaml", column.size, scale.sizes, f"{where}: column {column.label}")
    if corpus_of(declaration(run.method), scale) is None:
        return CellPlan(row, column, missing=f"no triplets at scale {scale.scale}")
    requested = grid.column_evaluator(column)
    evaluator = substitute(requested, scale)
    if evaluator is None:
        return CellPlan(row, column, missing=f"no {requested} at scale {scale.scale}")
    if broken := defect(evaluator, EVALUATORS, where):
        return CellPlan(row, column, missing=broken)
    sweep, absent = substitute_sweep(run.sweep | column.sweep, scale)
    if absent:
        return CellPlan(row, column, missing=absent)
    encoder = scale.encoders[role]
    tuned = tuning.tuned_settings(scale.scale) if encoder == scale.encoders.get(tuning.ENCODER) else {}
    recipe, given = run.model_copy(update={"sweep": sweep}), conditions(scale, tuned)
    where = f"{where}: {row.label}, with config/{scale.scale}.yaml"
    seeds = scale.seeds_by_size.get(column.size, seeds)
    specs = [make_spec(recipe, encoder, size, seed, given, where) for seed in seeds]
    distinct = {spec.run_id: spec for spec in specs}  # an untrained method has one run for all seeds
    before = pretraining(specs[0].params, encoder, given, where)
    shown, of_before = protocol(evaluator), (before,) if before else ()
    task, metric = column.task if column.task in shown.tasks else shown.tasks[0], column.metric or shown.metric
    return CellPlan(row, column, tuple(distinct.values()), evaluator, task, metric, before=of_before)


def parts_of_cell(grid: Grid, cells: list[list[CellPlan]], row: int, column: int) -> list[CellPlan]:
    """The cells with runs that a cell shows or is computed from; none for the difference of a baseline to itself."""
    shown = grid.columns[column]
    if shown.task is not None:
        return [cells[row][column]]
    if shown.mean:
        return [cell for cell in cells[row][:column] if cell.column.task is not None]
    if row == grid.baseline_row:
        return []
    minuend = grid.column(shown.delta or "")
    return [part for r in (row, grid.baseline_row) for part in parts_of_cell(grid, cells, r, minuend)]


def substitute(evaluator: str, scale: Scale) -> str | None:
    """The evaluator that a scale uses for another, by its text or its name without settings; None if it uses none."""
    return scale.evaluators.get(evaluator, scale.evaluators.get(evaluator.partition(":")[0], evaluator))


def substitute_sweep(sweep: dict[str, Value], scale: Scale) -> tuple[dict[str, Value], str | None]:
    """(the values that a scale uses for those of a sweep, the reason if one is unavailable there)"""
    values = {key: scale.sweeps.get(key, {}).get(str(value), value) for key, value in sweep.items()}
    absent = [f"no {key} {sweep[key]} at scale {scale.scale}" for key, value in values.items() if value is None]
    return {key: value for key, value in values.items() if value is not None}, "; ".join(absent) or None


def find_grid(paper_name: str, name: str) -> Table | SettingsTable | Figure:
    """`table2` or `figure3` of a paper; `micse` of the paper `variants` is the table of miCSE's variants."""
    return pick_grid(dict(paper(paper_name)), name, f" of {paper_name}")


def recipe_values(paper_name: str, name: str, param: str) -> list[Value]:
    """The value of a parameter in the recipe of each column of a table of settings, at scale paper."""
    table, paper_scale, values = find_grid(paper_name, name), scale("paper"), []
    assert isinstance(table, SettingsTable), name
    for index, column in enumerate(table.columns):
        role, size = column.run.encoder or table.encoder, paper_scale.sizes["100%"]
        where = f"{place_in_paper(paper_name, name, 'columns', index)}: {column.label}"
        encoder = look_up("encoder of config/paper.yaml", role, paper_scale.encoders, where)
        spec = make_spec(column.run, encoder, size, paper_scale.seeds[0], conditions(paper_scale), where)
        values.append(look_up("parameter", param, spec.settings, where))
    return values


def untrained_cell(paper_name: str, name: str, scale_name: str) -> CellPlan | None:
    """The untrained encoder's cell of the page of all methods, for the line in a figure of curves or of bars; None for
    a figure of differences, of several scores or on another encoder."""
    grid = find_grid(paper_name, name)
    if not isinstance(grid, Figure) or grid.kind not in ("curves", "bars") or (grid.kind == "bars" and grid.baseline):
        return None
    shown = {score for cell in chain(*plan_grid(paper_name, name, scale_name)) for score in cell.scores}
    for cell in chain(*plan_grid(SIDE_BY_SIDE, SIDE_BY_SIDE, scale_name)):
        if cell.specs and declaration(cell.specs[0].method).kind == "untrained" and cell.scores == shown:
            return cell
    return None
