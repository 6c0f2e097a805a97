"""What a table or figure shows: cells with our values, published ones, verdicts; pages/ and
figures.py write it."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from csebench.plan.catalog.files import scale as read_scale
from csebench.plan.catalog.registry import declaration, tasks_of
from csebench.plan.grids import CellPlan, find_grid, plan_grid, untrained_cell
from csebench.plan.schema.paper import Figure, Grid, Published, SettingsTable
from csebench.plan.schema.spec import Spec
from csebench.plan.targets import unavailable
from csebench.report.numbers import stats
from csebench.report.numbers.others import Group, others
from csebench.report.numbers.standard_sets import is_standard_data
from csebench.score.data_of_scores import EvaluationData, Scored, data_of_most
from csebench.score.replicates import has_replicates
from csebench.score.store import stored_score, value, why_missing

PAPER_SCALE = "paper"
ON_OTHER_DATA = "‡"  # behind a score on other test data than those of the table


@dataclass(frozen=True)
class Cell:
    """Our values and the published one, both in printed units."""

    plan: CellPlan
    factor: float  # printed value / score
    digits: int
    values: dict[int, float]  # by seed, of runs that are scored on the test data of the table
    data: EvaluationData | None = None  # of the table, where a run has a score on it
    # values on other test data
    elsewhere: dict[EvaluationData, dict[int, float | None]] = field(default_factory=dict)
    why_elsewhere: str = ""  # which data that is, where a run is scored on other test data
    without_replicates: frozenset[int] = frozenset()  # seeds whose score has none over test items
    is_standard: bool = True  # False: the test data is not known to be the set that papers use
    absent: int = 0  # runs without a score
    reasons: tuple[str, ...] = ()  # why they have none, where it is known
    # scored with an older code version, or with settings that the scale has no more
    stale: bool = False
    unchanged: bool = False  # training changes no weight, as the loss is 0 in all its runs
    loss_vanished: bool = False  # in all its runs, the loss is next to 0 almost from the start
    published: Published | None = None
    published_seeds: int = 1  # behind the published value
    # role of the encoder behind the published value, whatever a scale uses
    published_encoder: str = ""
    published_evaluator: str = ""
    judged: bool = False  # whether runs of this scale can be judged by the published value
    parts: tuple["Cell", ...] = ()  # cells that a derived one is the mean or the difference of
    # runs by other people with the paper's encoder, never mixed with ours
    others: Group | None = None

    @property
    def ours(self) -> stats.Summary | None:
        return stats.summarise(self.values.values()) if self.values else None

    @property
    def mean(self) -> float:
        """Our mean over seeds, for a cell with values."""
        return stats.summarise(self.values.values()).mean

    @property
    def leaves(self) -> list["Cell"]:
        """The cells with runs that it is computed from: itself, or those of its parts."""
        return [leaf for _, leaf in self.weighted_leaves()]

    @property
    def runs_elsewhere(self) -> int:
        """How many of its runs do not count, as they are scored on other test data than the
        table."""
        if self.parts:
            return max(part.runs_elsewhere for part in self.parts)
        return sum(len(values) for values in self.elsewhere.values())

    @property
    def counted_specs(self) -> list[Spec]:
        """Its runs but for those that are scored on other test data."""
        seeds = {seed for by_seed in self.elsewhere.values() for seed in by_seed}
        return [spec for spec in self.plan.specs if spec.seed not in seeds]

    def weighted_leaves(self, weight: float = 1) -> list[tuple[float, "Cell"]]:
        """The same with their weights: it is their weighted sum, times `weight`."""
        if not self.parts:
            return [(weight, self)]
        shares = (
            (1, -1)
            if self.plan.column.delta is not None
            else [1 / len(self.parts)] * len(self.parts)
        )
        return [
            leaf
            for s, part in zip(shares, self.parts, strict=True)
            for leaf in part.weighted_leaves(weight * s)
        ]

    @property
    def kinds(self) -> set[str]:
        """Kinds of the methods behind it; a difference has those of its row, not of the
        baseline."""
        return {declaration(spec.method).kind for spec in self.leaves[0].plan.specs}

    @property
    def is_control(self) -> bool:
        return "control" in self.kinds

    @property
    def can_be_run(self) -> bool:
        return all(leaf.plan.specs for leaf in self.leaves)

    @property
    def sign(self) -> int:
        """1, or -1 where less is better."""
        return -1 if self.plan.column.lower else 1

    @property
    def is_deterministic(self) -> bool:
        """Whether it has no randomness, so that its one run counts for every seed."""
        return all(leaf.kinds == {"untrained"} for leaf in self.leaves)

    @property
    def is_comparable(self) -> bool:
        """Whether rows are judged by it: it has all its runs, of today's code, and is no
        control."""
        is_complete = bool(self.values) and not self.absent and not self.runs_elsewhere
        return is_complete and not self.stale and not self.is_control

    @property
    def verdict(self) -> str:
        """Whether the published value could be one of ours, as in stats.py; empty without one,
        or of a difference."""
        if self.published is None or not self.values or self.plan.column.delta is not None:
            return ""
        if not self.judged or self.absent or self.stale or self.runs_elsewhere:
            return stats.NOT_COMPARABLE
        return stats.verdict(
            self.values.values(), self.published, self.published_seeds, self.is_deterministic
        ).name

    def number(self, x: float) -> str:
        return f"{x:z.{self.digits}f}"

    def mean_and_std(self, values: stats.Summary) -> str:
        return self.number(values.mean) + (
            "" if values.std is None else f" ± {self.number(values.std)}"
        )

    @property
    def text(self) -> str:
        """`78.41 ± 0.31`, for a difference `+0.41 ± 0.31`; without a value `missing` or `–`.

        Scores on other test data than the table's are shown only where it has no others: `78.41 ±
        0.31‡`.
        """
        if self.ours is None and self.runs_elsewhere:
            return self.text_elsewhere
        if self.ours is None:
            return "missing" if self.absent else "–"
        sign = "+" if self.plan.column.delta is not None and self.ours.mean >= 0 else ""
        return sign + self.mean_and_std(self.ours)

    @property
    def text_elsewhere(self) -> str:
        """The scores on other test data; only the mark where they are of several sets, or the
        cell is derived."""
        if len(self.elsewhere) == 1:
            (by_seed,) = self.elsewhere.values()
            values = [value for value in by_seed.values() if value is not None]
            if values:
                return f"{self.mean_and_std(stats.summarise(values))}{ON_OTHER_DATA}"
        return f"–{ON_OTHER_DATA}"


@dataclass(frozen=True)
class GridView:
    """A paper's table or figure at a scale."""

    paper: str
    name: str  # table2, figure3
    scale: str
    grid: Grid | SettingsTable
    rows: list[list[Cell]]
    # that its scores are compared on, by evaluator
    data: dict[str, EvaluationData] = field(default_factory=dict)

    @property
    def cells(self) -> list[Cell]:
        return [*chain.from_iterable(self.rows)]

    @property
    def judged(self) -> bool:
        """Whether any printed value is judged by our runs."""
        return any(cell.judged and cell.published for cell in self.cells)

    @property
    def score_grid(self) -> Grid:
        """The table or figure, where it is one of scores."""
        assert isinstance(self.grid, Grid), self.name
        return self.grid

    @property
    def figure(self) -> Figure:
        """The figure, where it is one."""
        assert isinstance(self.grid, Figure), self.name
        return self.grid

    def column(self, label: str) -> list[Cell]:
        return [row[self.score_grid.column(label)] for row in self.rows]

    def is_on_its_data(self, evaluator: str, scored: Scored) -> bool:
        """Whether a score is of the test data that the table's other scores of the evaluator are
        of."""
        return evaluator not in self.data or scored.data.is_same_as(self.data[evaluator])

    @cached_property
    def runs(self) -> dict[tuple[str, str], bool | None]:
        """By run and evaluator, whether its scores are outdated; None: it has none that a cell
        or a line shows."""
        shown: dict[tuple[str, str], bool | None] = {}
        untrained = untrained_cell(self.paper, self.name, self.scale)  # a line in some figures
        for cell in [*(cell.plan for cell in self.cells), *([untrained] if untrained else [])]:
            for spec in cell.specs:
                content, outdated = stored_score(spec, cell.evaluator, self.scale)
                if (
                    content is not None
                    and value(content, cell.task, cell.column.metric) is not None
                ):
                    shown[spec.run_id, cell.evaluator] = outdated
                shown.setdefault((spec.run_id, cell.evaluator), None)
        return shown

    @cached_property
    def elsewhere(self) -> int:
        """How many of the runs with scores have them on other test data, so that they are
        compared with nothing."""
        runs = set()
        for leaf in chain.from_iterable(cell.leaves for cell in self.cells):
            counted = leaf.counted_specs
            runs |= {
                (spec.run_id, leaf.plan.evaluator)
                for spec in leaf.plan.specs
                if spec not in counted
            }
        return len(runs)

    @property
    def not_standard(self) -> list[str]:
        """Evaluators whose printed values are not judged, as the test data is not known to be
        the standard set."""
        leaves = chain.from_iterable(cell.leaves for cell in self.cells if cell.published)
        return sorted({leaf.plan.evaluator for leaf in leaves if not leaf.is_standard})

    @property
    def sentences_seen(self) -> int | None:
        """How many sentences every run sees, where columns of training sizes have more; else
        None."""
        scale = read_scale(self.scale)
        steps, batch = (scale.override.get(key) for key in ("steps", "batch_size"))
        sizes = {
            scale.sizes.get(column.size, 0) for column in self.score_grid.columns if column.task
        }
        if (
            not (isinstance(steps, int) and isinstance(batch, int))
            or len(sizes) < 2
            or max(sizes) <= steps * batch
        ):
            return None
        return steps * batch

    @property
    def progress(self) -> tuple[int, int]:
        """(runs with scores, runs shown); a run counts once per evaluator whose data can be had."""
        scored = sum(outdated is not None for outdated in self.runs.values())
        missing = [name for (_, name), outdated in self.runs.items() if outdated is None]
        return scored, scored + sum(unavailable(name, self.scale) is None for name in missing)

    @property
    def outdated(self) -> int:
        """How many of the runs with scores have them of an older code version or of other
        settings only."""
        return sum(map(bool, self.runs.values()))


def grid_view(paper_name: str, name: str, scale: str) -> GridView:
    """A table or figure with every score of a scale that exists."""
    view = printed_view(paper_name, name, scale)
    if isinstance(view.grid, SettingsTable):
        return view
    files = _score_files(view.cells, scale)
    data = {evaluator: data_of_most(by_run.values()) for evaluator, by_run in files.items()}
    rows = [[_with_scores(cell, files, data, scale) for cell in row] for row in view.rows]
    return replace(view, rows=_with_derived(view.grid, rows), data=data)


def printed_view(paper_name: str, name: str, scale: str) -> GridView:
    """A table or figure with published values only: no score is read."""
    grid = find_grid(paper_name, name)
    if isinstance(grid, SettingsTable):
        return GridView(paper_name, name, scale, grid, [])
    rows, here = [], read_scale(scale)
    for plans in plan_grid(paper_name, name, scale):
        row = plans[0].row
        role = (
            (row.evidence and row.evidence.encoder) or (row.run and row.run.encoder) or grid.encoder
        )
        judged = not here.differs and here.encoders.get(role) == read_scale(
            PAPER_SCALE
        ).encoders.get(role)
        cells = [
            Cell(
                plan,
                plan.column.factor or grid.factor,
                grid.column_digits(plan.column),
                {},
                published=published,
                published_seeds=plan.column.seeds or grid.seeds,
                published_encoder=role,
                published_evaluator=grid.column_evaluator(plan.column),
                judged=judged,
                others=others(paper_name, grid, row, plan.column),
            )
            for plan, published in zip(plans, row.values, strict=True)
        ]
        rows.append(cells)
    return GridView(paper_name, name, scale, grid, _with_derived(grid, rows))


ScoreFiles = dict[str, dict[str, Scored]]  # by evaluator and run, as a run is in several cells


def _score_files(cells: list[Cell], scale: str) -> ScoreFiles:
    """The score files that cells show."""
    files: ScoreFiles = defaultdict(dict)
    for cell in cells:
        by_run = files[cell.plan.evaluator]
        for spec in cell.plan.specs:
            if spec.run_id in by_run:
                continue
            content, is_outdated = stored_score(spec, cell.plan.evaluator, scale)
            if content is not None:
                by_run[spec.run_id] = Scored(content, is_outdated)
    return {evaluator: by_run for evaluator, by_run in files.items() if by_run}


@dataclass(frozen=True)
class RunScore:
    """What a cell shows of one run with a score file."""

    seed: int
    value: float | None  # in printed units; None where the evaluator gave no such score
    data: EvaluationData
    has_replicates: bool
    is_outdated: bool
    changed_weights: bool  # False if the loss was 0 throughout and nothing decays
    loss_vanished: bool  # as training found and its report says


def _run_score(cell: Cell, spec: Spec, file: Scored) -> RunScore:
    plan = cell.plan
    fraction = value(file.content, plan.task, plan.column.metric)
    training = file.content.get("training", {})
    curve = training.get("curve")
    changed_weights = (
        not curve or any(point["loss"] for point in curve) or bool(spec.params["weight_decay"])
    )
    tasks = tasks_of(plan.evaluator) if plan.task == "Avg." else [plan.task]
    return RunScore(
        spec.seed,
        None if fraction is None else cell.factor * fraction,
        file.data,
        all(has_replicates(file.content, task, plan.metric) for task in tasks),
        file.is_outdated,
        changed_weights,
        training.get("loss_vanished", False),
    )


def _with_scores(
    cell: Cell, files: ScoreFiles, data_by_evaluator: dict[str, EvaluationData], scale: str
) -> Cell:
    """A cell with the scores of its runs; only those on the test data of the table count."""
    evaluator = cell.plan.evaluator
    data = data_by_evaluator.get(evaluator)  # None where no run of the table has a score
    reasons: list[str | None] = []
    scores: list[RunScore] = []
    for spec in cell.plan.specs:
        file = files.get(evaluator, {}).get(spec.run_id)
        if file is None:
            reasons.append(why_missing(spec.run_id, evaluator, scale))
        else:
            scores.append(_run_score(cell, spec, file))
    absent = len(reasons)
    counted: list[RunScore] = []
    elsewhere: dict[EvaluationData, dict[int, float | None]] = {}
    for one in scores:
        if data is None or one.data.is_same_as(data):
            counted.append(one)
        else:
            elsewhere.setdefault(one.data, {})[one.seed] = one.value
    why_elsewhere = ""
    if data is not None:
        texts = [
            elsewhere_text(cell.plan, by_seed, other, data) for other, by_seed in elsewhere.items()
        ]
        why_elsewhere = "; ".join(texts)
    reasons.append(why_elsewhere)
    cell = replace(
        cell,
        values={one.seed: one.value for one in counted if one.value is not None},
        data=data if counted else None,
        elsewhere=elsewhere,
        why_elsewhere=why_elsewhere,
        without_replicates=frozenset(one.seed for one in counted if not one.has_replicates),
        absent=absent,
        reasons=tuple(reason for reason in dict.fromkeys(reasons) if reason),
        stale=any(one.is_outdated for one in scores),
        unchanged=bool(scores) and not any(one.changed_weights for one in scores),
        loss_vanished=bool(scores) and all(one.loss_vanished for one in scores),
    )
    return _with_standard(cell, scale)


def elsewhere_text(
    plan: CellPlan, by_seed: Collection[int], other: EvaluationData, data: EvaluationData
) -> str:
    """`2 of 3 runs are scored on other test data than the table (sts: data 0123456789ab, not
    data 94b655eb25db)`."""
    hashes = f"{plan.evaluator}: {other.text_beside(data)}, not {data.text_beside(other)}"
    verb = "is" if len(by_seed) == 1 else "are"
    return (
        f"{len(by_seed)} of {len(plan.specs)} runs {verb} scored on other test data than the table"
        f" ({hashes})"
    )


def _with_standard(cell: Cell, scale: str) -> Cell:
    """A cell whose printed value is judged only if the scores are on the standard test set.

    At scales that differ from the papers no printed value is judged, and data of any kind is right.
    """
    if read_scale(scale).differs or cell.data is None:
        return cell
    if is_standard_data(cell.plan.evaluator, cell.data, scale):
        return cell
    return replace(cell, is_standard=False, judged=False)


def scored_text(done: int, wanted: int, outdated: int, elsewhere: int = 0) -> str:
    """`8 of 13 runs scored`, `13 of 13 runs scored, 4 of them †, 2 of them ‡`.

    †: with an older code version or other settings; ‡: on other test data.
    """
    parts = [f"{done} of {wanted} runs scored"]
    if outdated:
        parts.append(f"{outdated} of them †")
    if elsewhere:
        parts.append(f"{elsewhere} of them {ON_OTHER_DATA}")
    return ", ".join(parts)


def _with_derived(grid: Grid, rows: list[list[Cell]]) -> list[list[Cell]]:
    """Fills columns that are the mean of those before them, then columns of differences to the
    baseline row."""
    for index, column in enumerate(grid.columns):
        for row in rows if column.mean else ():
            parts = [cell for cell in row[:index] if cell.plan.column.task is not None]
            row[index] = combine_parts(row[index], parts, lambda *v: sum(v) / len(v))
    for index, column in enumerate(grid.columns):
        if column.delta is None:
            continue
        minuend, base = grid.column(column.delta), rows[grid.baseline_row]
        for row in (row for row in rows if row is not base):
            cell, published, base_published = (
                row[index],
                row[minuend].published,
                base[minuend].published,
            )
            if cell.published is None and published and base_published:
                off = published.value - base_published.value
                cell = replace(
                    cell, published=Published(value=off, text=f"{off:+z.{cell.digits}f}")
                )
            row[index] = combine_parts(cell, [row[minuend], base[minuend]], lambda a, b: a - b)
    return rows


def combine_parts(cell: Cell, parts: list[Cell], function) -> Cell:
    """A cell with a function of others, for every seed that they share; as it is where one of
    them has no value."""
    is_standard = all(part.is_standard for part in parts)
    cell = replace(cell, is_standard=is_standard, judged=cell.judged and is_standard)
    if not parts or not all(part.values for part in parts):
        return replace(cell, parts=tuple(parts))
    values, absent = combine_by_seed(function, *parts), max(part.absent for part in parts)
    stale, unchanged = any(part.stale for part in parts), any(part.unchanged for part in parts)
    return replace(
        cell, parts=tuple(parts), values=values, absent=absent, stale=stale, unchanged=unchanged
    )


def combine_by_seed(function, *cells: Cell) -> dict[int, float]:
    """A function of the cells' values for every seed that they share; a deterministic cell has
    one value for all."""
    seeded = [cell.values for cell in cells if not cell.is_deterministic]
    seeds = sorted(set.intersection(*map(set, seeded))) if seeded else [0]
    by_cell = [
        dict.fromkeys(seeds, cell.mean) if cell.is_deterministic else cell.values for cell in cells
    ]
    return {seed: function(*(values[seed] for values in by_cell)) for seed in seeds}


def same_runs(a: Cell, b: Cell) -> bool:
    """Whether two cells are of the same runs, and the same is measured on them."""
    plans = [[leaf.plan for leaf in cell.leaves] for cell in (a, b)]
    first, second = (
        [({spec.run_id for spec in p.specs}, p.scores) for p in of_cell] for of_cell in plans
    )
    return bool(a.parts or a.plan.specs) and first == second
