"""Plan the cells of tables and figures, and the runs of every cell at a scale.

`plan_grid` plans one table or figure. A cell gets its runs and the score to read from them, or the
reason why it has no runs. Pages, which show one or more tables or figures, are in targets.py.
"""

from dataclasses import dataclass

from csebench.base.caches import cached
from csebench.base.errors import BadInput, look_up, unknown
from csebench.plan import tuning
from csebench.plan.catalog.files import SIDE_BY_SIDE, encoder_roles, paper, place_in_paper, scale
from csebench.plan.catalog.registry import EVALUATORS, adapter_defect, declaration, panels, protocol
from csebench.plan.random_settings import draw_settings
from csebench.plan.recipe import (
    conditions,
    corpus_of,
    make_spec,
    pretraining,
    recipe_defect,
    recipe_name,
    used_components,
    variant_settings,
)
from csebench.plan.schema.declarations import EncoderRef, Scale, Value
from csebench.plan.schema.paper import (
    FIGURES_OF_SCORES,
    Column,
    Figure,
    Grid,
    Recipe,
    Row,
    SettingsTable,
    Table,
    UnscoredTable,
    pick_grid,
)
from csebench.plan.schema.spec import Spec


@dataclass(frozen=True)
class CellPlan:
    """A cell with its runs, or with the reason why there are none."""

    row: Row
    column: Column
    specs: tuple[Spec, ...] = ()  # the runs, one per seed

    # the score to read from each run; empty if there are no runs
    evaluator: str = ""
    task: str = ""
    metric: str = ""

    missing: str | None = None  # why there are no runs; None for a cell that is derived from others
    before: tuple[Spec, ...] = ()  # pre-training runs that `specs` start from
    # whether each run has random settings of its own, which pair it with runs of other rows
    has_random_settings: bool = False

    @property
    def scores(self) -> set[tuple[str, ...]]:
        """Which score the cell shows, of which encoder: (evaluator, task, metric, encoder)."""
        return {(self.evaluator, self.task, self.metric, spec.encoder.name) for spec in self.specs}


@cached
def plan_grid(paper_name: str, name: str, scale_name: str) -> list[list[CellPlan]]:
    """Plan the cells of `table2` or `figure3`, row by row.

    Returns:
        no rows for a table of settings or texts.

    Raises:
        BadInput: the file of the paper names what does not exist.
    """
    grid = find_grid(paper_name, name)
    if isinstance(grid, UnscoredTable):
        return []
    check_columns(grid, paper_name, name)
    if isinstance(grid, Figure):
        check_figure_kind(grid, paper_name, name)
    return [plan_row(paper_name, name, index, scale_name) for index in range(len(grid.rows))]


@cached
def plan_row(paper_name: str, name: str, index: int, scale_name: str) -> list[CellPlan]:
    """Plan the cells of one row of `table2` or `figure3`.

    Args:
        index: of the row, from 0.

    Raises:
        BadInput: the row names what does not exist.
    """
    grid = find_grid(paper_name, name)
    assert not isinstance(grid, UnscoredTable), name
    row = grid.rows[index]
    where = place_in_paper(paper_name, name, "rows", index)
    missing = row.missing
    if row.run is not None:
        missing = recipe_defect(row.run.method, row.run.components, f"{where}: {row.label}")
    if row.run is None or missing:
        return [CellPlan(row, column, missing=missing) for column in grid.columns]
    cells = []
    for column in grid.columns:
        cells.append(_cell(paper_name, name, index, column, scale_name))
    return cells


def rows_of_method(method: str, paper_name: str, name: str) -> list[int]:
    """List the indexes of the rows of `table2` or `figure3` that run a method."""
    grid = find_grid(paper_name, name)
    if isinstance(grid, UnscoredTable):
        return []
    indexes = []
    for index, row in enumerate(grid.rows):
        if row.run is not None and row.run.method == method:
            indexes.append(index)
    return indexes


def check_columns(grid: Grid, paper_name: str, name: str) -> None:
    """Raise BadInput if an evaluator of a column does not exist, or does not have its task."""
    for index, column in enumerate(grid.columns):
        if column.task is None:
            continue
        evaluator = grid.column_evaluator(column)
        key = ("columns", index) if column.evaluator else ("evaluator",)
        where = place_in_paper(paper_name, name, *key)
        if adapter_defect(evaluator, EVALUATORS, where) is not None:
            continue  # the file of the evaluator is broken, which the cells say
        tasks = protocol(evaluator, where).tasks
        if column.task not in tasks:
            where = f"{place_in_paper(paper_name, name, 'columns', index)}: {column.label}"
            raise unknown(f"task of {evaluator}", column.task, tasks, where)


def check_figure_kind(figure: Figure, paper_name: str, name: str) -> None:
    """Raise BadInput if no evaluator draws a kind of figure, or more than one does."""
    if figure.kind in FIGURES_OF_SCORES:
        return
    where = place_in_paper(paper_name, name, "kind")
    drawn_by = panels().get(figure.kind, [])
    if not drawn_by:
        raise unknown("kind of figure", figure.kind, [*FIGURES_OF_SCORES, *panels()], where)
    if len(drawn_by) > 1:
        names = " and ".join(drawn_by)
        raise BadInput(f"{where}: {names} both draw {figure.kind!r}: rename it in one's `panels`.")


def _cell(paper_name: str, name: str, index: int, column: Column, scale_name: str) -> CellPlan:
    """Plan a cell of a row that has a recipe, at a scale. See `plan_row` for the arguments."""
    grid, row, run = _row_with_recipe(paper_name, name, index)
    if column.task is None:
        return CellPlan(row, column)  # computed from other cells
    settings = scale(scale_name)
    where = place_in_paper(paper_name, name, "rows", index)
    missing = missing_at_scale(grid, run, column, settings, where)
    if missing is not None:
        return CellPlan(row, column, missing=missing)
    sweep = tuple(column.sweep.items())
    runs = _runs_of_cell(paper_name, name, index, column.size, sweep, scale_name)

    # the score to read from each run
    evaluator = substitute(grid.column_evaluator(column), settings)
    assert evaluator is not None, column.label  # missing_at_scale has refused such cells
    scored_by = protocol(evaluator)
    task = column.task
    if task not in scored_by.tasks:  # the scale's substitute has other tasks
        task = scored_by.tasks[0]
    return CellPlan(
        row,
        column,
        specs=runs.specs,
        evaluator=evaluator,
        task=task,
        metric=column.metric or scored_by.metric,
        before=runs.before,
        has_random_settings=grid.random_settings is not None,
    )


def _row_with_recipe(paper_name: str, name: str, index: int) -> tuple[Grid, Row, Recipe]:
    """Look up a table or figure, one of its rows, and the recipe of this row."""
    grid = find_grid(paper_name, name)
    assert not isinstance(grid, UnscoredTable), name
    row = grid.rows[index]
    assert row.run is not None, row.label
    return grid, row, row.run


@dataclass(frozen=True)
class CellRuns:
    """The runs of a cell, one per seed, and the pre-training runs that they start from."""

    specs: tuple[Spec, ...]
    before: tuple[Spec, ...]


@cached
def _runs_of_cell(
    paper_name: str,
    name: str,
    index: int,
    column_size: str,
    column_sweep: tuple[tuple[str, Value], ...],
    scale_name: str,
) -> CellRuns:
    """Make the runs of a cell. Columns of one size and sweep share them, so they are made once.

    Args:
        index: of the row, from 0.
        column_size, column_sweep: of the column.
    """
    grid, row, run = _row_with_recipe(paper_name, name, index)
    settings = scale(scale_name)
    place = place_in_paper(paper_name, name, "rows", index)
    where = f"{place}: {row.label}, with config/{scale_name}.yaml"
    encoder = settings.encoders[run.encoder or grid.encoder]
    sweep = substitute_sweep({**run.sweep, **dict(column_sweep)}, settings)
    recipe = run.model_copy(update={"sweep": sweep})
    size = settings.sizes[column_size]
    number = grid.random_settings or grid.run_seeds
    seeds = settings.seeds_of(f"{paper_name}/{name}", number)

    if grid.random_settings is not None:
        given = conditions(settings)
        specs = [random_run(recipe, encoder, size, seed, settings, where) for seed in seeds]
    else:
        tuned = {}
        if encoder == settings.encoders.get(tuning.ENCODER):
            tuned = tuning.tuned_settings(scale_name)
        given = conditions(settings, tuned)
        seeds = settings.seeds_by_size.get(column_size, seeds)
        specs = [make_spec(recipe, encoder, size, seed, given, where) for seed in seeds]
    by_id = {spec.run_id: spec for spec in specs}  # an untrained method has one run for all seeds
    before: tuple[Spec, ...] = ()
    stage = pretraining(specs[0].params, encoder, given, where)
    if stage is not None:
        before = (stage,)
    return CellRuns(tuple(by_id.values()), before)


def random_run(
    recipe: Recipe, encoder: EncoderRef, size: int, seed: int, scale: Scale, where: str
) -> Spec:
    """Make the run of a recipe whose settings are drawn. If it diverges, it counts as untrained."""
    method = declaration(recipe.method)
    variant = variant_settings(method, recipe.variant, where)
    components = used_components(method, variant, recipe)
    drawn = draw_settings(method, components, scale, seed)
    given = conditions(scale, {recipe_name(method, components): drawn})
    spec = make_spec(recipe, encoder, size, seed, given, where)
    if not method.is_trained:
        return spec
    return spec.model_copy(update={"if_diverged": "untrained"})


def missing_at_scale(
    grid: Grid, run: Recipe, column: Column, scale: Scale, where: str
) -> str | None:
    """Say why nothing is run for a cell: the scale lacks something, or an evaluator is invalid.

    Returns:
        None if the cell has runs.

    Raises:
        BadInput: no scale has the encoder, or this scale does not state the size of the column.
    """
    role = run.encoder or grid.encoder
    if role not in scale.encoders:
        if role not in encoder_roles():
            raise unknown("encoder of config/", role, encoder_roles(), where)
        return f"no {role} at scale {scale.scale}"
    if grid.random_settings is not None and not scale.prior:
        return f"no prior of settings at scale {scale.scale}"
    of_column = f"{where}: column {column.label}"
    look_up(f"size of config/{scale.scale}.yaml", column.size, scale.sizes, of_column)
    if corpus_of(declaration(run.method), scale) is None:
        return f"no triplets at scale {scale.scale}"
    requested = grid.column_evaluator(column)
    evaluator = substitute(requested, scale)
    if evaluator is None:
        return f"no {requested} at scale {scale.scale}"
    defect = adapter_defect(evaluator, EVALUATORS, where)
    if defect is not None:
        return defect
    absent = absent_values(run.sweep | column.sweep, scale)
    if absent:
        return "; ".join(absent)
    return None


def parts_of_cell(grid: Grid, cells: list[list[CellPlan]], row: int, column: int) -> list[CellPlan]:
    """List the cells with runs that a cell is computed from; a cell with a task is its own part.

    Returns:
        nothing for the difference of a baseline to itself.
    """
    definition = grid.columns[column]
    if definition.task is not None:
        return [cells[row][column]]
    if definition.mean:
        return [cell for cell in cells[row][:column] if cell.column.task is not None]
    if row == grid.baseline_row:
        return []
    minuend = grid.column(definition.delta or "")
    of_row = parts_of_cell(grid, cells, row, minuend)
    of_baseline = parts_of_cell(grid, cells, grid.baseline_row, minuend)
    return of_row + of_baseline


def substitute(evaluator: str, scale: Scale) -> str | None:
    """Name the evaluator that a scale uses in place of an evaluator; None if it uses none.

    The scale replaces evaluators by name, `transfer`, or with their settings, `transfer:fasttest`.
    The latter come first.
    """
    name = evaluator.partition(":")[0]
    return scale.evaluators.get(evaluator, scale.evaluators.get(name, evaluator))


def substitute_sweep(sweep: dict[str, Value], scale: Scale) -> dict[str, Value]:
    """Replace the values of a sweep by the substitutes of a scale.

    Values whose substitute is None are left out.
    """
    substituted = {}
    for key, value in sweep.items():
        substitutes = scale.sweeps.get(key, {})
        new_value = substitutes.get(str(value), value)
        if new_value is not None:
            substituted[key] = new_value
    return substituted


def absent_values(sweep: dict[str, Value], scale: Scale) -> list[str]:
    """Say which values of a sweep the scale leaves out."""
    present = substitute_sweep(sweep, scale)
    return [f"no {key} {sweep[key]} at scale {scale.scale}" for key in sweep if key not in present]


def find_grid(paper_name: str, name: str) -> Table | UnscoredTable | Figure:
    """Find `table2` or `figure3` of a paper.

    In the generated paper `variants`, a table has the name of a method: `micse`.
    """
    return pick_grid(dict(paper(paper_name)), name, f" of {paper_name}")


def recipe_values(paper_name: str, name: str, param: str) -> list[Value]:
    """List the values of a parameter in the recipes of a table of settings, at scale paper.

    Returns:
        a value per column.
    """
    table = find_grid(paper_name, name)
    assert isinstance(table, SettingsTable), name
    paper_scale = scale("paper")
    size = paper_scale.sizes["100%"]
    seed = paper_scale.seeds[0]
    given = conditions(paper_scale)
    values = []
    for index, column in enumerate(table.columns):
        role = column.run.encoder or table.encoder
        where = f"{place_in_paper(paper_name, name, 'columns', index)}: {column.label}"
        encoder = look_up("encoder of config/paper.yaml", role, paper_scale.encoders, where)
        spec = make_spec(column.run, encoder, size, seed, given, where)
        values.append(look_up("parameter", param, spec.settings, where))
    return values


def untrained_cell(paper_name: str, name: str, scale_name: str) -> CellPlan | None:
    """Find the cell of the untrained encoder that a figure of curves or bars shows as a line.

    Returns:
        the cell of the page of all methods that shows the score of the figure. None if there is no
        such cell, as for a figure of differences, of several scores or on another encoder.
    """
    grid = find_grid(paper_name, name)
    if not isinstance(grid, Figure) or grid.kind not in ("curves", "bars"):
        return None
    if grid.kind == "bars" and grid.baseline:  # the bars are differences
        return None
    scores: set[tuple[str, ...]] = set()
    for row in plan_grid(paper_name, name, scale_name):
        for cell in row:
            scores |= cell.scores
    for row in plan_grid(SIDE_BY_SIDE, SIDE_BY_SIDE, scale_name):
        for cell in row:
            if is_untrained(cell) and cell.scores == scores:
                return cell
    return None


def is_untrained(cell: CellPlan) -> bool:
    """Whether a cell shows an encoder that is not trained."""
    return len(cell.specs) > 0 and declaration(cell.specs[0].method).kind == "untrained"
