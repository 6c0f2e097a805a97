"""Tables and figures as grids of cells, and the runs behind every cell at a scale."""

from dataclasses import dataclass
from itertools import chain

from csebench.base.caches import cached
from csebench.base.errors import BadInput, look_up, unknown
from csebench.plan import tuning
from csebench.plan.catalog.files import SIDE_BY_SIDE, encoder_roles, paper, place_in_paper, scale
from csebench.plan.catalog.registry import EVALUATORS, adapter_defect, declaration, panels, protocol
from csebench.plan.recipe import conditions, corpus_of, make_spec, pretraining, recipe_defect
from csebench.plan.schema.declarations import Scale, Value
from csebench.plan.schema.paper import (
    FIGURES_OF_SCORES,
    Column,
    Figure,
    Grid,
    Recipe,
    Row,
    SettingsTable,
    Table,
    pick_grid,
)
from csebench.plan.schema.spec import Spec


@dataclass(frozen=True)
class CellPlan:
    """One cell: its runs, one per seed, and the score to read from each; or the reason why there
    are none."""

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
    """Plan the rows of cells of `table2` or `figure3`; no rows for a table of settings.

    Raises:
        BadInput: the file of the paper names what does not exist.
    """
    grid = find_grid(paper_name, name)
    if isinstance(grid, SettingsTable):
        return []
    check_columns(grid, paper_name, name)
    if isinstance(grid, Figure):
        check_figure_kind(grid, paper_name, name)
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
            rows.append(
                [_cell(grid, row, run, column, settings, seeds, where) for column in grid.columns]
            )
    return rows


def check_columns(grid: Grid, paper_name: str, name: str) -> None:
    """Raises BadInput where an evaluator of a column does not exist, or does not have its task."""
    for index, column in enumerate(grid.columns):
        if column.task is None:
            continue
        evaluator = grid.column_evaluator(column)
        key = ("columns", index) if column.evaluator else ("evaluator",)
        where = place_in_paper(paper_name, name, *key)
        if adapter_defect(
            evaluator, EVALUATORS, where
        ):  # a broken file has no columns, but a reason
            continue
        tasks = protocol(evaluator, where).tasks
        if column.task not in tasks:
            where = f"{place_in_paper(paper_name, name, 'columns', index)}: {column.label}"
            raise unknown(f"task of {evaluator}", column.task, tasks, where)


def check_figure_kind(figure: Figure, paper_name: str, name: str) -> None:
    """Raises BadInput where nothing draws a kind of figure, or two evaluators do."""
    if figure.kind in FIGURES_OF_SCORES:
        return
    where, drawn_by = place_in_paper(paper_name, name, "kind"), panels().get(figure.kind, [])
    if not drawn_by:
        raise unknown("kind of figure", figure.kind, [*FIGURES_OF_SCORES, *panels()], where)
    if len(drawn_by) > 1:
        both = " and ".join(drawn_by)
        raise BadInput(f"{where}: {both} both draw {figure.kind!r}: rename it in one's `panels`.")


def _cell(
    grid: Grid, row: Row, run: Recipe, column: Column, scale: Scale, seeds: list[int], where: str
) -> CellPlan:
    """Plan a cell of a row that has a recipe, at a scale."""
    if column.task is None:
        return CellPlan(row, column)  # derived from other cells

    # what the scale does not have
    role = run.encoder or grid.encoder
    if role not in scale.encoders:
        if role not in encoder_roles():
            raise unknown("encoder of config/", role, encoder_roles(), where)
        return CellPlan(row, column, missing=f"no {role} at scale {scale.scale}")
    of_column = f"{where}: column {column.label}"
    size = look_up(f"size of config/{scale.scale}.yaml", column.size, scale.sizes, of_column)
    if corpus_of(declaration(run.method), scale) is None:
        return CellPlan(row, column, missing=f"no triplets at scale {scale.scale}")
    requested = grid.column_evaluator(column)
    evaluator = substitute(requested, scale)
    if evaluator is None:
        return CellPlan(row, column, missing=f"no {requested} at scale {scale.scale}")
    if broken := adapter_defect(evaluator, EVALUATORS, where):
        return CellPlan(row, column, missing=broken)
    swept = run.sweep | column.sweep
    if absent := absent_values(swept, scale):
        return CellPlan(row, column, missing="; ".join(absent))

    # its runs
    encoder, tuned = scale.encoders[role], {}
    if encoder == scale.encoders.get(tuning.ENCODER):
        tuned = tuning.tuned_settings(scale.scale)
    recipe = run.model_copy(update={"sweep": substitute_sweep(swept, scale)})
    given = conditions(scale, tuned)
    where = f"{where}: {row.label}, with config/{scale.scale}.yaml"
    seeds = scale.seeds_by_size.get(column.size, seeds)
    specs = [make_spec(recipe, encoder, size, seed, given, where) for seed in seeds]
    distinct = {
        spec.run_id: spec for spec in specs
    }  # an untrained method has one run for all seeds
    before = pretraining(specs[0].params, encoder, given, where)

    # the score to read from each
    shown = protocol(evaluator)
    return CellPlan(
        row,
        column,
        specs=tuple(distinct.values()),
        evaluator=evaluator,
        task=column.task if column.task in shown.tasks else shown.tasks[0],
        metric=column.metric or shown.metric,
        before=(before,) if before else (),
    )


def parts_of_cell(grid: Grid, cells: list[list[CellPlan]], row: int, column: int) -> list[CellPlan]:
    """List the cells with runs that a cell shows, or is computed from.

    Returns:
        nothing for the difference of a baseline to itself.
    """
    shown = grid.columns[column]
    if shown.task is not None:
        return [cells[row][column]]
    if shown.mean:
        return [cell for cell in cells[row][:column] if cell.column.task is not None]
    if row == grid.baseline_row:
        return []
    minuend = grid.column(shown.delta or "")
    of_row = parts_of_cell(grid, cells, row, minuend)
    of_baseline = parts_of_cell(grid, cells, grid.baseline_row, minuend)
    return of_row + of_baseline


def substitute(evaluator: str, scale: Scale) -> str | None:
    """Name the evaluator that a scale uses for another; None if it uses none.

    The scale names it by its text, `transfer:fasttest`, or without settings, `transfer`.
    """
    name = evaluator.partition(":")[0]
    return scale.evaluators.get(evaluator, scale.evaluators.get(name, evaluator))


def substitute_sweep(sweep: dict[str, Value], scale: Scale) -> dict[str, Value]:
    """Replace the values of a sweep by those that a scale uses; without those that it lacks."""
    values = {key: scale.sweeps.get(key, {}).get(str(value), value) for key, value in sweep.items()}
    return {key: value for key, value in values.items() if value is not None}


def absent_values(sweep: dict[str, Value], scale: Scale) -> list[str]:
    """Say which values of a sweep a scale has nothing for."""
    there = substitute_sweep(sweep, scale)
    return [f"no {key} {sweep[key]} at scale {scale.scale}" for key in sweep if key not in there]


def find_grid(paper_name: str, name: str) -> Table | SettingsTable | Figure:
    """Find `table2` or `figure3` of a paper.

    `micse` of the generated paper `variants` is the table of miCSE's variants.
    """
    return pick_grid(dict(paper(paper_name)), name, f" of {paper_name}")


def recipe_values(paper_name: str, name: str, param: str) -> list[Value]:
    """Read a parameter in the recipe of each column of a table of settings, at scale paper."""
    table, paper_scale = find_grid(paper_name, name), scale("paper")
    assert isinstance(table, SettingsTable), name
    size, seed, given = paper_scale.sizes["100%"], paper_scale.seeds[0], conditions(paper_scale)
    values = []
    for index, column in enumerate(table.columns):
        role = column.run.encoder or table.encoder
        where = f"{place_in_paper(paper_name, name, 'columns', index)}: {column.label}"
        encoder = look_up("encoder of config/paper.yaml", role, paper_scale.encoders, where)
        spec = make_spec(column.run, encoder, size, seed, given, where)
        values.append(look_up("parameter", param, spec.settings, where))
    return values


def untrained_cell(paper_name: str, name: str, scale_name: str) -> CellPlan | None:
    """Find the untrained encoder's cell for the line in a figure of curves or of bars.

    Returns:
        the cell of the page of all methods that shows the same score; None for a figure of
        differences, of several scores or on another encoder.
    """
    grid = find_grid(paper_name, name)
    if not isinstance(grid, Figure) or grid.kind not in ("curves", "bars"):
        return None
    if grid.kind == "bars" and grid.baseline:
        return None
    shown = {
        score for cell in chain(*plan_grid(paper_name, name, scale_name)) for score in cell.scores
    }
    for cell in chain(*plan_grid(SIDE_BY_SIDE, SIDE_BY_SIDE, scale_name)):
        if (
            cell.specs
            and declaration(cell.specs[0].method).kind == "untrained"
            and cell.scores == shown
        ):
            return cell
    return None
