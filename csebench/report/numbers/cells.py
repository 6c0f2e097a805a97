"""A paper's table or figure at a scale: cells with our values next to the published ones.

`grid_view` reads every score that exists; `printed_view` reads none. Cells hold values and facts,
such as which scores are on other test data. Sentences about them are made in
csebench/report/words/, pages in csebench/report/pages/ and pictures in csebench/report/figures/.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import sub

from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import declaration, tasks_of
from csebench.plan.grids import CellPlan, find_grid, plan_grid, untrained_cell
from csebench.plan.schema.declarations import AS_IT_IS
from csebench.plan.schema.paper import Figure, Grid, Published, Row, UnscoredTable
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import unavailable
from csebench.report.numbers import stats
from csebench.report.numbers.others import Group, others
from csebench.report.numbers.standard_sets import is_standard_data
from csebench.score.data_of_scores import EvaluationData, Scored, data_of_most
from csebench.score.replicates import has_replicates
from csebench.score.store import stored_score, value, why_missing

PAPER_SCALE = "paper"
ON_OTHER_DATA = "‡"  # follows a score that is not on the test data of the table


@dataclass(frozen=True)
class ScoresElsewhere:
    """Scores of a cell's runs on test data other than the table's."""

    data: EvaluationData
    table_data: EvaluationData
    values: dict[int, float | None]  # by seed; None if the evaluator gave no such score


@dataclass(frozen=True)
class Cell:
    """Our values and the published one, both in printed units."""

    plan: CellPlan
    factor: float  # printed value / score
    digits: int
    values: dict[int, float]  # by seed, of runs that are scored on the test data of the table
    data: EvaluationData | None = None  # of the table, if a run has a score on it
    elsewhere: tuple[ScoresElsewhere, ...] = ()
    # seeds whose score has no replicates over test items
    without_replicates: frozenset[int] = frozenset()
    is_standard: bool = True  # False: the test data is not known to be the set that papers use
    absent: int = 0  # runs without a score
    reasons: tuple[str, ...] = ()  # why runs have no score, if it is known
    # scored with an older code version, or with settings that the scale no longer has
    is_outdated: bool = False
    unchanged: bool = False  # the loss is 0 in all runs, so that training changes no weight
    loss_vanished: bool = False  # in all runs, the loss is next to 0 almost from the start
    published: Published | None = None
    published_seeds: int = 1  # number of seeds that the published value is a mean of
    published_encoder: str = ""  # role of the paper's encoder; a scale may use another one
    published_evaluator: str = ""
    judged: bool = False  # whether runs of this scale can be judged by the published value
    parts: tuple["Cell", ...] = ()  # for a derived cell: the cells that it is computed from
    others: Group | None = None  # runs of other people on the paper's encoder, not mixed with ours

    @property
    def ours(self) -> stats.Summary | None:
        """Our mean and deviation over seeds; None without values."""
        if not self.values:
            return None
        return stats.summarise(self.values.values())

    @property
    def mean(self) -> float:
        """Our mean over seeds, for a cell with values."""
        return stats.summarise(self.values.values()).mean

    @property
    def leaves(self) -> list["Cell"]:
        """The cells with runs from which this cell is computed; itself if it has no parts."""
        return [leaf for _, leaf in self.weighted_leaves()]

    def weighted_leaves(self, weight: float = 1) -> list[tuple[float, "Cell"]]:
        """Write `weight` times this cell as a weighted sum of its leaves."""
        if not self.parts:
            return [(weight, self)]
        if self.plan.column.delta is not None:
            shares = [1, -1]
        else:
            shares = [1 / len(self.parts)] * len(self.parts)
        leaves = []
        for share, part in zip(shares, self.parts, strict=True):
            leaves.extend(part.weighted_leaves(weight * share))
        return leaves

    @property
    def runs_elsewhere(self) -> int:
        """How many runs do not count, because their test data is not the table's."""
        if self.parts:
            return max(part.runs_elsewhere for part in self.parts)
        return sum(len(scores.values) for scores in self.elsewhere)

    @property
    def counted_specs(self) -> list[Spec]:
        """The runs on the table's test data, and the runs without a score."""
        seeds_elsewhere = set(chain.from_iterable(scores.values for scores in self.elsewhere))
        return [spec for spec in self.plan.specs if spec.seed not in seeds_elsewhere]

    @property
    def kinds(self) -> set[str]:
        """Kinds of the methods of its runs. For a difference, the baseline is left out."""
        return {declaration(spec.method).kind for spec in self.leaves[0].plan.specs}

    @property
    def is_control(self) -> bool:
        return "control" in self.kinds

    @property
    def can_be_run(self) -> bool:
        return all(leaf.plan.specs for leaf in self.leaves)

    @property
    def sign(self) -> int:
        """1, or -1 if less is better."""
        return -1 if self.plan.column.lower else 1

    @property
    def is_deterministic(self) -> bool:
        """Whether nothing is random, so that its only run counts for every seed."""
        return self.can_be_run and all(leaf.kinds <= {*AS_IT_IS} for leaf in self.leaves)

    @property
    def is_comparable(self) -> bool:
        """Whether its row can be ranked: it is complete, of today's code, and no control."""
        is_complete = bool(self.values) and not self.absent and not self.runs_elsewhere
        return is_complete and not self.is_outdated and not self.is_control

    @property
    def verdict(self) -> str:
        """Whether the published value could be one of ours (stats.py).

        Empty for a difference, and without a published value or values of ours.
        """
        if self.published is None or not self.values or self.plan.column.delta is not None:
            return ""
        if not self.judged or self.absent or self.is_outdated or self.runs_elsewhere:
            return stats.NOT_COMPARABLE
        verdict = stats.verdict(
            self.values.values(),
            self.published,
            self.published_seeds,
            self.is_deterministic,
            self.point,
        )
        return verdict.name

    @property
    def point(self) -> float:
        """A point (0.01 of a score) in printed units."""
        return self.factor / 100

    @property
    def distance(self) -> float | None:
        """Our mean minus the published value, in printed units; None if one is missing."""
        if self.published is None or not self.values:
            return None
        return self.mean - self.published.value

    @property
    def text(self) -> str:
        """`78.41 ± 0.31`, for a difference `+0.41 ± 0.31`; without a value `missing` or `–`.

        Scores on other test data (`78.41 ± 0.31‡`) are shown only if the table's data has none.
        """
        if self.ours is None and self.runs_elsewhere:
            return self.text_elsewhere
        if self.ours is None:
            return "missing" if self.absent else "–"
        text = self.mean_and_std(self.ours)
        if self.plan.column.delta is not None and self.ours.mean >= 0:
            text = f"+{text}"
        return text

    @property
    def text_elsewhere(self) -> str:
        """`78.41 ± 0.31‡` for scores on one set of other test data.

        `–‡` without values, for a derived cell, or if the scores are on several sets of data.
        """
        if len(self.elsewhere) == 1:
            values = [value for value in self.elsewhere[0].values.values() if value is not None]
            if values:
                return f"{self.mean_and_std(stats.summarise(values))}{ON_OTHER_DATA}"
        return f"–{ON_OTHER_DATA}"

    def mean_and_std(self, values: stats.Summary) -> str:
        """`78.41 ± 0.31`; only the mean if there is no deviation."""
        text = self.number(values.mean)
        if values.std is not None:
            text += f" ± {self.number(values.std)}"
        return text

    def number(self, x: float) -> str:
        """Write a number with as many digits as the paper prints."""
        return f"{x:z.{self.digits}f}"


@dataclass(frozen=True)
class GridView:
    """A paper's table or figure at a scale."""

    paper: str
    name: str  # table2, figure3
    scale: str
    grid: Grid | UnscoredTable
    rows: list[list[Cell]]
    # the test data of the table, by evaluator; scores on other data are not compared
    data: dict[str, EvaluationData] = field(default_factory=dict)

    @property
    def cells(self) -> list[Cell]:
        return list(chain.from_iterable(self.rows))

    @property
    def score_grid(self) -> Grid:
        """The grid of a table or figure of scores."""
        assert isinstance(self.grid, Grid), self.name
        return self.grid

    @property
    def figure(self) -> Figure:
        """The grid of a figure."""
        assert isinstance(self.grid, Figure), self.name
        return self.grid

    def column(self, label: str) -> list[Cell]:
        """The cells of a column."""
        index = self.score_grid.column(label)
        return [row[index] for row in self.rows]

    @property
    def judged(self) -> bool:
        """Whether any printed value is judged by our runs."""
        return any(cell.judged and cell.published for cell in self.cells)

    def is_on_its_data(self, evaluator: str, scored: Scored) -> bool:
        """Whether a score is on the same test data as the table's other scores of the evaluator."""
        return evaluator not in self.data or scored.data.is_same_as(self.data[evaluator])

    @cached_property
    def runs(self) -> dict[tuple[str, str], bool | None]:
        """Whether each (run, evaluator) has outdated scores; None if it has no score to show."""
        plans = [cell.plan for cell in self.cells]
        # some figures draw the untrained encoder as a line, although it is no row
        untrained = untrained_cell(self.paper, self.name, self.scale)
        if untrained is not None:
            plans.append(untrained)
        outdated: dict[tuple[str, str], bool | None] = {}
        for plan in plans:
            for spec in plan.specs:
                key = (spec.run_id, plan.evaluator)
                content, is_outdated = stored_score(spec, plan.evaluator, self.scale)
                if content is None or value(content, plan.task, plan.column.metric) is None:
                    outdated.setdefault(key, None)
                else:
                    outdated[key] = is_outdated
        return outdated

    @property
    def progress(self) -> tuple[int, int]:
        """(runs with scores, runs shown), where a run counts once per evaluator.

        Runs without scores are left out if the data of the evaluator cannot be had.
        """
        scored = sum(outdated is not None for outdated in self.runs.values())
        unscored = [evaluator for (_, evaluator), old in self.runs.items() if old is None]
        possible = sum(unavailable(evaluator, self.scale) is None for evaluator in unscored)
        return scored, scored + possible

    @property
    def outdated_count(self) -> int:
        """How many runs have only scores of older code or other settings."""
        return sum(outdated is True for outdated in self.runs.values())

    @cached_property
    def elsewhere_count(self) -> int:
        """How many runs are scored on other test data and therefore not compared."""
        runs = set()
        for leaf in chain.from_iterable(cell.leaves for cell in self.cells):
            counted = leaf.counted_specs
            for spec in leaf.plan.specs:
                if spec not in counted:
                    runs.add((spec.run_id, leaf.plan.evaluator))
        return len(runs)

    @property
    def not_standard(self) -> list[str]:
        """Evaluators whose test data is not known to be the standard set.

        Their printed values are not judged.
        """
        leaves = chain.from_iterable(cell.leaves for cell in self.cells if cell.published)
        return sorted({leaf.plan.evaluator for leaf in leaves if not leaf.is_standard})

    @property
    def sentences_seen(self) -> int | None:
        """How many sentences a run with the scale's batch sees, if some training set has more.

        None if all training sets have one size, or if runs see every sentence.
        """
        scale = read_scale(self.scale)
        steps = scale.override.get("steps")
        batch = scale.override.get("batch_size")
        if not isinstance(steps, int) or not isinstance(batch, int):
            return None
        columns = [column for column in self.score_grid.columns if column.task]
        sizes = {scale.sizes.get(column.size, 0) for column in columns}
        if len(sizes) < 2 or max(sizes) <= steps * batch:
            return None
        return steps * batch


# ---------------------------------------------------------------- scores

ScoreFiles = dict[str, dict[str, Scored]]  # by evaluator and run, as a run is in several cells


def grid_view(paper_name: str, name: str, scale: str) -> GridView:
    """Build a table or figure with every score of a scale that exists."""
    view = printed_view(paper_name, name, scale)
    if isinstance(view.grid, UnscoredTable):
        return view
    files = _score_files(view.cells, scale)
    data = _data_of(files)
    rows = []
    for cells in view.rows:
        rows.append([_with_scores(cell, files, data, scale) for cell in cells])
    return replace(view, rows=_with_derived(view.grid, rows), data=data)


def with_scores_of(cells: Sequence[Cell], scale: str) -> list[Cell]:
    """Add the scores of runs to single cells of a table. Derived cells stay without scores."""
    files = _score_files(cells, scale)
    data = _data_of(files)
    return [_with_scores(cell, files, data, scale) for cell in cells]


def _data_of(files: ScoreFiles) -> dict[str, EvaluationData]:
    """Find the test data of a table, by evaluator: those of most of its runs."""
    return {evaluator: data_of_most(by_run.values()) for evaluator, by_run in files.items()}


def _score_files(cells: Iterable[Cell], scale: str) -> ScoreFiles:
    """Read the score files that cells show. Evaluators without score files are left out."""
    files: ScoreFiles = {}
    for cell in cells:
        evaluator = cell.plan.evaluator
        for spec in cell.plan.specs:
            if spec.run_id in files.get(evaluator, {}):
                continue
            content, is_outdated = stored_score(spec, evaluator, scale)
            if content is not None:
                files.setdefault(evaluator, {})[spec.run_id] = Scored(content, is_outdated)
    return files


@dataclass(frozen=True)
class RunScore:
    """What a cell shows of one run with a score file."""

    seed: int
    value: float | None  # in printed units; None if the evaluator gave no such score
    data: EvaluationData
    has_replicates: bool
    is_outdated: bool
    changed_weights: bool  # False if the loss was 0 throughout and nothing decays
    loss_vanished: bool  # the report of training says that the loss was next to 0


def _with_scores(
    cell: Cell, files: ScoreFiles, data: dict[str, EvaluationData], scale: str
) -> Cell:
    """Add the scores of its runs to a cell."""
    evaluator = cell.plan.evaluator
    by_run = files.get(evaluator, {})
    scored = [spec for spec in cell.plan.specs if spec.run_id in by_run]
    scores = [_run_score(cell, spec, by_run[spec.run_id]) for spec in scored]
    cell = _with_absent(cell, by_run, scale)
    cell = _with_training(cell, scores)
    if evaluator in data:  # otherwise no run of the table has a score of this evaluator
        cell = _with_values(cell, scores, data[evaluator])
    return _with_standard(cell, scale)


def _run_score(cell: Cell, spec: Spec, file: Scored) -> RunScore:
    """Read from a score file what a cell shows of its run."""
    plan = cell.plan
    fraction = value(file.content, plan.task, plan.column.metric)
    printed_units = None
    if fraction is not None:
        printed_units = cell.factor * fraction
    training = file.content.get("training", {})
    replicated = [has_replicates(file.content, task, plan.metric) for task in averaged_tasks(plan)]
    return RunScore(
        seed=spec.seed,
        value=printed_units,
        data=file.data,
        has_replicates=all(replicated),
        is_outdated=file.is_outdated,
        changed_weights=_changed_weights(training, spec),
        loss_vanished=training.get("loss_vanished", False),
    )


def averaged_tasks(plan: CellPlan) -> Sequence[str]:
    """The tasks whose mean is a cell's score: all of the evaluator for `Avg.`, else its own."""
    if plan.task == "Avg.":
        return tasks_of(plan.evaluator)
    return [plan.task]


def _changed_weights(training: dict, spec: Spec) -> bool:
    """Whether training changed the model, as far as its report tells."""
    curve = training.get("curve")
    if not curve or any(point["loss"] for point in curve):
        return True
    return bool(spec.params["weight_decay"])  # it changes weights without a loss, too


def _with_absent(cell: Cell, by_run: dict[str, Scored], scale: str) -> Cell:
    """Add the number of runs without a score file, with the reasons that are known."""
    absent = [spec.run_id for spec in cell.plan.specs if spec.run_id not in by_run]
    reasons = [why_missing(run_id, cell.plan.evaluator, scale) for run_id in absent]
    known = [reason for reason in dict.fromkeys(reasons) if reason]
    return replace(cell, absent=len(absent), reasons=tuple(known))


def _with_training(cell: Cell, scores: Sequence[RunScore]) -> Cell:
    """Mark a cell whose scores are outdated, or whose runs trained next to nothing."""
    return replace(
        cell,
        is_outdated=any(score.is_outdated for score in scores),
        unchanged=bool(scores) and not any(score.changed_weights for score in scores),
        loss_vanished=bool(scores) and all(score.loss_vanished for score in scores),
    )


def _with_values(cell: Cell, scores: Sequence[RunScore], table_data: EvaluationData) -> Cell:
    """Take the values on the table's test data, and keep the others apart."""
    counted: list[RunScore] = []
    elsewhere: dict[EvaluationData, dict[int, float | None]] = {}
    for score in scores:
        if score.data.is_same_as(table_data):
            counted.append(score)
        else:
            elsewhere.setdefault(score.data, {})[score.seed] = score.value
    return replace(
        cell,
        values={score.seed: score.value for score in counted if score.value is not None},
        data=table_data if counted else None,
        elsewhere=tuple(
            ScoresElsewhere(data, table_data, values) for data, values in elsewhere.items()
        ),
        without_replicates=frozenset(score.seed for score in counted if not score.has_replicates),
    )


def _with_standard(cell: Cell, scale: str) -> Cell:
    """Judge the printed value only if the scores are on the standard test set.

    Scales that differ from the papers judge no printed value, so they need no standard test set.
    """
    if read_scale(scale).differs or cell.data is None:
        return cell
    if is_standard_data(cell.plan.evaluator, cell.data, scale):
        return cell
    return replace(cell, is_standard=False, judged=False)


# ---------------------------------------------------------------- published values


def printed_view(paper_name: str, name: str, scale: str) -> GridView:
    """Build a table or figure with published values only: no score is read."""
    grid = find_grid(paper_name, name)
    if isinstance(grid, UnscoredTable):
        return GridView(paper_name, name, scale, grid, [])
    rows = []
    for plans in plan_grid(paper_name, name, scale):
        cells = []
        for plan, published in zip(plans, plans[0].row.values, strict=True):
            cells.append(_printed_cell(paper_name, grid, plan, published, scale))
        rows.append(cells)
    return GridView(paper_name, name, scale, grid, _with_derived(grid, rows))


def _printed_cell(
    paper_name: str, grid: Grid, plan: CellPlan, published: Published | None, scale: str
) -> Cell:
    column = plan.column
    encoder = _published_encoder(plan.row, grid)
    return Cell(
        plan,
        column.factor or grid.factor,
        grid.column_digits(column),
        {},
        published=published,
        published_seeds=column.seeds or grid.seeds,
        published_encoder=encoder,
        published_evaluator=grid.column_evaluator(column),
        judged=_trains_as_papers_do(encoder, scale),
        others=others(paper_name, grid, plan.row, column),
    )


def _published_encoder(row: Row, grid: Grid) -> str:
    """The role of the encoder that a row's published values are on."""
    if row.evidence is not None and row.evidence.encoder:
        return row.evidence.encoder
    if row.run is not None and row.run.encoder:
        return row.run.encoder
    return grid.encoder


def _trains_as_papers_do(role: str, scale: str) -> bool:
    """Whether a scale has the papers' settings, and their encoder in a role."""
    ours = read_scale(scale)
    if ours.differs:
        return False
    return ours.encoders.get(role) == read_scale(PAPER_SCALE).encoders.get(role)


# ---------------------------------------------------------------- derived cells


def _with_derived(grid: Grid, rows: list[list[Cell]]) -> list[list[Cell]]:
    """Fill the columns that are a mean, then the columns of differences to the baseline row.

    A mean is over the columns before it. A difference may be one of means.
    """
    for index, column in enumerate(grid.columns):
        if not column.mean:
            continue
        for row in rows:
            parts = [cell for cell in row[:index] if cell.plan.column.task is not None]
            row[index] = combine_parts(row[index], parts, _mean)

    for index, column in enumerate(grid.columns):
        if column.delta is None:
            continue
        minuend = grid.column(column.delta)
        base = rows[grid.baseline_row]
        for row in rows:
            if row is not base:
                row[index] = _difference(row[index], row[minuend], base[minuend])
    return rows


def _mean(*values: float) -> float:
    return sum(values) / len(values)


def _difference(cell: Cell, minuend: Cell, base: Cell) -> Cell:
    """Make a cell the difference of two others.

    If the paper prints no difference, the published values are subtracted, too.
    """
    if cell.published is None and minuend.published and base.published:
        difference = minuend.published.value - base.published.value
        text = f"{difference:+z.{cell.digits}f}"
        cell = replace(cell, published=Published(value=difference, text=text))
    return combine_parts(cell, [minuend, base], sub)


def gain_cell(cell: Cell, base: Cell) -> Cell:
    """Make the cell of the difference between two rows in one column."""
    column = cell.plan.column.model_copy(update={"task": None, "delta": cell.plan.column.label})
    gain = Cell(
        CellPlan(cell.plan.row, column),
        cell.factor,
        cell.digits,
        {},
        published_encoder=cell.published_encoder,
        published_evaluator=cell.published_evaluator,
    )
    return _difference(gain, cell, base)


def combine_parts(cell: Cell, parts: list[Cell], function: Callable[..., float]) -> Cell:
    """Make a cell a function of its parts, for every seed that they share.

    The cell gets no values if one of its parts has none.
    """
    is_standard = all(part.is_standard for part in parts)
    cell = replace(
        cell,
        parts=tuple(parts),
        is_standard=is_standard,
        judged=cell.judged and is_standard,
        absent=max((part.absent for part in parts), default=0),
    )
    if not parts or not all(part.values for part in parts):
        return cell
    return replace(
        cell,
        values=combine_by_seed(function, *parts),
        is_outdated=any(part.is_outdated for part in parts),
        unchanged=any(part.unchanged for part in parts),
    )


def shared_seeds(cells: Iterable[Cell]) -> list[int]:
    """List the seeds that cells share, ascending; only 0 if all cells are deterministic."""
    seeds_by_cell = [set(cell.values) for cell in cells if not cell.is_deterministic]
    if not seeds_by_cell:
        return [0]
    return sorted(set.intersection(*seeds_by_cell))


def combine_by_seed(function: Callable[..., float], *cells: Cell) -> dict[int, float]:
    """Apply a function to the values of cells, for every seed that they share.

    A deterministic cell has one value for all seeds.
    """
    seeds = shared_seeds(cells)
    by_cell = []
    for cell in cells:
        if cell.is_deterministic:
            by_cell.append(dict.fromkeys(seeds, cell.mean))
        else:
            by_cell.append(cell.values)
    combined = {}
    for seed in seeds:
        combined[seed] = function(*[values[seed] for values in by_cell])
    return combined
