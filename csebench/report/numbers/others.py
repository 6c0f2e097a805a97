"""Runs that other people published, in groups, and the spread of their scores over seeds.

Everything here comes from evidence/*.yaml and papers/*.yaml. No score of this project is read, and
no scale matters. What the authors of a method print is in printed_averages.py.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from csebench.base.caches import cached
from csebench.plan.catalog import evidence
from csebench.plan.catalog.evidence import (
    AVERAGE,
    FULL,
    Evidence,
    Experiment,
    MatchKey,
    PublishedRun,
)
from csebench.plan.schema.paper import Column, Grid, Published, Row
from csebench.report.numbers import stats
from csebench.report.numbers.printed_averages import AuthorsPrint, printed_by_authors, score_of
from csebench.report.numbers.random_effects import RandomEffects, pool_sources

UNTRAINED = "bert"  # method of evidence/methods.yaml: an encoder as it was released


class GroupKind(StrEnum):
    """How the runs of a group belong together."""

    SWEEP = "seed sweep"  # runs of one source, each with another seed
    SINGLE = "single runs"  # runs of several sources
    LATER = "re-run in later papers"
    MEAN_ONLY = "mean only"  # one source that gives only the mean of its runs
    POOLED = "pooled over sources"


class OthersRun(NamedTuple):
    """A published run, with the experiment that it belongs to."""

    evidence: Evidence
    run: PublishedRun

    @property
    def kept_last_step(self) -> bool:
        """Whether its last checkpoint is known to be the best, so that the score may still rise."""
        best_step = self.run.best_step
        return best_step is not None and best_step == self.evidence.setup.steps


@dataclass(frozen=True)
class Group:
    """Published runs with one score, which are summed up together."""

    kind: GroupKind
    summary: stats.Summary
    evidence: tuple[Evidence, ...]
    runs: tuple[OthersRun, ...] = ()  # empty if only their mean is known
    values: tuple[float, ...] = ()  # one per run

    @property
    def sources(self) -> list[str]:
        """Name the sources, sorted."""
        return sorted({e.name for e in self.evidence})

    def verdict(self, printed: Published, seeds: int, point: float = 1.0) -> stats.Verdict:
        """Judge whether a printed value, a mean over `seeds`, is a plausible draw from the runs.

        Args:
            point: a point (0.01 of a score) in the units of the runs.
        """
        if self.values:
            return stats.verdict(self.values, printed, seeds, point=point)
        return stats.verdict_on(self.summary, printed, seeds, point=point)

    def reach(self, value: float) -> int:
        """Count the runs at or above a value."""
        return len([v for v in self.values if v >= value - stats.SLACK])

    def scaled(self, factor: float) -> "Group":
        """Convert to other units: multiply every score by `factor`."""
        values = tuple(factor * value for value in self.values)
        return replace(self, summary=scaled_summary(self.summary, factor), runs=(), values=values)


@dataclass(frozen=True)
class SourceRuns:
    """The runs of one source in a pool."""

    name: str  # of the source's file, and who made the runs if it has runs of several people
    kind: GroupKind
    summary: stats.Summary


@dataclass(frozen=True, kw_only=True)
class PooledGroup(Group):
    """Comparable runs of a method on an encoder, pooled over their sources.

    A printed value is judged by `effects`, a model in which sources differ. `summary` has the mean
    of the sources' means, and the deviation between runs of different sources. Its `n` also counts
    runs whose source gives only their mean, so it can exceed `len(values)`.
    """

    effects: RandomEffects
    by_source: tuple[SourceRuns, ...]

    def verdict(self, printed: Published, seeds: int, point: float = 1.0) -> stats.Verdict:
        """Judge whether a printed value is a plausible result of a new source."""
        return self.effects.verdict(printed, seeds, point)

    def scaled(self, factor: float) -> "Group":
        sources = []
        for source in self.by_source:
            sources.append(replace(source, summary=scaled_summary(source.summary, factor)))
        effects = self.effects.scaled(factor)
        return replace(super().scaled(factor), effects=effects, by_source=tuple(sources))


def scaled_summary(summary: stats.Summary, factor: float) -> stats.Summary:
    """Convert to other units: multiply mean and deviation by `factor`."""
    std = None if summary.std is None else factor * summary.std
    return stats.Summary(factor * summary.mean, std, summary.n)


@dataclass(frozen=True)
class Sweep:
    """A seed sweep of a method on an encoder, with the value that the authors print."""

    key: MatchKey
    runs: Group
    printed: AuthorsPrint


@dataclass(frozen=True)
class PooledMethod:
    """The pooled runs of a method on an encoder, with the value that the authors print."""

    key: MatchKey
    runs: PooledGroup
    printed: AuthorsPrint


class Spread(NamedTuple):
    """Standard deviation of a score over seeds, in the units of evidence, with its source."""

    std: float
    n: int  # seeds
    method: str
    source: str


@dataclass(frozen=True)
class EvidenceCounts:
    """Numbers of published scores of trained models, by what they can be used for.

    A mean of several runs counts here if its source gives no scores of single runs.
    """

    comparable: int  # runs that the verdicts on the STS average rest on
    sources: int  # of the comparable runs
    means: int  # comparable means of several runs
    without_average: int  # comparable runs that state other scores only
    other_runs: int  # re-trained runs that are doubtful or have another setup
    other_means: int  # means of such runs
    checkpoints: int  # scores of released checkpoints


# ---------------------------------------------------------------- groups of runs


@cached
def groups(
    key: MatchKey, score: str = AVERAGE, size: str = FULL, without_paper: str = ""
) -> list[Group]:
    """Group the comparable runs of a method and encoder that have a score.

    Experiments that are not comparable, or whose settings are uncertain, are left out.

    Args:
        size: of the training set.
        without_paper: a paper whose runs are left out, because a paper is no evidence for its own
            numbers.

    Returns:
        Seed sweeps, largest first, then single runs, then runs of later papers, then bare means.
    """
    sweeps: list[Group] = []
    single_runs: list[OthersRun] = []
    later_runs: list[OthersRun] = []
    means: list[Group] = []
    for e in evidence.evidence_of(key, score, size):
        experiment = e.experiment
        if not is_usable(experiment) or e.source.paper == without_paper:
            continue
        runs = [OthersRun(e, run) for run in experiment.runs if score in run.scores]
        if is_seed_sweep(runs):
            sweeps.append(group_runs(GroupKind.SWEEP, runs, score))
        elif runs and experiment.kind == "paper":
            later_runs += runs
        elif runs:
            single_runs += runs
        elif experiment.summary is not None:
            mean = experiment.summary.scores[score]
            summary = stats.Summary(mean.value, mean.std, experiment.summary.n)
            means.append(Group(GroupKind.MEAN_ONLY, summary, (e,)))

    sweeps.sort(key=lambda sweep: sweep.summary.n, reverse=True)
    found = list(sweeps)
    if single_runs:
        found.append(group_runs(GroupKind.SINGLE, single_runs, score))
    if later_runs:
        found.append(group_runs(GroupKind.LATER, later_runs, score))
    return found + means


def is_usable(experiment: Experiment) -> bool:
    """Whether an experiment trained the method again, with comparable and known settings."""
    return experiment.comparable and experiment.sure and is_retraining(experiment)


def is_retraining(experiment: Experiment) -> bool:
    """Whether others trained the method again."""
    return experiment.kind in ("retrained", "paper")


def is_seed_sweep(runs: list[OthersRun]) -> bool:
    """Whether there are enough runs for a verdict, and each states its seed."""
    return len(runs) >= stats.SEEDS_NEEDED and all(run.seed is not None for _, run in runs)


def group_runs(kind: GroupKind, runs: list[OthersRun], score: str) -> Group:
    """Make a group of runs, with the summary of their scores."""
    values = tuple(run.scores[score].value for _, run in runs)
    experiments = dict.fromkeys(run.evidence for run in runs)
    return Group(kind, stats.summarise(values), tuple(experiments), tuple(runs), values)


# ---------------------------------------------------------------- runs of several sources


@cached
def pooled_group(
    key: MatchKey, score: str = AVERAGE, size: str = FULL, without_paper: str = ""
) -> PooledGroup | None:
    """Pool the comparable runs of a method and encoder over their sources.

    Takes the arguments of `groups`.

    Returns:
        None if there are too few sources, or if no deviation within one is known (`pool_sources`).
    """
    found = groups(key, score, size, without_paper)
    by_source = runs_by_source(found)
    effects = pool_sources([source.summary for source in by_source])
    if effects is None:
        return None
    evidence_of_groups: list[Evidence] = []
    runs: list[OthersRun] = []
    values: list[float] = []
    for group in found:
        evidence_of_groups += group.evidence
        runs += group.runs
        values += group.values
    count = sum(source.summary.n for source in by_source)
    return PooledGroup(
        kind=GroupKind.POOLED,
        summary=stats.Summary(effects.mean, effects.run_deviation, count),
        evidence=tuple(dict.fromkeys(evidence_of_groups)),
        runs=tuple(runs),
        values=tuple(values),
        effects=effects,
        by_source=tuple(by_source),
    )


def runs_by_source(found: list[Group]) -> list[SourceRuns]:
    """Sum up the runs of groups by source.

    A bare mean counts only if its source gives no scores of runs. The first one counts if a source
    gives several.
    """
    values: dict[str, list[float]] = {}
    kinds: dict[str, GroupKind] = {}
    for group in found:
        for run, value in zip(group.runs, group.values, strict=True):
            name = maker_of_run(run)
            values.setdefault(name, []).append(value)
            kinds.setdefault(name, group.kind)
    sources = [SourceRuns(name, kinds[name], stats.summarise(v)) for name, v in values.items()]

    summed_up: set[str] = set()  # names of source files
    for group in found:
        summed_up.update(run.evidence.name for run in group.runs)
    for group in found:
        source = group.sources[0]
        if group.kind == GroupKind.MEAN_ONLY and source not in summed_up:
            sources.append(SourceRuns(source, group.kind, group.summary))
            summed_up.add(source)
    return sources


def maker_of_run(run: OthersRun) -> str:
    """Name the source of a run, with the person if the source has runs of several people."""
    if run.run.by is None:
        return run.evidence.name
    return f"{run.evidence.name}, {run.run.by}"


def pooled_methods() -> list[PooledMethod]:
    """List the methods and encoders with a printed value and runs that can be pooled."""
    found = []
    for key in keys_with_runs():
        pooled = pooled_group(key)
        printed = printed_by_authors(key)
        if pooled is not None and printed is not None:
            found.append(PooledMethod(key, pooled, printed))
    return found


# ---------------------------------------------------------------- methods with runs


@cached
def keys_with_runs() -> list[MatchKey]:
    """List every trained method and encoder with comparable runs.

    The method with the largest group of runs comes first. The keys of a method are sorted by pooler
    and encoder.
    """
    largest_group: dict[MatchKey, int] = {}
    for e in evidence.all_evidence():
        key = evidence.key_of(e.experiment)
        is_trained = e.experiment.setting is None and key.method != UNTRAINED
        if is_trained and groups(key):
            largest_group[key] = max(group.summary.n for group in groups(key))

    most_of_method: dict[str, int] = {}
    for key, count in largest_group.items():
        most_of_method[key.method] = max(count, most_of_method.get(key.method, 0))
    encoders = list(evidence.evidence_names().encoders)

    def page_order(key: MatchKey) -> tuple[int, str, str, int]:
        most = most_of_method[key.method]
        return -most, key.method, str(key.pooler), encoders.index(key.encoder)

    return sorted(largest_group, key=page_order)


def sweeps() -> list[Sweep]:
    """List the seed sweeps of methods with a printed value."""
    found = []
    for key in keys_with_runs():
        largest = groups(key)[0]
        printed = printed_by_authors(key)
        if largest.kind == GroupKind.SWEEP and printed is not None:
            found.append(Sweep(key, largest, printed))
    return found


def count_evidence() -> EvidenceCounts:
    """Count the published scores of trained models, by what they can be used for."""
    comparable = 0
    sources = set()
    means = 0
    without_average = 0
    other_runs = 0
    other_means = 0
    checkpoints = 0
    for e in evidence.all_evidence():
        experiment = e.experiment
        runs = len(experiment.runs)
        if experiment.kind == "checkpoint":
            checkpoints += runs
        if not is_retraining(experiment) or experiment.method == UNTRAINED:
            continue
        is_mean = experiment.summary is not None and not runs
        if not is_usable(experiment) or experiment.setting is not None or experiment.size != FULL:
            other_runs += runs
            if is_mean:
                other_means += 1
            continue
        averages = len([run for run in experiment.runs if AVERAGE in run.scores])
        comparable += averages
        without_average += runs - averages
        if is_mean:
            means += 1
        if averages:
            sources.add(e.name)
    return EvidenceCounts(
        comparable, len(sources), means, without_average, other_runs, other_means, checkpoints
    )


# ---------------------------------------------------------------- for a cell of a table


def others(paper_name: str, grid: Grid, row: Row, column: Column) -> Group | None:
    """Find others' runs for a cell, in printed units.

    They are pooled over sources if there are enough of them. Otherwise the first group counts
    (`groups`). The paper's own numbers do not count. The runs are on the encoder of the paper,
    which may not be the encoder of a scale.
    """
    key = evidence.key_of_row(row, grid.encoder)
    score = score_of(grid, column, column.size)
    if key is None or score is None:
        return None
    unit = (column.factor or grid.factor) / 100  # evidence states scores as percentages
    pooled = pooled_group(key, score, column.size, paper_name)
    if pooled is not None:
        return pooled.scaled(unit)
    candidates = groups(key, score, column.size, paper_name)
    if not candidates:
        return None
    return candidates[0].scaled(unit)


@cached
def spread(encoder: str, score: str, method: str | None = None) -> Spread | None:
    """Find the spread of a score over seeds, from the best suited seed sweep on an encoder.

    The largest sweep of the method itself is taken, else the largest sweep of any other method.

    Returns:
        None if no sweep on the encoder has the score.
    """
    spreads = []
    for key in keys_with_runs():
        if key.encoder != encoder:
            continue
        for group in groups(key, score):
            std = group.summary.std
            if group.kind == GroupKind.SWEEP and std is not None:
                spreads.append(Spread(std, group.summary.n, key.method, group.sources[0]))

    def own_method_then_size(candidate: Spread) -> tuple[bool, int]:
        return candidate.method == method, candidate.n

    return max(spreads, key=own_method_then_size, default=None)
