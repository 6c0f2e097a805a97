"""What others' runs say of a published value: groups of runs, verdicts, the spread of seeds, what
selection does. From evidence/*.yaml and papers/*.yaml alone: no score of this project is read, and
no scale matters.
"""

from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

import numpy as np

from csebench.base.caches import cached
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import AVERAGE, FULL, Evidence, MatchKey, PublishedRun, Setup
from csebench.plan.catalog.files import paper, paper_names
from csebench.plan.grids import find_grid
from csebench.plan.schema.paper import Column, Grid, Published, Row
from csebench.plan.targets import grid_label, grid_names
from csebench.report.numbers import stats

SWEEP, SINGLE, LATER, MEAN_ONLY = "seed sweep", "single runs", "re-run in later papers", "mean only"


class Print(NamedTuple):
    """What a method's authors print."""

    value: Published
    seeds: int  # behind it
    where: str  # and which other values for the same are in other tables


@dataclass(frozen=True)
class Group:
    """Runs that are taken together: the seeds of one source, or single runs of several sources."""

    kind: str
    summary: stats.Summary
    evidence: tuple[Evidence, ...]
    runs: tuple[tuple[Evidence, PublishedRun], ...] = ()  # none where only their mean is known
    values: tuple[float, ...] = ()  # one per run

    @property
    def sources(self) -> list[str]:
        return sorted({e.name for e in self.evidence})

    @property
    def kept_last_step(self) -> list[bool]:
        """Of each run whether it is known to keep its last step, which hints at scores that
        still rose."""
        return [
            run.best_step is not None and run.best_step == e.setup.steps for e, run in self.runs
        ]

    def verdict(self, printed: Published, seeds: int) -> stats.Verdict:
        """Whether a printed value, the mean of so many seeds, could be one more of these runs."""
        if self.values:
            return stats.verdict(self.values, printed, seeds)
        return stats.verdict_on(self.summary, printed, seeds)

    def differs(self, row: Row) -> str:
        """How runs differ from the authors' recipe, and in batch, learning rate and steps from a
        row's."""
        first, *others = self.evidence
        if others:
            return f"{len(self.sources)} sources with their own setups"
        return "; ".join(filter(None, (budget_text(first.setup, row), circumstances(first.setup))))

    def reach(self, value: float) -> int:
        """How many runs are at or above a value."""
        return sum(v >= value - stats.SLACK for v in self.values)


@cached
def groups(
    key: MatchKey, score: str = AVERAGE, size: str = FULL, without_paper: str = ""
) -> list[Group]:
    """Groups of comparable, sure runs with a score, but a paper's own: sweeps, largest first;
    single runs; means."""
    sweeps, loose, means = [], {SINGLE: [], LATER: []}, []
    for e in evidence.evidence_of(key, score, size):
        x = e.experiment
        if (
            not (x.comparable and x.sure and x.kind in ("retrained", "paper"))
            or e.source.paper == without_paper
        ):
            continue
        runs = [(e, run) for run in x.runs if score in run.scores]
        if len(runs) >= stats.SEEDS_NEEDED and all(run.seed is not None for _, run in runs):
            sweeps.append(group(SWEEP, runs, score))
        elif runs:
            loose[LATER if x.kind == "paper" else SINGLE] += runs
        elif x.summary is not None:
            mean = x.summary.scores[score]
            means.append(Group(MEAN_ONLY, stats.Summary(mean.value, mean.std, x.summary.n), (e,)))
    sweeps.sort(key=lambda sweep: -sweep.summary.n)
    return [*sweeps, *(group(kind, runs, score) for kind, runs in loose.items() if runs), *means]


def group(kind: str, runs: list[tuple[Evidence, PublishedRun]], score: str) -> Group:
    values = tuple(run.scores[score].value for _, run in runs)
    return Group(
        kind, stats.summarise(values), tuple(dict.fromkeys(e for e, _ in runs)), tuple(runs), values
    )


@cached
def keys_with_runs() -> list[MatchKey]:
    """Every trained method and encoder with comparable runs; methods with most runs first."""
    trained = [
        evidence.key_of(e.experiment)
        for e in evidence.all_evidence()
        if e.experiment.setting is None
    ]
    keys = [key for key in dict.fromkeys(trained) if groups(key) and key.method != "bert"]
    runs = {key: max(g.summary.n for g in groups(key)) for key in keys}
    most = {
        key.method: max(n for other, n in runs.items() if other.method == key.method)
        for key in keys
    }
    encoders = list(evidence.evidence_names().encoders)
    return sorted(
        keys, key=lambda k: (-most[k.method], k.method, str(k.pooler), encoders.index(k.encoder))
    )


@dataclass(frozen=True)
class PrintedAverage:
    """What a row of papers/ prints for a method on an encoder."""

    paper: str
    grid_name: str
    value: Published
    seeds: int
    tests: int  # scores of the method in this row
    is_measured: bool  # by the authors of the paper

    @property
    def where(self) -> str:
        """`InfoCSE, Table 2`."""
        return f"{paper(self.paper).label}, {grid_label(self.grid_name)}"

    @property
    def preference(self) -> tuple[int, bool]:
        return self.tests, self.is_measured


@cached
def printed_by_authors(key: MatchKey) -> Print | None:
    """The average that a method's authors print for an encoder; None where it is not known.

    evidence/methods.yaml has it where no row of papers/ prints it, or where two rows print two
    values. Otherwise it is that of the row that prints most of the test sets, and of equal ones
    that of the first paper. Re-runs by another paper, and values of unknown source, do not count.
    """
    averages = printed_averages(key)
    stated = evidence.evidence_names().methods[key.method].printed.get(key.encoder)
    if stated is not None and key.pooler == evidence.default_pooler(key.method):
        value, seeds, where = stated.value, stated.seeds, stated.note or "as its sources state it"
    elif averages:
        chosen = max(averages, key=lambda average: average.preference)
        value, seeds, where = chosen.value, chosen.seeds, chosen.where
    else:
        return None
    most = max((average.tests for average in averages), default=0)
    places = {}  # of other values
    for average in averages:
        if average.tests == most and average.value.value != value.value:
            places[average.value.text] = average.where
    others = [f"{text} in {place}" for text, place in places.items()]
    return Print(value, seeds, "; ".join([where, *others]))


def printed_averages(key: MatchKey) -> list[PrintedAverage]:
    """Averages that rows of papers/ print for a method, as its authors have them.

    Those of papers that evidence/methods.yaml names; if none of these has one, those of all papers.
    So no other paper can take the place of a named one by repeating its rows.
    """
    averages = []
    for name, grid_name, grid, row in rows():
        if row.source not in ("measured", "copied"):
            continue
        if evidence.key_of_row(row, grid.encoder) != key:
            continue
        scores = {}
        for column, value in zip(grid.columns, row.values, strict=True):
            score = score_of(grid, column)
            if score is not None and value is not None:
                scores[score] = (value, column.seeds or grid.seeds)
        if AVERAGE in scores:
            value, seeds = scores[AVERAGE]
            is_measured = row.source == "measured"
            averages.append(PrintedAverage(name, grid_name, value, seeds, len(scores), is_measured))
    in_named = [
        average for average in averages if average.paper in evidence.evidence_names().papers
    ]
    return in_named or averages


@cached
def rows() -> list[tuple[str, str, Grid, Row]]:
    """(paper, table or figure, its grid, row) of every row of papers/ that shows scores, named
    papers first."""
    found = []
    for name in papers_in_order():
        for grid_name in grid_names(name):
            grid = find_grid(name, grid_name)
            if isinstance(grid, Grid):
                found += [(name, grid_name, grid, row) for row in grid.rows]
    return found


def papers_in_order() -> list[str]:
    """Valid papers: those that evidence/methods.yaml names, in its order; then the others by
    name."""
    valid = paper_names()
    named = [name for name in evidence.evidence_names().papers if name in valid]
    return [*dict.fromkeys([*named, *valid])]


def score_of(grid: Grid, column: Column, size: str = FULL) -> str | None:
    """What evidence calls the score that a column shows; None where evidence has none of it."""
    if column.task is None or column.metric is not None or column.sweep or column.size != size:
        return None
    return evidence.score_name(column.evaluator or grid.evaluator, column.task)


def sweeps() -> list[tuple[MatchKey, Group, Print]]:
    """Seed sweeps of a method with a printed value: what the page's figures and its first lines
    are about."""
    largest = [(key, groups(key)[0], printed_by_authors(key)) for key in keys_with_runs()]
    return [
        (key, runs, value)
        for key, runs, value in largest
        if runs.kind == SWEEP and value is not None
    ]


def others(paper_name: str, grid: Grid, row: Row, column: Column) -> Group | None:
    """Others' runs for a cell, in printed units: the largest seed sweep, else single runs. The
    paper's own numbers do not count. At no scale in particular: they are on the paper's encoder,
    and are not mixed with ours.
    """
    key, score = evidence.key_of_row(row, grid.encoder), score_of(grid, column, column.size)
    if (
        key is None
        or score is None
        or not (candidates := groups(key, score, column.size, paper_name))
    ):
        return None
    largest, unit = candidates[0], (column.factor or grid.factor) / 100
    s, values = largest.summary, tuple(unit * value for value in largest.values)
    summary = stats.Summary(unit * s.mean, s.std and unit * s.std, s.n)
    return replace(largest, summary=summary, runs=(), values=values)


def budget_text(setup: Setup, row: Row | None = None) -> str:
    """`batch 64 (this row: 50), learning rate 3e-5, 15,625 steps`."""
    params = row.run.params if row is not None and row.run is not None else {}
    parts = []
    for name, text in (
        ("batch_size", "batch {}"),
        ("learning_rate", "learning rate {}"),
        ("steps", "{:,} steps"),
    ):
        theirs, here = getattr(setup, name), params.get(name)
        if theirs is not None:
            same = here is None or str(theirs) == str(here) or float(theirs) == float(here)
            parts.append(text.format(theirs) + ("" if same else f" (this row: {here:g})"))
    return ", ".join(parts)


def circumstances(setup: Setup) -> str:
    """Code, precision, versions, GPU, selection, and whatever else a source states."""
    gpu = f"GPU {setup.gpu}" if setup.gpu else None
    every = f"evaluated every {setup.evaluate_every} steps" if setup.evaluate_every else None
    parts = (
        setup.code,
        setup.precision,
        setup.versions,
        gpu,
        every,
        setup.selection,
        setup.differs,
    )
    return "; ".join(filter(None, parts))


def title(key: MatchKey) -> str:
    """`unsup-SimCSE, BERT-base`; with the pooler where it is not the method's own."""
    return f"{method_title(key)}, {encoder_and_pooler(key)}"


def encoder_and_pooler(key: MatchKey) -> str:
    """`BERT-base`; with the pooler where it is not the method's own."""
    if key.pooler == evidence.default_pooler(key.method):
        return encoder_title(key)
    return f"{encoder_title(key)} ({key.pooler})"


def method_title(named) -> str:
    return evidence.evidence_names().methods[named.method].title


def encoder_title(named) -> str:
    return evidence.evidence_names().encoders[named.encoder]


class Spread(NamedTuple):
    """Standard deviation of a score over seeds, in the units of evidence, and whose."""

    std: float
    n: int  # seeds
    method: str
    source: str


@cached
def spread(encoder: str, score: str, method: str | None = None) -> Spread | None:
    """Of the nearest seed sweep with a score on an encoder: the method's own, else the largest
    of another; or None."""
    keys = [key for key in keys_with_runs() if key.encoder == encoder]
    all_sweeps = [
        (key.method, g.summary, g.sources[0])
        for key in keys
        for g in groups(key, score)
        if g.kind == SWEEP
    ]
    spreads = [
        Spread(s.std, s.n, name, source) for name, s, source in all_sweeps if s.std is not None
    ]
    return max(spreads, key=lambda spread: (spread.method == method, spread.n), default=None)


def expected_of_best(k: int, by: np.ndarray, of: np.ndarray) -> float:
    """The mean, over all subsets of k runs, of `of` of the run that is highest in `by`; ties share
    their chance. The run of rank r (from 0) is the highest of C(r, k-1) of the C(n, k) subsets.

    >>> expected_of_best(2, np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 60.0]))  # 20, 60 and
        60
    46.666666666666664
    """
    order = np.argsort(by, kind="stable")
    chances = np.array([comb(rank, k - 1) for rank in range(len(by))], dtype=float) / comb(
        len(by), k
    )
    values = np.array([of[by == by[i]].mean() for i in order])
    return float(chances @ values)
